package config

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/files"
)

// roleVariable makes the test program a writer: "put:DIR:PREFIX:COUNT" puts so many entries, "forever:DIR" does not end.
const roleVariable = "CONFIG_TEST_ROLE"

func TestMain(m *testing.M) {
	role := strings.Split(os.Getenv(roleVariable), "\n")
	var err error
	switch role[0] {
	case "put":
		count, _ := strconv.Atoi(role[3])
		err = putMany(role[1], role[2], count)
	case "forever":
		err = putForever(role[1])
	default:
		os.Exit(m.Run())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func putMany(dir, prefix string, count int) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	for n := range count {
		// A store of its own for each, as each request has one.
		entry := fmt.Sprintf(`{"type":"local","command":"%s-%d"}`, prefix, n)
		if err := Open(root, files.Replace).Put(context.Background(), MCP, fmt.Sprintf("%s-%d", prefix, n), []byte(entry)); err != nil {
			return err
		}
	}
	return nil
}

func putForever(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	s := Open(root, files.Replace)
	for n := 0; ; n++ {
		// Longer and shorter in turn, so that half a file could be told from a whole one.
		entry := fmt.Sprintf(`{"type":"local","command":"n%d","args":[%q]}`, n, strings.Repeat("x", n%7*40_000))
		if err := s.Put(context.Background(), MCP, "entry", []byte(entry)); err != nil {
			return err
		}
		fmt.Println(n)
	}
}

// in opens a store of a directory.
func in(t *testing.T, dir string) *Store {
	t.Helper()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { root.Close() })
	return Open(root, files.Replace)
}

func fileOf(dir string, kind Kind) string {
	return filepath.Join(dir, ".sandbox-agent", "config", string(kind)+".json")
}

// write makes a file as somebody else would.
func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func put(t *testing.T, s *Store, kind Kind, name, entry string) {
	t.Helper()
	if err := s.Put(t.Context(), kind, name, []byte(entry)); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, s *Store, kind Kind, name string) string {
	t.Helper()
	entry, err := s.Get(t.Context(), kind, name)
	if err != nil {
		t.Fatal(err)
	}
	return string(entry)
}

