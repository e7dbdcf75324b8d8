package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha1" //nolint:gosec // git's object names are SHA-1
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Outcome is the outcome of restoring a file.
type Outcome string

// The outcomes. A file with a Conflict was left alone.
const (
	Restored Outcome = "restored"
	Removed  Outcome = "removed"
	Same     Outcome = "same"
	Conflict Outcome = "conflict"
)

// Reason is the reason of a conflict.
type Reason string

// The reasons.
const (
	Edited     Reason = "edited"     // the file differs from Put.Expect
	InTheWay   Reason = "in_the_way" // a folder or a link stands there
	NotKept    Reason = "not_kept"   // no tree holds the file in the way, which would be lost
	Unwritable Reason = "unwritable"
)

// Put describes a file to restore.
type Put struct {
	Path   string
	Want   Side   // without an ID: remove the file
	Expect *Side  // the required present content; nil = any content
	With   string // path of another Put that has to succeed as well: the other half of a renamed file
	From   string // the tree that holds the permissions of Want; empty = the folder's permissions decide

	// Edit computes the new content from the present content, and replaces Want. Edit returns false when the content does not fit. With
	// Remove, a file that becomes empty is removed.
	Edit   func(now []byte) ([]byte, bool)
	Remove bool
}

// PutResult is the result of a Put.
type PutResult struct {
	Path    string
	Outcome Outcome
	Reason  Reason
}

// Way is a completed restore: the trees before and after, and the result of every file.
type Way struct {
	Was, Became Tree
	Files       []PutResult
}

func (r PutResult) changed() bool { return r.Outcome == Restored || r.Outcome == Removed }

// Changed reports whether any file was changed.
func (w *Way) Changed() bool { return slices.ContainsFunc(w.Files, PutResult.changed) }

// longestWriting limits the duration of a restore.
const longestWriting = 10 * time.Minute

// Restore puts files back. Restore first takes a snapshot, so that the restore can be undone, and touches no file outside that snapshot.
// Restore then calls plan with the snapshot; an error of plan is returned, with nothing done. From there on Restore ignores the end of ctx,
// since half a restore helps nobody. With preview, Restore changes no file and only reports. Restore follows no link, and writes every file
// whole or not at all.
func (s *Store) Restore(ctx context.Context, preview bool, plan func(now Tree) ([]Put, error)) (Way, error) {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return Way{}, err
	}
	defer leave()
	was, err := s.take(ctx)
	if err != nil {
		return Way{}, err
	}
	have, err := s.sides(ctx, was.ID)
	if err != nil {
		return Way{}, err
	}
	root, err := os.OpenRoot(s.lastOf.dir())
	if err != nil {
		return Way{}, fmt.Errorf("%w: %w", ErrMissing, err)
	}
	defer root.Close()
	puts, err := plan(was)
	if err != nil || len(puts) == 0 {
		return Way{Was: was, Became: was}, err
	}
	p := &putting{s: s, root: root, have: have, preview: preview, results: map[string]PutResult{}}
	ctx, end := s.l.lasting(ctx, longestWriting)
	defer end()
	if err := p.all(ctx, puts); err != nil {
		return Way{}, err
	}
	w := Way{Was: was, Became: was}
	for _, put := range puts {
		w.Files = append(w.Files, p.results[put.Path])
	}
	if !preview && w.Changed() {
		w.Became, err = s.take(ctx) // the result must be on record
	}
	return w, err
}

