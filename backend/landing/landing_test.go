package landing_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/landing"
	"deskhand/backend/proxy"
	"deskhand/backend/refusal"
)

// bench is a repository with a library, and a session in the repository.
type bench struct {
	*landing.Library
	t       testing.TB
	root    string
	repo    string
	session landing.Session
	hooks   []string // that nobody has approved
	path    string   // a directory in which git is looked for first; "" = none
}

const id = "session"

func set(t testing.TB, with ...func(*landing.Deps)) *bench {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	processes, err := proxy.Open(proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, root: root, repo: filepath.Join(root, "app")}
	b.session = landing.Session{Cwd: b.repo, Local: true, Title: "Mend the total. It is wrong from 100 on."}
	deps := landing.Deps{
		Beside: processes, Logger: slog.New(slog.DiscardHandler),
		Environ: func(context.Context) []string { return b.env() },
		Find: func(_ context.Context, asked string) (landing.Session, error) {
			if asked != id {
				return landing.Session{}, refusal.ErrNotFound
			}
			return b.session, nil
		},
		Unapproved: func(context.Context, string) ([]string, error) { return b.hooks, nil },
		Clean:      func(text string) string { return strings.ReplaceAll(text, "hunter2", "•••") },
		Writable:   func() error { return nil },
	}
	for _, f := range with {
		f(&deps)
	}
	if b.Library, err = landing.Open(t.Context(), deps); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(b.Close(), processes.Close()); err != nil {
			t.Error(err)
		}
	})
	b.git(root, "init", "--quiet", "--initial-branch=main", "app")
	b.git(b.repo, "config", "--global", "user.name", "Ada")
	b.git(b.repo, "config", "--global", "user.email", "ada@example.org")
	b.leave("total.sh", "one\ntwo\n", "old.txt", "a\nb\nc\nd\n", "gone.txt", "gone\n", "sub/deep.txt", "deep\n", ".gitignore", "*.log\n")
	b.git(b.repo, "add", "--all")
	b.git(b.repo, "commit", "--quiet", "-m", "first")
	return b
}

func (b *bench) env() []string {
	path := os.Getenv("PATH")
	if b.path != "" {
		path = b.path + string(os.PathListSeparator) + path
	}
	return append(os.Environ(), "PATH="+path, "HOME="+b.root, "XDG_CONFIG_HOME="+filepath.Join(b.root, "config"), "GIT_CONFIG_NOSYSTEM=1")
}

// git is a person's own git, in which no hook runs.
func (b *bench) git(dir string, args ...string) string {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "git", append([]string{"-c", "core.hooksPath=" + os.DevNull}, args...)...)
	cmd.Dir, cmd.Env = dir, b.env()
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("git %s: got error %v, want none\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimRight(string(out), "\n")
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

func (b *bench) look() landing.RepositoryStatus {
	b.t.Helper()
	s, err := b.Status(b.t.Context(), id)
	if err != nil {
		b.t.Fatalf("Status: got error %v, want none", err)
	}
	return s
}

// commit commits files, by the newest status.
func (b *bench) commit(r landing.CommitRequest) (landing.Committed, error) {
	b.t.Helper()
	if r.Head == "" {
		r.Head = b.look().Head
	}
	return b.Commit(b.t.Context(), id, r)
}

func (b *bench) committed(r landing.CommitRequest) landing.Committed {
	b.t.Helper()
	done, err := b.commit(r)
	if err != nil {
		b.t.Fatalf("Commit(%+v): got error %v, want none", r, err)
	}
	return done
}

// refused checks the code of a refusal.
func refused(t testing.TB, what string, err error, code string) *refusal.Error {
	t.Helper()
	got, is := errors.AsType[*refusal.Error](err)
	if !is || got.Code != code {
		t.Fatalf("%s: got error %v, want the refusal %s", what, err, code)
	}
	return got
}

func (b *bench) hook(name, text string) {
	b.t.Helper()
	if err := os.WriteFile(filepath.Join(b.repo, ".git", "hooks", name), []byte("#!/bin/sh\n"+text+"\n"), 0o700); err != nil { //nolint:gosec // git runs only what may be run
		b.t.Fatal(err)
	}
}

func files(s landing.RepositoryStatus) (list []string) {
	for _, f := range s.Files {
		list = append(list, strings.TrimSpace(fmt.Sprintf("%s %s %s %s", f.Kind, f.Path, f.Was, f.Staged)))
	}
	return list
}

func same(t testing.TB, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Fatalf("%s:\ngot  %q\nwant %q", what, got, want)
	}
}

