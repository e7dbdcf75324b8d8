package session_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/lifecycle"
	"deskhand/backend/requests"
	"deskhand/backend/session"
)

// asRepository makes the directory of a desk a repository with one commit.
func (d *desk) asRepository() {
	d.t.Helper()
	var err error
	if d.work, err = filepath.EvalSymlinks(d.work); err != nil {
		d.t.Fatal(err)
	}
	d.leave("code.go", "one\n", "sub/deep.txt", "deep\n", ".gitignore", "*.log\n")
	d.git(d.work, "init", "--quiet", "--initial-branch=main")
	d.git(d.work, "add", "--all")
	d.git(d.work, "commit", "--quiet", "-m", "first")
}

// git runs git as a person would, and returns its output.
func (d *desk) git(dir string, args ...string) string {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@localhost",
		"GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@localhost")
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func (d *desk) createTree(n session.New) session.Session {
	d.t.Helper()
	n.Agent, n.Worktree = "mock", true
	if n.Cwd == "" {
		n.Cwd = d.work
	}
	s, err := d.Create(d.t.Context(), n)
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// withTree opens a desk with a repository, and a session in a worktree of its own.
func withTree(t *testing.T) (*desk, session.Session) {
	t.Helper()
	d := open(t, t.TempDir())
	d.asRepository()
	return d, d.createTree(session.New{})
}

// beside makes two sessions ready in a folder of the repository: one in the folder itself, and one in a worktree.
func beside(t *testing.T, folder string) (d *desk, own, tree session.Session) {
	t.Helper()
	d = open(t, t.TempDir())
	d.asRepository()
	at := filepath.Join(d.work, folder)
	own = d.in("mock", at)
	tree = d.createTree(session.New{Cwd: at})
	d.ready(tree.ID)
	d.ready(own.ID)
	return d, own, tree
}

// restoreTree restores the worktree of a session, and returns the session.
func (d *desk) restoreTree(ctx context.Context, id string) (session.Session, error) {
	d.t.Helper()
	if err := d.Worktrees().Restore(ctx, id); err != nil {
		return session.Session{}, err
	}
	return d.Get(ctx, id)
}

func (d *desk) writeTo(dir, name, text string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) textAt(dir, name string) string {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return "(gone)"
	}
	return string(data)
}