// Each is put, read back as it says, and put again as it was read, which changes nothing.
func TestReadBackIsCanonical(t *testing.T) {
	for _, c := range []struct {
		name string
		kind Kind
		put  string
		want string
	}{
		{"the least of local", MCP, `{"type":"local","command":"npx"}`, `{"type":"local","command":"npx","args":[]}`},
		{
			"what the SDK sends", MCP, `{"type":"local","command":"node","args":["server.js"],"env":{"LOG_LEVEL":"debug"}}`,
			`{"type":"local","command":"node","args":["server.js"],"env":{"LOG_LEVEL":"debug"}}`,
		},
		{
			"the SDK's nulls", MCP, `{"type":"local","command":"node","args":[],"cwd":null,"enabled":null,"env":null,"timeoutMs":null}`,
			`{"type":"local","command":"node","args":[]}`,
		},
		{
			"the SDK's nulls, remote", MCP, `{"type":"remote","url":"http://h/","bearerTokenEnvVar":null,"envHeaders":null,"headers":null,"oauth":null,"transport":null}`,
			`{"type":"remote","url":"http://h/"}`,
		},
		{"stdio", MCP, `{"command":"a","type":"stdio","args":["","b"]}`, `{"type":"local","command":"a","args":["","b"]}`},
		{"a command in pieces", MCP, `{"type":"local","command":["npx","-y","x"],"args":["--more"]}`, `{"type":"local","command":["npx","-y","x"],"args":["--more"]}`},
		{
			"every option of local", MCP, `{"timeoutMs":5,"enabled":false,"cwd":"/w","env":{"B":"2","A":""},"args":["x"],"command":"c","type":"local"}`,
			`{"type":"local","command":"c","args":["x"],"env":{"A":"","B":"2"},"cwd":"/w","enabled":false,"timeoutMs":5}`,
		},
		{"aliases", MCP, `{"type":"local","command":"c","environment":{"A":"1"},"timeout":30000}`, `{"type":"local","command":"c","args":[],"env":{"A":"1"},"timeoutMs":30000}`},
		{
			"both names, one value", MCP, `{"type":"local","command":"c","env":{"A":"1","B":"2"},"environment":{"B":"2","A":"\u0031"}}`,
			`{"type":"local","command":"c","args":[],"env":{"A":"1","B":"2"}}`,
		},
		{"off in the words of Cline, Cursor, Kiro, Roo and Windsurf", MCP, `{"type":"stdio","command":"c","disabled":true}`, `{"type":"local","command":"c","args":[],"enabled":false}`},
		{"on in those words", MCP, `{"type":"http","url":"http://h","disabled":false}`, `{"type":"remote","url":"http://h","enabled":true,"transport":"http"}`},
		{"off under both names", MCP, `{"type":"local","command":"c","disabled":true,"enabled":false}`, `{"type":"local","command":"c","args":[],"enabled":false}`},
		{"disabled null", MCP, `{"type":"local","command":"c","disabled":null}`, `{"type":"local","command":"c","args":[]}`},
		{"off in the words of Cherry Studio", MCP, `{"type":"sse","url":"http://h","isActive":false}`, `{"type":"remote","url":"http://h","enabled":false,"transport":"sse"}`},
		{"both names, one null", MCP, `{"type":"local","command":"c","timeout":null,"timeoutMs":1}`, `{"type":"local","command":"c","args":[],"timeoutMs":1}`},
		{"remote", MCP, `{"type":"remote","url":"https://example.com/mcp?x=1&y=<2>"}`, `{"type":"remote","url":"https://example.com/mcp?x=1&y=<2>"}`},
		{"http", MCP, `{"type":"http","url":"http://127.0.0.1:9/"}`, `{"type":"remote","url":"http://127.0.0.1:9/","transport":"http"}`},
		{"sse", MCP, `{"type":"sse","url":"http://[::1]/","transport":null}`, `{"type":"remote","url":"http://[::1]/","transport":"sse"}`},
		{"sse twice", MCP, `{"type":"sse","url":"http://h","transport":"sse"}`, `{"type":"remote","url":"http://h","transport":"sse"}`},
		{
			"every option of remote", MCP,
			`{"transport":"http","timeout":1,"enabled":true,"oauth":{"scope":"a b","clientSecret":"s","clientId":"i"},"envHttpHeaders":{"X-Key":"KEY"},"bearerTokenEnvVar":"TOKEN","headers":{"X-A":"1"},"url":"http://h","type":"remote"}`,
			`{"type":"remote","url":"http://h","headers":{"X-A":"1"},"bearerTokenEnvVar":"TOKEN","envHeaders":{"X-Key":"KEY"},"oauth":{"clientId":"i","clientSecret":"s","scope":"a b"},"enabled":true,"timeoutMs":1,"transport":"http"}`,
		},
		{"oauth off", MCP, `{"type":"remote","url":"http://h","oauth":false}`, `{"type":"remote","url":"http://h","oauth":false}`},
		{"oauth with more", MCP, `{"type":"remote","url":"http://h","oauth":{"x":{"n":1e400},"clientId":null}}`, `{"type":"remote","url":"http://h","oauth":{"x":{"n":1e400}}}`},
		{
			"unknown fields keep order, numbers and escapes", MCP,
			`{"zeta":123456789012345678901234567890.10,"type":"local","alpha":{"b":[1.0, -0, 1E5],"a":"\u0041\ud800\/"},"command":"c","Command":"other","\u0061b":null}`,
			`{"type":"local","command":"c","args":[],"zeta":123456789012345678901234567890.10,"alpha":{"b":[1.0,-0,1E5],"a":"\u0041\ud800\/"},"Command":"other","\u0061b":null}`,
		},
		{"another type's fields are unknown ones", MCP, `{"type":"local","command":"c","url":5,"transport":"pigeon"}`, `{"type":"local","command":"c","args":[],"url":5,"transport":"pigeon"}`},
		{"escapes of known fields are resolved", MCP, `{"\u0074ype":"local","command":"\u0063\u2028\ud83d\ude00<"}`, `{"type":"local","command":"c\u2028😀<","args":[]}`},
		{"half surrogates in unknown keys are two", MCP, `{"type":"local","command":"c","\ud800":1,"\ud801":2}`, `{"type":"local","command":"c","args":[],"\ud800":1,"\ud801":2}`},

		{
			"what the SDK sends for skills", Skills, `{"sources":[{"type":"github","source":"rivet-dev/skills","skills":["sandbox-agent"],"ref":"main"}]}`,
			`{"sources":[{"type":"github","source":"rivet-dev/skills","skills":["sandbox-agent"],"ref":"main"}]}`,
		},
		{"no sources", Skills, `{"sources":[]}`, `{"sources":[]}`},
		{
			"every option, and more", Skills, `{"x":1,"sources":[{"y":{"z":9007199254740993},"subpath":"a/b","ref":null,"source":"../s","type":"local"},{"type":"git","source":"git@h:r","skills":[]}]}`,
			`{"sources":[{"type":"local","source":"../s","subpath":"a/b","y":{"z":9007199254740993}},{"type":"git","source":"git@h:r","skills":[]}],"x":1}`,
		},
		{"a local source may begin with -", Skills, `{"sources":[{"source":"-odd","type":"local"}]}`, `{"sources":[{"type":"local","source":"-odd"}]}`},
		{"nested as deep as may be", Skills, `{"sources":[],"x":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`, `{"sources":[],"x":` + strings.Repeat("[", 63) + strings.Repeat("]", 63) + `}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s := in(t, dir)
			put(t, s, c.kind, "e", " "+c.put+"\r\n")
			got := get(t, s, c.kind, "e")
			if got != c.want {
				t.Fatalf("read back\n %s\nwant\n %s", got, c.want)
			}
			before := read(t, fileOf(dir, c.kind))
			put(t, s, c.kind, "e", got)
			if after := read(t, fileOf(dir, c.kind)); after != before {
				t.Errorf("file after putting the entry that was read: got\n%s\nwant\n%s", after, before)
			}
			all, err := s.List(t.Context(), c.kind)
			if err != nil || len(all) != 1 || string(all["e"]) != c.want {
				t.Errorf("List: got %s, error %v, want %s", all, err, c.want)
			}
		})
	}
}

func TestPutRefusesInvalidEntries(t *testing.T) {
	const local, url = `{"type":"local","command":"c",`, `{"type":"remote","url":"http://h",`
	skill := func(s string) string { return `{"sources":[{"type":"git","source":"s"},` + s + `]}` }
	for _, c := range []struct {
		kind  Kind
		entry string
		want  string // how the error begins
	}{
		{MCP, ``, "an entry is not JSON: "},
		{MCP, `{"type":"local","command":"c"`, "an entry is not JSON: "},
		{MCP, `{"type":"local","command":"c"} {}`, "an entry is not JSON: "},
		{MCP, `{"type":"local","command":"c",}`, "an entry is not JSON: "},
		{MCP, "\ufeff" + `{"type":"local","command":"c"}`, "an entry is not JSON: "},
		{MCP, "{\"type\":\"local\",\"command\":\"\xff\"}", "an entry is not UTF-8"},
		{MCP, `[]`, "an entry is one JSON object"},
		{MCP, `"x"`, "an entry is one JSON object"},
		{MCP, `null`, "an entry is one JSON object"},
		{MCP, `{"type":"local","type":"local","command":"c"}`, `an entry has the key "type" twice`},
		{MCP, `{"type":"local","t\u0079pe":"local","command":"c"}`, `an entry has the key "t\u0079pe" twice`},
		{MCP, local + `"x":[{"a":1,"b":2,"a":3}]}`, `an entry has the key "a" twice`},
		{MCP, local + `"x":` + strings.Repeat("[", 64) + strings.Repeat("]", 64) + `}`, "an entry nested deeper than 64"},
		{MCP, local + `"x":` + strings.Repeat(`{"a":`, 50_000) + "1" + strings.Repeat("}", 50_000) + `}`, "an entry is not JSON: "},

		{MCP, `{}`, `type: "local" or "remote" is wanted`},
		{MCP, `{"command":"c"}`, `type: "local" or "remote" is wanted`},
		{MCP, `{"type":null,"command":"c"}`, `type: "local" or "remote" is wanted`},
		{MCP, `{"type":"ftp","command":"c"}`, `type: "local" or "remote" is wanted`},
		{MCP, `{"type":1}`, `type: "local" or "remote" is wanted`},

		{MCP, `{"type":"local"}`, "command: a string or an array of strings is wanted"},
		{MCP, `{"type":"local","command":null}`, "command: a string or an array of strings is wanted"},
		{MCP, `{"type":"local","command":7}`, "command: a string or an array of strings is wanted"},
		{MCP, `{"type":"local","command":""}`, "command: a string that is not empty is wanted"},
		{MCP, `{"type":"local","command":"a\u0000b"}`, "command: NUL cannot be passed on"},
		{MCP, `{"type":"local","command":"\ud800"}`, "command: half a surrogate pair is no character"},
		{MCP, `{"type":"local","command":"\ude00\ud83d"}`, "command: half a surrogate pair is no character"},
		{MCP, `{"type":"local","command":[]}`, "command: the first string names a program"},
		{MCP, `{"type":"local","command":["","x"]}`, "command: the first string names a program"},
		{MCP, `{"type":"local","command":["x",5]}`, "command[1]: a string is wanted"},
		{MCP, local + `"args":"x"}`, "args: an array is wanted"},
		{MCP, local + `"args":["x",null]}`, "args[1]: a string is wanted"},
		{MCP, local + `"env":["A=1"]}`, "env: an object of strings is wanted"},
		{MCP, local + `"env":{"A":1}}`, `env."A": a string is wanted`},
		{MCP, local + `"env":{"A":null}}`, `env."A": a string is wanted`},
		{MCP, local + `"env":{"A=B":"x"}}`, `env."A=B": the name of an environment variable is wanted`},
		{MCP, local + `"environment":{"":"x"}}`, `environment."": the name of an environment variable is wanted`},
		{MCP, local + `"env":{"A":"1"},"environment":{"A":"2"}}`, "environment: given as env too, and differently"},
		{MCP, local + `"timeout":1,"timeoutMs":2}`, "timeoutMs: given as timeout too, and differently"},
		{MCP, local + `"cwd":""}`, "cwd: a string that is not empty is wanted"},
		{MCP, local + `"enabled":"yes"}`, "enabled: true or false is wanted"},
		{MCP, local + `"disabled":"true"}`, "disabled: true or false is wanted"},
		{MCP, local + `"disabled":1}`, "disabled: true or false is wanted"},
		{MCP, local + `"enabled":true,"disabled":true}`, "disabled: given as enabled too, and differently"},
		{MCP, local + `"timeoutMs":-1}`, "timeoutMs: a whole number of milliseconds is wanted"},
		{MCP, local + `"timeoutMs":1.5}`, "timeoutMs: a whole number of milliseconds is wanted"},
		{MCP, local + `"timeoutMs":"5"}`, "timeoutMs: a whole number of milliseconds is wanted"},
		{MCP, local + `"timeoutMs":9223372036854775808}`, "timeoutMs: a whole number of milliseconds is wanted"},

		{MCP, `{"type":"http"}`, "url: an http or https URL is wanted"},
		{MCP, `{"type":"remote","url":""}`, "url: an http or https URL is wanted"},
		{MCP, `{"type":"remote","url":"ftp://h/"}`, "url: an http or https URL is wanted"},
		{MCP, `{"type":"remote","url":"file:///etc/passwd"}`, "url: an http or https URL is wanted"},
		{MCP, `{"type":"remote","url":"http://"}`, "url: an http or https URL is wanted"},
		{MCP, `{"type":"remote","url":"http://:80/"}`, "url: an http or https URL is wanted"},
		{MCP, `{"type":"remote","url":"//h/"}`, "url: an http or https URL is wanted"},
		{MCP, `{"type":"remote","url":"http://h/\n"}`, "url: an http or https URL is wanted"},
		{MCP, `{"type":"remote","url":["http://h"]}`, "url: a string is wanted"},
		{MCP, url + `"headers":{"A b":"1"}}`, `headers."A b": the name of a header is wanted`},
		{MCP, url + `"headers":{"A":"1\r\nB: 2"}}`, `headers."A": a header's value has no control characters`},
		{MCP, url + `"headers":{"A":1}}`, `headers."A": a string is wanted`},
		{MCP, url + `"headers":[]}`, "headers: an object of strings is wanted"},
		{MCP, url + `"envHeaders":{"A":""}}`, `envHeaders."A": the name of an environment variable is wanted`},
		{MCP, url + `"envHeaders":{"A":"X"},"envHttpHeaders":{}}`, "envHttpHeaders: given as envHeaders too, and differently"},
		{MCP, url + `"bearerTokenEnvVar":""}`, "bearerTokenEnvVar: the name of an environment variable is wanted"},
		{MCP, url + `"oauth":"x"}`, "oauth: an object, true or false is wanted"},
		{MCP, url + `"oauth":{"clientId":5}}`, "oauth.clientId: a string is wanted"},
		{MCP, url + `"oauth":{"scope":["a"]}}`, "oauth.scope: a string is wanted"},
		{MCP, url + `"transport":"stdio"}`, `transport: "http" or "sse" is wanted`},
		{MCP, `{"type":"sse","url":"http://h","transport":"http"}`, "transport: contradicts type"},

		{Skills, `{}`, "sources: an array of sources is wanted"},
		{Skills, `{"sources":null}`, "sources: an array of sources is wanted"},
		{Skills, `{"sources":{}}`, "sources: an array is wanted"},
		{Skills, `{"sources":["a/b"]}`, "sources[0]: an object is wanted"},
		{Skills, skill(`{"source":"s"}`), `sources[1].type: "github", "git" or "local" is wanted`},
		{Skills, skill(`{"type":"svn","source":"s"}`), `sources[1].type: "github" or "git" or "local" is wanted`},
		{Skills, skill(`{"type":"git"}`), "sources[1].source: a string is wanted"},
		{Skills, skill(`{"type":"local","source":""}`), "sources[1].source: a string that is not empty is wanted"},
		{Skills, skill(`{"type":"github","source":"--upload-pack=x"}`), "sources[1].source: a string is wanted that is not empty and does not begin with -"},
		{Skills, skill(`{"type":"git","source":"s","ref":"-x"}`), "sources[1].ref: a string is wanted that is not empty and does not begin with -"},
		{Skills, skill(`{"type":"git","source":"s","skills":"all"}`), "sources[1].skills: an array is wanted"},
		{Skills, skill(`{"type":"git","source":"s","skills":[""]}`), "sources[1].skills[0]: a string that is not empty is wanted"},
		{Skills, skill(`{"type":"git","source":"s","subpath":"a/../../b"}`), "sources[1].subpath: a path inside of the source is wanted"},
		{Skills, skill(`{"type":"git","source":"s","subpath":"..\\b"}`), "sources[1].subpath: a path inside of the source is wanted"},
		{Skills, skill(`{"type":"git","source":"s","subpath":"/etc"}`), "sources[1].subpath: a path inside of the source is wanted"},
		{Skills, skill(`{"type":"git","source":"s","subpath":"C:x"}`), "sources[1].subpath: a path inside of the source is wanted"},
	} {
		name := c.entry[:min(len(c.entry), 60)]
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := in(t, dir)
			err := s.Put(t.Context(), c.kind, "e", []byte(c.entry))
			if !errors.Is(err, ErrInvalid) || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("Put: got error %v, want one that begins with %s", err, c.want)
			}
			if left, _ := os.ReadDir(dir); len(left) > 0 {
				t.Errorf("directory after a refused entry: got %s, want nothing", left[0])
			}
			// The same entry in a file is a broken one.
			write(t, fileOf(dir, c.kind), `{"good":{"type":"local","command":"c","sources":[]},"e":`+c.entry+`}`)
			if _, err := s.Get(t.Context(), c.kind, "e"); !errors.Is(err, ErrBroken) {
				t.Errorf("in a file: %v, want ErrBroken", err)
			}
		})
	}
}

