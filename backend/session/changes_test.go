package session_test

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/files"
	"deskhand/backend/proxy"
	"deskhand/backend/proxy/proxytest"
	"deskhand/backend/session"
	"deskhand/backend/snapshot"
	"deskhand/backend/store"
)

// snapshots is a library for a desk; path is where git is looked for, the usual places where it is empty.
func snapshots(t testing.TB, dir, path string, cfg snapshot.Config) *snapshot.Library {
	t.Helper()
	set, err := proxy.Open(proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Dir, cfg.Beside = filepath.Join(dir, "snapshots"), set
	if cfg.Replace == nil {
		cfg.Replace = files.ReplaceIf
	}
	cfg.Environ = func(context.Context) []string {
		if path != "" {
			return append(os.Environ(), "PATH="+path)
		}
		return os.Environ()
	}
	l, err := snapshot.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(l.Close(), set.Close()); err != nil {
			t.Error(err)
		}
	})
	return l
}

func openLooking(t *testing.T, dir string) *desk {
	t.Helper()
	return openAs(t, dir, proxy.Config{}, session.Config{Snapshots: snapshots(t, dir, "", snapshot.Config{})})
}

func (d *desk) leave(files ...string) {
	d.t.Helper()
	for i := 0; i+1 < len(files); i += 2 {
		name := filepath.Join(d.work, files[i])
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(files[i+1]), 0o600)); err != nil {
			d.t.Fatal(err)
		}
	}
}

func (d *desk) read(name string) string {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(d.work, name))
	if errors.Is(err, os.ErrNotExist) {
		return "(gone)"
	}
	if err != nil {
		d.t.Fatal(err)
	}
	return string(data)
}

// during lets an agent change the directory in a turn, and gives the turn when it was looked at.
func (d *desk) during(id string, change func()) session.Turn {
	d.t.Helper()
	turn := d.prompt(id, "question")
	r := d.request(id)
	change()
	d.answer(r, session.Answer{Reject: true})
	return d.looked(id, turn.ID)
}

// looked waits until it is told what a turn has changed.
func (d *desk) looked(id, turn string) session.Turn {
	d.t.Helper()
	var found session.Turn
	d.until("changes", func() bool {
		for _, t := range d.transcript(id).Turns {
			if t.ID == turn && t.Changes != nil {
				found = t
			}
		}
		return found.ID != ""
	})
	return found
}

func (d *desk) changes(id string, at session.ChangeScope) session.Changes {
	d.t.Helper()
	c, err := d.Changes(d.t.Context(), id, at)
	if err != nil {
		d.t.Fatal(err)
	}
	return c
}

func (d *desk) fileDiff(id string, at session.ChangeScope, path string) session.FileDiff {
	d.t.Helper()
	f, err := d.FileDiff(d.t.Context(), id, at, path)
	if err != nil {
		d.t.Fatal(err)
	}
	return f
}

func listed(c session.Changes) string {
	var lines []string
	for _, f := range c.Files {
		lines = append(lines, fmt.Sprintf("%s %s +%d -%d %d/%d %s", f.Kind, f.Path, f.Added, f.Removed, f.Kept, f.Hunks, f.Now))
	}
	return strings.Join(lines, "\n")
}

func putBack(r session.Restored) string {
	var lines []string
	for _, f := range r.Files {
		lines = append(lines, strings.TrimSpace(f.Path+" "+f.Outcome+" "+f.Reason))
	}
	return strings.Join(lines, "\n")
}

func wants(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
	}
}

func twenty() string {
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "line %d\n", i+1)
	}
	return text.String()
}