// A worktree is made on a branch of its own, removed with uncommitted work kept, and restored.
func TestWorktreeIsMadeRemovedAndRestored(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	d.asRepository()
	plan, err := d.Worktrees().Plan(t.Context(), filepath.Join(d.work, "sub"), "Fix the login, please! It is broken since yesterday", "")
	if err != nil || plan.Repository != d.work || plan.On != "main" || plan.Changed != 0 || !strings.HasPrefix(plan.Branch, "deskhand/fix-the-login-please-it-is-") {
		t.Fatalf("Plan: got %+v, %v; want a branch named after the title on main of %s, nothing changed", plan, err, d.work)
	}
	s := d.createTree(session.New{Cwd: filepath.Join(d.work, "sub"), Branch: plan.Branch})
	w := s.Worktree
	if w == nil || w.State != "ready" || w.Branch != plan.Branch || w.Path != plan.Path || s.Cwd != plan.Cwd || w.From != filepath.Join(d.work, "sub") || w.Repository != d.work || w.Base != plan.Base {
		t.Fatalf("Create with a worktree: got %+v, want it ready as planned: %+v", s, plan)
	}
	if filepath.Dir(w.Path) != d.work+".worktrees" || d.git(s.Cwd, "branch", "--show-current") != plan.Branch || d.textAt(s.Cwd, "deep.txt") != "deep\n" {
		t.Fatalf("worktree: got %+v, want it beside %s on %s with deep.txt", w, d.work, plan.Branch)
	}
	d.ready(s.ID)
	d.prompt(s.ID, "markdown")
	d.idle(s.ID)
	d.writeTo(w.Path, "code.go", "two\n")
	d.writeTo(w.Path, "new.txt", "new\n")
	d.writeTo(w.Path, "noise.log", "12345")

	preview, err := d.Worktrees().Preview(t.Context(), s.ID)
	if err != nil || preview.ChangedTotal != 2 || preview.IgnoredTotal != 1 || preview.IgnoredBytes != 5 || !preview.BranchStays || preview.Kept != nil || preview.Running != "" || len(preview.Others) != 0 {
		t.Fatalf("Preview: got %+v, %v; want 2 changed, 1 ignored of 5 bytes, the branch staying, nobody else there", preview, err)
	}
	if d.get(s.ID).Phase != lifecycle.Ready || d.textAt(w.Path, "noise.log") != "12345" {
		t.Error("a preview has changed something")
	}
	removed, err := d.Worktrees().Remove(t.Context(), s.ID)
	if err != nil || removed.Kept == nil || removed.Kept.Files != 2 || removed.Kept.Ref != "refs/deskhand/kept/"+s.ID {
		t.Fatalf("Remove: got %+v, %v; want 2 files kept", removed, err)
	}
	now := d.get(s.ID)
	if _, err := os.Lstat(w.Path); err == nil || now.Phase != lifecycle.Closed || now.Worktree.State != "removed" || now.Worktree.Kept.Commit != d.git(d.work, "rev-parse", removed.Kept.Ref) {
		t.Fatalf("session after Remove: got %+v, %+v; want it closed, the directory gone, the kept commit recorded", now, now.Worktree)
	}
	_, err = d.Worktrees().Remove(t.Context(), s.ID)
	refused(t, err, "worktree.removed")

	// The worktree's row and the kept work survive a restart of the program.
	dir := d.dir
	d.close()
	d = open(t, dir)
	back, err := d.restoreTree(t.Context(), s.ID)
	if err != nil || back.Worktree.State != "ready" || back.Worktree.Kept != nil {
		t.Fatalf("Restore after reopening: got %+v, %v; want it ready with nothing kept", back.Worktree, err)
	}
	if d.textAt(w.Path, "code.go")+d.textAt(w.Path, "new.txt")+d.textAt(w.Path, "noise.log") != "two\nnew\n(gone)" {
		t.Error("it is not as it was")
	}
	_, err = d.restoreTree(t.Context(), s.ID)
	refused(t, err, "worktree.there")
	d.prompt(s.ID, "markdown")
	d.idle(s.ID)
}

// A worktree without work is removed with its branch, and can be restored.
func TestWorktreeWithoutWorkTakesItsBranchAlong(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	d.asRepository()
	s := d.createTree(session.New{Title: "Nothing"})
	d.ready(s.ID)
	removed, err := d.Worktrees().Remove(t.Context(), s.ID)
	if err != nil || removed.BranchStays || removed.Kept != nil || d.git(d.work, "branch", "--list", "deskhand/*") != "" {
		t.Fatalf("Remove without work: got %+v, %v; want nothing kept and the branch gone", removed, err)
	}
	back, err := d.restoreTree(t.Context(), s.ID)
	if err != nil || d.git(back.Cwd, "branch", "--show-current") != s.Worktree.Branch {
		t.Fatalf("Restore: got %+v, %v; want branch %s", back, err, s.Worktree.Branch)
	}
	// A person removes the worktree by hand.
	d.git(d.work, "worktree", "remove", "--force", back.Worktree.Path)
	if now := d.get(s.ID); now.Worktree.State != "missing" || !now.Workspace.Missing {
		t.Errorf("worktree removed by hand: got %+v, want it missing", now.Worktree)
	}
	if back, err = d.restoreTree(t.Context(), s.ID); err != nil || back.Worktree.State != "ready" {
		t.Fatalf("Restore of a missing worktree: got %+v, %v; want it ready", back, err)
	}
}

