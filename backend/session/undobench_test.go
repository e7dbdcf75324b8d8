package session_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/lifecycle"
	"deskhand/backend/proxy"
	"deskhand/backend/proxy/proxytest"
	"deskhand/backend/session"
	"deskhand/backend/snapshot"
	"deskhand/backend/undo"
)

// writer is an agent that changes a file as soon as it reads a prompt, and sends the time of that.
func writer(file string, read chan<- time.Time) func(in io.Reader, out, _ io.Writer) int {
	return func(in io.Reader, out, _ io.Writer) int {
		n := 0
		for lines := bufio.NewScanner(in); lines.Scan(); {
			var m struct {
				ID     json.RawMessage
				Method string
			}
			if json.Unmarshal(lines.Bytes(), &m) != nil || m.ID == nil {
				continue
			}
			result := `{}`
			switch m.Method {
			case "initialize":
				result = `{"protocolVersion":1}`
			case "session/new":
				result = `{"sessionId":"s"}`
			case "session/prompt":
				read <- time.Now()
				n++
				if os.WriteFile(file, fmt.Appendf(nil, "agent %d\n", n), 0o600) != nil {
					return 1
				}
				result = `{"stopReason":"end_turn"}`
			}
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":%s}`+"\n", m.ID, result)
		}
		return 0
	}
}

// many writes a repository with so many files, all of them committed.
func (d *desk) many(files int) {
	d.t.Helper()
	for i := range files {
		d.leave(fmt.Sprintf("dir%04d/file%05d.txt", i%(files/20), i), strings.Repeat(fmt.Sprintf("line of file %d\n", i), 60))
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-q", "-m", "all"}} {
		if out, err := exec.Command("git", append([]string{"-C", d.work}, args...)...).CombinedOutput(); err != nil { //nolint:gosec // a test's own repository
			d.t.Fatalf("git %q: got %v, want it done: %s", args, err, out)
		}
	}
}

// BenchmarkPromptToAgent measures the time from a prompt to the agent that reads it, in repositories with many files: for the first prompt
// of a directory, sent at once when the agent is ready, and for later ones. Each turn changes a file at once. The first turn is undone;
// when its file could not be read before the change, that must be told, else the benchmark fails. BenchmarkPromptToAgent also reports the
// time of git status in the directory.
func BenchmarkPromptToAgent(b *testing.B) {
	for _, files := range []int{5_000, 30_000} {
		b.Run(fmt.Sprint(files), func(b *testing.B) {
			dir, read := b.TempDir(), make(chan time.Time, 1)
			work := filepath.Join(dir, "work")
			d := openAs(b, dir, proxy.Config{Spawn: proxytest.Spawn(writer(filepath.Join(work, "dir0001", "file00001.txt"), read))}, session.Config{
				Snapshots: snapshots(b, dir, "", snapshot.Config{}), HoldPrompt: 300 * time.Millisecond,
			})
			d.many(files)
			was := d.read("dir0001/file00001.txt")
			id := d.create().ID
			d.until("agent", func() bool { return d.get(id).Phase == lifecycle.Ready })
			send := func() (time.Duration, string) {
				begun := time.Now()
				turn := d.prompt(id, "go")
				took := (<-read).Sub(begun)
				d.looked(id, turn.ID)
				return took, turn.ID
			}
			first, turn := send()
			back, err := d.Undo().RestoreTurn(b.Context(), id, undo.RestoreTurn{Turn: turn})
			restored := d.read("dir0001/file00001.txt") == was
			if told := len(back.Files) == 1 && back.Files[0].Reason == "changes.not_kept"; err != nil || !restored && !told {
				b.Fatalf("the first turn: got %+v, %v; want the file as it was, or a word that it is not known", back, err)
			}
			var took []time.Duration
			for b.Loop() {
				one, turn := send()
				took = append(took, one)
				if c := d.looked(id, turn).Changes; c.State != "ready" || c.Files != 1 {
					b.Fatalf("a turn: got %+v; want one file", c)
				}
			}
			slices.Sort(took)
			known := 0.0
			if restored {
				known = 1
			}
			b.ReportMetric(known, "first-restored")
			ms := func(t time.Duration) float64 { return float64(t.Microseconds()) / 1000 }
			b.ReportMetric(ms(first), "ms/first")
			b.ReportMetric(ms(took[len(took)/2]), "ms/median")
			b.ReportMetric(ms(took[len(took)*95/100]), "ms/p95")
			var status []time.Duration
			for range 5 {
				begun := time.Now()
				if err := exec.Command("git", "-C", d.work, "status").Run(); err != nil { //nolint:gosec // a test's own repository
					b.Fatal(err)
				}
				status = append(status, time.Since(begun))
			}
			slices.Sort(status)
			b.ReportMetric(ms(status[2]), "ms/git-status")
		})
	}
}
