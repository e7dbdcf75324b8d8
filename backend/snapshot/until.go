package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ErrLate reports that a snapshot was unfinished when another writer began, on a disk that does not record when a file was changed.
var ErrLate = errors.New("the look was not over in time")

// Limit is the moment at which another writer begins to write into a directory while its snapshot is unfinished. The tree is the directory at
// that moment all the same: a file without a later change is the file of that moment, and the system records the last change by a clock that
// no process sets. The Mark describes the changed files. [Tree.Left] lists the files whose content at that moment is unknown.
type Limit struct {
	At   time.Time // from time.Now, with its monotonic clock
	Mark *Mark     // nil = no mark
}

// Mark describes a directory by the names and times of its files, without reading their contents: the existing files, and those whose content
// a git index knows.
type Mark struct {
	at     place
	files  map[string]marked
	nested []string        // folders without any information, with a final slash
	unsure map[string]bool // files touched since
	late   bool            // the mark was made after the limit and knows nothing of files that differ from the index
	theirs string          // the objects of the repository whose index the mark used; "" = the store's
}

// earlyMark is the mark of a directory's first snapshot, which takes long. The directory is watched meanwhile.
type earlyMark struct {
	*Mark
	over  time.Time
	index string    // the index that the mark used, with its time and size
	w     *watching // nil = the directory is not watched
}

// marked is a file of a mark.
type marked struct {
	id, mode string // "" = the content is unknown
	size     int64
}

// Mark makes a mark of the directory. Mark does not wait for the store, which may be taking a long snapshot.
func (s *Store) Mark(ctx context.Context) (*Mark, error) {
	if _, err := os.Stat(filepath.Join(s.path, "HEAD")); err != nil {
		return nil, err
	}
	at, err := s.find(ctx)
	if err != nil {
		return nil, err
	}
	if m := s.sinceFirst(at); m != nil {
		return m, nil
	}
	return s.mark(ctx, at)
}

// sinceFirst is the first snapshot's mark, less the files touched since. sinceFirst returns nil unless the system knows the touched files.
func (s *Store) sinceFirst(at place) *Mark {
	e := s.early.Load()
	if e == nil || e.w == nil || e.at != at {
		return nil
	}
	touched, lost := e.w.pending()
	if lost {
		return nil
	}
	for name := range touched {
		if rules(name) {
			return nil
		}
	}
	m := *e.Mark
	m.unsure = touched
	return &m
}

// markFirst makes the mark of a first snapshot, when a repository knows the contents of files that no snapshot has read yet.
func (s *Store) markFirst(ctx context.Context, at place) {
	if whole := s.whole.Load(); whole != nil && *whole == at {
		return
	}
	own, _ := gitDir(at.top)
	if own == "" {
		return
	}
	m, err := s.mark(ctx, at)
	if err != nil { // the index is invalid without its repository
		s.l.cfg.Logger.Debug("the index of a repository cannot be read", "error", err)
		return
	}
	s.early.Store(&earlyMark{m, time.Now(), filepath.Join(own, "index"), s.watching})
}

// behind is the first snapshot's mark when the mark was made after the limit. An index entry that matches its file also matched at the limit,
// provided that the index was not written since.
func (t *settling) behind() *Mark {
	e := t.s.early.Load()
	if e == nil || e.at != t.at || e.theirs == "" || e.over.Before(t.by.At) {
		return nil
	}
	info, err := os.Stat(e.index)
	if err != nil {
		return nil
	}
	if t.since(info) {
		return nil
	}
	m := *e.Mark
	m.late = true
	return &m
}

func (s *Store) mark(ctx context.Context, at place) (*Mark, error) {
	m := &Mark{at: at, files: map[string]marked{}}
	index := s.index(at)
	own, all := gitDir(at.top)
	if whole := s.whole.Load(); own != "" && (whole == nil || *whole != at) { // our index is incomplete
		if info, err := os.Lstat(filepath.Join(own, "index")); err == nil && info.Mode().IsRegular() {
			index, m.theirs = filepath.Join(own, "index"), filepath.Join(all, "objects")
		}
	}
	args := append([]string{"ls-files", "-z", "-v", "--stage", "--debug", "--cached", "--others", "--modified", "--deleted", "--exclude-standard"}, excluding(at.top)...)
	if at.prefix != "" {
		args = append(args, "--", at.prefix)
	}
	r := &markReader{m: m, not: map[string]bool{}, gone: map[string]bool{}}
	err := s.git(ctx, run{top: at.top, index: index, read: func(out io.Reader) error { return eachRecord(out, r.record) }}, args...)
	if err != nil {
		return nil, err
	}
	r.over(m.theirs != "" && converts(at.top, all, m.files))
	return m, nil
}