// TestATurnIsUndone: what an agent changes is told when the turn is over, hunk by hunk; a hunk, a file and all of it are taken back, and
// that as well.
func TestATurnIsUndone(t *testing.T) {
	d := openLooking(t, t.TempDir())
	d.leave("code.go", twenty(), "old.txt", "old\n", ".gitignore", "*.log\n", "noise.log", "1")
	id := d.create().ID
	d.during(id, func() {}) // nothing
	two := strings.Replace(strings.Replace(twenty(), "line 2\n", "line two\n", 1), "line 18\n", "", 1)
	turn := d.during(id, func() {
		d.leave("code.go", two, "new.txt", "new\n", "noise.log", "2")
		if err := os.Remove(filepath.Join(d.work, "old.txt")); err != nil {
			t.Fatal(err)
		}
	})
	if c := turn.Changes; c.State != "ready" || c.Files != 3 || c.Added != 2 || c.Removed != 3 || c.Mixed || c.Undone {
		t.Fatalf("%+v", c)
	}
	of := session.ChangeScope{Turn: turn.ID}
	all := d.changes(id, session.ChangeScope{})
	wants(t, "the files", listed(all), "modified code.go +1 -2 0/2 same\nadded new.txt +1 -0 0/1 same\ndeleted old.txt +0 -1 0/1 same")
	if all.State != "ready" || all.Turn != turn.ID || len(all.Turns) != 1 || all.Turns[0].ID != turn.ID {
		t.Errorf("%+v", all)
	}
	f := d.fileDiff(id, of, "code.go")
	if len(f.Hunks) != 2 || *f.Before != twenty() || *f.After != two || !f.Hunks[0].Revertable || !f.Hunks[1].Revertable {
		t.Fatalf("%+v", f)
	}

	// One is kept, the other taken back.
	if err := d.KeepHunks(t.Context(), id, session.KeepHunks{ChangeScope: of, Hunks: []session.HunkAt{{Path: "code.go", Hunk: f.Hunks[0].ID}, {Path: "new.txt"}}, Kept: true}); err != nil {
		t.Fatal(err)
	}
	first, err := d.Revert(t.Context(), id, session.RevertChanges{ChangeScope: of, Hunks: []session.HunkAt{{Path: "code.go", Hunk: f.Hunks[1].ID}}})
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "a hunk", putBack(first), "code.go restored")
	wants(t, "the file", d.read("code.go"), strings.Replace(twenty(), "line 2\n", "line two\n", 1))
	f = d.fileDiff(id, of, "code.go")
	if f.Now != "other" || !f.Hunks[0].Revertable || !f.Hunks[0].Kept || f.Hunks[1].Revertable || !f.Hunks[1].Reverted {
		t.Errorf("%+v", f)
	}
	wants(t, "the files", listed(d.changes(id, of)), "modified code.go +1 -2 1/2 other\nadded new.txt +1 -0 1/1 same\ndeleted old.txt +0 -1 0/1 same")
	// The rest of the file, whatever was taken back before.
	second, err := d.Revert(t.Context(), id, session.RevertChanges{ChangeScope: of, Paths: []string{"code.go", "new.txt"}})
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "two files", putBack(second), "code.go restored\nnew.txt removed")
	wants(t, "the file", d.read("code.go")+d.read("new.txt"), twenty()+"(gone)")
	for _, r := range []session.Restored{second, first} {
		if _, err := d.UndoRestoration(t.Context(), id, r.ID); err != nil {
			t.Fatal(err)
		}
	}
	wants(t, "the file", d.read("code.go")+d.read("new.txt"), two+"new\n")
	_, err = d.UndoRestoration(t.Context(), id, first.ID)
	refused(t, err, "changes.unknown_undo")

	// The whole turn.
	preview, err := d.RestoreTurn(t.Context(), id, session.RestoreTurn{Turn: turn.ID, Preview: true})
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "nothing was done", d.read("code.go"), two)
	back, err := d.RestoreTurn(t.Context(), id, session.RestoreTurn{Turn: turn.ID})
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "the turn", putBack(back), "code.go restored\nnew.txt removed\nold.txt restored")
	wants(t, "the preview", putBack(preview), putBack(back))
	wants(t, "the directory", d.read("code.go")+d.read("new.txt")+d.read("old.txt")+d.read("noise.log"), twenty()+"(gone)old\n2")
	if c := d.looked(id, turn.ID).Changes; !c.Undone || c.Restoration != back.ID || !d.changes(id, of).Turns[0].Undone {
		t.Errorf("%+v", c)
	}
	again, err := d.UndoRestoration(t.Context(), id, back.ID)
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "taken back", putBack(again), "code.go restored\nnew.txt restored\nold.txt removed")
	if c := d.looked(id, turn.ID).Changes; c.Undone || c.Restoration != "" {
		t.Errorf("%+v", c)
	}

	// What a person has changed since is left alone, and is replaced by force alone.
	d.leave("code.go", "by hand\n")
	some, err := d.RestoreTurn(t.Context(), id, session.RestoreTurn{Turn: turn.ID})
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "a conflict", putBack(some), "code.go conflict changes.edited\nnew.txt removed\nold.txt restored")
	if c := d.looked(id, turn.ID).Changes; c.Undone {
		t.Error("a part is not all of it")
	}
	forced, err := d.RestoreTurn(t.Context(), id, session.RestoreTurn{Turn: turn.ID, Force: true})
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "by force", putBack(forced), "code.go restored\nnew.txt same\nold.txt same")
	if _, err := d.UndoRestoration(t.Context(), id, forced.ID); err != nil {
		t.Fatal(err)
	}
	wants(t, "the person's own", d.read("code.go"), "by hand\n")
	d.sameAsRebuilt(id)
}