func TestStatusListsWhatIsNotCommitted(t *testing.T) {
	b := set(t)
	b.leave("total.sh", "one\nthree\n", "new/ü \"quoted\"\nname.txt", "new\n", "noise.log", "ignored\n", "staged.txt", "one\n")
	b.git(b.repo, "add", "staged.txt", "total.sh")
	b.leave("total.sh", "one\nfour\n")
	b.git(b.repo, "rm", "--quiet", "gone.txt")
	b.git(b.repo, "mv", "old.txt", "sub/renamed.txt")
	s := b.look()
	same(t, "files", files(s), []string{
		"deleted gone.txt  all", "added new/ü \"quoted\"\nname.txt", "added staged.txt  all", "renamed sub/renamed.txt old.txt all", "modified total.sh  part",
	})
	got := []string{s.Repository, s.Branch, s.Head, s.Subject, s.Author, s.Message, fmt.Sprint(s.Ahead, s.Behind, s.Remotes, s.Hooks)}
	same(t, "status", got, []string{b.repo, "main", b.git(b.repo, "rev-parse", "HEAD"), "first", "Ada <ada@example.org>", "Mend the total", "0 0 [] []"})
}

func TestCommitTakesChosenFilesAndLeavesTheRest(t *testing.T) {
	b := set(t)
	b.leave("total.sh", "one\nthree\n", "new.txt", "new\n", "other.txt", "other\n", "sub/deep.txt", "deeper\n")
	b.git(b.repo, "add", "other.txt")
	b.git(b.repo, "mv", "old.txt", "renamed.txt")
	if err := os.Remove(filepath.Join(b.repo, "gone.txt")); err != nil {
		t.Fatal(err)
	}
	done := b.committed(landing.CommitRequest{Paths: []string{"total.sh", "new.txt", "gone.txt", "renamed.txt"}, Message: "Mend the total\n\n# This line stays\n"})
	if done.Subject != "Mend the total" || done.Branch != "main" || done.Files != 5 || done.Commit != b.git(b.repo, "rev-parse", "HEAD") {
		t.Fatalf("Commit: got %+v, want the new commit on main with 5 files", done)
	}
	same(t, "commit", strings.Split(b.git(b.repo, "show", "--no-renames", "--name-status", "--format=%an <%ae> %cn%n%B", "HEAD"), "\n"), []string{
		"Ada <ada@example.org> Ada", "Mend the total", "", "# This line stays", "", "", "D\tgone.txt", "A\tnew.txt", "D\told.txt", "A\trenamed.txt", "M\ttotal.sh",
	})
	// What was staged is staged still, what was not chosen is as it was, and git itself agrees.
	same(t, "git status", strings.Split(b.git(b.repo, "status", "--porcelain"), "\n"), []string{"A  other.txt", " M sub/deep.txt"})
}

