package undo_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deskhand/backend/snapshot"
	"deskhand/backend/testkit"
	"deskhand/backend/undo"
)

func TestReasonsForNoSnapshot(t *testing.T) {
	for name, c := range map[string]struct {
		cfg    config
		setUp  func(t *testing.T, f *fixture)
		reason string
		params map[string]string
	}{
		"no git":    {cfg: config{path: "/none"}, reason: "changes.no_git"},
		"files":     {cfg: config{snapshots: snapshot.Config{MostFiles: 2}}, reason: "changes.too_large", params: map[string]string{"files": "2"}},
		"bytes":     {cfg: config{snapshots: snapshot.Config{MostBytes: 2}}, reason: "changes.too_large", params: map[string]string{"bytes": "2"}},
		"home":      {setUp: func(t *testing.T, f *fixture) { t.Helper(); t.Setenv("HOME", f.work) }, reason: "changes.wide"},
		"disabled":  {cfg: config{disabled: true}, reason: "changes.off"},
		"elsewhere": {setUp: func(_ *testing.T, f *fixture) { f.set("s001", func(s *undo.Session) { s.Place = "far" }) }, reason: "changes.elsewhere"},
	} {
		t.Run(name, func(t *testing.T) {
			f := open(t, "", c.cfg)
			f.write("a", "abc", "b", "", "c", "")
			id := f.session()
			if c.setUp != nil {
				c.setUp(t, f)
			}
			turn := f.begin(id)
			f.write("x", "x")
			if got := f.end(id); got.State != "off" || got.Reason != c.reason || !maps.Equal(got.Params, c.params) {
				t.Errorf("the turn: got %+v, want off by %s with %v", got, c.reason, c.params)
			}
			_, err := f.RestoreTurn(t.Context(), id, undo.RestoreTurn{Turn: turn})
			if r := wantRefused(t, "RestoreTurn", err, "changes.not_looked_at"); r.Params["reason"] != c.reason {
				t.Errorf("RestoreTurn: got reason %q, want %q", r.Params["reason"], c.reason)
			}
		})
	}
}

// Turns of two sessions in one directory that overlap are mixed, and nothing is put back while either agent works.
func TestOverlappingTurnsAreMixed(t *testing.T) {
	f := open(t, "", config{})
	one, two := f.session(), f.session()
	if _, alone := f.during(one, func() { f.write("a", "0\n") }); alone.Mixed {
		t.Errorf("a turn alone: got %+v, want it not mixed", alone)
	}
	f.begin(one)
	second, changes := f.during(two, func() { f.write("b", "2\n") })
	_, err := f.RestoreTurn(t.Context(), two, undo.RestoreTurn{Turn: second})
	wantRefused(t, "RestoreTurn while the other agent works", err, "changes.turn_running")
	f.write("a", "1\n")
	if first := f.end(one); !first.Mixed || first.Files != 2 || !changes.Mixed {
		t.Errorf("overlapping turns: got %+v and %+v, want both mixed, and two files of the first", first, changes)
	}
	f.restore(two, undo.RestoreTurn{Turn: second})
	want(t, "the files", f.read("a", "b"), "1\n(gone)")
}

