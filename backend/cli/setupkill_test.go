package cli_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/testkit"
)

// TestKilledWhileAWorktreeIsMadeReady kills Deskhand at any point of the creation of worktrees and of their set-ups, while files are copied and
// rows are written. The next start has a conversation for each worktree, the database is sound, no file is there by half, and the set-up can be run
// once more, which leaves alone what somebody has changed.
func TestKilledWhileAWorktreeIsMadeReady(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands of the test are those of a shell")
	}
	r := inRepository(t)
	files := map[string][]byte{}
	for i := range 60 {
		files[fmt.Sprintf("config/%d/file%d.local", i%5, i)] = bytes.Repeat([]byte{byte('a' + i%26)}, 1+rand.IntN(200<<10))
	}
	for name, data := range files {
		testWrite(t, filepath.Join(r.work, name), string(data))
	}
	testWrite(t, filepath.Join(r.work, ".gitignore"), "*.local\n")
	testWrite(t, filepath.Join(r.work, ".deskhand/project.json"), `{"copy": ["*.local"], "setup": ["true", "sleep 0.02"]}`)
	r.must("git", "init", "--quiet")
	r.must("git", "add", "--all")
	r.must("git", "commit", "--quiet", "-m", "first")
	r.must(r.self, "trust", "approve", "--all")
	const mine = "config/0/file5.local"
	states, at := map[string]int{}, map[string]string{}
	trees := func() []string {
		list, _ := filepath.Glob(filepath.Join(r.work+".worktrees", "*"))
		return list
	}
	spread := 250 * time.Millisecond
	for round := range rounds(t, 8) {
		cmd := r.command(r.self, "prompt", "--agent", "mock", "--approve", "once", "--worktree", fmt.Sprint("markdown ", round))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for before, end := len(trees()), time.Now().Add(testkit.Limit); len(trees()) == before && time.Now().Before(end); {
			time.Sleep(time.Millisecond)
		}
		<-time.After(rand.N(spread)) // the kill may hit any point
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		sound(t, r.data)

		var list struct {
			Items []struct {
				ID       string
				Worktree *struct{ Path string }
			}
		}
		if err := json.Unmarshal([]byte(r.must(r.self, "sessions", "list", "--json")), &list); err != nil {
			t.Fatal(err)
		}
		at = map[string]string{}
		for _, s := range list.Items {
			if s.Worktree != nil {
				at[s.Worktree.Path] = s.ID
			}
		}
		for _, tree := range trees() {
			id, is := at[tree]
			if !is {
				continue // the conversation was not stored: a start removes the worktree when it gets to it
			}
			for name, want := range files {
				if got, err := os.ReadFile(filepath.Join(tree, name)); err == nil && !bytes.Equal(got, want) && string(got) != "mine\n" {
					t.Errorf("round %d: got %d bytes of %s in %s, want %d or no file", round, len(got), name, tree, len(want))
				}
			}
			if said := r.must("git", "-C", tree, "status", "--porcelain", "--untracked-files=all"); said != "" {
				t.Errorf("round %d: got %q to commit in %s, want nothing", round, said, tree)
			}
			out := r.must(r.self, "sessions", "setup", id)
			states[strings.FieldsFunc(out, func(r rune) bool { return r == ':' || r == '\n' })[0]]++
		}
		for tree := range at {
			testWrite(t, filepath.Join(tree, mine), "mine\n")
		}
		if states["stopped"] == 0 { // a busy machine takes longer to come to the set-up
			spread *= 2
		}
	}
	t.Logf("set-ups after the kills: %v", states)
	if states["stopped"] == 0 {
		t.Error("no kill hit a set-up: there are too few files")
	}

	holder := r.command(r.self, "server", "--port", "0")
	out, err := holder.StdoutPipe()
	if err == nil {
		err = holder.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = holder.Process.Kill(), holder.Wait() })
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	c := onSocket(t, r.data)
	orphans := func() []string {
		return slices.DeleteFunc(trees(), func(tree string) bool { return at[tree] != "" })
	}
	for end := time.Now().Add(testkit.Limit); len(orphans()) > 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("worktrees without a conversation: got %q, want none", orphans())
		}
	}
	for tree, id := range at {
		var report struct {
			Setup struct{ State, Problem string }
		}
		tidy := func(when string) {
			if left, err := os.ReadDir(filepath.Join(tree, ".deskhand-partly")); err == nil {
				t.Errorf("remains in %s after %s: got %v, want none", tree, when, left)
			}
		}
		c.post("/client/sessions/"+id+"/setup", map[string]string{"do": "release"}, &report)
		tidy("release")
		c.post("/client/sessions/"+id+"/setup", map[string]string{"do": "again"}, &report)
		for end := time.Now().Add(testkit.Limit); report.Setup.State == "running" && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
			c.get("/client/sessions/"+id+"/setup", &report)
		}
		if report.Setup.State != "done" {
			t.Errorf("the set-up of %s, run again: got %+v, want it done", tree, report.Setup)
		}
		for name, want := range files {
			if name == mine {
				want = []byte("mine\n")
			}
			if got, err := os.ReadFile(filepath.Join(tree, name)); err != nil || !bytes.Equal(got, want) {
				t.Errorf("%s in %s after the set-up was run again: got %d bytes, %v; want %d", name, tree, len(got), err, len(want))
			}
		}
		tidy("again")
	}
}
