package worktree

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// State is what a work tree has that is in no commit.
type State struct {
	Branch  string // "" where none is checked out
	Head    string
	Commits int // beyond the one it began with
	Strays  int // commits that were checked out here, and are on no branch: they are kept
	Changes []Change
	Ignored []Ignored // what would go, the largest first
}

// Change is a file that is not as the commit has it.
type Change struct {
	Path string
	Kind string // modified, added, deleted, untracked
}

// Ignored is a file or folder that the repository's rules leave out.
type Ignored struct {
	Path  string // a folder has a slash at its end
	Files int
	Bytes int64
}

// Kept is what is needed to have a work tree again as it was.
type Kept struct {
	Commit string // "" = there was nothing that a branch did not have
	Files  int    // that nobody had committed
	Branch string // that was checked out; "" = none
	Head   string
	Strays int // commits on no branch that were checked out before; each is on a ref beside, or below one

	tree string
}

// open finds what git has of a work tree. A directory that is none would be looked for above, and something else taken for it.
func (l *Library) open(ctx context.Context, path string) (run, error) {
	if info, err := os.Lstat(filepath.Join(path, ".git")); err != nil || !info.Mode().IsRegular() {
		return run{}, ErrMissing
	}
	const asked = 3
	said, err := l.lines(ctx, run{dir: path}, "rev-parse", "--path-format=absolute", "--show-toplevel", "--git-dir", "--git-common-dir")
	switch {
	case failedWith(err, "not a git repository"):
		return run{}, ErrMissing
	case err != nil:
		return run{}, err
	case len(said) != asked || said[1] == said[2] || !same(said[0], path):
		return run{}, ErrMissing
	}
	at := run{dir: path, gitDir: filepath.FromSlash(said[1])}
	// As git itself finds it out, once. A repository that was copied from a disk on which names that differ in case alone are the same still says
	// so, and git takes a new file for one that it has, and does not see it.
	if _, err := os.Lstat(filepath.Join(path, ".GIT")); errors.Is(err, fs.ErrNotExist) {
		at.config = append(at.config, "core.ignorecase=false")
	}
	return at, nil
}

func same(a, b string) bool {
	one, err := os.Stat(a)
	two, other := os.Stat(b)
	return err == nil && other == nil && os.SameFile(one, two)
}

// free tells why a work tree cannot be kept as it is now.
func (l *Library) free(ctx context.Context, at run) error {
	has := func(name string) bool { _, err := os.Lstat(filepath.Join(at.gitDir, name)); return err == nil }
	switch {
	case has("index.lock"), has("locked"):
		return ErrLocked
	case unfinished(at):
		return ErrUnfinished
	}
	others, err := l.records(ctx, at, "ls-files", "-z", "--others", "--exclude-standard")
	if err != nil {
		return err
	}
	for _, name := range others {
		if folder, is := strings.CutSuffix(name, "/"); is {
			return &NestedError{Path: folder}
		}
	}
	if err := l.filled(ctx, at); err != nil {
		return err
	}
	closed, err := nested(ctx, at.dir)
	if err == nil && len(closed) > 0 {
		err = l.left(ctx, at, closed)
	}
	if err != nil {
		return err
	}
	return l.filtersNothing(ctx, at)
}

// unfinished tells whether git is between two steps of something, of which it has written down there how it goes on. Between two of several
// commits that are picked or reverted, the list of them alone says so.
func unfinished(at run) bool {
	return slices.ContainsFunc([]string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "sequencer", "rebase-merge", "rebase-apply", "BISECT_LOG"}, func(name string) bool {
		_, err := os.Lstat(filepath.Join(at.gitDir, name))
		return err == nil
	})
}

// filled is an error where there is something in the folder of a submodule. It is checked out, or somebody has put files there, into which git
// does not look. So it is where the index has a conflict: it is no tree then, and what is staged in other files would go with it. A stash that
// does not fit leaves that without a word of it elsewhere.
func (l *Library) filled(ctx context.Context, at run) error {
	known, err := l.records(ctx, at, "ls-files", "-z", "--stage")
	if err != nil {
		return err
	}
	for _, entry := range known {
		how, name, _ := strings.Cut(entry, "\t")
		if !strings.HasSuffix(how, " 0") {
			return ErrUnfinished
		}
		if !strings.HasPrefix(how, "160000 ") {
			continue
		}
		if entries, err := os.ReadDir(filepath.Join(at.dir, filepath.FromSlash(name))); err == nil && len(entries) > 0 {
			return &NestedError{Path: name, Submodule: true}
		}
	}
	return nil
}

