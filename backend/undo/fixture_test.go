package undo_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deskhand/backend/entries"
	"deskhand/backend/files"
	"deskhand/backend/host"
	"deskhand/backend/proxy"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/snapshot"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
	"deskhand/backend/testkit"
	"deskhand/backend/undo"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// config is what differs between fixtures.
type config struct {
	snapshots  snapshot.Config
	path       string        // PATH of git; "" = of this process
	holdPrompt time.Duration // 0 = a minute
	lastLook   time.Duration
	disabled   bool
	unprepared bool // sessions begin without a snapshot, as where git is slow
}

// fixture is a Library with a directory, and the sessions and turns that drive the Library.
type fixture struct {
	*undo.Library

	t         *testing.T
	dir, work string // of the data, and of the sessions
	db        *store.DB
	snapshots *snapshot.Library
	processes *proxy.Set
	ctx       context.Context // ends with the program
	stop      context.CancelFunc
	running   sync.WaitGroup
	published chan string // the turns that were told of
	taken     int         // ids
	prepare   bool
	closing   sync.Once

	mu       sync.Mutex // protects sessions
	sessions map[string]*agent
}

// agent is a session and its Snapshotter.
type agent struct {
	undo.Session

	snapshots *undo.Snapshotter
}

// open opens a fixture over a directory of data; "" = a new one.
func open(t *testing.T, dir string, cfg config) *fixture {
	t.Helper()
	if dir == "" {
		dir = t.TempDir()
	}
	if cfg.holdPrompt == 0 {
		cfg.holdPrompt = time.Minute
	}
	f := &fixture{t: t, dir: dir, work: filepath.Join(dir, "work"), published: make(chan string, 1000), prepare: !cfg.unprepared, sessions: map[string]*agent{}}
	f.ctx, f.stop = context.WithCancel(context.WithoutCancel(t.Context()))
	var err error
	if f.processes, err = proxy.Open(proxy.Config{}); err != nil {
		t.Fatal(err)
	}
	cfg.snapshots.Dir, cfg.snapshots.Beside = filepath.Join(dir, "snapshots"), f.processes
	if cfg.snapshots.Replace == nil {
		cfg.snapshots.Replace = files.ReplaceIf
	}
	cfg.snapshots.Environ = func(context.Context) []string {
		if cfg.path != "" {
			return append(os.Environ(), "PATH="+cfg.path)
		}
		return os.Environ()
	}
	if f.snapshots, err = snapshot.Open(t.Context(), cfg.snapshots); err != nil {
		t.Fatal(err)
	}
	f.db = storetest.Open(t, dir)
	if err := os.MkdirAll(f.work, 0o700); err != nil {
		t.Fatal(err)
	}
	hosts := host.Hosts{Local: host.Capabilities{Directories: host.NewDirectories(nil, func(string) {}), Snapshots: f.snapshots}}
	f.Library = undo.New(undo.Deps{
		Store: f.db, Logger: slog.New(slog.DiscardHandler), Snapshots: f.snapshots, Host: hosts.At,
		Enabled: func() bool { return !cfg.disabled }, Writable: func() error { return nil },
		Publish: f.publish, Running: f.withTurns, Find: f.find, Unfinished: entries.New(f.db).Unfinished, HoldPrompt: cfg.holdPrompt, LastLook: cfg.lastLook,
	})
	t.Cleanup(f.close)
	return f
}

// close ends the program.
func (f *fixture) close() {
	f.closing.Do(func() {
		f.stop()
		f.running.Wait()
		if err := errors.Join(f.snapshots.Close(), f.processes.Close(), f.db.Close()); err != nil {
			f.t.Error(err)
		}
	})
}

// reopened is the fixture after the end of the program and its next start.
func (f *fixture) reopened() *fixture {
	f.t.Helper()
	f.close()
	next := open(f.t, f.dir, config{})
	for id, a := range f.sessions {
		s := a.Session
		s.Turn = ""
		next.sessions[id] = &agent{s, next.Snapshotter(next.running.Go)}
	}
	return next
}

// publish notes that a turn that is over was published.
func (f *fixture) publish(ctx context.Context, turn string) error {
	done, err := record.Query(ctx, f.db.Read(), record.ScanText, `SELECT id FROM turn WHERE id = ? AND state = 'done'`, turn)
	if len(done) > 0 {
		f.published <- turn
	}
	return err
}

func (f *fixture) withTurns() (list []undo.Session) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.sessions {
		if a.Turn != "" {
			list = append(list, a.Session)
		}
	}
	return list
}

func (f *fixture) find(_ context.Context, id string) (undo.Session, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a := f.sessions[id]
	if a == nil {
		return undo.Session{}, refusal.ErrNotFound
	}
	return a.Session, nil
}

