package snapshot

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // names a file of ours, proves nothing
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deskhand/backend/git"
)

// Tree is the content of a directory at a moment.
type Tree struct {
	ID   string // git's name of the tree
	Left []Left // the files left out, by path
}

// Left is a file whose content is not kept.
type Left struct {
	Path       string
	Size       int64
	Modified   time.Time
	Unreadable bool // else the file is too long
	Late       bool `json:",omitempty"` // else: the file changed before the snapshot read the file, so its size at that moment is unknown
}

// atOnce is the number of files that one git process reads. The files read by a process stay read, even if a later process fails.
const atOnce = 4000

// deepest limits the nesting of repositories.
const deepest = 8

// Take takes a snapshot of the directory.
func (s *Store) Take(ctx context.Context) (Tree, error) {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return Tree{}, err
	}
	defer leave()
	return s.take(ctx)
}

// take is Take for the holder of the store. take rebuilds an unusable index once.
func (s *Store) take(ctx context.Context) (Tree, error) {
	if err := s.make(); err != nil {
		return Tree{}, err
	}
	at, err := s.find(ctx)
	if err != nil {
		return Tree{}, err
	}
	tree, same, only := s.unchanged(at)
	if same {
		return tree, s.keep(tree.ID)
	}
	if only == nil {
		s.watch(ctx, at)
		s.markFirst(ctx, at)
	}
	t := &taking{s: s, at: at, index: s.index(at), only: only}
	tree, err = t.take(ctx)
	if errors.Is(err, ErrGit) && ctx.Err() == nil {
		s.l.cfg.Logger.Warn("an index of snapshots is made anew", "error", err)
		s.last = Tree{}
		s.unwatch()
		s.whole.Store(nil)
		if err := os.Remove(t.index); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return Tree{}, err
		}
		tree, err = (&taking{s: s, at: at, index: t.index}).take(ctx)
	}
	return tree, err
}

// index is the path of a place's index. Every place has its own, since paths differ between places.
func (s *Store) index(at place) string {
	sum := sha1.Sum([]byte(at.top + "\x00" + at.prefix)) //nolint:gosec // see the import
	return filepath.Join(s.path, "index-"+hex.EncodeToString(sum[:8]))
}

// leavesOut reports whether the repository at top has a rule that ignores the whole directory.
func (s *Store) leavesOut(ctx context.Context, at place) bool {
	s.mu.Lock()
	out, known := s.hides[at]
	s.mu.Unlock()
	if known {
		return out
	}
	err := s.git(ctx, run{top: at.top, magic: true}, "check-ignore", "--quiet", "--no-index", "--", "./"+strings.TrimSuffix(at.prefix, "/"))
	if status := (*git.StatusError)(nil); err != nil && !errors.As(err, &status) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.hides == nil {
		s.hides = map[place]bool{}
	}
	s.hides[at] = err == nil
	return err == nil
}

// taking is a snapshot in progress.
type taking struct {
	s     *Store
	at    place
	index string

	seen    map[string]bool
	add     []string
	gone    []string // files to remove from the index
	left    []Left
	bytes   int64
	links   map[string]bool        // folders on the way, and whether each is reached through a link
	only    []string               // the paths to look at; nil = all
	perms   map[string]fs.FileMode // permissions of every file of the tree
	folders map[string]fs.FileMode // permissions of the folders of those files
	linked  map[string]time.Time   // files with further names, and the times of their last change
	twin    bool                   // a file of only got a further name, which may be that of a file that is not looked at
}

func (t *taking) run() run { return run{top: t.at.top, index: t.index} }