func TestPutAcceptsAnyPrintableName(t *testing.T) {
	s := in(t, t.TempDir())
	const entry = `{"sources":[]}`
	names := []string{"a", " ", "my server", "../../etc/passwd", "/", ".", `"\`, "__proto__", "né", "👩‍💻", "<&>", "\u2028", strings.Repeat("x", 256)}
	for _, name := range names {
		put(t, s, Skills, name, entry)
		if got := get(t, s, Skills, name); got != entry {
			t.Errorf("Get(%q): got %s, want %s", name, got, entry)
		}
	}
	all, err := s.List(t.Context(), Skills)
	if err != nil || len(all) != len(names) {
		t.Errorf("List: got %d names, error %v, want %d", len(all), err, len(names))
	}
	for _, name := range []string{"", "a\nb", "\x00", "\u0085", "\xff", strings.Repeat("x", 257)} {
		_, err := s.Get(t.Context(), Skills, name)
		for _, err := range []error{err, s.Put(t.Context(), Skills, name, []byte(entry)), s.Delete(t.Context(), Skills, name)} {
			if !errors.Is(err, ErrInvalid) {
				t.Errorf("%q: %v, want ErrInvalid", name, err)
			}
		}
	}
}

func TestFilesAreWrittenForPeople(t *testing.T) {
	dir := t.TempDir()
	s := in(t, dir)
	put(t, s, MCP, "b", `{"type":"stdio","command":"b","x":{"y":[1.0]}}`)
	put(t, s, MCP, "a", `{"type":"http","url":"http://h/?a=<b>"}`)
	const want = `{
  "a": {
    "type": "remote",
    "url": "http://h/?a=<b>",
    "transport": "http"
  },
  "b": {
    "type": "local",
    "command": "b",
    "args": [],
    "x": {
      "y": [
        1.0
      ]
    }
  }
}
`
	if got := read(t, fileOf(dir, MCP)); got != want {
		t.Errorf("mcp.json: got\n%s\nwant\n%s", got, want)
	}
	if _, err := os.Stat(fileOf(dir, Skills)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat of skills.json: got error %v, want fs.ErrNotExist", err)
	}
	if runtime.GOOS != "windows" {
		for name, mode := range map[string]fs.FileMode{".sandbox-agent": 0o700, ".sandbox-agent/config": 0o700, ".sandbox-agent/config/mcp.json": 0o600, ".sandbox-agent/config/.lock": 0o600} {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil || info.Mode().Perm() != mode {
				t.Errorf("%s: %v, %v; want %v", name, info.Mode(), err, mode)
			}
		}
	}
	for _, name := range []string{"a", "b", "b"} {
		if err := s.Delete(t.Context(), MCP, name); err != nil {
			t.Fatal(err)
		}
	}
	if got := read(t, fileOf(dir, MCP)); got != "{}\n" {
		t.Errorf("mcp.json after the last delete: got %q, want an empty object", got)
	}
	left, _ := os.ReadDir(filepath.Join(dir, ".sandbox-agent", "config"))
	if len(left) != 2 {
		t.Errorf("files left in the folder: got %v, want mcp.json and .lock", left)
	}
}

func TestCallsOnMissingFile(t *testing.T) {
	dir := t.TempDir()
	s := in(t, dir)
	if err := s.Delete(t.Context(), MCP, "a"); err != nil {
		t.Error(err)
	}
	if _, err := s.Get(t.Context(), MCP, "a"); !errors.Is(err, ErrNotFound) {
		t.Errorf("Get of a missing entry: got error %v, want ErrNotFound", err)
	}
	if all, err := s.List(t.Context(), MCP); err != nil || len(all) != 0 || all == nil {
		t.Errorf("List of nothing: got %v, error %v, want an empty map", all, err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("directory after reading and deleting nothing: got %s, want nothing", left[0])
	}
}

// An entry that nobody can use hinders no other, and what a change does not mean stays as it was written.
func TestBrokenEntryLeavesOthersUsable(t *testing.T) {
	dir := t.TempDir()
	s := in(t, dir)
	const odd = `{ "type" :"local",	"command":"c", "n":1.50e+3 }`
	const broken = `[ "no", { "a":1, "a" : 2 } ]`
	write(t, fileOf(dir, MCP), "\r\n{\"z\\u0061\":"+odd+" , \"bad\":\n"+broken+`,"m":{"type":"local","command":"m"}}`)

	if got := get(t, s, MCP, "za"); got != `{"type":"local","command":"c","args":[],"n":1.50e+3}` {
		t.Errorf("Get(za): got %s, want the canonical form", got)
	}
	if _, err := s.Get(t.Context(), MCP, "bad"); !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), `"bad"`) {
		t.Errorf("Get(bad): got error %v, want ErrBroken with the name", err)
	}
	all, err := s.List(t.Context(), MCP)
	if !errors.Is(err, ErrBroken) || !strings.Contains(err.Error(), `"bad"`) || len(all) != 2 {
		t.Errorf("List: got %s, error %v, want the 2 others and ErrBroken with the name", all, err)
	}
	put(t, s, MCP, "m", `{"type":"local","command":"new"}`)
	put(t, s, MCP, "n", `{"type":"local","command":"n"}`)
	if err := s.Delete(t.Context(), MCP, "n"); err != nil {
		t.Fatal(err)
	}
	want := "{\n  \"bad\": " + broken + ",\n  \"m\": {\n    \"type\": \"local\",\n    \"command\": \"new\",\n    \"args\": []\n  },\n  \"z\\u0061\": " + odd + "\n}\n"
	if got := read(t, fileOf(dir, MCP)); got != want {
		t.Errorf("mcp.json: got\n%s\nwant\n%s", got, want)
	}
	put(t, s, MCP, "bad", `{"type":"local","command":"mended"}`)
	if got := get(t, s, MCP, "bad"); got != `{"type":"local","command":"mended","args":[]}` {
		t.Errorf("Get of the mended entry: got %s, want the new entry", got)
	}
	write(t, fileOf(dir, MCP), `{"bad":5}`)
	if err := s.Delete(t.Context(), MCP, "bad"); err != nil {
		t.Errorf("Delete of a broken entry: got error %v, want none", err)
	}
	if got := read(t, fileOf(dir, MCP)); got != "{}\n" {
		t.Errorf("mcp.json: got %q, want an empty object", got)
	}
}

// A change that changes nothing does not touch the file, which editors and git watch.
func TestPutOfSameEntryWritesNothing(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	writes := 0
	s := Open(root, func(root *os.Root, name string, data []byte, mode fs.FileMode) error {
		writes++
		return files.Replace(root, name, data, mode)
	})
	put(t, s, MCP, "a", `{"type":"http","url":"http://h"}`)
	put(t, s, MCP, "a", `{"url":"http://h","transport":"http","type":"remote"}`)
	if writes != 1 {
		t.Errorf("%d writes, want 1", writes)
	}
}

// everyCall says of each call whether it fails with ErrBroken.
func everyCall(t *testing.T, s *Store) {
	t.Helper()
	_, listed := s.List(t.Context(), MCP)
	_, got := s.Get(t.Context(), MCP, "a")
	for call, err := range map[string]error{
		"list": listed, "get": got,
		"put":    s.Put(t.Context(), MCP, "a", []byte(`{"type":"local","command":"c"}`)),
		"delete": s.Delete(t.Context(), MCP, "a"),
	} {
		if !errors.Is(err, ErrBroken) {
			t.Errorf("%s: got error %v, want ErrBroken", call, err)
		}
		if err != nil && !strings.Contains(err.Error(), ".sandbox-agent/config") {
			t.Errorf("%s: got error %v, want one that names the file", call, err)
		}
	}
}

func TestBrokenFileIsLeftAlone(t *testing.T) {
	for name, content := range map[string]string{
		"empty":         "",
		"half":          `{"a":{"type":"local"`,
		"comments":      "{} // mine",
		"an array":      `[{"a":1}]`,
		"null":          "null",
		"two":           "{}{}",
		"a name twice":  `{"a":{"type":"local","command":"1"},"b":{},"\u0061":{"type":"local","command":"2"}}`,
		"not UTF-8":     "{\"a\xff\":{}}",
		"UTF-16":        "\xff\xfe{\x00}\x00",
		"a BOM":         "\ufeff{}",
		"a NUL":         "{}\x00",
		"a depth bomb":  `{"a":` + strings.Repeat("[", 1_000_000) + strings.Repeat("]", 1_000_000) + `}`,
		"too long":      `{"a":` + strings.Repeat(" ", maxFile) + `{}}`,
		"no end at all": `{"a":"` + strings.Repeat("x", 1000),
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, fileOf(dir, MCP), content)
			s := in(t, dir)
			everyCall(t, s)
			if got := read(t, fileOf(dir, MCP)); got != content {
				t.Errorf("broken file after the calls: got %.100q, want it unchanged", got)
			}
			put(t, s, Skills, "a", `{"sources":[]}`) // the other file is another matter
		})
	}
}

