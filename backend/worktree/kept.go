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
	"strings"
	"time"
)

// Kept is the state from which a removed worktree is restored.
type Kept struct {
	Commit string // "" = every change was committed to a branch
	Files  int    // files with uncommitted changes
	Branch string // the branch that was checked out; "" = none
	Head   string
	Strays int // commits on no branch that were checked out before; each is on a ref beside the kept ref, or below such a commit

	tree string
}

// scratch returns a run with an index of its own, which done removes. scratch removes the lock of a killed git, too, which would make the
// next git fail.
func (r run) scratch(name string) (_ run, done func()) {
	r.index = filepath.Join(r.gitDir, name)
	done = func() {
		_ = os.Remove(r.index)
		_ = os.Remove(r.index + ".lock")
	}
	done()
	return r, done
}

// tree writes a tree of all files that the rules do not ignore. tree works on a copy of the index, so the person's index stays unchanged.
// The copy gets a time so old that git trusts none of the times in the index and reads every file: with a newer index, git would take a
// file for unchanged that was written in the same moment as the index with as many bytes.
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
	if sparse, _ := l.say(ctx, at, "config", "--type=bool", "core.sparseCheckout"); sparse == "true" { // an error means no, because the setting is missing
		args = append(args, "--sparse")
	}
	if err := l.git(ctx, at, args...); err != nil {
		return "", err
	}
	return l.say(ctx, at, "write-tree")
}

// unhide makes git look at files that git was told to ignore changes of. The files outside of a sparse checkout are missing, and stay
// hidden.
func (l *Library) unhide(ctx context.Context, at run) error {
	said, err := l.records(ctx, at, "ls-files", "-z", "-v")
	if err != nil {
		return err
	}
	unchanged, skipped := hidden(at.dir, said)
	err = l.flag(ctx, at, "--no-assume-unchanged", unchanged)
	return errors.Join(err, l.flag(ctx, at, "--no-skip-worktree", skipped))
}