func (t *taking) take(ctx context.Context) (Tree, error) {
	if err := os.Remove(t.index + ".lock"); err != nil && !errors.Is(err, fs.ErrNotExist) { // left by a killed git; no other git runs here
		return Tree{}, err
	}
	t.begin()
	_, err := os.Stat(t.index)
	fresh := err != nil
	var touched map[string]bool
	if w := t.s.watching; w != nil {
		w.mu.Lock()
		touched = maps.Clone(w.touched) // later changes belong to the next snapshot
		w.mu.Unlock()
		if t.only != nil {
			t.resume()
		}
	}
	outside := t.s.outside(t.at)
	if err := t.listWithTwins(ctx); err != nil {
		return Tree{}, err
	}
	same := len(t.add) == 0 && len(t.gone) == 0 && !fresh && t.s.last.ID != "" && t.s.lastOf == t.at
	if !same {
		t.s.last = Tree{}
		if err := t.update(ctx); err != nil {
			return Tree{}, err
		}
	}
	id := t.s.last.ID
	if !same {
		if id, err = t.write(ctx); err != nil {
			return Tree{}, err
		}
	}
	slices.SortFunc(t.left, func(a, b Left) int { return strings.Compare(a.Path, b.Path) })
	t.left = slices.CompactFunc(t.left, func(a, b Left) bool { return a.Path == b.Path })
	tree := Tree{ID: id, Left: t.left}
	if err := errors.Join(t.s.keepModes(id, t.modes()), t.s.keep(id)); err != nil {
		return Tree{}, err
	}
	t.s.last, t.s.lastOf = tree, t.at
	t.s.whole.Store(&t.at)
	t.settled(outside, touched)
	return tree, nil
}

// begin empties what a look at the directory collects. After a twin, begin makes the snapshot look at every file.
func (t *taking) begin() {
	t.seen, t.links = map[string]bool{}, map[string]bool{}
	t.perms, t.folders, t.linked = map[string]fs.FileMode{}, map[string]fs.FileMode{}, map[string]time.Time{}
	t.add, t.gone, t.left, t.bytes = nil, nil, nil, 0
	if t.twin {
		t.only = nil
	}
}

// write writes the index as a tree, without the folders above the directory.
func (t *taking) write(ctx context.Context) (string, error) {
	args := []string{"write-tree"}
	if t.at.prefix != "" {
		args = append(args, "--prefix="+t.at.prefix)
	}
	id, err := t.s.say(ctx, t.run(), args...)
	if status := (*git.StatusError)(nil); t.at.prefix != "" && errors.As(err, &status) && strings.Contains(status.Stderr, "not found") {
		return t.empty(ctx)
	}
	if err == nil && !isID(id) {
		err = fmt.Errorf("%w: it wrote no tree", ErrGit)
	}
	return id, err
}

// empty writes the empty tree, whose name git knows without storing the tree.
func (t *taking) empty(ctx context.Context) (string, error) {
	return t.s.say(ctx, run{}, "mktree")
}

// listWithTwins is list that begins again, with every file, when a touched file got a further name.
func (t *taking) listWithTwins(ctx context.Context) error {
	if err := t.list(ctx); err != nil || !t.twin {
		return err
	}
	t.begin()
	return t.list(ctx)
}

// list finds the files that differ from the index.
func (t *taking) list(ctx context.Context) error {
	args := []string{"--cached", "--others", "--modified", "--deleted"}
	if err := t.names(ctx, t.run(), "", args, 0); err != nil {
		return err
	}
	if t.only != nil { // the known repositories below stay the same
		return t.forced(ctx, t.at.top, "")
	}
	t.walkFolders()
	t.s.nested = nil
	for folder := range t.folders {
		if _, found := os.Lstat(filepath.Join(t.at.top, filepath.FromSlash(folder), ".git")); found != nil || folder+"/" == t.at.prefix {
			continue
		}
		t.s.nested = append(t.s.nested, folder+"/")
		if err := t.forced(ctx, filepath.Join(t.at.top, filepath.FromSlash(folder)), folder+"/"); err != nil {
			return err
		}
	}
	return t.forced(ctx, t.at.top, "")
}

// walkFolders records the permissions of the folders that hold the files.
func (t *taking) walkFolders() {
	for name := range t.perms {
		for folder := path.Dir(name); folder != "."; folder = path.Dir(folder) {
			if _, known := t.folders[folder]; known {
				break
			}
			info, err := os.Lstat(filepath.Join(t.at.top, filepath.FromSlash(folder)))
			if err == nil && info.IsDir() {
				t.folders[folder] = info.Mode().Perm()
			}
		}
	}
}

// tagged is the length of the sign and the blank that git writes before each name.
const tagged = 2