// A file of 10 GiB is not read. It has no content on disk, and would have in memory.
func TestHugeFileIsNotRead(t *testing.T) {
	dir := t.TempDir()
	write(t, fileOf(dir, MCP), "")
	if err := os.Truncate(fileOf(dir, MCP), 10<<30); err != nil {
		t.Skip(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	everyCall(t, in(t, dir))
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 128<<20 {
		t.Errorf("memory for a huge file: got %d MiB, want 128 at most", grown>>20)
	}
}

// A file of nothing but commas, or of names, stays near its size.
func TestDenseFileCostsLittle(t *testing.T) {
	for name, content := range map[string]string{
		"elements": `{"a":{"type":"local","command":"c","args":[` + strings.Repeat("0,", maxFile/2-100) + `0]}}`,
		"levels":   `{"a":` + strings.Repeat("[", 60) + strings.Repeat("0,", maxFile/2-100) + "0" + strings.Repeat("]", 60) + `}`,
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, fileOf(dir, MCP), content)
			s := in(t, dir)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := s.Get(t.Context(), MCP, "a")
			runtime.ReadMemStats(&after)
			if !errors.Is(err, ErrBroken) {
				t.Error(err)
			}
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 64<<20 {
				t.Errorf("memory for a file of %[2]d MiB: got %[1]d MiB, want 64 at most", grown>>20, len(content)>>20)
			}
		})
	}
}

