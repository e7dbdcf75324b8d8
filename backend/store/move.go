package store

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// The steps of a copy, as passed to Tell.
const (
	StepCopy  = "copy"
	StepProve = "prove"
)

const databaseName = "deskhand.db"

// Beside returns the names of the files that SQLite keeps beside an open database.
func Beside() []string {
	return []string{databaseName + logEnd, databaseName + indexEnd, databaseName + rollbackEnd}
}

// RecordName is the name of a file in an unfinished copy. The file lists the names that Write has made there, each with a NUL behind the
// name; the name of a directory ends in a slash.
const RecordName = "deskhand.copied"

// Copy writes a data directory that nobody has open a second time, and proves the result. Copy changes nothing in From.
type Copy struct {
	From, To string
	Skip     []string                             // names at the top that are not copied: they belong to a process, or to the place
	Bound    []string                             // names at the top below which text and links may hold the absolute path of From
	Tell     func(step string, done, total int64) // called often, with the bytes done

	total  int64
	done   int64
	step   string
	kept   []kept
	record *os.File
}

// kept is a copied entry, as the entry must be afterwards.
type kept struct {
	path string // relative to the directory
	mode fs.FileMode
	time time.Time
	sum  string // of a file
	link string // of a link
}

// ErrUnlike means that the copy differs from the original.
var ErrUnlike = errors.New("the copy is not what it was made of")

// each calls f for every entry to be copied, directories before their content. Sockets and pipes are left out, as they hold nothing.
func (c *Copy) each(ctx context.Context, f func(rel string, info fs.FileInfo) error) error {
	return filepath.WalkDir(c.From, func(path string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			return err
		case path == c.From:
			return nil
		}
		rel, err := filepath.Rel(c.From, path)
		if err != nil {
			return err
		}
		if slices.Contains(c.Skip, rel) || rel == RecordName || strings.HasPrefix(rel, unfinished) {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil || info.Mode()&(fs.ModeSocket|fs.ModeNamedPipe|fs.ModeDevice|fs.ModeIrregular) != 0 {
			return err
		}
		return f(rel, info)
	})
}

// Survey returns how many bytes and files there are to copy.
func (c *Copy) Survey(ctx context.Context) (size int64, files int, err error) {
	err = c.each(ctx, func(_ string, info fs.FileInfo) error {
		if info.Mode().IsRegular() {
			size += info.Size()
			files++
		}
		return nil
	})
	return size, files, err
}

// Write copies all entries into To, which must exist. The copy is on the disk when Write returns. After an error, Undo removes the copy.
func (c *Copy) Write(ctx context.Context) (err error) {
	if err := settle(ctx, filepath.Join(c.From, databaseName)); err != nil {
		return err
	}
	if c.total, _, err = c.Survey(ctx); err != nil {
		return err
	}
	c.step, c.done, c.kept = StepCopy, 0, nil
	if c.record, err = os.OpenFile(filepath.Join(c.To, RecordName), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.record.Close()) }()
	if err := c.each(ctx, func(rel string, info fs.FileInfo) error { return c.put(ctx, rel, info) }); err != nil {
		return err
	}
	for _, k := range slices.Backward(c.kept) { // a read-only directory gets its mode after its content
		if k.mode.IsDir() {
			if err := errors.Join(os.Chmod(filepath.Join(c.To, k.path), k.mode.Perm()), syncDir(filepath.Join(c.To, k.path))); err != nil {
				return err
			}
		}
	}
	return errors.Join(syncDir(c.To), syncDisk(c.To))
}

func (c *Copy) put(ctx context.Context, rel string, info fs.FileInfo) (err error) {
	k := kept{path: rel, mode: info.Mode(), time: info.ModTime()}
	from, to := filepath.Join(c.From, rel), filepath.Join(c.To, rel)
	switch {
	case info.IsDir():
		err = c.made(rel+"/", os.Mkdir(to, 0o700))
	case info.Mode()&fs.ModeSymlink != 0:
		if k.link, err = os.Readlink(from); err != nil {
			return err
		}
		if c.bound(rel) {
			k.link = c.retarget(k.link)
		}
		err = c.made(rel, os.Symlink(k.link, to))
	default:
		k.sum, err = c.putFile(ctx, from, to, k)
	}
	c.kept = append(c.kept, k)
	return err
}

// made records an entry that was made in To. An entry that could not be made may exist all the same, and then belongs to somebody else.
// The record follows the entry: a kill between the two leaves an empty file of ours, which does no harm.
func (c *Copy) made(rel string, err error) error {
	if err != nil {
		return err
	}
	if _, err = c.record.WriteString(rel + "\x00"); err != nil {
		err = errors.Join(err, os.Remove(filepath.Join(c.To, rel))) // without a record nobody would know whose entry it is
	}
	return err
}

