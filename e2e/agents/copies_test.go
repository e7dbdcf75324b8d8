//go:build e2e

package agents

import (
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/session"
	"deskhand/e2e/agents/llm"
)

// repository makes the agent's working directory a git repository, with ignore rules of its own.
func (p place) repository(t *testing.T) {
	t.Helper()
	write(t, p, ".gitignore", []byte("ignored/\n"))
	for _, args := range [][]string{{"init", "--quiet"}, {"add", "."}, {"-c", "user.name=A", "-c", "user.email=a@localhost", "commit", "--quiet", "-m", "begin"}} {
		p.git(t, args...)
	}
}

func (p place) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = p.work, p.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// TestLinkedFilesReachTheModel: the model learns at least the path of every linked file, whatever git ignores and whatever the file's name;
// agents that read links themselves read the content of copied files; and git offers no copy for a commit.
func TestLinkedFilesReachTheModel(t *testing.T) {
	for _, agent := range pinned(t) {
		t.Run(agent.ID, func(t *testing.T) {
			model := openScripted(t, []llm.Turn{{When: "look at these", Steps: []llm.Step{{Text: "Seen."}}}})
			p := newPlace(t, model)
			onPath(t, &p, agent, model)
			p.repository(t) // agents check only once for a repository
			f := follow(startServer(t, p))
			f.open(agent.ID, p)
			defer f.end(p)
			outside := filepath.Join(p.home, "outside")
			long := "The first line of the long text.\n" + strings.Repeat("A line like the others of it.\n", 40_000)
			for name, content := range map[string]string{
				filepath.Join(outside, "the archive.zip"):      "PK\x05\x06" + strings.Repeat("\x00", 18),
				filepath.Join(outside, "long.txt"):             long,
				filepath.Join(outside, "paper.pdf"):            "%PDF-1.4\n%%EOF\n",
				filepath.Join(p.work, "ignored", "füll.log"):   strings.Repeat("A line of the log.\n", 20_000),
				filepath.Join(p.work, "ignored", "small.txt"):  "first words of all",
				filepath.Join(p.work, "ignored", "small2.txt"): "second words of all",
			} {
				if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			var files []map[string]string
			for _, name := range []string{"outside/the archive.zip", "outside/long.txt", "outside/paper.pdf"} {
				files = append(files, map[string]string{"path": filepath.Join(p.home, name)})
			}
			for _, name := range []string{"ignored/füll.log", "ignored/small.txt", "ignored/small2.txt"} {
				files = append(files, map[string]string{"path": filepath.Join(p.work, name)})
			}
			var begun struct{ Turn session.Turn }
			f.s.call("POST", "/client/sessions/"+f.session.ID+"/prompt", map[string]any{"message": "Please look at these.", "attachments": files}, &begun)
			if end := f.leave(begun.Turn.ID); end.StopReason != "end_turn" {
				t.Fatalf(`leave: got end.StopReason %s, end.Error %+v, want end.StopReason "end_turn"`, end.StopReason, end.Error)
			}
			text, got := reached(t, model, "look at these")
			// Some agents keep the percent-encoding, some send only the content, and Copilot sends the names of embedded files.
			for _, name := range []string{"the archive.zip", "long.txt", "paper.pdf", "füll.log", "small.txt", "small2.txt"} {
				ways := []string{name, url.PathEscape(name)}
				switch name {
				case "small.txt":
					ways = append(ways, "first words of all")
				case "small2.txt":
					ways = append(ways, "second words of all")
				}
				told := slices.ContainsFunc(ways, func(way string) bool { return strings.Contains(text, way) })
				embedded := name == "paper.pdf" && slices.ContainsFunc(got, func(f llm.File) bool { return f.MIME == "application/pdf" })
				if !told && !embedded {
					t.Errorf("of %q the model was told nothing", name)
				}
			}
			t.Logf("files %d, long content %v, text:\n%s", len(got), strings.Contains(text, "first line of the long text"), clip(text))
			if status := p.git(t, "status", "--porcelain", "--untracked-files=all"); status != "" {
				t.Errorf("git offers for a commit: %s", status)
			}
		})
	}
}

func clip(text string) string {
	if len(text) > 3000 {
		return text[:1500] + "\n...\n" + text[len(text)-1500:]
	}
	return text
}