// left is an error where one of the folders that cannot be read is not left out by the rules: git only warns, and nothing in it is kept.
func (l *Library) left(ctx context.Context, at run, closed []string) error {
	out, err := l.records(ctx, at, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	if err != nil {
		return err
	}
	for _, name := range closed {
		if !slices.ContainsFunc(out, func(top string) bool { return strings.HasSuffix(top, "/") && strings.HasPrefix(name, top) }) {
			return &UnreadableError{Path: strings.TrimSuffix(name, "/")}
		}
	}
	return nil
}

// nested looks for repositories below. git names those alone that lie beside its own files: not one that was begun in a folder with files of
// ours, and none in what it ignores. closed are the folders that cannot be read or entered, each with a slash at its end.
func nested(ctx context.Context, top string) (closed []string, err error) {
	err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.Is(err, fs.ErrPermission):
			below, err := filepath.Rel(top, path)
			closed = append(closed, filepath.ToSlash(below)+"/")
			return err
		case err != nil: // it has gone meanwhile, or cannot be removed either
			return nil //nolint:nilerr // and that is told then
		case d.Name() == ".git" && filepath.Dir(path) != top:
			below, err := filepath.Rel(top, filepath.Dir(path))
			return errors.Join(err, &NestedError{Path: filepath.ToSlash(below)})
		case d.Name() == ".git" && d.IsDir():
			return filepath.SkipDir
		case d.IsDir() && shut(path):
			below, err := filepath.Rel(top, path)
			closed = append(closed, filepath.ToSlash(below)+"/")
			return err
		}
		return nil
	})
	return closed, err
}

// shut tells of a folder that it may not be entered, though it may be listed: git does not see then what has become of a file there, and takes
// it for what it was.
func shut(path string) bool {
	_, err := os.Lstat(path + string(filepath.Separator) + ".")
	return errors.Is(err, fs.ErrPermission)
}

// Inspect tells what a work tree has that is in no commit, or why that cannot be kept.
func (l *Library) Inspect(ctx context.Context, path, base string) (s State, err error) {
	at, err := l.open(ctx, path)
	if err != nil {
		return State{}, err
	}
	if err := l.free(ctx, at); err != nil {
		return State{}, err
	}
	p := Place{}
	if err := l.head(ctx, at, &p); err != nil {
		return State{}, err
	}
	s.Branch, s.Head = p.Branch, p.Head
	if n, err := l.say(ctx, at, "rev-list", "--count", base+"..HEAD"); err == nil {
		s.Commits, _ = strconv.Atoi(n) // git wrote it
	}
	if s.Strays, _, err = l.strays(ctx, at, s.Branch); err != nil {
		return State{}, err
	}
	if s.Changes, err = l.changes(ctx, at); err != nil {
		return State{}, err
	}
	s.Ignored, err = l.ignored(ctx, at)
	return s, err
}

// changes lists what is not as the commit has it.
func (l *Library) changes(ctx context.Context, at run) ([]Change, error) {
	said, err := l.records(ctx, at, "status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=dirty")
	list := make([]Change, 0, len(said))
	const tagged = 3 // two letters and a blank stand before each name
	for _, entry := range said {
		if len(entry) <= tagged {
			continue
		}
		kind := "modified"
		switch how := entry[:tagged-1]; {
		case how == "??":
			kind = "untracked"
		case strings.Contains(how, "D"):
			kind = "deleted"
		case strings.Contains(how, "A"):
			kind = "added"
		}
		list = append(list, Change{entry[tagged:], kind})
	}
	return list, err
}

// ignored lists what the rules leave out, with what it takes.
func (l *Library) ignored(ctx context.Context, at run) ([]Ignored, error) {
	said, err := l.records(ctx, at, "ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory")
	list := make([]Ignored, 0, len(said))
	for _, name := range said {
		if i := weighed(ctx, at.dir, name); i.Files > 0 {
			list = append(list, i)
		}
	}
	slices.SortStableFunc(list, func(a, b Ignored) int { return int(min(1, max(-1, b.Bytes-a.Bytes))) })
	return list, errors.Join(err, ctx.Err())
}

// weighed is how much there is below a name.
func weighed(ctx context.Context, top, name string) Ignored {
	i := Ignored{Path: name}
	_ = filepath.WalkDir(filepath.Join(top, filepath.FromSlash(name)), func(_ string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err == nil && d.IsDir() {
			return nil
		}
		i.Files++
		if err != nil {
			return nil //nolint:nilerr // what cannot be read is there, with a size that nobody knows
		}
		if info, err := d.Info(); err == nil {
			i.Bytes += info.Size()
		}
		return nil
	})
	return i
}

// scratch is a run with an index of its own, which is gone when done is called. A git that was killed leaves its lock, by which the next one
// would be refused.
func (r run) scratch(name string) (_ run, done func()) {
	r.index = filepath.Join(r.gitDir, name)
	done = func() {
		_ = os.Remove(r.index)
		_ = os.Remove(r.index + ".lock")
	}
	done()
	return r, done
}

