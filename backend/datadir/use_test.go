package datadir_test

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/adrg/xdg"

	"deskhand/backend/datadir"
	"deskhand/backend/store"
)

// usual redirects the system's directories to the test's own, fills the data directory, and returns its paths.
func usual(t *testing.T) datadir.Paths {
	t.Helper()
	home := t.TempDir()
	for name, at := range map[string]string{"XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "config", "XDG_STATE_HOME": "state"} {
		t.Setenv(name, filepath.Join(home, at))
	}
	xdg.Reload()
	t.Cleanup(xdg.Reload)
	p := found(t)
	fill(t, p.Data)
	return p
}

func found(t *testing.T) datadir.Paths {
	t.Helper()
	p, err := datadir.Find("")
	if err != nil {
		t.Fatalf(`Find(""): got %v, want no error`, err)
	}
	return p
}

// fill creates a data directory with a database, a blob and an agent.
func fill(t *testing.T, data string) {
	t.Helper()
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	change(t, data)
	for name, text := range map[string]string{"blobs/ab/abcd": "a blob", "agents/a/run": "an agent"} {
		file := filepath.Join(data, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// change writes into the database of a directory.
func change(t *testing.T, data string) {
	t.Helper()
	db, err := store.Open(t.Context(), data)
	if err != nil {
		t.Fatal(err)
	}
	err = db.WriteSync(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.Exec(`INSERT INTO workspace (id, place, path, device, inode, born, created_at)
			SELECT 'w' || count(*), '', '/w/' || count(*), 0, 0, 0, 0 FROM workspace`)
		return err
	})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
}

// copied copies a directory as a person would.
func copied(t *testing.T, from string) (to string) {
	t.Helper()
	to = filepath.Join(t.TempDir(), "new disk")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
	return to
}

// printed returns the names and the sums of the files of a directory, except of the lock and of what SQLite keeps beside a database.
func printed(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "lock" || strings.HasPrefix(d.Name(), "deskhand.db-") {
			return err
		}
		data, err := os.ReadFile(path)
		fmt.Fprintf(&all, "%s %x\n", path, sha256.Sum256(data))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func pointerFile() string { return filepath.Join(xdg.ConfigHome, "deskhand", "data-directory.json") }

// TestUseTakesACopy: later starts use the copy, also without the settings, and a start in the directory before says where the data is.
func TestUseTakesACopy(t *testing.T) {
	p := usual(t)
	data, to := p.Data, copied(t, p.Data)
	if err := p.Use(t.Context(), to, false); err != nil {
		t.Fatalf("Use of a whole copy: got %v, want no error", err)
	}
	now := found(t)
	if w := now.Where(); w.Directory != to || w.Old != data || w.Usual != data || w.Missing || w.MovedAt.IsZero() {
		t.Errorf("Where: got %+v, want directory %s and old and usual %s", w, to, data)
	}
	if err := os.Rename(pointerFile(), pointerFile()+".lost"); err != nil {
		t.Fatal(err)
	}
	if p := found(t); p.Data != to || p.Check() != nil {
		t.Errorf("without the settings: got %s and %v, want %s", p.Data, p.Check(), to)
	}
	if err := os.Rename(pointerFile()+".lost", pointerFile()); err != nil {
		t.Fatal(err)
	}
	third := copied(t, to)
	if err := now.Use(t.Context(), third, false); err != nil {
		t.Fatalf("Use of a copy of the copy: got %v, want no error", err)
	}
	for _, left := range []string{data, to} {
		byFlag, err := datadir.Find(left)
		if err != nil {
			t.Fatal(err)
		}
		if moved, is := errors.AsType[*datadir.MovedError](byFlag.Check()); left == to && (!is || moved.To != third) || left == data && !is {
			t.Errorf("Check of %s, which was left: got %v, want a MovedError that names %s", left, byFlag.Check(), third)
		}
	}
	if err := now.Use(t.Context(), data, false); err != nil {
		t.Fatalf("Use of the usual directory again: got %v, want no error", err)
	}
	if p := found(t); p.Data != data || p.Check() != nil {
		t.Errorf("after the way back: got %s and %v, want %s", p.Data, p.Check(), data)
	}
	if err := os.WriteFile(pointerFile(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := datadir.Find(""); err == nil || !strings.Contains(err.Error(), pointerFile()) {
		t.Errorf("Find with a broken pointer: got %v, want an error that names %s", err, pointerFile())
	}
}

// TestUseRefusesWhatIsNotWhole: Use refuses a directory that lacks a part of the data, and changes nothing.
func TestUseRefusesWhatIsNotWhole(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil  func(data, to string) error
		want   string
		anyway string // what Use says when a person insists; empty = Use takes the directory
	}{
		"no database": {func(_, to string) error { return os.Remove(filepath.Join(to, "deskhand.db")) }, "holds no data", "holds no data"},
		"an empty database": {
			func(_, to string) error { return os.Truncate(filepath.Join(to, "deskhand.db"), 0) }, "holds no data", "holds no data",
		},
		"a part of the database": {
			func(_, to string) error { return os.Truncate(filepath.Join(to, "deskhand.db"), 64<<10) }, "is not a whole copy", "is not a whole copy",
		},
		"a database of which a page is missing in the middle": {
			func(_, to string) error {
				f, err := os.OpenFile(filepath.Join(to, "deskhand.db"), os.O_WRONLY, 0)
				if err != nil {
					return err
				}
				_, err = f.WriteAt(make([]byte, 64<<10), 32<<10)
				return errors.Join(err, f.Close())
			}, "is not a whole copy", "is not a whole copy",
		},
		"an older database beside a newer note": {
			func(data, to string) error {
				change(t, data)
				note, err := os.ReadFile(filepath.Join(data, "high-water.json"))
				return errors.Join(err, os.WriteFile(filepath.Join(to, "high-water.json"), note, 0o600))
			}, "fewer changes than", "",
		},
		"no blobs": {func(_, to string) error { return os.RemoveAll(filepath.Join(to, "blobs")) }, "missing or cut there (1)", ""},
		"half a blob": {
			func(_, to string) error { return os.Truncate(filepath.Join(to, "blobs/ab/abcd"), 3) }, "such as " + filepath.FromSlash("blobs/ab/abcd"), "",
		},
		"no agents": {func(_, to string) error { return os.RemoveAll(filepath.Join(to, "agents")) }, "missing or cut there (1)", ""},
		"the data before a change": {func(data, _ string) error {
			change(t, data)
			return nil
		}, "fewer changes than", ""},
		"a copy that an earlier version did not finish": {func(_, to string) error {
			return os.WriteFile(filepath.Join(to, "copy.json"), []byte(`{"id":"x","from":"/old","whole":false}`), 0o600)
		}, "never finished", "never finished"},
	} {
		t.Run(name, func(t *testing.T) {
			p := usual(t)
			data, to := p.Data, copied(t, p.Data)
			if err := tc.spoil(data, to); err != nil {
				t.Fatal(err)
			}
			before, there := printed(t, data), printed(t, to)
			err := p.Use(t.Context(), to, false)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("Use: got %v, want an error with %q", err, tc.want)
			}
			if err != nil && strings.Contains(err.Error(), "verify") {
				t.Errorf("Use: got %v, want no advice that would act on the present data", err)
			}
			if now := printed(t, data); now != before {
				t.Errorf("the present directory: got\n%s\nwant\n%s", now, before)
			}
			if now := printed(t, to); now != there {
				t.Errorf("the refused directory: got\n%s\nwant\n%s", now, there)
			}
			if p := found(t); p.Data != data || p.Check() != nil {
				t.Errorf("the next start: got %s and %v, want %s", p.Data, p.Check(), data)
			}
			switch err := p.Use(t.Context(), to, true); {
			case tc.anyway == "" && err != nil:
				t.Errorf("Use anyway: got %v, want no error", err)
			case tc.anyway != "" && (err == nil || !strings.Contains(err.Error(), tc.anyway)):
				t.Errorf("Use anyway: got %v, want an error with %q", err, tc.anyway)
			}
		})
	}
}

// TestUseTakesOtherData: data that is no copy of the present data is not compared, and neither is a copy that was worked with.
func TestUseTakesOtherData(t *testing.T) {
	p := usual(t)
	worked := copied(t, p.Data)
	change(t, worked)
	other := filepath.Join(t.TempDir(), "other")
	fill(t, other)
	if err := os.RemoveAll(filepath.Join(other, "agents")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{worked, other} {
		if err := p.Use(t.Context(), dir, false); err != nil || found(t).Data != dir {
			t.Errorf("Use of %s: got %v and %s, want no error", dir, err, found(t).Data)
		}
	}
}

// TestUseLeavesAProgramAlone: Use fails while a program works in the present directory or in the other directory.
func TestUseLeavesAProgramAlone(t *testing.T) {
	p := usual(t)
	to := copied(t, p.Data)
	for _, dir := range []string{p.Data, to} {
		lock, err := datadir.Acquire(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Use(t.Context(), to, true); !isHeld(err) {
			t.Errorf("Use while a program has %s: got %v, want a HeldError", dir, err)
		}
		if err := lock.Release(); err != nil {
			t.Fatal(err)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Use(ended, to, false); !errors.Is(err, context.Canceled) {
		t.Errorf("Use with an ended context: got %v, want context.Canceled", err)
	}
	if got := found(t).Data; got != p.Data {
		t.Errorf("the next start: got %s, want %s", got, p.Data)
	}
	if err := p.Use(t.Context(), to, false); err != nil {
		t.Errorf("Use of directories that nobody has: got %v, want no error", err)
	}
	flag, err := datadir.Find(to)
	if err == nil {
		err = flag.Use(t.Context(), p.Data, false)
	}
	if err == nil || !strings.Contains(err.Error(), "--data-dir") {
		t.Errorf("Use with --data-dir: got %v, want an error that names the flag", err)
	}
}

// TestUseOfTheSameDirectory: a link to the present directory is the present directory, and a directory within the present directory is refused.
func TestUseOfTheSameDirectory(t *testing.T) {
	p := usual(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(p.Data, link); err != nil {
		t.Skip(err)
	}
	if err := p.Use(t.Context(), link, false); err != nil || found(t).Data != p.Data {
		t.Errorf("Use of a link to the present directory: got %v and %s, want no error and %s", err, found(t).Data, p.Data)
	}
	within := filepath.Join(p.Data, "copy")
	if err := os.CopyFS(within, os.DirFS(copied(t, p.Data))); err != nil {
		t.Fatal(err)
	}
	if err := p.Use(t.Context(), within, true); err == nil || !strings.Contains(err.Error(), "is within") {
		t.Errorf("Use of a directory within the present directory: got %v, want an error with %q", err, "is within")
	}
}

// TestUseComparesBehindALink: the files of a present directory that is a link are compared as those of any other.
func TestUseComparesBehindALink(t *testing.T) {
	p := usual(t)
	moved, to := p.Data+"-elsewhere", copied(t, p.Data)
	if err := os.Rename(p.Data, moved); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(moved, p.Data); err != nil {
		t.Skip(err)
	}
	if err := os.RemoveAll(filepath.Join(to, "blobs")); err != nil {
		t.Fatal(err)
	}
	if err := p.Use(t.Context(), to, false); err == nil || !strings.Contains(err.Error(), "missing or cut there (1)") {
		t.Errorf("Use of a copy without blobs: got %v, want an error with %q", err, "missing or cut there (1)")
	}
}

// TestUseMeanwhileStopsAStart: a start that found the directory before a Use of another process is told where the data is.
func TestUseMeanwhileStopsAStart(t *testing.T) {
	p := usual(t)
	start, to := found(t), copied(t, p.Data)
	if err := p.Use(t.Context(), to, false); err != nil {
		t.Fatal(err)
	}
	_, err := start.Acquire(slog.New(slog.DiscardHandler))
	if moved, is := errors.AsType[*datadir.MovedError](err); !is || moved.To != to {
		t.Errorf("Acquire after Use: got %v, want a MovedError that names %s", err, to)
	}
}

// TestPointerOfAnEarlierVersion: a pointer that a move has written is followed, and a partly deleted directory before the move is not offered.
func TestPointerOfAnEarlierVersion(t *testing.T) {
	p := usual(t)
	to := copied(t, p.Data)
	for file, text := range map[string]string{
		pointerFile():                  fmt.Sprintf(`{"directory":%q,"id":"x","previous":{"directory":%q,"database":"0","movedAt":"2026-11-01T10:00:00Z"}}`, to, p.Data),
		filepath.Join(to, "copy.json"): fmt.Sprintf(`{"id":"x","from":%q,"whole":true,"used":true}`, p.Data),
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if p := found(t); p.Data != to || p.Check() != nil || p.Where().Old == "" {
		t.Errorf("got %+v and %v, want directory %s and an old one", p.Where(), p.Check(), to)
	}
	if err := os.Rename(to, to+"-away"); err != nil {
		t.Fatal(err)
	}
	for _, deleting := range []bool{false, true} {
		want := p.Data
		if deleting {
			want = ""
			if err := os.WriteFile(filepath.Join(p.Data, "copy.json"), []byte(`{"id":"y","from":"z"}`), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if missing, is := errors.AsType[*datadir.MissingError](found(t).Check()); !is || missing.Dir != to || missing.Old != want {
			t.Errorf("with a deletion that was begun %t: got %v, want a MissingError with old %q", deleting, found(t).Check(), want)
		}
	}
}
