package snapshot

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// maxShown limits the bytes of a file whose lines are compared.
const maxShown = 2 << 20

// mostPatch limits the bytes of lines that a comparison returns for all files together. Files beyond the limit are Cut.
const mostPatch = 32 << 20

// Kind is the kind of a change.
type Kind string

// The kinds. Retyped is a file that became a link, or the reverse.
const (
	Added    Kind = "added"
	Modified Kind = "modified"
	Deleted  Kind = "deleted"
	Renamed  Kind = "renamed"
	Retyped  Kind = "type"
)

// Side is a file in one of two trees. An empty ID means that the tree has no such file.
type Side struct {
	ID   string // git's name of the content
	Mode string // 100644, 100755 (a program) or 120000 (a link, whose content is its target)
	Size int64
}

// git's modes.
const (
	modeFile    = "100644"
	modeProgram = "100755"
	modeLink    = "120000"
)

// Regular reports whether the file exists and is no link.
func (s Side) Regular() bool { return s.Mode == modeFile || s.Mode == modeProgram }

// Change is the difference of a file between two trees.
type Change struct {
	Kind           Kind
	Path           string // in the system's bytes
	Was            string // the former path of a renamed file
	Before, After  Side
	Added, Removed int
	Binary, Large  bool // the change has no lines
	Hunks          []Hunk
	Cut            bool // lines may be missing; compare the file alone to get them
}

// Hunk is a run of changed lines with three lines of context, as in a git diff.
type Hunk struct {
	OldStart, OldLines, NewStart, NewLines int
	Heading                                string
	Lines                                  []Line
}

// Line is a line of a hunk. Op is ' ', '+' or '-'.
type Line struct {
	Op        byte
	Text      string // without its line end
	NoNewline bool   // the file ends with this line, without a newline
}

// Compare lists the differences between two trees, sorted by path. Compare is limited to the files of only, if any are named.
func (s *Store) Compare(ctx context.Context, before, after string, only ...string) ([]Change, error) {
	return s.compare(ctx, before, after, true, only)
}

// Differ is Compare without the lines: the changed files and their line counts.
func (s *Store) Differ(ctx context.Context, before, after string) ([]Change, error) {
	return s.compare(ctx, before, after, false, nil)
}

func (s *Store) compare(ctx context.Context, before, after string, lines bool, only []string) ([]Change, error) {
	if !isID(before) || !isID(after) {
		return nil, fmt.Errorf("%w: it is no tree", ErrGit)
	}
	args := []string{
		"diff-tree", "-r", "-M50%", "-l1000", "-U3", "--inter-hunk-context=0", "--no-abbrev", "--no-color", "--no-ext-diff", "--no-textconv",
		"--src-prefix=a/", "--dst-prefix=b/", before, after, "--",
	}
	d := &diffReader{}
	// The lines come from a git run of their own: with -z git writes raw names, and a name with newlines could pass for lines.
	type part struct {
		read  func() error
		flags []string
	}
	parts := []part{{d.files, []string{"-z", "--raw", "--numstat"}}}
	if lines {
		parts = append(parts, part{d.patches, []string{"-p"}})
	}
	for _, part := range parts {
		err := s.git(ctx, run{read: func(out io.Reader) error {
			d.r = bufio.NewReaderSize(out, 64<<10)
			return part.read()
		}}, slices.Concat(args[:1], part.flags, args[1:], only)...)
		if err != nil || len(d.list) == 0 {
			return nil, err
		}
	}
	list := d.list
	if err := s.measure(ctx, list); err != nil {
		return nil, err
	}
	slices.SortStableFunc(list, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return list, nil
}

// measure fills in the file sizes.
func (s *Store) measure(ctx context.Context, list []Change) error {
	sides := map[string]int64{}
	for i := range list {
		for _, side := range []Side{list[i].Before, list[i].After} {
			if side.ID != "" {
				sides[side.ID] = 0
			}
		}
	}
	if len(sides) == 0 {
		return nil
	}
	var in bytes.Buffer
	for id := range sides {
		in.WriteString(id + "\n")
	}
	err := s.git(ctx, run{in: in.Bytes(), read: func(out io.Reader) error { return readSizes(out, sides) }}, "cat-file", "--batch-check=%(objectname) %(objectsize)")
	for i := range list {
		c := &list[i]
		c.Before.Size, c.After.Size = sides[c.Before.ID], sides[c.After.ID]
		if c.Large = max(c.Before.Size, c.After.Size) > maxShown; c.Large {
			c.Binary, c.Added, c.Removed, c.Hunks = false, 0, 0, nil
		}
	}
	return err
}

// readSizes reads "ID SIZE".
func readSizes(out io.Reader, sizes map[string]int64) error {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		id, size, _ := strings.Cut(lines.Text(), " ")
		n, err := strconv.ParseInt(size, 10, 64)
		if err != nil {
			return fmt.Errorf("%w: an object is missing", ErrGit)
		}
		sizes[id] = n
	}
	return lines.Err()
}

