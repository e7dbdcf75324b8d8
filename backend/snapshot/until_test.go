package snapshot_test

import (
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/snapshot"
)

// repository makes the directory a repository with every file committed.
func (d *fixture) repository() {
	d.tb.Helper()
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=a", "-c", "user.email=a@localhost", "commit", "-q", "-m", "all"}} {
		if out, err := exec.Command("git", append([]string{"-C", d.dir}, args...)...).CombinedOutput(); err != nil {
			d.tb.Fatalf("CombinedOutput: got error %v, out %s, want no error", err, out)
		}
	}
}

// late is the tree of a snapshot that begins after an agent has changed files.
func (d *fixture) late(s *snapshot.Store, marked bool, agent func()) snapshot.Tree {
	d.tb.Helper()
	limit := &snapshot.Limit{}
	if marked {
		var err error
		if limit.Mark, err = s.Mark(d.tb.Context()); err != nil {
			d.tb.Fatal(err)
		}
	}
	limit.At = time.Now()
	agent()
	tree, err := s.TakeUntil(d.tb.Context(), func() *snapshot.Limit { return limit })
	if err != nil {
		d.tb.Fatal(err)
	}
	return tree
}

func leftPaths(tree snapshot.Tree) string {
	var names []string
	for _, l := range tree.Left {
		names = append(names, l.Path)
	}
	return strings.Join(names, " ")
}

func onLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("no file tells here when it was changed")
	}
}

// made is an existing store without a snapshot.
func (d *fixture) made() *snapshot.Store {
	d.tb.Helper()
	empty := d.tb.TempDir()
	s := d.Library.Store("late", empty)
	if _, err := s.Take(d.tb.Context()); err != nil {
		d.tb.Fatal(err)
	}
	return d.Library.Store("late", d.dir)
}

// TestALateLookAtARepository: the contents that the agent changed before the snapshot read them come from the repository's objects.
func TestALateLookAtARepository(t *testing.T) {
	onLinux(t)
	d := open(t)
	d.write(".gitignore", "*.log\n", "kept", "k", "changed", "1", "gone", "2", "sub/moved", "3", "sub/own", "4", "x.log", "log")
	d.repository()
	d.write("own", "untracked", "dirty", "")
	d.write("sub/own", "the person's")
	time.Sleep(100 * time.Millisecond) // lets the file system's clock tick
	before, err := d.Library.Store("full", d.dir).Take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	tree := d.late(d.made(), true, func() {
		d.write("changed", "agent", "new", "agent", "new2/file", "agent", "y.log", "agent")
		d.remove("gone")
		d.rename("sub", "sub2")
	})
	if err := d.taken().Adopt(t.Context(), d.Library.Store("full", "")); err != nil {
		t.Fatal(err)
	}
	// The person had changed the content of sub/own, which no snapshot has read.
	want(t, "what the agent has changed", kinds(d.taken().compareIn(t, before, tree)), "deleted sub/own")
	want(t, "what is not known", leftPaths(tree), "sub/own")
	if !tree.Left[0].Late {
		t.Errorf("got %+v; want a file that was read too late", tree.Left[0])
	}
}

type inStore struct{ *snapshot.Store }

func (d *fixture) taken() inStore { return inStore{d.Library.Store("late", "")} }

