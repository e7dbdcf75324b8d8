package agents

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
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
