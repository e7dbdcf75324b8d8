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
	"strings"
	"testing"
	"time"

	"deskhand/backend/feed"
	"deskhand/backend/files"
	"deskhand/backend/lifecycle"
	"deskhand/backend/proxy"
	"deskhand/backend/proxy/proxytest"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/snapshot"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
	"deskhand/backend/testkit"
	"deskhand/backend/undo"
)

// snapshots opens a library of snapshots for a desk. path is the PATH of git; "" = of this process.
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

// during has an agent change the directory in a turn, and returns the turn with its changes.
func (d *desk) during(id string, change func()) session.Turn {
	d.t.Helper()
	turn := d.prompt(id, "question")
	r := d.request(id)
	change()
	d.answer(r, requests.Answer{Reject: true})
	return d.looked(id, turn.ID)
}

// looked waits until the changes of a turn are published, and returns the turn.
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

func (d *desk) changes(id string, at undo.ChangeScope) undo.Changes {
	d.t.Helper()
	c, err := d.Undo().Changes(d.t.Context(), id, at)
	if err != nil {
		d.t.Fatal(err)
	}
	return c
}

func listed(c undo.Changes) string {
	var lines []string
	for _, f := range c.Files {
		lines = append(lines, fmt.Sprintf("%s %s +%d -%d %d/%d %s", f.Kind, f.Path, f.Added, f.Removed, f.Kept, f.Hunks, f.Now))
	}
	return strings.Join(lines, "\n")
}

func putBack(r undo.Restored) string {
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

// A turn that is cancelled, a turn whose agent crashes, and turns in which the program ends or dies have their changes recorded.
func TestChangesAreRecordedAtEveryEnd(t *testing.T) {
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
		t.Errorf("a cancelled turn: got %+v, want one file", c)
	}
	d.idle(id)
	turn = d.prompt(id, "crash")
	if got := d.looked(id, turn.ID); got.StopReason != "agent_exited" || got.Changes.State != "none" {
		t.Errorf("a turn of an agent that crashed: got %+v with %+v, want agent_exited, no changes", got, got.Changes)
	}
	turn = d.prompt(id, "question")
	d.request(id)
	d.leave("a", "2\n", "b", "2\n")
	d.close()
	d = openLooking(t, dir)
	if got := d.looked(id, turn.ID); got.StopReason != "interrupted" || got.Changes.Files != 2 || got.Changes.Mixed {
		t.Errorf("a turn interrupted by the end of the program: got %+v with %+v, want two files", got, got.Changes)
	}
	// And the program dies.
	d.close()
	late(t, dir, `UPDATE turn SET state = 'running' WHERE id = '`+turn.ID+`'`)
	d.leave("by-hand", "1\n")
	d = openLooking(t, dir)
	if got := d.looked(id, turn.ID); got.Changes.Files != 3 || !got.Changes.Mixed || got.Changes.Reason != "changes.late" {
		t.Errorf("a turn in which the program died: got %+v with %+v, want three files, mixed by changes.late", got, got.Changes)
	}
}

// The program has died between the end of a turn and the snapshot after the turn.
func TestMissingSnapshotIsTakenAtTheNextStart(t *testing.T) {
	dir := t.TempDir()
	d := openLooking(t, dir)
	id := d.create().ID
	turn := d.during(id, func() { d.leave("a", "1\n") })
	d.close()
	late(t, dir)
	d.leave("by-hand", "1\n")
	d = openLooking(t, dir)
	if c := d.looked(id, turn.ID).Changes; c.Files != 2 || !c.Mixed || c.Reason != "changes.late" {
		t.Errorf("the turn: got %+v, want two files, mixed by changes.late", c)
	}
	if c := d.changes(id, undo.ChangeScope{}); !c.Mixed || c.Reason != "changes.late" {
		t.Errorf("Changes: got %+v, want mixed by changes.late", c)
	}
	if back, err := d.Undo().RestoreTurn(t.Context(), id, undo.RestoreTurn{Turn: turn.ID, Preview: true}); err != nil || !back.Mixed || back.Reason != "changes.late" {
		t.Errorf("RestoreTurn: got %+v, %v; want mixed by changes.late", back, err)
	}
	if c := d.during(id, func() { d.leave("a", "2\n") }).Changes; c.Mixed || c.Reason != "" {
		t.Errorf("the next turn: got %+v, want it not mixed", c)
	}
}

