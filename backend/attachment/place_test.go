package attachment_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"deskhand/backend/attachment"
)

const copiesAt = ".deskhand/attachments/"

func TestPlace(t *testing.T) {
	cwd := realTemp(t)
	for _, c := range []struct{ name, content, want string }{
		{"a.txt", "one", "a.txt"}, {"a.txt", "one", "a.txt"}, {"a.txt", "two", "a-2.txt"}, {"a.txt", "three", "a-3.txt"}, {"a.txt", "two", "a-2.txt"}, {".env", "x", ".env"}, {".env", "y", ".env-2"},
	} {
		at, err := attachment.Place(t.Context(), cwd, filepath.Join(cwd, copiesAt, c.name), []byte(c.content), false)
		if err != nil || at != filepath.Join(cwd, copiesAt, c.want) {
			t.Errorf("%q of %s is at %s, %v", c.content, c.name, at, err)
		}
	}
	want := map[string]string{".gitignore": "*\n", "a.txt": "one", "a-2.txt": "two", "a-3.txt": "three", ".env": "x", ".env-2": "y"}
	if got := below(t, filepath.Join(cwd, copiesAt)); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("there are %v", got)
	}
	write(t, filepath.Join(cwd, copiesAt, ".gitignore"), "mine")
	if _, err := attachment.Place(t.Context(), cwd, "b", nil, false); err != nil || below(t, cwd)[copiesAt+".gitignore"] != "mine" {
		t.Errorf("the .gitignore was changed, %v", err)
	}
	if _, err := attachment.Place(ended(t), cwd, "c", nil, false); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestCopiesBelow: the copier passes the bytes of read to Place.
func TestCopiesBelow(t *testing.T) {
	cwd, boom := realTemp(t), errors.New("boom")
	read := func(_ context.Context, f attachment.File) ([]byte, error) {
		if f.Filename == "" {
			return nil, boom
		}
		return []byte("content"), nil
	}
	at, err := attachment.CopiesBelow(cwd, read, nil)(t.Context(), attachment.File{Filename: "a"}, filepath.Join(cwd, copiesAt, "a"))
	if data, readErr := os.ReadFile(at); err != nil || readErr != nil || string(data) != "content" {
		t.Errorf(`ReadFile: got data %q, error %v, readErr %v, want no error, readErr nil and data "content"`, data, err, readErr)
	}
	if _, err := attachment.CopiesBelow(cwd, read, nil)(t.Context(), attachment.File{}, "a"); !errors.Is(err, boom) {
		t.Errorf("unreadable: %v", err)
	}
}

// TestCopiesAreHiddenOneWay: the .gitignore of the copies exists only while git cannot be configured otherwise, and a person's own .gitignore
// stays.
func TestCopiesAreHiddenOneWay(t *testing.T) {
	cwd, told := realTemp(t), 0
	ignore := copiesAt + ".gitignore"
	can := false
	hide := func(_ context.Context, dir string) bool {
		if dir != cwd {
			t.Errorf("hide was asked about %q, want %q", dir, cwd)
		}
		told++
		return can
	}
	read := func(context.Context, attachment.File) ([]byte, error) { return []byte("x"), nil }
	copyOf := func(name string) {
		t.Helper()
		place := attachment.CopiesBelow(cwd, read, hide)
		for range 2 {
			if _, err := place(t.Context(), attachment.File{}, name); err != nil {
				t.Fatal(err)
			}
		}
	}
	settle := func() {
		t.Helper()
		if err := attachment.HideCopies(t.Context(), cwd, hide); err != nil {
			t.Fatal(err)
		}
	}
	has := func(when, want string) {
		t.Helper()
		if got := below(t, cwd)[ignore]; got != want {
			t.Errorf("%s: %s is %q, want %q", when, ignore, got, want)
		}
	}
	settle()
	if got := below(t, cwd); len(got) > 0 || told > 0 {
		t.Errorf("without copies: there are %v, and git was told %d times", got, told)
	}
	copyOf("a")
	has("without a repository", "*\n")
	can = true
	settle()
	has("with a repository made since", "")
	told = 0
	copyOf("b")
	has("with a repository", "")
	if told != 1 {
		t.Errorf("for two copies of a prompt git was told %d times, want 1", told)
	}
	can = false
	settle()
	has("with the repository gone", "*\n")
	can = true
	copyOf("c")
	has("with the file of an older version", "")
	write(t, filepath.Join(cwd, ignore), "*\n!mine\n")
	settle()
	copyOf("d")
	has("with a file of somebody's own", "*\n!mine\n")
}

// TestPlaceFollowsNoLinkOutside: a foreign directory may have links in the place of the copies' directories.
func TestPlaceFollowsNoLinkOutside(t *testing.T) {
	for _, where := range []string{".deskhand", ".deskhand/attachments"} {
		dir := realTemp(t)
		cwd, other := filepath.Join(dir, "cwd"), filepath.Join(dir, "other")
		write(t, filepath.Join(other, "kept"), "x")
		if err := os.MkdirAll(filepath.Dir(filepath.Join(cwd, where)), 0o755); err != nil {
			t.Fatal(err)
		}
		link(t, other, filepath.Join(cwd, where))
		_, err := attachment.Place(t.Context(), cwd, "a", []byte("x"), false)
		wants(t, where, err, "outside")
		if got := keys(below(t, other)); !slices.Equal(got, []string{"kept"}) {
			t.Errorf("%s: outside there are now %q", where, got)
		}
	}
	cwd := realTemp(t)
	secret := write(t, filepath.Join(realTemp(t), "secret"), "secret")
	write(t, filepath.Join(cwd, copiesAt, "b"), "")
	link(t, secret, filepath.Join(cwd, copiesAt, "a"))
	at, err := attachment.Place(t.Context(), cwd, "a", []byte("secret"), false)
	if err != nil || filepath.Base(at) != "a-2" {
		t.Errorf("a link of that name: %s, %v", at, err)
	}
	blocked := realTemp(t)
	write(t, filepath.Join(blocked, ".deskhand"), "a file")
	_, err = attachment.Place(t.Context(), blocked, "a", nil, false)
	wants(t, "a file in the way", err, "unwritable")
	_, err = attachment.Place(t.Context(), filepath.Join(blocked, "none"), "a", nil, false)
	wants(t, "no directory", err, "missing")
}

// TestPlaceManyAtOnce: concurrent calls each get a whole copy, equal copies are shared, and no other file is left.
func TestPlaceManyAtOnce(t *testing.T) {
	cwd := realTemp(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	at := map[string]string{}
	for i := range 24 {
		all.Go(func() {
			content := strings.Repeat(fmt.Sprint(i%6), 1<<16)
			path, err := attachment.Place(t.Context(), cwd, "a.txt", []byte(content), false)
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if was, ok := at[content]; ok && was != path {
				t.Errorf("one file is at %s and at %s", was, path)
			}
			at[content] = path
		})
	}
	all.Wait()
	for content, path := range at {
		if data, err := os.ReadFile(path); err != nil || string(data) != content {
			t.Errorf("%s: got error %v, want no error and data %v", path, err, content)
		}
	}
	if got := below(t, cwd); len(got) != 7 {
		t.Errorf("there are %q", keys(got))
	}
}
