package attachment_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/attachment"
)

func TestInspect(t *testing.T) {
	dir := realTemp(t)
	name := "a b%20\n\U0001F600.go"
	path := write(t, filepath.Join(dir, name), "package a\n")
	got, err := attachment.Inspect(t.Context(), filepath.Join(dir, ".", "x", "..", name), nil, false, attachment.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	want := attachment.File{
		Filename: name, MimeType: "text/x-go", Size: 10, Path: path, URI: attachment.URI(path),
	}
	want.SHA256 = got.SHA256
	if got != want || len(got.SHA256) != 64 || !strings.HasSuffix(got.URI, "/a%20b%2520%0A%F0%9F%98%80.go") {
		t.Errorf("it is %+v", got)
	}
	png := write(t, filepath.Join(dir, "p.png"), string(asPNG(t, picture(30, 20, true))))
	if got, err := attachment.Inspect(t.Context(), png, nil, false, attachment.Limits{}); err != nil || got.Width != 30 || got.Height != 20 || got.MimeType != "image/png" {
		t.Errorf("the picture is %+v, %v", got, err)
	}
	if got, err := attachment.Inspect(t.Context(), dir, nil, false, attachment.Limits{}); err != nil || !got.Directory || got.SHA256 != "" || got.MimeType != "inode/directory" {
		t.Errorf("the directory is %+v, %v", got, err)
	}
	if got, err := attachment.Inspect(t.Context(), write(t, filepath.Join(dir, "empty.txt"), ""), nil, false, attachment.Limits{}); err != nil || got.Size != 0 || got.MimeType != "text/plain" {
		t.Errorf("the empty file is %+v, %v", got, err)
	}
}

func TestInspectRefuses(t *testing.T) {
	dir := realTemp(t)
	six := write(t, filepath.Join(dir, "six"), "123456")
	for _, c := range []struct{ what, path, code string }{
		{"not there", filepath.Join(dir, "none"), "missing"},
		{"below a file", filepath.Join(six, "none"), "missing"},
		{"relative", "six", "missing"},
		{"empty", "", "missing"},
		{"NUL", dir + "/a\x00b", "missing"},
		{"too large", six, "too_large"},
		{"a link to nothing", link(t, "nothing", filepath.Join(dir, "dangling")), "missing"},
		{"a link to itself", link(t, "loop", filepath.Join(dir, "loop")), "unreadable"},
	} {
		_, err := attachment.Inspect(t.Context(), c.path, nil, true, attachment.Limits{Bytes: 5})
		wants(t, c.what, err, c.code)
	}
	if _, err := attachment.Inspect(ended(t), six, nil, true, attachment.Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	_, err := attachment.Inspect(t.Context(), six, nil, true, attachment.Limits{Bytes: 5})
	if err.Error() != `"six" is too large (at most 5 bytes)` {
		t.Errorf("the error is %v", err)
	}
}

// TestInspectRefusesASparseFile: a sparse file is refused by its length, unread.
func TestInspectRefusesASparseFile(t *testing.T) {
	path := write(t, filepath.Join(realTemp(t), "sparse"), "")
	if err := os.Truncate(path, 2<<30); err != nil {
		t.Skipf("the file system has no room for it: %v", err)
	}
	_, err := attachment.Inspect(ended(t), path, nil, false, attachment.Limits{}) // a read would fail with the ended context
	wants(t, "2 GiB", err, "too_large")
}

func TestInspectFollowsNoLinkOutside(t *testing.T) {
	dir := realTemp(t)
	root, other, elsewhere := filepath.Join(dir, "root"), filepath.Join(dir, "other"), filepath.Join(dir, "elsewhere")
	inside := write(t, filepath.Join(root, "sub", "in.txt"), "in")
	secret := write(t, filepath.Join(elsewhere, "secret"), "secret")
	write(t, filepath.Join(other, "o.txt"), "o")
	alias := link(t, root, filepath.Join(dir, "alias"))
	for _, c := range []struct{ what, path, code, leadsTo string }{
		{"a link within the root", link(t, "sub/in.txt", filepath.Join(root, "l1")), "", inside},
		{"an absolute one", link(t, inside, filepath.Join(root, "l2")), "", inside},
		{"a link to another root", link(t, filepath.Join(other, "o.txt"), filepath.Join(root, "l3")), "", filepath.Join(other, "o.txt")},
		{"a link out of the root", link(t, secret, filepath.Join(root, "notes.txt")), "link_outside", secret},
		{"a directory out of the root", filepath.Join(link(t, elsewhere, filepath.Join(root, "docs")), "secret"), "link_outside", secret},
		{"that directory", filepath.Join(root, "docs"), "link_outside", elsewhere},
		{"a link to a link out", link(t, "notes.txt", filepath.Join(root, "l4")), "link_outside", secret},
		{"no link, outside", secret, "", secret},
		{"outside, by a directory that is a link", filepath.Join(link(t, elsewhere, filepath.Join(dir, "way")), "secret"), "", filepath.Join(dir, "way", "secret")},
		{"outside, a link to beside", link(t, "secret", filepath.Join(elsewhere, "latest")), "", filepath.Join(elsewhere, "latest")},
		{"outside, a link to elsewhere", link(t, secret, filepath.Join(dir, "l5")), "", filepath.Join(dir, "l5")}, // below the link's own directory
		{"outside, a link up", link(t, filepath.Join(other, "o.txt"), filepath.Join(elsewhere, "l6")), "", filepath.Join(other, "o.txt")},
		{"outside, a link to a sibling", link(t, "../unlisted/x", filepath.Join(elsewhere, "l7")), "link_outside", write(t, filepath.Join(dir, "unlisted", "x"), "x")},
		{"by another name of the root", filepath.Join(alias, "sub", "in.txt"), "", inside},
	} {
		roots := []string{root, other}
		got, err := attachment.Inspect(t.Context(), c.path, roots, false, attachment.Limits{})
		wants(t, c.what, err, c.code)
		if c.code == "" && got.Path != c.leadsTo {
			t.Errorf("%s: the path is %s, not %s", c.what, got.Path, c.leadsTo)
		}
		got, err = attachment.Inspect(t.Context(), c.path, roots, true, attachment.Limits{})
		if err != nil || got.Path != c.leadsTo || got.Filename != filepath.Base(c.path) {
			t.Errorf("%s, followed: %q at %s, %v", c.what, got.Filename, got.Path, err)
		}
	}
	// When a root is itself a link, paths begin with the link's name.
	if got, err := attachment.Inspect(t.Context(), inside, []string{alias}, false, attachment.Limits{}); err != nil || got.Path != filepath.Join(alias, "sub", "in.txt") {
		t.Errorf("in a root that is a link: %s, %v", got.Path, err)
	}
}

func TestCount(t *testing.T) {
	wants(t, "100", attachment.Limits{}.Count(100), "")
	wants(t, "101", attachment.Limits{}.Count(101), "too_many")
	wants(t, "4 of 3", attachment.Limits{Files: 3}.Count(4), "too_many")
}
