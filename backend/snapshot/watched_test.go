package snapshot_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"deskhand/backend/snapshot"
)

// TestAWatchedDirectoryIsWhatALookInFullFinds: whatever happens between two snapshots, looking at the touched files alone gives the same tree
// as looking at every file.
func TestAWatchedDirectoryIsWhatALookInFullFinds(t *testing.T) {
	t.Parallel()
	for name, seed := range map[string]uint64{
		"a new hard link, then a change by the other name": 7180934492796140327,
		"anything": rand.Uint64(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			watchedIsFull(t, seed)
		})
	}
}

// watchedIsFull compares the two looks after each of sixty rounds of random changes.
func watchedIsFull(t *testing.T, seed uint64) {
	t.Helper()
	full := openWith(t, snapshot.Config{Unwatched: true, MostFile: 500})
	d := openWith(t, snapshot.Config{MostFile: 500})
	d.write(".gitignore", "*.log\nbuilt/\n", "a/one", "1", "a/b/two", "2", "c/three", "3", "built/x", "x", "four", "4")
	if out, err := exec.Command("git", "-C", d.dir, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("CombinedOutput: got error %v, out %s, want no error", err, out)
	}
	at := full.Library.Store("full", d.dir)
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // chooses the actions of the test
	for round := range 60 {
		var did []string
		for range 1 + random.IntN(4) {
			did = append(did, d.anything(random))
		}
		got := d.take()
		want, err := at.Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got.ID != want.ID || !slices.Equal(got.Left, want.Left) {
			list, err := d.Compare(t.Context(), want.ID, got.ID)
			t.Fatalf("seed %d, round %d, after %q: got %s and %v; want %s and %v: %s %v", seed, round, did, got.ID, got.Left, want.ID, want.Left, kinds(list), err)
		}
		if again := d.take(); again.ID != got.ID {
			t.Fatalf("seed %d, round %d: got %s of a second look at once; want %s", seed, round, again.ID, got.ID)
		}
	}
}

// anything does a random change to the directory, and returns its description.
func (d *fixture) anything(random *rand.Rand) string {
	d.tb.Helper()
	folders := []string{".", "a", "a/b", "c", "c/new", "built", "e/f"}
	name := func() string {
		return filepath.Join(folders[random.IntN(len(folders))], []string{"one", "two", "x.log", "y", "z"}[random.IntN(5)])
	}
	in := func(name string) string { return filepath.Join(d.dir, name) }
	one, other := name(), name()
	var did string
	var err error
	switch random.IntN(12) {
	case 0, 1, 2:
		did = "write " + one
		err = errors.Join(os.MkdirAll(filepath.Dir(in(one)), 0o755), os.WriteFile(in(one), fmt.Append(nil, random.Uint64()), 0o644)) //nolint:gosec // a person's own file
	case 3:
		did = "remove " + one
		err = os.RemoveAll(in(one))
	case 4:
		did = "rename " + one + " " + other
		err = os.Rename(in(one), in(other))
	case 5:
		one, other = folders[1+random.IntN(6)], folders[1+random.IntN(6)]
		did = "move " + one + " " + other
		err = os.Rename(in(one), in(other))
	case 6:
		one = folders[1+random.IntN(6)]
		did = "remove folder " + one
		err = os.RemoveAll(in(one))
	case 7:
		did = "chmod " + one
		err = os.Chmod(in(one), []os.FileMode{0o600, 0o644, 0o755}[random.IntN(3)])
	case 8:
		did = "link " + one
		err = os.Symlink("where", in(one))
	case 9:
		one = filepath.Join(folders[random.IntN(5)], "long") // no rule ignores these files: a full snapshot forgets that an ignored file was kept
		did = "long " + one
		err = os.WriteFile(in(one), make([]byte, 600), 0o600)
	case 10:
		did = "rules"
		err = os.WriteFile(in(".gitignore"), []byte([]string{"*.log\n", "built/\n", "*.log\nbuilt/\n", ""}[random.IntN(4)]), 0o600)
	case 11:
		did = "hard link " + one + " " + other
		err = os.Link(in(one), in(other))
	}
	if err != nil { // the file is missing, or another file is in the way
		did += " (failed)"
	}
	return did
}

// TestAWatchedDirectoryRunsNoGitWhereNothingWasTouched: the second snapshot returns the first tree even when git is gone.
func TestAWatchedDirectoryRunsNoGitWhereNothingWasTouched(t *testing.T) {
	none := false
	d := openWith(t, snapshot.Config{})
	d.gone = &none
	d.write("a/one", "1", "two", "2")
	was := d.take()
	if _, err := d.Hidden(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	none = true
	if now := d.take(); now.ID != was.ID {
		t.Errorf("got %s; want %s", now.ID, was.ID)
	}
	if hidden, err := d.Hidden(t.Context(), 10); err != nil || len(hidden) != 0 {
		t.Errorf("got %q, %v of the rules; want nothing", hidden, err)
	}
	d.write("a/one", "2")
	if _, err := d.Take(t.Context()); !errors.Is(err, snapshot.ErrNoGit) {
		t.Errorf("got %v of a directory that was touched, without git; want %v", err, snapshot.ErrNoGit)
	}
	none = false
	now := d.take()
	want(t, "kinds", kinds(d.compare(was, now)), "modified a/one")
}

// TestAFileThatIsChangedByAnotherNameIsSeen: the system reports no such change in the watched directory.
func TestAFileThatIsChangedByAnotherNameIsSeen(t *testing.T) {
	d := open(t)
	d.write("a", "1", "b", "1")
	elsewhere := filepath.Join(t.TempDir(), "name")
	if err := os.Link(filepath.Join(d.dir, "a"), elsewhere); err != nil {
		t.Skip(err)
	}
	was := d.take()
	time.Sleep(20 * time.Millisecond) // lets the file system's clock tick
	if err := os.WriteFile(elsewhere, []byte("2"), 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, "kinds", kinds(d.compare(was, d.take())), "modified a")
}