// markReader reads git's listing. git lists a file of the index several times: as cached, and as modified or deleted.
type markReader struct {
	m         *Mark
	not, gone map[string]bool // files that differ from the index, and missing files
	last      string          // the file whose numbers come next
}

// debugLines is the number of lines that follow the name of an index entry.
const debugLines = 5

func (r *markReader) record(rec []byte) error {
	text := string(rec)
	if strings.HasPrefix(text, "  ctime:") {
		lines := strings.SplitN(text, "\n", debugLines+1)
		if len(lines) <= debugLines {
			return fmt.Errorf("%w: its numbers of a file are not understood", ErrGit)
		}
		r.size(lines[debugLines-1])
		text = lines[debugLines]
	}
	r.last = ""
	if text == "" {
		return nil
	}
	if len(text) < tagged {
		return fmt.Errorf("%w: it listed no file", ErrGit)
	}
	sign, name := text[0], text[tagged:]
	if sign == signOther {
		if strings.HasSuffix(name, "/") {
			r.m.nested = append(r.m.nested, name)
		} else {
			r.m.files[name] = marked{}
		}
		return nil
	}
	head, name, ok := strings.Cut(name, "\t")
	f := strings.Fields(head)
	if !ok || len(f) != 3 {
		return fmt.Errorf("%w: it listed no file", ErrGit)
	}
	r.cached(sign, f[0], f[1], f[2], name)
	return nil
}

func (r *markReader) cached(sign byte, mode, id, stage, name string) {
	const signGone, signChanged = 'R', 'C'
	switch {
	case mode == "160000":
		r.m.nested = append(r.m.nested, name+"/")
		return
	case sign == signGone:
		r.gone[name] = true
	case sign == signChanged, sign != signCached, stage != "0": // a sign in lower case, or S: git does not look whether it is changed
		r.not[name] = true
	}
	r.m.files[name] = marked{id: id, mode: mode}
	r.last = name
}

// size reads "  size: 7 flags: 0".
func (r *markReader) size(line string) {
	f := strings.Fields(line)
	if len(f) < 2 || r.last == "" {
		return
	}
	one := r.m.files[r.last]
	if n, err := strconv.ParseInt(f[1], 10, 64); err == nil {
		one.size = n
		r.m.files[r.last] = one
	}
}

// over clears the contents that are unknown.
func (r *markReader) over(none bool) {
	for name, one := range r.m.files {
		switch {
		case none, r.not[name]:
			one = marked{}
		case one.id != "" && one.size == 0: // git writes 0 when the time alone cannot prove that the file is unchanged; git has read this file
			if info, err := os.Lstat(filepath.Join(r.m.at.top, filepath.FromSlash(name))); err == nil {
				one.size = info.Size()
			}
		}
		r.m.files[name] = one
	}
	for name := range r.gone {
		delete(r.m.files, name)
	}
}

// converts reports whether a repository may store other bytes than a file of the same length holds.
func converts(top, all string, files map[string]marked) bool {
	names := []string{filepath.Join(all, "info", "attributes"), "/etc/gitattributes"}
	if dir, err := os.UserConfigDir(); err == nil {
		names = append(names, filepath.Join(dir, "git", "attributes"))
	}
	if home, err := os.UserHomeDir(); err == nil {
		names = append(names, filepath.Join(home, ".config", "git", "attributes"))
	}
	for name := range files {
		if name == ".gitattributes" || strings.HasSuffix(name, "/.gitattributes") {
			names = append(names, filepath.Join(top, filepath.FromSlash(name)))
		}
	}
	return slices.ContainsFunc(names, func(name string) bool {
		f, err := os.OpenFile(name, os.O_RDONLY|noWait, 0)
		if err != nil {
			return !errors.Is(err, fs.ErrNotExist)
		}
		defer f.Close()
		const most = 1 << 20
		text, err := io.ReadAll(io.LimitReader(f, most))
		return err != nil || len(text) == most || slices.ContainsFunc([]string{"filter", "ident", "encoding"}, func(word string) bool {
			return bytes.Contains(text, []byte(word))
		})
	})
}