// diffReader reads git's diff output: all names, all counts and all lines, in the same order.
type diffReader struct {
	r    *bufio.Reader
	list []Change
	read int // bytes of lines
	line string
	over error // the read error at the end of the output
}

var errDiff = fmt.Errorf("%w: its difference is not understood", ErrGit)

// files reads the changed files and their line counts.
func (d *diffReader) files() error {
	if err := d.names(); err != nil {
		return err
	}
	return d.counts()
}

// field reads up to the next NUL.
func (d *diffReader) field() (string, error) {
	text, err := d.r.ReadString(0)
	if err != nil {
		return "", errors.Join(errDiff, err)
	}
	return text[:len(text)-1], nil
}

// names reads records of ":100644 100644 ID ID M" with one or two names, up to the first other record.
func (d *diffReader) names() error {
	for {
		first, err := d.r.Peek(1)
		if errors.Is(err, io.EOF) || err == nil && first[0] != ':' {
			return nil
		}
		if err != nil {
			return err
		}
		c, err := d.name()
		if err != nil {
			return err
		}
		d.list = append(d.list, c)
	}
}

func (d *diffReader) name() (c Change, err error) {
	head, err := d.field()
	if err != nil {
		return c, err
	}
	f := strings.Fields(head[1:])
	if len(f) != 5 {
		return c, errDiff
	}
	c = Change{Before: side(f[0], f[2]), After: side(f[1], f[3]), Kind: kinds()[f[4][0]]}
	if c.Kind == "" {
		return c, errDiff
	}
	if c.Path, err = d.field(); err == nil && c.Kind == Renamed {
		c.Was = c.Path
		c.Path, err = d.field()
	}
	return c, err
}

// kinds maps git's status letters to kinds.
func kinds() map[byte]Kind {
	return map[byte]Kind{'A': Added, 'D': Deleted, 'M': Modified, 'T': Retyped, 'R': Renamed}
}

func side(mode, id string) Side {
	if strings.Trim(id, "0") == "" {
		return Side{}
	}
	return Side{ID: id, Mode: mode}
}

// counts reads "3\t1\tname", or "3\t1\t" and two names for a renamed file.
func (d *diffReader) counts() error {
	for i := range d.list {
		c := &d.list[i]
		text, err := d.field()
		if err != nil {
			return err
		}
		f := strings.SplitN(text, "\t", 3)
		if len(f) != 3 {
			return errDiff
		}
		if f[2] == "" {
			_, err1 := d.field()
			_, err2 := d.field()
			err = errors.Join(err1, err2)
		}
		if err := errors.Join(err, c.count(f[0], f[1])); err != nil {
			return err
		}
	}
	return nil
}

func (c *Change) count(added, removed string) error {
	if c.Binary = added == "-"; c.Binary {
		return nil
	}
	var err1, err2 error
	c.Added, err1 = strconv.Atoi(added)
	c.Removed, err2 = strconv.Atoi(removed)
	if err1 != nil || err2 != nil {
		return errDiff
	}
	return nil
}

// next reads a line. next returns false at the end.
func (d *diffReader) next() bool {
	if d.over != nil {
		return false
	}
	text, err := d.r.ReadString('\n')
	d.read += len(text)
	if err != nil {
		d.over = err
		if !errors.Is(err, io.EOF) || text == "" {
			return false
		}
	}
	d.line = strings.TrimSuffix(text, "\n")
	return true
}