// tree makes a tree of all files that the rules do not leave out. It works on a copy of the index: the person's stays as it is. The copy is
// given an age at which git trusts none of its times, and reads every file: it would take a file for unchanged that was written in the same
// moment as the index, with as many bytes, if the index seemed newer.
func (l *Library) tree(ctx context.Context, at run) (id string, err error) {
	given := filepath.Join(at.gitDir, "index")
	at, done := at.scratch("deskhand-index")
	defer done()
	err = copyFile(given, at.index)
	if errors.Is(err, fs.ErrNotExist) {
		err = l.git(ctx, at, "read-tree", "HEAD")
	}
	if err = errors.Join(err, os.Chtimes(at.index, time.Unix(1, 0), time.Unix(1, 0))); err != nil {
		return "", err
	}
	if err := l.unhide(ctx, at); err != nil {
		return "", err
	}
	args := []string{"add", "--all"}
	if sparse, _ := l.say(ctx, at, "config", "--type=bool", "core.sparseCheckout"); sparse == "true" { // it is not set: no
		args = append(args, "--sparse")
	}
	if err := l.git(ctx, at, args...); err != nil {
		return "", err
	}
	return l.say(ctx, at, "write-tree")
}

// unhide has git look at files that it was told not to look at. Those of a sparse checkout are not there, and stay hidden.
func (l *Library) unhide(ctx context.Context, at run) error {
	said, err := l.records(ctx, at, "ls-files", "-z", "-v")
	if err != nil {
		return err
	}
	unchanged, skipped := hidden(at.dir, said)
	err = l.flag(ctx, at, "--no-assume-unchanged", unchanged)
	return errors.Join(err, l.flag(ctx, at, "--no-skip-worktree", skipped))
}

// hidden names the files that are taken for unchanged, and those that are there though they need not be.
func hidden(dir string, listed []string) (unchanged, skipped []string) {
	const tagged = 2 // a letter and a blank stand before each name
	for _, entry := range listed {
		if len(entry) <= tagged {
			continue
		}
		tag, name := entry[0], entry[tagged:]
		if tag >= 'a' && tag <= 'z' {
			unchanged = append(unchanged, name)
		}
		if _, err := os.Lstat(filepath.Join(dir, filepath.FromSlash(name))); err == nil && (tag == 'S' || tag == 's') {
			skipped = append(skipped, name)
		}
	}
	return unchanged, skipped
}

