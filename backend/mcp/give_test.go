package mcp_test

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"deskhand/backend/config"
	"deskhand/backend/mcp"
)

func everything() []string { return []string{mcp.Stdio, mcp.HTTP, mcp.SSE} }

// program makes a file that the system would start.
func program(t *testing.T, path string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		path += ".cmd"
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("x"), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestWhatAgentsAreGiven(t *testing.T) {
	work, bin := t.TempDir(), t.TempDir()
	tool, here := program(t, filepath.Join(bin, "tool")), program(t, filepath.Join(work, "run"))
	program(t, filepath.Join(work, "tools", "local-only"))
	t.Chdir(work)
	target := mcp.Target{Transports: everything(), Directory: work, Lookup: mcp.Lookup([]string{
		"PATH=tools" + string(os.PathListSeparator) + bin, "TOKEN=tok\n", "TEAM=blue", "BAD=a\nb", "EMPTY=",
	})}
	quoted := func(s string) string { return asJSON(t, s) }
	for name, tc := range map[string]struct {
		entry string
		want  string
		skip  string
	}{
		"on PATH": {
			`{"type":"local","command":"tool","args":["-x","a b"],"env":{"B":"2","A":"1"}}`,
			`{"name":"srv","command":` + quoted(tool) + `,"args":["-x","a b"],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"}]}`, "",
		},
		"of the directory": {`{"type":"local","command":"./run","args":[]}`, `{"name":"srv","command":` + quoted(here) + `,"args":[],"env":[]}`, ""},
		"as a list":        {`{"type":"local","command":["tool","a"],"args":["b"]}`, `{"name":"srv","command":` + quoted(tool) + `,"args":["a","b"],"env":[]}`, ""},
		"cwd that is the session's": {
			`{"type":"local","command":"tool","args":[],"cwd":"."}`, `{"name":"srv","command":` + quoted(tool) + `,"args":[],"env":[]}`, "",
		},
		"no program":                {`{"type":"local","command":"nothing-like-it","args":[]}`, "", "its program nothing-like-it was not found"},
		"a text is one program":     {`{"type":"local","command":"tool -x","args":[]}`, "", `its program "tool -x" was not found`},
		"not by a relative PATH":    {`{"type":"local","command":"local-only","args":[]}`, "", "its program local-only was not found"},
		"another spelling is other": {`{"type":"local","command":"tool","args":[],"Command":"evil"}`, `{"name":"srv","command":` + quoted(tool) + `,"args":[],"env":[]}`, ""},
		"http": {
			`{"type":"remote","url":"https://h/mcp","headers":{"X-A":"1","authorization":"old"},"bearerTokenEnvVar":"TOKEN","envHeaders":{"X-Team":"TEAM"}}`,
			`{"type":"http","name":"srv","url":"https://h/mcp","headers":[{"name":"X-A","value":"1"},{"name":"X-Team","value":"blue"},{"name":"Authorization","value":"Bearer tok"}]}`, "",
		},
		"sse": {`{"type":"remote","url":"https://h/mcp","transport":"sse"}`, `{"type":"sse","name":"srv","url":"https://h/mcp","headers":[]}`, ""},
		"user in the URL": {
			`{"type":"remote","url":"https://me:pa%20ss@h/mcp?a=1"}`,
			`{"type":"http","name":"srv","url":"https://h/mcp?a=1","headers":[{"name":"Authorization","value":"Basic bWU6cGEgc3M="}]}`, "",
		},
		"no variable":         {`{"type":"remote","url":"https://h","bearerTokenEnvVar":"NONE"}`, "", "the environment variable NONE is not set"},
		"empty variable":      {`{"type":"remote","url":"https://h","envHeaders":{"X":"EMPTY"}}`, "", "the environment variable EMPTY is not set"},
		"variable with lines": {`{"type":"remote","url":"https://h","envHeaders":{"X":"BAD"}}`, "", "the environment variable BAD cannot be part of a header"},
		"oauth":               {`{"type":"remote","url":"https://h","oauth":{"clientId":"c"}}`, `{"type":"http","name":"srv","url":"https://h","headers":[]}`, "oauth"},
	} {
		t.Run(name, func(t *testing.T) {
			raw, skip := parse(t, tc.entry).For(target)
			if string(raw) != tc.want {
				t.Errorf("\n got %s\nwant %s", raw, tc.want)
			}
			if tc.skip == "" && skip != nil || tc.skip != "" && (skip == nil || !strings.Contains(skip.Reason, tc.skip) || skip.Partly != (raw != nil)) {
				t.Errorf("skip %v, want %q", skip, tc.skip)
			}
		})
	}
}

func TestTransportsThatAnAgentDoesNotTake(t *testing.T) {
	tool := self(t)
	target := mcp.Target{Directory: t.TempDir(), Lookup: mcp.Lookup(nil)}
	for entry, transport := range map[string]string{
		`{"type":"local","command":` + asJSON(t, tool) + `,"args":[]}`: mcp.Stdio,
		`{"type":"remote","url":"https://h"}`:                          mcp.HTTP,
		`{"type":"remote","url":"https://h","transport":"sse"}`:        mcp.SSE,
	} {
		for _, taken := range append([]string{""}, everything()...) {
			target.Transports = []string{taken}
			raw, skip := parse(t, entry).For(target)
			if given := raw != nil; given != (taken == transport) || given == (skip != nil) {
				t.Errorf("%s for an agent that takes %q: %s, %v", entry, taken, raw, skip)
			}
		}
	}
}

func TestAnotherDirectoryIsReachedByArguments(t *testing.T) {
	work := t.TempDir()
	program(t, filepath.Join(work, "sub", "run"))
	s := parse(t, `{"type":"local","command":"./run","args":["$(touch gone)","; exit"],"cwd":"sub"}`)
	raw, skip := s.For(mcp.Target{Transports: everything(), Directory: work, Lookup: mcp.Lookup(nil)})
	if runtime.GOOS == "windows" {
		if raw != nil || skip == nil {
			t.Errorf("For: got %s, %v, want a skip", raw, skip)
		}
		return
	}
	var got struct {
		Command string
		Args    []string
	}
	if err := json.Unmarshal(raw, &got); err != nil || skip != nil {
		t.Fatalf("For: got %v, skip %v, want neither", err, skip)
	}
	want := []string{"-c", `cd -- "$1" && shift && exec "$@"`, "sh", filepath.Join(work, "sub"), filepath.Join(work, "sub", "run"), "$(touch gone)", "; exit"}
	if got.Command != "/bin/sh" || strings.Join(got.Args, "|") != strings.Join(want, "|") {
		t.Errorf("For: got %+v, want /bin/sh %q", got, want)
	}
}

func review(t *testing.T, dir, entry string) mcp.Review {
	t.Helper()
	form, err := config.Canonical(config.MCP, []byte(entry))
	if err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	return parse(t, string(form)).Review(root, dir, nil)
}

func TestOneHashForEachContent(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("server.js", "1")
	write("data.db", "1")
	const entry = `{"type":"local","command":"node","args":["server.js","--db","data.db"],"env":{"KEY":"a"}}`
	first := review(t, dir, entry)
	if again := review(t, dir, strings.Replace(entry, `"local"`, `"local","enabled":false`, 1)); again != first {
		t.Error("switching it off makes another of it")
	}
	write("data.db", "2")
	if review(t, dir, entry) != first {
		t.Error("a file that is no program counts")
	}
	seen := map[string]string{first.Hash: "first"}
	differs := func(what, entry string) {
		t.Helper()
		r := review(t, dir, entry)
		if was := seen[r.Hash]; was != "" {
			t.Errorf("%s has the hash of %s", what, was)
		}
		seen[r.Hash] = what
	}
	differs("another value", strings.Replace(entry, `"a"`, `"b"`, 1))
	differs("another argument", strings.Replace(entry, `"--db"`, `"--db2"`, 1))
	differs("an unknown field", strings.Replace(entry, `"env"`, `"more":1,"env"`, 1))
	write("server.js", "2")
	differs("another script", entry)
	if err := os.Remove(filepath.Join(dir, "server.js")); err != nil {
		t.Fatal(err)
	}
	differs("no script", entry)
}

func TestWhatPeopleAreShown(t *testing.T) {
	dir := t.TempDir()
	program(t, filepath.Join(dir, "run"))
	got := review(t, dir, `{"type":"local","command":["./run","--api-key","k1","--token=k2","https://me:k3@h/?q=k4","safe\u202eevil\n\u001b[2J"],
		"env":{"KEY":"k5","NODE_OPTIONS":"--require ./evil.js"},"cwd":"sub"}`).Detail
	for _, secret := range []string{"k1", "k2", "k3", "k4", "k5", "\u202e", "\x1b"} {
		if strings.Contains(got, secret) {
			t.Errorf("%q is shown: %s", secret, got)
		}
	}
	for _, wanted := range []string{"./run", "--api-key ••••", "--token=••••", "https://••••@h/?q=••••", `\u202e`, "KEY", "NODE_OPTIONS=\"--require ./evil.js\"", "in: sub"} {
		if !strings.Contains(got, wanted) {
			t.Errorf("%q is not shown: %s", wanted, got)
		}
	}
	got = review(t, dir, `{"type":"remote","url":"https://h/mcp?key=k1","headers":{"X-Key":"k2"},"envHeaders":{"X-B":"GITHUB_TOKEN"},"bearerTokenEnvVar":"OTHER"}`).Detail
	if want := "https://h/mcp?key=•••• (http)\nheaders: X-Key\nsends the variables: GITHUB_TOKEN OTHER"; got != want {
		t.Errorf("Review: got %q, want %q", got, want)
	}
}

// A hostile file cannot harm the review: a FIFO blocks nothing, and no file outside is read.
func TestReviewOfAHostileDirectory(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "x.js"), []byte("1"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "x.js"), filepath.Join(dir, "link.js")); err != nil {
		t.Skip(err)
	}
	fifo(t, filepath.Join(dir, "pipe.js"))
	before := review(t, dir, `{"type":"local","command":"node","args":["link.js","pipe.js","../x.js","/etc/passwd"]}`)
	if strings.Contains(before.Detail, "runs:") {
		t.Errorf("Review: got %s, want no file to run", before.Detail)
	}
}

