package project

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"deskhand/backend/exclude"
	"deskhand/backend/git"
	"deskhand/backend/proxy"
)

// The limits of what a worktree gets copies of.
const (
	mostFiles = 20_000
	mostBytes = 1 << 30
)

// TooMuchError reports files to copy that are beyond the limits. Nothing is copied then.
type TooMuchError struct {
	Files int
	Bytes int64
}

func (e *TooMuchError) Error() string {
	const mib = 1 << 20
	return fmt.Sprintf("the files to copy are too many: %d files with %d MiB, of %d files and %d MiB at most", e.Files, e.Bytes/mib, mostFiles, mostBytes/mib)
}

// Git is how git is run.
type Git struct {
	Processes *proxy.Set
	Environ   []string
}

// Brought is what Bring has done.
type Brought struct {
	Copied, Linked int
	Notes          []string // files that the worktree did not get, and why
}

// Bring copies the ignored files that a project names from a repository into a worktree, with those that its .worktreeinclude names, and links
// the others. Only files that git ignores are brought, as everything else is a matter of commits; nothing that is there is replaced, so that
// Bring can be repeated. A file is whole, or is not there. Links that lead out of the repository are left out.
func Bring(ctx context.Context, g Git, repository, worktree string, p Project) (Brought, error) {
	b := bringing{ctx: ctx, git: g, repository: repository, worktree: worktree}
	patterns, err := include(repository)
	if err != nil {
		b.note(Include + " cannot be read: " + detail(err))
	}
	patterns = append(slices.Clone(p.Copy), patterns...)
	if len(patterns)+len(p.Link) == 0 {
		return b.Brought, nil
	}
	if err := b.open(); err != nil {
		return b.Brought, err
	}
	defer b.close()
	if err := tidy(b.to); err != nil {
		return b.Brought, err
	}
	list, err := b.chosen(patterns)
	if err == nil {
		err = errors.Join(b.copyAll(list), tidy(b.to))
	}
	if err == nil {
		err = b.linkAll(p.Link)
	}
	return b.Brought, err
}

// include reads the patterns of the repository's .worktreeinclude.
func include(repository string) (patterns []string, err error) {
	data, err := load(repository, Include)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimRight(line, "\r\n")
		if line != "" && !strings.HasPrefix(line, "#") {
			patterns = append(patterns, line)
		}
	}
	return patterns, err
}

// Includes reports whether a repository has a .worktreeinclude that names anything.
func Includes(repository string) bool {
	patterns, _ := include(repository) // Bring tells of the error
	return len(patterns) > 0
}

type bringing struct {
	Brought

	ctx                  context.Context //nolint:containedctx // of a single Bring, which makes many small calls
	git                  Git
	repository, worktree string
	from, to             *os.Root
	hidden               bool     // the folder in which files are written is there
	ignored              []string // what git ignores, a folder that is ignored as a whole with a slash at its end
}

func (b *bringing) note(text string) {
	const most = 20
	if len(b.Notes) < most {
		b.Notes = append(b.Notes, text)
	}
}

