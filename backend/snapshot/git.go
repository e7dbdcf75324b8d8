package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"deskhand/backend/git"
	"deskhand/backend/proxy"
	"deskhand/backend/store"
)

// emptyTree is git's name of the empty tree.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// attributes override all other attributes, so that the store keeps the bytes of a file, whatever its repository configures.
const attributes = "* -text !eol -filter -ident -working-tree-encoding !diff !merge\n"

// settings are passed on git's command line. The store's own configuration file could hold the same settings, but that file would have to be
// maintained.
func settings() []string {
	list := []string{
		"core.attributesFile=" + os.DevNull, "core.excludesFile=" + os.DevNull, "core.autocrlf=false", "core.safecrlf=false", "core.bare=false",
		"core.splitIndex=false", "core.fsync=loose-object,pack,pack-metadata,index", fmt.Sprintf("core.bigFileThreshold=%d", maxShown),
		"gc.packRefs=false", "fastimport.unpackLimit=1", "diff.submodule=short", "diff.orderFile=" + os.DevNull, "diff.suppressBlankEmpty=false",
	}
	switch runtime.GOOS {
	case "windows":
		list = append(list, "core.fileMode=false", "core.symlinks=false", "core.ignoreCase=true")
	case "darwin":
		list = append(list, "core.ignoreCase=true", "core.precomposeUnicode=true", "core.protectNTFS=false")
	default: // a name such as GIT~1 is an ordinary name
		list = append(list, "core.protectNTFS=false")
	}
	return list
}

// run describes a run of git.
type run struct {
	top   string // the working tree; the store itself when there is none
	index string // path of the index
	magic bool   // paths are not literal: some commands know no other mode, yet take their arguments for names
	in    []byte
	read  func(io.Reader) error // reads git's stdout; nil = stdout is not read

	objects string // another repository's objects to read; "" = the store's objects
}

func (s *Store) git(ctx context.Context, r run, args ...string) error {
	if r.top == "" {
		r.top = s.path
	}
	if r.index == "" {
		r.index = filepath.Join(s.path, "none")
	}
	ctx, cancel := context.WithTimeout(ctx, longestRun)
	defer cancel()
	err := git.Run(ctx, s.l.processes, git.Command{
		Whose: git.Ours, Environ: s.l.cfg.Environ(ctx), Dir: r.top, GitDir: s.path, WorkTree: r.top, Index: r.index, Objects: r.objects, Config: settings(), Patterns: r.magic,
		Args: args, In: r.in, Read: r.read,
	})
	if errors.Is(err, proxy.ErrClosed) {
		return ErrClosed
	}
	return err
}

// say runs git and returns its short output.
func (s *Store) say(ctx context.Context, r run, args ...string) (string, error) {
	const most = 1 << 20
	var out []byte
	r.read = func(from io.Reader) (err error) {
		out, err = io.ReadAll(io.LimitReader(from, most))
		return err
	}
	err := s.git(ctx, r, args...)
	return strings.TrimSpace(string(out)), err
}

// make creates the store's folder. make does not run git init, which would read the person's templates.
func (s *Store) make() error {
	if s.made {
		return nil
	}
	for _, dir := range []string{"info", "objects", filepath.Join("refs", "trees")} {
		if err := os.MkdirAll(filepath.Join(s.path, dir), 0o700); err != nil {
			return err
		}
	}
	for name, text := range map[string]string{
		"config": "[core]\n\trepositoryformatversion = 0\n", filepath.Join("info", "attributes"): attributes, "HEAD": "ref: refs/heads/none\n",
	} {
		if err := store.WriteFile(filepath.Join(s.path, name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	s.made = true
	return nil
}

// keep records a tree as just taken, so that Prune spares the tree.
func (s *Store) keep(id string) error {
	name, now := s.ref(id), time.Now()
	if err := os.Chtimes(name, now, now); err == nil {
		return nil
	}
	return store.WriteFile(name, []byte(id+"\n"), 0o600)
}

func (s *Store) ref(id string) string { return filepath.Join(s.path, "refs", "trees", id) }

// isID reports whether id is a git object name. Ids come from a database and end up in git's arguments.
func isID(id string) bool {
	const length = 40
	return len(id) == length && strings.Trim(id, "0123456789abcdef") == ""
}

// eachRecord calls f with every NUL-terminated record.
func eachRecord(r io.Reader, f func([]byte) error) error {
	buf := make([]byte, 0, 64<<10)
	part := make([]byte, 64<<10)
	for {
		n, err := r.Read(part)
		buf = append(buf, part[:n]...)
		for {
			i := bytes.IndexByte(buf, 0)
			if i < 0 {
				break
			}
			if err := f(buf[:i]); err != nil {
				return err
			}
			buf = buf[i+1:]
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
