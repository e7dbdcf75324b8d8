package worktrees_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deskhand/backend/host"
	"deskhand/backend/proxy"
	"deskhand/backend/storetest"
	"deskhand/backend/worktree"
	"deskhand/backend/worktrees"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a repository with the library of its worktrees, of which no session has one.
type bench struct {
	*worktrees.Library

	git  *worktree.Library
	t    testing.TB
	repo string
	env  []string
}

func set(t testing.TB) *bench {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	processes, err := proxy.Open(proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, repo: filepath.Join(root, "app"), env: append(os.Environ(), "HOME="+root, "GIT_CONFIG_NOSYSTEM=1")}
	git, err := worktree.Open(t.Context(), worktree.Config{Beside: processes, Environ: func(context.Context) []string { return b.env }})
	if err != nil {
		t.Fatal(err)
	}
	b.git = git
	db := storetest.Open(t, t.TempDir())
	b.Library = worktrees.New(worktrees.Deps{
		Store: db, Git: git, Logger: slog.New(slog.DiscardHandler), Directories: host.NewDirectories(host.Gone, func(string) {}), Writable: func() error { return nil },
		Sessions: worktrees.Sessions{
			Clean:  func(text string) string { return text },
			Record: func(context.Context, ...string) error { return nil },
		},
	})
	t.Cleanup(func() {
		if err := errors.Join(b.Close(), processes.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	b.leave("sub/code.go", "code\n")
	b.do("init", "--quiet", "--initial-branch=main")
	b.do("add", "--all")
	b.do("commit", "--quiet", "-m", "first")
	return b
}

func (b *bench) leave(files ...string) {
	b.t.Helper()
	for i := 0; i+1 < len(files); i += 2 {
		name := filepath.Join(b.repo, files[i])
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(files[i+1]), 0o600)); err != nil {
			b.t.Fatal(err)
		}
	}
}

// do is a person's own git.
func (b *bench) do(args ...string) {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "git", append([]string{"-C", b.repo, "-c", "user.name=A", "-c", "user.email=a@localhost"}, args...)...)
	cmd.Env = b.env
	if out, err := cmd.CombinedOutput(); err != nil {
		b.t.Fatalf("git %q: got error %v, want none\n%s", args, err, out)
	}
}

// made makes the worktree of a session, as far as the worktree goes.
func (b *bench) made(s worktrees.Start) {
	b.t.Helper()
	p, err := b.Make(b.t.Context(), s)
	if err == nil {
		err = p.Store(b.t.Context(), func(*sql.Tx) error { return nil })
		p.Release()
	}
	if err != nil {
		b.t.Fatalf("Make(%+v): got error %v, want none", s, err)
	}
}

// counted has all further gits of the library counted. runs returns the commands of those that have run since its last call.
func (b *bench) counted() (runs func() []string) {
	b.t.Helper()
	real, err := exec.LookPath("git")
	if err != nil {
		b.t.Fatal(err)
	}
	bin, list := b.t.TempDir(), filepath.Join(b.t.TempDir(), "runs")
	// The command is the first word that is no option of git's own.
	script := "#!/bin/sh\nfor word; do\n\tcase $skip$word in\n\t-c) skip=x ;;\n\tx*) skip= ;;\n\t*) echo \"$word\" >>'" + list + "'; break ;;\n\tesac\ndone\nexec '" + real + "' \"$@\"\n"
	if err := os.WriteFile(filepath.Join(bin, "git"), []byte(script), 0o700); err != nil { //nolint:gosec // a program
		b.t.Fatal(err)
	}
	b.env = append(b.env, "PATH="+bin)
	return func() []string {
		data, _ := os.ReadFile(list)
		_ = os.Remove(list)
		return strings.Fields(string(data))
	}
}

// TestFewGitsMakeAWorktree: none asks again what an earlier one has said.
func TestFewGitsMakeAWorktree(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the gits are counted by a line for a shell")
	}
	b := set(t)
	runs := b.counted()
	for i, c := range []struct {
		start worktrees.Start
		want  string
	}{
		{worktrees.Start{Title: "Mend it"}, "rev-parse for-each-ref config worktree"},
		{worktrees.Start{Branch: "mend"}, "rev-parse check-ref-format for-each-ref config worktree"},
		{worktrees.Start{Base: "main"}, "rev-parse for-each-ref for-each-ref config worktree"},
		{worktrees.Start{Cwd: filepath.Join(b.repo, "sub")}, "rev-parse config cat-file for-each-ref config worktree"},
	} {
		if c.start.Session = fmt.Sprint(i); c.start.Cwd == "" {
			c.start.Cwd = b.repo
		}
		b.made(c.start)
		if got := strings.Join(runs(), " "); got != c.want {
			t.Errorf("gits of Make(%+v): got %q, want %q", c.start, got, c.want)
		}
	}
	if _, err := b.Plan(t.Context(), b.repo, "Mend it", ""); err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Join(runs(), " "), "rev-parse for-each-ref config status for-each-ref"; got != want {
		t.Errorf("gits of Plan: got %q, want %q", got, want)
	}
}

// BenchmarkHundredWorktrees makes a hundred worktrees of a repository with two thousand files by turns with plain git, and then lists the
// branches at which the next can begin, with their worktrees, beside git's own list. Each ratio is to be at most 1.5.
func BenchmarkHundredWorktrees(b *testing.B) {
	for b.Loop() {
		s := set(b)
		var files []string
		for i := range 2000 {
			files = append(files, fmt.Sprintf("src/%d/file%d.txt", i/50, i), fmt.Sprintf("content of %d\n", i))
		}
		s.leave(files...)
		s.do("add", "--all")
		s.do("commit", "--quiet", "-m", "many files")
		var ours, plain, lists, plainLists []time.Duration
		timed := func(all *[]time.Duration, do func()) {
			begun := time.Now()
			do()
			*all = append(*all, time.Since(begun))
		}
		for i := range 100 {
			name := fmt.Sprintf("tree%d", i)
			if i%2 == 0 {
				timed(&ours, func() { s.made(worktrees.Start{Session: name, Cwd: s.repo, Branch: name}) })
			} else {
				timed(&plain, func() { s.do("worktree", "add", "--quiet", "-b", name, filepath.Join(s.repo+".worktrees", name)) })
			}
		}
		p, err := s.git.Look(b.Context(), s.repo)
		if err != nil {
			b.Fatal(err)
		}
		for range 50 {
			timed(&lists, func() {
				if list, err := s.git.Bases(b.Context(), p); err != nil || len(list) != 101 {
					b.Fatalf("Bases: got %d, error %v; want 101", len(list), err)
				}
			})
			timed(&plainLists, func() {
				s.do("for-each-ref", "--sort=-committerdate", "--format=%(refname) %(objectname) %(worktreepath)", "refs/heads", "refs/remotes")
			})
		}
		for _, m := range []struct {
			what        string
			ours, plain []time.Duration
		}{{"make", ours, plain}, {"list", lists, plainLists}} {
			b.ReportMetric(median(m.ours), "ms/"+m.what)
			b.ReportMetric(median(m.plain), "ms/plain-"+m.what)
			b.ReportMetric(median(m.ours)/median(m.plain), m.what+"-ratio")
		}
	}
}

// median returns the median of times, in milliseconds.
func median(all []time.Duration) float64 {
	slices.Sort(all)
	return float64(all[len(all)/2].Microseconds()) / 1000
}