// TestSinceTheStart: all turns together, and what is refused.
func TestSinceTheStart(t *testing.T) {
	d := openLooking(t, t.TempDir())
	id := d.create().ID
	if c := d.changes(id, session.ChangeScope{}); c.State != "ready" || len(c.Files) != 0 || len(c.Turns) != 0 {
		t.Errorf("%+v", c)
	}
	first := d.during(id, func() { d.leave("a", "1\n", "b", "1\n") })
	d.during(id, func() { d.leave("a", "2\n"); os.Remove(filepath.Join(d.work, "b")) })
	wants(t, "since the start", listed(d.changes(id, session.ChangeScope{Since: "start"})), "added a +1 -0 0/1 same")
	wants(t, "the newest turn", listed(d.changes(id, session.ChangeScope{})), "modified a +1 -1 0/1 same\ndeleted b +0 -1 0/1 same")
	wants(t, "the first turn", listed(d.changes(id, session.ChangeScope{Turn: first.ID})), "added a +1 -0 0/1 other\nadded b +1 -0 0/1 gone")
	_, err := d.FileDiff(t.Context(), id, session.ChangeScope{}, "c")
	refused(t, err, "changes.unknown_path")
	_, err = d.Revert(t.Context(), id, session.RevertChanges{Hunks: []session.HunkAt{{Path: "a", Hunk: "x"}}})
	refused(t, err, "changes.unknown_hunk")
	_, err = d.RestoreTurn(t.Context(), id, session.RestoreTurn{Turn: "none"})
	refused(t, err, "changes.unknown_turn")

	turn := d.prompt(id, "question")
	r := d.request(id)
	if c := d.changes(id, session.ChangeScope{}); c.State != "taking" || c.Turn != turn.ID || len(c.Turns) != 2 {
		t.Errorf("%+v", c)
	}
	_, err = d.RestoreTurn(t.Context(), id, session.RestoreTurn{Turn: first.ID, Preview: true})
	refused(t, err, "changes.turn_running")
	_, err = d.RestoreTurn(t.Context(), id, session.RestoreTurn{Turn: turn.ID})
	refused(t, err, "changes.turn_running")
	d.answer(r, session.Answer{Reject: true})
	if c := d.looked(id, turn.ID).Changes; c.State != "none" || c.Files != 0 {
		t.Errorf("%+v", c)
	}
}