// set changes a session.
func (f *fixture) set(id string, change func(s *undo.Session)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.sessions[id].Session)
}

// session makes a session in the fixture's directory.
func (f *fixture) session() string { return f.sessionIn(f.work) }

// sessionIn makes a session in a directory, whose path is the workspace's id, and in further directories.
func (f *fixture) sessionIn(cwd string, further ...string) string {
	f.t.Helper()
	id, workspace := f.id("s"), filepath.Base(cwd)
	f.exec(`INSERT OR IGNORE INTO workspace (id, place, path, device, inode, born, created_at) VALUES (?, 'local', ?, 0, 0, 0, 0)`, workspace, cwd)
	f.exec(`INSERT INTO session (id, place, workspace, cwd, agent, title, title_by, labels, pinned, unread, draft, acp_session_id, protocol_version,
		generation, facts, exit, created_at, updated_at, archived_at) VALUES (?, 'local', ?, '', 'mock', '', '', '[]', 0, 0, '', '', 1, 1, '{}', '', 0, 0, 0)`, id, workspace)
	s := undo.Session{ID: id, Place: host.Local, Workspace: workspace, Cwd: cwd, Directories: further}
	if f.prepare {
		f.Prepare(f.ctx, s)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sessions[id] = &agent{s, f.Snapshotter(f.running.Go)}
	return id
}

func (f *fixture) id(kind string) string {
	f.taken++
	return fmt.Sprintf("%s%03d", kind, f.taken)
}

// begin begins a turn, and returns its id when the prompt goes to the agent.
func (f *fixture) begin(session string) string {
	f.t.Helper()
	turn := f.id("t")
	f.exec(`INSERT INTO turn (id, session, generation, state, stop_reason, error, usage, started_at, ended_at) VALUES (?, ?, 1, 'running', '', '', '', 0, 0)`, turn, session)
	f.set(session, func(s *undo.Session) { s.Turn = turn })
	a := f.sessions[session]
	a.snapshots.TurnBegins(f.ctx, a.Session, turn, time.Now())
	for h := a.snapshots.Hold(a.Session); h != nil; {
		if !h.Wait(f.ctx) {
			f.t.Fatalf("Hold.Wait of turn %s: got false, want the prompt to go", turn)
		}
		if h.Released() {
			break
		}
	}
	f.awaitRow(turn)
	return turn
}

// awaitRow waits until the row of a turn has the names that .gitignore rules hide: a turn may change the rules at once.
func (f *fixture) awaitRow(turn string) {
	f.t.Helper()
	limit := time.After(testkit.Limit)
	for {
		complete, err := record.Query(f.t.Context(), f.db.Read(), record.ScanText, `SELECT turn FROM turn_change WHERE turn = ? AND
			(ended <> 0 OR json_extract(left_out, '$.more') IS NULL)`, turn)
		if err != nil {
			f.t.Fatal(err)
		}
		if len(complete) > 0 {
			return
		}
		select {
		case <-limit:
			f.t.Fatalf("the row of turn %s is not complete", turn)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// end ends the running turn of a session, and returns the changes that were published.
func (f *fixture) end(session string) undo.TurnChanges {
	f.t.Helper()
	a := f.sessions[session]
	turn := a.Turn
	f.exec(`UPDATE turn SET state = 'done' WHERE id = ?`, turn)
	f.set(session, func(s *undo.Session) { s.Turn = "" })
	a.snapshots.TurnEnds(f.ctx, a.Session, turn)()
	return f.awaitTurn(turn)
}

// awaitTurn waits until a turn is published, and returns its changes.
func (f *fixture) awaitTurn(turn string) undo.TurnChanges {
	f.t.Helper()
	limit := time.After(testkit.Limit)
	for {
		select {
		case id := <-f.published:
			if id == turn {
				return f.stored(turn)
			}
		case <-limit:
			f.t.Fatalf("turn %s is not published", turn)
		}
	}
}

// during has an agent change the directory in a turn.
func (f *fixture) during(session string, change func()) (turn string, changes undo.TurnChanges) {
	f.t.Helper()
	turn = f.begin(session)
	change()
	return turn, f.end(session)
}

// stored returns the changes of a turn as a session reads them.
func (f *fixture) stored(turn string) (c undo.TurnChanges) {
	f.t.Helper()
	list, err := record.Query(f.t.Context(), f.db.Read(), record.ScanText, `SELECT `+undo.ColumnOfTurn+` FROM turn WHERE id = ?`, turn)
	if err != nil || len(list) != 1 {
		f.t.Fatalf("the changes of turn %s: got %q, %v", turn, list, err)
	}
	if err := json.Unmarshal([]byte(list[0]), &c); err != nil {
		f.t.Fatalf("the changes of turn %s: got %q: %v", turn, list[0], err)
	}
	return c
}

func (f *fixture) exec(text string, args ...any) {
	f.t.Helper()
	if err := f.db.Write(f.t.Context(), func(tx *sql.Tx) error { _, err := tx.ExecContext(f.t.Context(), text, args...); return err }); err != nil {
		f.t.Fatalf("%s: got %v, want it done", text, err)
	}
}

// write writes files of the directory; names and contents alternate.
func (f *fixture) write(files ...string) {
	f.t.Helper()
	for i := 0; i+1 < len(files); i += 2 {
		name := filepath.Join(f.work, files[i])
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(files[i+1]), 0o600)); err != nil {
			f.t.Fatal(err)
		}
	}
}

func (f *fixture) remove(names ...string) {
	f.t.Helper()
	for _, name := range names {
		if err := os.Remove(filepath.Join(f.work, name)); err != nil {
			f.t.Fatal(err)
		}
	}
}

// read returns the contents of files, one after the other; "(gone)" for a file that is not there.
func (f *fixture) read(names ...string) string {
	f.t.Helper()
	var text strings.Builder
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(f.work, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			data = []byte("(gone)")
		case err != nil:
			f.t.Fatal(err)
		}
		text.Write(data)
	}
	return text.String()
}

func (f *fixture) git(args ...string) {
	f.t.Helper()
	if out, err := exec.CommandContext(f.t.Context(), "git", append([]string{"-C", f.work}, args...)...).CombinedOutput(); err != nil {
		f.t.Fatalf("git %q: %v: %s", args, err, out)
	}
}

func (f *fixture) changes(session string, scope undo.ChangeScope) undo.Changes {
	f.t.Helper()
	c, err := f.Changes(f.t.Context(), session, scope)
	if err != nil {
		f.t.Fatalf("Changes(%+v): %v", scope, err)
	}
	return c
}

func (f *fixture) diff(session string, scope undo.ChangeScope, path string) undo.FileDiff {
	f.t.Helper()
	d, err := f.FileDiff(f.t.Context(), session, scope, path)
	if err != nil {
		f.t.Fatalf("FileDiff(%+v, %q): %v", scope, path, err)
	}
	return d
}

func (f *fixture) revert(session string, r undo.RevertChanges) undo.Restored {
	f.t.Helper()
	done, err := f.Revert(f.t.Context(), session, r)
	if err != nil {
		f.t.Fatalf("Revert(%+v): %v", r, err)
	}
	return done
}

func (f *fixture) restore(session string, r undo.RestoreTurn) undo.Restored {
	f.t.Helper()
	done, err := f.RestoreTurn(f.t.Context(), session, r)
	if err != nil {
		f.t.Fatalf("RestoreTurn(%+v): %v", r, err)
	}
	return done
}

func (f *fixture) undo(session, restoration string) undo.Restored {
	f.t.Helper()
	done, err := f.UndoRestoration(f.t.Context(), session, restoration)
	if err != nil {
		f.t.Fatalf("UndoRestoration(%q): %v", restoration, err)
	}
	return done
}

// wantRefused checks that a command was refused with a code, and returns the refusal.
func wantRefused(t *testing.T, command string, err error, code string) *refusal.Error {
	t.Helper()
	r, ok := errors.AsType[*refusal.Error](err)
	if !ok || r.Code != code {
		t.Fatalf("%s: got %v, want refusal %s", command, err, code)
	}
	return r
}

// want compares two texts.
func want(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got\n%s\nwant\n%s", what, got, want)
	}
}

// listed is the files of changes as text: kind, path, lines, kept hunks of all hunks, and the state on the disk.
func listed(c undo.Changes) string {
	var lines []string
	for _, f := range c.Files {
		lines = append(lines, fmt.Sprintf("%s %s +%d -%d %d/%d %s", f.Kind, f.Path, f.Added, f.Removed, f.Kept, f.Hunks, f.Now))
	}
	return strings.Join(lines, "\n")
}

// outcomes is the files of a restoration as text.
func outcomes(r undo.Restored) string {
	var lines []string
	for _, f := range r.Files {
		lines = append(lines, strings.TrimSpace(f.Path+" "+f.Outcome+" "+f.Reason))
	}
	return strings.Join(lines, "\n")
}

// twenty is a text of twenty lines.
func twenty() string {
	var text strings.Builder
	for i := range 20 {
		fmt.Fprintf(&text, "line %d\n", i+1)
	}
	return text.String()
}