func (b *bringing) open() (err error) {
	if b.from, err = os.OpenRoot(b.repository); err != nil {
		return err
	}
	if b.to, err = os.OpenRoot(b.worktree); err != nil {
		_ = b.from.Close()
		return err
	}
	b.ignored, err = b.list(b.repository, nil, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	if err != nil {
		b.close()
	}
	return err
}

func (b *bringing) close() {
	_ = b.from.Close() // only read from
	_ = b.to.Close()
}

// list returns the output of git, split at NULs. No filter and no other program of a repository runs.
func (b *bringing) list(dir string, in []byte, args ...string) (list []string, err error) {
	const most = 64 << 20
	var out []byte
	err = git.Run(b.ctx, b.git.Processes, git.Command{
		Whose: git.Unapproved, Environ: b.git.Environ, Dir: dir, Args: args, In: in,
		Read: func(r io.Reader) (err error) {
			if out, err = io.ReadAll(io.LimitReader(r, most+1)); err == nil && len(out) > most {
				err = errors.New("there are too many files that git ignores")
			}
			return err
		},
	})
	text := strings.TrimSuffix(string(out), "\x00")
	if text == "" {
		return nil, err
	}
	return strings.Split(text, "\x00"), err
}

// chosen returns the ignored files of the repository that patterns stand for.
func (b *bringing) chosen(patterns []string) ([]string, error) {
	if len(patterns) == 0 {
		return nil, nil
	}
	f, err := os.CreateTemp("", "deskhand-patterns-")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(strings.Join(patterns, "\n") + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	matched, err := b.list(b.repository, nil, "ls-files", "-z", "--others", "--ignored", "--exclude-from="+f.Name())
	if err != nil {
		return nil, err
	}
	files := map[string]bool{}
	var folders []string
	for _, name := range b.ignored {
		if strings.HasSuffix(name, "/") {
			folders = append(folders, name)
		} else {
			files[name] = true
		}
	}
	return slices.DeleteFunc(matched, func(name string) bool {
		if files[name] {
			return false
		}
		i := slices.IndexFunc(folders, func(folder string) bool { return strings.HasPrefix(name, folder) })
		return i < 0 || !slices.ContainsFunc(patterns, func(p string) bool { return means(p, name, folders[i]) })
	}), nil
}

// means reports whether a pattern is meant to reach into a folder that git ignores as a whole: .env does not mean those of all packages in
// node_modules. A pattern does when it has the name of a folder on the way, or says the path.
func means(pattern, name, folder string) bool {
	pattern = strings.TrimSuffix(strings.TrimSpace(pattern), "/")
	pattern = strings.TrimPrefix(pattern, "**/")
	anchored := strings.Contains(pattern, "/")
	if fixed, _, deep := strings.Cut(pattern, "**"); deep && anchored {
		return strings.HasPrefix(name, strings.TrimPrefix(fixed, "/"))
	}
	if anchored {
		return above(strings.TrimPrefix(pattern, "/"), name)
	}
	parts := strings.Split(strings.TrimSuffix(folder, "/"), "/")
	return slices.ContainsFunc(parts, func(part string) bool {
		ok, err := path.Match(pattern, part)
		return ok && err == nil
	})
}

// above reports whether a pattern stands for a path, or for a folder above it.
func above(pattern, name string) bool {
	for at := name; at != "." && at != "/"; at = path.Dir(at) {
		if ok, err := path.Match(pattern, at); ok && err == nil {
			return true
		}
	}
	return false
}

// copyAll copies files, after their number and size are known to be within the limits.
func (b *bringing) copyAll(list []string) error {
	var total TooMuchError
	for _, name := range list {
		if info, err := b.from.Lstat(filepath.FromSlash(name)); err == nil {
			total.Files, total.Bytes = total.Files+1, total.Bytes+info.Size()
		}
	}
	if total.Files > mostFiles || total.Bytes > mostBytes {
		return &total
	}
	for _, name := range list {
		if err := b.ctx.Err(); err != nil {
			return err
		}
		if err := b.copy(filepath.FromSlash(name)); err != nil {
			return fmt.Errorf("%s cannot be copied: %w", name, err)
		}
	}
	return nil
}

// copy copies a file or a link, unless something is there.
func (b *bringing) copy(name string) error {
	info, err := b.from.Lstat(name)
	switch _, there := b.to.Lstat(name); {
	case errors.Is(err, fs.ErrNotExist), there == nil: // gone meanwhile, or brought before
		return nil
	case err != nil:
		return err
	}
	if err := b.folder(filepath.Dir(name)); err != nil {
		return err
	}
	switch {
	case info.Mode().IsRegular():
		done, err := b.file(name)
		if done {
			b.Copied++
		}
		return err
	case info.Mode()&fs.ModeSymlink != 0:
		return b.relink(name)
	default:
		b.note(name + " is neither a file nor a link")
		return nil
	}
}

// folder makes the folders of a file, with the modes that they have in the repository.
func (b *bringing) folder(name string) error {
	if name == "." {
		return nil
	}
	if info, err := b.to.Stat(name); err == nil && info.IsDir() {
		return nil
	}
	if err := b.folder(filepath.Dir(name)); err != nil {
		return err
	}
	mode := fs.FileMode(0o755)
	if info, err := b.from.Stat(name); err == nil {
		mode = info.Mode().Perm() | 0o700
	}
	err := b.to.Mkdir(name, mode)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// partly is the folder at the top of a worktree in which files are written. A file gets its own name when it is whole.
const (
	partly     = ".deskhand-partly"
	partlyFile = partly + "/file"
	unseen     = partly + "/.gitignore"
	unseenYet  = partly + "/.git" // git offers no file of this name
	everything = "*\n"            // as a pattern: git offers nothing of the folder for a commit, whatever of it a kill has left
)

// hide makes the folder in which files are written, unless it is there.
func (b *bringing) hide() error {
	if b.hidden {
		return nil
	}
	err := b.to.Mkdir(partly, 0o700)
	if err == nil {
		err = b.to.WriteFile(unseenYet, []byte(everything), 0o600)
	}
	if err == nil {
		err = b.to.Rename(unseenYet, unseen)
	}
	b.hidden = err == nil
	return err
}

// Tidy removes what a copy that was cut off has left of a file in a worktree.
func Tidy(worktree string) error {
	root, err := os.OpenRoot(worktree)
	if err != nil {
		return err
	}
	defer root.Close()
	return tidy(root)
}

// tidy removes the folder in which files are written. A folder of the name that this package has not made is an error.
func tidy(worktree *os.Root) error {
	info, err := worktree.Lstat(partly)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && !info.IsDir() {
		err = fs.ErrExist
	}
	if err != nil {
		return fmt.Errorf("%s is in the way: %w", partly, err)
	}
	said, err := worktree.ReadFile(unseen)
	if err == nil && string(said) != everything {
		return fmt.Errorf("%s is in the way: %w", partly, fs.ErrExist)
	}
	for _, name := range []string{partlyFile, unseen, unseenYet, partly} { // in this order git sees nothing of the file at any moment
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			err = worktree.Remove(name)
		}
	}
	return err
}

// file copies a regular file, unless something has its name by then.
func (b *bringing) file(name string) (done bool, err error) {
	in, err := b.from.Open(name)
	if err != nil {
		return false, err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return false, err
	}
	if !info.Mode().IsRegular() {
		return false, errors.New("it is no file any more")
	}
	if err := b.hide(); err != nil {
		return false, err
	}
	out, err := b.to.OpenFile(partlyFile, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false, err
	}
	_, err = io.Copy(out, io.LimitReader(in, mostBytes))
	err = errors.Join(err, out.Chmod(info.Mode().Perm()), out.Sync(), out.Close())
	if err == nil {
		done, err = b.name(name)
	}
	if gone := b.to.Remove(partlyFile); !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return done, err
}

// name gives the file that was written its name, unless something has it. A second link is refused where something is, while a rename would
// replace it: an agent may be at work beside the set-up. Some file systems have no links.
func (b *bringing) name(name string) (done bool, err error) {
	err = b.to.Link(partlyFile, name)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err == nil, nil
	}
	if _, err := b.to.Lstat(name); err == nil {
		return false, nil
	}
	err = b.to.Rename(partlyFile, name)
	return err == nil, err
}

// relink copies a link within the repository.
func (b *bringing) relink(name string) error {
	target, err := b.from.Readlink(name)
	if err != nil {
		return err
	}
	if filepath.IsAbs(target) || !filepath.IsLocal(filepath.Join(filepath.Dir(name), target)) {
		b.note(name + " is a link that leads out of the repository, and was not copied")
		return nil
	}
	err = b.to.Symlink(target, name)
	if errors.Is(err, fs.ErrExist) { // an agent may be at work beside the set-up
		return nil
	}
	if err != nil {
		return err
	}
	b.Copied++
	return nil
}

// linkAll makes the links to the repository's files, and keeps git from offering them for a commit: a pattern such as node_modules/ is for
// folders, and a link is none.
func (b *bringing) linkAll(names []string) error {
	var made []string
	for _, name := range names {
		name = strings.TrimSuffix(path.Clean(filepath.ToSlash(name)), "/")
		done, err := b.link(name)
		if err != nil {
			return fmt.Errorf("%s cannot be linked: %w", name, err)
		}
		if done {
			made = append(made, name)
		}
	}
	if len(made) == 0 {
		return nil
	}
	hidden, err := b.list(b.worktree, []byte(strings.Join(made, "\x00")+"\x00"), "check-ignore", "-z", "--stdin")
	if _, none := errors.AsType[*git.StatusError](err); err != nil && !none {
		return err
	}
	place, err := exclude.Find(b.ctx, b.git.Processes, b.git.Environ, b.worktree)
	for _, name := range made {
		if err == nil && place.File != "" && !slices.Contains(hidden, name) {
			err = exclude.Add(place.File, "links of worktrees", place.Pattern(name))
		}
	}
	return err
}

// link makes one link, and reports whether it is there now.
func (b *bringing) link(name string) (done bool, err error) {
	at := filepath.FromSlash(name)
	if !filepath.IsLocal(at) || name == "." {
		b.note(name + " is not in the repository")
		return false, nil
	}
	info, err := b.from.Stat(at)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		b.note(name + " is not there, and was not linked")
		return false, nil
	case err != nil:
		b.note(name + " was not linked: " + detail(err))
		return false, nil
	case !b.isIgnored(name, info.IsDir()):
		b.note(name + " is not ignored by git, and was not linked")
		return false, nil
	}
	target := filepath.Join(b.repository, at)
	if old, err := b.to.Readlink(at); err == nil && old == target {
		return true, nil
	}
	if _, err := b.to.Lstat(at); err == nil {
		b.note(name + " is there already, and was not linked")
		return false, nil
	}
	if err := b.folder(filepath.Dir(at)); err != nil {
		return false, err
	}
	if err := b.to.Symlink(target, at); err != nil {
		return false, err
	}
	b.Linked++
	return true, nil
}

func (b *bringing) isIgnored(name string, folder bool) bool {
	if folder {
		name += "/"
	}
	return slices.ContainsFunc(b.ignored, func(one string) bool {
		return one == name || strings.HasSuffix(one, "/") && strings.HasPrefix(name, one)
	})
}