// TestEveryEndIsLookedAt: a turn that is cancelled, one whose agent crashes, and one in which the program ends.
func TestEveryEndIsLookedAt(t *testing.T) {
	dir := t.TempDir()
	d := openLooking(t, dir)
	id := d.create().ID
	turn := d.prompt(id, "question")
	d.request(id)
	d.leave("a", "1\n")
	if err := d.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if c := d.looked(id, turn.ID).Changes; c.Files != 1 {
		t.Errorf("cancelled: %+v", c)
	}
	d.idle(id)
	turn = d.prompt(id, "crash")
	if got := d.looked(id, turn.ID); got.StopReason != "agent_exited" || got.Changes.State != "none" {
		t.Errorf("crashed: %+v %+v", got, got.Changes)
	}
	turn = d.prompt(id, "question")
	d.request(id)
	d.leave("a", "2\n", "b", "2\n")
	d.close()
	d = openLooking(t, dir)
	if got := d.looked(id, turn.ID); got.StopReason != "interrupted" || got.Changes.Files != 2 || got.Changes.Mixed {
		t.Errorf("interrupted: %+v %+v", got, got.Changes)
	}
	// And the program dies.
	d.close()
	late(t, dir, `UPDATE turn SET state = 'running' WHERE id = '`+turn.ID+`'`)
	d.leave("by-hand", "1\n")
	d = openLooking(t, dir)
	if got := d.looked(id, turn.ID); got.Changes.Files != 3 || !got.Changes.Mixed || got.Changes.Reason != "changes.late" {
		t.Errorf("died: %+v %+v", got, got.Changes)
	}
}

// TestALookThatIsMissingIsTakenAtTheNextStart: the program has died between the end of a turn and the look at it.
func TestALookThatIsMissingIsTakenAtTheNextStart(t *testing.T) {
	dir := t.TempDir()
	d := openLooking(t, dir)
	id := d.create().ID
	turn := d.during(id, func() { d.leave("a", "1\n") })
	d.close()
	late(t, dir)
	d.leave("by-hand", "1\n")
	d = openLooking(t, dir)
	if c := d.looked(id, turn.ID).Changes; c.Files != 2 || !c.Mixed || c.Reason != "changes.late" {
		t.Errorf("%+v", c)
	}
	if c := d.changes(id, session.ChangeScope{}); !c.Mixed || c.Reason != "changes.late" {
		t.Errorf("%+v", c)
	}
	if back, err := d.RestoreTurn(t.Context(), id, session.RestoreTurn{Turn: turn.ID, Preview: true}); err != nil || !back.Mixed || back.Reason != "changes.late" {
		t.Errorf("%+v %v", back, err)
	}
	if c := d.during(id, func() { d.leave("a", "2\n") }).Changes; c.Mixed || c.Reason != "" {
		t.Errorf("the next one: %+v", c)
	}
}

