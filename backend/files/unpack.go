package files

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	maxPaths   = 1024    // in the result of Unpack
	maxHeaders = 4 << 20 // bytes of headers before an entry; archive/tar itself stops at 1 MiB for each kind
)

// Unpack unpacks a tar archive, gzipped or not, into a directory, which is made with its parents when it is missing. Unpack returns the
// absolute paths of the first 1024 entries, in the archive's order.
//
// Regular files and directories are unpacked, global headers are skipped, and anything else is ErrInvalid: links of both kinds, devices,
// pipes, absolute names, "..", a name under a file, names that differ by case alone where the disk ignores case, an archive that is cut
// short, has no end mark or continues behind the mark. Of two entries with the same name the last counts. Modes lose all but the
// permission bits and the bits of the umask; a directory stays open to its owner; files keep their times.
//
// All is unpacked to a hidden directory in the target first, then compared with the target, then renamed. Files replace files (and links:
// no link is followed), existing directories stay and keep their modes. A file in place of a directory, or the reverse, is ErrExists.
// Until the renames nothing can be seen but the hidden directory; during the renames, a reader sees some files old and some new, each
// whole and none missing (on Linux and macOS; elsewhere a file that is replaced is missing for an instant). When a rename fails, the
// renames before are undone, except where somebody else has replaced an entry since; an entry that cannot be put back stays in the hidden
// directory, which the error names then. The end of ctx stops Unpack until the renames begin.
func (t *Tree) Unpack(ctx context.Context, path string, r io.Reader, compressed bool) (paths []string, truncated bool, err error) {
	c, err := t.call(path)
	if err != nil {
		return nil, false, err
	}
	u := &unpacker{call: c, ctx: ctx, names: &node{dir: true}}
	if err = u.run(r, compressed); err != nil {
		c.unmake()
		return nil, false, explain(path, err)
	}
	return u.paths, u.more, nil
}

type unpacker struct {
	*call
	ctx   context.Context
	meter *meter
	count int
	names *node
	paths []string
	more  bool
	mask  fs.FileMode // the bits that the umask leaves of a directory's mode
	temp  *os.Root
	syncer
}

// node is a name of the archive.
type node struct {
	dir    bool
	listed bool // among the paths; a directory that only leads to an entry is not
	under  map[string]*node
}

func (u *unpacker) run(r io.Reader, compressed bool) error {
	m, from, done, err := u.begin()
	if err != nil {
		return err
	}
	defer done()
	if err = u.read(r, compressed); err != nil {
		return err
	}
	return m.run(from, u.names)
}

// begin opens the target and makes the hidden directory in the target; done removes the hidden directory.
func (u *unpacker) begin() (m *merge, from spot, done func(), err error) {
	to, err := u.target()
	if err != nil {
		return nil, from, nil, err
	}
	temp := to
	temp.name = hidden()
	done = func() {
		if u.temp != nil {
			u.temp.Close()
		}
		if temp.info != nil && (m == nil || !m.kept) {
			_ = u.removeAll(temp)
		}
		to.dir.Close()
	}
	if err = to.dir.Mkdir(temp.name, 0o700); err == nil {
		temp.info, err = to.dir.Lstat(temp.name)
	}
	if err == nil {
		u.temp, err = u.enter(to.dir, temp.name, temp.info)
	}
	if err != nil {
		done()
		return nil, from, nil, err
	}
	from = temp.inside(u.temp, ".")
	from.info = from.self
	return &merge{call: u.call, to: to, syncer: &u.syncer}, from, done, nil
}

// target opens the directory into which the archive is unpacked, as the spot "." in itself.
func (u *unpacker) target() (spot, error) {
	var s spot
	err := u.again(func() error {
		var err error
		if s, err = u.walk(followLast | makeWay); err != nil {
			return err
		}
		if s.info == nil {
			err = u.mkdir(&s)
		}
		if err == nil {
			err = u.goInto(&s)
		}
		if err != nil {
			s.dir.Close()
		}
		return err
	})
	return s, err
}

func (u *unpacker) read(r io.Reader, compressed bool) error {
	body := &source{r: &cutReader{u.ctx, r}}
	u.meter = &meter{r: body, left: u.t.bytes}
	err := u.readAll(body, compressed)
	switch {
	case err == nil:
		return nil
	case u.ctx.Err() != nil:
		return u.ctx.Err()
	case body.err != nil:
		return &refusal{ErrBroken, "nothing was unpacked: the archive broke off", body.err}
	default:
		return err
	}
}

