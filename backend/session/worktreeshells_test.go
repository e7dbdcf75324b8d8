package session_test

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"deskhand/backend/files"
	"deskhand/backend/host"
	"deskhand/backend/lifecycle"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/shells"
)

// A preview names sessions that are in the worktree by another path, or have it as a further directory. Their terminals there end with a
// removal, and no new one opens meanwhile.
func TestWorktreePreviewNamesOtherSessions(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no terminals")
	}
	global := filepath.Join(t.TempDir(), "gitconfig")
	t.Setenv("GIT_CONFIG_GLOBAL", global)
	within := files.Within{}
	d := openShells(t, session.Config{Files: &host.Files{Open: within.Open, Write: within.Write, Directory: within.Directory}})
	d.asRepository()
	s := d.createTree(session.New{})
	tree := s.Worktree.Path
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(tree, link); err != nil {
		t.Fatal(err)
	}
	create := func(n session.New) session.Session {
		t.Helper()
		n.Agent = "mock"
		made, err := d.Create(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	linked := create(session.New{Title: "By a link", Cwd: link})
	further := create(session.New{Title: "Further", Cwd: t.TempDir(), Directories: []string{tree}})
	preview, err := d.Worktrees().Preview(t.Context(), s.ID)
	if slices.Sort(preview.Others); err != nil || !slices.Equal(preview.Others, []string{"By a link", "Further"}) {
		t.Errorf("Preview: got others %q, %v; want By a link, Further", preview.Others, err)
	}
	d.prompt(further.ID, "question")
	r := d.request(further.ID)
	_, err = d.Worktrees().Remove(t.Context(), s.ID)
	refused(t, err, "worktree.busy")
	d.answer(r, requests.Answer{Reject: true})
	d.idle(further.ID)
	there := d.shell(further.ID, shells.NewShell{Directory: tree})
	stays := d.shell(further.ID, shells.NewShell{})

	// The removal is held in the middle, where a filter of the person's own reads the files.
	at, hold := filepath.Join(d.work, "at.log"), filepath.Join(d.work, "hold.log")
	fifo(t, hold)
	held, err := os.OpenFile(hold, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	release := sync.OnceFunc(func() { _ = held.Close() })
	defer release()
	// The pipe is opened before the test learns that the filter waits: opened after its release, it would wait for a writer that never
	// comes.
	d.git(d.work, "config", "--file", global, "filter.hold.clean",
		`case "$GIT_INDEX_FILE" in *deskhand-index) [ -d '`+at+`' ] || { exec 3<'`+hold+`'; mkdir '`+at+`'; cat <&3 >/dev/null; };; esac; cat`)
	d.writeTo(tree, ".gitattributes", "*.txt filter=hold\n")
	d.writeTo(tree, "new.txt", "new\n")
	done := make(chan error, 1)
	go func() {
		_, err := d.Worktrees().Remove(t.Context(), s.ID)
		done <- err
	}()
	d.until("it is being removed", func() bool { _, err := os.Lstat(at); return err == nil })
	for id, n := range map[string]shells.NewShell{s.ID: {}, linked.ID: {}, further.ID: {Directory: tree}} {
		_, err := d.Shells().Open(t.Context(), id, n)
		refused(t, err, "worktree.working")
	}
	release()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, sh := range d.shells(further.ID) {
		if sh.Running != (sh.ID == stays.ID) {
			t.Errorf("%+v; the one that was there is %s", sh, there.ID)
		}
	}
}

// A removal that is refused ends nothing: every check that reads the files comes before the agents and terminals end.
func TestWorktreeRemovalThatIsRefusedEndsNothing(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("there are no terminals")
	}
	d := openShells(t, session.Config{})
	d.asRepository()
	s := d.createTree(session.New{})
	d.ready(s.ID)
	d.shell(s.ID, shells.NewShell{})
	d.writeTo(s.Cwd, ".gitattributes", "*.nb text\n")
	d.writeTo(s.Cwd, "book.nb", "in\r\nOUT precious\n")
	_, err := d.Worktrees().Remove(t.Context(), s.ID)
	refused(t, err, "worktree.filter")
	if list := d.shells(s.ID); len(list) != 1 || !list[0].Running || d.get(s.ID).Phase != lifecycle.Ready {
		t.Errorf("after a refused Remove: got terminals %+v, phase %s; want the terminal running and the session ready", list, d.get(s.ID).Phase)
	}
	if now := d.get(s.ID).Worktree; now.State != "ready" {
		t.Errorf("worktree after a refused Remove: got %+v, want it ready", now)
	}
}
