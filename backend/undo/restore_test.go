package undo_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"deskhand/backend/files"
	"deskhand/backend/snapshot"
	"deskhand/backend/testkit"
	"deskhand/backend/undo"
)

// edited is twenty with two changes, which are two hunks.
func edited() string { return strings.Replace(onceEdited(), "line 18\n", "", 1) }

func onceEdited() string { return strings.Replace(twenty(), "line 2\n", "line two\n", 1) }

func TestHunksAndFilesAreReverted(t *testing.T) {
	f := open(t, "", config{})
	f.write("code.go", twenty(), "old.txt", "old\n")
	id := f.session()
	f.during(id, func() {})
	turn, changes := f.during(id, func() {
		f.write("code.go", edited(), "new.txt", "new\n")
		f.remove("old.txt")
	})
	if changes.State != "ready" || changes.Files != 3 || changes.Added != 2 || changes.Removed != 3 || changes.Mixed || changes.Undone {
		t.Fatalf("the turn: got %+v, want three files, 2 lines more and 3 less", changes)
	}
	of := undo.ChangeScope{Turn: turn}
	all := f.changes(id, undo.ChangeScope{})
	want(t, "the files", listed(all), "modified code.go +1 -2 0/2 same\nadded new.txt +1 -0 0/1 same\ndeleted old.txt +0 -1 0/1 same")
	if all.State != "ready" || all.Turn != turn || len(all.Turns) != 1 || all.Turns[0].ID != turn {
		t.Errorf("Changes: got %+v, want those of turn %s, the only turn with changes", all, turn)
	}
	d := f.diff(id, of, "code.go")
	if len(d.Hunks) != 2 || *d.Before != twenty() || *d.After != edited() || !d.Hunks[0].Revertable || !d.Hunks[1].Revertable {
		t.Fatalf("FileDiff(code.go): got %+v, want two hunks that can be taken back", d)
	}

	keep := undo.KeepHunks{ChangeScope: of, Hunks: []undo.HunkAt{{Path: "code.go", Hunk: d.Hunks[0].ID}, {Path: "new.txt"}}, Kept: true}
	if err := f.KeepHunks(t.Context(), id, keep); err != nil {
		t.Fatalf("KeepHunks(%+v): %v", keep, err)
	}
	first := f.revert(id, undo.RevertChanges{ChangeScope: of, Hunks: []undo.HunkAt{{Path: "code.go", Hunk: d.Hunks[1].ID}}})
	want(t, "Revert of a hunk", outcomes(first), "code.go restored")
	want(t, "code.go without the second hunk", f.read("code.go"), onceEdited())
	d = f.diff(id, of, "code.go")
	if d.Now != "other" || !d.Hunks[0].Revertable || !d.Hunks[0].Kept || d.Hunks[1].Revertable || !d.Hunks[1].Reverted {
		t.Errorf("FileDiff(code.go): got %+v, want the first hunk kept and the second reverted", d)
	}
	want(t, "the files", listed(f.changes(id, of)), "modified code.go +1 -2 1/2 other\nadded new.txt +1 -0 1/1 same\ndeleted old.txt +0 -1 0/1 same")

	second := f.revert(id, undo.RevertChanges{ChangeScope: of, Paths: []string{"code.go", "new.txt"}})
	want(t, "Revert of files, of which a hunk is reverted", outcomes(second), "code.go restored\nnew.txt removed")
	want(t, "the reverted files", f.read("code.go", "new.txt"), twenty()+"(gone)")
	f.undo(id, second.ID)
	f.undo(id, first.ID)
	want(t, "the files after both were undone", f.read("code.go", "new.txt"), edited()+"new\n")
	_, err := f.UndoRestoration(t.Context(), id, first.ID)
	wantRefused(t, "UndoRestoration once more", err, "changes.unknown_undo")
}

