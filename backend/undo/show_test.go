package undo_test

import (
	"slices"
	"strings"
	"testing"

	"deskhand/backend/snapshot"
	"deskhand/backend/undo"
)

func TestChangesOfOneTurnAndOfAll(t *testing.T) {
	f := open(t, "", config{})
	id := f.session()
	if c := f.changes(id, undo.ChangeScope{}); c.State != "ready" || len(c.Files) != 0 || len(c.Turns) != 0 {
		t.Errorf("Changes before the first turn: got %+v, want none", c)
	}
	first, _ := f.during(id, func() { f.write("a", "1\n", "b", "1\n") })
	f.during(id, func() { f.write("a", "2\n"); f.remove("b") })
	want(t, "since the start", listed(f.changes(id, undo.ChangeScope{Since: "start"})), "added a +1 -0 0/1 same")
	want(t, "the newest turn", listed(f.changes(id, undo.ChangeScope{})), "modified a +1 -1 0/1 same\ndeleted b +0 -1 0/1 same")
	want(t, "the first turn", listed(f.changes(id, undo.ChangeScope{Turn: first})), "added a +1 -0 0/1 other\nadded b +1 -0 0/1 gone")

	turn := f.begin(id)
	if c := f.changes(id, undo.ChangeScope{}); c.State != "taking" || c.Turn != turn || len(c.Turns) != 2 {
		t.Errorf("Changes while turn %s runs: got %+v, want state taking and the two turns before", turn, c)
	}
	if c := f.end(id); c.State != "none" || c.Files != 0 {
		t.Errorf("a turn that changes nothing: got %+v, want state none", c)
	}
}

func TestCommandsRefuseWhatTheyDoNotFind(t *testing.T) {
	f := open(t, "", config{})
	id := f.session()
	first, _ := f.during(id, func() { f.write("a", "1\n") })
	_, err := f.FileDiff(t.Context(), id, undo.ChangeScope{}, "c")
	wantRefused(t, "FileDiff of another path", err, "changes.unknown_path")
	_, err = f.Revert(t.Context(), id, undo.RevertChanges{Hunks: []undo.HunkAt{{Path: "a", Hunk: "x"}}})
	wantRefused(t, "Revert of another hunk", err, "changes.unknown_hunk")
	_, err = f.RestoreTurn(t.Context(), id, undo.RestoreTurn{Turn: "none"})
	wantRefused(t, "RestoreTurn of another turn", err, "changes.unknown_turn")

	turn := f.begin(id)
	_, err = f.RestoreTurn(t.Context(), id, undo.RestoreTurn{Turn: first, Preview: true})
	wantRefused(t, "RestoreTurn while a turn runs", err, "changes.turn_running")
	_, err = f.RestoreTurn(t.Context(), id, undo.RestoreTurn{Turn: turn})
	wantRefused(t, "RestoreTurn of the running turn", err, "changes.turn_running")
	f.end(id)
}