// A worktree is not removed while an agent works in it: the agent of its own session, or of another session in the same directory.
func TestWorktreeIsNotRemovedWhileAgentWorks(t *testing.T) {
	t.Parallel()
	d, s := withTree(t)
	other, err := d.Create(t.Context(), session.New{Agent: "mock", Cwd: s.Cwd, Title: "The other"})
	if err != nil || other.Worktree == nil || other.Worktree.Path != s.Worktree.Path {
		t.Fatalf("Create in a worktree: got %+v, %v; want the worktree %s shared", other, err, s.Worktree.Path)
	}
	d.prompt(other.ID, "question")
	r := d.request(other.ID)
	preview, err := d.Worktrees().Preview(t.Context(), s.ID)
	if err != nil || preview.Running != "The other" || len(preview.Others) != 1 {
		t.Errorf("Preview beside a running turn: got %+v, %v; want it to name The other", preview, err)
	}
	_, err = d.Worktrees().Remove(t.Context(), s.ID)
	refused(t, err, "worktree.busy")
	if now := d.get(s.ID); now.Worktree.State != "ready" || d.textAt(s.Cwd, "code.go") != "one\n" {
		t.Errorf("worktree after a refused Remove: got %+v, want it ready and untouched", now.Worktree)
	}
	d.answer(r, requests.Answer{Reject: true})
	d.idle(other.ID)
	if _, err = d.Worktrees().Remove(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if now := d.get(other.ID); now.Worktree.State != "removed" || now.Phase != lifecycle.Closed {
		t.Errorf("other session after Remove: got %+v, want it closed, its worktree removed", now)
	}
	// A prompt there fails as in a missing directory, and restoring the worktree helps both sessions.
	if _, err = d.restoreTree(t.Context(), other.ID); err != nil || d.get(s.ID).Worktree.State != "ready" {
		t.Fatalf("Restore by the other session: got %v, worktree of the first %+v; want it ready for both", err, d.get(s.ID).Worktree)
	}
}

// A worktree that cannot be made is refused with the reason, and neither a session nor a branch is made.
func TestWorktreeIsRefusedWithReason(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	make := func(n session.New) error {
		n.Agent, n.Worktree = "mock", true
		_, err := d.Create(t.Context(), n)
		return err
	}
	_, plan := d.Worktrees().Plan(t.Context(), d.work, "x", "")
	refused(t, plan, "worktree.no_repository")
	refused(t, make(session.New{Cwd: d.work}), "worktree.no_repository")
	d.git(d.work, "init", "--quiet")
	refused(t, make(session.New{Cwd: d.work}), "worktree.no_commit")
	d.asRepository()
	d.leave("uncommitted/x", "x")
	refused(t, make(session.New{Cwd: filepath.Join(d.work, "uncommitted")}), "worktree.subdirectory")
	refused(t, make(session.New{Cwd: d.work, Branch: "a..b"}), "worktree.branch_name")
	d.git(d.work, "branch", "taken")
	refused(t, make(session.New{Cwd: d.work, Branch: "taken"}), "worktree.branch_taken")
	refused(t, make(session.New{Cwd: d.work, Place: "elsewhere"}), "worktree.elsewhere")
	d.git(d.work, "config", "filter.own.smudge", "touch "+filepath.Join(d.work, "ran")+"; cat")
	refused(t, make(session.New{Cwd: d.work}), "worktree.programs")
	if _, err := exec.LookPath("git-lfs"); err == nil {
		return
	}
	d.git(d.work, "config", "--unset", "filter.own.smudge")
	d.leave(".gitattributes", "*.bin filter=lfs -text\n", "m.bin", "version https://git-lfs.github.com/spec/v1\n")
	d.git(d.work, "add", "--all")
	d.git(d.work, "commit", "--quiet", "-m", "large")
	d.git(d.work, "config", "filter.lfs.process", "git-lfs filter-process")
	d.git(d.work, "config", "filter.lfs.required", "true")
	err := make(session.New{Cwd: d.work})
	refused(t, err, "worktree.filter_missing")
	if refused, is := errors.AsType[*session.RefusedError](err); !is || refused.Params["program"] != "git-lfs" || refused.Params["setting"] != "filter.lfs.process" {
		t.Errorf("worktree without git-lfs: got %+v, want git-lfs and filter.lfs.process named", err)
	}
	page, err := d.List(t.Context(), session.Which{}, "", 10)
	if _, left := os.Lstat(d.work + ".worktrees"); err != nil || len(page.Items) != 0 || left == nil {
		t.Errorf("after refused worktrees: got sessions %+v, %v; want none, and no directory of worktrees", page, err)
	}
	s := d.create()
	_, err = d.Worktrees().Preview(t.Context(), s.ID)
	refused(t, err, "worktree.none")
}

// The worktree of a session that cannot be stored is removed, unless somebody has put files into it meanwhile.
func TestWorktreeOfUnwrittenSessionIsRemoved(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	d.asRepository()
	d.store(`CREATE TRIGGER never BEFORE INSERT ON session BEGIN SELECT raise(ABORT, 'no room'); END`)
	_, err := d.Create(t.Context(), session.New{Agent: "mock", Cwd: d.work, Worktree: true})
	if !errors.Is(err, session.ErrStorage) {
		t.Fatalf("Create without room for the record = %v, want ErrStorage", err)
	}
	var rows int
	if err := d.db.Read().QueryRowContext(t.Context(), `SELECT count(*) FROM worktree`).Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows, %v", rows, err)
	}
	if _, err := os.Lstat(d.work + ".worktrees"); err == nil || d.git(d.work, "branch", "--list", "deskhand/*") != "" {
		t.Error("something is left")
	}
	d.store(`DROP TRIGGER never`)
	if s := d.createTree(session.New{}); s.Worktree.State != "ready" {
		t.Errorf("next worktree: got %+v, want it ready", s.Worktree)
	}
}