func (u *unpacker) readAll(body io.Reader, compressed bool) error {
	if compressed {
		z, err := gzip.NewReader(body)
		if err != nil {
			return u.broken(err)
		}
		u.meter.r = z
	}
	tr := tar.NewReader(u.meter)
	for {
		before := u.meter.read
		u.meter.headers = maxHeaders
		h, err := tr.Next()
		u.meter.headers = -1
		if err == io.EOF { //nolint:errorlint // archive/tar ends with io.EOF itself
			return u.end(before)
		}
		if err != nil {
			return u.broken(err)
		}
		if err = u.entry(h, tr); err != nil {
			return err
		}
	}
}

// broken returns the error for an archive that cannot be read.
func (u *unpacker) broken(err error) error {
	var ours *refusal
	text := "the archive is no tar archive, or damaged"
	switch {
	case errors.As(err, &ours):
		return ours
	case errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		text = "the archive is cut short"
	case errors.Is(err, gzip.ErrHeader):
		text = "the archive is not gzipped"
	}
	return &refusal{ErrInvalid, text, err}
}

// end checks the bytes behind the last entry, which ended at before: the padding of that entry, and the end mark, at least one block of
// zeros. An archive with headers there is cut short, even when the headers are whole: they announce an entry that did not come.
func (u *unpacker) end(before int64) error {
	const block = 512
	padding := (block - before%block) % block
	mark := u.meter.read - before - padding
	if mark < block || u.meter.trail < mark {
		return &refusal{kind: ErrInvalid, text: "the archive is cut short: it has no end mark behind its last entry"}
	}
	u.meter.zeros = true
	if _, err := io.Copy(io.Discard, u.meter); err != nil {
		return u.broken(err)
	}
	return nil
}

func (u *unpacker) entry(h *tar.Header, content io.Reader) error {
	if u.count++; u.count > u.t.entries {
		return &refusal{kind: ErrTooLarge, text: fmt.Sprintf("the archive holds more than %d entries", u.t.entries)}
	}
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	segs, err := entryName(h.Name)
	if err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if len(segs) == 0 { // the target directory itself
			return nil
		}
		err = u.directory(segs, h)
	case tar.TypeReg, tar.TypeGNUSparse:
		if len(segs) == 0 {
			return refuse(ErrInvalid, h.Name, "in the archive is a file without a name")
		}
		err = u.regular(segs, h, content)
	default:
		return refuse(ErrInvalid, h.Name, "in the archive is neither a file nor a directory; links and devices are not unpacked")
	}
	return explain(h.Name, err)
}

// entryName returns the names of an entry's path.
func entryName(name string) ([]string, error) {
	fault := faultOf(name, onWindows)
	if fault == "" && (strings.HasPrefix(name, "/") || filepath.VolumeName(name) != "") {
		fault = "is absolute"
	}
	segs := segments(name)
	if fault == "" && len(segs) > maxDepth {
		fault = "is too deep"
	}
	if fault != "" {
		return nil, refuse(ErrInvalid, name, "in the archive "+fault)
	}
	return segs, nil
}

// add records an entry's name, and makes the directories above the entry. fresh says that the name is new in this archive.
func (u *unpacker) add(segs []string, name string, dir bool) (fresh bool, err error) {
	at := u.names
	for i, seg := range segs {
		last := i == len(segs)-1
		next := at.under[seg]
		if fresh = next == nil; fresh {
			next = at.add(seg, dir || !last)
			if next.dir {
				err = u.makeDir(segs[:i+1], name)
			}
		} else if next.dir != (dir || !last) {
			err = refuse(ErrInvalid, name, "in the archive is a file and a directory at once")
		}
		if err != nil {
			return false, err
		}
		at = next
	}
	if !at.listed {
		u.list(filepath.Join(segs...))
	}
	at.listed = true
	return fresh, nil
}

func (n *node) add(name string, dir bool) *node {
	if n.under == nil {
		n.under = map[string]*node{}
	}
	n.under[name] = &node{dir: dir}
	return n.under[name]
}