func TestTurnsFromOneOnAreRestored(t *testing.T) {
	f := open(t, "", config{})
	f.write("a.txt", "0\n", "mine.txt", "0\n")
	id := f.session()
	f.during(id, func() { f.write("a.txt", "1\n") })
	idle, _ := f.during(id, func() {})
	second, _ := f.during(id, func() { f.write("a.txt", "2\n", "b.txt", "b\n") })
	f.write("mine.txt", "mine\n")
	f.during(id, func() { f.write("a.txt", "3\n") })
	last, _ := f.during(id, func() {})

	if got, err := f.Stat(t.Context(), id); err != nil || got != (undo.ChangeStat{Files: 2, Added: 2, Removed: 1}) {
		t.Errorf("Stat: got %+v, error %v; want 2 files, 2 lines more and 1 less", got, err)
	}
	for _, turn := range []string{second, idle} {
		preview := f.restore(id, undo.RestoreTurn{Turn: turn, Later: true, Preview: true})
		want(t, "the preview", outcomes(preview), "a.txt restored\nb.txt removed")
		want(t, "what the scope lists", listed(f.changes(id, undo.ChangeScope{Turn: turn, Since: "turn"})), "modified a.txt +1 -1 0/1 same\nadded b.txt +1 -0 0/1 same")
		done := f.restore(id, undo.RestoreTurn{Turn: turn, Later: true})
		want(t, "files after the restoration", f.read("a.txt", "b.txt", "mine.txt"), "1\n(gone)mine\n")
		f.undo(id, done.ID)
		want(t, "files after it was undone", f.read("a.txt", "b.txt", "mine.txt"), "3\nb\nmine\n")
	}
	want(t, "from a last turn that changed nothing", outcomes(f.restore(id, undo.RestoreTurn{Turn: last, Later: true})), "")
	f.write("a.txt", "by hand\n")
	want(t, "a file that was edited since", outcomes(f.restore(id, undo.RestoreTurn{Turn: second, Later: true, Preview: true})), "a.txt conflict changes.edited\nb.txt removed")
}

// What the newest turn changed is known a moment after its end: until then it would be taken for a person's change.
func TestTurnsAreRestoredOnceTheLastIsKnown(t *testing.T) {
	f := open(t, "", config{})
	id := f.session()
	first, _ := f.during(id, func() { f.write("a.txt", "1\n") })
	f.begin(id)
	f.write("a.txt", "2\n")
	turn := f.sessions[id].Turn
	f.set(id, func(s *undo.Session) { s.Turn = "" })
	of := undo.RestoreTurn{Turn: first, Later: true, Preview: true}
	_, err := f.RestoreTurn(t.Context(), id, of)
	wantRefused(t, "RestoreTurn before the last snapshot", err, "changes.taking")
	f.set(id, func(s *undo.Session) { s.Turn = turn })
	f.end(id)
	want(t, "the preview after the last snapshot", outcomes(f.restore(id, of)), "a.txt removed")
}