// TakeUntil is Take with a limit that another writer may set during the snapshot. TakeUntil calls limit when the tree is complete.
func (s *Store) TakeUntil(ctx context.Context, limit func() *Limit) (Tree, error) {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return Tree{}, err
	}
	defer leave()
	defer s.early.Store(nil)
	early := limit() == nil // else the names were listed after the limit
	tree, err := s.take(ctx)
	if err != nil {
		return Tree{}, err
	}
	by := limit()
	if by == nil {
		return tree, nil
	}
	if early { // a file created between the listing and the limit existed at the limit
		if tree, err = s.take(ctx); err != nil {
			return Tree{}, err
		}
	}
	return s.settle(ctx, tree, by)
}

// Greatest lag of the clock that stamps changes.
const (
	clockStep   = 50 * time.Millisecond
	coarseClock = 2 * time.Second // on disks that count in seconds
)

// settling computes the tree at the limit from the present tree.
type settling struct {
	s      *Store
	at     place
	by     *Limit
	device uint64
	moved  map[string]bool // folders, and whether each may have had another name at the limit
	left   map[string]bool

	tree  Tree              // the present tree, and in the end the tree at the limit
	have  map[string]Side   // the files of tree
	ruled bool              // ignore rules changed after the limit
	out   []string          // files to remove, by paths from the top
	back  map[string]marked // files to add, with their content at the limit
}

func (s *Store) settle(ctx context.Context, tree Tree, by *Limit) (Tree, error) {
	at := s.lastOf
	device, local := localDisk(at.dir())
	now := time.Now()
	if step := now.Sub(by.At) - now.Round(0).Sub(by.At.Round(0)); !local || step.Abs() > clockStep/2 { // the clock was set meanwhile
		return Tree{}, ErrLate
	}
	t := &settling{s: s, at: at, by: by, device: device, tree: tree, moved: map[string]bool{}, left: map[string]bool{}, back: map[string]marked{}}
	var err error
	if t.have, err = s.sides(ctx, tree.ID); err != nil {
		return Tree{}, err
	}
	if m := by.Mark; m == nil || m.at != at {
		if m = t.behind(); m != nil {
			t.by = &Limit{by.At, m}
		}
	}
	t.judge()
	if len(t.out) == 0 && len(t.back) == 0 && len(t.tree.Left) == len(tree.Left) {
		return tree, nil
	}
	if err := t.fetch(ctx); err != nil {
		return Tree{}, err
	}
	return t.compose(ctx)
}

// judge goes through the present files and the files of the mark.
func (t *settling) judge() {
	var before map[string]marked
	if t.by.Mark != nil && t.by.Mark.at == t.at {
		before = t.by.Mark.files
	}
	for name := range t.have {
		t.ruled = t.ruled || rules(name) && !t.firm(t.at.prefix+name)
	}
	for name := range before {
		t.ruled = t.ruled || rules(name) && !t.firm(name)
	}
	list := t.tree.Left
	t.tree.Left = nil
	for _, l := range list {
		name := t.at.prefix + l.Path
		t.left[name] = true
		if _, was, sure := t.marked(name); t.firm(name) || was || !sure {
			t.tree.Left = append(t.tree.Left, l)
		}
	}
	for name, now := range t.have {
		t.present(t.at.prefix+name, now)
	}
	t.absent(maps.Keys(before))
	if t.by.Mark != nil && t.by.Mark.at == t.at {
		t.absent(maps.Keys(t.by.Mark.unsure))
	}
}

// firm reports whether a file is unchanged since the limit.
func (t *settling) firm(name string) bool {
	info, err := os.Lstat(filepath.Join(t.at.top, filepath.FromSlash(name)))
	return err == nil && !t.since(info) && !t.elsewhere(parent(name))
}

// since reports whether a file was changed after the limit.
func (t *settling) since(info fs.FileInfo) bool {
	at, device, known := changedAt(info)
	step := clockStep
	if at.Nanosecond() == 0 {
		step = coarseClock
	}
	return !known || device != t.device || !at.Before(t.by.At.Add(-step))
}