// Undo removes the entries of an unfinished Write from a directory. Any other entry belongs to somebody else and stays, with the
// directories above.
func Undo(dir string) error {
	root, err := os.OpenRoot(dir) // a Root, as somebody may have put a link in place of a directory
	if err != nil {
		return err
	}
	defer root.Close()
	text, err := root.ReadFile(RecordName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	names := strings.Split(string(text), "\x00")
	names = names[:len(names)-1] // drops the end behind the last NUL, which is empty or part of a name
	if slices.Contains(names, databaseName) {
		names = append(names, Beside()...) // left by a Prove that was killed
	}
	var errs []error
	for _, name := range slices.Backward(names) { // content before its directory
		errs = append(errs, undo(root, name))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return root.Remove(RecordName)
}

func undo(root *os.Root, name string) error {
	path, isDir := strings.CutSuffix(name, "/")
	if info, err := root.Lstat(path); err == nil && info.IsDir() == isDir { // otherwise the entry has gone or was replaced
		err = root.Remove(path)
		if errors.Is(err, fs.ErrPermission) { // stores of git and of skills have read-only directories
			_ = root.Chmod(filepath.Dir(path), 0o700)
			err = root.Remove(path)
		}
		if isDir && errors.Is(err, fs.ErrExist) { // the directory is not empty
			return nil
		}
		return err
	}
	return nil
}

func (c *Copy) bound(rel string) bool {
	top, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
	return slices.Contains(c.Bound, top)
}

// retarget replaces the old path in a text by the new path. A name that only begins with the old path stays.
func (c *Copy) retarget(text string) string {
	var b strings.Builder
	for {
		at := strings.Index(text, c.From)
		if at < 0 {
			b.WriteString(text)
			return b.String()
		}
		end := at + len(c.From)
		b.WriteString(text[:at])
		if end == len(text) || strings.ContainsRune("/\\\"'\n\r\t :;,)]}", rune(text[end])) {
			b.WriteString(c.To)
		} else {
			b.WriteString(c.From)
		}
		text = text[end:]
	}
}

// longestText is the largest file in which paths are replaced: first lines of scripts, settings of environments. Code compiled from such
// files may hold the old path as well, for its traces, and is compiled anew when the path does not fit.
const longestText = 1 << 20

func (c *Copy) putFile(ctx context.Context, from, to string, k kept) (sum string, err error) {
	in, err := os.Open(from)
	if err != nil {
		return "", err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, k.mode.Perm()|0o200)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if err := c.made(k.path, nil); err != nil {
		return "", err
	}
	h := sha256.New()
	var source io.Reader = &counted{ctx, in, c}
	if info, err := in.Stat(); err == nil && c.bound(k.path) && info.Size() <= longestText {
		data, err := io.ReadAll(source)
		if err != nil {
			return "", err
		}
		if !bytes.ContainsRune(data, 0) {
			data = []byte(c.retarget(string(data)))
		}
		source = bytes.NewReader(data)
	}
	if _, err := io.Copy(io.MultiWriter(out, h), source); err != nil {
		return "", err
	}
	if runtime.GOOS != "linux" { // Linux syncs the whole disk in the end
		err = out.Sync()
	}
	return hex.EncodeToString(h.Sum(nil)), errors.Join(err, out.Chmod(k.mode.Perm()), os.Chtimes(to, time.Time{}, k.time))
}

// counted is a reader that ends with its context and reports its progress.
type counted struct {
	ctx context.Context //nolint:containedctx // a reader cannot be cancelled otherwise
	in  io.Reader
	c   *Copy
}

func (r *counted) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, r.ctx.Err()
	}
	n, err := r.in.Read(p)
	r.c.done += int64(n)
	if r.c.Tell != nil {
		r.c.Tell(r.c.step, r.c.done, r.c.total)
	}
	return n, err
}

// Prove reads the copy again. Prove fails unless every file has its bytes and its mode, no other file exists, and the database is whole
// and has as many rows in each table.
func (c *Copy) Prove(ctx context.Context) error {
	c.step, c.done = StepProve, 0
	for _, k := range c.kept {
		if err := c.prove(ctx, k); err != nil {
			return err
		}
	}
	if err := c.nothingElse(ctx); err != nil {
		return err
	}
	from, err := rowsOf(ctx, filepath.Join(c.From, databaseName))
	if err != nil {
		return err
	}
	to, err := rowsOf(ctx, filepath.Join(c.To, databaseName))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnlike, err)
	}
	if !slices.Equal(from, to) {
		return fmt.Errorf("%w: the databases have not the same rows", ErrUnlike)
	}
	return nil
}