func TestPutRefusesTooLargeEntry(t *testing.T) {
	dir := t.TempDir()
	s := in(t, dir)
	entry := func(size int) []byte {
		const frame = `{"type":"local","command":""}`
		return []byte(strings.Replace(frame, `""`, `"`+strings.Repeat("x", size-len(frame))+`"`, 1))
	}
	if err := s.Put(t.Context(), MCP, "a", entry(MaxEntry+1)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("Put of an entry over the limit: got error %v, want ErrTooLarge", err)
	}
	var err error
	n := 0
	for ; err == nil && n < 8; n++ {
		err = s.Put(t.Context(), MCP, strconv.Itoa(n), entry(MaxEntry))
	}
	if !errors.Is(err, ErrTooLarge) || n != 4 {
		t.Errorf("Put %d of the largest entries: got error %v, want ErrTooLarge at the fourth", n, err)
	}
	// What was refused has changed nothing, and there is room to delete.
	if all, err := s.List(t.Context(), MCP); err != nil || len(all) != 3 {
		t.Errorf("List after the refusal: got %d entries, error %v, want 3", len(all), err)
	}
	if err := s.Delete(t.Context(), MCP, "0"); err != nil {
		t.Error(err)
	}
}

// What is in the place of our folder or files leads nowhere.
func TestLinksOutsideAreNotFollowed(t *testing.T) {
	for _, place := range []string{".sandbox-agent", ".sandbox-agent/config", ".sandbox-agent/config/mcp.json", ".sandbox-agent/config/.lock"} {
		for _, relative := range []bool{false, true} {
			t.Run(fmt.Sprint(place, " ", relative), func(t *testing.T) {
				top := t.TempDir()
				dir, outside := filepath.Join(top, "in"), filepath.Join(top, "out")
				const secret = `{"a":{"type":"local","command":"secret"}}`
				for _, name := range []string{"mcp.json", "config/mcp.json"} {
					write(t, filepath.Join(outside, name), secret)
				}
				target := outside
				if strings.HasSuffix(place, "json") || strings.HasSuffix(place, "lock") {
					target = filepath.Join(outside, "mcp.json")
				}
				link := filepath.Join(dir, filepath.FromSlash(place))
				if err := os.MkdirAll(filepath.Dir(link), 0o700); err != nil {
					t.Fatal(err)
				}
				if relative {
					target, _ = filepath.Rel(filepath.Dir(link), target)
				}
				if err := os.Symlink(target, link); err != nil {
					t.Skip(err)
				}
				s := in(t, dir)
				if place == ".sandbox-agent/config/.lock" {
					if err := s.Put(t.Context(), MCP, "a", []byte(`{"type":"local","command":"c"}`)); !errors.Is(err, ErrBroken) {
						t.Errorf("Put: got error %v, want ErrBroken", err)
					}
				} else {
					everyCall(t, s)
				}
				for _, name := range []string{"mcp.json", "config/mcp.json"} {
					if got := read(t, filepath.Join(outside, name)); got != secret {
						t.Errorf("%s outside: got %q, want %q", name, got, secret)
					}
				}
				left, err := filepath.Glob(filepath.Join(outside, "*"))
				if err != nil || len(left) != 2 {
					t.Errorf("files outside: got %v, error %v, want 2", left, err)
				}
			})
		}
	}
}