// elsewhere reports whether a folder may have had another name at the limit: a move changes the folder and the folder around it.
func (t *settling) elsewhere(folder string) bool {
	if folder == "." || folder+"/" == t.at.prefix || folder == "" {
		return false
	}
	if is, known := t.moved[folder]; known {
		return is
	}
	changed := func(name string) bool {
		info, err := os.Lstat(filepath.Join(t.at.top, filepath.FromSlash(name)))
		return err != nil || t.since(info)
	}
	is := t.elsewhere(parent(folder)) || changed(folder) && changed(parent(folder))
	t.moved[folder] = is
	return is
}

// present judges a file that exists.
func (t *settling) present(name string, now Side) {
	if t.firm(name) {
		return
	}
	one, was, sure := t.marked(name)
	switch {
	case sure && was && one.id == now.ID && one.mode == now.Mode:
	case sure && !was:
		t.out = append(t.out, name)
	case sure && one.id != "":
		t.back[name] = one
	default:
		t.unknown(name)
	}
}

// marked looks a file up in the mark: the file at the limit, whether the file existed, and whether the mark is sure.
func (t *settling) marked(name string) (one marked, was, sure bool) {
	m := t.by.Mark
	if m == nil || m.at != t.at || m.unsure[name] || m.late && m.files[name].id == "" || slices.ContainsFunc(m.nested, func(folder string) bool { return strings.HasPrefix(name+"/", folder) }) {
		return one, false, false
	}
	one, was = m.files[name]
	return one, was, was || !t.ruled // rules may have ignored the file at the limit
}

// absent judges files of the mark that do not exist any more.
func (t *settling) absent(names iter.Seq[string]) {
	for name := range names {
		below, within := strings.CutPrefix(name, t.at.prefix)
		if _, there := t.have[below]; there || !within || t.left[name] || t.firm(name) { // a firm file that tree leaves out was left out at the limit too
			continue
		}
		switch one, was, sure := t.marked(name); {
		case sure && was && one.id != "":
			t.back[name] = one
		case !t.by.Mark.late || one.id != "":
			t.unknown(name)
		}
	}
}

// unknown records that a file's content at the limit is unknown.
func (t *settling) unknown(name string) {
	t.out = append(t.out, name)
	t.left[name] = true
	l := Left{Path: strings.TrimPrefix(name, t.at.prefix), Late: true}
	if info, err := os.Lstat(filepath.Join(t.at.top, filepath.FromSlash(name))); err == nil {
		l.Size, l.Modified = info.Size(), info.ModTime()
	}
	t.tree.Left = append(t.tree.Left, l)
}

// mostFetched limits the contents fetched for a mark.
const mostFetched = 10_000

// fetch gets the contents that the mark names. A content that is missing, or of another length than the file, counts as unknown.
func (t *settling) fetch(ctx context.Context) error {
	ids := map[string]int64{}
	for _, one := range t.back {
		ids[one.id] = -1
	}
	if len(ids) > 0 && len(ids) <= mostFetched {
		if err := t.s.bring(ctx, t.by.Mark.theirs, ids, t.s.l.cfg.MostFile); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(t.back)) {
		if one := t.back[name]; ids[one.id] != one.size {
			delete(t.back, name)
			t.unknown(name)
		}
	}
	return nil
}

// bring adds contents to the store, from the objects of theirs if named, and sets their lengths in ids.
func (s *Store) bring(ctx context.Context, theirs string, ids map[string]int64, most int64) error {
	var in bytes.Buffer
	for _, id := range slices.Sorted(maps.Keys(ids)) {
		in.WriteString(id + "\n")
	}
	if theirs != "" {
		if err := s.copyFrom(ctx, theirs, in.Bytes(), most); err != nil {
			return err
		}
	}
	err := s.git(ctx, run{in: in.Bytes(), read: func(out io.Reader) error {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if f := strings.Fields(lines.Text()); len(f) == 3 && f[1] == "blob" {
				if n, err := strconv.ParseInt(f[2], 10, 64); err == nil {
					ids[f[0]] = n
				}
			}
		}
		return lines.Err()
	}}, "cat-file", "--batch-check")
	return err
}

