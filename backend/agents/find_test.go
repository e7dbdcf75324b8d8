package agents

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"
)

func TestCustomAgentThatNoSystemStarts(t *testing.T) {
	for name, e := range map[string]string{
		"a variable without a name": `"env":{"":"x"}`, "a name with =": `"env":{"A=B":"x"}`, "a name with 0": `"env":{"A\u0000":"x"}`,
		"a value with 0": `"env":{"A":"x\u0000y"}`, "an argument with 0": `"args":["\u0000"]`, "a cwd with 0": `"cwd":"/\u0000"`,
		"a command with 0": `"command":"/bin/\u0000"`, "the parent": `"command":".."`,
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "agents.json")
			if err := os.WriteFile(file, []byte(`{"agents":[{"id":"a","command":"/bin/sh",`+e+`}]}`), 0o600); err != nil {
				t.Fatal(err)
			}
			c := Open(Config{File: file, Environ: []string{"PATH=/usr/bin:/bin"}})
			if a, err := c.Agent("a"); err != nil || a.State != Broken || a.Detail == "" {
				t.Errorf("Agent(a): got %+v, %v, want broken with a detail", a, err)
			}
		})
	}
}

func TestFileOfAnEditorThatMarksIt(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "agents.json")
	if err := os.WriteFile(file, []byte("\xef\xbb\xbf"+`{"agents":[{"id":"a","command":"/bin/sh"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	c := Open(Config{File: file, Environ: []string{}})
	if _, err := c.Agent("a"); err != nil {
		t.Error(err)
	}
}

func TestPythonAgentsOfTheRegistryRead(t *testing.T) {
	t.Parallel()
	rows, err := parseCatalogue([]byte(`{"agents":[
		{"id":"fast-agent","name":"F","version":"1.0.0","description":"d","distribution":{"uvx":{"package":"fast-agent-acp==1.0.0","args":["-x"],"env":{"A":"1"}}}},
		{"id":"minion","name":"M","version":"1.0.0","description":"d","distribution":{"uvx":{"package":"minion-code[all]>=2.0","args":["acp"]}}}]}`))
	if err != nil || len(rows) != 2 {
		t.Fatalf("parseCatalogue: got %+v, %v, want 2 rows", rows, err)
	}
	if e := rows[0]; e.command != "fast-agent-acp" || !slices.Equal(e.args, []string{"-x"}) || e.env["A"] != "1" || e.known.npm != "" {
		t.Errorf("rows[0]: got %+v, want fast-agent-acp -x with A=1", e)
	}
	if e := rows[1]; e.command != "minion-code" || !slices.Equal(e.args, []string{"acp"}) {
		t.Errorf("rows[1]: got %+v, want minion-code acp", e)
	}
}

func TestNamesOfProgramsOnWindows(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ command, pathext, want string }{
		{"npm", ".EXE;.CMD", "npm.EXE npm.CMD"},
		{"npm.cmd", ".EXE;.CMD", "npm.cmd npm.cmd.EXE npm.cmd.CMD"},
		{"agent-1.2", ".EXE;.CMD", "agent-1.2.EXE agent-1.2.CMD"},
		{"npm", "", "npm.com npm.exe npm.bat npm.cmd"},
		{"npm", ";.EXE;exe;", "npm.EXE"},
	} {
		if got := strings.Join(withExtensions(tc.command, tc.pathext), " "); got != tc.want {
			t.Errorf("%s, %s: %q, want %q", tc.command, tc.pathext, got, tc.want)
		}
	}
}

func TestBetweenMarks(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	for name, tc := range map[string]struct {
		text string
		want string
		bad  bool
	}{
		"plain":             {"banner\n<<A=1\x00>>rest", "A=1\x00", false},
		"nothing":           {"<<>>", "", false},
		"a long banner":     {long + "<<A>>", "A", false},
		"an end before":     {">>a<<A>>", "A", false},
		"long":              {"<<" + long + ">>", long, false},
		"no end":            {"<<A", "", true},
		"no begin":          {"A>>", "", true},
		"empty":             {"", "", true},
		"longer than it is": {"<<" + strings.Repeat("x", shellLimit+100_000), "", true},
	} {
		for _, r := range []func(string) io.Reader{
			func(s string) io.Reader { return strings.NewReader(s) },
			func(s string) io.Reader { return iotest.DataErrReader(strings.NewReader(s)) },
			func(s string) io.Reader { return iotest.HalfReader(strings.NewReader(s)) },
		} {
			got, err := between(r(tc.text), "<<", ">>")
			if (err != nil) != tc.bad || !tc.bad && !bytes.Equal(got, []byte(tc.want)) {
				t.Errorf("%s: %d bytes, %v", name, len(got), err)
			}
		}
	}
	if got, err := between(iotest.OneByteReader(strings.NewReader("ab<<A>>")), "<<", ">>"); err != nil || string(got) != "A" {
		t.Errorf("between: got %q, %v, want \"A\"", got, err)
	}
	if _, err := between(iotest.ErrReader(io.ErrClosedPipe), "<<", ">>"); !errors.Is(err, errShellEnded) {
		t.Error(err)
	}
}