// lasting is a context that outlives ctx, and ends with the library or after limit.
func (l *Library) lasting(ctx context.Context, limit time.Duration) (context.Context, func()) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	stop := context.AfterFunc(l.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// Target is the Side that a Put would make of the present file. Target returns false when the Put would leave the file alone.
func (s *Store) Target(put Put) (Side, bool) {
	if put.Edit == nil {
		return put.Want, true
	}
	root, err := os.OpenRoot(s.directory())
	if err != nil {
		return Side{}, false
	}
	defer root.Close()
	p := &putting{s: s, root: root}
	dir, err := p.folder(put.Path)
	if err != nil || dir == nil {
		return Side{}, false
	}
	defer dir.Close()
	side, data, err := s.read(dir, path.Base(put.Path), true)
	if err != nil || !side.Regular() {
		return Side{}, false
	}
	now, fits := put.Edit(data)
	switch {
	case !fits:
		return Side{}, false
	case len(now) == 0 && put.Remove:
		return Side{}, true
	}
	return Side{ID: blobID(now), Mode: side.Mode, Size: int64(len(now))}, true
}

// sides lists the files of a tree.
func (s *Store) sides(ctx context.Context, tree string) (map[string]Side, error) {
	have := map[string]Side{}
	err := s.git(ctx, run{read: func(out io.Reader) error {
		return eachRecord(out, func(line []byte) error { // a record is "100644 blob ID\tname"
			head, name, ok := strings.Cut(string(line), "\t")
			f := strings.Fields(head)
			if !ok || len(f) != 3 {
				return errDiff
			}
			have[name] = Side{Mode: f[0], ID: f[2]}
			return nil
		})
	}}, "ls-tree", "-r", "-z", "--full-tree", tree)
	return have, err
}

// putting is a restore in progress.
type putting struct {
	s       *Store
	root    *os.Root
	have    map[string]Side // the files of the snapshot taken before
	preview bool
	going   map[string]bool // the files that are removed
	modes   map[string]*modes
	results map[string]PutResult
}

// set records the result of a file. A change stays recorded, whatever fails later, since a person has to be able to undo the change.
func (p *putting) set(name string, o Outcome, r Reason) {
	if !p.results[name].changed() {
		p.results[name] = PutResult{name, o, r}
	}
}

// all performs the puts: removals first, which make room. The old half of a renaming is removed after its new half is written, so that a
// failed write leaves the file under its old name.
func (p *putting) all(ctx context.Context, puts []Put) error {
	p.going = map[string]bool{}
	for _, put := range puts {
		if put.Edit == nil && put.Want.ID == "" {
			p.going[put.Path] = true
		}
	}
	ready := map[string]bool{}
	for _, put := range puts {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		ready[put.Path] = put.Edit == nil && p.ready(put)
	}
	inTheWay := roomFor(puts, ready)
	var writes, later []Put
	for _, put := range puts {
		with := p.results[put.With]
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case put.Edit != nil:
			p.edit(put)
		case !ready[put.Path]:
		case with.Outcome == Conflict:
			p.set(put.Path, Conflict, with.Reason)
		case put.Want.ID != "":
			writes = append(writes, put)
		case ready[put.With] && !p.going[put.With] && !inTheWay(put.Path):
			later = append(later, put)
		default:
			p.removeReady(put)
		}
	}
	if err := p.write(ctx, writes); err != nil {
		return err
	}
	return p.removeWritten(ctx, later)
}

// removeWritten removes files whose other half is written by now.
func (p *putting) removeWritten(ctx context.Context, puts []Put) error {
	for _, put := range puts {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if with := p.results[put.With]; with.Outcome == Conflict {
			p.set(put.Path, Conflict, with.Reason)
			continue
		}
		p.removeReady(put)
	}
	return nil
}

// roomFor returns a function that reports whether a file has to go before another file can be written: a folder of the other file has the same
// path, or the reverse.
func roomFor(puts []Put, ready map[string]bool) func(name string) bool {
	written, folders := map[string]bool{}, map[string]bool{}
	for _, put := range puts {
		if ready[put.Path] && put.Want.ID != "" {
			written[put.Path] = true
			for above := range foldersOf(put.Path) {
				folders[above] = true
			}
		}
	}
	return func(name string) bool {
		for above := range foldersOf(name) {
			if written[above] {
				return true
			}
		}
		return folders[name]
	}
}

// foldersOf lists the folders above a file, the nearest first.
func foldersOf(name string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for above := path.Dir(name); above != "."; above = path.Dir(above) {
			if !yield(above) {
				return
			}
		}
	}
}

// removeReady removes a file that was ready before. removeReady checks again, since removals of thousands of files take time, in which a
// person may have saved this file.
func (p *putting) removeReady(put Put) {
	if p.ready(put) {
		p.remove(put.Path)
	}
}