func TestWhatIsTakenOutOfAnAnswer(t *testing.T) {
	lookup := mcp.Lookup([]string{"TOKEN=of-a-variable", "TEAM=blue"})
	remote := parse(t, `{"type":"remote","url":"https://user-name:pass-word@h/?key=in-the-query&n=1","headers":{"A":"of-a-header","B":"x"},"bearerTokenEnvVar":"TOKEN","envHeaders":{"C":"TEAM"}}`)
	if got := strings.Join(remote.Secrets(lookup), " "); got != "of-a-variable in-the-query of-a-header pass-word user-name" {
		t.Errorf("Secrets of remote: got %s, want five values", got)
	}
	local := parse(t, `{"type":"local","command":"c","args":[],"env":{"KEY":"of-the-env","PATH":"/usr/bin","N":"1"}}`)
	if got := strings.Join(local.Secrets(lookup), " "); got != "of-the-env" {
		t.Errorf("Secrets of local: got %s, want of-the-env", got)
	}
}

func TestSecretsAreHiddenAndComeBack(t *testing.T) {
	const stored = `{"type":"remote","url":"https://me:pass@h/mcp","headers":{"A":"1","E":""},"oauth":{"clientId":"c","clientSecret":"s"},"more":{"z":1,"a":2}}`
	masked := string(mcp.Mask(json.RawMessage(stored)))
	const want = `{"type":"remote","url":"https://me:%E2%80%A2%E2%80%A2%E2%80%A2%E2%80%A2@h/mcp","headers":{"A":"••••","E":""},"oauth":{"clientId":"c","clientSecret":"••••"},"more":{"z":1,"a":2}}`
	if masked != want {
		t.Errorf("\n got %s\nwant %s", masked, want)
	}
	form, err := config.Canonical(config.MCP, []byte(masked)) // in the form that comes back
	if err != nil {
		t.Fatal(err)
	}
	back, err := mcp.Unmask(form, json.RawMessage(stored))
	if err != nil || string(back) != stored {
		t.Errorf("Unmask: got %s, %v, want the stored entry", back, err)
	}
	changed := strings.Replace(masked, `"A":"••••"`, `"A":"2","N":"3"`, 1)
	if back, err := mcp.Unmask(json.RawMessage(changed), json.RawMessage(stored)); err != nil || !strings.Contains(string(back), `{"A":"2","N":"3","E":""}`) {
		t.Errorf("Unmask: got %s, %v, want the changed headers", back, err)
	}
	for what, entry := range map[string]string{
		"another host":    strings.Replace(masked, "@h/", "@evil/", 1),
		"another name":    strings.Replace(masked, `"A"`, `"B"`, 1),
		"nothing is left": strings.Replace(masked, `"clientSecret"`, `"other":1,"clientSecret"`, 1),
	} {
		old := json.RawMessage(stored)
		if what == "nothing is left" {
			old = nil
		}
		if back, err := mcp.Unmask(json.RawMessage(entry), old); !errors.Is(err, mcp.ErrHidden) {
			t.Errorf("Unmask with %s: got %s, %v, want %v", what, back, err, mcp.ErrHidden)
		}
	}
	const local = `{"type":"local","command":"c","args":[],"env":{"K":"v"}}`
	if masked := mcp.Mask(json.RawMessage(local)); strings.Contains(string(masked), `"v"`) {
		t.Errorf("Mask: got %s, want no value of env", masked)
	}
}