// compareIn compares with a tree of another store.
func (s inStore) compareIn(t *testing.T, a, b snapshot.Tree) []snapshot.Change {
	t.Helper()
	list, err := s.Compare(t.Context(), a.ID, b.ID)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestALateLookTakesNoFileForAnother: whatever was done before and after the limit, every file of the tree is the file at the limit, or listed
// as unknown.
func TestALateLookTakesNoFileForAnother(t *testing.T) {
	onLinux(t)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // chooses the actions of the test
	for round := range 16 {
		repository, marked := round%2 == 0, round%4 < 3
		d := openWith(t, snapshot.Config{MostFile: 500})
		d.write(".gitignore", "*.log\nbuilt/\n", "a/one", "1", "a/b/two", "2", "c/three", "3", "c/new/z", "z", "built/x", "x", "four", "4", "one", "5", "e/f/y", "y")
		if repository {
			d.repository()
		}
		var did []string
		for range random.IntN(3) {
			did = append(did, d.anything(random))
		}
		if round%3 == 0 {
			time.Sleep(100 * time.Millisecond) // lets the file system's clock tick
		}
		store := d.made()
		before, err := d.Library.Store("full", d.dir).Take(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		did = append(did, "|")
		tree := d.late(store, marked, func() {
			for range 1 + random.IntN(5) {
				did = append(did, d.anything(random))
			}
		})
		if err := store.Adopt(t.Context(), d.Library.Store("full", "")); err != nil {
			t.Fatal(err)
		}
		list, err := store.Compare(t.Context(), before.ID, tree.ID)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range list {
			ruled := strings.HasPrefix(c.Path, "built/") || strings.HasSuffix(c.Path, ".log")
			left := func(path string) bool {
				return slices.ContainsFunc(tree.Left, func(l snapshot.Left) bool { return l.Path == path })
			}
			if ruled && (c.Kind == snapshot.Added || c.Kind == snapshot.Deleted && left(".gitignore")) {
				continue // the rules of another moment decide about the file, and its time shows no change
			}
			unknown := left(c.Path) || left(c.Was)
			if !unknown && (marked || c.Kind != snapshot.Deleted) || c.Kind != snapshot.Deleted {
				t.Errorf("seed %d, round %d, after %q: got %s %s of the tree before; left %v", seed, round, did, c.Kind, c.Path, tree.Left)
			}
		}
	}
}

// TestTheMarkOfAFirstLookIsKeptUpToDate: files that the person touched after the snapshot began are not taken from the repository.
func TestTheMarkOfAFirstLookIsKeptUpToDate(t *testing.T) {
	onLinux(t)
	d := open(t)
	d.write("changed", "1", "both", "2", "gone", "3")
	d.repository()
	none := false
	d.gone = &none
	s := d.made()
	if _, err := s.Take(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.write("both", "the person's", "new", "the person's")
	time.Sleep(100 * time.Millisecond) // lets the file system's clock tick
	none = true                        // the mark needs no process
	mark, err := s.Mark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	none = false
	limit := &snapshot.Limit{At: time.Now(), Mark: mark}
	d.write("both", "agent", "changed", "agent", "another", "agent")
	d.remove("gone", "new")
	tree, err := s.TakeUntil(t.Context(), func() *snapshot.Limit { return limit })
	if err != nil {
		t.Fatal(err)
	}
	want(t, "what is not known", leftPaths(tree), "both new")
	want(t, "what the agent did", kinds(d.taken().compareIn(t, tree, d.look(s))), "added another\nadded both\nmodified changed\ndeleted gone")
}

func (d *fixture) look(s *snapshot.Store) snapshot.Tree {
	d.tb.Helper()
	tree, err := s.Take(d.tb.Context())
	if err != nil {
		d.tb.Fatal(err)
	}
	return tree
}

// TestAMarkBehindTheLimitKnowsWhatTheIndexKnows: a mark made after the limit knows the files untouched by then, unless the index was written
// since.
func TestAMarkBehindTheLimitKnowsWhatTheIndexKnows(t *testing.T) {
	onLinux(t)
	for _, committed := range []bool{false, true} {
		d := open(t)
		d.write("early", "1", "late", "2", "gone", "3")
		d.repository()
		time.Sleep(100 * time.Millisecond) // lets the file system's clock tick
		s := d.made()
		limit := &snapshot.Limit{At: time.Now()}
		d.write("early", "agent", "new", "agent")
		if committed {
			d.repository()
		}
		d.look(s)
		d.write("late", "agent")
		d.remove("gone")
		tree, err := s.TakeUntil(t.Context(), func() *snapshot.Limit { return limit })
		if err != nil {
			t.Fatal(err)
		}
		left, did := "early new", "added early\ndeleted gone\nmodified late\nadded new"
		if committed {
			left, did = "early late new", "added early\nadded late\nadded new"
		}
		want(t, "what is not known", leftPaths(tree), left)
		want(t, "what the agent did", kinds(d.taken().compareIn(t, tree, d.look(s))), did)
	}
}

// TestALookThatIsOverInTimeHasNoLimit: a snapshot finished before the limit judges no file by its time.
func TestALookThatIsOverInTimeHasNoLimit(t *testing.T) {
	d := open(t)
	d.write("a", "1")
	tree, err := d.TakeUntil(t.Context(), func() *snapshot.Limit { return nil })
	if again := d.take(); err != nil || tree.ID != again.ID || len(tree.Left) > 0 {
		t.Errorf("got %+v, %v; want %s", tree, err, again.ID)
	}
}

// TestAConvertedFileIsNotTakenFromTheRepository: the repository's bytes of a converted file differ from the file's.
func TestAConvertedFileIsNotTakenFromTheRepository(t *testing.T) {
	onLinux(t)
	for name, attributes := range map[string]string{"a filter": "* filter=none\n", "line ends": "* text eol=crlf\n"} {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			d.write(".gitattributes", attributes, "a", "1\r\n2\r\n")
			d.repository()
			tree := d.late(d.made(), true, func() { d.write("a", "agent") })
			// Whether .gitattributes is known as well depends on whether git's index is of the same moment as the file.
			if left := leftPaths(tree); !slices.Contains(strings.Fields(left), "a") {
				t.Errorf("the files that are not known: got %q, want a among them", left)
			}
		})
	}
}

func (d *fixture) rename(one, other string) {
	d.tb.Helper()
	if out, err := exec.Command("mv", filepath.Join(d.dir, one), filepath.Join(d.dir, other)).CombinedOutput(); err != nil {
		d.tb.Fatalf("CombinedOutput: got error %v, out %s, want no error", err, out)
	}
}