// ready reports whether a file needs restoring and can be restored. Otherwise ready records the file's result.
func (p *putting) ready(put Put) bool {
	now := p.have[put.Path]
	disk, err := p.look(put.Path)
	switch {
	case err != nil:
		p.set(put.Path, Conflict, reasonOf(err))
	case sameSide(disk, put.Want):
		p.set(put.Path, Same, "")
	case disk.ID != "" && now.ID == "":
		p.set(put.Path, Conflict, NotKept)
	case !sameSide(disk, now): // since a moment ago
		p.set(put.Path, Conflict, Edited)
	case put.Expect != nil && !sameSide(now, *put.Expect):
		p.set(put.Path, Conflict, Edited)
	default:
		return true
	}
	return false
}

func sameSide(a, b Side) bool {
	return a.ID == b.ID && (a.ID == "" || a.Mode == b.Mode || runtime.GOOS == "windows" && a.Regular() && b.Regular())
}

var (
	errWay    = errors.New("something stands in the way")
	errLong   = errors.New("the file is too long")
	errEdited = errors.New("the file was changed meanwhile")
)

func reasonOf(err error) Reason {
	switch {
	case errors.Is(err, errWay):
		return InTheWay
	case errors.Is(err, errLong):
		return NotKept
	case errors.Is(err, errEdited):
		return Edited
	}
	return Unwritable
}

// folder opens the folder of a file, following no link. folder returns nil for a missing folder.
func (p *putting) folder(name string) (*os.Root, error) { return p.way(name, false, nil) }

// way is folder, and creates missing folders if create is set, with the permissions of m if those are known.
func (p *putting) way(name string, create bool, m *modes) (*os.Root, error) {
	dir, err := p.root.OpenRoot(".")
	if err != nil {
		return nil, err
	}
	parent := path.Dir(name)
	if parent == "." {
		return dir, nil
	}
	above := ""
	for part := range strings.SplitSeq(parent, "/") {
		perm := fs.FileMode(0o777)
		above = path.Join(above, part)
		if m != nil {
			perm = m.ofFolder(above)
		}
		below, err := step(dir, part, create, perm)
		_ = dir.Close()
		if below == nil || err != nil {
			return nil, err
		}
		dir = below
	}
	return dir, nil
}

// step opens a folder in dir, and fails when the entry is a link.
func step(dir *os.Root, name string, create bool, perm fs.FileMode) (*os.Root, error) {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if !create {
			return nil, nil //nolint:nilnil // the folder is missing
		}
		if err := makeFolder(dir, name, perm); err != nil {
			return nil, err
		}
		info, err = dir.Lstat(name)
	}
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return nil, errWay
	}
	below, err := dir.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if now, err := below.Stat("."); err != nil || !os.SameFile(info, now) {
		_ = below.Close()
		return nil, errWay
	}
	return below, nil
}

// makeFolder creates a folder that excludes everybody whom the parent folder excludes.
func makeFolder(dir *os.Root, name string, perm fs.FileMode) error {
	above, err := dir.Stat(".")
	if err != nil {
		return err
	}
	if perm == 0o777 {
		perm &= above.Mode().Perm()
	}
	if err := dir.Mkdir(name, 0o700); err != nil {
		return err
	}
	return dir.Chmod(name, perm|0o700)
}

// look reads the file on the disk.
func (p *putting) look(name string) (Side, error) {
	dir, err := p.folder(name)
	if errors.Is(err, errWay) && p.have[name].ID == "" && p.clears(name) {
		return Side{}, nil // the file in the way is about to be removed
	}
	if dir == nil || err != nil {
		return Side{}, err
	}
	defer dir.Close()
	side, _, err := p.s.read(dir, path.Base(name), false)
	if errors.Is(err, errWay) && p.clears(name) {
		return Side{}, nil // a folder whose files are all about to be removed
	}
	return side, err
}

// clears reports whether the file or folder in the way of name is removed before name is written.
func (p *putting) clears(name string) bool {
	for above := range foldersOf(name) {
		if p.going[above] {
			return true
		}
	}
	below := false
	for other := range p.have {
		if strings.HasPrefix(other, name+"/") {
			if !p.going[other] {
				return false
			}
			below = true
		}
	}
	return below
}