// A session in a directory, a session in a folder of that directory under another name, and a session with the folder as a further directory work
// in the same files.
func TestOverlappingDirectories(t *testing.T) {
	f := open(t, "", config{})
	f.write("sub/a", "0\n", "b", "0\n")
	alias, beside, apart := filepath.Join(f.dir, "alias"), filepath.Join(f.dir, "beside"), filepath.Join(f.dir, "work-apart")
	if err := errors.Join(os.Symlink(filepath.Join(f.work, "sub"), alias), os.Mkdir(beside, 0o700), os.Mkdir(apart, 0o700)); err != nil {
		t.Fatal(err)
	}
	one, within, further, other := f.session(), f.sessionIn(alias), f.sessionIn(beside, filepath.Join(f.work, "sub")), f.sessionIn(apart)
	for _, id := range []string{within, further} {
		first := f.begin(one)
		second, changes := f.during(id, func() { f.write("sub/a", "of "+id+"\n") })
		_, elsewhere := f.during(other, func() {})
		_, err := f.RestoreTurn(t.Context(), one, undo.RestoreTurn{Turn: first, Preview: true})
		wantRefused(t, "RestoreTurn of the running turn", err, "changes.turn_running")
		if id == within {
			if !changes.Mixed {
				t.Errorf("the turn in a folder of the directory: got %+v, want it mixed", changes)
			}
			_, err = f.RestoreTurn(t.Context(), within, undo.RestoreTurn{Turn: second})
			wantRefused(t, "RestoreTurn in a folder of the directory", err, "changes.turn_running")
		}
		if c := f.end(one); !c.Mixed || elsewhere.Mixed {
			t.Errorf("turns beside session %s: got %+v and %+v, want the first mixed and the one elsewhere not", id, c, elsewhere)
		}
	}
	turn, changes := f.during(one, func() { f.write("b", "1\n") })
	if changes.Mixed {
		t.Errorf("a turn alone: got %+v, want it not mixed", changes)
	}
	f.begin(further)
	_, err := f.RestoreTurn(t.Context(), one, undo.RestoreTurn{Turn: turn})
	wantRefused(t, "RestoreTurn while an agent has the directory as a further one", err, "changes.turn_running")
	f.end(further)
}

// gatedGit returns a PATH with a git that waits until open is called.
func gatedGit(t *testing.T) (path string, open func()) {
	t.Helper()
	dir := t.TempDir()
	gate := filepath.Join(dir, "gate")
	writeGit(t, dir, fmt.Sprintf("while [ ! -e '%s' ]; do sleep 0.02; done", gate))
	return dir + ":/bin:/usr/bin", func() {
		if err := os.WriteFile(gate, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// writeGit writes a git that runs a line of shell before the real git.
func writeGit(t *testing.T, dir, line string) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "git"), fmt.Appendf(nil, "#!/bin/sh\n%s\nexec '%s' \"$@\"\n", line, git), 0o700); err != nil {
		t.Fatal(err)
	}
}