// flag changes what the index says of files.
func (l *Library) flag(ctx context.Context, at run, flag string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	at.in = []byte(strings.Join(names, "\x00") + "\x00")
	return l.git(ctx, at, "update-index", flag, "-z", "--stdin")
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// content makes a tree of what is there, and names the files that are not as they were before. It is an error where git would keep something
// else of one than what stands in it.
func (l *Library) content(ctx context.Context, at run, before string) (tree string, names []string, err error) {
	if tree, err = l.tree(ctx, at); err != nil {
		return "", nil, err
	}
	if names, err = l.differing(ctx, at, before, tree); err != nil {
		return "", nil, err
	}
	return tree, names, l.lossless(ctx, at, tree, names)
}

// Try tells why a removal would be refused, as far as a look at every file can tell, for who has to end something before it. [Library.Inspect]
// looks at what takes no time.
func (l *Library) Try(ctx context.Context, path string) error {
	at, err := l.open(ctx, path)
	if err == nil {
		err = l.free(ctx, at)
	}
	if err == nil {
		_, _, err = l.content(ctx, at, "HEAD^{tree}")
	}
	return told(err)
}

// keep makes a commit of what is in no commit, and has the ref name it. The index has a commit of its own, as in a stash, so that what was
// staged is staged again. Where there is nothing to keep the ref stays as it is: what it names came back into the work tree once, and a
// person may have thrown it away there since.
func (l *Library) keep(ctx context.Context, at run, ref string) (Kept, error) {
	p := Place{}
	if err := l.head(ctx, at, &p); err != nil {
		return Kept{}, err
	}
	k := Kept{Branch: p.Branch, Head: p.Head}
	before, err := l.say(ctx, at, "rev-parse", "HEAD^{tree}")
	if err != nil {
		return Kept{}, err
	}
	var names []string
	if k.tree, names, err = l.content(ctx, at, before); err != nil {
		return Kept{}, err
	}
	staged, err := l.staged(ctx, at, before)
	if err != nil {
		return Kept{}, err
	}
	bare := k.tree == before && staged == before
	if bare {
		if bare, err = l.named(ctx, at, k); err != nil || bare {
			return k, err
		}
	}
	k.Files = len(names)
	return k, l.commit(ctx, at, ref, staged, &k)
}

// named tells whether the commit that was checked out is on a branch, or has a tag. That a branch of a remote has it does not count: the next
// fetch may take that away.
func (l *Library) named(ctx context.Context, at run, k Kept) (bool, error) {
	if k.Branch != "" {
		return true, nil
	}
	name, err := l.say(ctx, at, "for-each-ref", "--count=1", "--contains="+k.Head, "--format=%(refname)", "refs/heads", "refs/tags")
	return name != "", err
}

// strays are the commits that were checked out once and are on no branch any more, and the tips of them: an experiment, from which somebody has
// gone back. git's record of the work tree alone names them, and goes with it. What the branch has had is in its own record, which stays.
func (l *Library) strays(ctx context.Context, at run, branch string) (n int, tips []string, err error) {
	if at.gitDir == "" { // nor is there a record
		return 0, nil, nil
	}
	were, err := l.lines(ctx, at, "reflog", "show", "--format=%H", "HEAD", "--")
	if err != nil {
		return 0, nil, err
	}
	if branch != "" {
		had, err := l.lines(ctx, at, "reflog", "show", "--format=^%H", "refs/heads/"+branch, "--")
		if err != nil && !ended(err) {
			return 0, nil, err
		}
		were = append(were, had...)
	}
	at.in = []byte(strings.Join(slices.Compact(were), "\n") + "\n")
	list, err := l.lines(ctx, at, "rev-list", "--ignore-missing", "--parents", "--stdin", "--not", "HEAD", "--branches", "--tags", "--glob=refs/deskhand/")
	above := map[string]bool{}
	for _, line := range list {
		for _, parent := range strings.Fields(line)[1:] {
			above[parent] = true
		}
	}
	for _, line := range list {
		if id := strings.Fields(line)[0]; !above[id] {
			tips = append(tips, id)
		}
	}
	return len(list), tips, err
}

// gather has a ref name each tip of the strays, beside that of what is kept.
func (l *Library) gather(ctx context.Context, at run, ref, branch string) (n int, err error) {
	n, tips, err := l.strays(ctx, at, branch)
	for _, id := range tips {
		if err == nil {
			err = l.beside(ctx, at, ref, id)
		}
	}
	return n, err
}

// beside names a commit by a ref next to another.
func (l *Library) beside(ctx context.Context, at run, ref, id string) error {
	const short = 12
	return l.git(ctx, at, "update-ref", "--no-deref", ref+"-"+id[:min(short, len(id))], id)
}

// Rescue keeps what git still has of a work tree whose directory somebody has deleted, or moved away: the commit that was checked out, which no
// branch need have, and what was staged. Both go with git's record of it. What an earlier removal has kept on that commit is what there is of
// files that were not staged. Where git has no record, known says what was checked out.
func (l *Library) Rescue(ctx context.Context, main, path, ref string, known Kept) (Kept, error) {
	if !isFolder(main) {
		return Kept{}, ErrNoRepository
	}
	at, k, err := l.record(ctx, main, path, known)
	if err != nil {
		return Kept{}, err
	}
	if k.Strays, err = l.gather(ctx, at, ref, k.Branch); err != nil {
		return Kept{}, err
	}
	before, err := l.say(ctx, at, "rev-parse", k.Head+"^{tree}")
	if err != nil {
		return Kept{}, err
	}
	staged, err := l.staged(ctx, at, before)
	if err != nil {
		return Kept{}, err
	}
	if staged == before {
		if k.Commit, err = l.keptOn(ctx, at, ref, k.Head); err != nil {
			return Kept{}, err
		}
		if k.Commit != "" {
			names, err := l.differing(ctx, at, before, k.Commit)
			k.Files = len(names)
			return k, err
		}
		if has, err := l.named(ctx, at, k); err != nil || has {
			return k, err
		}
	}
	names, err := l.differing(ctx, at, before, staged)
	if err != nil {
		return Kept{}, err
	}
	k.Files, k.tree = len(names), staged
	return k, l.commit(ctx, at, ref, staged, &k)
}

// keptOn is what a ref has kept, if that was on the commit.
func (l *Library) keptOn(ctx context.Context, at run, ref, head string) (string, error) {
	said, err := l.lines(ctx, at, "rev-parse", "--verify", "--quiet", ref+"^1")
	if ended(err) || err == nil && !slices.Equal(said, []string{head}) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return l.say(ctx, at, "rev-parse", "--verify", ref)
}

// record finds git's record of a work tree, and what is checked out there by it. Without one it is what is known, the branch as it is now.
func (l *Library) record(ctx context.Context, main, path string, known Kept) (run, Kept, error) {
	at := run{dir: main}
	list, err := l.recordsOf(ctx, main, path)
	if err != nil {
		return at, Kept{}, err
	}
	for _, gitDir := range list {
		found, p := run{dir: main, gitDir: gitDir}, Place{}
		if err := l.head(ctx, found, &p); !errors.Is(err, ErrNoCommit) {
			return found, Kept{Branch: p.Branch, Head: p.Head}, err
		}
	}
	tip, err := l.say(ctx, at, "rev-parse", "--verify", "--quiet", "refs/heads/"+known.Branch)
	switch {
	case err == nil:
		known.Head = tip
	case !ended(err):
		return at, Kept{}, err
	}
	return at, known, nil
}

// recordsOf are the folders in which git has what it knows of a work tree: one, or none.
func (l *Library) recordsOf(ctx context.Context, main, path string) (list []string, err error) {
	common, err := l.say(ctx, run{dir: main}, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return nil, err
	}
	folder := filepath.Join(filepath.FromSlash(common), "worktrees")
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		if gitDir := filepath.Join(folder, e.Name()); recorded(gitDir, path) {
			list = append(list, gitDir)
		}
	}
	return list, nil
}