func TestTurnIsRestored(t *testing.T) {
	f := open(t, "", config{})
	f.write("code.go", twenty(), "old.txt", "old\n", ".gitignore", "*.log\n", "noise.log", "1")
	id := f.session()
	turn, _ := f.during(id, func() {
		f.write("code.go", edited(), "new.txt", "new\n", "noise.log", "2")
		f.remove("old.txt")
	})
	preview := f.restore(id, undo.RestoreTurn{Turn: turn, Preview: true})
	want(t, "code.go after the preview", f.read("code.go"), edited())
	back := f.restore(id, undo.RestoreTurn{Turn: turn})
	want(t, "RestoreTurn", outcomes(back), "code.go restored\nnew.txt removed\nold.txt restored")
	want(t, "the preview", outcomes(preview), outcomes(back))
	want(t, "the directory", f.read("code.go", "new.txt", "old.txt", "noise.log"), twenty()+"(gone)old\n2")
	if c := f.stored(turn); !c.Undone || c.Restoration != back.ID || !f.changes(id, undo.ChangeScope{}).Turns[0].Undone {
		t.Errorf("the turn: got %+v, want it undone by %s", c, back.ID)
	}
	again := f.undo(id, back.ID)
	want(t, "UndoRestoration", outcomes(again), "code.go restored\nnew.txt restored\nold.txt removed")
	if c := f.stored(turn); c.Undone || c.Restoration != "" {
		t.Errorf("the turn after UndoRestoration: got %+v, want it not undone", c)
	}

	f.write("code.go", "by hand\n")
	some := f.restore(id, undo.RestoreTurn{Turn: turn})
	want(t, "RestoreTurn beside a person's change", outcomes(some), "code.go conflict changes.edited\nnew.txt removed\nold.txt restored")
	if c := f.stored(turn); c.Undone {
		t.Errorf("the turn with a conflict: got %+v, want it not undone", c)
	}
	forced := f.restore(id, undo.RestoreTurn{Turn: turn, Force: true})
	want(t, "RestoreTurn by force", outcomes(forced), "code.go restored\nnew.txt same\nold.txt same")
	f.undo(id, forced.ID)
	want(t, "the person's change", f.read("code.go"), "by hand\n")
}

// Lines that were deleted or added where a file begins or ends are found there alone, and taken back once.
func TestHunksAtTheEdgesOfFiles(t *testing.T) {
	f := open(t, "", config{})
	begun, ended := strings.Replace(twenty(), "line 1\nline 2\n", "", 1), strings.Replace(twenty(), "line 19\nline 20\n", "", 1)
	f.write("end.go", twenty(), "begin.go", twenty(), "add.go", twenty())
	id := f.session()
	turn, _ := f.during(id, func() { f.write("end.go", ended, "begin.go", begun, "add.go", "agent\n"+twenty()+"agent\n") })
	of := undo.ChangeScope{Turn: turn}
	for _, path := range []string{"end.go", "begin.go"} {
		hunk := undo.HunkAt{Path: path, Hunk: f.diff(id, of, path).Hunks[0].ID}
		for range 2 {
			f.revert(id, undo.RevertChanges{ChangeScope: of, Hunks: []undo.HunkAt{hunk}})
			want(t, path, f.read(path), twenty())
			if got := f.diff(id, of, path).Hunks[0]; got.Revertable || !got.Reverted {
				t.Errorf("the hunk of %s: got %+v, want it reverted", path, got)
			}
		}
		f.revert(id, undo.RevertChanges{ChangeScope: of, Paths: []string{path}})
		want(t, path, f.read(path), twenty())
	}

	mine := "agent, and I\n" + twenty() + "agent, and I\n" // a person has changed the agent's lines
	f.write("add.go", mine)
	for _, hunk := range f.diff(id, of, "add.go").Hunks {
		if hunk.Revertable || hunk.Reverted {
			t.Errorf("a hunk that a person has changed: got %+v, want it neither revertable nor reverted", hunk)
		}
	}
	got := f.revert(id, undo.RevertChanges{ChangeScope: of, Paths: []string{"add.go"}})
	want(t, "Revert of a changed file", outcomes(got)+"\n"+f.read("add.go"), "add.go conflict changes.edited\n"+mine)
}

