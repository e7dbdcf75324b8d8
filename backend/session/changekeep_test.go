package session_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"deskhand/backend/files"
	"deskhand/backend/proxy"
	"deskhand/backend/session"
	"deskhand/backend/snapshot"
	"deskhand/backend/store"
)

// replacing is a desk at which something happens before the second file of a restoration is written.
func replacing(t *testing.T, dir string, second func(l *snapshot.Library)) *desk {
	t.Helper()
	var lib *snapshot.Library
	var n atomic.Int32
	lib = snapshots(t, dir, "", snapshot.Config{Replace: func(root *os.Root, name string, data []byte, mode fs.FileMode, last func() error) error {
		if n.Add(1) == 2 {
			second(lib)
		}
		return files.ReplaceIf(root, name, data, mode, last)
	}})
	return openAs(t, dir, proxy.Config{}, session.Config{Snapshots: lib})
}

// TestARestorationOutlivesItsClient: who has asked for it is gone when half of it is done; all of it is, and can be taken back.
func TestARestorationOutlivesItsClient(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	d := replacing(t, t.TempDir(), func(*snapshot.Library) { leave() })
	d.leave("a", "1\n", "b", "1\n", "c", "1\n")
	id := d.create().ID
	turn := d.during(id, func() { d.leave("a", "2\n", "b", "2\n", "c", "2\n") })
	if _, err := d.RestoreTurn(ctx, id, session.RestoreTurn{Turn: turn.ID}); err != nil {
		t.Fatal(err)
	}
	wants(t, "all of it", d.read("a")+d.read("b")+d.read("c"), "1\n1\n1\n")
	c := d.looked(id, turn.ID).Changes
	if !c.Undone || c.Restoration == "" {
		t.Fatalf("%+v", c)
	}
	if _, err := d.UndoRestoration(t.Context(), id, c.Restoration); err != nil {
		t.Fatal(err)
	}
	wants(t, "taken back", d.read("a")+d.read("b")+d.read("c"), "2\n2\n2\n")
}