const diffHead = "diff --git "

// patches reads the lines of all files. A file that became a link has two patches, a deletion and an addition.
func (d *diffReader) patches() error {
	more := d.next()
	for i := range d.list {
		c := &d.list[i]
		if d.read > mostPatch {
			c.Cut = true
			continue
		}
		var err error
		if more, err = d.patchesOf(c, more); err != nil {
			return err
		}
	}
	return d.fault()
}

func (d *diffReader) patchesOf(c *Change, more bool) (bool, error) {
	parts := 1
	if c.Kind == Retyped {
		parts = 2
	}
	for range parts {
		if !more || !strings.HasPrefix(d.line, diffHead) {
			return false, errors.Join(errDiff, d.fault())
		}
		var err error
		if more, err = d.patch(c, d.next()); err != nil {
			return false, err
		}
	}
	if c.Kind == Retyped {
		c.Hunks = nil // a file and a link have no common lines
	}
	return more, nil
}

func (d *diffReader) fault() error {
	if errors.Is(d.over, io.EOF) {
		return nil
	}
	return d.over
}

// patch reads the hunks between a file's header and the next header.
func (d *diffReader) patch(c *Change, more bool) (bool, error) {
	for more && !strings.HasPrefix(d.line, diffHead) {
		if !strings.HasPrefix(d.line, "@@ -") {
			more = d.next() // the lines index, mode, rename, --- and +++
			continue
		}
		h, err := parseHunk(d.line)
		if err != nil {
			return false, err
		}
		if more, err = d.lines(&h); err != nil {
			return false, err
		}
		c.Hunks = append(c.Hunks, h)
	}
	return more, nil
}

// lines reads the lines that a hunk's header announces.
func (d *diffReader) lines(h *Hunk) (more bool, err error) {
	more = d.next()
	for old, now := h.OldLines, h.NewLines; more && (old > 0 || now > 0 || strings.HasPrefix(d.line, `\`)); more = d.next() {
		if d.line == "" {
			return false, errDiff
		}
		op := d.line[0]
		if op == '\\' && len(h.Lines) > 0 {
			h.Lines[len(h.Lines)-1].NoNewline = true
			continue
		}
		if strings.IndexByte(" +-", op) < 0 {
			return false, errDiff
		}
		if op != '+' {
			old--
		}
		if op != '-' {
			now--
		}
		h.Lines = append(h.Lines, Line{Op: op, Text: d.line[1:]})
	}
	return more, nil
}

// parseHunk reads "@@ -1,2 +1,3 @@ heading".
func parseHunk(line string) (h Hunk, err error) {
	ranges, heading, ok := strings.Cut(strings.TrimPrefix(line, "@@ -"), " @@")
	was, is, ok2 := strings.Cut(ranges, " +")
	if !ok || !ok2 {
		return h, errDiff
	}
	h.Heading = strings.TrimPrefix(heading, " ")
	if h.OldStart, h.OldLines, err = parseRange(was); err != nil {
		return h, err
	}
	h.NewStart, h.NewLines, err = parseRange(is)
	return h, err
}

func parseRange(text string) (start, lines int, err error) {
	first, count, found := strings.Cut(text, ",")
	lines = 1
	if found {
		if lines, err = strconv.Atoi(count); err != nil {
			return 0, 0, errDiff
		}
	}
	if start, err = strconv.Atoi(first); err != nil {
		return 0, 0, errDiff
	}
	return start, lines, nil
}

// Read returns the content named id. Read fails when the content has more than most bytes.
func (s *Store) Read(ctx context.Context, id string, most int64) (data []byte, err error) {
	if !isID(id) {
		return nil, fmt.Errorf("%w: it is no file", ErrGit)
	}
	err = s.git(ctx, run{read: func(out io.Reader) (err error) {
		data, err = io.ReadAll(io.LimitReader(out, most+1))
		return err
	}}, "cat-file", "blob", id)
	if err == nil && int64(len(data)) > most {
		err = fmt.Errorf("%w: the file is too long", ErrGit)
	}
	return data, err
}