func TestEntriesOfWrongKindAreBroken(t *testing.T) {
	t.Run("for a file", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.MkdirAll(fileOf(dir, MCP), 0o700); err != nil {
			t.Fatal(err)
		}
		everyCall(t, in(t, dir))
	})
	for _, place := range []string{".sandbox-agent", ".sandbox-agent/config"} {
		t.Run("a file for "+place, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, filepath.FromSlash(place)), "mine")
			everyCall(t, in(t, dir))
			if got := read(t, filepath.Join(dir, filepath.FromSlash(place))); got != "mine" {
				t.Errorf("%s after the calls: got %q, want mine", place, got)
			}
		})
	}
}

// A write that fails leaves the old file, and the lock free.
func TestFailedWriteKeepsOldEntry(t *testing.T) {
	dir := t.TempDir()
	s := in(t, dir)
	put(t, s, MCP, "a", `{"type":"local","command":"old"}`)
	full := errors.New("disk full")
	failing := Open(s.dir, func(*os.Root, string, []byte, fs.FileMode) error { return full })
	if err := failing.Put(t.Context(), MCP, "a", []byte(`{"type":"local","command":"new"}`)); !errors.Is(err, full) {
		t.Errorf("Put with a failing write: got error %v, want %v", err, full)
	}
	if got := get(t, s, MCP, "a"); !strings.Contains(got, "old") {
		t.Errorf("Get after the failed write: got %s, want the old entry", got)
	}
	put(t, s, MCP, "a", `{"type":"local","command":"new"}`)
}