// gated returns a PATH with a git that waits until open is called.
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

// A directory that is read too slowly does not hold up the prompt. A file that the agent changed before it could be read cannot be
// restored, and is listed as such; the rest of the turn can.
func TestPromptWaitsShortlyForSnapshot(t *testing.T) {
	dir := t.TempDir()
	path, letGo := gated(t)
	d := openAs(t, dir, proxy.Config{}, session.Config{Snapshots: snapshots(t, dir, path, snapshot.Config{}), HoldPrompt: 300 * time.Millisecond})
	d.leave("kept", "1\n")
	time.Sleep(100 * time.Millisecond) // the clock of the file system ticks
	id := d.create().ID
	turn := d.prompt(id, "question")
	r := d.request(id) // the prompt was sent
	d.leave("a", "1\n")
	letGo()
	db, err := sql.Open("sqlite", filepath.Join(dir, "deskhand.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	d.until("the snapshot before", func() bool {
		var rows int
		err := db.QueryRowContext(t.Context(), `SELECT count(*) FROM turn_change`).Scan(&rows)
		return err == nil && rows == 1
	})
	d.leave("kept", "2\n")
	d.answer(r, requests.Answer{Reject: true})
	got := d.looked(id, turn.ID).Changes
	if runtime.GOOS != "linux" { // no file system here tells when a file was changed
		if got.State != "off" || got.Reason != "changes.slow" {
			t.Errorf("the turn: got %+v, want off by changes.slow", got)
		}
		return
	}
	if c := d.changes(id, undo.ChangeScope{}); got.State != "ready" || got.Files != 2 || len(c.Left) != 1 || c.Left[0].Path != "a" || c.Left[0].Reason != "late" {
		t.Errorf("got %+v, %+v; want two files, and a among those that came too late", got, c)
	}
	back, err := d.Undo().RestoreTurn(t.Context(), id, undo.RestoreTurn{Turn: turn.ID})
	if want := `[{"path":"a","outcome":"conflict","reason":"changes.not_kept"},{"path":"kept","outcome":"restored"}]`; err != nil || string(asJSON(t, back.Files)) != want {
		t.Errorf("got %s, %v; want %s", asJSON(t, back.Files), err, want)
	}
	if a, kept := d.read("a"), d.read("kept"); a != "1\n" || kept != "1\n" {
		t.Errorf("got %q and %q; want the agent's and the first one", a, kept)
	}
}

// A prompt waits for a restoration, however long the restoration takes: the agent would work in a directory that changes below it. The snapshot before
// the turn is taken when the restoration is over.
func TestPromptWaitsForRestoration(t *testing.T) {
	const hold = 6 * time.Second // a turn whose directory is not read during the turn cannot be undone
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
	d.until("the other agent", func() bool { return d.get(two).Phase == lifecycle.Ready })
	put := make(chan error, 1)
	go func() {
		_, err := d.Undo().RestoreTurn(t.Context(), one, undo.RestoreTurn{Turn: turn.ID})
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
		t.Errorf("prompts sent: got %d and %d, want 1 and 0", a, b)
	}
	close(letGo)
	if err := <-put; err != nil {
		t.Fatal(err)
	}
	d.answer(d.request(one), requests.Answer{Reject: true})
	d.answer(d.request(two), requests.Answer{Reject: true})
	if a, b := d.looked(one, first.ID).Changes, d.looked(two, second.ID).Changes; a.State != "none" || b.State != "none" {
		t.Errorf("the turns: got %+v and %+v, want no changes", a, b)
	}
}

