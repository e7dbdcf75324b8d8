// Package sample hides the project in which the demo agent shows its work: a few lines of shell with a bug, tests of which one fails, and a
// repository of git around them.
package sample

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

//go:embed project
var project embed.FS

// The files that have the bug, and find it.
const (
	Code  = "total.sh"
	Tests = "test.sh"
)

// Bug and Fix are the line of Code that is wrong, and the right one.
const (
	Bug = `[ "$sum" -gt 100 ]`
	Fix = `[ "$sum" -ge 100 ]`
)

// Git runs git in a directory that becomes a repository. A Git that is not installed returns nil: the project does without.
type Git func(ctx context.Context, dir string, in []byte, args ...string) error

// Make makes the project at dir, unless there is something, and returns dir. What a person has changed there stays.
func Make(ctx context.Context, dir string, git Git) (_ string, err error) {
	if _, err := os.Lstat(dir); err == nil {
		return dir, nil
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return "", err
	}
	fresh, err := os.MkdirTemp(filepath.Dir(dir), ".sample-") // a project that is half made is never seen
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(fresh)) }()
	if err := write(fresh); err != nil {
		return "", err
	}
	if err := commit(ctx, fresh, git); err != nil {
		return "", err
	}
	if err := os.Rename(fresh, dir); err != nil && !In(dir) { // another call may have been first
		return "", err
	}
	return dir, nil
}

// In reports whether dir is the project, with its tests as they were made.
func In(dir string) bool {
	want, err := project.ReadFile("project/" + Tests)
	if err != nil {
		return false
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return false
	}
	defer func() { _ = root.Close() }() // only read from
	if info, err := root.Lstat(Tests); err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(want)) {
		return false
	}
	got, err := root.ReadFile(Tests)
	return err == nil && bytes.Equal(got, want)
}

// each calls f with each file of the project.
func each(f func(name string, content []byte) error) error {
	return fs.WalkDir(project, "project", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := project.ReadFile(path)
		if err != nil {
			return err
		}
		return f(entry.Name(), content)
	})
}

func write(dir string) error {
	return each(func(name string, content []byte) error {
		return os.WriteFile(filepath.Join(dir, name), content, 0o600)
	})
}

// commit makes dir a repository with one commit, which is the same on every machine.
func commit(ctx context.Context, dir string, git Git) error {
	if err := git(ctx, dir, nil, "init", "--quiet", "--template=", "--initial-branch=main"); err != nil {
		return err
	}
	var stream bytes.Buffer
	const message = "Add up a basket\n"
	fmt.Fprintf(&stream, "commit refs/heads/main\ncommitter Deskhand <demo@deskhand.invalid> 1764460800 +0000\ndata %d\n%s\n", len(message), message)
	err := each(func(name string, content []byte) error {
		fmt.Fprintf(&stream, "M 100644 inline %s\ndata %d\n%s\n", name, len(content), content)
		return nil
	})
	if err != nil {
		return err
	}
	if err := git(ctx, dir, stream.Bytes(), "fast-import", "--quiet"); err != nil {
		return err
	}
	return git(ctx, dir, nil, "read-tree", "main")
}
