//go:build e2e

package agents

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/lifecycle"
)

// brought returns files by which a directory makes a real agent run a program by itself: the program makes a file.
func brought(agent, proof string) (files map[string]string, names []string) {
	run := "echo ran > " + proof
	command, _ := json.Marshal(run)
	server := fmt.Sprintf(`{"mcpServers":{"brought":{"command":"/bin/sh","args":["-c",%s]}}}`, command)
	switch agent {
	case "claude":
		return map[string]string{".claude/settings.json": fmt.Sprintf(`{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":%s}]}]}}`, command)},
			[]string{"hook .claude/settings.json SessionStart"}
	case "opencode":
		return map[string]string{".opencode/plugin/brought.js": fmt.Sprintf("import fs from 'node:fs';\nexport const Brought = async () => { fs.writeFileSync(%q, 'ran\\n'); return {}; };\n", proof)},
			[]string{"script .opencode/plugin/brought.js"}
	case "codex":
		return map[string]string{".codex/config.toml": fmt.Sprintf("[mcp_servers.brought]\ncommand = \"/bin/sh\"\nargs = [\"-c\", %s]\n", command)},
			[]string{"agent_config .codex/config.toml"}
	case "github-copilot-cli":
		return map[string]string{".github/hooks/brought.json": fmt.Sprintf(`{"version":1,"hooks":{"userPromptSubmitted":[{"type":"command","bash":%s}],"sessionStart":[{"type":"command","bash":%s}]}}`, command, command)},
			[]string{"hook .github/hooks/brought.json sessionStart", "hook .github/hooks/brought.json userPromptSubmitted"}
	case "gemini":
		return map[string]string{".gemini/settings.json": server}, []string{"agent_config .gemini/settings.json"}
	case "qwen-code":
		return map[string]string{".qwen/settings.json": fmt.Sprintf(`{"hooks":{"SessionStart":[{"hooks":[{"type":"command","command":%s}]}]}}`, command)},
			[]string{"hook .qwen/settings.json SessionStart"}
	}
	return nil, nil
}

// TestUnapproved: programs that real agents run by themselves at their start do not run before a person has approved them, and run
// afterwards. The latter proves that the former is due to the approval.
func TestUnapproved(t *testing.T) {
	for _, agent := range pinned(t) {
		t.Run(agent.ID, func(t *testing.T) {
			model := openModel(t)
			p := newPlace(t, model)
			proof := filepath.Join(p.home, "brought.txt")
			files, names := brought(agent.ID, proof)
			if files == nil {
				t.Fatal("nobody has said what it runs by itself")
			}
			files[".git/HEAD"] = "ref: refs/heads/main\n"
			for name, text := range files {
				at := filepath.Join(p.work, name)
				if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			onPath(t, &p, agent, model)
			s := startServer(t, p)
			f := follow(s)
			s.call("POST", "/client/sessions", map[string]string{"agent": agent.ID, "cwd": p.work}, &f.session)
			f.only = f.session.ID
			request := f.answer("reject_once")
			var got []string
			for _, e := range request.Executables {
				got = append(got, e.Kind+" "+e.Name)
			}
			if request.Kind != "trust" || !slices.Equal(got, names) {
				t.Fatalf("asked about %q", got)
			}
			f.until("the end", func() bool { return f.session.Phase == lifecycle.Closed })
			if exit := f.session.Exit; exit == nil || exit.Problem != "trust.declined" {
				t.Errorf(`got exit %+v, want exit not nil and exit.Problem "trust.declined"`, exit)
			}
			if _, err := os.Stat(proof); err == nil {
				t.Fatal("it ran without an approval")
			}
			f.session.Phase = lifecycle.Starting
			s.call("POST", "/client/sessions/"+f.session.ID+"/restart", nil, nil)
			f.answer("allow_always")
			f.ready()
			f.done(f.prompt("Say something."))
			if text, err := os.ReadFile(proof); err != nil || strings.TrimSpace(string(text)) != "ran" {
				t.Errorf("it has not run with the approval: %q %v", text, err)
			}
			s.stop()
		})
	}
}