// recorded tells whether a record of git's is that of a work tree, which need not be there.
func recorded(gitDir, path string) bool {
	data, err := os.ReadFile(filepath.Join(gitDir, "gitdir"))
	file := filepath.FromSlash(strings.TrimRight(string(data), "\r\n"))
	if !filepath.IsAbs(file) { // git can be told to write it so
		file = filepath.Join(gitDir, file)
	}
	of := filepath.Dir(file)
	return err == nil && (of == path || filepath.Base(of) == filepath.Base(path) && same(filepath.Dir(of), filepath.Dir(path)))
}

// staged is the tree of the index, with our side of each conflict: it is for who has nothing else. It is that of the commit where there is no
// index, or git cannot read it.
func (l *Library) staged(ctx context.Context, at run, otherwise string) (string, error) {
	if at.gitDir == "" { // nor is there an index
		return otherwise, nil
	}
	given := filepath.Join(at.gitDir, "index")
	at, done := at.scratch("deskhand-staged") // git writes into it what it has found out
	defer done()
	if err := copyFile(given, at.index); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return otherwise, err
	}
	id, err := l.say(ctx, at, "write-tree")
	if ended(err) {
		if err = l.settle(ctx, at); err == nil {
			id, err = l.say(ctx, at, "write-tree")
		}
	}
	if ended(err) && !errors.Is(told(err), ErrFull) {
		return otherwise, nil
	}
	return id, err
}

// settle puts our side in place of each conflict of an index; a file that we have deleted is none.
func (l *Library) settle(ctx context.Context, at run) error {
	said, err := l.records(ctx, at, "ls-files", "-z", "--unmerged")
	if err != nil {
		return err
	}
	var in strings.Builder
	last := ""
	for _, entry := range said {
		const fields = 3 // the mode, the id and which side; the sides of a file follow each other
		how, name, _ := strings.Cut(entry, "\t")
		parts := strings.Fields(how)
		if len(parts) != fields {
			continue
		}
		if name != last { // none of them stays
			in.WriteString("0 " + strings.Repeat("0", len(parts[1])) + "\t" + name + "\x00")
		}
		if last = name; parts[2] == "2" {
			in.WriteString(parts[0] + " " + parts[1] + "\t" + name + "\x00")
		}
	}
	at.in = []byte(in.String())
	return l.git(ctx, at, "update-index", "-z", "--index-info")
}

func (l *Library) commit(ctx context.Context, at run, ref, staged string, k *Kept) error {
	of := k.Branch
	if of == "" {
		of = "(no branch)"
	}
	index, err := l.say(ctx, at, "commit-tree", staged, "-p", k.Head, "-m", "index on "+of)
	if err != nil {
		return err
	}
	if k.Commit, err = l.say(ctx, at, "commit-tree", k.tree, "-p", k.Head, "-p", index, "-m", "Kept of a work tree on "+of+", by Deskhand"); err != nil {
		return err
	}
	before, err := l.say(ctx, at, "rev-parse", "--verify", "--quiet", ref)
	switch {
	case ended(err): // there is none
	case err != nil:
		return err
	case before != k.Commit: // it was brought back once, and nobody knows whether that is still somewhere else
		if err := l.beside(ctx, at, ref, before); err != nil {
			return err
		}
	}
	return l.git(ctx, at, "update-ref", "--no-deref", ref, k.Commit)
}

// lossless tells whether what git has of files is what stands in them. A filter of the repository may leave something out, and a file with two
// kinds of line ends comes back with one. Names are those that differ in the trees. Those that git takes for changed are looked at as well, of
// which a filter may have left out all that is new, and all that a filter sees: once somebody has asked for the status, git takes one for
// unchanged that is as long as before.
func (l *Library) lossless(ctx context.Context, at run, tree string, names []string) error {
	list, err := l.changes(ctx, at)
	if err != nil {
		return err
	}
	names = slices.Clone(names)
	for _, c := range list {
		names = append(names, c.Path)
	}
	filtered, err := l.filtered(ctx, at)
	if err != nil {
		return err
	}
	names = append(names, filtered...)
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { // deleted, or a link, which no filter sees
		info, err := os.Lstat(filepath.Join(at.dir, filepath.FromSlash(name)))
		return err != nil || !info.Mode().IsRegular()
	})
	if len(names) == 0 {
		return nil
	}
	kept, err := l.blobs(ctx, at, tree)
	if err != nil {
		return err
	}
	for part := range portions(names) {
		if err := l.same(ctx, at, tree, kept, part); err != nil {
			return err
		}
	}
	return nil
}