// names makes git list the files of a working tree, which lies at base below top.
func (t *taking) names(ctx context.Context, r run, base string, args []string, depth int) error {
	var nested []string
	args = append([]string{"ls-files", "-z", "-t", "--exclude-standard"}, args...)
	args = append(args, excluding(r.top)...)
	if base == "" {
		args = append(args, t.within()...)
	}
	r.read = func(out io.Reader) error {
		return eachRecord(out, func(name []byte) error {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if len(name) < tagged {
				return fmt.Errorf("%w: it listed no file", ErrGit)
			}
			sign := name[0]
			name = name[tagged:]
			if folder, is := bytes.CutSuffix(name, []byte("/")); is {
				nested = append(nested, string(folder))
				return nil
			}
			return t.listed(base+string(name), sign, base == "")
		})
	}
	if err := t.s.git(ctx, r, args...); err != nil {
		return err
	}
	for _, folder := range nested {
		if err := t.below(ctx, r, base, folder, depth); err != nil {
			return err
		}
	}
	return nil
}

// within limits git to the paths that the snapshot looks at.
func (t *taking) within() []string {
	switch {
	case t.only != nil:
		return append([]string{"--"}, t.only...)
	case t.at.prefix != "":
		return []string{"--", t.at.prefix}
	}
	return nil
}

// below lists the files of a repository below the directory.
func (t *taking) below(ctx context.Context, r run, base, folder string, depth int) error {
	if depth >= deepest || t.seen[base+folder+"/"] {
		return nil
	}
	t.seen[base+folder+"/"] = true
	below := run{top: filepath.Join(r.top, filepath.FromSlash(folder))}
	if info, err := os.Lstat(below.top); err != nil || !info.IsDir() {
		return nil //nolint:nilerr // the folder is gone by now
	}
	return t.names(ctx, below, base+folder+"/", []string{"--others"}, depth+1)
}

// git's signs.
const (
	signCached = 'H'
	signOther  = '?'
)

// listed handles a listed name. ours is set when the name comes from our own index.
func (t *taking) listed(name string, sign byte, ours bool) error {
	_, has := t.perms[name]
	switch {
	case !ours && has:
		return nil // a repository below, or a tracked file that rules ignore: our index lists the file, too, with its present state
	case ours && sign == signCached:
		if info, err := os.Lstat(filepath.Join(t.at.top, filepath.FromSlash(name))); err == nil && info.Mode().IsRegular() {
			t.perms[name] = info.Mode().Perm()
			t.named(name, info)
		} else {
			t.perms[name] = 0o600
		}
		return nil
	}
	return t.name(name, ours && sign != signOther)
}

// excluding names the file of a repository's ignore rules beside .gitignore.
func excluding(top string) []string {
	_, all := gitDir(top)
	name := filepath.Join(all, "info", "exclude")
	info, err := os.Lstat(name)
	if all == "" || err != nil || !info.Mode().IsRegular() || info.Size() > 1<<20 {
		return nil
	}
	return []string{"--exclude-from=" + name}
}

// gitDir returns a repository's own git directory, and the git directory that all its worktrees share. Both are empty without a repository.
func gitDir(top string) (own, all string) {
	own = filepath.Join(top, ".git")
	info, err := os.Stat(own)
	switch {
	case err != nil:
		return "", ""
	case !info.IsDir():
		way, is := strings.CutPrefix(firstLine(own), "gitdir: ")
		if !is {
			return "", ""
		}
		own = below(top, way)
	}
	if way := firstLine(filepath.Join(own, "commondir")); way != "" {
		return own, below(own, way)
	}
	return own, own
}

func below(dir, way string) string {
	way = filepath.FromSlash(way)
	if filepath.IsAbs(way) {
		return filepath.Clean(way)
	}
	return filepath.Join(dir, way)
}