// half sets the row of a worktree to the state of a kill in the middle of a change.
func (d *desk) half(id, state, kept string) {
	d.t.Helper()
	d.store(`UPDATE worktree SET state = ?, kept = ? WHERE id = ?`, state, kept, id)
}

func (d *desk) store(statement string, args ...any) {
	d.t.Helper()
	err := d.db.Write(d.t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(d.t.Context(), statement, args...)
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) again() *desk {
	d.t.Helper()
	dir, work := d.dir, d.work
	d.close()
	d = open(d.t, dir)
	d.work = work
	return d
}

// After a kill in a removal (before the directory is moved away, and after), in a restoration and in a creation, the next start completes
// or undoes the change.
func TestWorktreeAfterKillBetweenSteps(t *testing.T) {
	t.Parallel()
	d, s := withTree(t)
	w := s.Worktree
	d.ready(s.ID)
	d.writeTo(w.Path, "new.txt", "new\n")

	d.half(s.ID, "removing", "")
	d = d.again()
	d.until("settled", func() bool { return d.get(s.ID).Worktree.State == "ready" })
	if d.textAt(w.Path, "new.txt") != "new\n" {
		t.Error("it is lost")
	}

	if _, err := d.Worktrees().Remove(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	var kept string
	if err := d.db.Read().QueryRowContext(t.Context(), `SELECT kept FROM worktree WHERE id = ?`, s.ID).Scan(&kept); err != nil {
		t.Fatal(err)
	}
	d.half(s.ID, "removing", kept)
	if err := os.MkdirAll(filepath.Join(filepath.Dir(w.Path), ".deleted-"+filepath.Base(w.Path), "rest"), 0o700); err != nil {
		t.Fatal(err)
	}
	d = d.again()
	d.until("settled", func() bool {
		_, left := os.Lstat(filepath.Dir(w.Path))
		return d.get(s.ID).Worktree.State == "removed" && left != nil
	})

	// The directory exists again, with everything except the kept work.
	d.half(s.ID, "restoring", kept)
	d.git(d.work, "worktree", "add", "--quiet", w.Path, w.Branch)
	d = d.again()
	d.until("settled", func() bool { // the worktree is free again
		_, err := d.Worktrees().Preview(t.Context(), s.ID)
		refused, is := errors.AsType[*session.RefusedError](err)
		return is && refused.Code == "worktree.removed"
	})
	if d.textAt(w.Path, "code.go") != "(gone)" {
		t.Error("what was half brought back is still there")
	}
	if back, err := d.restoreTree(t.Context(), s.ID); err != nil || d.textAt(w.Path, "new.txt") != "new\n" || back.Worktree.State != "ready" {
		t.Fatalf("Restore: got %+v, %v; want it ready with new.txt", back.Worktree, err)
	}

	// The session of the worktree was never stored.
	d.half(s.ID, "making", "")
	d.git(w.Path, "reset", "--quiet", "--hard")
	if err := os.Remove(filepath.Join(w.Path, "new.txt")); err != nil {
		t.Fatal(err)
	}
	d = d.again()
	d.until("settled", func() bool { return d.git(d.work, "branch", "--list", "deskhand/*") == "" })
	if d.get(s.ID).Worktree != nil || d.textAt(w.Path, "code.go") != "(gone)" {
		t.Error("something is left")
	}
}

// Of several sessions that want one path, one gets it. After a kill in a creation, the next start leaves the path to the session that has
// it.
func TestWorktreePathGoesToOneSession(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	d.asRepository()
	const many = 4
	made := make(chan error, many)
	for range many {
		go func() {
			_, err := d.Create(t.Context(), session.New{Agent: "mock", Cwd: d.work, Worktree: true, Branch: "deskhand/same"})
			made <- err
		}()
	}
	fine := 0
	for range many {
		if err := <-made; err == nil {
			fine++
		} else if refused, is := errors.AsType[*session.RefusedError](err); !is || refused.Code != "worktree.exists" && refused.Code != "worktree.branch_taken" {
			t.Errorf("Create of the same branch = %v, want worktree.exists or worktree.branch_taken", err)
		}
	}
	var rows int
	if err := d.db.Read().QueryRowContext(t.Context(), `SELECT count(*) FROM worktree`).Scan(&rows); err != nil || fine != 1 || rows != 1 {
		t.Fatalf("%d were made, %d rows, %v", fine, rows, err)
	}
	path, spelled := d.work+".worktrees/same", d.work+".link"
	d.writeTo(path, "noise.log", "ignored, and hours of work")
	if err := os.Symlink(d.work+".worktrees", spelled); err != nil {
		t.Fatal(err)
	}
	d.store(`INSERT INTO worktree (id, main, repository, path, branch, base, state, kept, made_at)
		SELECT '0-cut-off', main, repository, ?, branch, base, 'making', '', made_at FROM worktree`, filepath.Join(spelled, "same"))
	d = d.again()
	d.until("settled", func() bool {
		var left int
		err := d.db.Read().QueryRowContext(t.Context(), `SELECT count(*) FROM worktree WHERE state = 'making'`).Scan(&left)
		return err == nil && left == 0
	})
	if d.textAt(path, "noise.log") == "(gone)" || d.git(path, "branch", "--show-current") != "deskhand/same" {
		t.Error("the other's work tree is gone")
	}

	// A creation for a path or branch that exists already stores no row: after a kill a person's own worktree would be taken for a
	// half-made one.
	d.git(d.work, "branch", "taken")
	d.git(d.work, "worktree", "add", "--quiet", "--detach", d.work+".worktrees/own")
	d.store(`CREATE TRIGGER never BEFORE INSERT ON worktree BEGIN SELECT raise(ABORT, 'it is written down'); END`)
	for branch, code := range map[string]string{"taken": "worktree.branch_taken", "own": "worktree.exists", "a..b": "worktree.branch_name"} {
		_, err := d.Create(t.Context(), session.New{Agent: "mock", Cwd: d.work, Worktree: true, Branch: branch})
		refused(t, err, code)
	}
}

// A worktree whose directory was deleted by hand loses no commit: not at its removal, nor at its restoration, nor after a removal that was
// cut off.
func TestWorktreeDeletedByHandLosesNoCommit(t *testing.T) {
	t.Parallel()
	d, s := withTree(t)
	path := s.Worktree.Path
	d.ready(s.ID)
	head := ""
	detached := func(text string) {
		t.Helper()
		d.git(path, "checkout", "--quiet", "--detach")
		d.writeTo(path, "code.go", text)
		d.git(path, "commit", "--quiet", "--all", "-m", text)
		head = d.git(path, "rev-parse", "HEAD")
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
	back := func(how string) {
		t.Helper()
		if back, err := d.restoreTree(t.Context(), s.ID); err != nil || back.Worktree.State != "ready" || d.git(path, "rev-parse", "HEAD") != head {
			t.Fatalf("Restore, %s: got %+v, %v; want it ready at commit %s", how, back.Worktree, err, head)
		}
		if d.git(d.work, "for-each-ref", "--contains="+head, "refs/deskhand/kept") == "" {
			t.Errorf("%s: no ref has the commit", how)
		}
	}
	detached("removed")
	removed, err := d.Worktrees().Remove(t.Context(), s.ID)
	if err != nil || removed.Kept == nil {
		t.Fatalf("Remove with a detached commit: got %+v, %v; want it kept", removed, err)
	}
	back("removed")
	detached("brought back")
	back("brought back")
	detached("cut off")
	d.half(s.ID, "removing", "")
	d = d.again()
	d.until("settled", func() bool { return d.get(s.ID).Worktree.State == "removed" })
	if d.get(s.ID).Worktree.Kept == nil {
		t.Error("what is kept is not told")
	}
	back("cut off")
}

// An approval in a repository holds in its worktree for the same content, and for no other; it is revoked for both.
func TestTrustOfRepositoryHoldsInWorktree(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	d.asRepository()
	d.mcpFile(`{"one":` + saysEntry(t, "one") + `}`)
	d.git(d.work, "add", "--all")
	d.git(d.work, "commit", "--quiet", "-m", "second")
	found, err := d.Launch().Executables(t.Context(), d.work)
	if err != nil || len(found) != 1 {
		t.Fatalf("Executables(%s): got %+v, %v; want 1", d.work, found, err)
	}
	if err := d.Launch().Approve(t.Context(), d.work, []string{found[0].Hash}); err != nil {
		t.Fatal(err)
	}
	s := d.createTree(session.New{})
	approved := func() bool {
		t.Helper()
		found, err := d.Launch().Executables(t.Context(), s.Cwd)
		if err != nil || len(found) != 1 {
			t.Fatalf("Executables(%s): got %+v, %v; want 1", s.Cwd, found, err)
		}
		return found[0].Approved
	}
	if !approved() {
		t.Error("the same content is asked about once more")
	}
	d.ready(s.ID)
	file := filepath.Join(s.Cwd, ".sandbox-agent", "config", "mcp.json")
	before, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, []byte(`{"one":`+saysEntry(t, "other")+`}`), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if approved() {
		t.Error("another content counts as approved")
	}
	if err := errors.Join(os.WriteFile(file, before, 0o600), d.Launch().Revoke(context.WithoutCancel(t.Context()), s.Cwd, found[0].Hash)); err != nil || approved() {
		t.Errorf("it is approved all the same: %v", err)
	}
	if err := d.Launch().Approve(t.Context(), d.work, []string{found[0].Hash}); err != nil || !approved() {
		t.Fatalf("it is not approved again: %v", err)
	}
	if err := d.Launch().RevokeAll(t.Context(), s.Cwd); err != nil || approved() {
		t.Errorf("it is approved although all is taken back: %v", err)
	}
}

// A worktree and its repository find each other when either is moved.
func TestWorktreeFollowsItsRepository(t *testing.T) {
	t.Parallel()
	d, own, s := beside(t, "")
	moved := filepath.Join(filepath.Dir(d.work), "moved")
	if err := os.Rename(d.work, moved); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Workspaces().Relink(t.Context(), own.Workspace.ID, moved); err != nil {
		t.Fatal(err)
	}
	if now := d.get(s.ID); now.Worktree.Repository != moved || d.git(now.Cwd, "rev-parse", "HEAD") != now.Worktree.Base {
		t.Errorf("worktree after its repository moved: got %+v, want repository %s at its base", now.Worktree, moved)
	}
	tree := filepath.Join(filepath.Dir(d.work), "tree")
	if err := os.Rename(s.Cwd, tree); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Workspaces().Relink(t.Context(), s.Workspace.ID, tree); err != nil {
		t.Fatal(err)
	}
	if removed, err := d.Worktrees().Remove(t.Context(), s.ID); err != nil || removed.Path != tree {
		t.Errorf("Remove after the worktree moved: got %+v, %v; want path %s", removed, err, tree)
	}
}

// When a repository is renamed and cloned anew at its path, a worktree made there belongs to the clone, although the clone has no session
// of its own yet: work that its removal keeps is restored from the clone.
func TestWorktreeOfFreshCloneIsTheClones(t *testing.T) {
	t.Parallel()
	d, own, tree := beside(t, "")
	recognizes(t, d, own.Workspace)
	renamed := d.work + "-old"
	rename(t, d.work, renamed)
	d.git(d.dir, "clone", "--quiet", renamed, d.work)
	theirs, removed := d.createTree(session.New{}), d.createTree(session.New{Cwd: filepath.Join(d.work, "sub")})
	for _, s := range []session.Session{theirs, removed} {
		d.ready(s.ID)
	}
	d.writeTo(removed.Worktree.Path, "draft.txt", "draft\n")
	if _, err := d.Worktrees().Remove(t.Context(), removed.ID); err != nil {
		t.Fatal(err)
	}
	d.in("mock", d.work)
	if _, err := d.restoreTree(t.Context(), removed.ID); err != nil || d.textAt(removed.Worktree.Path, "draft.txt") != "draft\n" {
		t.Errorf("Restore after a clone took the repository's place: got %v, draft.txt %q; want what was kept", err, d.textAt(removed.Worktree.Path, "draft.txt"))
	}
	for id, want := range map[string]string{theirs.ID: d.work, removed.ID: d.work, tree.ID: renamed} {
		now := d.get(id)
		if now.Worktree.Repository != want || !strings.HasPrefix(d.git(now.Cwd, "rev-parse", "--git-common-dir"), want+"/") {
			t.Errorf("it is of %s, not of %s", now.Worktree.Repository, want)
		}
	}
	if now := d.get(own.ID); now.Cwd != renamed {
		t.Errorf("the old one is at %s", now.Cwd)
	}
}

// When a directory that was at the path of a new worktree has moved, its sessions follow it.
func TestWorktreeTakesNoWorkspaceOver(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	d.asRepository()
	path, renamed := directory(t, d.work+".worktrees", "fix"), filepath.Join(d.work+".worktrees", "fix-old")
	top, sub := d.in("mock", path), d.in("mock", directory(t, path, "sub"))
	recognizes(t, d, top.Workspace)
	rename(t, path, renamed)
	s := d.createTree(session.New{Cwd: filepath.Join(d.work, "sub"), Branch: "fix"})
	plain := d.in("mock", path)
	for id, want := range map[string]string{s.ID: filepath.Join(path, "sub"), plain.ID: path, top.ID: renamed, sub.ID: filepath.Join(renamed, "sub")} {
		if now := d.get(id); now.Cwd != want {
			t.Errorf("it is at %s, not %s", now.Cwd, want)
		}
	}
}

func TestWorktreeBeginsAtTheChosenBase(t *testing.T) {
	d := open(t, t.TempDir())
	d.asRepository()
	d.git(d.work, "checkout", "--quiet", "-b", "release")
	d.git(d.work, "commit", "--quiet", "--allow-empty", "-m", "released")
	release := d.git(d.work, "rev-parse", "HEAD")
	d.git(d.work, "checkout", "--quiet", "main")
	for base, want := range map[string]struct{ commit, branch string }{
		"":           {d.git(d.work, "rev-parse", "main"), "main"},
		"release":    {release, "release"},
		release[:10]: {release, ""},
	} {
		s := d.createTree(session.New{Base: base})
		if head := d.git(s.Cwd, "rev-parse", "HEAD"); head != want.commit || s.Worktree.Base != want.commit || s.Worktree.BaseBranch != want.branch {
			t.Errorf("Create(base %q): got a worktree at %s with base %s of %q, want %s of %q", base, head, s.Worktree.Base, s.Worktree.BaseBranch, want.commit, want.branch)
		}
	}
	s := d.createTree(session.New{Base: "release"})
	if got, err := d.Landing().Base(t.Context(), s.ID, ""); err != nil || got.Base != "release" {
		t.Errorf("Base of a worktree that began with release: got %q, %v; want release", got.Base, err)
	}
	_, err := d.Create(t.Context(), session.New{Agent: "mock", Cwd: d.work, Worktree: true, Base: "release~1"})
	refused(t, err, "worktree.base")
	if list := d.git(d.work, "worktree", "list"); strings.Count(list, "\n") != 4 {
		t.Errorf("worktrees after a refused base: got\n%s\nwant the four that were made before", list)
	}
}