// same is an error where one of the files is not what the tree has of it.
func (l *Library) same(ctx context.Context, at run, tree string, kept map[string]string, names []string) error {
	raw, err := l.lines(ctx, at, append([]string{"hash-object", "--no-filters", "--"}, names...)...)
	if err == nil && len(raw) != len(names) {
		err = fmt.Errorf("%w: it names too few files", ErrGit)
	}
	if err != nil {
		return err
	}
	for i, name := range names {
		if raw[i] == kept[name] {
			continue
		}
		if is, err := l.comesBack(ctx, at, tree, name); err != nil || !is {
			return cmp.Or(err, error(&FilterError{Path: name}))
		}
	}
	return nil
}

// portions are as many names as a command takes everywhere.
func portions(names []string) iter.Seq[[]string] {
	return func(yield func([]string) bool) {
		const most = 16 << 10
		from, size := 0, 0
		for i, name := range names {
			if size += len(name) + 1; size > most && i > from {
				if !yield(names[from:i]) {
					return
				}
				from, size = i, len(name)+1
			}
		}
		yield(names[from:])
	}
}

// blobs are the ids of the files in a tree.
func (l *Library) blobs(ctx context.Context, at run, tree string) (map[string]string, error) {
	said, err := l.records(ctx, at, "ls-tree", "-r", "-z", tree)
	ids := make(map[string]string, len(said))
	for _, entry := range said {
		const fields = 3 // the mode, the kind and the id
		how, name, _ := strings.Cut(entry, "\t")
		if parts := strings.Fields(how); len(parts) == fields {
			ids[name] = parts[fields-1]
		}
	}
	return ids, err
}

// filtered names the files that git knows and a filter sees. git-lfs gives back what it takes, and its files are large.
func (l *Library) filtered(ctx context.Context, at run) ([]string, error) {
	known, err := l.all(ctx, at, "ls-files", "-z")
	if err != nil || len(known) == 0 {
		return nil, err
	}
	at.in = known
	said, err := l.records(ctx, at, "check-attr", "-z", "--stdin", "filter")
	if err != nil {
		return nil, err
	}
	large, err := l.say(ctx, at, "config", "filter.lfs.clean")
	if err != nil && !ended(err) {
		return nil, err
	}
	var names []string
	const fields = 3 // the name, "filter" and which
	for ; len(said) >= fields; said = said[fields:] {
		switch which := said[2]; {
		case which == "unspecified", which == "unset", which == "set", which == "lfs" && strings.HasPrefix(large, "git-lfs "):
		default:
			names = append(names, said[0])
		}
	}
	return names, nil
}

func (l *Library) comesBack(ctx context.Context, at run, tree, name string) (bool, error) {
	back, err := l.all(ctx, at, "cat-file", "--filters", tree+":"+name)
	if err != nil {
		return false, err
	}
	now, err := os.ReadFile(filepath.Join(at.dir, filepath.FromSlash(name)))
	return bytes.Equal(now, back), err
}

// differing names the files in which two trees differ.
func (l *Library) differing(ctx context.Context, at run, a, b string) ([]string, error) {
	return l.records(ctx, at, "diff-tree", "-r", "-z", "--name-only", "--no-renames", a, b)
}

// aside is where a work tree is on its way out, and doomed where it is when all of it is known to be kept. That both are names of directories
// makes the step between them one that a crash cannot cut in two.
func aside(path string) string {
	return filepath.Join(filepath.Dir(path), ".removed-"+filepath.Base(path))
}

func doomed(path string) string {
	return filepath.Join(filepath.Dir(path), ".deleted-"+filepath.Base(path))
}

// Remove keeps what is in no commit on a ref, and removes the work tree. kept is told between the two: what it does not take is not removed.
// Ignored files go. What fails before the end leaves the work tree where it is.
func (l *Library) Remove(ctx context.Context, main, path, ref string, kept func(Kept) error) error {
	at, err := l.open(ctx, path)
	if err == nil {
		err = l.free(ctx, at)
	}
	if err != nil {
		return err
	}
	k, err := l.keep(ctx, at, ref)
	if err == nil {
		k.Strays, err = l.gather(ctx, at, ref, k.Branch)
	}
	if err != nil {
		return told(err)
	}
	if err := kept(k); err != nil {
		return err
	}
	if err := os.Rename(path, aside(path)); err != nil {
		return fmt.Errorf("%w: %w", ErrBusy, err)
	}
	at.dir = aside(path)
	now, err := l.tree(ctx, at)
	if err != nil || now != k.tree { // somebody was at work in it
		if err == nil {
			err = ErrBusy
		}
		return errors.Join(told(err), os.Rename(at.dir, path))
	}
	return l.finish(ctx, main, path)
}

