package agents_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"deskhand/backend/agents"
	"deskhand/backend/store"
)

// openFile returns a catalogue with a writable agents.json.
func openFile(t *testing.T, text string) (c *agents.Catalogue, file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "config", "agents.json")
	if text != "" {
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o640); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c = agents.Open(agents.Config{Self: self, File: file, WriteFile: store.WriteFile, Environ: []string{"PATH=/nowhere"}})
	t.Cleanup(func() { closing(t, c) })
	return c, file
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func TestDefinitionsAreWritten(t *testing.T) {
	mine := agents.Definition{ID: "mine", Command: "/bin/sh", Args: []string{"-c", "a && b <x>"}, Env: map[string]string{"KEY": "secret"}}
	const written = `{
      "id": "mine",
      "command": "/bin/sh",
      "args": [
        "-c",
        "a && b <x>"
      ],
      "env": {
        "KEY": "secret"
      }
    }`
	for name, tc := range map[string]struct{ before, after string }{
		"no file":       {"", "{\n  \"agents\": [\n    " + written + "\n  ]\n}\n"},
		"no agents":     {"{\"more\": [1,  2]}\n", "{\n  \"agents\": [\n    " + written + "\n  ],\"more\": [1,  2]}\n"},
		"an empty file": {"{}", "{\n  \"agents\": [\n    " + written + "\n  ]\n}"},
		"an empty list": {"{\"agents\":[ ]}", "{\"agents\":[\n    " + written + "\n  ]}"},
		"null":          {"{\"agents\": null, \"x\":1}", "{\"agents\": [\n    " + written + "\n  ], \"x\":1}"},
		"behind another": {
			"\xef\xbb\xbf{\"agents\": [\n    {\"id\":  \"other\", \"command\":\"x\", \"own\": {\"b\":1,\"a\":2}}\n], \"last\": 1.0}",
			"\xef\xbb\xbf{\"agents\": [\n    {\"id\":  \"other\", \"command\":\"x\", \"own\": {\"b\":1,\"a\":2}},\n    " + written + "\n], \"last\": 1.0}",
		},
		"in place of itself": {
			"{\"agents\": [\n    {\"ID\": \"mine\", \"name\": \"Old\", \"cwd\": \"/old\", \"env\": {\"KEY\": \"secret\", \"GONE\": \"1\"}, \"own\": [1.50]},\n {\"id\":\"z\",  \"command\":\"z\"}]}",
			"{\"agents\": [\n    " + strings.Replace(written, "\n    }", ",\n      \"own\": [\n        1.50\n      ]\n    }", 1) + ",\n {\"id\":\"z\",  \"command\":\"z\"}]}",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, file := openFile(t, tc.before)
			heard := news(c)
			d := mine
			if strings.Contains(tc.before, "secret") {
				d.Env = map[string]string{"KEY": agents.Masked}
			}
			if err := c.Definitions().Define(d); err != nil {
				t.Fatal(err)
			}
			want := tc.after
			if got := read(t, file); got != want {
				t.Errorf("%s\nwant\n%s", got, want)
			}
			if a := get(t, c, "mine"); a.State != agents.Ready || !a.Editable || a.Source != agents.Custom {
				t.Errorf("mine: got %+v, want ready, editable, custom", a)
			}
			if n := <-heard; n.Agent != "mine" || !n.Aside {
				t.Errorf("news: got %+v, want mine, aside", n)
			}
			if info, err := os.Stat(file); err != nil || tc.before != "" && info.Mode().Perm() != 0o640 || tc.before == "" && info.Mode().Perm() != 0o600 {
				t.Errorf("agents.json: got mode %v, %v, want the mode before or 0600", info.Mode(), err)
			}
			got, err := c.Definitions().Find("mine")
			if err != nil || got.Env["KEY"] != agents.Masked || got.Command != "/bin/sh" || len(got.Args) != 2 {
				t.Errorf("Definition(mine): got %+v, %v, want /bin/sh with a masked KEY", got, err)
			}
			if cmd, err := c.Command(t.Context(), "mine", "/"); err != nil || cmd.Env[len(cmd.Env)-1] != "KEY=secret" {
				t.Errorf("Command(mine): got %+v, %v, want KEY=secret last", cmd, err)
			}
		})
	}
}

