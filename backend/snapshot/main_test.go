package snapshot_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"deskhand/backend/files"
	"deskhand/backend/proxy"
	"deskhand/backend/snapshot"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a library with one directory.
type fixture struct {
	*snapshot.Library
	*snapshot.Store
	tb   testing.TB
	data string
	dir  string
	home string
	gone *bool // git cannot be found
}

func open(tb testing.TB) *fixture { tb.Helper(); return openWith(tb, snapshot.Config{}) }

func openWith(tb testing.TB, cfg snapshot.Config) *fixture {
	tb.Helper()
	d := &fixture{tb: tb, data: filepath.Join(tb.TempDir(), "snapshots"), home: tb.TempDir()}
	var err error
	if d.dir, err = filepath.EvalSymlinks(tb.TempDir()); err != nil {
		tb.Fatal(err)
	}
	set, err := proxy.Open(proxy.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	cfg.Dir, cfg.Beside = d.data, set
	if cfg.Replace == nil {
		cfg.Replace = files.ReplaceIf
	}
	cfg.Environ = func(context.Context) []string { return d.environ() }
	if d.Library, err = snapshot.Open(tb.Context(), cfg); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := errors.Join(d.Close(), set.Close()); err != nil {
			tb.Error(err)
		}
	})
	d.Store = d.Library.Store("w", d.dir)
	return d
}

// environ is the environment of a person whose git configuration does everything that a snapshot must not do.
func (d *fixture) environ() []string {
	if d.gone != nil && *d.gone {
		return []string{"PATH=/none"}
	}
	return append(os.Environ(), "HOME="+d.home, "GIT_DIR="+filepath.Join(d.home, "elsewhere"), "GIT_INDEX_FILE=/none", "GIT_EXTERNAL_DIFF=false")
}

func (d *fixture) write(files ...string) {
	d.tb.Helper()
	for i := 0; i+1 < len(files); i += 2 {
		d.file(files[i], files[i+1], 0o644)
	}
}

func (d *fixture) file(name, text string, mode os.FileMode) {
	d.tb.Helper()
	name = filepath.Join(d.dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, []byte(text), mode), os.Chmod(name, mode)); err != nil {
		d.tb.Fatal(err)
	}
}

func (d *fixture) link(name, leads string) {
	d.tb.Helper()
	if err := os.Symlink(leads, filepath.Join(d.dir, name)); err != nil {
		d.tb.Fatal(err)
	}
}

func (d *fixture) remove(names ...string) {
	d.tb.Helper()
	for _, name := range names {
		if err := os.RemoveAll(filepath.Join(d.dir, name)); err != nil {
			d.tb.Fatal(err)
		}
	}
}

func (d *fixture) take() snapshot.Tree {
	d.tb.Helper()
	tree, err := d.Take(d.tb.Context())
	if err != nil {
		d.tb.Fatal(err)
	}
	return tree
}

func (d *fixture) compare(a, b snapshot.Tree) []snapshot.Change {
	d.tb.Helper()
	list, err := d.Compare(d.tb.Context(), a.ID, b.ID)
	if err != nil {
		d.tb.Fatal(err)
	}
	return list
}

// kinds lists the changes, a line per file.
func kinds(list []snapshot.Change) string {
	var lines []string
	for _, c := range list {
		line := string(c.Kind) + " " + c.Path
		if c.Was != "" {
			line += " was " + c.Was
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func want(tb testing.TB, what, got, want string) {
	tb.Helper()
	if got != want {
		tb.Errorf("%s:\n%q\nwant\n%q", what, got, want)
	}
}

// all maps every path below a folder to its mode and its content or link target.
func all(tb testing.TB, dir string) map[string]string {
	tb.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		way, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		info, err := os.Lstat(name)
		if err != nil {
			return err
		}
		text := info.Mode().String()
		switch {
		case info.Mode()&os.ModeSymlink != 0:
			leads, err := os.Readlink(name)
			found[way] = text + " " + leads
			return err
		case info.Mode().IsRegular():
			data, err := os.ReadFile(name)
			found[way] = text + " " + string(data)
			return err
		}
		found[way] = text
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return found
}

func sameAll(tb testing.TB, what string, got, want map[string]string) {
	tb.Helper()
	for name, text := range want {
		if got[name] != text {
			tb.Errorf("%s: %q is %.200q, was %.200q", what, name, got[name], text)
		}
	}
	for name := range got {
		if _, had := want[name]; !had {
			tb.Errorf("%s: %q is new", what, name)
		}
	}
}

// git runs the person's own git.
func (d *fixture) git(dir string, args ...string) {
	d.tb.Helper()
	cmd := exec.CommandContext(d.tb.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+d.home, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.tb.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// back restores the differences between two trees, for files that still match b.
func (d *fixture) back(a, b snapshot.Tree, preview bool) snapshot.Way {
	d.tb.Helper()
	list := d.compare(a, b)
	w, err := d.Restore(d.tb.Context(), preview, func(snapshot.Tree) ([]snapshot.Put, error) { return puts(list), nil })
	if err != nil {
		d.tb.Fatal(err)
	}
	return w
}

func puts(list []snapshot.Change) []snapshot.Put {
	var out []snapshot.Put
	for _, c := range list {
		if c.Was != "" {
			out = append(out, snapshot.Put{Path: c.Was, Want: c.Before, Expect: &snapshot.Side{}}, snapshot.Put{Path: c.Path, Expect: &c.After})
			continue
		}
		out = append(out, snapshot.Put{Path: c.Path, Want: c.Before, Expect: &c.After})
	}
	return out
}

func outcomes(w snapshot.Way) string {
	var lines []string
	for _, f := range w.Files {
		lines = append(lines, strings.TrimSpace(fmt.Sprintf("%s %s %s", f.Path, f.Outcome, f.Reason)))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}