// A file that was there before the turn, and appears in the second snapshot since a rule has gone, is not removed with the turn.
func TestHiddenFilesAreNotTheTurns(t *testing.T) {
	for name, change := range map[string]func(f *fixture){
		"other rules":   func(f *fixture) { f.write(".gitignore", "node_modules\n") },
		"by force":      func(f *fixture) { f.git("add", "-f", ".env", "data") },
		"no repository": func(f *fixture) { _ = os.RemoveAll(f.work + "/.git") },
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, "", config{})
			f.git("init", "--quiet")
			rules := ".env\ndata/\n"
			if name == "no repository" {
				rules = ""
				f.write(".git/info/exclude", ".env\ndata/\n")
			}
			f.write(".gitignore", rules, ".env", "SECRET=mine\n", "data/db.sqlite", "a year of data\n", "a.go", "a\n")
			id := f.session()
			turn, _ := f.during(id, func() {
				change(f)
				f.write("new.go", "the turn's\n")
			})
			got := outcomes(f.restore(id, undo.RestoreTurn{Turn: turn, Force: true}))
			want(t, "the hidden files", f.read(".env", "data/db.sqlite"), "SECRET=mine\na year of data\n")
			if !strings.Contains(got, ".env conflict changes.not_kept\n") || !strings.Contains(got, "new.go removed") {
				t.Errorf("RestoreTurn: got\n%s\nwant .env in conflict, and new.go removed", got)
			}
			_, err := f.Revert(t.Context(), id, undo.RevertChanges{ChangeScope: undo.ChangeScope{Since: "start"}, Paths: []string{"data/db.sqlite"}})
			if f.read("data/db.sqlite") != "a year of data\n" {
				t.Errorf("Revert of a hidden file: it was replaced, and the error is %v", err)
			}
		})
	}
}

// Files whose names are no text were there before, hidden by rules or too long to be kept, and are not removed with the turn.
func TestHiddenFilesWithOddNames(t *testing.T) {
	f := open(t, "", config{snapshots: snapshot.Config{MostFile: 1000}})
	f.git("init", "--quiet")
	f.write(".gitignore", "*.log\ndata\xe9/\n", "caf\xe9.log", "mine\n", "data\xe9/db", "mine\n", "long\xe9", strings.Repeat("long\n", 1000))
	id := f.session()
	turn, _ := f.during(id, func() { f.write(".gitignore", "", "long\xe9", "short\n", "new\xe9", "the turn's\n") })
	done := f.restore(id, undo.RestoreTurn{Turn: turn, Force: true})
	want(t, "the files", f.read("caf\xe9.log", "data\xe9/db", "long\xe9", "new\xe9"), "mine\nmine\nshort\n(gone)")
	want(t, "RestoreTurn", outcomes(done), ".gitignore restored\ncaf\uFFFDE9.log conflict changes.not_kept\ndata\uFFFDE9/db conflict changes.not_kept\n"+
		"long\uFFFDE9 conflict changes.not_kept\nnew\uFFFDE9 removed")
}

// Of more files that are too long to be kept than a row remembers, any may have been there before.
func TestMoreLongFilesThanAreRemembered(t *testing.T) {
	f := open(t, "", config{snapshots: snapshot.Config{MostFile: 10}})
	for i := range 501 {
		f.write(fmt.Sprintf("long-%03d", i), "longer than that\n")
	}
	f.write("edit", "1\n")
	id := f.session()
	turn, _ := f.during(id, func() { f.write("long-000", "short\n", "long-500", "short\n", "edit", "2\n") })
	done := f.restore(id, undo.RestoreTurn{Turn: turn, Force: true})
	want(t, "RestoreTurn", outcomes(done), "edit restored\nlong-000 conflict changes.not_kept\nlong-500 conflict changes.not_kept")
	want(t, "the files", f.read("long-000", "long-500"), "short\nshort\n")
	_, err := f.Revert(t.Context(), id, undo.RevertChanges{ChangeScope: undo.ChangeScope{Since: "start"}, Paths: []string{"long-500"}})
	if f.read("long-500") != "short\n" {
		t.Errorf("Revert of a file that may have been there: it was replaced, and the error is %v", err)
	}
}

// replacing is a fixture that calls second before the second file of a restoration is replaced.
func replacing(t *testing.T, second func(l *snapshot.Library)) *fixture {
	t.Helper()
	var f *fixture
	var n atomic.Int32
	f = open(t, "", config{snapshots: snapshot.Config{Replace: func(root *os.Root, name string, data []byte, mode fs.FileMode, last func() error) error {
		if n.Add(1) == 2 {
			second(f.snapshots)
		}
		return files.ReplaceIf(root, name, data, mode, last)
	}}})
	return f
}