func TestDefinitionsAreTakenOut(t *testing.T) {
	t.Parallel()
	const a, b, c3 = `{"id":"a","command":"x"}`, `{"id":"b","command":"x"}`, `{"id":"c","command":"x"}`
	for id, want := range map[string]string{
		"a": "{\"agents\": [" + b + " ,\n  " + c3 + " ], \"x\": 1}",
		"b": "{\"agents\": [ " + a + ",\n  " + c3 + " ], \"x\": 1}",
		"c": "{\"agents\": [ " + a + ", " + b + " ], \"x\": 1}",
	} {
		c, file := openFile(t, "{\"agents\": [ "+a+", "+b+" ,\n  "+c3+" ], \"x\": 1}")
		if err := c.Definitions().Undefine(id); err != nil {
			t.Fatal(err)
		}
		if got := read(t, file); got != want && !equalJSON(t, got, want) {
			t.Errorf("%s: %s\nwant %s", id, got, want)
		}
		if c.Known(id) {
			t.Errorf("Known(%s): got true, want false", id)
		}
		if err := c.Definitions().Undefine(id); !errors.Is(err, agents.ErrNoDefinition) {
			t.Errorf("Undefine(%s) once more: got %v, want ErrNoDefinition", id, err)
		}
	}
	c, file := openFile(t, "{\"agents\": [ "+a+" ]}")
	if err := c.Definitions().Undefine("a"); err != nil || read(t, file) != "{\"agents\": []}" {
		t.Errorf("Undefine: got %v, file %s, want an empty list", err, read(t, file))
	}
}

func TestDefinitionsThatAreRefused(t *testing.T) {
	t.Parallel()
	const before = `{"agents": [{"id":"mine","command":"/bin/sh","env":{"KEY":"secret"}}]}`
	c, file := openFile(t, before)
	for name, d := range map[string]agents.Definition{
		"no command":   {ID: "x"},
		"relative":     {ID: "x", Command: "./x"},
		"bad id":       {ID: "../x", Command: "x"},
		"no id":        {Command: "x"},
		"the demo":     {ID: "mock", Command: "x", Override: true},
		"known":        {ID: "claude", Command: "x"},
		"bad variable": {ID: "x", Command: "x", Env: map[string]string{"A=B": "1"}},
		"masked":       {ID: "mine", Command: "x", Env: map[string]string{"OTHER": agents.Masked}},
		"masked anew":  {ID: "x", Command: "x", Env: map[string]string{"KEY": agents.Masked}},
		"cwd":          {ID: "x", Command: "x", Cwd: "here"},
	} {
		if err := c.Definitions().Define(d); !errors.Is(err, agents.ErrDefinition) {
			t.Errorf("%s: Define: got %v, want %v", name, err, agents.ErrDefinition)
		}
	}
	if got := read(t, file); got != before {
		t.Errorf("file: got %s, want it as before: %s", got, before)
	}
	if err := c.Definitions().Define(agents.Definition{ID: "claude", Command: "/bin/sh", Override: true}); err != nil {
		t.Error(err)
	}
	if a := get(t, c, "claude"); a.Source != agents.Custom || !a.Editable {
		t.Errorf("claude: got %+v, want custom and editable", a)
	}
	if err := c.Definitions().Undefine("claude"); err != nil || get(t, c, "claude").Source != agents.OnPath {
		t.Errorf("Undefine(claude): got %v, %+v, want the agent on PATH", err, get(t, c, "claude"))
	}
}

func TestDefinitionsLeaveBrokenFile(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{", "[]", "null", `{"agents": {}}`, `{"agents": 1}`, "{\"agents\":[\n{\"id\": }]}", `{"agents":[{"id":"a"},{"id":"a"}]}`, `{"agents":[],"agents":[]}`, `{"agents":[1]}`} {
		c, file := openFile(t, text+" ")
		for what, err := range map[string]error{
			"define": c.Definitions().Define(agents.Definition{ID: "a", Command: "x"}), "undefine": c.Definitions().Undefine("a"),
		} {
			if !errors.Is(err, agents.ErrFile) {
				t.Errorf("%s of %q: got %v, want ErrFile", what, text, err)
			}
		}
		if got := read(t, file); got != text+" " {
			t.Errorf("file: got %q, want %q", got, text+" ")
		}
	}
	c, _ := openFile(t, "{\"agents\":[\n{\"id\": }]}")
	if _, err := c.Definitions().Find("a"); !errors.Is(err, agents.ErrFile) || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("Definition: got %v, want ErrFile in line 2", err)
	}
}