// TestARestorationThatBreaksOff: the program ends when half of it is done. At the next start it is told, and what was put back is taken back
// again, but for what a person has changed since.
func TestARestorationThatBreaksOff(t *testing.T) {
	dir := t.TempDir()
	ended := make(chan error, 1)
	d := replacing(t, dir, func(l *snapshot.Library) {
		go func() { ended <- l.Close() }()
		limit := time.After(30 * time.Second)
		for {
			if _, err := l.Store("probe", "/none").Take(context.WithoutCancel(t.Context())); errors.Is(err, snapshot.ErrClosed) {
				return
			}
			select {
			case <-limit:
				t.Error("it does not end")
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	d.leave("a", "1\n", "b", twenty(), "c", "1\n", "d", "1\n")
	id := d.create().ID
	turn := d.during(id, func() { d.leave("a", "2\n", "b", twenty()+"more\n", "c", "2\n", "d", "2\n") })
	d.leave("a", "by hand\n")
	_, err := d.RestoreTurn(t.Context(), id, session.RestoreTurn{Turn: turn.ID, Force: true})
	if err == nil {
		t.Fatal("it did not break off")
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	d.close()
	wants(t, "half of it", d.read("a")+d.read("b")+d.read("c")+d.read("d"), "1\n"+twenty()+"2\n2\n")

	d = openLooking(t, dir)
	c := d.looked(id, turn.ID).Changes
	if c.Undone || c.Restoration == "" {
		t.Fatalf("%+v", c)
	}
	if last := d.changes(id, session.ChangeScope{}).Restoration; last == nil || last.ID != c.Restoration || !last.Unfinished || last.Turn != turn.ID {
		t.Errorf("%+v", last)
	}
	d.leave("b", "by hand, after that\n")
	back, err := d.UndoRestoration(t.Context(), id, c.Restoration)
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "taken back", putBack(back), "a restored\nb conflict changes.edited")
	wants(t, "what the person wrote", d.read("a")+d.read("b")+d.read("c"), "by hand\nby hand, after that\n2\n")
	d.leave("b", twenty())
	if back, err = d.UndoRestoration(t.Context(), id, c.Restoration); err != nil {
		t.Fatal(err)
	}
	wants(t, "the rest", putBack(back), "b restored")
	if c := d.looked(id, turn.ID).Changes; c.Restoration != "" || d.read("b") != twenty()+"more\n" {
		t.Errorf("%+v", c)
	}
	if _, err := d.RestoreTurn(t.Context(), id, session.RestoreTurn{Turn: turn.ID, Force: true}); err != nil {
		t.Fatal(err)
	}
	wants(t, "once more", d.read("a")+d.read("b")+d.read("c")+d.read("d"), "1\n"+twenty()+"1\n1\n")
}

// TestAFileThatIsNamedTwice is put back once, and that can be taken back.
func TestAFileThatIsNamedTwice(t *testing.T) {
	d := openLooking(t, t.TempDir())
	d.leave("a", "1\n", "gone", "1\n")
	id := d.create().ID
	turn := d.during(id, func() {
		d.leave("a", "2\n")
		if err := os.Remove(filepath.Join(d.work, "gone")); err != nil {
			t.Fatal(err)
		}
	})
	done, err := d.Revert(t.Context(), id, session.RevertChanges{ChangeScope: session.ChangeScope{Turn: turn.ID}, Paths: []string{"a", "gone", "a", "gone"}})
	if err != nil || done.ID == "" {
		t.Fatalf("%+v %v", done, err)
	}
	wants(t, "put back", putBack(done), "a restored\ngone restored")
	back, err := d.UndoRestoration(t.Context(), id, done.ID)
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "taken back", putBack(back)+" "+d.read("a")+d.read("gone"), "a restored\ngone removed 2\n(gone)")
}

// TestAFileThatIsPutBackWithAnError: its folder could not be synced, but it has its new content, and there is a way back from that.
func TestAFileThatIsPutBackWithAnError(t *testing.T) {
	dir := t.TempDir()
	lib := snapshots(t, dir, "", snapshot.Config{Replace: func(root *os.Root, name string, data []byte, mode fs.FileMode, last func() error) error {
		return errors.Join(files.ReplaceIf(root, name, data, mode, last), syscall.EIO)
	}})
	d := openAs(t, dir, proxy.Config{}, session.Config{Snapshots: lib})
	d.leave("a", "1\n")
	id := d.create().ID
	turn := d.during(id, func() { d.leave("a", "2\n") })
	d.leave("a", "by hand\n")
	done, err := d.RestoreTurn(t.Context(), id, session.RestoreTurn{Turn: turn.ID, Force: true})
	if err != nil || done.ID == "" {
		t.Fatalf("%+v %v", done, err)
	}
	wants(t, "put back", putBack(done)+" "+d.read("a"), "a restored 1\n")
	if _, err := d.UndoRestoration(t.Context(), id, done.ID); err != nil {
		t.Fatal(err)
	}
	wants(t, "taken back", d.read("a"), "by hand\n")
}

// TestAHunkThatBreaksOff: what it was to become is known of a file that is only edited, too.
func TestAHunkThatBreaksOff(t *testing.T) {
	d := openLooking(t, t.TempDir())
	d.leave("a", twenty())
	id := d.create().ID
	two := strings.Replace(strings.Replace(twenty(), "line 2\n", "line two\n", 1), "line 18\n", "", 1)
	turn := d.during(id, func() { d.leave("a", two) })
	f := d.fileDiff(id, session.ChangeScope{}, "a")
	execute(t, d.db, `CREATE TRIGGER broken BEFORE UPDATE ON restoration BEGIN SELECT RAISE(ABORT, 'broken'); END`)
	_, err := d.Revert(t.Context(), id, session.RevertChanges{ChangeScope: session.ChangeScope{Turn: turn.ID}, Hunks: []session.HunkAt{{Path: "a", Hunk: f.Hunks[1].ID}}})
	if err == nil {
		t.Fatal("it was written down all the same")
	}
	execute(t, d.db, `DROP TRIGGER broken`)
	wants(t, "the file", d.read("a"), strings.Replace(twenty(), "line 2\n", "line two\n", 1))
	last := d.changes(id, session.ChangeScope{}).Restoration
	if last == nil || !last.Unfinished || last.Path != "a" || last.Turn != "" {
		t.Fatalf("%+v", last)
	}
	if _, err := d.UndoRestoration(t.Context(), id, last.ID); err != nil {
		t.Fatal(err)
	}
	wants(t, "taken back", d.read("a"), two)
	if last := d.changes(id, session.ChangeScope{}).Restoration; last != nil {
		t.Errorf("%+v", last)
	}
}

// TestAWayBackStaysUntilAllOfItIsGone: a restoration that is taken back but for a file with a conflict can be taken back again.
func TestAWayBackStaysUntilAllOfItIsGone(t *testing.T) {
	d := openLooking(t, t.TempDir())
	d.leave("a", "1\n", "b", "1\n")
	id := d.create().ID
	turn := d.during(id, func() { d.leave("a", "2\n", "b", "2\n") })
	back, err := d.RestoreTurn(t.Context(), id, session.RestoreTurn{Turn: turn.ID})
	if err != nil {
		t.Fatal(err)
	}
	d.leave("b", "by hand\n")
	some, err := d.UndoRestoration(t.Context(), id, back.ID)
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "some of it", putBack(some), "a restored\nb conflict changes.edited")
	if c := d.looked(id, turn.ID).Changes; c.Undone || c.Restoration != back.ID {
		t.Errorf("%+v", c)
	}
	d.leave("b", "1\n")
	rest, err := d.UndoRestoration(t.Context(), id, back.ID)
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "the rest", putBack(rest)+d.read("a")+d.read("b"), "a same\nb restored2\n2\n")
	_, err = d.UndoRestoration(t.Context(), id, back.ID)
	refused(t, err, "changes.unknown_undo")
}

// TestDirectoriesWithinEachOther: a session in a directory, one in a folder of it under another name, and one that has it as a further
// directory are at work in the same files.
func TestDirectoriesWithinEachOther(t *testing.T) {
	d := openLooking(t, t.TempDir())
	d.leave("sub/a", "0\n", "b", "0\n")
	alias := filepath.Join(d.dir, "alias")
	if err := os.Symlink(filepath.Join(d.work, "sub"), alias); err != nil {
		t.Fatal(err)
	}
	beside := directory(t, d.dir, "beside")
	one, two := d.create().ID, d.in("mock", alias).ID
	further, err := d.Create(t.Context(), session.New{Agent: "mock", Cwd: beside, Directories: []string{filepath.Join(d.work, "sub")}})
	if err != nil {
		t.Fatal(err)
	}
	apart := d.in("mock", directory(t, d.dir, "work-apart")).ID
	for _, other := range []string{two, further.ID} {
		first := d.prompt(one, "question")
		ask := d.request(one)
		second := d.during(other, func() { d.leave("sub/a", "of "+other+"\n") })
		alone := d.during(apart, func() {})
		_, err := d.RestoreTurn(t.Context(), one, session.RestoreTurn{Turn: first.ID, Preview: true})
		refused(t, err, "changes.turn_running")
		if other == two {
			if !second.Changes.Mixed {
				t.Errorf("%+v", second.Changes)
			}
			_, err = d.RestoreTurn(t.Context(), two, session.RestoreTurn{Turn: second.ID})
			refused(t, err, "changes.turn_running")
		}
		d.answer(ask, session.Answer{Reject: true})
		if c := d.looked(one, first.ID).Changes; !c.Mixed || alone.Changes.Mixed {
			t.Errorf("%+v %+v", c, alone.Changes)
		}
	}
	turn := d.during(one, func() { d.leave("b", "1\n") })
	if turn.Changes.Mixed {
		t.Errorf("%+v", turn.Changes)
	}
	d.prompt(further.ID, "question")
	d.request(further.ID)
	_, err = d.RestoreTurn(t.Context(), one, session.RestoreTurn{Turn: turn.ID})
	refused(t, err, "changes.turn_running")
}

// TestJoinedDirectories: a directory is moved to where another workspace was; its turns are shown and undone there, with those that come after.
func TestJoinedDirectories(t *testing.T) {
	d := openLooking(t, t.TempDir())
	d.leave("a", "1\n", "b", "1\n")
	id := d.create()
	turn := d.during(id.ID, func() { d.leave("a", "2\n") })
	to := directory(t, d.dir, "to")
	there := d.in("mock", to)
	if err := os.Remove(to); err != nil {
		t.Fatal(err)
	}
	rename(t, d.work, to)
	if w := d.relink(id.Workspace.ID, to); w.ID != there.Workspace.ID {
		t.Fatalf("%+v", w)
	}
	d.work = to
	d.during(id.ID, func() { d.leave("b", "2\n") })
	wants(t, "since the start", listed(d.changes(id.ID, session.ChangeScope{Since: "start"})), "modified a +1 -1 0/1 same\nmodified b +1 -1 0/1 same")
	back, err := d.RestoreTurn(t.Context(), id.ID, session.RestoreTurn{Turn: turn.ID})
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "put back", putBack(back)+"\n"+d.read("a"), "a restored\n1\n")
	if _, err := d.UndoRestoration(t.Context(), id.ID, back.ID); err != nil {
		t.Fatal(err)
	}
	wants(t, "taken back", d.read("a"), "2\n")
	for _, path := range []string{"a", "b"} {
		if _, err := d.Revert(t.Context(), id.ID, session.RevertChanges{ChangeScope: session.ChangeScope{Since: "start"}, Paths: []string{path}}); err != nil {
			t.Fatal(err)
		}
	}
	wants(t, "all of it", d.read("a")+d.read("b"), "1\n1\n")
}

