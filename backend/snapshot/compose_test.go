package snapshot_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/snapshot"
)

// TestStepsAndWhatIsComposed: Steps lists the changes of many steps in one call, and a composed tree can be compared and restored.
func TestStepsAndWhatIsComposed(t *testing.T) {
	d := open(t)
	d.write("a", "1\n", "b", "1\n", odd, "1\n")
	d.file("key", "1\n", 0o600)
	one := d.take()
	d.write("a", "2\n", "dir/c", "1\n")
	two := d.take()
	d.write(odd, "2\n")
	d.remove("b", "key")
	three := d.take()
	lists, err := d.Steps(t.Context(), []snapshot.Step{{Before: one.ID, After: two.ID}, {Before: two.ID, After: two.ID}, {Before: two.ID, After: three.ID}})
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, list := range lists {
		all = append(all, kinds(list))
	}
	want(t, "steps", strings.Join(all, "|"), "modified a\nadded dir/c||deleted b\ndeleted key\nmodified "+odd)

	was, err := d.Compose(t.Context(), []snapshot.Part{{Path: "a", Side: lists[0][0].Before, From: one.ID}, {Path: "key", Side: lists[2][1].Before, From: two.ID}})
	if err != nil {
		t.Fatal(err)
	}
	became, err := d.Compose(t.Context(), []snapshot.Part{{Path: "a", Side: lists[0][0].After, From: two.ID}})
	if err != nil {
		t.Fatal(err)
	}
	want(t, "kinds", kinds(d.compare(snapshot.Tree{ID: was}, snapshot.Tree{ID: became})), "modified a\ndeleted key")
	want(t, "outcomes", outcomes(d.wayBack(snapshot.Tree{ID: was}, snapshot.Tree{ID: became})), "a restored\nkey restored")
	if got := d.mode("key"); got != 0o600 {
		t.Errorf("the key is %v", got)
	}
	if empty, err := d.Compose(t.Context(), nil); err != nil || len(d.compare(snapshot.Tree{ID: empty}, snapshot.Tree{ID: empty})) != 0 {
		t.Errorf("Compose: got empty %q, error %v, want no error and no d.compare(snapshot.Tree{ID: empty}, snapshot.Tree{ID: empty})", empty, err)
	}
}

// TestAdopt: an adopting store holds the trees of the other store, also after the other store is gone.
func TestAdopt(t *testing.T) {
	d := open(t)
	for i := range 250 { // a pack and loose objects
		d.write(filepath.Join("dir", strings.Repeat("x", i%20)+string(rune('a'+i%26))+strings.Repeat("y", i/26)), strings.Repeat("z", i))
	}
	d.write("a", "1\n")
	was := d.take()
	d.write("a", "2\n")
	became := d.take()
	first := d.Store
	d.Store = d.Library.Store("other", d.dir)
	d.take()
	for range 2 {
		if err := d.Adopt(t.Context(), first); err != nil {
			t.Fatal(err)
		}
	}
	if err := first.Forget(t.Context()); err != nil {
		t.Fatal(err)
	}
	d.remove("dir")
	gone := d.take()
	d.wayBack(was, gone)
	want(t, "kinds", kinds(d.compare(was, became)), "modified a")
	want(t, "what came back", kinds(d.compare(was, d.take())), "")
	if _, err := os.Stat(filepath.Join(d.data, "w")); err == nil {
		t.Error("the other one is still there")
	}
	if err := d.Adopt(t.Context(), d.Library.Store("none", "")); err != nil {
		t.Error(err)
	}
}
