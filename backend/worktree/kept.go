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

// Kept is what is needed to have a work tree again as it was.
type Kept struct {
	Commit string // "" = there was nothing that a branch did not have
	Files  int    // that nobody had committed
	Branch string // that was checked out; "" = none
	Head   string
	Strays int // commits on no branch that were checked out before; each is on a ref beside, or below one

	tree string
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