func (u *unpacker) list(path string) {
	if len(u.paths) == maxPaths {
		u.more = true
		return
	}
	u.paths = append(u.paths, filepath.Join(u.name, path))
}

func (u *unpacker) makeDir(segs []string, name string) error {
	path := filepath.Join(segs...)
	if err := u.temp.Mkdir(path, 0o777); err != nil {
		return u.clash(err, name)
	}
	if u.mask == 0 {
		info, err := u.temp.Lstat(path)
		if err != nil {
			return err
		}
		u.mask = info.Mode() & (fs.ModePerm | fs.ModeSetgid) // setgid comes from a parent that passes on its group
	}
	return nil
}

// clash explains why a new name exists already.
func (u *unpacker) clash(err error, name string) error {
	if errors.Is(err, fs.ErrExist) {
		return refuse(ErrInvalid, name, "in the archive is the same here as another entry, from which it differs by case alone")
	}
	return err
}

func (u *unpacker) directory(segs []string, h *tar.Header) error {
	if _, err := u.add(segs, h.Name, true); err != nil {
		return err
	}
	mode := h.FileInfo().Mode().Perm()&u.mask | u.mask&fs.ModeSetgid | 0o700
	return u.temp.Chmod(filepath.Join(segs...), mode)
}

func (u *unpacker) regular(segs []string, h *tar.Header, content io.Reader) error {
	// The size of a sparse file includes its holes, which cost as much because Unpack writes them.
	if h.Size > u.t.bytes-u.meter.written {
		return u.meter.tooLarge()
	}
	u.meter.written += h.Size
	fresh, err := u.add(segs, h.Name, false)
	if err != nil {
		return err
	}
	path := filepath.Join(segs...)
	if !fresh {
		if err = u.temp.Remove(path); err != nil {
			return err
		}
	}
	f, err := u.temp.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, h.FileInfo().Mode().Perm())
	if err != nil {
		return u.clash(err, h.Name)
	}
	return errors.Join(u.fill(f, content), f.Close(), setTime(u.temp, path, h.ModTime))
}

func (u *unpacker) fill(f *os.File, content io.Reader) error {
	in := &source{r: content}
	_, err := io.Copy(f, in)
	switch {
	case in.err != nil:
		return u.broken(in.err)
	case err != nil:
		return err
	}
	return u.file(f)
}

// setTime sets plausible times only; other times would overflow on some systems.
func setTime(dir *os.Root, path string, at time.Time) error {
	if at.Unix() <= 0 || at.Year() > 2200 {
		return nil
	}
	return dir.Chtimes(path, time.Time{}, at)
}

// meter stops an archive that grows too large when decompressed.
type meter struct {
	r       io.Reader
	left    int64 // bytes that the archive may still have
	headers int64 // bytes that the headers of the next entry may still have; -1: content
	read    int64
	trail   int64 // how many of the last bytes are zeros
	written int64 // the sizes of the files so far, larger than read for sparse files
	zeros   bool  // only zeros may follow
}

func (m *meter) tooLarge() error {
	return &refusal{kind: ErrTooLarge, text: "the archive is too large when it is unpacked"}
}

func (m *meter) Read(p []byte) (int, error) {
	if m.left <= 0 || m.headers == 0 {
		p = p[:min(len(p), 1)] // the archive may be at its end
	}
	if m.left > 0 {
		p = p[:min(int64(len(p)), m.left)]
	}
	if m.headers > 0 {
		p = p[:min(int64(len(p)), m.headers)]
	}
	n, err := m.r.Read(p)
	switch {
	case n > 0 && m.left <= 0:
		return 0, m.tooLarge()
	case n > 0 && m.headers == 0:
		return 0, &refusal{kind: ErrTooLarge, text: "the archive has too many headers before one entry"}
	case m.zeros && slices.ContainsFunc(p[:n], func(b byte) bool { return b != 0 }):
		return 0, &refusal{kind: ErrInvalid, text: "the archive goes on after its end mark"}
	}
	zeros := n - len(bytes.TrimRight(p[:n], "\x00"))
	if zeros < n {
		m.trail = 0
	}
	m.trail += int64(zeros)
	m.left -= int64(n)
	m.read += int64(n)
	if m.headers > 0 {
		m.headers -= int64(n)
	}
	return n, err
}