// finish is the end of a removal of what is out of the way and known to be kept, as often as it takes. It is over when git has forgotten the
// work tree: what cannot be deleted then gets a name of its own, and is told by a [LeftError]. Under the name that it had, the next removal
// would stumble over it, and nobody could tell it from a removal that was cut off.
func (l *Library) finish(ctx context.Context, main, path string) error {
	ctx = context.WithoutCancel(ctx)
	if err := doom(aside(path), path); err != nil {
		return err
	}
	return l.end(ctx, main, path, "--force")
}

// doom has what is known to be kept, or to be nobody's, on its way out.
func doom(from, path string) error {
	if _, err := os.Lstat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if _, err := discard(path); err != nil {
		return err
	}
	return os.Rename(from, doomed(path))
}

// end has git forget a work tree, and deletes what is doomed of it.
func (l *Library) end(ctx context.Context, main, path string, force ...string) error {
	if err := l.forget(ctx, main, path, force...); err != nil {
		return err
	}
	rests, err := discard(path)
	_ = os.Remove(filepath.Dir(path)) // when it is empty
	if err == nil && rests != nil {
		return rests
	}
	return err
}

// discard deletes what is known to be kept, or puts what cannot be deleted where it is in nobody's way.
func discard(path string) (rests *LeftError, err error) {
	reason := removeAll(doomed(path))
	if reason == nil {
		return nil, nil //nolint:nilnil // nothing rests
	}
	const most = 1000
	for n := range most {
		name := filepath.Join(filepath.Dir(path), ".left-"+filepath.Base(path))
		if n > 0 {
			name += "-" + strconv.Itoa(n+1)
		}
		if _, err := os.Lstat(name); err == nil {
			continue
		}
		err := os.Rename(doomed(path), name)
		return &LeftError{Path: name, Err: reason}, err
	}
	return nil, reason
}

// forget has git forget a work tree whose directory is out of the way. A program may have made its path again meanwhile, in which git sees
// a broken work tree and refuses; then its record goes without git. A work tree there is another one's, with the record. Force that is given
// twice is for one that git was making, as it is for git.
func (l *Library) forget(ctx context.Context, main, path string, force ...string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		err := l.git(ctx, run{dir: main}, slices.Concat([]string{"worktree", "remove"}, force, []string{"--", path})...)
		if err == nil || failedWith(err, "is not a working tree") {
			return nil
		}
		if !failedWith(err, "validation failed") {
			return err
		}
	}
	if _, err := l.open(ctx, path); !errors.Is(err, ErrMissing) {
		return err
	}
	list, err := l.recordsOf(ctx, main, path)
	for _, gitDir := range list {
		if locked(gitDir, len(force) > 1) {
			err = errors.Join(err, ErrLocked)
			continue
		}
		err = errors.Join(err, os.RemoveAll(gitDir))
		_ = os.Remove(filepath.Dir(gitDir)) // as git does, when it is empty
	}
	return err
}

// Resume goes on with a removal that was cut off; k is what was kept. It is false where the work tree is as it was. What is out of the way goes
// only when it has nothing beyond what was kept: it was cut off before somebody looked, or a program has written on.
func (l *Library) Resume(ctx context.Context, main, path string, k Kept) (gone bool, err error) {
	away := aside(path)
	_, err = os.Lstat(path)
	there := err == nil
	_, err = os.Lstat(away)
	switch {
	case err == nil && there:
		return false, &AsideError{Path: away}
	case err != nil && there:
		return l.overtaken(ctx, main, path, k)
	case err != nil:
		return true, l.finish(ctx, main, path)
	}
	at, err := l.open(ctx, away)
	if errors.Is(err, ErrMissing) { // nobody can tell what of it is kept: it is a person's
		err := os.Rename(away, path)
		if err == nil && l.Repair(ctx, main, path) != nil {
			l.cfg.Logger.Warn("what a removal has left is no work tree any more, and is back", "path", path)
		}
		return false, err
	}
	if err != nil {
		return false, errors.Join(&AsideError{Path: away}, err)
	}
	want := k.Commit
	if want == "" {
		want = k.Head
	}
	known := ""
	if want != "" {
		if known, err = l.say(ctx, at, "rev-parse", "--verify", "--quiet", want+"^{tree}"); err != nil && !ended(err) {
			return false, err
		}
	}
	now, err := l.tree(ctx, at)
	if err != nil {
		return false, err
	}
	if now != known {
		return false, os.Rename(away, path)
	}
	return true, l.finish(ctx, main, path)
}

