package backend_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/adrg/xdg"
	"github.com/gofrs/flock"

	"deskhand/backend"
	"deskhand/backend/datadir"
	"deskhand/backend/httpapi"
	"deskhand/backend/session"
	"deskhand/backend/store"
)

// killVariable makes the test binary a Deskhand that moves its data and is killed at a step: "step directory".
const killVariable = "DESKHAND_TEST_KILLED_AT"

func TestMain(m *testing.M) {
	step, to, killed := strings.Cut(os.Getenv(killVariable), " ")
	if !killed {
		os.Exit(m.Run())
	}
	err := moveAndDie(step, to)
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// moveAndDie moves the data, and dies as by kill -9 at a step.
func moveAndDie(step, to string) error {
	h, err := openHost(func(c *backend.Config) {
		c.Step = func(now string) {
			if now == step {
				p, err := os.FindProcess(os.Getpid())
				if err == nil {
					_ = p.Kill()
				}
				select {} // the signal is on its way
			}
		}
	})
	if err != nil {
		return err
	}
	if _, err := h.BeginMove(context.Background(), to, false); err != nil {
		return err
	}
	return errors.Join(errors.New("it lived"), <-h.Failed())
}

func openHost(change func(*backend.Config)) (*backend.Host, error) {
	places, err := datadir.Find("")
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cfg := backend.Config{Places: places, Version: "1.2.3", Kind: "server", Self: self, Roots: []string{os.TempDir()}, Logger: slog.New(slog.DiscardHandler)}
	if change != nil {
		change(&cfg)
	}
	return backend.OpenHost(context.Background(), cfg, true)
}

func hosted(t *testing.T, change func(*backend.Config)) *backend.Host {
	t.Helper()
	h, err := openHost(change)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// usual redirects the system's directories to the test's own, fills the data directory and returns its path.
func usual(t *testing.T) (data string) {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, at := range map[string]string{"XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "config", "XDG_STATE_HOME": "state"} {
		t.Setenv(name, filepath.Join(dir, at))
	}
	xdg.Reload()
	t.Cleanup(xdg.Reload)
	t.Cleanup(func() { removable(dir) }) // covers moves within the directory
	data = filepath.Join(dir, "data", "deskhand")
	fill(t, data)
	return data
}

// elsewhere is a missing directory.
func elsewhere(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Cleanup(func() { removable(dir) })
	return filepath.Join(dir, "new")
}

// removable makes the data's read-only directories writable, so that they can be removed.
func removable(dir string) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			_ = os.Chmod(path, 0o700)
		}
		return nil
	})
}

const filled = 50 // rows and files