func TestCommitBeforeTheFirstAndInALinkedWorktree(t *testing.T) {
	b := set(t)
	b.git(b.root, "init", "--quiet", "--initial-branch=trunk", "fresh")
	b.session.Cwd = filepath.Join(b.root, "fresh")
	if err := os.WriteFile(filepath.Join(b.session.Cwd, "a.txt"), []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	done, err := b.Commit(t.Context(), id, landing.CommitRequest{Paths: []string{"a.txt"}, Message: "Begin"})
	if err != nil || done.Branch != "trunk" || done.Files != 1 {
		t.Fatalf("Commit in a repository without a commit: got %+v, %v, want one file on trunk", done, err)
	}
	linked := filepath.Join(b.root, "linked")
	b.git(b.repo, "worktree", "add", "--quiet", "-b", "side", linked)
	b.session.Cwd = filepath.Join(linked, "sub")
	if err := os.WriteFile(filepath.Join(linked, "sub", "deep.txt"), []byte("deeper\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	done = b.committed(landing.CommitRequest{Paths: []string{"sub/deep.txt"}, Message: "Deeper"})
	if got, want := done.Commit, b.git(b.repo, "rev-parse", "side"); got != want {
		t.Fatalf("Commit in a linked worktree: got the commit %s, want that of its branch, %s", got, want)
	}
	if got := b.git(linked, "status", "--porcelain"); got != "" {
		t.Fatalf("git status after the commit: got %q, want nothing", got)
	}
}

func TestCommitRefusesWhatThePersonHasNotSeen(t *testing.T) {
	b := set(t)
	b.leave("total.sh", "changed\n")
	shown := b.look()
	for _, c := range []struct {
		name, code string
		r          landing.CommitRequest
	}{
		{"no message", "landing.no_message", landing.CommitRequest{Paths: []string{"total.sh"}, Message: " \n"}},
		{"no file", "landing.nothing", landing.CommitRequest{Message: "m"}},
		{"a file without a change", "landing.file", landing.CommitRequest{Paths: []string{"old.txt"}, Message: "m"}},
		{"a file outside", "landing.file", landing.CommitRequest{Paths: []string{"../elsewhere"}, Message: "m"}},
	} {
		_, err := b.commit(c.r)
		refused(t, "Commit with "+c.name, err, c.code)
	}
	b.git(b.repo, "commit", "--quiet", "--allow-empty", "-m", "meanwhile")
	_, err := b.Commit(t.Context(), id, landing.CommitRequest{Head: shown.Head, Paths: []string{"total.sh"}, Message: "m"})
	refused(t, "Commit after another commit", err, "landing.moved")
	b.leave(".git/MERGE_HEAD", b.git(b.repo, "rev-parse", "HEAD")+"\n")
	_, err = b.commit(landing.CommitRequest{Paths: []string{"total.sh"}, Message: "m"})
	refused(t, "Commit within a merge", err, "landing.unfinished")
	if err := os.Remove(filepath.Join(b.repo, ".git", "MERGE_HEAD")); err != nil {
		t.Fatal(err)
	}
	b.leave(".git/index.lock", "")
	_, err = b.commit(landing.CommitRequest{Paths: []string{"total.sh"}, Message: "m"})
	refused(t, "Commit beside another git", err, "landing.locked")
	if got := b.git(b.repo, "log", "--format=%s"); got != "meanwhile\nfirst" {
		t.Fatalf("history after refusals: got %q, want no commit of ours", got)
	}
	b.session.Local = false
	_, err = b.Status(t.Context(), id)
	refused(t, "Status of a session elsewhere", err, "landing.elsewhere")
	b.session = landing.Session{Cwd: b.root, Local: true}
	_, err = b.Status(t.Context(), id)
	refused(t, "Status outside of a repository", err, "landing.no_repository")
}

func TestCommitRunsApprovedHooksAlone(t *testing.T) {
	b := set(t)
	b.hook("pre-commit", "echo ran >>../ran; echo 'the linter has findings' >&2; test ! -f ../fail")
	b.hook("commit-msg", "echo checked >>../ran")
	b.leave("total.sh", "changed\n")
	b.hooks = []string{".git/hooks/pre-commit"}
	_, err := b.commit(landing.CommitRequest{Paths: []string{"total.sh"}, Message: "m"})
	if got := refused(t, "Commit with a hook that nobody has approved", err, "landing.hooks").Params["names"]; got != ".git/hooks/pre-commit" {
		t.Fatalf("names of the hooks: got %q, want the one that is not approved", got)
	}
	ran := filepath.Join(b.root, "ran")
	if _, err := os.Lstat(ran); err == nil {
		t.Fatal("a hook ran that nobody has approved")
	}
	b.committed(landing.CommitRequest{Paths: []string{"total.sh"}, Message: "without", NoHooks: true})
	if _, err := os.Lstat(ran); err == nil {
		t.Fatal("a hook ran in a commit without hooks")
	}
	b.hooks = nil
	b.leave("total.sh", "changed again\n")
	b.committed(landing.CommitRequest{Paths: []string{"total.sh"}, Message: "with"})
	if got, _ := os.ReadFile(ran); string(got) != "ran\nchecked\n" {
		t.Fatalf("hooks that ran: got %q, want both", got)
	}
	// A hook that refuses is told with its words, and nothing has changed.
	before := b.git(b.repo, "rev-parse", "HEAD")
	if err := os.WriteFile(filepath.Join(b.root, "fail"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.leave("total.sh", "once more\n", "staged.txt", "s\n")
	b.git(b.repo, "add", "staged.txt")
	_, err = b.commit(landing.CommitRequest{Paths: []string{"total.sh"}, Message: "m"})
	if got := refused(t, "Commit with a hook that fails", err, "landing.failed").Params["detail"]; !strings.Contains(got, "the linter has findings") {
		t.Fatalf("detail: got %q, want the words of the hook", got)
	}
	same(t, "git status", strings.Split(b.git(b.repo, "status", "--porcelain"), "\n"), []string{"A  staged.txt", " M total.sh"})
	if got := b.git(b.repo, "rev-parse", "HEAD"); got != before {
		t.Fatalf("HEAD after a hook that failed: got %s, want %s", got, before)
	}
	left, err := filepath.Glob(filepath.Join(b.repo, ".git", "deskhand-commit-*"))
	if err != nil || len(left) > 0 {
		t.Fatalf("left in the git directory: got %q, %v, want nothing", left, err)
	}
}

// A hook runs as it would for the person: git within it knows patterns, and letters are the person's.
func TestHookRunsInThePersonsEnvironment(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	b := set(t)
	b.hook("pre-commit", "git diff --cached --name-only -- '*.sh' >../found; locale charmap >>../found 2>&1; echo \"$LC_ALL\" >>../found")
	b.leave("total.sh", "changed\n", "new.txt", "new\n")
	b.committed(landing.CommitRequest{Paths: []string{"total.sh", "new.txt"}, Message: "m"})
	if got, _ := os.ReadFile(filepath.Join(b.root, "found")); string(got) != "total.sh\nUTF-8\n\n" {
		t.Fatalf("what the hook found: got %q, want the script alone and UTF-8", got)
	}
}

func TestCommitHasWhatAHookAdds(t *testing.T) {
	b := set(t)
	b.hook("pre-commit", "echo formatted >total.sh; git add total.sh")
	b.leave("total.sh", "changed\n")
	b.committed(landing.CommitRequest{Paths: []string{"total.sh"}, Message: "m"})
	if got := b.git(b.repo, "show", "HEAD:total.sh"); got != "formatted" {
		t.Fatalf("total.sh in the commit: got %q, want what the hook made of it", got)
	}
	if got := b.git(b.repo, "status", "--porcelain"); got != "" {
		t.Fatalf("git status: got %q, want nothing", got)
	}
}

func TestCommitRunsHooksOfAConfiguredDirectory(t *testing.T) {
	b := set(t)
	b.leave("hooks/pre-commit", "#!/bin/sh\necho ran >../ran\n", "total.sh", "changed\n")
	if err := os.Chmod(filepath.Join(b.repo, "hooks", "pre-commit"), 0o700); err != nil { //nolint:gosec // git runs only what may be run
		t.Fatal(err)
	}
	b.git(b.repo, "config", "core.hooksPath", "hooks")
	b.committed(landing.CommitRequest{Paths: []string{"total.sh"}, Message: "m"})
	if _, err := os.Lstat(filepath.Join(b.root, "ran")); err != nil {
		t.Fatalf("the hook of core.hooksPath: got %v, want that it ran", err)
	}
}

// Files with conflicts can be there without a merge: after a stash that did not fit.
func TestCommitTakesNoFileWithConflicts(t *testing.T) {
	b := set(t)
	b.leave("total.sh", "mine\n")
	b.git(b.repo, "stash", "--quiet")
	b.leave("total.sh", "theirs\n")
	b.git(b.repo, "commit", "--quiet", "--all", "-m", "theirs")
	cmd := exec.CommandContext(t.Context(), "git", "-C", b.repo, "stash", "pop", "--quiet")
	cmd.Env = b.env()
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Fatalf("git stash pop: got %q and no error, want a conflict", out)
	}
	b.leave("new.txt", "new\n")
	same(t, "files", files(b.look()), []string{"added new.txt", "conflict total.sh"})
	_, err := b.commit(landing.CommitRequest{Paths: []string{"total.sh"}, Message: "m"})
	if got := refused(t, "Commit of a file with conflicts", err, "landing.conflict").Params["path"]; got != "total.sh" {
		t.Fatalf("path of the refusal: got %q, want total.sh", got)
	}
	b.committed(landing.CommitRequest{Paths: []string{"new.txt"}, Message: "m"})
	same(t, "files after the commit of another", files(b.look()), []string{"conflict total.sh"})
}

// Agents run git, too: a commit that is made waits for the index until the other git is done with it.
func TestIndexFollowsOnceItIsFree(t *testing.T) {
	b := set(t)
	lock := filepath.Join(b.repo, ".git", "index.lock")
	b.hook("post-commit", "touch .git/index.lock")
	b.leave("total.sh", "changed\n")
	over := make(chan error, 1)
	head := b.look().Head
	go func() {
		_, err := b.Commit(t.Context(), id, landing.CommitRequest{Head: head, Paths: []string{"total.sh"}, Message: "m"})
		over <- err
	}()
	for b.read(filepath.Dir(lock), "index.lock") == "absent" { // the hook comes after the commit
		select {
		case err := <-over:
			t.Fatalf("Commit: got %v before the hook had the index", err)
		case <-time.After(time.Millisecond):
		}
	}
	if b.git(b.repo, "rev-parse", "HEAD") == head {
		t.Fatal("HEAD: got the commit before, want a new one")
	}
	b.look() // git after git looks at the repository, and the commit still waits
	if err := os.Remove(lock); err != nil {
		t.Fatal(err)
	}
	if err := <-over; err != nil {
		t.Fatalf("Commit: got error %v, want none", err)
	}
	if got := b.git(b.repo, "status", "--porcelain"); got != "" {
		t.Fatalf("git status: got %q, want nothing", got)
	}
}

func TestCommitIsToldWhereTheIndexStaysLocked(t *testing.T) {
	b := set(t, func(d *landing.Deps) { d.IndexWait = time.Nanosecond })
	b.hook("post-commit", "touch .git/index.lock")
	b.leave("total.sh", "changed\n")
	_, err := b.commit(landing.CommitRequest{Paths: []string{"total.sh"}, Message: "m"})
	if got, want := refused(t, "Commit while another git has the index", err, "landing.index").Params["commit"], b.git(b.repo, "rev-parse", "HEAD"); got != want {
		t.Fatalf("commit of the refusal: got %q, want %q", got, want)
	}
}

func TestAmendReplacesACommitThatNobodyElseHas(t *testing.T) {
	b := set(t)
	b.git(b.root, "init", "--quiet", "--bare", "origin.git")
	b.git(b.repo, "remote", "add", "origin", "../origin.git")
	b.leave("total.sh", "changed\n")
	b.committed(landing.CommitRequest{Paths: []string{"total.sh"}, Message: "Mend it"})
	b.leave("new.txt", "new\n")
	b.committed(landing.CommitRequest{Paths: []string{"new.txt"}, Message: "Mend it well", Amend: true})
	if got := b.git(b.repo, "log", "--format=%s"); got != "Mend it well\nfirst" {
		t.Fatalf("history: got %q, want the amended commit in place of the other", got)
	}
	b.committed(landing.CommitRequest{Message: "Other words", Amend: true}) // the message alone
	b.git(b.repo, "push", "--quiet", "origin", "main")
	_, err := b.commit(landing.CommitRequest{Message: "Once more", Amend: true})
	refused(t, "Amend of a pushed commit", err, "landing.published")
}

func TestPushSendsTheBranchAndFollowsIt(t *testing.T) {
	b := set(t)
	_, err := b.Push(t.Context(), id, landing.PushRequest{})
	refused(t, "Push without a remote", err, "landing.no_remote")
	origin := filepath.Join(b.root, "origin.git")
	b.git(b.root, "init", "--quiet", "--bare", "origin.git")
	b.git(b.repo, "remote", "add", "origin", origin)
	if s := b.look(); s.Ahead != 1 || s.Upstream != "" || !slices.Equal(s.Remotes, []string{"origin"}) {
		t.Fatalf("status before a push: got %+v, want one commit ahead of no upstream", s)
	}
	got, err := b.Push(t.Context(), id, landing.PushRequest{})
	if want := (landing.Pushed{Remote: "origin", Branch: "main", Upstream: "origin/main"}); err != nil || got != want {
		t.Fatalf("Push: got %+v, %v, want %+v", got, err, want)
	}
	if s := b.look(); s.Ahead != 0 || s.Upstream != "origin/main" {
		t.Fatalf("status after a push: got %+v, want nothing ahead of origin/main", s)
	}
	// What somebody else has pushed is not replaced.
	other := filepath.Join(b.root, "other")
	b.git(b.root, "clone", "--quiet", "--branch=main", origin, other)
	b.git(other, "commit", "--quiet", "--allow-empty", "-m", "theirs")
	b.git(other, "push", "--quiet")
	b.git(b.repo, "commit", "--quiet", "--allow-empty", "-m", "mine")
	_, err = b.Push(t.Context(), id, landing.PushRequest{})
	refused(t, "Push over the commit of another", err, "landing.rejected")
	if got := b.git(origin, "log", "-1", "--format=%s", "main"); got != "theirs" {
		t.Fatalf("the remote after a refused push: got %q, want the commit of the other", got)
	}
	// What a hook of the remote says is told.
	b.git(b.repo, "switch", "--quiet", "-c", "side")
	deny := filepath.Join(origin, "hooks", "pre-receive")
	if err := os.WriteFile(deny, []byte("#!/bin/sh\necho 'only on Mondays, hunter2' >&2\nexit 1\n"), 0o700); err != nil { //nolint:gosec // git runs only what may be run
		t.Fatal(err)
	}
	_, err = b.Push(t.Context(), id, landing.PushRequest{})
	detail := refused(t, "Push that the remote declines", err, "landing.failed").Params["detail"]
	if !strings.Contains(detail, "only on Mondays, •••") || !strings.Contains(detail, "pre-receive hook declined") {
		t.Fatalf("detail: got %q, want the words of the remote's hook without the secret", detail)
	}
}

func TestPushStartsNoProgramOfTheRepository(t *testing.T) {
	b := set(t)
	b.git(b.repo, "remote", "add", "origin", "ext::sh -c touch% ran% ")
	_, err := b.Push(t.Context(), id, landing.PushRequest{})
	refused(t, "Push to an address that is a command", err, "landing.programs")
	b.git(b.repo, "remote", "set-url", "origin", "../origin.git")
	b.git(b.root, "init", "--quiet", "--bare", "origin.git")
	b.git(b.repo, "config", "remote.origin.receivepack", "touch ran; git-receive-pack")
	b.hook("pre-push", "touch ran")
	b.hooks = []string{".git/hooks/pre-push"}
	_, err = b.Push(t.Context(), id, landing.PushRequest{})
	refused(t, "Push with a hook that nobody has approved", err, "landing.hooks")
	_, err = b.Push(t.Context(), id, landing.PushRequest{NoHooks: true})
	refused(t, "Push by a program of the repository", err, "landing.programs")
	if _, err := os.Lstat(filepath.Join(b.repo, "ran")); err == nil {
		t.Fatal("a program of the repository ran")
	}
}

func TestFileReturnsBothVersions(t *testing.T) {
	b := set(t)
	b.leave("total.sh", "one\nthree\n", "new.txt", "new\n", "picture.bin", "a\x00b", "long.txt", strings.Repeat("x", 1<<20+1))
	b.git(b.repo, "mv", "old.txt", "renamed.txt")
	if err := os.Remove(filepath.Join(b.repo, "gone.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(b.repo, "link")); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"total.sh": `"one\ntwo\n" "one\nthree\n" `, "new.txt": `- "new\n" `, "gone.txt": `"gone\n" - `, "renamed.txt": `"a\nb\nc\nd\n" "a\nb\nc\nd\n" `,
		"picture.bin": "- - binary", "long.txt": "- - large", "link": `- "/etc/passwd" `,
	} {
		v, err := b.File(t.Context(), id, path, "")
		if err != nil {
			t.Fatalf("File(%q): got error %v, want none", path, err)
		}
		text := func(s *string) string {
			if s == nil {
				return "-"
			}
			return fmt.Sprintf("%q", *s)
		}
		if got := text(v.Before) + " " + text(v.After) + " " + v.Hidden; got != want {
			t.Errorf("File(%q): got %s, want %s", path, got, want)
		}
	}
	for _, path := range []string{"sub/deep.txt", "../app/total.sh", "/etc/passwd", ""} {
		_, err := b.File(t.Context(), id, path, "")
		refused(t, fmt.Sprintf("File(%q)", path), err, "landing.file")
	}
}

func TestOneCommitAtATime(t *testing.T) {
	b := set(t)
	b.hook("pre-commit", "touch ../begun; while [ ! -f ../go ]; do sleep 0.02; done")
	b.leave("total.sh", "changed\n", "new.txt", "new\n")
	head := b.look().Head
	over := make(chan error, 1)
	go func() {
		_, err := b.Commit(t.Context(), id, landing.CommitRequest{Head: head, Paths: []string{"total.sh"}, Message: "m"})
		over <- err
	}()
	for {
		if _, err := os.Lstat(filepath.Join(b.root, "begun")); err == nil {
			break
		}
		select {
		case err := <-over:
			t.Fatalf("Commit: got %v before its hook had begun", err)
		default:
		}
	}
	_, err := b.Commit(t.Context(), id, landing.CommitRequest{Head: head, Paths: []string{"new.txt"}, Message: "m"})
	refused(t, "a second Commit", err, "landing.working")
	if err := os.WriteFile(filepath.Join(b.root, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := <-over; err != nil {
		t.Fatalf("Commit: got error %v, want none", err)
	}
}

func TestCommitTakesAPartOfAFile(t *testing.T) {
	b := set(t)
	b.leave("total.sh", "zero\none\ntwo\nthree\n", "new.txt", "a\nb\n", "tool.sh", "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(b.repo, "tool.sh"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	b.git(b.repo, "mv", "old.txt", "renamed.txt")
	part := func(path, text string) landing.CommitPart {
		v, err := b.File(t.Context(), id, path, "")
		if err != nil {
			t.Fatal(err)
		}
		return landing.CommitPart{Path: path, Digest: v.Digest, Text: text}
	}
	chosen := []landing.CommitPart{part("total.sh", "one\ntwo\nthree\n"), part("new.txt", "a\n"), part("tool.sh", "#!/bin/sh\n")}
	b.committed(landing.CommitRequest{Parts: chosen, Message: "parts"})
	if got := b.git(b.repo, "show", "HEAD:total.sh") + "|" + b.git(b.repo, "show", "HEAD:new.txt") + "|" + b.git(b.repo, "ls-files", "--stage", "tool.sh")[:6]; got != "one\ntwo\nthree|a|100755" {
		t.Errorf("commit: got %q, want the texts of the parts and an executable", got)
	}
	if got := b.git(b.repo, "status", "--porcelain"); got != " M new.txt\nR  old.txt -> renamed.txt\n M total.sh" {
		t.Errorf("status after it: got %q, want what was left out, and what was staged", got)
	}
	late := part("total.sh", "one\ntwo\nthree\n")
	b.leave("total.sh", "another agent was here\n")
	for _, c := range []struct {
		what, code string
		part       landing.CommitPart
		paths      []string
	}{
		{"of a file that was written since", "landing.changed", late, nil},
		{"of a renamed file", "landing.whole", part("renamed.txt", "a\n"), nil},
		{"of a file that is chosen whole, too", "landing.whole", part("new.txt", "a\n"), []string{"new.txt"}},
		{"of a file without a change", "landing.file", landing.CommitPart{Path: "gone.txt"}, nil},
		{"of a file elsewhere", "landing.file", landing.CommitPart{Path: "../other"}, nil},
	} {
		_, err := b.commit(landing.CommitRequest{Parts: []landing.CommitPart{c.part}, Paths: c.paths, Message: "m"})
		refused(t, "Commit of a part "+c.what, err, c.code)
	}
}

// Git keeps the lines of a part as it keeps those of the whole file.
func TestPartOfAFileGoesThroughItsFilters(t *testing.T) {
	b := set(t)
	b.git(b.repo, "config", "core.autocrlf", "true")
	b.leave("windows.txt", "a\r\nb\r\n")
	v, err := b.File(t.Context(), id, "windows.txt", "")
	if err != nil {
		t.Fatal(err)
	}
	b.committed(landing.CommitRequest{Parts: []landing.CommitPart{{Path: "windows.txt", Digest: v.Digest, Text: "a\r\n"}}, Message: "part"})
	if got := b.git(b.repo, "cat-file", "blob", "HEAD:windows.txt"); got != "a" {
		t.Errorf("blob: got %q, want a line without a carriage return", got)
	}
}