// A turn whose directory is still being read when the turn is over, and stays so, is ended without snapshots.
func TestSnapshotAfterTurnIsGivenUp(t *testing.T) {
	path, letGo := gatedGit(t)
	f := open(t, "", config{path: path, lastLook: time.Nanosecond, unprepared: true})
	id := f.session()
	a := f.sessions[id]
	turn := f.id("t")
	f.exec(`INSERT INTO turn (id, session, generation, state, stop_reason, error, usage, started_at, ended_at) VALUES (?, ?, 1, 'done', '', '', '', 0, 0)`, turn, id)
	a.snapshots.TurnBegins(f.ctx, a.Session, turn, time.Now())
	hold := a.snapshots.Hold(a.Session)
	if hold == nil {
		t.Fatal("Hold: got nil, want the prompt to wait for the snapshot")
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if hold.Wait(cancelled) {
		t.Error("Hold.Wait of a prompt that was cancelled: got true")
	}
	a.snapshots.TurnEnds(f.ctx, a.Session, turn)()
	letGo()
	if c := f.awaitTurn(turn); c.State != "off" || c.Reason != "changes.slow" {
		t.Errorf("the turn: got %+v, want off by changes.slow", c)
	}
}

// The end of a turn that is recorded by the next start alone may contain changes of a person: the turn is mixed.
func TestRecoverTakesMissingSnapshots(t *testing.T) {
	f := open(t, "", config{})
	id := f.session()
	turn, _ := f.during(id, func() { f.write("a", "1\n") })
	f.exec(`UPDATE turn_change SET ended = 0, became = '', data = ''`)
	f.write("by-hand", "1\n")
	f = f.reopened()
	take, err := f.Recover(t.Context())
	if err != nil {
		t.Fatalf("Recover: %v", err)
	}
	take(f.ctx)
	if c := f.stored(turn); c.Files != 2 || !c.Mixed || c.Reason != "changes.late" {
		t.Errorf("the turn: got %+v, want two files, mixed by changes.late", c)
	}
	if c := f.changes(id, undo.ChangeScope{}); !c.Mixed || c.Reason != "changes.late" {
		t.Errorf("Changes: got %+v, want mixed by changes.late", c)
	}
	if back := f.restore(id, undo.RestoreTurn{Turn: turn, Preview: true}); !back.Mixed || back.Reason != "changes.late" {
		t.Errorf("RestoreTurn: got %+v, want mixed by changes.late", back)
	}
	if _, c := f.during(id, func() { f.write("a", "2\n") }); c.Mixed || c.Reason != "" {
		t.Errorf("the next turn: got %+v, want it not mixed", c)
	}
}

// trees returns how many trees are stored.
func (f *fixture) trees() int {
	f.t.Helper()
	list, err := filepath.Glob(filepath.Join(f.dir, "snapshots", "*", "refs", "trees", "*"))
	if err != nil {
		f.t.Fatal(err)
	}
	return len(list)
}

// age makes all trees old enough to be removed when nothing names them, and turns too old to keep their trees.
func (f *fixture) age(turns ...string) {
	f.t.Helper()
	names, err := filepath.Glob(filepath.Join(f.dir, "snapshots", "*", "refs", "trees", "*"))
	if err != nil || len(names) == 0 {
		f.t.Fatalf("the trees: got %q, %v", names, err)
	}
	for _, name := range names {
		if err := os.Chtimes(name, time.Time{}, time.Now().Add(-2*time.Hour)); err != nil {
			f.t.Fatal(err)
		}
	}
	for _, turn := range turns {
		f.exec(`UPDATE turn_change SET at = 1 WHERE turn = ?`, turn)
	}
}

func (f *fixture) prune() {
	f.t.Helper()
	if err := f.Prune(f.t.Context()); err != nil {
		f.t.Fatalf("Prune: %v", err)
	}
}

func TestPruneForgetsOldTurnsAndErasedSessions(t *testing.T) {
	f := open(t, "", config{})
	one, two := f.session(), f.session()
	turn, _ := f.during(one, func() { f.write("a", strings.Repeat(twenty(), 500)) })
	f.during(two, func() { f.write("a", "2\n") })
	if n := f.trees(); n != 3 {
		t.Fatalf("after two turns: got %d trees, want 3", n)
	}
	f.age(turn)
	f.prune()
	if n := f.trees(); n != 2 {
		t.Errorf("after Prune of an old turn: got %d trees, want 2", n)
	}
	if c := f.stored(turn); c.State != "off" || c.Reason != "changes.pruned" {
		t.Errorf("the old turn: got %+v, want off by changes.pruned", c)
	}
	want(t, "the newer turn", listed(f.changes(two, undo.ChangeScope{})), "modified a +1 -10000 0/1 same")
	f.exec(`DELETE FROM session`)
	f.prune()
	if left, err := filepath.Glob(filepath.Join(f.dir, "snapshots", "*")); err != nil || len(left) != 0 {
		t.Errorf("after all sessions were erased: got %q, %v; want no store", left, err)
	}
}

// A turn begins and ends while git removes the old trees of another directory.
func TestPruneHoldsUpNoTurn(t *testing.T) {
	tools := t.TempDir()
	begun := filepath.Join(tools, "begun")
	writeGit(t, tools, fmt.Sprintf(`case " $* " in *" gc "*) : > '%s'; while :; do sleep 0.02; done;; esac`, begun))
	f := open(t, "", config{path: tools + ":/bin:/usr/bin", holdPrompt: 20 * time.Second})
	elsewhere := filepath.Join(f.dir, "elsewhere")
	if err := os.Mkdir(elsewhere, 0o700); err != nil {
		t.Fatal(err)
	}
	one, two := f.session(), f.sessionIn(elsewhere)
	old, _ := f.during(one, func() { f.write("a", "1\n") })
	f.during(one, func() { f.write("a", "2\n") })
	f.age(old)
	ctx, stop := context.WithCancel(t.Context())
	pruning := make(chan struct{})
	go func() {
		defer close(pruning)
		_ = f.Prune(ctx) // it is cut off in git gc
	}()
	defer func() {
		stop()
		<-pruning
	}()
	limit := time.After(testkit.Limit)
	for {
		if _, err := os.Stat(begun); err == nil {
			break
		}
		select {
		case <-limit:
			t.Fatal("git gc does not begin")
		case <-time.After(10 * time.Millisecond):
		}
	}
	for _, id := range []string{two, one} {
		if _, c := f.during(id, func() {}); c.State != "none" {
			t.Errorf("a turn beside git gc: got %+v, want state none", c)
		}
	}
}
