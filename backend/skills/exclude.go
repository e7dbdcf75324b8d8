package skills

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"deskhand/backend/git"
)

// The lines around ours in info/exclude.
const (
	excludeBegin = "# Deskhand: links to skills, as long as a session needs them"
	excludeEnd   = "# Deskhand: end"
	maxExclude   = 1 << 20
)

// excluder knows where the links of a directory are to be named; its zero value knows of no place.
type excluder struct {
	file   string // info/exclude of the repository
	prefix string // of the directory below the top of the work tree, with a slash at its end, or ""
}

// excluder asks git, which knows of work trees, submodules and whose repository it is. Without git nobody asks for its status.
func (l *Library) excluder(ctx context.Context, directory string) excluder {
	// With the person's configuration: it says which repositories of others may be used (safe.directory).
	out, err := say(ctx, l, git.Command{
		Whose: git.Unapproved, Environ: l.cfg.Environ(ctx), Dir: directory,
		Args: []string{"rev-parse", "--path-format=absolute", "--is-inside-work-tree", "--show-prefix", "--git-common-dir"},
	})
	lines := strings.Split(out, "\n")
	if err != nil || len(lines) != 3 || lines[0] != "true" || !filepath.IsAbs(filepath.FromSlash(lines[2])) {
		return excluder{}
	}
	// Not --git-path info/exclude: it says where links in there lead, and we are not to follow them.
	return excluder{file: filepath.Join(filepath.FromSlash(lines[2]), "info", "exclude"), prefix: lines[1]}
}

// name gives a link its line.
func (x excluder) name(m *made) {
	if x.file == "" {
		return
	}
	escape := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`)
	m.Exclude, m.Pattern = x.file, "/"+escape.Replace(x.prefix+m.Path)
}

// excludesOf are the files that links are named in.
func excludesOf(list []*made) []string {
	var files []string
	for _, m := range list {
		if m.Exclude != "" && !slices.Contains(files, m.Exclude) {
			files = append(files, m.Exclude)
		}
	}
	return files
}

// writeExcludesLocked brings our part of the files to what the book says; gone are the links whose lines are there still.
func (l *Library) writeExcludesLocked(excludes []string, gone []*made) {
	for _, file := range excludes {
		var add []string
		ours := map[string]bool{}
		for _, m := range slices.Concat(l.links.book.Links, gone) {
			if m.Exclude == file {
				ours[m.Pattern] = true
			}
		}
		for _, m := range l.links.book.Links {
			if m.Exclude == file && !slices.Contains(add, m.Pattern) {
				add = append(add, m.Pattern)
			}
		}
		slices.Sort(add)
		if err := rewriteExclude(file, ours, add); err != nil {
			l.cfg.Logger.Warn("git was not told of the links to skills", "file", file, "error", err)
		}
	}
}

// rewriteExclude replaces the lines between ours. Whatever else is in the file stays, and a file that is a link or anything else that
// is no file is left alone.
func rewriteExclude(file string, ours map[string]bool, add []string) error {
	dir, err := os.OpenRoot(filepath.Dir(filepath.Dir(file)))
	if err != nil {
		return err
	}
	defer dir.Close()
	name := filepath.Join(filepath.Base(filepath.Dir(file)), filepath.Base(file))
	mode := fs.FileMode(0o644)
	info, err := dir.Lstat(name)
	var old []byte
	switch {
	case errors.Is(err, fs.ErrNotExist) && len(add) == 0:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		err = dir.MkdirAll(filepath.Dir(name), 0o755)
	case err == nil && !info.Mode().IsRegular():
		return errors.New("it is no regular file")
	case err == nil && info.Size() > maxExclude:
		return errors.New("it is too large")
	case err == nil:
		mode = info.Mode().Perm()
		old, err = readLimited(dir, name)
	}
	if err != nil {
		return err
	}
	text := withLines(string(old), ours, add)
	if text == string(old) {
		return nil
	}
	return replace(dir, name, []byte(text), mode)
}

func readLimited(dir *os.Root, name string) ([]byte, error) {
	f, err := dir.OpenFile(name, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxExclude))
}

// withLines is a text with the given lines in place of ours.
func withLines(text string, ours map[string]bool, add []string) string {
	var out strings.Builder
	within := false
	for line := range strings.Lines(text) {
		bare := strings.TrimRight(line, "\r\n")
		switch {
		case bare == excludeBegin:
			within = true
		case bare == excludeEnd && within:
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
	for _, line := range slices.Concat([]string{excludeBegin}, add, []string{excludeEnd}) {
		out.WriteString(line + "\n")
	}
	return out.String()
}

// replace replaces a file of an open directory: readers see the old one or the new one.
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
