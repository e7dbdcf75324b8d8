package session_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"deskhand/backend/proxy"
	"deskhand/backend/session"
	"deskhand/backend/snapshot"
)

// TestHunksAtTheEdges: what is deleted or added where a file begins or ends is found there alone, and taken back once.
func TestHunksAtTheEdges(t *testing.T) {
	d := openLooking(t, t.TempDir())
	begun, ended := strings.Replace(twenty(), "line 1\nline 2\n", "", 1), strings.Replace(twenty(), "line 19\nline 20\n", "", 1)
	d.leave("end.go", twenty(), "begin.go", twenty(), "add.go", twenty())
	id := d.create().ID
	turn := d.during(id, func() { d.leave("end.go", ended, "begin.go", begun, "add.go", "agent\n"+twenty()+"agent\n") })
	of := session.ChangeScope{Turn: turn.ID}
	revert := func(r session.RevertChanges) string {
		t.Helper()
		r.ChangeScope = of
		done, err := d.Revert(t.Context(), id, r)
		if err != nil {
			t.Fatal(err)
		}
		return putBack(done)
	}
	for _, path := range []string{"end.go", "begin.go"} {
		hunk := session.HunkAt{Path: path, Hunk: d.fileDiff(id, of, path).Hunks[0].ID}
		for range 2 {
			revert(session.RevertChanges{Hunks: []session.HunkAt{hunk}})
			if got := d.fileDiff(id, of, path).Hunks[0]; d.read(path) != twenty() || got.Revertable || !got.Reverted {
				t.Errorf("%s: %+v %q", path, got, d.read(path))
			}
		}
		revert(session.RevertChanges{Paths: []string{path}})
		if d.read(path) != twenty() {
			t.Errorf("%s: %q", path, d.read(path))
		}
	}

	// What the agent has added was changed by a person.
	mine := "agent, and I\n" + twenty() + "agent, and I\n"
	d.leave("add.go", mine)
	for _, hunk := range d.fileDiff(id, of, "add.go").Hunks {
		if hunk.Revertable || hunk.Reverted {
			t.Errorf("%+v", hunk)
		}
	}
	if got := revert(session.RevertChanges{Paths: []string{"add.go"}}); got != "add.go conflict changes.edited" || d.read("add.go") != mine {
		t.Errorf("%s %q", got, d.read("add.go"))
	}
}

// TestWhatRulesHidIsNotTheTurns: a file that was there before, and shows only since a rule has gone, is not removed with the turn.
func TestWhatRulesHidIsNotTheTurns(t *testing.T) {
	for name, change := range map[string]func(d *desk){
		"other rules":   func(d *desk) { d.leave(".gitignore", "node_modules\n") },
		"by force":      func(d *desk) { d.git(d.work, "add", "-f", ".env", "data") },
		"no repository": func(d *desk) { _ = os.RemoveAll(d.work + "/.git") },
	} {
		t.Run(name, func(t *testing.T) {
			d := openLooking(t, t.TempDir())
			d.git(d.work, "init", "--quiet")
			rules := ".env\ndata/\n"
			if name == "no repository" {
				rules = ""
				d.leave(".git/info/exclude", ".env\ndata/\n")
			}
			d.leave(".gitignore", rules, ".env", "SECRET=mine\n", "data/db.sqlite", "a year of data\n", "a.go", "a\n")
			id := d.create().ID
			turn := d.during(id, func() {
				change(d)
				d.leave("new.go", "the turn's\n")
			})
			done, err := d.RestoreTurn(t.Context(), id, session.RestoreTurn{Turn: turn.ID, Force: true})
			if err != nil {
				t.Fatal(err)
			}
			if got := d.read(".env") + d.read("data/db.sqlite"); got != "SECRET=mine\na year of data\n" {
				t.Errorf("%q\n%s", got, putBack(done))
			}
			if got := putBack(done); !strings.Contains(got, ".env conflict changes.not_kept\n") || !strings.Contains(got, "new.go removed") {
				t.Error(got)
			}
			_, err = d.Revert(t.Context(), id, session.RevertChanges{ChangeScope: session.ChangeScope{Since: "start"}, Paths: []string{"data/db.sqlite"}})
			if d.read("data/db.sqlite") != "a year of data\n" {
				t.Errorf("since the start: %v", err)
			}
		})
	}
}

// TestWhatHasNoTextForAName: it was there before, hidden by rules or too long to be kept, and is not removed with the turn.
func TestWhatHasNoTextForAName(t *testing.T) {
	dir := t.TempDir()
	d := openAs(t, dir, proxy.Config{}, session.Config{Snapshots: snapshots(t, dir, "", snapshot.Config{MostFile: 1000})})
	d.git(d.work, "init", "--quiet")
	d.leave(".gitignore", "*.log\ndata\xe9/\n", "caf\xe9.log", "mine\n", "data\xe9/db", "mine\n", "long\xe9", strings.Repeat("long\n", 1000))
	id := d.create().ID
	turn := d.during(id, func() { d.leave(".gitignore", "", "long\xe9", "short\n", "new\xe9", "the turn's\n") })
	done, err := d.RestoreTurn(t.Context(), id, session.RestoreTurn{Turn: turn.ID, Force: true})
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "what was there", d.read("caf\xe9.log")+d.read("data\xe9/db")+d.read("long\xe9")+d.read("new\xe9"), "mine\nmine\nshort\n(gone)")
	wants(t, "put back", putBack(done), ".gitignore restored\ncaf\uFFFDE9.log conflict changes.not_kept\ndata\uFFFDE9/db conflict changes.not_kept\n"+
		"long\uFFFDE9 conflict changes.not_kept\nnew\uFFFDE9 removed")
}

// TestTooManyToBeNamed: of files that are too long to be kept some are remembered; any of the others may have been there before.
func TestTooManyToBeNamed(t *testing.T) {
	dir := t.TempDir()
	d := openAs(t, dir, proxy.Config{}, session.Config{Snapshots: snapshots(t, dir, "", snapshot.Config{MostFile: 10})})
	const many = 501
	for i := range many {
		d.leave(fmt.Sprintf("long-%03d", i), "longer than that\n")
	}
	d.leave("edit", "1\n")
	id := d.create().ID
	turn := d.during(id, func() { d.leave("long-000", "short\n", "long-500", "short\n", "edit", "2\n") })
	done, err := d.RestoreTurn(t.Context(), id, session.RestoreTurn{Turn: turn.ID, Force: true})
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "put back", putBack(done), "edit restored\nlong-000 conflict changes.not_kept\nlong-500 conflict changes.not_kept")
	wants(t, "what was there", d.read("long-000")+d.read("long-500"), "short\nshort\n")
	_, err = d.Revert(t.Context(), id, session.RevertChanges{ChangeScope: session.ChangeScope{Since: "start"}, Paths: []string{"long-500"}})
	if d.read("long-500") != "short\n" {
		t.Errorf("since the start: %v", err)
	}
}