// hidden returns the files that the index marks as unchanged, and the skipped files that exist nevertheless.
func hidden(dir string, listed []string) (unchanged, skipped []string) {
	const tagged = 2 // a letter and a blank before each name
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

// flag sets a flag of files in the index.
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

// content writes a tree of the files, and returns the names of the files that differ from the tree before. content fails when git would
// store another content than a file has.
func (l *Library) content(ctx context.Context, at run, before string) (tree string, names []string, err error) {
	if tree, err = l.tree(ctx, at); err != nil {
		return "", nil, err
	}
	if names, err = l.differing(ctx, at, before, tree); err != nil {
		return "", nil, err
	}
	return tree, names, l.lossless(ctx, at, tree, names)
}

// keep commits every uncommitted change, and sets the ref to the commit. The index gets a commit of its own, as in a stash, so that
// Restore can stage the staged changes again. When there is nothing to keep, the ref stays as it is: its commit came back into the
// worktree once, and a person may have discarded those changes there since.
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

// named reports whether the commit that is checked out is on a branch, or has a tag. A branch of a remote does not count: the next fetch
// may remove the commit from that branch.
func (l *Library) named(ctx context.Context, at run, k Kept) (bool, error) {
	if k.Branch != "" {
		return true, nil
	}
	name, err := l.say(ctx, at, "for-each-ref", "--count=1", "--contains="+k.Head, "--format=%(refname)", "refs/heads", "refs/tags")
	return name != "", err
}

// strays returns how many commits were checked out once and are on no branch any more, and the tips of these commits: an experiment that
// somebody has left. Only git's record of the worktree names such commits, and the record goes with the worktree. Commits that the branch
// had are in the branch's own reflog, which stays.
func (l *Library) strays(ctx context.Context, at run, branch string) (n int, tips []string, err error) {
	if at.gitDir == "" { // without a git directory there is no reflog
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

// gather sets a ref to each tip of the strays, beside the ref of the kept commit.
func (l *Library) gather(ctx context.Context, at run, ref, branch string) (n int, err error) {
	n, tips, err := l.strays(ctx, at, branch)
	for _, id := range tips {
		if err == nil {
			err = l.beside(ctx, at, ref, id)
		}
	}
	return n, err
}

// beside sets a ref next to another ref to a commit.
func (l *Library) beside(ctx context.Context, at run, ref, id string) error {
	const short = 12
	return l.git(ctx, at, "update-ref", "--no-deref", ref+"-"+id[:min(short, len(id))], id)
}

// Rescue keeps the remains that git has of a worktree whose directory somebody has deleted or moved away: the commit that was checked
// out, which may be on no branch, and the staged changes. Both would go with git's record of the worktree. For unstaged files, Rescue
// falls back on the commit that an earlier removal has kept on the same commit. When git has no record, known says which commit was
// checked out.
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

// keptOn returns the commit on a ref if its first parent is head, or "".
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

// record finds git's record of a worktree, and the commit and branch that were checked out there. Without a record, record returns known,
// with the present tip of the branch.
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

// recordsOf returns the folders in which git has the record of a worktree: one, or none.
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

// recorded reports whether a record of git belongs to the worktree at path, which need not exist.
func recorded(gitDir, path string) bool {
	data, err := os.ReadFile(filepath.Join(gitDir, "gitdir"))
	file := filepath.FromSlash(strings.TrimRight(string(data), "\r\n"))
	if !filepath.IsAbs(file) { // git can be configured to write a relative path
		file = filepath.Join(gitDir, file)
	}
	of := filepath.Dir(file)
	return err == nil && (of == path || filepath.Base(of) == filepath.Base(path) && same(filepath.Dir(of), filepath.Dir(path)))
}

// staged returns the tree of the index, with our side of each conflict, for a caller that has no other source. staged returns otherwise
// when there is no index, or git cannot read the index.
func (l *Library) staged(ctx context.Context, at run, otherwise string) (string, error) {
	if at.gitDir == "" { // without a git directory there is no index
		return otherwise, nil
	}
	given := filepath.Join(at.gitDir, "index")
	at, done := at.scratch("deskhand-staged") // git writes to an index that it reads
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

// settle replaces each conflict in an index by our side. A file that our side deleted is removed.
func (l *Library) settle(ctx context.Context, at run) error {
	said, err := l.records(ctx, at, "ls-files", "-z", "--unmerged")
	if err != nil {
		return err
	}
	var in strings.Builder
	last := ""
	for _, entry := range said {
		const fields = 3 // the mode, the id and the side; the sides of a file follow each other
		how, name, _ := strings.Cut(entry, "\t")
		parts := strings.Fields(how)
		if len(parts) != fields {
			continue
		}
		if name != last { // removes all sides of the file
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
	case ended(err): // the ref does not exist
	case err != nil:
		return err
	case before != k.Commit: // that commit was restored once, and may exist nowhere else
		if err := l.beside(ctx, at, ref, before); err != nil {
			return err
		}
	}
	return l.git(ctx, at, "update-ref", "--no-deref", ref, k.Commit)
}

// lossless fails unless git stores exactly the content of the files. A filter of the repository may leave content out, and a file with
// both kinds of line ends comes back with one kind. names are the files that differ between the trees. lossless also checks the files
// that git reports as changed, because a filter may have left out all changes, and every file that a filter changes: after a git status,
// git takes such a file for unchanged if the file has as many bytes as before.
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
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool { // deleted files, and links, which no filter changes
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

// same fails unless the tree has the content of each file.
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

// portions yields parts of names that are short enough for a command line on every system.
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

// blobs returns the ids of the files in a tree.
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

// filtered returns the names of the tracked files that a filter changes. git-lfs is left out: its filter loses nothing, and its files are
// large.
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
	const fields = 3 // the name, "filter" and the filter
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

// differing returns the names of the files in which two trees differ.
func (l *Library) differing(ctx context.Context, at run, a, b string) ([]string, error) {
	return l.records(ctx, at, "diff-tree", "-r", "-z", "--name-only", "--no-renames", a, b)
}