// firstLine is the first line of a short file, or empty without such a file.
func firstLine(name string) string {
	f, err := os.OpenFile(name, os.O_RDONLY|noWait, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	const most = 16 << 10
	data, err := io.ReadAll(io.LimitReader(f, most))
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return strings.TrimSuffix(line, "\r")
}

// forced adds the files that a repository tracks though its rules ignore them, since an undo should restore these files too. forced reads the
// repository's index at each snapshot, since a rule or a file may be new, by a git that has no other part of the repository. forced skips an
// index that is invalid without its repository.
func (t *taking) forced(ctx context.Context, top, base string) error {
	own, _ := gitDir(top)
	theirs := filepath.Join(own, "index")
	info, err := os.Lstat(theirs)
	if own == "" || err != nil || !info.Mode().IsRegular() {
		return nil //nolint:nilerr // the repository has no index
	}
	var names []string
	args := append([]string{"ls-files", "-z", "--exclude-standard", "--cached", "--ignored"}, excluding(top)...)
	if base == "" && t.at.prefix != "" {
		args = append(args, "--", t.at.prefix)
	}
	err = t.s.git(ctx, run{top: top, index: theirs, read: func(out io.Reader) error {
		return eachRecord(out, func(name []byte) error {
			names = append(names, base+string(name))
			return ctx.Err()
		})
	}}, args...)
	if err != nil && !errors.Is(err, ErrGit) {
		return err
	}
	for _, name := range names {
		if err := t.listed(name, signOther, false); err != nil {
			return err
		}
	}
	return nil
}

// Hidden lists the ignored files of the last snapshot, at most so many. A folder that is ignored as a whole ends with a slash. A file of the
// list that appears later, after a rule is gone, existed before.
func (s *Store) Hidden(ctx context.Context, most int) ([]string, error) {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	at, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	_, same, _ := s.unchanged(at)
	if known := s.hiddenNow; same && known != nil && known.at == at && known.most == most {
		return known.names, nil
	}
	names, err := s.ignored(ctx, at, most)
	for i, name := range names {
		names[i] = strings.TrimPrefix(name, at.prefix)
	}
	if err == nil && same {
		if _, same, _ = s.unchanged(at); same {
			s.hiddenNow = &hidden{at, most, names}
		}
	}
	return names, err
}

// hidden is the list of a directory's ignored files, valid until a file is touched.
type hidden struct {
	at    place
	most  int
	names []string
}

// ignored lists the ignored files, by paths from the top.
func (s *Store) ignored(ctx context.Context, at place, most int) (names []string, err error) {
	list := func(r run, base string, only ...string) error {
		r.read = func(out io.Reader) error {
			return eachRecord(out, func(name []byte) error {
				if len(names) < most {
					names = append(names, base+string(name))
				}
				return ctx.Err()
			})
		}
		args := append([]string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"}, excluding(r.top)...)
		return s.git(ctx, r, append(args, only...)...)
	}
	var within []string
	if at.prefix != "" {
		within = []string{"--", at.prefix}
	}
	err = list(run{top: at.top, index: s.index(at)}, "", within...)
	for _, folder := range s.nested {
		err = errors.Join(err, list(run{top: filepath.Join(at.top, filepath.FromSlash(folder))}, folder))
	}
	return names, err
}

// name records a file that differs from the index. known is set when the index may hold the file.
func (t *taking) name(name string, known bool) error {
	if t.seen[name] {
		return nil
	}
	t.seen[name] = true
	delete(t.perms, name)
	if len(t.seen) > t.s.l.cfg.MostFiles {
		return &TooLargeError{Files: t.s.l.cfg.MostFiles}
	}
	file := filepath.Join(t.at.top, filepath.FromSlash(name))
	info, err := os.Lstat(file)
	link := err == nil && info.Mode()&fs.ModeSymlink != 0
	switch {
	case errors.Is(err, fs.ErrPermission):
		t.leave(name, known, Left{Unreadable: true})
	case err != nil, t.behindLink(path.Dir(name)), !link && !info.Mode().IsRegular():
		t.drop(name, known) // a folder, a pipe, or no file at all
	case link:
		t.add = append(t.add, name)
		t.perms[name] = 0o600
	case info.Size() > t.s.l.cfg.MostFile:
		t.leave(name, known, Left{Size: info.Size(), Modified: info.ModTime()})
	case !readable(file):
		t.leave(name, known, Left{Size: info.Size(), Modified: info.ModTime(), Unreadable: true})
	default:
		t.add = append(t.add, name)
		t.perms[name] = info.Mode().Perm()
		t.named(name, info)
		t.bytes += info.Size()
	}
	if t.bytes > t.s.l.cfg.MostBytes {
		return &TooLargeError{Bytes: t.s.l.cfg.MostBytes}
	}
	return nil
}

func (t *taking) leave(name string, known bool, l Left) {
	t.drop(name, known)
	l.Path = strings.TrimPrefix(name, t.at.prefix)
	t.left = append(t.left, l)
}

// drop removes a file from the index, since a tree holds kept files only.
func (t *taking) drop(name string, known bool) {
	if known {
		t.gone = append(t.gone, name)
	}
}

func readable(file string) bool {
	f, err := os.OpenFile(file, os.O_RDONLY|noWait, 0)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	_ = f.Close()
	return true
}

// behindLink reports whether a folder is reached through a link. Files there belong to another folder, or to no folder of the directory.
func (t *taking) behindLink(folder string) bool {
	if folder == "." {
		return false
	}
	if is, known := t.links[folder]; known {
		return is
	}
	is := t.behindLink(path.Dir(folder))
	if !is {
		info, err := os.Lstat(filepath.Join(t.at.top, filepath.FromSlash(folder)))
		is = err == nil && info.Mode()&fs.ModeSymlink != 0
	}
	t.links[folder] = is
	return is
}

// update applies the recorded differences to the index.
func (t *taking) update(ctx context.Context) error {
	if len(t.gone) > 0 {
		var in bytes.Buffer
		for _, name := range t.gone {
			fmt.Fprintf(&in, "0 %s\t%s\x00", strings.Repeat("0", len(emptyTree)), name)
		}
		r := t.run()
		r.in = in.Bytes()
		if err := t.s.git(ctx, r, "update-index", "-z", "--index-info"); err != nil {
			return err
		}
	}
	for part := range slices.Chunk(t.add, atOnce) {
		if err := t.pack(ctx, part); err != nil {
			return err
		}
		if err := t.takeIn(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// Limits of a pack: at least fewFiles files, each at most shortFile bytes, mostPack bytes together.
const (
	fewFiles  = 200
	shortFile = 64 << 10
	mostPack  = 32 << 20
)

// pack writes the contents of many short files into a pack, where git finds them when it updates the index: 20,000 loose objects take six
// times as long. git itself writes the content of a file that has changed in between.
func (t *taking) pack(ctx context.Context, names []string) error {
	if len(names) < fewFiles {
		return nil
	}
	var in bytes.Buffer
	flush := func() error {
		in.WriteString("done\n")
		err := t.s.git(ctx, run{in: in.Bytes()}, "fast-import", "--quiet", "--done")
		in.Reset()
		if errors.Is(err, ErrGit) && ctx.Err() == nil {
			return nil
		}
		return err
	}
	for _, name := range names {
		data := t.short(name)
		if data == nil {
			continue
		}
		fmt.Fprintf(&in, "blob\ndata %d\n", len(data))
		in.Write(data)
		in.WriteByte('\n')
		if in.Len() > mostPack {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if in.Len() == 0 {
		return nil
	}
	return flush()
}

// short is the content of a short file, or nil for any other file.
func (t *taking) short(name string) []byte {
	f, err := os.OpenFile(filepath.Join(t.at.top, filepath.FromSlash(name)), os.O_RDONLY|noWait, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() || info.Size() > shortFile {
		return nil
	}
	data, err := io.ReadAll(io.LimitReader(f, shortFile))
	if err != nil {
		return nil
	}
	return data
}

// takeIn makes git read files. A file that changes meanwhile makes git fail for the whole batch; takeIn then retries halves of the batch, down
// to the failing file, which is left out.
func (t *taking) takeIn(ctx context.Context, names []string) error {
	r := t.run()
	r.in = []byte(strings.Join(names, "\x00") + "\x00")
	err := t.s.git(ctx, r, "update-index", "--add", "--remove", "--replace", "-z", "--stdin")
	if err == nil || !errors.Is(err, ErrGit) || ctx.Err() != nil {
		return err
	}
	if len(names) > 1 {
		if err := t.takeIn(ctx, names[:len(names)/2]); err != nil {
			return err // git cannot even record that a file is left out: the disk may be full
		}
		return t.takeIn(ctx, names[len(names)/2:])
	}
	info, gone := os.Lstat(filepath.Join(t.at.top, filepath.FromSlash(names[0])))
	if gone != nil {
		return nil //nolint:nilerr // the file is gone by now
	}
	t.left = append(t.left, Left{Path: strings.TrimPrefix(names[0], t.at.prefix), Size: info.Size(), Modified: info.ModTime(), Unreadable: true})
	r.in = fmt.Appendf(nil, "0 %s\t%s\x00", strings.Repeat("0", len(emptyTree)), names[0])
	return t.s.git(ctx, r, "update-index", "-z", "--index-info")
}