// fill creates a data directory with data of each kind.
func fill(t *testing.T, data string) {
	t.Helper()
	for _, dir := range []string{"", "agents/a/1/bin", "agents/a/1/skill", "snapshots/s/objects"} {
		if err := os.MkdirAll(filepath.Join(data, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	db, err := store.Open(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Write(t.Context(), func(tx *sql.Tx) error {
		for n := range filled {
			if err := os.WriteFile(filepath.Join(data, "agents/a/1/bin", fmt.Sprint(n)), fmt.Appendf(nil, "file %d", n), 0o600); err != nil {
				return err
			}
			if _, err := tx.Exec(`INSERT INTO workspace (id, place, path, device, inode, born, created_at) VALUES (?, '', ?, 0, 0, 0, 0)`,
				fmt.Sprint("w", n), fmt.Sprint("/w/", n)); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]struct {
		text string
		mode fs.FileMode
	}{
		"agents/a/1/bin/run":     {"#!" + data + "/agents/a/1/bin/python\n# " + data + "-other stays\n", 0o700},
		"agents/a/1/bin/python":  {"\x00" + data + "/compiled", 0o755},
		"agents/a/1/skill/SKILL": {"read only", 0o400},
		"snapshots/s/objects/o":  {"object", 0o444},
	} {
		if err := os.WriteFile(filepath.Join(data, name), []byte(file.text), file.mode); err != nil {
			t.Fatal(err)
		}
	}
	for link, to := range map[string]string{"agents/a/1/near": "bin/run", "agents/a/1/far": data + "/agents/a/1/bin/run"} {
		if err := os.Symlink(to, filepath.Join(data, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(filepath.Join(data, "snapshots/s/objects"), 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { removable(data) })
}

// whole fails unless a directory has everything that fill wrote.
func whole(t *testing.T, data string) {
	t.Helper()
	db, err := store.Open(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	var rows int
	if err := db.Read().QueryRowContext(t.Context(), `SELECT count(*) FROM workspace`).Scan(&rows); err != nil {
		t.Fatal(err)
	}
	faults, err := db.Check(t.Context())
	if rows != filled || err != nil || len(faults) > 0 {
		t.Errorf("%s has %d rows, %v %v", data, rows, err, faults)
	}
	for n := range filled {
		if text, err := os.ReadFile(filepath.Join(data, "agents/a/1/bin", fmt.Sprint(n))); err != nil || string(text) != fmt.Sprint("file ", n) {
			t.Errorf(`ReadFile: got text %q, error %v, want no error and text fmt.Sprint("file ", n)`, text, err)
		}
	}
	for _, name := range []string{"agents/a/1/bin/run", "agents/a/1/far", "agents/a/1/skill/SKILL", "snapshots/s/objects/o", "token", "client-token"} {
		if _, err := os.Stat(filepath.Join(data, name)); err != nil {
			t.Error(err)
		}
	}
}

// printed are all files of a directory, except those of a running process.
func printed(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(dir, path)
		if err != nil || slices.Contains([]string{"lock", "copy.json", "moved.json"}, rel) {
			return err
		}
		if rel == "run" {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case info.Mode().IsRegular():
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += fmt.Sprintf(" %x", sha256.Sum256(data))
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(path)
			if err != nil {
				return err
			}
			text += " " + to
		}
		all[rel] = text
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// settled waits for the end of a move.
func settled(t *testing.T, h *backend.Host) httpapi.DataMove {
	t.Helper()
	for {
		m := h.ShowMove().Move
		if m == nil {
			t.Fatal("there is no move")
		}
		if m.State != "running" && h.Backend() != nil {
			return *m
		}
		select {
		case err := <-h.Failed():
			t.Fatal(err)
		case <-t.Context().Done():
			t.Fatal(t.Context().Err())
		default:
			runtime.Gosched()
		}
	}
}

func refusedAs(t *testing.T, err error, code string) {
	t.Helper()
	refused, ok := errors.AsType[*session.RefusedError](err)
	if !ok || refused.Code != code {
		t.Errorf("%v, want %s", err, code)
	}
}

func TestDataIsMovedBehindTheSameAddress(t *testing.T) {
	data := usual(t)
	h := hosted(t, nil)
	l, err := h.Listen(t.Context(), "127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	token, err := os.ReadFile(filepath.Join(data, "client-token"))
	if err != nil {
		t.Fatal(err)
	}
	to := elsewhere(t)
	hello := func() (said struct{ Data string }) {
		called(t, http.DefaultClient, "GET", l.URL+"/client/hello", strings.TrimSpace(string(token)), "", &said)
		return said
	}
	if got := hello().Data; got != data {
		t.Fatalf("the data is in %s", got)
	}
	var script httpapi.MadeToken // a token that a person made for a program moves nothing
	called(t, http.DefaultClient, "POST", l.URL+"/client/tokens", strings.TrimSpace(string(token)), `{"name":"script","scopes":["client"]}`, &script)
	for _, call := range []string{"POST /check", "POST ", "DELETE ", "DELETE /old"} {
		method, path, _ := strings.Cut(call, " ")
		if status := called(t, http.DefaultClient, method, l.URL+"/client/storage/move"+path, script.Secret, `{"path":"`+to+`"}`, nil); status != 403 {
			t.Errorf("%s: got %d, want 403", call, status)
		}
	}
	var begun httpapi.DataMove
	if status := called(t, http.DefaultClient, "POST", l.URL+"/client/storage/move", strings.TrimSpace(string(token)), `{"path":"`+to+`"}`, &begun); status != 202 {
		t.Fatalf("status %d", status)
	}
	if m := settled(t, h); m.State != "done" || m.From != data || m.To != to {
		t.Fatalf(`settled: got m %+v, want State "done", From %v and To %v`, m, data, to)
	}
	if got := hello().Data; got != to {
		t.Errorf("the data is in %s", got)
	}
	var said datadir.Where
	if status := bySocket(t, to, "GET", "hello", "", nil); status != 200 {
		t.Errorf("the socket: %d", status)
	}
	places, err := datadir.Find("")
	if err != nil {
		t.Fatal(err)
	}
	if said = places.Where(); said.Directory != to || said.Old != data || said.Missing {
		t.Errorf("Where: got said %+v, want said.Directory %v, said.Old %v and not said.Missing", said, to, data)
	}
	old, now := printed(t, data), printed(t, to)
	for name, text := range old {
		if bound := strings.HasPrefix(name, "agents/a/1/bin/run") || name == "agents/a/1/far"; !bound && !strings.HasPrefix(name, "deskhand.db") && now[name] != text {
			t.Errorf("%s is %s and was %s", name, now[name], text)
		}
	}
	run, err := os.ReadFile(filepath.Join(to, "agents/a/1/bin/run"))
	if want := "#!" + to + "/agents/a/1/bin/python\n# " + data + "-other stays\n"; err != nil || string(run) != want {
		t.Errorf("got run %q, error %v, want no error and run %v", run, err, want)
	}
	if far, err := os.Readlink(filepath.Join(to, "agents/a/1/far")); err != nil || far != to+"/agents/a/1/bin/run" {
		t.Errorf(`Readlink: got far %s, error %v, want no error and far to+"/agents/a/1/bin/run"`, far, err)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("Stat: got info.Mode() %v, error %v, want no error and info.Mode().Perm() 0o700", info.Mode(), err)
	}
	if err := errors.Join(l.Close(), h.Close()); err != nil {
		t.Fatal(err)
	}
	whole(t, to)
	whole(t, data)
}

// killedAt makes another process move the data and die at a step.
func killedAt(t *testing.T, step, to string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), killVariable+"="+step+" "+to)
	out, err := cmd.CombinedOutput()
	exit, died := errors.AsType[*exec.ExitError](err)
	if !died || runtime.GOOS != "windows" && exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf(`got error %v, out %s, want died and not (runtime.GOOS != "windows" && exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL)`, err, out)
	}
}

// TestMoveThatIsKilledLeavesOneWhole: a kill at any step leaves a whole old or new directory in use, and no partial copy beside it.
func TestMoveThatIsKilledLeavesOneWhole(t *testing.T) {
	for _, step := range []string{"prepared", "copied", "proven", "whole", "switched"} {
		t.Run(step, func(t *testing.T) {
			data := usual(t)
			if err := hosted(t, nil).Close(); err != nil { // creates the tokens
				t.Fatal(err)
			}
			to := filepath.Join(filepath.Dir(filepath.Dir(data)), "new")
			killedAt(t, step, to)
			h := hosted(t, nil)
			place := h.ShowMove()
			want := data
			if step == "switched" {
				want = to
			}
			if place.Directory != want {
				t.Errorf("%s is used", place.Directory)
			}
			if want == data {
				if place.Move == nil || place.Move.Code != "move.broken" || place.Move.Params["path"] != to {
					t.Errorf("it is not told: %+v", place.Move)
				}
				if _, err := os.Stat(to); !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("a part is left: %v", err)
				}
			}
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			whole(t, want)
			if want == to {
				for _, file := range []string{filepath.Join(data, "moving.json"), filepath.Join(to, store.RecordName)} {
					if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("the move was not brought to its end: %v", err)
					}
				}
				whole(t, data)
				backAgain(t, data, to)
			}
		})
	}
}

// backAgain goes back to the old directory, which still has the note of the move: a directory in which a person has worked is not taken for an
// interrupted copy.
func backAgain(t *testing.T, data, to string) {
	t.Helper()
	places, err := datadir.Find("")
	if err == nil {
		err = places.Use(data)
	}
	if err != nil {
		t.Fatal(err)
	}
	h := hosted(t, nil)
	if place := h.ShowMove(); place.Directory != data {
		t.Errorf("%s is used", place.Directory)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	whole(t, to)
}

// TestHalfACopyIsNotOpened: no program opens an unfinished copy, by any way.
func TestHalfACopyIsNotOpened(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir)
	if err := os.WriteFile(filepath.Join(dir, "copy.json"), []byte(`{"id":"x","from":"/old","whole":false}`), 0o600); err != nil {
		t.Fatal(err)
	}
	places, err := datadir.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := backend.Open(t.Context(), backend.Config{Places: places, Logger: slog.New(slog.DiscardHandler)}); !errors.Is(err, datadir.ErrHalf) || !strings.Contains(err.Error(), "/old") {
		t.Errorf(`Open: got error %v, want error datadir.ErrHalf and error with "/old"`, err)
	}
}

func TestMoveThatIsCancelledOrFailsChangesNothing(t *testing.T) {
	for step, spoil := range map[string]func(h *backend.Host, to string){
		"prepared": func(h *backend.Host, _ string) { h.CancelMove() },
		"proven":   func(h *backend.Host, _ string) { h.CancelMove() },
		"copied": func(_ *backend.Host, to string) { // the disk has stored other bytes
			_ = os.WriteFile(filepath.Join(to, "token"), []byte("another"), 0o600)
		},
	} {
		t.Run(step, func(t *testing.T) {
			data := usual(t)
			to := t.TempDir() // a person's directory: it stays, empty
			var h *backend.Host
			h = hosted(t, func(c *backend.Config) {
				c.Step = func(now string) {
					if now == step {
						spoil(h, to)
					}
				}
			})
			if _, err := h.BeginMove(t.Context(), to, false); err != nil {
				t.Fatal(err)
			}
			m := settled(t, h)
			if want := map[bool]string{true: "failed", false: "cancelled"}[step == "copied"]; m.State != want {
				t.Errorf("got m %+v, want State %v", m, want)
			}
			if place := h.ShowMove(); place.Directory != data || place.Old != nil {
				t.Errorf("ShowMove: got place %+v, want place.Directory %v and place.Old nil", place, data)
			}
			if list, err := os.ReadDir(to); err == nil && len(list) > 0 {
				t.Errorf("%v is left", list)
			}
			if _, err := h.CheckMove(t.Context(), filepath.Join(filepath.Dir(data), "other")); err != nil {
				t.Errorf("it cannot be tried again: %v", err)
			}
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			whole(t, data)
		})
	}
}

// TestWhatOthersSaveInTheTargetStays: a file that a person saves in the target during the copying stays when the move fails, even if the file
// is the cause.
func TestWhatOthersSaveInTheTargetStays(t *testing.T) {
	beside := []string{"mine.txt", "agents/a/mine.txt"} // outside the copied paths, the second in a directory of the copy
	for name, tc := range map[string]struct {
		step, end, state string
		files            []string
	}{
		"found by the proof":     {"copied", "", "failed", beside},
		"cancelled":              {"copied", "cancel", "cancelled", beside},
		"killed":                 {"copied", "kill", "failed", beside},
		"in the way of the copy": {"prepared", "", "failed", []string{"token"}}, // the copying reaches every earlier file
		"killed before it":       {"prepared", "kill", "failed", []string{"token", "agents/a/1/bin/0"}},
	} {
		t.Run(name, func(t *testing.T) {
			data := usual(t)
			if err := hosted(t, nil).Close(); err != nil { // creates the tokens
				t.Fatal(err)
			}
			to := filepath.Join(filepath.Dir(filepath.Dir(data)), "new")
			var h *backend.Host
			if tc.end == "kill" {
				killedAt(t, tc.step, to)
				saveMine(t, to, tc.files)
				h = hosted(t, nil)
			} else {
				h = hosted(t, func(c *backend.Config) {
					c.Step = func(now string) {
						if now != tc.step {
							return
						}
						saveMine(t, to, tc.files)
						if tc.end == "cancel" {
							h.CancelMove()
						}
					}
				})
				if _, err := h.BeginMove(t.Context(), to, false); err != nil {
					t.Fatal(err)
				}
			}
			if m := settled(t, h); m.State != tc.state || h.ShowMove().Directory != data {
				t.Errorf("settled: got m %+v, want State %v and h.ShowMove().Directory %v", m, tc.state, data)
			}
			onlyMine(t, to, tc.files)
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			whole(t, data)
		})
	}
}

func saveMine(t *testing.T, dir string, files []string) {
	t.Helper()
	for _, name := range files {
		file := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte("mine"), 0o600)); err != nil {
			t.Error(err)
		}
	}
}

// onlyMine fails unless a directory holds only the files of saveMine, and their directories.
func onlyMine(t *testing.T, dir string, files []string) {
	t.Helper()
	var left []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		rel = filepath.ToSlash(rel)
		if !d.IsDir() {
			left = append(left, rel)
			if text, err := os.ReadFile(path); err != nil || string(text) != "mine" {
				t.Errorf("%s is %q now, %v", rel, text, err)
			}
		} else if rel != "." && !slices.ContainsFunc(files, func(f string) bool { return strings.HasPrefix(f, rel+"/") }) {
			t.Errorf("%s is left", rel)
		}
		return nil
	})
	slices.Sort(left)
	if want := slices.Sorted(slices.Values(files)); err != nil || !slices.Equal(left, want) {
		t.Errorf("%v, want %v; %v", left, want, err)
	}
}

func TestPlacesThatDataCannotBeMovedTo(t *testing.T) {
	data := usual(t)
	h := hosted(t, nil)
	full, link := t.TempDir(), filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.WriteFile(filepath.Join(full, "x"), nil, 0o600), os.Symlink(data, link)); err != nil {
		t.Fatal(err)
	}
	for path, code := range map[string]string{
		"relative":                          "move.path",
		filepath.Join(full, "no", "such"):   "move.path",
		full:                                "move.not_empty",
		filepath.Join(full, "x"):            "move.write",
		data:                                "move.inside",
		filepath.Join(data, "within"):       "move.inside",
		filepath.Join(link, "agents", "in"): "move.inside",
		filepath.Join("/proc", "deskhand"):  "move.write",
	} {
		if runtime.GOOS != "linux" && strings.HasPrefix(path, "/proc") {
			continue
		}
		_, err := h.CheckMove(t.Context(), path)
		refusedAs(t, err, code)
		_, err = h.BeginMove(t.Context(), path, true)
		refusedAs(t, err, code)
	}
	if place := h.ShowMove(); place.Move != nil || place.Directory != data {
		t.Errorf("ShowMove: got place %+v, want place.Move nil and place.Directory %v", place, data)
	}
	plan, err := h.CheckMove(t.Context(), elsewhere(t))
	if err != nil || plan.Files < filled || plan.Bytes <= 0 || plan.Free <= 0 {
		t.Errorf("CheckMove: got plan %+v, error %v, want no error, plan.Files at least %v, plan.Bytes more than 0 and plan.Free more than 0", plan, err, filled)
	}
	if _, err := os.Stat(plan.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the look has left something: %v", err)
	}
}

// TestDirectoryOfAFlagIsFixed: data in a directory of --data-dir cannot be moved.
func TestDirectoryOfAFlagIsFixed(t *testing.T) {
	dir := t.TempDir()
	places, err := datadir.Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	h := hosted(t, func(c *backend.Config) { c.Places = places })
	_, err = h.BeginMove(t.Context(), elsewhere(t), false)
	refusedAs(t, err, "move.fixed")
	if place := h.ShowMove(); place.Fixed != "move.fixed" || place.Directory != dir {
		t.Errorf(`ShowMove: got place %+v, want place.Fixed "move.fixed" and place.Directory %v`, place, dir)
	}
}

// moved has the data moved, and the program ended.
func moved(t *testing.T) (data, to string) {
	t.Helper()
	data, to = usual(t), elsewhere(t)
	h := hosted(t, nil)
	if _, err := h.BeginMove(t.Context(), to, false); err != nil {
		t.Fatal(err)
	}
	if m := settled(t, h); m.State != "done" {
		t.Fatalf(`settled: got m %+v, want State "done"`, m)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	return data, to
}

func TestOldCopyIsDeletedOnceItIsSafe(t *testing.T) {
	data, to := moved(t)
	if err := os.WriteFile(filepath.Join(data, "note.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	h := hosted(t, nil)
	if old := h.ShowMove().Old; old == nil || old.Directory != data {
		t.Fatalf("got old %+v, want old not nil and old.Directory %v", old, data)
	}
	if err := h.DeleteOld(t.Context()); err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadDir(data)
	if err != nil || len(list) != 2 || list[0].Name() != "moved.json" || list[1].Name() != "note.txt" { // the usual directory
		t.Errorf(`ReadDir: got list %v, error %v, want no error, 2 in list, list[0].Name() "moved.json" and list[1].Name() "note.txt"`, list, err)
	}
	followed(t, to)
	if h.ShowMove().Old != nil {
		t.Error("it is offered still")
	}
	refusedAs(t, h.DeleteOld(t.Context()), "move.no_old")
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	whole(t, to)
}

// TestOldCopyIsAsPrivateAsTheNewOne: the tokens of the old copy are still valid, so agents' file access excludes both directories.
func TestOldCopyIsAsPrivateAsTheNewOne(t *testing.T) {
	data, to := moved(t)
	l, err := hosted(t, nil).Listen(t.Context(), "127.0.0.1", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	token, err := os.ReadFile(filepath.Join(to, "token"))
	if err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]int{filepath.Join(data, "client-token"): 403, filepath.Join(to, "client-token"): 403, filepath.Join(t.TempDir(), "none"): 404} {
		if status := called(t, http.DefaultClient, "GET", l.URL+"/v1/fs/file?path="+url.QueryEscape(file), strings.TrimSpace(string(token)), "", nil); status != want {
			t.Errorf("%s: %d, want %d", file, status, want)
		}
	}
}

func TestOldCopyThatWasUsedSinceStays(t *testing.T) {
	data, _ := moved(t)
	db, err := store.Open(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Write(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec(`UPDATE workspace SET created_at = 1`)
		return err
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	refusedAs(t, hosted(t, nil).DeleteOld(t.Context()), "move.old_used")
	whole(t, data)
}

// TestDataThatIsNotThereIsNotBegunAnew: when the disk is away, the program says so and creates nothing in its place. The program continues
// when the disk returns, or when the person chooses the old copy.
func TestDataThatIsNotThereIsNotBegunAnew(t *testing.T) {
	for _, how := range []string{"again", "back"} {
		t.Run(how, func(t *testing.T) {
			data, to := moved(t)
			away := to + "-away"
			if err := os.Rename(to, away); err != nil {
				t.Fatal(err)
			}
			if how == "back" { // another disk is mounted there
				fill(t, to)
			}
			places, err := datadir.Find("")
			if err != nil {
				t.Fatal(err)
			}
			missing, ok := errors.AsType[*datadir.MissingError](places.Check())
			if !ok || missing.Dir != to || missing.Old != data || !strings.Contains(missing.Error(), to) || !strings.Contains(missing.Error(), data) {
				t.Fatalf("got missing %v, want ok, missing.Dir %v, missing.Old %v, missing with %v and missing with %v", missing, to, data, to, data)
			}
			if _, err := backend.Open(t.Context(), backend.Config{Places: places}); !errors.Is(err, missing) && err.Error() != missing.Error() {
				t.Errorf("Open: got error %v, want not (!errors.Is(err, missing) && err.Error() != missing.Error())", err)
			}
			h := hosted(t, nil)
			page, err := fs.ReadFile(h.Assets(), "index.html")
			if err != nil || !strings.Contains(string(page), "missing.js") {
				t.Errorf(`ReadFile: got page %s, error %v, want no error and page with "missing.js"`, page, err)
			}
			if status, said := onWindow(t, h, "GET", "/client/missing"); status != 200 || said["directory"] != to || said["old"] != data {
				t.Errorf(`onWindow("GET", "/client/missing"): got status %d, said %v, want status 200, said["directory"] %v and said["old"] %v`, status, said, to, data)
			}
			if status, said := onWindow(t, h, "POST", "/client/missing/again"); status != 409 || said["code"] != "data.missing" {
				t.Errorf(`onWindow("POST", "/client/missing/again"): got status %d, said %v, want status 409 and said["code"] "data.missing"`, status, said)
			}
			want := data
			if how == "again" {
				want = to
				if err := os.Rename(away, to); err != nil {
					t.Fatal(err)
				}
			}
			if status, said := onWindow(t, h, "POST", "/client/missing/"+how); status != 204 {
				t.Fatalf(`onWindow("POST"): got status %d, said %v, want status 204`, status, said)
			}
			if status, said := onWindow(t, h, "GET", "/client/hello"); status != 200 || said["data"] != want {
				t.Errorf(`onWindow("GET", "/client/hello"): got status %d, said %v, want status 200 and said["data"] %v`, status, said, want)
			}
			if _, err := fs.ReadFile(h.Assets(), "index.html"); !errors.Is(err, fs.ErrNotExist) { // this host has no page of its own
				t.Errorf("ReadFile: got %v, want fs.ErrNotExist", err)
			}
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			whole(t, want)
		})
	}
}

func onWindow(t *testing.T, h *backend.Host, method, path string) (int, map[string]any) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	w := &answer{header: http.Header{}, status: http.StatusOK}
	h.Window().ServeHTTP(w, r)
	said := map[string]any{}
	_ = json.Unmarshal(w.body, &said) // some answers have no body
	return w.status, said
}

type answer struct {
	header http.Header
	status int
	body   []byte
}

func (a *answer) Header() http.Header { return a.header }
func (a *answer) WriteHeader(n int)   { a.status = n }
func (a *answer) Write(p []byte) (int, error) {
	a.body = append(a.body, p...)
	return len(p), nil
}

// TestPointerThatIsBrokenIsTold: an unreadable pointer is an error, since nobody expects empty data.
func TestPointerThatIsBrokenIsTold(t *testing.T) {
	_, _ = moved(t)
	file := filepath.Join(xdg.ConfigHome, "deskhand", "data-directory.json")
	if err := os.WriteFile(file, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := datadir.Find(""); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf(`Find(""): got error %v, want an error and error with %v`, err, file)
	}
}

// followed fails unless a start without a pointer uses the data of the directory to. followed restores the pointer.
func followed(t *testing.T, to string) {
	t.Helper()
	file := filepath.Join(xdg.ConfigHome, "deskhand", "data-directory.json")
	if err := os.Rename(file, file+".lost"); err != nil {
		t.Fatal(err)
	}
	if places, err := datadir.Find(""); err != nil || places.Data != to || places.Check() != nil {
		t.Errorf("%s is used without a pointer: %v", places.Data, err)
	}
	if err := os.Rename(file+".lost", file); err != nil {
		t.Fatal(err)
	}
}

// TestDirectoryThatWasLeftSaysWhere: without the settings the data is still found, and a start in the old directory, by a flag or by old
// settings, names the new directory.
func TestDirectoryThatWasLeftSaysWhere(t *testing.T) {
	data, to := moved(t)
	followed(t, to)
	byFlag, err := datadir.Find(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, next := range []string{to, to + "2"} { // also after a further move
		if next != to {
			h := hosted(t, nil)
			if _, err := h.BeginMove(t.Context(), next, false); err != nil {
				t.Fatal(err)
			}
			settled(t, h)
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			followed(t, next)
		}
		_, err := backend.Open(t.Context(), backend.Config{Places: byFlag, Logger: slog.New(slog.DiscardHandler)})
		if left, is := errors.AsType[*datadir.MovedError](err); !is || left.To != next || !strings.Contains(err.Error(), next) {
			t.Errorf("got error %v, want is, left.To %v and error with %v", err, next, next)
		}
	}
	file := filepath.Join(xdg.ConfigHome, "deskhand", "data-directory.json")
	if err := os.WriteFile(file, []byte(`{"directory":"`+data+`"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := openHost(nil); err == nil || !strings.Contains(err.Error(), "data use "+to+"2") {
		t.Errorf(`openHost: got error %v, want an error and error with "data use "+to+"2"`, err)
	}
	places, err := datadir.Find("")
	if err != nil {
		t.Fatal(err)
	}
	if err := places.Use(data); err != nil { // the person has chosen the directory
		t.Fatal(err)
	}
	if h := hosted(t, nil); h.ShowMove().Directory != data {
		t.Error("the old copy is not used")
	}
}

// TestStartInTheMomentOfTheSwitchTakesTheNewOne: a start that found the old directory, and locks it after the move, uses the new directory.
func TestStartInTheMomentOfTheSwitchTakesTheNewOne(t *testing.T) {
	_, to := usual(t), elsewhere(t)
	h := hosted(t, nil)
	late := hosted(t, func(c *backend.Config) {
		c.Step = func(now string) {
			if now != "found" || h == nil {
				return
			}
			if _, err := h.BeginMove(t.Context(), to, false); err != nil {
				t.Error(err)
			}
			settled(t, h)
			if err := h.Close(); err != nil {
				t.Error(err)
			}
			h = nil
		}
	})
	if place := late.ShowMove(); place.Directory != to || late.Backend().Places().Data != to || late.Alone() != nil {
		t.Errorf("ShowMove: got place %+v, want place.Directory %v, late.Backend().Places().Data %v and no error of late.Alone", place, to, to)
	}
}

// TestWayBackThatCannotBeWrittenIsTold: when the new directory cannot be opened and the pointer cannot be written back, no program works in
// the old directory, since the next start would not find the work.
func TestWayBackThatCannotBeWrittenIsTold(t *testing.T) {
	data, to := usual(t), elsewhere(t)
	file := filepath.Join(xdg.ConfigHome, "deskhand", "data-directory.json")
	h := hosted(t, func(c *backend.Config) {
		c.Step = func(now string) {
			switch now {
			case "switched":
				if err := os.WriteFile(filepath.Join(to, "deskhand.db"), []byte("no database"), 0o600); err != nil {
					t.Error(err)
				}
			case "back":
				if err := errors.Join(os.Remove(file), os.MkdirAll(filepath.Join(file, "in the way"), 0o700)); err != nil {
					t.Error(err)
				}
			}
		}
	})
	if _, err := h.BeginMove(t.Context(), to, false); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-h.Failed():
		if !strings.Contains(err.Error(), to) || !strings.Contains(err.Error(), data) {
			t.Error(err)
		}
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
	if h.Backend() != nil {
		t.Error("it goes on")
	}
	if m := h.ShowMove().Move; m.State != "failed" {
		t.Errorf(`got m %+v, want State "failed"`, m)
	}
}

// TestDirectoryThatCannotBeOpenedIsLeftAgain: when the new directory cannot be opened, the old directory is the data, as if no move had been.
func TestDirectoryThatCannotBeOpenedIsLeftAgain(t *testing.T) {
	data, to := usual(t), elsewhere(t)
	h := hosted(t, func(c *backend.Config) {
		c.Step = func(now string) {
			if now == "switched" {
				if err := os.WriteFile(filepath.Join(to, "deskhand.db"), []byte("no database"), 0o600); err != nil {
					t.Error(err)
				}
			}
		}
	})
	if _, err := h.BeginMove(t.Context(), to, false); err != nil {
		t.Fatal(err)
	}
	if m := settled(t, h); m.State != "failed" {
		t.Errorf(`settled: got m %+v, want State "failed"`, m)
	}
	if place := h.ShowMove(); place.Directory != data || place.Old != nil {
		t.Errorf("ShowMove: got place %+v, want place.Directory %v and place.Old nil", place, data)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if places, err := datadir.Find(""); err != nil || places.Data != data || places.Check() != nil {
		t.Errorf(`Find(""): got places.Data %s, error %v, want no error, places.Data %v and no error of places.Check`, places.Data, err, data)
	}
	whole(t, data)
}

// TestQuittingBehindTheSwitchLeavesItMoved: quitting after the switch leaves the data moved.
func TestQuittingBehindTheSwitchLeavesItMoved(t *testing.T) {
	_, to := usual(t), elsewhere(t)
	var h *backend.Host
	closed := make(chan error, 1)
	h = hosted(t, func(c *backend.Config) {
		c.Step = func(now string) {
			if now != "switched" {
				return
			}
			go func() { closed <- h.Close() }()
			for {
				if _, err := h.CheckMove(t.Context(), to); errors.Is(err, session.ErrClosed) {
					return
				}
				runtime.Gosched()
			}
		}
	})
	if _, err := h.BeginMove(t.Context(), to, false); err != nil {
		t.Fatal(err)
	}
	if err := <-closed; err != nil {
		t.Fatal(err)
	}
	if m := h.ShowMove().Move; m.State != "done" {
		t.Errorf(`got m %+v, want State "done"`, m)
	}
	if place := hosted(t, nil).ShowMove(); place.Directory != to || place.Old == nil {
		t.Errorf("ShowMove: got place %+v, want place.Directory %v and place.Old not nil", place, to)
	}
}

// TestServerBesideIsInTheWayOfAMove: a server beside the holder blocks a move, whose error names the server. A server that starts during the
// move is refused.
func TestServerBesideIsInTheWayOfAMove(t *testing.T) {
	_, to := usual(t), elsewhere(t)
	beside := func(ctx context.Context) (*backend.Host, error) {
		b := hosted(t, nil) //nolint:contextcheck // the backend outlives the call
		if b.Alone() == nil {
			t.Error("it has the data")
		}
		l, err := b.Listen(ctx, "127.0.0.1", 0)
		if err == nil {
			t.Cleanup(func() { _ = l.Close() })
		}
		return b, err
	}
	h := hosted(t, func(c *backend.Config) {
		c.Step = func(now string) {
			if now == "copied" {
				soon, cancel := context.WithTimeout(t.Context(), time.Millisecond) // avoids a wait of two seconds
				defer cancel()
				if _, err := beside(soon); err == nil || !strings.Contains(err.Error(), "moved") {
					t.Errorf("a server begins: %v", err)
				}
			}
		}
	})
	b, err := beside(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = h.CheckMove(t.Context(), to)
	refusedAs(t, err, "move.beside")
	if refused, is := errors.AsType[*session.RefusedError](err); !is || !strings.Contains(refused.Params["who"], fmt.Sprint("server ", os.Getpid(), ", http://127.0.0.1:")) {
		t.Errorf(`got error %v, want is and refused.Params["who"] with fmt.Sprint("server ", os.Getpid(), ", http://127.0.0.1:")`, err)
	}
	_, err = h.BeginMove(t.Context(), to, false)
	refusedAs(t, err, "move.beside")
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := h.BeginMove(t.Context(), to, false); err != nil {
		t.Fatal(err)
	}
	if m := settled(t, h); m.State != "done" {
		t.Errorf(`settled: got m %+v, want State "done"`, m)
	}
}

// TestDeletionOfTheOldCopyIsTakenUpAgain: an interrupted deletion is offered again, and no program may use the rest of the copy meanwhile.
func TestDeletionOfTheOldCopyIsTakenUpAgain(t *testing.T) {
	data, to := moved(t)
	broken, cut := context.WithCancel(t.Context())
	steps := 0
	h := hosted(t, func(c *backend.Config) {
		c.Step = func(now string) {
			if now != "deleting" {
				return
			}
			if ok, err := flock.New(filepath.Join(data, "lock")).TryLock(); ok || err != nil {
				t.Errorf("another program can take it: %v", err)
			}
			if steps++; steps == 3 {
				cut()
			}
		}
	})
	if err := h.DeleteOld(broken); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	if places, err := datadir.Find(""); err != nil || places.Use(data) == nil {
		t.Errorf("a half of it can be used: %v", err)
	}
	h = hosted(t, nil)
	if old := h.ShowMove().Old; old == nil || old.Directory != data || !old.Deleting {
		t.Fatalf("got old %+v, want old not nil, old.Directory %v and old.Deleting", old, data)
	}
	if err := h.DeleteOld(t.Context()); err != nil {
		t.Fatal(err)
	}
	if list, err := os.ReadDir(data); err != nil || len(list) != 1 || h.ShowMove().Old != nil {
		t.Errorf("ReadDir: got list %v, error %v, want no error, 1 in list and h.ShowMove().Old nil", list, err)
	}
	if err := h.Close(); err != nil {
		t.Fatal(err)
	}
	whole(t, to)
}

// TestProgramThatIsFasterAfterTheSwitchKeepsTheData: a program that starts in the new directory before our own start has the data. The pointer
// stays, so that the program's work is found.
func TestProgramThatIsFasterAfterTheSwitchKeepsTheData(t *testing.T) {
	_, to := usual(t), elsewhere(t)
	var faster *backend.Host
	h := hosted(t, func(c *backend.Config) {
		c.Step = func(now string) {
			if now == "switched" && faster == nil {
				faster = hosted(t, nil)
			}
		}
	})
	if _, err := h.BeginMove(t.Context(), to, false); err != nil {
		t.Fatal(err)
	}
	if err := <-h.Failed(); !strings.Contains(err.Error(), "another program was faster") {
		t.Error(err)
	}
	if faster.Alone() != nil || faster.ShowMove().Directory != to {
		t.Errorf("got faster.Alone() %v, faster.ShowMove() %+v, want no error of faster.Alone and faster.ShowMove().Directory %v", faster.Alone(), faster.ShowMove(), to)
	}
	if p, err := datadir.Find(""); err != nil || p.Data != to {
		t.Errorf("the next start opens %s, %v", p.Data, err)
	}
}

// TestHalfOfTheOldCopyIsTakenByNobody: a partly deleted copy is marked as such, and blocks further moves until it is gone.
func TestHalfOfTheOldCopyIsTakenByNobody(t *testing.T) {
	data, _ := moved(t)
	broken, cut := context.WithCancel(t.Context())
	steps := 0
	h := hosted(t, func(c *backend.Config) {
		c.Step = func(now string) {
			if now == "deleting" {
				if steps++; steps == 3 {
					cut()
				}
			}
		}
	})
	if err := h.DeleteOld(broken); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	_, err := h.BeginMove(t.Context(), filepath.Join(t.TempDir(), "third"), false)
	if refused, is := errors.AsType[*session.RefusedError](err); !is || refused.Code != "move.deleting" {
		t.Errorf(`got error %v, want is and refused.Code "move.deleting"`, err)
	}
	if err := os.Remove(filepath.Join(data, "moved.json")); err != nil { // as a person may who wants to use the copy
		t.Fatal(err)
	}
	named, err := datadir.Find(data)
	if err != nil || !errors.Is(named.Check(), datadir.ErrHalf) {
		t.Errorf("Find: got error %v, named.Check() %v, want no error and named.Check() datadir.ErrHalf", err, named.Check())
	}
	if err := h.DeleteOld(t.Context()); err != nil {
		t.Error(err)
	}
	if left, is := errors.AsType[*datadir.MovedError](named.Check()); !is { // only the note is left
		t.Error(left)
	}
}

func TestDataIsMovedBackToWhereItWas(t *testing.T) {
	data, to := moved(t)
	h := hosted(t, nil)
	if err := h.DeleteOld(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := h.BeginMove(t.Context(), data, false); err != nil {
		t.Fatal(err)
	}
	if m := settled(t, h); m.State != "done" || h.ShowMove().Directory != data {
		t.Errorf(`settled: got m %+v, want State "done" and h.ShowMove().Directory %v`, m, data)
	}
	if _, err := os.Stat(filepath.Join(data, "moved.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if p, err := datadir.Find(to); err != nil || p.Check() == nil {
		t.Errorf("who names what was left is not told: %v", err)
	}
}

// TestDataIsMovedWithoutTheSettings: on systems with a single directory for data and settings, the data moves alone.
func TestDataIsMovedWithoutTheSettings(t *testing.T) {
	if err := os.RemoveAll(usual(t)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"XDG_CONFIG_HOME", "XDG_STATE_HOME"} {
		t.Setenv(name, os.Getenv("XDG_DATA_HOME"))
	}
	xdg.Reload()
	p, err := datadir.Find("")
	if err != nil || p.Data != filepath.Join(p.Config, "data") {
		t.Fatalf(`Find(""): got p %+v, error %v, want no error and Data filepath.Join(p.Config, "data")`, p, err)
	}
	settings := filepath.Join(p.Config, "agents.json")
	if err := errors.Join(os.MkdirAll(p.Config, 0o700), os.WriteFile(settings, []byte("{}\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	h := hosted(t, nil)
	to := elsewhere(t)
	if _, err := h.BeginMove(t.Context(), to, false); err != nil {
		t.Fatal(err)
	}
	if m := settled(t, h); m.State != "done" {
		t.Fatalf(`settled: got m %+v, want State "done"`, m)
	}
	if err := h.DeleteOld(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(settings); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(to, "agents.json")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the settings were taken along: %v", err)
	}
}

// TestDataBesideTheSettingsIsNotMoved: data that already shares a directory with the settings stays.
func TestDataBesideTheSettingsIsNotMoved(t *testing.T) {
	data := usual(t)
	if err := hosted(t, nil).Close(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CONFIG_HOME", os.Getenv("XDG_DATA_HOME"))
	xdg.Reload()
	h := hosted(t, nil)
	if h.ShowMove().Directory != data || h.ShowMove().Fixed != "move.shared" {
		t.Errorf(`hosted: got h.ShowMove() %+v, want h.ShowMove().Directory %v and h.ShowMove().Fixed "move.shared"`, h.ShowMove(), data)
	}
	_, err := h.BeginMove(t.Context(), elsewhere(t), false)
	if refused, is := errors.AsType[*session.RefusedError](err); !is || refused.Code != "move.shared" {
		t.Errorf(`got error %v, want is and refused.Code "move.shared"`, err)
	}
}

// TestMoveThatCannotBeginLeavesItsTarget: a full disk is the usual reason for a move, so a move that cannot even store its intent leaves its
// target unchanged.
func TestMoveThatCannotBeginLeavesItsTarget(t *testing.T) {
	data, to := usual(t), t.TempDir()
	if err := os.MkdirAll(filepath.Join(data, "moving.json", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	h := hosted(t, nil)
	if _, err := h.BeginMove(t.Context(), to, false); err == nil {
		if m := settled(t, h); m.State != "failed" {
			t.Fatalf(`settled: got m %+v, want State "failed"`, m)
		}
	}
	if list, err := os.ReadDir(to); err == nil && len(list) > 0 {
		t.Errorf("%v is left", list)
	}
}
