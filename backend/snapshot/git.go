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

// emptyTree is git's name for a tree without anything.
const emptyTree = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

// attributes are those that go before all others: what is kept is what is in the file, whatever a repository says of it.
const attributes = "* -text !eol -filter -ident -working-tree-encoding !diff !merge\n"

// settings come before the command. The store's own configuration could say the same, but what stands here needs nobody to keep it.
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
	default: // a name such as GIT~1 is one like others
		list = append(list, "core.protectNTFS=false")
	}
	return list
}

// run is one run of git.
type run struct {
	top   string // the work tree; the store itself where there is none
	index string // its file
	magic bool   // paths are not literal: of a command that knows no others, and takes what stands there for a name all the same
	in    []byte
	read  func(io.Reader) error // its stdout; nil = it is not read

	objects string // those of another repository, to be read; "" = the store's
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

// say is git for an answer that is short.
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

// make sees that the folder is there. It is written here and not by git init: that would look into the person's templates.
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

// keep makes a tree one that is kept, from now on.
func (s *Store) keep(id string) error {
	name, now := s.ref(id), time.Now()
	if err := os.Chtimes(name, now, now); err == nil {
		return nil
	}
	return store.WriteFile(name, []byte(id+"\n"), 0o600)
}

func (s *Store) ref(id string) string { return filepath.Join(s.path, "refs", "trees", id) }

// isID tells whether it is a name of git's: what stands in a database goes into an argument.
func isID(id string) bool {
	const length = 40
	return len(id) == length && strings.Trim(id, "0123456789abcdef") == ""
}

// eachRecord calls f with what stands between NULs.
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