func (c *Copy) prove(ctx context.Context, k kept) error {
	name := filepath.Join(c.To, k.path)
	info, err := os.Lstat(name)
	if err != nil {
		return err
	}
	if info.Mode().Type() != k.mode.Type() || k.mode.Type()&fs.ModeSymlink == 0 && info.Mode().Perm() != k.mode.Perm() {
		return fmt.Errorf("%w: %s has the rights %s and not %s", ErrUnlike, k.path, info.Mode(), k.mode)
	}
	switch {
	case k.mode.IsDir():
		return nil
	case k.link != "":
		link, err := os.Readlink(name)
		if err == nil && link != k.link {
			err = fmt.Errorf("%w: %s", ErrUnlike, k.path)
		}
		return err
	}
	in, err := os.Open(name)
	if err != nil {
		return err
	}
	defer in.Close()
	h := sha256.New()
	if _, err := io.Copy(h, &counted{ctx, in, c}); err != nil {
		return err
	}
	if hex.EncodeToString(h.Sum(nil)) != k.sum {
		return fmt.Errorf("%w: %s", ErrUnlike, k.path)
	}
	return nil
}

// nothingElse fails when the copy has an entry that was not copied: somebody else works in the directory.
func (c *Copy) nothingElse(ctx context.Context) error {
	known := map[string]bool{}
	for _, k := range c.kept {
		known[k.path] = true
	}
	there := Copy{From: c.To, Skip: c.Skip}
	return there.each(ctx, func(rel string, _ fs.FileInfo) error {
		if !known[rel] {
			return fmt.Errorf("%w: %s was not copied and is there", ErrUnlike, rel)
		}
		return nil
	})
}

// DatabaseSum returns the checksum of the copied database.
func (c *Copy) DatabaseSum() string {
	for _, k := range c.kept {
		if k.path == databaseName {
			return k.sum
		}
	}
	return ""
}

// DatabaseSum returns the checksum of the database in a directory that nobody has open.
func DatabaseSum(dir string) (string, error) {
	file := filepath.Join(dir, databaseName)
	if journaled(file) {
		return "", errors.New("a program that used the database was killed, or uses it")
	}
	in, err := os.Open(file)
	if err != nil {
		return "", err
	}
	defer in.Close()
	h := sha256.New()
	_, err = io.Copy(h, in)
	return hex.EncodeToString(h.Sum(nil)), err
}

// journaled reports whether a part of a database is in its log, or is yet to be rolled back.
func journaled(file string) bool {
	for _, end := range []string{logEnd, rollbackEnd} {
		if info, err := os.Stat(file + end); err == nil && info.Size() > 0 {
			return true
		}
	}
	return false
}

// Holds reports whether a directory has a database.
func Holds(dir string) bool {
	info, err := os.Stat(filepath.Join(dir, databaseName))
	return err == nil && info.Mode().IsRegular() && info.Size() > 0
}

// settle moves the log into the database, so that its file is complete.
func settle(ctx context.Context, file string) (err error) {
	db, err := sql.Open("sqlite", dsn(file, url.Values{}))
	if err != nil {
		return fmt.Errorf("copying the database: %w", err)
	}
	db.SetMaxOpenConns(1)
	var busy, log, moved int
	err = db.QueryRowContext(ctx, "PRAGMA wal_checkpoint(TRUNCATE)").Scan(&busy, &log, &moved)
	if err = errors.Join(err, db.Close()); err != nil {
		return fmt.Errorf("copying the database: %w", err)
	}
	if busy != 0 || journaled(file) {
		return errors.New("copying the database: another program has it open")
	}
	return nil
}

// rowsOf has SQLite check a whole database, and returns the number of rows of each table.
func rowsOf(ctx context.Context, file string) (rows []string, err error) {
	db, err := openReader(file, false)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	defer func() { err = errors.Join(err, db.Close()) }()
	var said string
	if err := db.QueryRowContext(ctx, "PRAGMA integrity_check(1)").Scan(&said); err != nil || said != "ok" {
		return nil, errors.Join(fmt.Errorf("the database is damaged: %s", said), err)
	}
	tables, err := namesIn(ctx, db, `SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name`)
	if err != nil {
		return nil, err
	}
	for _, t := range tables {
		var n string
		if err := db.QueryRowContext(ctx, `SELECT count(*) FROM "`+strings.ReplaceAll(t, `"`, `""`)+`"`).Scan(&n); err != nil {
			return nil, fmt.Errorf("counting the rows of %s: %w", t, err)
		}
		rows = append(rows, t+" "+n)
	}
	return rows, nil
}

func namesIn(ctx context.Context, db *sql.DB, query string) (names []string, err error) {
	list, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer list.Close()
	for list.Next() {
		var name string
		if err := list.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, list.Err()
}