// copyFrom copies contents from other objects. copyFrom skips contents that are missing or too long.
func (s *Store) copyFrom(ctx context.Context, theirs string, ids []byte, most int64) error {
	var pack bytes.Buffer
	var total int64
	err := s.git(ctx, run{objects: theirs, in: ids, read: func(out io.Reader) error {
		return eachBlob(out, func(size int64, data io.Reader) error {
			if total += size; size > most || total > s.l.cfg.MostBytes {
				return nil
			}
			fmt.Fprintf(&pack, "blob\ndata %d\n", size)
			_, err := io.Copy(&pack, data)
			pack.WriteByte('\n')
			return err
		})
	}}, "cat-file", "--batch")
	if errors.Is(err, ErrGit) { // missing contents stay unknown
		err = nil
		pack.Reset()
	}
	if err != nil || pack.Len() == 0 {
		return err
	}
	pack.WriteString("done\n")
	return s.git(ctx, run{in: pack.Bytes()}, "fast-import", "--quiet", "--done")
}

// compose makes the tree at the limit.
func (t *settling) compose(ctx context.Context) (Tree, error) {
	index := filepath.Join(t.s.path, "settled")
	if err := errors.Join(removeIfThere(index), removeIfThere(index+".lock")); err != nil {
		return Tree{}, err
	}
	r := run{index: index}
	if err := t.s.git(ctx, r, "read-tree", t.tree.ID); err != nil {
		return Tree{}, err
	}
	var in bytes.Buffer
	for _, name := range t.out {
		fmt.Fprintf(&in, "0 %s\t%s\x00", strings.Repeat("0", len(emptyTree)), strings.TrimPrefix(name, t.at.prefix))
	}
	for _, name := range slices.Sorted(maps.Keys(t.back)) {
		fmt.Fprintf(&in, "%s %s\t%s\x00", t.back[name].mode, t.back[name].id, strings.TrimPrefix(name, t.at.prefix))
	}
	r.in = in.Bytes()
	if err := t.s.git(ctx, r, "update-index", "--add", "--replace", "-z", "--index-info"); err != nil {
		return Tree{}, err
	}
	r.in = nil
	id, err := t.s.say(ctx, r, "write-tree")
	if err != nil {
		return Tree{}, err
	}
	if !isID(id) {
		return Tree{}, fmt.Errorf("%w: it wrote no tree", ErrGit)
	}
	now := t.s.loadModes(t.tree.ID)
	if now != nil && id != t.tree.ID {
		for name, one := range t.back { // the permissions of a deleted file are unknown
			if _, there := t.have[strings.TrimPrefix(name, t.at.prefix)]; !there {
				now.other[strings.TrimPrefix(name, t.at.prefix)] = private(one.mode)
			}
		}
		err = t.s.keepModes(id, now)
	}
	t.tree.ID = id
	slices.SortFunc(t.tree.Left, func(a, b Left) int { return strings.Compare(a.Path, b.Path) })
	return t.tree, errors.Join(err, t.s.keep(id), removeIfThere(index))
}

// private is the permission for the owner alone.
func private(mode string) fs.FileMode {
	if mode == modeProgram {
		return 0o700
	}
	return 0o600
}

// eachBlob reads git's answers about contents: "ID blob SIZE" and the content, or "ID missing".
func eachBlob(out io.Reader, f func(size int64, data io.Reader) error) error {
	r := bufio.NewReaderSize(out, 64<<10)
	for {
		line, err := r.ReadString('\n')
		if errors.Is(err, io.EOF) && line == "" {
			return nil
		}
		if err != nil {
			return err
		}
		if err := blobAfter(strings.Fields(line), r, f); err != nil {
			return err
		}
	}
}

// blobAfter reads the content after a header.
func blobAfter(head []string, r *bufio.Reader, f func(size int64, data io.Reader) error) error {
	if len(head) != 3 {
		return nil // the content is missing
	}
	size, err := strconv.ParseInt(head[2], 10, 64)
	if err != nil {
		return fmt.Errorf("%w: its objects are not understood", ErrGit)
	}
	data := io.LimitReader(r, size)
	if head[1] == "blob" {
		if err := f(size, data); err != nil {
			return err
		}
	}
	if _, err := io.Copy(io.Discard, data); err != nil { // the rest that f has not read
		return err
	}
	_, err = r.Discard(1)
	return err
}