// read returns a file's Side and, with whole, its content.
func (s *Store) read(dir *os.Root, name string, whole bool) (Side, []byte, error) {
	info, err := dir.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return Side{}, nil, nil
	}
	if err != nil {
		return Side{}, nil, err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		leads, err := dir.Readlink(name)
		return Side{ID: blobID([]byte(leads)), Mode: modeLink, Size: int64(len(leads))}, nil, err
	}
	if !info.Mode().IsRegular() {
		return Side{}, nil, errWay
	}
	if info.Size() > s.l.cfg.MostFile {
		return Side{}, nil, errLong
	}
	f, err := dir.OpenFile(name, os.O_RDONLY|noWait, 0)
	if err != nil {
		return Side{}, nil, err
	}
	defer f.Close()
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) {
		return Side{}, nil, errWay
	}
	data, err := io.ReadAll(io.LimitReader(f, s.l.cfg.MostFile+1))
	if err != nil {
		return Side{}, nil, err
	}
	side := Side{ID: blobID(data), Mode: modeFile, Size: int64(len(data))}
	if info.Mode()&0o100 != 0 {
		side.Mode = modeProgram
	}
	if !whole {
		data = nil
	}
	return side, data, nil
}

// blobID is git's name of a content.
func blobID(data []byte) string {
	h := sha1.New() //nolint:gosec // see the import
	h.Write([]byte("blob " + strconv.Itoa(len(data)) + "\x00"))
	h.Write(data)
	return hex.EncodeToString(h.Sum(nil))
}

// edit replaces a file's content by the result of put.Edit.
func (p *putting) edit(put Put) {
	dir, err := p.folder(put.Path)
	if err != nil {
		p.set(put.Path, Conflict, reasonOf(err))
		return
	}
	if dir == nil {
		p.set(put.Path, Conflict, Edited)
		return
	}
	defer dir.Close()
	side, data, err := p.s.read(dir, path.Base(put.Path), true)
	switch {
	case err != nil:
		p.set(put.Path, Conflict, reasonOf(err))
		return
	case !side.Regular() || !sameSide(side, p.have[put.Path]):
		p.set(put.Path, Conflict, Edited)
		return
	}
	now, fits := put.Edit(data)
	switch {
	case !fits:
		p.set(put.Path, Conflict, Edited)
	case bytes.Equal(now, data):
		p.set(put.Path, Same, "")
	case len(now) == 0 && put.Remove:
		p.remove(put.Path)
	default:
		p.done(put.Path, Restored, Side{ID: blobID(now), Mode: side.Mode}, p.replace(dir, put.Path, side.Mode, "", now, side))
	}
}

// done records the result of an operation that may have failed. An operation with an error may have reached its goal want all the same, for
// example when the folder cannot be synced; the change is then recorded, so that a person can undo the change.
func (p *putting) done(name string, o Outcome, want Side, err error) {
	if err == nil {
		p.set(name, o, "")
		return
	}
	if disk, failed := p.look(name); failed == nil && sameSide(disk, want) {
		p.s.l.cfg.Logger.Warn("a file was put back, with an error", "error", err)
		p.set(name, o, "")
		return
	}
	p.s.l.cfg.Logger.Warn("a file cannot be put back", "error", err)
	p.set(name, Conflict, reasonOf(err))
}

// remove removes a file, and the folders above that become empty.
func (p *putting) remove(name string) {
	if p.preview {
		p.set(name, Removed, "")
		return
	}
	dir, err := p.folder(name)
	if dir == nil && err == nil {
		err = fs.ErrNotExist
	}
	if err != nil {
		p.done(name, Removed, Side{}, err)
		return
	}
	err = dir.Remove(path.Base(name))
	_ = dir.Close()
	p.done(name, Removed, Side{}, err)
	for above := path.Dir(name); err == nil && above != "."; above = path.Dir(above) {
		dir, err = p.folder(above)
		if err != nil || dir == nil {
			return
		}
		err = dir.Remove(path.Base(above)) // fails when the folder is not empty
		_ = dir.Close()
	}
}

// write writes files in the order of git's output, so that a single content is in memory at a time.
func (p *putting) write(ctx context.Context, puts []Put) error {
	if len(puts) == 0 {
		return nil
	}
	if p.preview {
		for _, put := range puts {
			p.set(put.Path, Restored, "")
		}
		return nil
	}
	var in strings.Builder
	for _, put := range puts {
		in.WriteString(put.Want.ID + "\n")
	}
	return p.s.git(ctx, run{in: []byte(in.String()), read: func(out io.Reader) error {
		r := bufio.NewReader(out)
		for _, put := range puts {
			if ctx.Err() != nil { // git may have finished its output already
				return ctx.Err()
			}
			data, err := nextBlob(r, p.s.l.cfg.MostFile)
			if err != nil {
				return err
			}
			p.writeOne(put, data)
		}
		return nil
	}}, "cat-file", "--batch")
}