// TestSinceTheStartIsTheAgents: what the person did between turns is no part of it; a file that both have changed says so, and a turn that
// was undone counts no more.
func TestSinceTheStartIsTheAgents(t *testing.T) {
	dir := t.TempDir()
	d := openAs(t, dir, proxy.Config{}, session.Config{Snapshots: snapshots(t, dir, "", snapshot.Config{MostFile: 1000})})
	long := strings.Repeat("long\n", 1000)
	d.leave("both", "1\n", "agents", "1\n", "persons", "1\n", "moved", twenty(), "long", long)
	id := d.create().ID
	d.during(id, func() { d.leave("both", "2\n", "agents", "2\n", "net", "nothing\n", "long", long+"1") })
	d.leave("both", "3\n", "persons", "3\n", "new", "by hand\n")
	d.during(id, func() {
		d.leave("both", "4\n", "to/moved", twenty(), "grown", long)
		for _, name := range []string{"moved", "net"} {
			if err := os.Remove(filepath.Join(d.work, name)); err != nil {
				t.Fatal(err)
			}
		}
	})
	undone := d.during(id, func() { d.leave("agents", "5\n", "undone", "5\n") })
	if _, err := d.RestoreTurn(t.Context(), id, session.RestoreTurn{Turn: undone.ID}); err != nil {
		t.Fatal(err)
	}
	d.leave("persons", "6\n")
	start := session.ChangeScope{Since: "start"}
	all := d.changes(id, start)
	wants(t, "all of it", listed(all), "modified agents +1 -1 0/1 same\nmodified both +1 -1 0/1 same\nadded grown +0 -0 0/1 other\nmodified long +0 -0 0/1 other\nrenamed to/moved +0 -0 0/1 same")
	for _, f := range all.Files {
		if f.Between != (f.Path == "both") {
			t.Errorf("%+v", f)
		}
	}
	if f := d.fileDiff(id, start, "both"); *f.Before != "1\n" || *f.After != "4\n" || len(f.Hunks) != 1 {
		t.Errorf("%+v", f)
	}
	back, err := d.Revert(t.Context(), id, session.RevertChanges{ChangeScope: start, Paths: []string{"both", "to/moved"}})
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "taken back", putBack(back)+"\n"+d.read("both")+d.read("moved"), "both restored\nmoved restored\nto/moved removed\n1\n"+twenty())
	// The next time it is made anew.
	d.during(id, func() { d.leave("both", "7\n") })
	wants(t, "the next", listed(d.changes(id, start)), "modified agents +1 -1 0/1 same\nmodified both +1 -1 0/1 same\nadded grown +0 -0 0/1 other\nmodified long +0 -0 0/1 other\nrenamed to/moved +0 -0 0/1 gone")
}

