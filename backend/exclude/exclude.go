// Package exclude adds paths of Deskhand's files to info/exclude of a repository, so that git does not offer them for a commit: an agent
// that commits all new files would otherwise commit them. A .gitignore would itself be a new file, or has to lie in the folder that agents
// read.
//
// Our lines stand between two marker lines. All other lines of the file stay, and a file that is a link, or no regular file, is left alone.
package exclude

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"deskhand/backend/git"
	"deskhand/backend/proxy"
)

const (
	end  = "# Deskhand: end" // of each part of ours
	most = 1 << 20           // bytes of a file that is rewritten
)

// begin is the line before our lines about something.
func begin(about string) string { return "# Deskhand: " + about }

// Place is the file that excludes the paths of a directory; the zero value means no file.
type Place struct {
	File   string // info/exclude of the repository, which all of its worktrees share
	prefix string // path of the directory below the top of its worktree, with a slash at its end, or ""
}

// Find asks git for the place of a directory: git knows worktrees, submodules and the owner of the repository. For a directory in no
// repository, and without git, the place is the zero value.
func Find(ctx context.Context, processes *proxy.Set, environ []string, directory string) (Place, error) {
	var out []byte
	// With the person's configuration, which lists the repositories of others that may be used (safe.directory).
	err := git.Run(ctx, processes, git.Command{
		Whose: git.Unapproved, Environ: environ, Dir: directory,
		Args: []string{"rev-parse", "--path-format=absolute", "--is-inside-work-tree", "--show-prefix", "--git-common-dir"},
		Read: func(r io.Reader) (err error) {
			out, err = io.ReadAll(io.LimitReader(r, most))
			return err
		},
	})
	if ctx.Err() != nil {
		return Place{}, ctx.Err()
	}
	lines := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	if err != nil || len(lines) != 3 || lines[0] != "true" || !filepath.IsAbs(filepath.FromSlash(lines[2])) {
		return Place{}, nil //nolint:nilerr // git reports a missing repository by an exit status that every failure has
	}
	// Not --git-path info/exclude: that would return the target of a link, and links must not be followed.
	return Place{File: filepath.Join(filepath.FromSlash(lines[2]), "info", "exclude"), prefix: lines[1]}, nil
}

// Pattern returns the line for a slash-separated path of the directory; a slash at the end marks a directory.
func (p Place) Pattern(path string) string {
	escape := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)
	return "/" + escape.Replace(p.prefix+path)
}

// writing keeps two from rewriting a file at once: the second would undo the first.
//
//nolint:gochecknoglobals // the files are the repositories', which everything in the process shares
var writing sync.Mutex

// Rewrite replaces our lines about a subject in a file: add has the new lines, and ours has the lines that may be there from before. Lines
// of others between our lines stay.
func Rewrite(file, about string, ours map[string]bool, add []string) error {
	return rewrite(file, func(old string) string { return withLines(old, begin(about), ours, add) })
}

// Add adds a line about a subject to a file, unless the file has the line.
func Add(file, about, line string) error {
	return rewrite(file, func(old string) string {
		lines := linesOf(old, begin(about))
		if slices.Contains(lines, line) {
			return old
		}
		ours := map[string]bool{}
		for _, l := range lines {
			ours[l] = true
		}
		add := append(slices.Clone(lines), line)
		slices.Sort(add)
		return withLines(old, begin(about), ours, add)
	})
}

func rewrite(file string, change func(old string) string) error {
	writing.Lock()
	defer writing.Unlock()
	dir, err := os.OpenRoot(filepath.Dir(filepath.Dir(file)))
	if err != nil {
		return err
	}
	defer dir.Close()
	name := filepath.Join(filepath.Base(filepath.Dir(file)), filepath.Base(file))
	old, mode, err := read(dir, name)
	if err != nil {
		return err
	}
	text := change(string(old))
	if text == string(old) {
		return nil
	}
	if err := dir.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return replace(dir, name, []byte(text), mode)
}

// read returns the content of the file; a missing file is empty.
func read(dir *os.Root, name string) ([]byte, fs.FileMode, error) {
	info, err := dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, 0o644, nil
	case err != nil:
		return nil, 0, err
	case !info.Mode().IsRegular():
		return nil, 0, fmt.Errorf("%s is no regular file", name)
	case info.Size() > most:
		return nil, 0, fmt.Errorf("%s is too large", name)
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|noWait, 0)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, most))
	return data, info.Mode().Perm(), err
}

// linesOf are the lines of a part of ours.
func linesOf(text, begin string) (list []string) {
	within := false
	for line := range strings.Lines(text) {
		bare := strings.TrimRight(line, "\r\n")
		switch {
		case bare == begin:
			within = true
		case bare == end:
			within = false
		case within:
			list = append(list, bare)
		}
	}
	return list
}

// withLines is a text with the given lines in place of ours.
func withLines(text, begin string, ours map[string]bool, add []string) string {
	var out strings.Builder
	within := false
	for line := range strings.Lines(text) {
		bare := strings.TrimRight(line, "\r\n")
		switch {
		case bare == begin:
			within = true
		case bare == end && within:
			within = false
		case within && ours[bare]:
		default:
			out.WriteString(line)
		}
	}
	if len(add) == 0 {
		return out.String()
	}
	if rest := out.String(); rest != "" && !strings.HasSuffix(rest, "\n") {
		out.WriteString("\n")
	}
	for _, line := range slices.Concat([]string{begin}, add, []string{end}) {
		out.WriteString(line + "\n")
	}
	return out.String()
}

// replace replaces a file of an open directory: readers see the old content or the new content.
func replace(dir *os.Root, name string, data []byte, mode fs.FileMode) error {
	temp := name + "." + rand.Text()
	f, err := dir.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync() // before the name is: a power cut would else leave an empty file
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = dir.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, dir.Remove(temp))
	}
	return nil
}