// Somebody who keeps the lock for ever costs a caller some seconds, and no more.
func TestPutGivesUpOnHeldLock(t *testing.T) {
	dir := t.TempDir()
	s := in(t, dir)
	put(t, s, MCP, "a", `{"type":"local","command":"old"}`)
	held, err := tryLock(s.dir, path.Join(folder, lockName))
	if held == nil || err != nil {
		t.Fatalf("tryLock: got %v, error %v, want the lock", held, err)
	}
	defer held.Close()
	synctest.Test(t, func(t *testing.T) {
		for name, change := range map[string]func() error{
			"put":    func() error { return s.Put(t.Context(), MCP, "a", []byte(`{"type":"local","command":"new"}`)) },
			"delete": func() error { return s.Delete(t.Context(), MCP, "a") },
		} {
			start := time.Now()
			if err := change(); !errors.Is(err, ErrBusy) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: got error %v, want ErrBusy", name, err)
			}
			if took := time.Since(start); took != patience {
				t.Errorf("%s: got %v until the error, want %v", name, took, patience)
			}
		}
		if got := get(t, s, MCP, "a"); !strings.Contains(got, "old") {
			t.Errorf("Get beside a held lock: got %s, want the old entry", got)
		}
	})
}

func TestWaitForLockEndsWithContext(t *testing.T) {
	dir := t.TempDir()
	s := in(t, dir)
	put(t, s, MCP, "a", `{"type":"local","command":"c"}`)
	held, err := takeLock(t.Context(), s.dir, path.Join(folder, lockName))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Put(ctx, MCP, "b", []byte(`{"type":"local","command":"c"}`)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Put beside a holder: got error %v, want context.DeadlineExceeded", err)
	}
	if got := get(t, s, MCP, "a"); got == "" {
		t.Error("reading waits for the lock")
	}
	done := make(chan error)
	go func() { done <- s.Put(t.Context(), MCP, "b", []byte(`{"type":"local","command":"c"}`)) }()
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("Put after the holder: got error %v, want none", err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	_, listed := s.List(ended, MCP)
	for call, err := range map[string]error{
		"list": listed, "put": s.Put(ended, MCP, "c", []byte(`{"type":"local","command":"c"}`)), "delete": s.Delete(ended, MCP, "a"),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a context that has ended: got error %v, want context.Canceled", call, err)
		}
	}
}