// TestAPruneHoldsUpNobody: a turn begins and ends while git removes what another directory's turns have left.
func TestAPruneHoldsUpNobody(t *testing.T) {
	dir := t.TempDir()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	tools := t.TempDir()
	begun := filepath.Join(tools, "begun")
	script := fmt.Sprintf("#!/bin/sh\ncase \" $* \" in *\" gc \"*) : > '%s'; while :; do sleep 0.02; done;; esac\nexec '%s' \"$@\"\n", begun, git)
	if err := os.WriteFile(filepath.Join(tools, "git"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	d := openAs(t, dir, proxy.Config{}, session.Config{
		Snapshots: snapshots(t, dir, tools+":/bin:/usr/bin", snapshot.Config{}), HoldPrompt: 20 * time.Second, Unattached: 50 * time.Millisecond,
	})
	one := d.create().ID
	two := d.in("mock", directory(t, d.dir, "elsewhere")).ID
	old := d.during(one, func() { d.leave("a", "1\n") })
	d.during(one, func() { d.leave("a", "2\n") })
	age(t, dir)
	execute(t, d.db, `UPDATE turn_change SET at = 1 WHERE turn = ?`, old.ID)
	await(t, "a gc", func() bool { _, err := os.Stat(begun); return err == nil })
	for _, id := range []string{two, one} {
		if c := d.during(id, func() {}).Changes; c.State != "none" {
			t.Errorf("%+v", c)
		}
	}
}

// age makes all trees as old as what nobody names may be forgotten at.
func age(t *testing.T, dir string) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "snapshots", "*", "refs", "trees", "*"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		if err := os.Chtimes(name, time.Time{}, time.Now().Add(-2*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
}

// late makes the looks at the ends of all turns missing, as they are when the program dies.
func late(t *testing.T, dir string, more ...string) {
	t.Helper()
	db, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range append(more, `UPDATE turn_change SET ended = 0, became = '', data = ''`) {
		execute(t, db, text)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