// gated is a git that waits for a gate to open, and where that is.
func gated(t *testing.T) (path string, open func()) {
	t.Helper()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	gate := filepath.Join(dir, "gate")
	script := fmt.Sprintf("#!/bin/sh\nwhile [ ! -e '%s' ]; do sleep 0.02; done\nexec '%s' \"$@\"\n", gate, git)
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return dir + ":/bin:/usr/bin", func() {
		if err := os.WriteFile(gate, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAPromptIsHeldButNotForLong: what is read too slowly does not keep the agent from its work. What it has changed before it could be read has no
// way back, and is said to have none; the rest of the turn has one.
func TestAPromptIsHeldButNotForLong(t *testing.T) {
	dir := t.TempDir()
	path, letGo := gated(t)
	d := openAs(t, dir, proxy.Config{}, session.Config{Snapshots: snapshots(t, dir, path, snapshot.Config{}), HoldPrompt: 300 * time.Millisecond})
	d.leave("kept", "1\n")
	time.Sleep(100 * time.Millisecond) // the clock of the file system ticks
	id := d.create().ID
	turn := d.prompt(id, "question")
	r := d.request(id) // it has gone out
	d.leave("a", "1\n")
	letGo()
	db, err := sql.Open("sqlite", filepath.Join(dir, "deskhand.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	d.until("the look before", func() bool {
		var rows int
		err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM turn_change`).Scan(&rows)
		return err == nil && rows == 1
	})
	d.leave("kept", "2\n")
	d.answer(r, session.Answer{Reject: true})
	got := d.looked(id, turn.ID).Changes
	if runtime.GOOS != "linux" { // where no file tells when it was changed
		if got.State != "off" || got.Reason != "changes.slow" {
			t.Errorf("%+v", got)
		}
		return
	}
	if c := d.changes(id, session.ChangeScope{}); got.State != "ready" || got.Files != 2 || len(c.Left) != 1 || c.Left[0].Path != "a" || c.Left[0].Reason != "late" {
		t.Errorf("got %+v, %+v; want two files, and a among those that came too late", got, c)
	}
	back, err := d.RestoreTurn(t.Context(), id, session.RestoreTurn{Turn: turn.ID})
	if want := `[{"path":"a","outcome":"conflict","reason":"changes.not_kept"},{"path":"kept","outcome":"restored"}]`; err != nil || string(asJSON(t, back.Files)) != want {
		t.Errorf("got %s, %v; want %s", asJSON(t, back.Files), err, want)
	}
	if a, kept := d.read("a"), d.read("kept"); a != "1\n" || kept != "1\n" {
		t.Errorf("got %q and %q; want the agent's and the first one", a, kept)
	}
}

// TestAPromptWaitsForWhatIsPutBack: however long that takes, else the agent would work in a directory that changes below it. Its turn is looked at
// when that is over.
func TestAPromptWaitsForWhatIsPutBack(t *testing.T) {
	const hold = 6 * time.Second // a turn whose directory is not looked at within it cannot be taken back
	dir := t.TempDir()
	begun, letGo := make(chan struct{}), make(chan struct{})
	lib := snapshots(t, dir, "", snapshot.Config{Replace: func(root *os.Root, name string, data []byte, mode fs.FileMode, last func() error) error {
		close(begun)
		<-letGo
		return files.ReplaceIf(root, name, data, mode, last)
	}})
	d := openAs(t, dir, proxy.Config{}, session.Config{Snapshots: lib, HoldPrompt: hold})
	d.leave("a", "1\n")
	one, two := d.create().ID, d.create().ID
	turn := d.during(one, func() { d.leave("a", "2\n") })
	d.until("the other agent", func() bool { return d.get(two).Phase == session.Ready })
	put := make(chan error, 1)
	go func() {
		_, err := d.RestoreTurn(t.Context(), one, session.RestoreTurn{Turn: turn.ID})
		put <- err
	}()
	select {
	case <-begun:
	case err := <-put:
		t.Fatal(err)
	}
	first, second := d.prompt(one, "question"), d.prompt(two, "question")
	<-time.After(hold + hold/2)
	sent := func(id string) (n int) {
		for dir, data := range d.journal(id) {
			if dir == "out" && strings.Contains(string(data), "session/prompt") {
				n++
			}
		}
		return n
	}
	if a, b := sent(one), sent(two); a != 1 || b != 0 {
		t.Errorf("a prompt has gone out: %d, %d", a, b)
	}
	close(letGo)
	if err := <-put; err != nil {
		t.Fatal(err)
	}
	d.answer(d.request(one), session.Answer{Reject: true})
	d.answer(d.request(two), session.Answer{Reject: true})
	if a, b := d.looked(one, first.ID).Changes, d.looked(two, second.ID).Changes; a.State != "none" || b.State != "none" {
		t.Errorf("%+v %+v", a, b)
	}
}

// TestAHeldPromptIsCancelled: the agent never hears of it.
func TestAHeldPromptIsCancelled(t *testing.T) {
	dir := t.TempDir()
	path, letGo := gated(t)
	d := openAs(t, dir, proxy.Config{}, session.Config{Snapshots: snapshots(t, dir, path, snapshot.Config{}), HoldPrompt: time.Minute})
	id := d.create().ID
	d.until("agent", func() bool { return d.get(id).Phase == session.Ready })
	turn := d.prompt(id, "question")
	if err := d.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	d.idle(id)
	letGo()
	if got := d.looked(id, turn.ID); got.StopReason != "cancelled" || got.Changes.State != "none" {
		t.Errorf("%+v %+v", got, got.Changes)
	}
	for dir, data := range d.journal(id) {
		if dir == "out" && strings.Contains(string(data), "session/prompt") {
			t.Errorf("%s", data)
		}
	}
}

// TestAHeldPromptIsCancelledBesideAQuestion: what the agent has asked while it was idle ends with the turn, and once.
func TestAHeldPromptIsCancelledBesideAQuestion(t *testing.T) {
	dir := t.TempDir()
	path, letGo := gated(t)
	curious := func(in io.Reader, out, _ io.Writer) int {
		for lines := bufio.NewScanner(in); lines.Scan(); {
			switch line := lines.Text(); {
			case strings.Contains(line, `"initialize"`):
				_, _ = fmt.Fprintln(out, `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}`)
			case strings.Contains(line, `"session/new"`):
				_, _ = fmt.Fprintln(out, `{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}`)
				_, _ = fmt.Fprintln(out, `{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"sessionId":"s","toolCall":{"toolCallId":"t"},"options":[{"optionId":"a","name":"Allow","kind":"allow_once"}]}}`)
			}
		}
		return 0
	}
	d := openAs(t, dir, proxy.Config{Spawn: proxytest.Spawn(curious)}, session.Config{Snapshots: snapshots(t, dir, path, snapshot.Config{}), HoldPrompt: time.Minute})
	id := d.create().ID
	r := d.request(id)
	d.prompt(id, "go")
	if err := d.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	tr := d.idle(id)
	letGo()
	if lastTurn(tr).StopReason != "cancelled" || len(tr.Requests) != 1 || tr.Requests[0].ID != r.ID || tr.Requests[0].Status != "cancelled" {
		t.Errorf("%+v, %+v", lastTurn(tr), tr.Requests)
	}
	answers := 0
	for dir, data := range d.journal(id) {
		if dir == "out" && strings.Contains(string(data), `"outcome":"cancelled"`) {
			answers++
		}
		if dir == "out" && (strings.Contains(string(data), "session/prompt") || strings.Contains(string(data), "session/cancel")) {
			t.Errorf("%s", data)
		}
	}
	if answers != 1 {
		t.Errorf("it was answered %d times", answers)
	}
}

// TestALookThatIsLateIsEnded: a turn that was stopped while its directory was still being read does not stay open, and the next one is told.
func TestALookThatIsLateIsEnded(t *testing.T) {
	dir := t.TempDir()
	path, letGo := gated(t)
	d := openAs(t, dir, proxy.Config{}, session.Config{Snapshots: snapshots(t, dir, path, snapshot.Config{}), HoldPrompt: time.Minute, LastLook: time.Nanosecond})
	id := d.create().ID
	d.until("agent", func() bool { return d.get(id).Phase == session.Ready })
	turn := d.prompt(id, "question")
	if err := d.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	d.idle(id)
	letGo()
	if c := d.looked(id, turn.ID).Changes; c.State != "off" || c.Reason != "changes.slow" {
		t.Errorf("%+v", c)
	}
}

// TestWhyATurnIsNotLookedAt: each reason, of a session that works all the same.
func TestWhyATurnIsNotLookedAt(t *testing.T) {
	for _, c := range []struct {
		reason string
		path   string
		cfg    snapshot.Config
		setUp  func(d *desk)
		params string
	}{
		{reason: "changes.no_git", path: "/none"},
		{reason: "changes.too_large", cfg: snapshot.Config{MostFiles: 2}, setUp: func(d *desk) { d.leave("a", "", "b", "", "c", "") }, params: `{"files":"2"}`},
		{reason: "changes.too_large", cfg: snapshot.Config{MostBytes: 2}, setUp: func(d *desk) { d.leave("a", "abc") }, params: `{"bytes":"2"}`},
		{reason: "changes.wide", setUp: func(d *desk) { t.Setenv("HOME", d.work) }},
		{reason: "changes.off", setUp: func(d *desk) { d.settings(`{"snapshots":false}`) }},
	} {
		t.Run(c.reason, func(t *testing.T) {
			dir := t.TempDir()
			d := openAs(t, dir, proxy.Config{}, session.Config{Snapshots: snapshots(t, dir, c.path, c.cfg), SettingsFile: filepath.Join(dir, "settings.json")})
			if c.setUp != nil {
				c.setUp(d)
			}
			id := d.create().ID
			turn := d.during(id, func() { d.leave("x", "x") })
			if ch := turn.Changes; ch.State != "off" || ch.Reason != c.reason || c.params != "" && string(asJSON(t, ch.Params)) != c.params {
				t.Errorf("%+v", ch)
			}
			_, err := d.RestoreTurn(t.Context(), id, session.RestoreTurn{Turn: turn.ID})
			if r := refused(t, err, "changes.not_looked_at"); r.Params["reason"] != c.reason {
				t.Errorf("%+v", r)
			}
		})
	}
}

func (d *desk) settings(text string) {
	d.t.Helper()
	if err := os.WriteFile(filepath.Join(d.dir, "settings.json"), []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func asJSON(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func execute(t *testing.T, db *store.DB, text string, args ...any) {
	t.Helper()
	if err := db.Write(t.Context(), func(tx *sql.Tx) error { _, err := tx.ExecContext(t.Context(), text, args...); return err }); err != nil {
		t.Fatal(err)
	}
}

// TestTwoInOneDirectory: their turns overlap, and both say so; nothing is put back while either is at work.
func TestTwoInOneDirectory(t *testing.T) {
	d := openLooking(t, t.TempDir())
	one, two := d.create().ID, d.create().ID
	alone := d.during(one, func() { d.leave("a", "0\n") })
	first := d.prompt(one, "question")
	ask := d.request(one)
	second := d.during(two, func() { d.leave("b", "2\n") })
	_, err := d.RestoreTurn(t.Context(), two, session.RestoreTurn{Turn: second.ID})
	refused(t, err, "changes.turn_running")
	d.leave("a", "1\n")
	d.answer(ask, session.Answer{Reject: true})
	if c := d.looked(one, first.ID).Changes; !c.Mixed || c.Files != 2 || !second.Changes.Mixed || alone.Changes.Mixed {
		t.Errorf("%+v %+v %+v", c, second.Changes, alone.Changes)
	}
	if _, err := d.RestoreTurn(t.Context(), two, session.RestoreTurn{Turn: second.ID}); err != nil {
		t.Fatal(err)
	}
	wants(t, "only its own", d.read("a")+d.read("b"), "1\n(gone)")
}

// TestWhatCannotBeKept: a file that is too long is told, and there is no way back for it; the rest is taken back.
func TestWhatCannotBeKept(t *testing.T) {
	dir := t.TempDir()
	d := openAs(t, dir, proxy.Config{}, session.Config{Snapshots: snapshots(t, dir, "", snapshot.Config{MostFile: 1000})})
	long := strings.Repeat("long\n", 1000)
	d.leave("grows", "1\n", "shrinks", long, "stays", long, "changes", long, "goes", long)
	id := d.create().ID
	turn := d.during(id, func() {
		d.leave("grows", long, "shrinks", "1\n", "changes", long+"x", "comes", long, "fine", "1\n")
		os.Remove(filepath.Join(d.work, "goes"))
	})
	c := d.changes(id, session.ChangeScope{})
	var left []string
	for _, l := range c.Left {
		left = append(left, l.Path+" "+l.Reason)
	}
	wants(t, "left out", strings.Join(left, ", "), "changes large, comes large, grows large, stays large")
	var large []string
	for _, f := range c.Files {
		large = append(large, fmt.Sprint(f.Kind, " ", f.Path, " ", f.Large))
	}
	wants(t, "the files", strings.Join(large, "\n"), "modified changes true\nadded comes true\nadded fine false\ndeleted goes true\nmodified grows true\nmodified shrinks true")
	back, err := d.RestoreTurn(t.Context(), id, session.RestoreTurn{Turn: turn.ID})
	if err != nil {
		t.Fatal(err)
	}
	not := " conflict changes.not_kept\n"
	wants(t, "put back", putBack(back), "changes"+not+"comes"+not+"fine removed\ngoes"+not+"grows"+not+"shrinks"+strings.TrimSuffix(not, "\n"))
	if d.read("grows") != long {
		t.Error("a file that is not kept was lost")
	}
}

// TestSnapshotsGo: those of a session that is erased, and those that are old; of the old ones it is told.
func TestSnapshotsGo(t *testing.T) {
	dir := t.TempDir()
	d := openAs(t, dir, proxy.Config{}, session.Config{Snapshots: snapshots(t, dir, "", snapshot.Config{}), Undo: time.Nanosecond, Unattached: 50 * time.Millisecond})
	one, two := d.create().ID, d.create().ID
	noise := strings.Repeat(twenty(), 500)
	turn := d.during(one, func() { d.leave("a", noise) })
	d.during(two, func() { d.leave("a", "2\n") })
	trees := func() int {
		list, err := filepath.Glob(filepath.Join(dir, "snapshots", "*", "refs", "trees", "*"))
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	if n := trees(); n != 3 {
		t.Fatalf("%d trees", n)
	}
	age(t, dir)
	execute(t, d.db, `UPDATE turn_change SET at = 1 WHERE turn = ?`, turn.ID)
	await(t, "the old ones to go", func() bool { return trees() == 2 })
	if c := d.looked(one, turn.ID).Changes; c.State != "off" || c.Reason != "changes.pruned" {
		t.Errorf("%+v", c)
	}
	wants(t, "the newer one", listed(d.changes(two, session.ChangeScope{})), "modified a +1 -10000 0/1 same")
	for _, id := range []string{one, two} {
		if err := d.Erase(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "all to go", func() bool {
		left, err := filepath.Glob(filepath.Join(dir, "snapshots", "*"))
		return err == nil && len(left) == 0
	})
}

// await waits for something that nobody tells of.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	limit := time.After(30 * time.Second)
	for !holds() {
		select {
		case <-limit:
			t.Fatalf("still waiting for %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// TestOddNames: a name that is no text, and one with a newline, are shown, found and put back.
func TestOddNames(t *testing.T) {
	d := openLooking(t, t.TempDir())
	id := d.create().ID
	names := []string{"a\nb", "\xff.txt", "\uFFFD.txt", "-n", ":(top)x", "ä b"}
	turn := d.during(id, func() {
		for _, name := range names {
			d.leave(name, "1\n")
		}
	})
	c := d.changes(id, session.ChangeScope{})
	var shown []string
	for _, f := range c.Files {
		shown = append(shown, f.Path)
		if diff := d.fileDiff(id, session.ChangeScope{}, f.Path); len(diff.Hunks) != 1 {
			t.Errorf("%q: %+v", f.Path, diff)
		}
	}
	slices.Sort(shown)
	wants(t, "the names", strings.Join(shown, "|"), "-n|:(top)x|a\nb|ä b|\uFFFDEF\uFFFDBF\uFFFDBD.txt|\uFFFDFF.txt")
	if _, err := d.Revert(t.Context(), id, session.RevertChanges{ChangeScope: session.ChangeScope{Turn: turn.ID}, Paths: shown}); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		wants(t, name, d.read(name), "(gone)")
	}
}