// overtaken goes on with a removal whose directory is doomed already, though a program has made something new at its path.
func (l *Library) overtaken(ctx context.Context, main, path string, k Kept) (gone bool, err error) {
	if _, err := os.Lstat(doomed(path)); err != nil || k.Head == "" {
		return false, nil //nolint:nilerr // it has not got so far
	}
	switch _, err := l.open(ctx, path); {
	case err == nil:
		return false, nil
	case !errors.Is(err, ErrMissing):
		return false, err
	}
	return true, l.finish(ctx, main, path)
}

// Restore makes a removed work tree again, as it was.
func (l *Library) Restore(ctx context.Context, main, path string, k Kept) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return ErrExists
	}
	if !isFolder(main) {
		return ErrNoRepository
	}
	at := run{dir: main, outlives: true}
	if _, err := l.checksOut(ctx, at); err != nil {
		return err
	}
	if k.Commit != "" {
		if err := l.git(ctx, at, "cat-file", "-e", k.Commit+"^{commit}"); err != nil {
			return err
		}
	}
	args := []string{"worktree", "add", "--quiet", "--detach", "--", path, k.Head}
	made := ""
	if k.Branch != "" {
		tip, err := l.say(ctx, at, "rev-parse", "--verify", "--quiet", "refs/heads/"+k.Branch)
		switch {
		case ended(err):
			made = k.Branch
			args = []string{"worktree", "add", "--quiet", "--no-track", "-b", k.Branch, "--", path, k.Head}
		case err != nil:
			return err
		case tip != k.Head && k.Commit != "": // what was kept would take the new commits back
			return ErrMoved
		default:
			args = []string{"worktree", "add", "--quiet", "--", path, k.Branch}
		}
	}
	if err := l.clear(ctx, main, path); err != nil {
		return err
	}
	err := l.git(ctx, at, args...)
	if err == nil {
		err = l.apply(ctx, path, k)
	}
	if err != nil {
		return errors.Join(told(err), l.undo(ctx, main, path, made, k.Head))
	}
	return nil
}

// clear makes the way free for a work tree that comes back.
func (l *Library) clear(ctx context.Context, main, path string) error {
	if err := l.Unlocked(ctx, main, path); err != nil {
		return err
	}
	if err := makeFolder(main, filepath.Dir(path)); err != nil {
		return err
	}
	// Who removed the directory by hand has left it in git's list.
	if err := l.git(ctx, run{dir: main, outlives: true}, "worktree", "remove", "--force", "--", path); err != nil && !ended(err) {
		return err
	}
	return mkdir(main, path)
}

// Unlocked refuses a path whose work tree somebody has locked: that is how git is told that it lies on a disk which is not plugged in. It is
// for who would write down what is going to become of it, before that.
func (l *Library) Unlocked(ctx context.Context, main, path string) error {
	if !isFolder(main) {
		return ErrNoRepository
	}
	list, err := l.recordsOf(ctx, main, path)
	if slices.ContainsFunc(list, func(gitDir string) bool { return locked(gitDir, true) }) {
		return ErrLocked
	}
	return err
}

// making is what git itself says in the lock of a work tree that it is making.
const making = "initializing"

// locked tells whether a record of git's is. Where what git was making is ours, and that git has ended, its own lock is none. What cannot be
// looked at is locked.
func locked(gitDir string, ours bool) bool {
	why, err := os.ReadFile(filepath.Join(gitDir, "locked"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false
	case err != nil:
		return true
	}
	return !ours || strings.TrimSpace(string(why)) != making
}

// apply puts what was kept into a work tree that has just been made.
func (l *Library) apply(ctx context.Context, path string, k Kept) error {
	if k.Commit == "" {
		return nil
	}
	at, err := l.open(ctx, path)
	if err != nil {
		return err
	}
	at.outlives = true
	if err := l.git(ctx, at, "read-tree", "-m", "-u", "HEAD", k.Commit); err != nil {
		return err
	}
	if err := l.git(ctx, at, "read-tree", k.Commit+"^2"); err != nil {
		return err
	}
	err = l.git(ctx, at, "update-index", "-q", "--refresh")
	if ended(err) {
		return nil // some files are not as the index has them: that is what was kept
	}
	return err
}

// Repair has the two halves of a work tree find each other again, when one of them was moved.
func (l *Library) Repair(ctx context.Context, main, path string) error {
	return l.git(ctx, run{dir: main, outlives: true}, "worktree", "repair", "--", path)
}

// Parted tells whether there is a work tree whose two halves do not find each other: one was moved, and [Library.Repair] has not come to it.
func Parted(path string) bool {
	said, err := os.ReadFile(filepath.Join(path, ".git"))
	gitDir, is := strings.CutPrefix(strings.TrimRight(string(said), "\r\n"), "gitdir: ")
	if err != nil || !is {
		return false
	}
	if gitDir = filepath.FromSlash(gitDir); !filepath.IsAbs(gitDir) { // git can be told to write it so
		gitDir = filepath.Join(path, gitDir)
	}
	return !recorded(gitDir, path)
}
