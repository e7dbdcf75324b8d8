package session_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"deskhand/backend/session"
	"deskhand/backend/testkit"
	"deskhand/backend/workspace"
)

// refHeld makes Deskhand's git wait before it writes a ref of the desk's repository, until the returned function is called.
func (d *desk) refHeld(ref string) (letGo func()) {
	d.t.Helper()
	d.git(d.work, "config", "core.filesRefLockTimeout", "-1")
	lock := filepath.Join(d.work, ".git", "refs", filepath.FromSlash(ref)+".lock")
	if err := errors.Join(os.MkdirAll(filepath.Dir(lock), 0o700), os.WriteFile(lock, nil, 0o600)); err != nil {
		d.t.Fatal(err)
	}
	return func() {
		if err := os.Remove(lock); err != nil {
			d.t.Error(err)
		}
	}
}

// stateOf returns the stored state of a session's worktree, and its repository.
func (d *desk) stateOf(id string) (state, main string) {
	d.t.Helper()
	err := d.db.Read().QueryRowContext(d.t.Context(), `SELECT state, main FROM worktree WHERE id = ?`, id).Scan(&state, &main)
	if err != nil {
		d.t.Fatal(err)
	}
	return state, main
}

// untilStored waits until the only worktree has a state.
func (d *desk) untilStored(state string) {
	d.t.Helper()
	late := time.After(testkit.Limit)
	for {
		var n int
		if err := d.db.Read().QueryRowContext(d.t.Context(), `SELECT count(*) FROM worktree WHERE state = ?`, state).Scan(&n); err != nil {
			d.t.Fatal(err)
		}
		if n == 1 {
			return
		}
		select {
		case <-late:
			d.t.Fatalf("it is never %s", state)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// relinksWhile relinks a workspace while a change of a worktree waits, lets the change go on, and fails the test unless both succeed.
func (d *desk) relinksWhile(id, to string, letGo func(), other <-chan error) {
	d.t.Helper()
	relinked := make(chan error, 1)
	go func() {
		_, err := freed(func() (workspace.KnownWorkspace, error) { return d.Workspaces().Relink(d.t.Context(), id, to) })
		relinked <- err
	}()
	var err error
	over := false
	select {
	case err = <-relinked:
		over = true
	case <-time.After(300 * time.Millisecond): // a longer wait proves nothing more
	}
	letGo()
	if !over {
		err = <-relinked
	}
	if err := errors.Join(err, <-other); err != nil {
		d.t.Fatal(err)
	}
}

// freed repeats a call that is refused because it takes longer than a person waits, as on a busy machine.
func freed[T any](call func() (T, error)) (T, error) {
	for {
		got, err := call()
		var refused *session.RefusedError
		if !errors.As(err, &refused) || refused.Code != "worktree.working" {
			return got, err
		}
	}
}

// linked makes another name of the desk's repository by a link, and returns it.
func (d *desk) linked() string {
	d.t.Helper()
	moved := filepath.Join(filepath.Dir(d.work), "moved")
	if err := os.Symlink(d.work, moved); err != nil {
		d.t.Skip("there are no links: ", err)
	}
	return moved
}

// movedTo moves the desk's repository to the path of its other name.
func (d *desk) movedTo(moved string) {
	d.t.Helper()
	if err := errors.Join(os.Remove(moved), os.Rename(d.work, moved)); err != nil {
		d.t.Fatal(err)
	}
}

// A repository moves while a worktree of it is removed: neither overwrites the other's changes, and the worktree can be restored.
func TestWorktreeRemovalWhileRepositoryMoves(t *testing.T) {
	t.Parallel()
	d, own, s := beside(t, "")
	d.writeTo(s.Cwd, "new.txt", "new\n")
	letGo := d.refHeld("deskhand/kept/" + s.ID)
	removed := make(chan error, 1)
	go func() {
		_, err := d.Worktrees().Remove(d.t.Context(), s.ID)
		removed <- err
	}()
	d.untilStored("removing")
	moved := d.linked()
	d.relinksWhile(own.Workspace.ID, moved, letGo, removed)
	if state, main := d.stateOf(s.ID); state != "removed" || main != moved {
		t.Errorf("%s of %s", state, main)
	}
	d.movedTo(moved)
	if back, err := d.restoreTree(t.Context(), s.ID); err != nil || back.Worktree.Repository != moved || d.textAt(s.Cwd, "new.txt") != "new\n" {
		t.Errorf("Restore after the repository moved: got %+v, %v; want repository %s and new.txt", back.Worktree, err, moved)
	}
}

// A repository moves while a worktree of it is made: the new worktree knows where its repository is.
func TestWorktreeCreationWhileRepositoryMoves(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	d.asRepository()
	own := d.create()
	d.ready(own.ID)
	letGo := d.refHeld("heads/deskhand/held")
	made, id := make(chan error, 1), ""
	go func() {
		s, err := d.Create(d.t.Context(), session.New{Agent: "mock", Cwd: d.work, Worktree: true, Branch: "deskhand/held"})
		id = s.ID
		made <- err
	}()
	d.untilStored("making")
	moved := d.linked()
	d.relinksWhile(own.Workspace.ID, moved, letGo, made)
	if state, main := d.stateOf(id); state != "ready" || main != moved {
		t.Errorf("%s of %s", state, main)
	}
}

// A relink that is refused because a worktree is busy moves nothing.
func TestRelinkIsRefusedWhileWorktreeIsBusy(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	d.asRepository()
	own := d.create()
	d.ready(own.ID)
	letGo := d.refHeld("heads/deskhand/held")
	made := make(chan error, 1)
	go func() {
		_, err := d.Create(d.t.Context(), session.New{Agent: "mock", Cwd: d.work, Worktree: true, Branch: "deskhand/held"})
		made <- err
	}()
	d.untilStored("making")
	_, err := d.Workspaces().Relink(t.Context(), own.Workspace.ID, d.linked())
	refused(t, err, "worktree.working")
	letGo()
	if err := <-made; err != nil {
		t.Fatal(err)
	}
	if now := d.get(own.ID); now.Cwd != d.work {
		t.Errorf("it works in %s", now.Cwd)
	}
}

// A caller that goes away leaves no row of a worktree that could not be made, which the next start would take for half made.
func TestWorktreeRowGoesWithItsCaller(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	d.asRepository()
	letGo := d.refHeld("heads/deskhand/held")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	made := make(chan error, 1)
	go func() {
		_, err := d.Create(ctx, session.New{Agent: "mock", Cwd: d.work, Worktree: true, Branch: "deskhand/held"})
		made <- err
	}()
	d.untilStored("making")
	cancel()
	// Somebody else has made the branch at the same time.
	d.writeTo(filepath.Join(d.work, ".git", "refs", "heads", "deskhand"), "held", d.git(d.work, "rev-parse", "HEAD")+"\n")
	letGo()
	if err := <-made; err == nil {
		t.Fatal("it is made")
	}
	var rows int
	if err := d.db.Read().QueryRowContext(t.Context(), `SELECT count(*) FROM worktree`).Scan(&rows); err != nil || rows != 0 {
		t.Errorf("%d rows, %v", rows, err)
	}
}

// A relink whose caller goes away still moves all worktrees of the repository.
func TestRelinkMovesWorktreesThoughCallerGoes(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no pipes among files")
	}
	t.Parallel()
	d := open(t, t.TempDir())
	d.asRepository()
	own := d.create()
	d.ready(own.ID)
	first, second := d.createTree(session.New{Branch: "deskhand/a"}), d.createTree(session.New{Branch: "deskhand/longer"})
	d.ready(first.ID)
	d.ready(second.ID)
	// git waits at the file by which the two halves of the first worktree find each other.
	record := filepath.Join(d.git(first.Cwd, "rev-parse", "--absolute-git-dir"), "gitdir")
	text := d.textAt(filepath.Dir(record), "gitdir")
	if err := os.Remove(record); err != nil {
		t.Fatal(err)
	}
	fifo(t, record)
	moved := d.linked()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	relinked := make(chan struct{})
	go func() {
		defer close(relinked)
		_, _ = d.Workspaces().Relink(ctx, own.Workspace.ID, moved) // no caller waits for the result
	}()
	waits, err := os.OpenFile(record, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	d.writeTo(filepath.Dir(record), "again", text)
	rename(t, filepath.Join(filepath.Dir(record), "again"), record)
	if _, err := waits.WriteString(text); err != nil {
		t.Error(err)
	}
	if err := waits.Close(); err != nil {
		t.Error(err)
	}
	<-relinked
	for _, id := range []string{first.ID, second.ID} {
		if _, main := d.stateOf(id); main != moved || d.get(id).Worktree.Repository != moved {
			t.Errorf("it is of %s", main)
		}
	}
	if _, err := d.Worktrees().Remove(t.Context(), second.ID); err != nil {
		t.Error(err)
	}
}

// A session whose folder lies in a repository follows the repository when it moves, and so does a worktree of the session.
func TestWorktreeFollowsFolderOfItsRepository(t *testing.T) {
	t.Parallel()
	d, own, s := beside(t, "sub")
	moved := filepath.Join(filepath.Dir(d.work), "moved")
	rename(t, d.work, moved)
	d.relink(own.Workspace.ID, filepath.Join(moved, "sub"))
	if now := d.get(s.ID); now.Worktree == nil || now.Worktree.Repository != moved || d.git(now.Cwd, "rev-parse", "HEAD") != now.Worktree.Base {
		t.Fatalf("worktree after its repository moved: got %+v, want repository %s at its base", now.Worktree, moved)
	}
	from := filepath.Dir(s.Worktree.Path)
	to := filepath.Join(moved+".worktrees", filepath.Base(s.Worktree.Path))
	rename(t, from, filepath.Dir(to))
	d.relink(s.Workspace.ID, filepath.Join(to, "sub"))
	if now := d.get(s.ID); now.Worktree == nil || now.Worktree.Path != to || now.Worktree.From != filepath.Join(moved, "sub") {
		t.Fatalf("worktree after it moved: got %+v, want %s from the folder sub of %s", now.Worktree, to, moved)
	}
	if removed, err := d.Worktrees().Remove(t.Context(), s.ID); err != nil || removed.Path != to {
		t.Errorf("Remove: got %+v, %v; want path %s", removed, err, to)
	}
}

// A relink of a folder that was moved out of its repository does not move the repository, whose other sessions are missing for now.
func TestRelinkOfFolderLeavesRepository(t *testing.T) {
	t.Parallel()
	d, own, s := beside(t, "sub")
	to := filepath.Join(directory(t, d.dir, "elsewhere"), "sub")
	rename(t, own.Cwd, to)
	rename(t, d.work, d.work+"-unplugged")
	d.relink(own.Workspace.ID, to)
	if _, main := d.stateOf(s.ID); main != d.work || d.get(s.ID).Worktree.Repository != d.work {
		t.Errorf("it is in %s", main)
	}
	if now := d.get(own.ID); now.Cwd != to {
		t.Errorf("it works in %s", now.Cwd)
	}
}

// After a kill in a move, in which the new paths were stored and git was not told, either half of a worktree may have moved: the next start
// repairs both.
func TestWorktreeAfterKillInMove(t *testing.T) {
	t.Parallel()
	d, s := withTree(t)
	d.ready(s.ID)
	d.writeTo(s.Cwd, "new.txt", "new\n")
	moved, tree := filepath.Join(filepath.Dir(d.work), "moved"), s.Cwd+"-moved"
	rename(t, d.work, moved)
	d.store(`UPDATE worktree SET main = ?, repository = ?`, moved, moved)
	d.work = moved
	d = d.again()
	if preview, err := d.Worktrees().Preview(t.Context(), s.ID); err != nil || preview.ChangedTotal != 1 {
		t.Fatalf("Preview: got %+v, %v; want 1 changed", preview, err)
	}
	rename(t, s.Cwd, tree)
	d.store(`UPDATE worktree SET path = ?`, tree)
	d.store(`UPDATE workspace SET path = ?`, tree)
	d.store(`UPDATE session SET cwd = ?`, tree)
	d = d.again()
	if removed, err := d.Worktrees().Remove(t.Context(), s.ID); err != nil || removed.Path != tree || removed.Kept == nil {
		t.Errorf("Remove: got %+v, %v; want path %s with its work kept", removed, err, tree)
	}
	if list := d.git(moved, "worktree", "list"); strings.Contains(list, s.Cwd) {
		t.Error(list)
	}
}