// The changes of all turns leave out what the person did between the turns, and turns that were taken back. A file that both have changed is
// marked.
func TestChangesSinceTheStartAreTheAgents(t *testing.T) {
	f := open(t, "", config{snapshots: snapshot.Config{MostFile: 1000}})
	long := strings.Repeat("long\n", 1000)
	f.write("both", "1\n", "agents", "1\n", "persons", "1\n", "moved", twenty(), "long", long)
	id := f.session()
	f.during(id, func() { f.write("both", "2\n", "agents", "2\n", "net", "nothing\n", "long", long+"1") })
	f.write("both", "3\n", "persons", "3\n", "new", "by hand\n")
	f.during(id, func() {
		f.write("both", "4\n", "to/moved", twenty(), "grown", long)
		f.remove("moved", "net")
	})
	undone, _ := f.during(id, func() { f.write("agents", "5\n", "undone", "5\n") })
	f.restore(id, undo.RestoreTurn{Turn: undone})
	f.write("persons", "6\n")
	start := undo.ChangeScope{Since: "start"}
	all := f.changes(id, start)
	const others = "modified agents +1 -1 0/1 same\nmodified both +1 -1 0/1 same\nadded grown +0 -0 0/1 other\nmodified long +0 -0 0/1 other\n"
	want(t, "since the start", listed(all), others+"renamed to/moved +0 -0 0/1 same")
	for _, file := range all.Files {
		if file.Between != (file.Path == "both") {
			t.Errorf("%s: got between %v, want that of both alone", file.Path, file.Between)
		}
	}
	if d := f.diff(id, start, "both"); *d.Before != "1\n" || *d.After != "4\n" || len(d.Hunks) != 1 {
		t.Errorf("FileDiff(both): got %+v, want one hunk from 1 to 4", d)
	}
	back := f.revert(id, undo.RevertChanges{ChangeScope: start, Paths: []string{"both", "to/moved"}})
	want(t, "reverted", outcomes(back)+"\n"+f.read("both", "moved"), "both restored\nmoved restored\nto/moved removed\n1\n"+twenty())

	f.during(id, func() { f.write("both", "7\n") })
	want(t, "after another turn", listed(f.changes(id, start)), others+"renamed to/moved +0 -0 0/1 gone")
}

// A name that is no text, and a name with a newline, are shown, found and put back.
func TestOddNames(t *testing.T) {
	f := open(t, "", config{})
	id := f.session()
	names := []string{"a\nb", "\xff.txt", "\uFFFD.txt", "-n", ":(top)x", "ä b"}
	turn, _ := f.during(id, func() {
		for _, name := range names {
			f.write(name, "1\n")
		}
	})
	var shown []string
	for _, file := range f.changes(id, undo.ChangeScope{}).Files {
		shown = append(shown, file.Path)
		if d := f.diff(id, undo.ChangeScope{}, file.Path); len(d.Hunks) != 1 {
			t.Errorf("FileDiff(%q): got %d hunks, want 1", file.Path, len(d.Hunks))
		}
	}
	slices.Sort(shown)
	want(t, "the names", strings.Join(shown, "|"), "-n|:(top)x|a\nb|ä b|\uFFFDEF\uFFFDBF\uFFFDBD.txt|\uFFFDFF.txt")
	f.revert(id, undo.RevertChanges{ChangeScope: undo.ChangeScope{Turn: turn}, Paths: shown})
	for _, name := range names {
		want(t, name, f.read(name), "(gone)")
	}
}

// A file that is too long to be kept is listed, and is left alone when the turn is taken back.
func TestFilesThatAreTooLongToBeKept(t *testing.T) {
	f := open(t, "", config{snapshots: snapshot.Config{MostFile: 1000}})
	long := strings.Repeat("long\n", 1000)
	f.write("grows", "1\n", "shrinks", long, "stays", long, "changes", long, "goes", long)
	id := f.session()
	turn, _ := f.during(id, func() {
		f.write("grows", long, "shrinks", "1\n", "changes", long+"x", "comes", long, "fine", "1\n")
		f.remove("goes")
	})
	c := f.changes(id, undo.ChangeScope{})
	var left, large []string
	for _, l := range c.Left {
		left = append(left, l.Path+" "+l.Reason)
	}
	want(t, "left out", strings.Join(left, ", "), "changes large, comes large, grows large, stays large")
	for _, file := range c.Files {
		if file.Large {
			large = append(large, file.Kind+" "+file.Path)
		}
	}
	want(t, "large files", strings.Join(large, ", "), "modified changes, added comes, deleted goes, modified grows, modified shrinks")
	back := f.restore(id, undo.RestoreTurn{Turn: turn})
	const not = " conflict changes.not_kept\n"
	want(t, "restored", outcomes(back)+"\n", "changes"+not+"comes"+not+"fine removed\ngoes"+not+"grows"+not+"shrinks"+not)
	if f.read("grows") != long {
		t.Error("a file that is not kept was replaced")
	}
}