// TestDefinitionsAreWrittenThroughLink: people keep their settings elsewhere and link to them.
func TestDefinitionsAreWrittenThroughLink(t *testing.T) {
	t.Parallel()
	c, file := openFile(t, `{"agents": []}`)
	real := filepath.Join(t.TempDir(), "real.json")
	if err := os.Rename(file, real); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(real, file); err != nil {
		t.Skip("links are needed: ", err)
	}
	if err := c.Definitions().Define(agents.Definition{ID: "mine", Command: "/bin/sh"}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(file); err != nil || info.Mode()&os.ModeSymlink == 0 || !strings.Contains(read(t, real), "mine") {
		t.Errorf("got mode %v, %v, content %s, want a link and mine", info.Mode(), err, read(t, real))
	}
}

func TestDefinitionOfAgent(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", t.TempDir())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c, file := openFile(t, `{"agents": [{"id":"mine","command":"/nowhere","env":{"`+roleVariable+`":"agent:plain:`+dir+`"}}]}`)
	before := read(t, file)
	r, err := c.TestDefinition(t.Context(), agents.Definition{ID: "mine", Command: self, Env: map[string]string{roleVariable: agents.Masked}})
	if err != nil || !r.Healthy() || r.Agent.Path != self {
		t.Errorf("TestDefinition(mine): got %+v, %v, want healthy at %s", r, err, self)
	}
	r, err = c.TestDefinition(t.Context(), agents.Definition{Command: self, Env: map[string]string{roleVariable: "agent:stillborn:" + dir}})
	if err != nil || r.Healthy() || !strings.Contains(r.Stderr, "no licence found") {
		t.Errorf("TestDefinition(stillborn): got %+v, %v, want the stderr", r, err)
	}
	r, err = c.TestDefinition(t.Context(), agents.Definition{Command: "no-such-program"})
	if err != nil || len(r.Steps) != 1 || r.Agent.State != agents.NotFound {
		t.Errorf("TestDefinition(no-such-program): got %+v, %v, want one step, not_found", r, err)
	}
	if _, err := c.TestDefinition(t.Context(), agents.Definition{ID: "new", Command: self, Env: map[string]string{"A": agents.Masked}}); !errors.Is(err, agents.ErrDefinition) {
		t.Errorf("TestDefinition(masked): got %v, want %v", err, agents.ErrDefinition)
	}
	if read(t, file) != before || c.Known("new") {
		t.Error("a test has written something")
	}
}

// equalJSON compares two JSON texts without white space; numbers stay as written.
func equalJSON(t *testing.T, a, b string) bool {
	t.Helper()
	var one, two bytes.Buffer
	for text, buf := range map[string]*bytes.Buffer{a: &one, b: &two} {
		if err := json.Compact(buf, []byte(text)); err != nil {
			t.Error(err)
			return false
		}
	}
	return one.String() == two.String()
}

// Two Deskhands write into the same agents.json.
func TestDefinitionsWrittenByTwo(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a file that is being read cannot be replaced there")
	}
	file := filepath.Join(t.TempDir(), "agents.json")
	var mu sync.Mutex
	var want []string
	var writing sync.WaitGroup
	for n := range 4 {
		c := agents.Open(agents.Config{Self: os.Args[0], File: file, WriteFile: store.WriteFile, Environ: []string{"PATH=/nowhere"}})
		defer closing(t, c)
		writing.Go(func() {
			for m := range 30 {
				id := fmt.Sprintf("a%d-%d", n, m)
				err := c.Definitions().Define(agents.Definition{ID: id, Command: "x"})
				mu.Lock()
				switch {
				case err == nil:
					want = append(want, id)
				case errors.Is(err, context.DeadlineExceeded): // the wait for the lock is limited, and a busy machine reaches the limit
				case !errors.Is(err, agents.ErrFile):
					t.Error(err)
				}
				mu.Unlock()
			}
		})
	}
	writing.Wait()
	text := read(t, file)
	for _, id := range want {
		if !strings.Contains(text, `"`+id+`"`) {
			t.Errorf("file: got %s, want %s in it", text, id)
		}
	}
	t.Logf("%d of 120 were written", len(want))
}

// A mistake hides a single agent: later agents of the file are still there.
func TestDefinitionsMistakeHidesNoOtherAgent(t *testing.T) {
	t.Parallel()
	c, _ := openFile(t, `{"agents":[{"id":"Bad Id","command":"x"},{"id":"claude","command":"x"},{"id":"one","command":"x"},{"id":"one","command":"y"},{"id":"two","command":"x"}]}`)
	_, err := c.List()
	for _, want := range []string{"Bad Id", "claude is known", "one stands in it twice"} {
		if !errors.Is(err, agents.ErrFile) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: want %s", err, want)
		}
	}
	for _, id := range []string{"one", "two"} {
		if a := get(t, c, id); !a.Editable {
			t.Errorf("%s: got %+v, want editable", id, a)
		}
	}
	if a := get(t, c, "claude"); a.Editable {
		t.Errorf("claude: got %+v, want not editable", a)
	}
}