// nextBlob reads "ID blob SIZE", the content, and a newline.
func nextBlob(r *bufio.Reader, most int64) ([]byte, error) {
	head, err := r.ReadString('\n')
	if err != nil {
		return nil, err
	}
	f := strings.Fields(head)
	if len(f) != 3 || f[1] != "blob" {
		return nil, fmt.Errorf("%w: a file of the tree is missing", ErrGit)
	}
	size, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil || size > most {
		return nil, errDiff
	}
	data := make([]byte, size+1)
	_, err = io.ReadFull(r, data)
	return data[:size], err
}

func (p *putting) writeOne(put Put, data []byte) {
	if !p.ready(put) { // git took time, in which the file may have changed
		return
	}
	dir, err := p.way(put.Path, true, p.recorded(put.From))
	if err != nil {
		p.done(put.Path, Restored, put.Want, err)
		return
	}
	defer dir.Close()
	was := p.have[put.Path]
	if put.Want.Mode == modeLink {
		p.done(put.Path, Restored, put.Want, link(dir, path.Base(put.Path), string(data), p.s.still(dir, put.Path, was)))
		return
	}
	p.done(put.Path, Restored, put.Want, p.replace(dir, put.Path, put.Want.Mode, put.From, data, was))
}

// still returns the last check before a file is replaced: writing the new file takes time, in which a person may have saved the old file.
func (s *Store) still(dir *os.Root, name string, was Side) func() error {
	return func() error {
		now, _, err := s.read(dir, path.Base(name), false)
		if err == nil && !sameSide(now, was) {
			err = errEdited
		}
		return err
	}
}

// replace replaces a file atomically.
func (p *putting) replace(dir *os.Root, name, mode, from string, data []byte, was Side) error {
	if p.preview {
		return nil
	}
	perm, err := p.perm(dir, name, mode, from)
	if err != nil {
		return err
	}
	return p.s.l.cfg.Replace(dir, path.Base(name), data, perm, p.s.still(dir, name, was))
}

// link replaces an entry by a link.
func link(dir *os.Root, name, leads string, last func() error) error {
	temp := ".deskhand-" + rand.Text()
	if err := dir.Symlink(filepath.FromSlash(leads), temp); err != nil {
		return err
	}
	err := last()
	if err == nil {
		err = dir.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, dir.Remove(temp))
	}
	return nil
}

// Look compares each change's After side with the file on the disk. Look does not wait for the store.
func (s *Store) Look(ctx context.Context, list []Change) (map[string]Now, error) {
	root, err := os.OpenRoot(s.directory())
	if errors.Is(err, fs.ErrNotExist) {
		found := map[string]Now{}
		for _, c := range list {
			found[c.Path] = Now{Gone: true, Same: c.After.ID == ""}
		}
		return found, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	p := &putting{s: s, root: root}
	found := map[string]Now{}
	for _, c := range list {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		side, err := p.look(c.Path)
		if errors.Is(err, errWay) && c.After.ID == "" {
			side, err = Side{}, nil // a folder or a link takes the file's place
		}
		found[c.Path] = Now{Same: err == nil && sameSide(side, c.After), Gone: err == nil && side.ID == ""}
	}
	return found, nil
}

// Now is the state of a file on the disk, compared with the file after a change.
type Now struct{ Same, Gone bool }

// Content is the present content of a file. Content returns false when there is no such file, or no text short enough to show.
func (s *Store) Content(name string) ([]byte, bool) {
	root, err := os.OpenRoot(s.directory())
	if err != nil {
		return nil, false
	}
	defer root.Close()
	p := &putting{s: s, root: root}
	dir, err := p.folder(name)
	if err != nil || dir == nil {
		return nil, false
	}
	defer dir.Close()
	side, data, err := s.read(dir, path.Base(name), true)
	return data, err == nil && side.Regular()
}
