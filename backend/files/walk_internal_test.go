package files

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// A private directory that is made after a call has looked where it is, and before the call gets there, is found all the same.
func TestWalkNoticesPrivateDirectoryMadeMeanwhile(t *testing.T) {
	dir := t.TempDir()
	private := filepath.Join(dir, "a", "private")
	tr, err := Open(Config{Roots: []string{dir}, Private: []string{private}})
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"a/private", "a/private/x", "a/private/x/y"} {
		for _, how := range []int{0, followLast, makeWay} {
			c, err := tr.call(path)
			if err != nil {
				t.Fatal(err)
			}
			if err = os.MkdirAll(private, 0o700); err != nil {
				t.Fatal(err)
			}
			if s, err := c.walk(how); !errors.Is(err, ErrOutside) {
				t.Errorf("walk to a private directory made %s: got %+v, error %v, want ErrOutside", path, s, err)
			}
			if err = os.RemoveAll(filepath.Join(dir, "a")); err != nil {
				t.Fatal(err)
			}
		}
	}
}
