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
		at, err := attachment.Place(t.Context(), cwd, filepath.Join(cwd, copiesAt, c.name), []byte(c.content))
		if err != nil || at != filepath.Join(cwd, copiesAt, c.want) {
			t.Errorf("%q of %s is at %s, %v", c.content, c.name, at, err)
		}
	}
	want := map[string]string{".gitignore": "*\n", "a.txt": "one", "a-2.txt": "two", "a-3.txt": "three", ".env": "x", ".env-2": "y"}
	if got := below(t, filepath.Join(cwd, copiesAt)); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("there are %v", got)
	}
	write(t, filepath.Join(cwd, copiesAt, ".gitignore"), "mine")
	if _, err := attachment.Place(t.Context(), cwd, "b", nil); err != nil || below(t, cwd)[copiesAt+".gitignore"] != "mine" {
		t.Errorf("the .gitignore was changed, %v", err)
	}
	if _, err := attachment.Place(ended(t), cwd, "c", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// A copier gives what is read to Place.
func TestCopiesBelow(t *testing.T) {
	cwd, boom := realTemp(t), errors.New("boom")
	read := func(_ context.Context, f attachment.File) ([]byte, error) {
		if f.Filename == "" {
			return nil, boom
		}
		return []byte("content"), nil
	}
	at, err := attachment.CopiesBelow(cwd, read)(t.Context(), attachment.File{Filename: "a"}, filepath.Join(cwd, copiesAt, "a"))
	if data, readErr := os.ReadFile(at); err != nil || readErr != nil || string(data) != "content" {
		t.Errorf("%q, %v, %v", data, err, readErr)
	}
	if _, err := attachment.CopiesBelow(cwd, read)(t.Context(), attachment.File{}, "a"); !errors.Is(err, boom) {
		t.Errorf("unreadable: %v", err)
	}
}

// A directory that came from elsewhere can hold links where the copies go.
func TestPlaceFollowsNoLinkOutside(t *testing.T) {
	for _, where := range []string{".deskhand", ".deskhand/attachments"} {
		dir := realTemp(t)
		cwd, other := filepath.Join(dir, "cwd"), filepath.Join(dir, "other")
		write(t, filepath.Join(other, "kept"), "x")
		if err := os.MkdirAll(filepath.Dir(filepath.Join(cwd, where)), 0o755); err != nil {
			t.Fatal(err)
		}
		link(t, other, filepath.Join(cwd, where))
		_, err := attachment.Place(t.Context(), cwd, "a", []byte("x"))
		wants(t, where, err, "outside")
		if got := keys(below(t, other)); !slices.Equal(got, []string{"kept"}) {
			t.Errorf("%s: outside there are now %q", where, got)
		}
	}
	cwd := realTemp(t)
	secret := write(t, filepath.Join(realTemp(t), "secret"), "secret")
	write(t, filepath.Join(cwd, copiesAt, "b"), "")
	link(t, secret, filepath.Join(cwd, copiesAt, "a"))
	at, err := attachment.Place(t.Context(), cwd, "a", []byte("secret"))
	if err != nil || filepath.Base(at) != "a-2" {
		t.Errorf("a link of that name: %s, %v", at, err)
	}
	blocked := realTemp(t)
	write(t, filepath.Join(blocked, ".deskhand"), "a file")
	_, err = attachment.Place(t.Context(), blocked, "a", nil)
	wants(t, "a file in the way", err, "unwritable")
	_, err = attachment.Place(t.Context(), filepath.Join(blocked, "none"), "a", nil)
	wants(t, "no directory", err, "missing")
}

// Many at once: each gets a whole copy, equal ones share it, and nothing else is left.
func TestPlaceManyAtOnce(t *testing.T) {
	cwd := realTemp(t)
	var all sync.WaitGroup
	var mu sync.Mutex
	at := map[string]string{}
	for i := range 24 {
		all.Go(func() {
			content := strings.Repeat(fmt.Sprint(i%6), 1<<16)
			path, err := attachment.Place(t.Context(), cwd, "a.txt", []byte(content))
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
			t.Errorf("%s: %v", path, err)
		}
	}
	if got := below(t, cwd); len(got) != 7 {
		t.Errorf("there are %q", keys(got))
	}
}
