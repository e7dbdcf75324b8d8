package cli_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"deskhand/backend/testkit"
)

// TestSetUpSurvivesAKill kills Deskhand in each command of a set-up: everything is as it was, nothing of the set-up runs on, and the next start
// says what was cut off and can repeat it.
func TestSetUpSurvivesAKill(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the commands of the test are those of a shell")
	}
	at := t.TempDir()
	r := inRepository(t, "HOLD="+at)
	work, self, command, must := r.work, r.self, r.command, r.must
	step := func(name string) string {
		return `echo $$ > \"$HOLD/` + name + `.pid\"; while test -e \"$HOLD/` + name + `\"; do sleep 0.05; done`
	}
	files := map[string]string{
		".gitignore": ".env\n", "code.go": "package main\n", ".env": strings.Repeat("KEY=value\n", 1000),
		".deskhand/project.json": `{"copy": [".env"], "setup": ["` + step("one") + `", "` + step("two") + `"]}`,
	}
	for name, text := range files {
		testWrite(t, filepath.Join(work, name), text)
	}
	must("git", "init", "--quiet")
	must("git", "add", "--all")
	must("git", "commit", "--quiet", "-m", "first")
	must(self, "trust", "approve", "--all")
	for _, name := range []string{"one", "two"} {
		hold, pid := filepath.Join(at, name), filepath.Join(at, name+".pid")
		testWrite(t, hold, "")
		cmd := command(self, "prompt", "--agent", "mock", "--approve", "once", "--worktree", "markdown "+name)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		end := time.Now().Add(testkit.Limit)
		for data, _ := os.ReadFile(pid); len(data) == 0; data, _ = os.ReadFile(pid) {
			if time.Now().After(end) {
				t.Fatalf("command %s of the set-up: got no start of it, want one", name)
			}
			time.Sleep(20 * time.Millisecond)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		out := must(self, "sessions", "setup", "last")
		if !strings.HasPrefix(out, "stopped: ") || !strings.Contains(out, "ended while it ran") {
			t.Errorf("the set-up after a kill in command %s: got %q, want it stopped because Deskhand ended", name, out)
		}
		data, _ := os.ReadFile(pid)
		for end := time.Now().Add(testkit.Limit); runs(strings.TrimSpace(string(data))); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("command %s of the set-up: got process %s, want none after the kill", name, data)
			}
		}
		trees, err := filepath.Glob(filepath.Join(work+".worktrees", "markdown-"+name+"-*"))
		if err != nil || len(trees) != 1 {
			t.Fatalf("worktrees after the kill: got %q, %v; want one", trees, err)
		}
		for _, top := range []string{work, trees[0]} {
			for file, want := range files {
				if got, err := os.ReadFile(filepath.Join(top, file)); err != nil || string(got) != want {
					t.Errorf("%s in %s after the kill in %s: got %d bytes, %v; want the %d bytes of before", file, top, name, len(got), err, len(want))
				}
			}
		}
		if err := os.Remove(hold); err != nil {
			t.Fatal(err)
		}
	}
}

// runs reports whether a process runs. One that has ended and that nobody has waited for does not.
func runs(pid string) bool {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func testWrite(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