// A caller who leaves in the middle of a restoration does not end the restoration.
func TestRestorationOutlivesItsCaller(t *testing.T) {
	ctx, leave := context.WithCancel(t.Context())
	f := replacing(t, func(*snapshot.Library) { leave() })
	f.write("a", "1\n", "b", "1\n", "c", "1\n")
	id := f.session()
	turn, _ := f.during(id, func() { f.write("a", "2\n", "b", "2\n", "c", "2\n") })
	if _, err := f.RestoreTurn(ctx, id, undo.RestoreTurn{Turn: turn}); err != nil {
		t.Fatalf("RestoreTurn: %v", err)
	}
	want(t, "the files", f.read("a", "b", "c"), "1\n1\n1\n")
	c := f.stored(turn)
	if !c.Undone || c.Restoration == "" {
		t.Fatalf("the turn: got %+v, want it undone", c)
	}
	f.undo(id, c.Restoration)
	want(t, "the files after UndoRestoration", f.read("a", "b", "c"), "2\n2\n2\n")
}

// The program ends in the middle of a restoration. The next start offers the restoration to be undone, which leaves alone what a person has changed
// since.
func TestUnfinishedRestorationIsUndone(t *testing.T) {
	ended := make(chan error, 1)
	f := replacing(t, func(l *snapshot.Library) {
		go func() { ended <- l.Close() }()
		limit := time.After(testkit.Limit)
		for {
			if _, err := l.Store("probe", "/none").Take(context.WithoutCancel(t.Context())); errors.Is(err, snapshot.ErrClosed) {
				return
			}
			select {
			case <-limit:
				t.Error("the library of snapshots does not end")
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	f.write("a", "1\n", "b", twenty(), "c", "1\n", "d", "1\n")
	id := f.session()
	turn, _ := f.during(id, func() { f.write("a", "2\n", "b", twenty()+"more\n", "c", "2\n", "d", "2\n") })
	f.write("a", "by hand\n")
	if _, err := f.RestoreTurn(t.Context(), id, undo.RestoreTurn{Turn: turn, Force: true}); err == nil {
		t.Fatal("RestoreTurn at the end of the program: got no error")
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	f = f.reopened()
	want(t, "the files at the next start", f.read("a", "b", "c", "d"), "1\n"+twenty()+"2\n2\n")
	c := f.stored(turn)
	if c.Undone || c.Restoration == "" {
		t.Fatalf("the turn: got %+v, want it not undone, with a restoration", c)
	}
	if last := f.changes(id, undo.ChangeScope{}).Restoration; last == nil || last.ID != c.Restoration || !last.Unfinished || last.Turn != turn {
		t.Errorf("the last restoration: got %+v, want %s unfinished, of turn %s", last, c.Restoration, turn)
	}
	f.write("b", "by hand, after that\n")
	want(t, "UndoRestoration", outcomes(f.undo(id, c.Restoration)), "a restored\nb conflict changes.edited")
	want(t, "the person's files", f.read("a", "b", "c"), "by hand\nby hand, after that\n2\n")
	f.write("b", twenty())
	want(t, "UndoRestoration of the rest", outcomes(f.undo(id, c.Restoration)), "b restored")
	want(t, "the rest", f.read("b"), twenty()+"more\n")
	if c := f.stored(turn); c.Restoration != "" {
		t.Errorf("the turn: got %+v, want no restoration", c)
	}
	f.restore(id, undo.RestoreTurn{Turn: turn, Force: true})
	want(t, "the files after RestoreTurn", f.read("a", "b", "c", "d"), "1\n"+twenty()+"1\n1\n")
}

func TestRevertOfFileThatIsNamedTwice(t *testing.T) {
	f := open(t, "", config{})
	f.write("a", "1\n", "gone", "1\n")
	id := f.session()
	turn, _ := f.during(id, func() {
		f.write("a", "2\n")
		f.remove("gone")
	})
	done := f.revert(id, undo.RevertChanges{ChangeScope: undo.ChangeScope{Turn: turn}, Paths: []string{"a", "gone", "a", "gone"}})
	want(t, "Revert", outcomes(done), "a restored\ngone restored")
	back := f.undo(id, done.ID)
	want(t, "UndoRestoration", outcomes(back)+" "+f.read("a", "gone"), "a restored\ngone removed 2\n(gone)")
}

// A file whose folder could not be synced has its new content, and is restored.
func TestFileThatIsReplacedWithAnError(t *testing.T) {
	f := open(t, "", config{snapshots: snapshot.Config{Replace: func(root *os.Root, name string, data []byte, mode fs.FileMode, last func() error) error {
		return errors.Join(files.ReplaceIf(root, name, data, mode, last), syscall.EIO)
	}}})
	f.write("a", "1\n")
	id := f.session()
	turn, _ := f.during(id, func() { f.write("a", "2\n") })
	f.write("a", "by hand\n")
	done := f.restore(id, undo.RestoreTurn{Turn: turn, Force: true})
	want(t, "RestoreTurn", outcomes(done)+" "+f.read("a"), "a restored 1\n")
	f.undo(id, done.ID)
	want(t, "UndoRestoration", f.read("a"), "by hand\n")
}

// The planned content of a file of which a hunk is taken back is stored too, so that the unfinished restoration can be undone.
func TestUnfinishedRevertOfHunk(t *testing.T) {
	f := open(t, "", config{})
	f.write("a", twenty())
	id := f.session()
	turn, _ := f.during(id, func() { f.write("a", edited()) })
	d := f.diff(id, undo.ChangeScope{}, "a")
	f.exec(`CREATE TRIGGER broken BEFORE UPDATE ON restoration BEGIN SELECT RAISE(ABORT, 'broken'); END`)
	hunk := undo.RevertChanges{ChangeScope: undo.ChangeScope{Turn: turn}, Hunks: []undo.HunkAt{{Path: "a", Hunk: d.Hunks[1].ID}}}
	if _, err := f.Revert(t.Context(), id, hunk); err == nil {
		t.Fatal("Revert whose end cannot be stored: got no error")
	}
	f.exec(`DROP TRIGGER broken`)
	want(t, "the file", f.read("a"), onceEdited())
	last := f.changes(id, undo.ChangeScope{}).Restoration
	if last == nil || !last.Unfinished || last.Path != "a" || last.Turn != "" {
		t.Fatalf("the last restoration: got %+v, want an unfinished one of a", last)
	}
	f.undo(id, last.ID)
	want(t, "the file after UndoRestoration", f.read("a"), edited())
	if last := f.changes(id, undo.ChangeScope{}).Restoration; last != nil {
		t.Errorf("the last restoration: got %+v, want none", last)
	}
}

// A restoration that was undone but for a file in conflict can be undone again.
func TestRestorationStaysUntilAllIsUndone(t *testing.T) {
	f := open(t, "", config{})
	f.write("a", "1\n", "b", "1\n")
	id := f.session()
	turn, _ := f.during(id, func() { f.write("a", "2\n", "b", "2\n") })
	back := f.restore(id, undo.RestoreTurn{Turn: turn})
	f.write("b", "by hand\n")
	want(t, "UndoRestoration", outcomes(f.undo(id, back.ID)), "a restored\nb conflict changes.edited")
	if c := f.stored(turn); c.Undone || c.Restoration != back.ID {
		t.Errorf("the turn: got %+v, want it not undone, with restoration %s", c, back.ID)
	}
	f.write("b", "1\n")
	rest := f.undo(id, back.ID)
	want(t, "UndoRestoration of the rest", outcomes(rest)+f.read("a", "b"), "a same\nb restored2\n2\n")
	_, err := f.UndoRestoration(t.Context(), id, back.ID)
	wantRefused(t, "UndoRestoration once more", err, "changes.unknown_undo")
}