// A prompt that is cancelled while it is held is never sent to the agent.
func TestHeldPromptIsCancelled(t *testing.T) {
	dir := t.TempDir()
	path, letGo := gated(t)
	d := openAs(t, dir, proxy.Config{}, session.Config{Snapshots: snapshots(t, dir, path, snapshot.Config{}), HoldPrompt: time.Minute})
	id := d.create().ID
	d.until("agent", func() bool { return d.get(id).Phase == lifecycle.Ready })
	turn := d.prompt(id, "question")
	if err := d.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	d.idle(id)
	letGo()
	if got := d.looked(id, turn.ID); got.StopReason != "cancelled" || got.Changes.State != "none" {
		t.Errorf("the turn: got %+v with %+v, want it cancelled, without changes", got, got.Changes)
	}
	for dir, data := range d.journal(id) {
		if dir == "out" && strings.Contains(string(data), "session/prompt") {
			t.Errorf("the agent was sent %s", data)
		}
	}
}

// A request that the agent made while the prompt was held ends with the turn, and is answered once.
func TestHeldPromptIsCancelledBesideRequest(t *testing.T) {
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
		t.Errorf("the turn and its requests: got %+v and %+v, want both cancelled", lastTurn(tr), tr.Requests)
	}
	answers := 0
	for dir, data := range d.journal(id) {
		if dir == "out" && strings.Contains(string(data), `"outcome":"cancelled"`) {
			answers++
		}
		if dir == "out" && (strings.Contains(string(data), "session/prompt") || strings.Contains(string(data), "session/cancel")) {
			t.Errorf("the agent was sent %s", data)
		}
	}
	if answers != 1 {
		t.Errorf("the request: got %d answers, want 1", answers)
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

// Turns of two sessions in one directory that overlap are mixed, and nothing is put back while either agent works.
func TestOverlappingTurnsInOneDirectory(t *testing.T) {
	d := openLooking(t, t.TempDir())
	one, two := d.create().ID, d.create().ID
	alone := d.during(one, func() { d.leave("a", "0\n") })
	first := d.prompt(one, "question")
	ask := d.request(one)
	second := d.during(two, func() { d.leave("b", "2\n") })
	_, err := d.Undo().RestoreTurn(t.Context(), two, undo.RestoreTurn{Turn: second.ID})
	refused(t, err, "changes.turn_running")
	d.leave("a", "1\n")
	d.answer(ask, requests.Answer{Reject: true})
	if c := d.looked(one, first.ID).Changes; !c.Mixed || c.Files != 2 || !second.Changes.Mixed || alone.Changes.Mixed {
		t.Errorf("the turns: got %+v, %+v and alone %+v; want the first two mixed", c, second.Changes, alone.Changes)
	}
	if _, err := d.Undo().RestoreTurn(t.Context(), two, undo.RestoreTurn{Turn: second.ID}); err != nil {
		t.Fatal(err)
	}
	wants(t, "only its own", d.read("a")+d.read("b"), "1\n(gone)")
}

// The snapshots of an erased session are removed, and so are old snapshots, whose turns tell that.
func TestSnapshotsAreForgotten(t *testing.T) {
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
		t.Fatalf("got %d trees, want 3", n)
	}
	age(t, dir)
	execute(t, d.db, `UPDATE turn_change SET at = 1 WHERE turn = ?`, turn.ID)
	await(t, "the old ones to go", func() bool { return trees() == 2 })
	if c := d.looked(one, turn.ID).Changes; c.State != "off" || c.Reason != "changes.pruned" {
		t.Errorf("the old turn: got %+v, want off by changes.pruned", c)
	}
	wants(t, "the newer one", listed(d.changes(two, undo.ChangeScope{})), "modified a +1 -10000 0/1 same")
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

// await polls for a state that no event tells.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	limit := time.After(testkit.Limit)
	for !holds() {
		select {
		case <-limit:
			t.Fatalf("still waiting for %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// A directory is moved to the path of another workspace: its turns are shown and undone there, with the turns that come after.
func TestTurnsOfDirectoryThatJoinedAnother(t *testing.T) {
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
		t.Fatalf("relink: got %+v, want workspace %s", w, there.Workspace.ID)
	}
	d.work = to
	d.during(id.ID, func() { d.leave("b", "2\n") })
	wants(t, "since the start", listed(d.changes(id.ID, undo.ChangeScope{Since: "start"})), "modified a +1 -1 0/1 same\nmodified b +1 -1 0/1 same")
	back, err := d.Undo().RestoreTurn(t.Context(), id.ID, undo.RestoreTurn{Turn: turn.ID})
	if err != nil {
		t.Fatal(err)
	}
	wants(t, "put back", putBack(back)+"\n"+d.read("a"), "a restored\n1\n")
	if _, err := d.Undo().UndoRestoration(t.Context(), id.ID, back.ID); err != nil {
		t.Fatal(err)
	}
	wants(t, "taken back", d.read("a"), "2\n")
	for _, path := range []string{"a", "b"} {
		if _, err := d.Undo().Revert(t.Context(), id.ID, undo.RevertChanges{ChangeScope: undo.ChangeScope{Since: "start"}, Paths: []string{path}}); err != nil {
			t.Fatal(err)
		}
	}
	wants(t, "all of it", d.read("a")+d.read("b"), "1\n1\n")
}

// age makes all trees old enough to be removed when nothing names them.
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

// late removes the snapshots after all turns, as if the program had died before them.
func late(t *testing.T, dir string, more ...string) {
	t.Helper()
	db := storetest.Open(t, dir)
	for _, text := range append(more, `UPDATE turn_change SET ended = 0, became = '', data = ''`) {
		execute(t, db, text)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// A surface that follows a turn stops listening at its end, so no event of the turn may come after the first event with state done. A
// snapshot without changes is ready early: of twenty turns, three and more had such an event before the snapshot after a turn waited for
// the step.
func TestChangesArePublishedAfterTheEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := openAs(t, dir, proxy.Config{}, session.Config{Snapshots: snapshots(t, dir, "/none", snapshot.Config{})})
	id := d.create().ID
	for range 20 {
		d.looked(id, d.prompt(id, "echo all of it").ID)
	}
	var events []feed.Event
	d.until("the last one being told", func() bool {
		events = nil
		q := feed.Query{Gen: d.Feed().Gen(), Session: id, Types: []string{"turn.upsert", "entry.upsert", "entry.append"}}
		for more := true; more; { // a batch has its size, and more events are more than one batch where a slow machine joins fewer of them
			batch, err := d.Feed().After(t.Context(), q)
			if err != nil || batch.Reset {
				t.Fatalf("After(%+v): got reset %t, %v, want events", q, batch.Reset, err)
			}
			events, q.After, more = append(events, batch.Events...), batch.Seq, batch.More
		}
		return strings.Contains(string(events[len(events)-1].Data), `"changes":{`)
	})
	ended := map[string]bool{}
	for i, e := range events {
		var of struct {
			ID, Turn, State string
			Changes         json.RawMessage
		}
		if err := json.Unmarshal(e.Data, &of); err != nil {
			t.Fatal(err)
		}
		switch {
		case e.Type != "turn.upsert":
			if ended[of.Turn] {
				t.Errorf("event %d: %s of a turn that was told to be done: %s", i, e.Type, e.Data)
			}
		case of.State == "done" && !ended[of.ID] && of.Changes != nil:
			t.Errorf("event %d: what a turn changed is told before its end: %s", i, e.Data)
			fallthrough
		case of.State == "done":
			ended[of.ID] = true
		}
	}
	if len(ended) != 20 {
		t.Errorf("got %d ended turns, want 20", len(ended))
	}
}