// self starts the test program in a role.
func self(t *testing.T, role ...string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), roleVariable+"="+strings.Join(role, "\n"))
	cmd.Stderr = os.Stderr
	return cmd
}

func TestManyWritersLoseNoEntry(t *testing.T) {
	dir := t.TempDir()
	const processes, goroutines, puts = 4, 2, 50
	var wg sync.WaitGroup
	for n := range processes {
		cmd := self(t, "put", dir, "process"+strconv.Itoa(n), strconv.Itoa(puts))
		wg.Go(func() {
			if err := cmd.Run(); err != nil {
				t.Error(err)
			}
		})
	}
	for n := range goroutines {
		wg.Go(func() {
			if err := putMany(dir, "goroutine"+strconv.Itoa(n), puts); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	all, err := in(t, dir).List(t.Context(), MCP)
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != (processes+goroutines)*puts {
		t.Errorf("List after many writers: got %d entries, want %d", len(all), (processes+goroutines)*puts)
	}
	for name, entry := range all {
		if want := fmt.Sprintf(`{"type":"local","command":%q,"args":[]}`, name); string(entry) != want {
			t.Errorf("List after many writers: got %s for %s, want %s", entry, name, want)
		}
	}
	var order map[string]json.RawMessage
	data := read(t, fileOf(dir, MCP))
	if err := json.Unmarshal([]byte(data), &order); err != nil {
		t.Fatal(err)
	}
	var names []string
	for line := range strings.Lines(data) {
		if name, found := strings.CutPrefix(line, `  "`); found {
			names = append(names, name)
		}
	}
	if !slices.IsSorted(names) {
		t.Error("the names are not sorted")
	}
}

// A writer that is killed leaves the old file or the new one, and nobody has to wait for it.
func TestKilledWriterLeavesWholeFileAndFreeLock(t *testing.T) {
	dir := t.TempDir()
	s := in(t, dir)
	for round := range 10 {
		cmd := self(t, "forever", dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for range round + 1 { // so that each round is killed somewhere else
			if !lines.Scan() {
				t.Fatal("the writer ended")
			}
		}
		said, _ := strconv.Atoi(lines.Text())
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		var entry struct {
			Command string
			Args    []string
		}
		if err := json.Unmarshal([]byte(get(t, s, MCP, "entry")), &entry); err != nil {
			t.Fatal(err)
		}
		n, err := strconv.Atoi(strings.TrimPrefix(entry.Command, "n"))
		if err != nil || n < said || len(entry.Args[0]) != n%7*40_000 {
			t.Errorf("entry after the kill: got %s with %d bytes, want at least n%d and its bytes", entry.Command, len(entry.Args[0]), said)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		if err := s.Put(ctx, MCP, "after", fmt.Appendf(nil, `{"type":"local","command":"%d"}`, round)); err != nil {
			t.Errorf("Put after the kill: got error %v, want none", err)
		}
		cancel()
	}
}
