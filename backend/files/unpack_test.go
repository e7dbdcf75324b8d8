package files_test

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
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"deskhand/backend/files"
)

// entry is one entry of an archive.
type entry struct {
	tar.Header
	content string
}

func file(name, content string) entry {
	return entry{tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(content))}, content}
}

func directory(name string) entry {
	return entry{tar.Header{Name: name, Typeflag: tar.TypeDir, Mode: 0o755}, ""}
}

func special(kind byte, name, target string) entry {
	return entry{tar.Header{Name: name, Typeflag: kind, Linkname: target, Mode: 0o644, Devmajor: 1, Devminor: 5}, ""}
}

// archiveBytes is the entries as a tar archive, with or without its end mark.
func archiveBytes(ended bool, entries ...entry) []byte {
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	for _, e := range entries {
		if err := w.WriteHeader(&e.Header); err != nil {
			panic(err)
		}
		if _, err := io.WriteString(w, e.content); err != nil {
			panic(err)
		}
	}
	end := w.Close
	if !ended {
		end = w.Flush
	}
	if err := end(); err != nil {
		panic(err)
	}
	return buf.Bytes()
}

func archive(entries ...entry) io.Reader { return bytes.NewReader(archiveBytes(true, entries...)) }

func gzipped(data []byte) []byte {
	var buf bytes.Buffer
	z := gzip.NewWriter(&buf)
	if _, err := z.Write(data); err != nil {
		panic(err)
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return buf.Bytes()
}

func TestUnpackReplacesAndKeeps(t *testing.T) {
	when := time.Date(2021, 3, 4, 5, 6, 7, 0, time.UTC)
	exe := file("bin/exe", "run")
	exe.Mode, exe.ModTime = 0o4751, when
	closed := directory("closed")
	closed.Mode = 0o1500
	data := archiveBytes(
		true,
		entry{tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "pax_global_header", PAXRecords: map[string]string{"comment": "a commit"}}, ""},
		directory("./"), directory("./bin/"), exe, closed, file("closed/in", "in"),
		file("file", "new"), file("dir/in/deep", "new deep"), file("dir/new", "n"), directory("dir/in"), file("implied/way/x", "x"),
		file("twice", "first and longer"), file("twice", "second"), file("..dots..", "fine"), file(`back\slash`, "fine"), file("empty", ""),
	)
	want := []string{
		"bin", "bin/exe", "closed", "closed/in", "file", "dir/in/deep", "dir/new", "dir/in", "implied/way/x", "twice", "..dots..", `back\slash`, "empty",
	}
	for name, c := range map[string]struct {
		data       []byte
		compressed bool
	}{
		"plain": {data, false}, "gzip": {gzipped(data), true}, "two gzip members": {slices.Concat(gzipped(data[:700]), gzipped(data[700:])), true},
		"padded": {slices.Concat(data, make([]byte, 10240)), false},
	} {
		t.Run(name, func(t *testing.T) {
			w := diskWorld(t)
			w.link(t, "dir/z", "twice") // a link is replaced, and not followed
			w.must(t, os.Chmod(filepath.Join(w.root, "dir"), 0o711))
			paths, truncated, err := w.Unpack(t.Context(), ".", iotest.HalfReader(bytes.NewReader(c.data)), c.compressed)
			if err != nil || truncated {
				t.Fatal(truncated, err)
			}
			for i, path := range paths {
				rel, err := filepath.Rel(w.root, path)
				if err != nil || i >= len(want) || rel != filepath.FromSlash(want[i]) {
					t.Errorf("path %d of Unpack: got %q, want the paths %q", i, path, want)
				}
			}
			for name, content := range map[string]string{
				"file": "new", "dir/in/deep": "new deep", "dir/z": "z", "dir/new": "n", "implied/way/x": "x", "twice": "second",
				"..dots..": "fine", "bin/exe": "run", "closed/in": "in", "empty": "", "home/deskhand/token": secret,
			} {
				if got := w.read(t, "root/"+name); got != content {
					t.Errorf("%s after Unpack: got %q, want %q", name, got, content)
				}
			}
			for name, want := range map[string]fs.FileMode{
				"bin/exe": 0o751, "closed": fs.ModeDir | 0o700, "dir": fs.ModeDir | 0o711, "file": 0o644, "bin": fs.ModeDir | 0o755,
			} {
				if got := mode(t, filepath.Join(w.root, name)); got != want {
					t.Errorf("mode of %s: got %v, want %v", name, got, want)
				}
			}
			if info, err := os.Lstat(filepath.Join(w.root, "bin/exe")); err != nil || !info.ModTime().Equal(when) {
				t.Errorf("time of bin/exe: got %v, error %v, want %v", info.ModTime(), err, when)
			}
			if info, err := os.Lstat(filepath.Join(w.root, "twice")); err != nil || !info.Mode().IsRegular() {
				t.Errorf("second entry named twice: got %v, error %v, want a regular file", info, err)
			}
			noRemains(t, w.root)
		})
	}
}

func TestUnpackMakesTarget(t *testing.T) {
	w := newWorld(t)
	w.link(t, "dir", "link")
	for _, to := range []string{"new/way/to", "dir", "link", "", filepath.Join(w.root, "absolute")} {
		paths, _, err := w.Unpack(t.Context(), to, archive(file("x/y", to)), false)
		at := to
		if !filepath.IsAbs(to) {
			at = filepath.Join(w.root, to)
		}
		at = filepath.Join(at, "x", "y")
		if err != nil || !slices.Equal(paths, []string{at}) {
			t.Errorf("Unpack to %q: got the paths %q, error %v, want %q", to, paths, err, at)
		}
		if data, err := os.ReadFile(at); string(data) != to {
			t.Errorf("file unpacked to %q: got %q, error %v, want %q", to, data, err, to)
		}
	}
	if paths, truncated, err := w.Unpack(t.Context(), "nothing", archive(), false); len(paths) > 0 || truncated || err != nil {
		t.Errorf("Unpack of an empty archive: got %q, truncated %v, error %v, want no path", paths, truncated, err)
	}
	if !mode(t, filepath.Join(w.root, "nothing")).IsDir() {
		t.Error("its target is missing")
	}
	var many []entry
	for i := range 1030 {
		many = append(many, file(fmt.Sprint("f", i), ""))
	}
	paths, truncated, err := w.Unpack(t.Context(), "many", archive(many...), false)
	if len(paths) != 1024 || !truncated || err != nil || paths[1023] != filepath.Join(w.root, "many", "f1023") {
		t.Errorf("Unpack of many files: got %d paths, truncated %v, error %v, want 1024, truncated", len(paths), truncated, err)
	}
	if _, truncated, err = w.Unpack(t.Context(), "many", archive(many[:1024]...), false); truncated || err != nil {
		t.Errorf("Unpack of 1024 files: got truncated %v, error %v, want not truncated", truncated, err)
	}
	if got := names(t, filepath.Join(w.root, "many")); len(got) != 1030 {
		t.Errorf("files unpacked to many: got %d, want 1030", len(got))
	}
}

// raw is a header that archive/tar would not write, over one that it would.
func raw(e entry, change func(block []byte)) []byte {
	data := archiveBytes(true, e)
	change(data[:512])
	sum := 0
	copy(data[148:156], "        ")
	for _, b := range data[:512] {
		sum += int(b)
	}
	copy(data[148:156], fmt.Sprintf("%06o\x00 ", sum))
	return data
}

func TestUnpackRefusesHostileArchives(t *testing.T) {
	good := archiveBytes(true, file("good", "good"), file("dir/z", "replaced"))
	two := slices.Concat(archiveBytes(true, file("a", "a")), archiveBytes(true, file("b", "b")))
	zipped := gzipped(good)
	deep := strings.Repeat("d/", 300) + "x"
	cases := map[string]struct {
		data       []byte
		compressed bool
		want       error
	}{
		"link":              {archiveBytes(true, file("good", ""), special(tar.TypeSymlink, "l", "../outside/canary")), false, files.ErrInvalid},
		"link inside":       {archiveBytes(true, file("good", ""), special(tar.TypeSymlink, "l", "good")), false, files.ErrInvalid},
		"through a link":    {archiveBytes(true, special(tar.TypeSymlink, "l", "../outside"), file("l/canary", "x")), false, files.ErrInvalid},
		"hard link":         {archiveBytes(true, file("good", ""), special(tar.TypeLink, "l", "../outside/canary")), false, files.ErrInvalid},
		"hard link inside":  {archiveBytes(true, file("good", ""), special(tar.TypeLink, "l", "good")), false, files.ErrInvalid},
		"device":            {archiveBytes(true, special(tar.TypeChar, "zero", "")), false, files.ErrInvalid},
		"block device":      {archiveBytes(true, special(tar.TypeBlock, "disk", "")), false, files.ErrInvalid},
		"pipe":              {archiveBytes(true, special(tar.TypeFifo, "p", "")), false, files.ErrInvalid},
		"unknown":           {raw(file("x", ""), func(b []byte) { b[156] = 'Q' }), false, files.ErrInvalid},
		"absolute":          {archiveBytes(true, file("good", ""), file("/etc/x", "x")), false, files.ErrInvalid},
		"absolute inside":   {archiveBytes(true, directory("/")), false, files.ErrInvalid},
		"dots":              {archiveBytes(true, file("../x", "x")), false, files.ErrInvalid},
		"dots in between":   {archiveBytes(true, file("a/../../x", "x")), false, files.ErrInvalid},
		"dots inside":       {archiveBytes(true, file("a/../x", "x")), false, files.ErrInvalid},
		"dots at the end":   {archiveBytes(true, directory("a/..")), false, files.ErrInvalid},
		"no name":           {raw(file("x", ""), func(b []byte) { b[0] = 0 }), false, files.ErrInvalid},
		"only a dot":        {raw(file("x", ""), func(b []byte) { b[0] = '.' }), false, files.ErrInvalid},
		"under a file":      {archiveBytes(true, file("a", "a"), file("a/b", "b")), false, files.ErrInvalid},
		"file over dir":     {archiveBytes(true, file("a/b", "b"), file("a", "a")), false, files.ErrInvalid},
		"dir over file":     {archiveBytes(true, file("a", "a"), directory("a")), false, files.ErrInvalid},
		"long name":         {archiveBytes(true, file("good", ""), file(strings.Repeat("n", 256), "")), false, files.ErrInvalid},
		"long path":         {archiveBytes(true, file(strings.Repeat("n/", 3000)+"n", "")), false, files.ErrInvalid},
		"deep":              {archiveBytes(true, file(deep, "")), false, files.ErrInvalid},
		"private":           {archiveBytes(true, file("good", ""), file("home/deskhand/token", "mine")), false, files.ErrOutside},
		"private dir":       {archiveBytes(true, directory("home/deskhand")), false, files.ErrOutside},
		"file for private":  {archiveBytes(true, file("home/deskhand", "x")), false, files.ErrOutside},
		"file for a dir":    {archiveBytes(true, file("good", ""), file("dir/in", "x")), false, files.ErrExists},
		"dir for a file":    {archiveBytes(true, file("a", ""), file("file/x", "x")), false, files.ErrExists},
		"dir for a link":    {archiveBytes(true, file("a", ""), file("link/z", "x")), false, files.ErrExists},
		"empty":             {nil, false, files.ErrInvalid},
		"no tar":            {[]byte(strings.Repeat("no tar archive. ", 100)), false, files.ErrInvalid},
		"gzip, not said":    {zipped, false, files.ErrInvalid},
		"gzip that is none": {good, true, files.ErrInvalid},
		"no end mark":       {archiveBytes(false, file("good", "good")), false, files.ErrInvalid},
		"cut in a header":   {good[:1024+300], false, files.ErrInvalid},
		"cut in a file":     {good[:512+2], false, files.ErrInvalid},
		"cut after a file":  {good[:1024], false, files.ErrInvalid},
		"cut gzip":          {zipped[:len(zipped)-6], true, files.ErrInvalid},
		"gzip, wrong sum":   {slices.Concat(zipped[:len(zipped)-8], []byte("01234567")), true, files.ErrInvalid},
		"garbage":           {slices.Concat(good, []byte("garbage")), false, files.ErrInvalid},
		"garbage in gzip":   {gzipped(slices.Concat(good, []byte("garbage"))), true, files.ErrInvalid},
		"garbage on gzip":   {slices.Concat(zipped, []byte("garbage")), true, files.ErrInvalid},
		"two archives":      {two, false, files.ErrInvalid},
		"broken header":     {slices.Concat(good[:1024], raw(file("x", ""), func([]byte) {})[:100], []byte("7777777"), good[107:]), false, files.ErrInvalid},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.link(t, "dir", "link")
			outside, before := snapshot(t, w.outside), contents(snapshot(t, w.root))
			for _, to := range []string{"", "."} {
				_, _, err := w.Unpack(t.Context(), to, bytes.NewReader(c.data), c.compressed)
				wants(t, name, err, c.want)
			}
			if !strings.Contains(name, "private") && errors.Is(c.want, files.ErrInvalid) { // the target is made, and is gone again
				_, _, err := w.Unpack(t.Context(), "made/for/it", bytes.NewReader(c.data), c.compressed)
				wants(t, name, err, c.want)
			}
			unchanged(t, w.outside, outside)
			if after := contents(snapshot(t, w.root)); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Errorf("root after %s was refused: got %q, want %q", name, after, before)
			}
		})
	}
}

// contents is a snapshot without the times of directories, which change when something is made there and removed again.
func contents(seen map[string]string) map[string]string {
	for name, what := range seen {
		if strings.HasPrefix(what, "d") {
			seen[name], _, _ = strings.Cut(what, " ")
		}
	}
	return seen
}

func TestBrokenArchiveLeavesNothing(t *testing.T) {
	w := newWorld(t)
	before := names(t, w.root)
	data := archiveBytes(true, file("a", strings.Repeat("a", 5000)), file("b", "b"))
	lost := errors.New("the caller has gone")
	for _, compressed := range []bool{false, true} {
		if compressed {
			data = gzipped(data)
		}
		for at := range data {
			if at > 100 && at%97 != 0 {
				continue
			}
			r := io.MultiReader(bytes.NewReader(data[:at]), iotest.ErrReader(lost))
			_, _, err := w.Unpack(t.Context(), "x/y", r, compressed)
			wants(t, fmt.Sprint(at), err, files.ErrBroken)
			wants(t, fmt.Sprint(at), err, lost)

			ctx, cancel := context.WithCancel(t.Context())
			cut := readerFunc(func([]byte) (int, error) { cancel(); return 0, io.ErrUnexpectedEOF })
			_, _, err = w.Unpack(ctx, "x/y", io.MultiReader(bytes.NewReader(data[:at]), cut), compressed)
			wants(t, fmt.Sprint(at), err, context.Canceled)
			cancel()
		}
	}
	if after := names(t, w.root); !slices.Equal(before, after) {
		t.Errorf("entries after broken archives: got %q, want %q", after, before)
	}
}

// An archive that was cut at any block before its end mark is none, also behind headers that are whole: pax records, long names of GNU's tar.
func TestUnpackRefusesEveryCut(t *testing.T) {
	long := strings.Repeat("long/", 30) + "name"
	pax, gnu := file(long, "pax"), file(long, "gnu")
	pax.Format, pax.PAXRecords = tar.FormatPAX, map[string]string{"DESKHAND.note": strings.Repeat("x", 700)}
	gnu.Format = tar.FormatGNU
	global := entry{tar.Header{Typeflag: tar.TypeXGlobalHeader, Name: "global", PAXRecords: map[string]string{"comment": "x"}}, ""}
	for name, data := range map[string][]byte{
		"pax":            archiveBytes(true, file("a", "a"), pax),
		"GNU":            archiveBytes(true, file("a", "a"), gnu),
		"GNU, a blank":   archiveBytes(true, file("a", strings.Repeat("\x00", 1024)), gnu),
		"global header":  archiveBytes(true, file("a", "a"), global),
		"a zeroed file":  archiveBytes(true, file("a", strings.Repeat("\x00", 2048))),
		"only a pax one": archiveBytes(true, pax),
	} {
		w := newWorld(t)
		mark := len(data) - 1024
		for at := 0; at <= mark; at += 512 {
			_, _, err := w.Unpack(t.Context(), "x", bytes.NewReader(data[:at]), false)
			wants(t, fmt.Sprintf("%s, cut at %d of %d", name, at, len(data)), err, files.ErrInvalid)
			if at < mark && at > 0 { // and the same with an end mark behind the cut
				_, _, err := w.Unpack(t.Context(), "ended", bytes.NewReader(slices.Concat(data[:at], make([]byte, 1024))), false)
				if err == nil && !wholeAt(data, at) {
					t.Errorf("%s, cut at %d and ended: it is unpacked, want that it is refused", name, at)
				}
			}
		}
		if after := names(t, w.root); slices.ContainsFunc(after, func(name string) bool { return strings.HasPrefix(name, "x/") }) {
			t.Errorf("%s: got %d names of a refused archive, want none", name, len(after))
		}
		if _, _, err := w.Unpack(t.Context(), "whole", bytes.NewReader(data), false); err != nil {
			t.Errorf("Unpack of %s, whole: got error %v, want none", name, err)
		}
	}
}

// wholeAt tells whether an entry ends at a place, or the content of one goes on with zeros: then an end mark there is one.
func wholeAt(data []byte, at int) bool {
	in := bytes.NewReader(data)
	r := tar.NewReader(in)
	for {
		h, err := r.Next()
		if err != nil {
			return false
		}
		begins := len(data) - in.Len()
		_, _ = io.Copy(io.Discard, r)
		ends := (len(data) - in.Len() + 511) / 512 * 512
		if at == ends || at > begins-1 && at < ends && h.Size > 0 || h.Typeflag == tar.TypeXGlobalHeader && at == ends {
			return true
		}
	}
}

// A cut that nobody hears: what reads does not look at the context itself.
func TestUnpackEndsWithContext(t *testing.T) {
	w := newWorld(t)
	before := names(t, w.root)
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	data := archiveBytes(true, file("a", strings.Repeat("a", 1<<20)))
	_, _, err := w.Unpack(ctx, "x", readerFunc(func(p []byte) (int, error) {
		if n += copy(p, data[n:min(len(data), n+4096)]); n > 500_000 {
			cancel()
		}
		return min(len(p), 4096), nil
	}), false)
	wants(t, "", err, context.Canceled)
	if n > 600_000 {
		t.Errorf("bytes read after the context ended: got %d, want at most 600000", n)
	}
	if after := names(t, w.root); !slices.Equal(before, after) {
		t.Errorf("entries after a cut Unpack: got %q, want %q", after, before)
	}
}

// Whoever reads while an archive is put over a tree sees each file whole, old or new, and never none.
func TestReadersSeeWholeFilesDuringUnpack(t *testing.T) {
	w := newWorld(t)
	const count = 60
	var entries []entry
	for i := range count {
		name := fmt.Sprintf("d%d/f%d", i%7, i)
		w.put(t, "root/tree/"+name, "old old")
		entries = append(entries, file(name, "new"), file(name+".more", "new"))
	}
	for range 5 {
		stop, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			for {
				for i := range count {
					data, err := os.ReadFile(filepath.Join(w.root, "tree", fmt.Sprintf("d%d", i%7), fmt.Sprintf("f%d", i)))
					if err != nil || string(data) != "old old" && string(data) != "new" {
						t.Errorf("reader during Unpack: got %q, error %v, want the old file or the new", data, err)
						return
					}
				}
				select {
				case <-stop:
					return
				default:
				}
			}
		}()
		if _, _, err := w.Unpack(t.Context(), "tree", archive(entries...), false); err != nil {
			t.Error(err)
		}
		close(stop)
		<-done
		for i := range count {
			w.must(t, os.WriteFile(filepath.Join(w.root, "tree", fmt.Sprintf("d%d/f%d", i%7, i)), []byte("old old"), 0o644))
		}
	}
}

func TestUnpacksAtOnceShareDirectories(t *testing.T) {
	w := newWorld(t)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for range 10 {
				content := fmt.Sprint("from ", i)
				_, _, err := w.Unpack(t.Context(), "shared/way", archive(file("a/x", content), file("b/y", content)), false)
				if err != nil && !errors.Is(err, files.ErrExists) && !errors.Is(err, files.ErrChanged) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for _, name := range []string{"a/x", "b/y"} {
		if got := w.read(t, "root/shared/way/"+name); !strings.HasPrefix(got, "from ") {
			t.Errorf("%s after two Unpacks at once: got %q, want the content of one", name, got)
		}
	}
	noRemains(t, w.root)
}

func bounded(t *testing.T, bytes int64, entries int) world {
	t.Helper()
	w := newWorld(t)
	w.Tree = open(t, files.Config{Roots: []string{w.root}, Private: []string{w.private}, MaxUnpacked: bytes, MaxEntries: entries})
	return w
}

// sparseBytes is an archive of one file in GNU's format 1.0: a map of one hole, and a size that costs the sender nothing.
func sparseBytes(size string) []byte {
	content := "1\n" + size + "\n0\n"
	e := file("GNUSparseFile.0/bomb", content+strings.Repeat("\x00", 512-len(content)))
	e.Size, e.Format = 512, tar.FormatPAX
	var buf bytes.Buffer
	w := tar.NewWriter(&buf)
	pax := "GNU.sparse.major=1\nGNU.sparse.minor=0\nGNU.sparse.name=bomb\nGNU.sparse.realsize=" + size + "\n"
	var records strings.Builder
	for line := range strings.Lines(pax) {
		n := len(line) + 1
		n += len(fmt.Sprint(n + len(fmt.Sprint(n))))
		fmt.Fprintf(&records, "%d %s", n, line)
	}
	x := raw(file("PaxHeaders/bomb", records.String()), func(b []byte) { b[156] = 'x' })
	buf.Write(x[:len(x)-1024])
	if err := w.WriteHeader(&e.Header); err != nil {
		panic(err)
	}
	if _, err := io.WriteString(w, e.content); err != nil {
		panic(err)
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return buf.Bytes()
}

func TestUnpackRefusesLargeArchives(t *testing.T) {
	exact := archiveBytes(true, file("a", strings.Repeat("a", 1000)))
	var paxes bytes.Buffer // headers that announce headers
	for range 100 {
		x := raw(file("PaxHeaders/x", "999985 comment="+strings.Repeat("x", 999_969)+"\n"), func(b []byte) { b[156] = 'x' })
		paxes.Write(x[:len(x)-1024])
	}
	large := slices.Concat(exact[:1536], make([]byte, 1<<20))
	var many []entry
	for i := range 11 {
		many = append(many, directory(fmt.Sprint("d", i)))
	}
	again := slices.Repeat([]entry{file("same", "")}, 11)
	for name, c := range map[string]struct {
		data    []byte
		bytes   int64
		entries int
		want    error
	}{
		"as large as it may be": {exact, int64(len(exact)), 1, nil},
		"one byte more":         {exact, int64(len(exact)) - 1, 1, files.ErrTooLarge},
		"a size that lies":      {raw(file("a", ""), func(b []byte) { copy(b[124:], "77777777777") }), 1 << 20, 1, files.ErrTooLarge},
		"a sparse file":         {sparseBytes("100000"), 1 << 20, 1, nil},
		"a sparse bomb":         {sparseBytes("1099511627776"), 1 << 30, 1, files.ErrTooLarge},
		"headers":               {paxes.Bytes(), 1 << 30, 1, files.ErrTooLarge},
		"zeros at the end":      {large, 1 << 20, 1, files.ErrTooLarge},
		"entries":               {archiveBytes(true, many...), 1 << 20, 10, files.ErrTooLarge},
		"just as many entries":  {archiveBytes(true, many[1:]...), 1 << 20, 10, nil},
		"one name":              {archiveBytes(true, again...), 1 << 20, 10, files.ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			w := bounded(t, c.bytes, c.entries)
			before := names(t, w.root)
			for _, compressed := range []bool{false, true} {
				data := c.data
				if compressed {
					data = gzipped(data)
				}
				_, _, err := w.Unpack(t.Context(), "made", bytes.NewReader(data), compressed)
				wants(t, name, err, c.want)
				if err == nil {
					w.must(t, os.RemoveAll(filepath.Join(w.root, "made")))
				}
			}
			if after := names(t, w.root); !slices.Equal(before, after) {
				t.Errorf("entries after a refused archive: got %q, want %q", after, before)
			}
		})
	}
}

// A bomb of 10 GiB, as gzip packs it into 10 MiB, stops at the limit: neither the disk nor the sender's patience is used up.
func TestUnpackStopsGzipBombEarly(t *testing.T) {
	const size, limit = 10 << 30, 64 << 20
	for name, header := range map[string]tar.Header{
		"one file":   {Name: "zeros", Typeflag: tar.TypeReg, Size: size, Mode: 0o644},
		"many files": {Name: "zeros", Typeflag: tar.TypeReg, Size: 1 << 20, Mode: 0o644},
		"after all":  {Name: "zeros", Typeflag: tar.TypeReg, Size: 0, Mode: 0o644},
	} {
		t.Run(name, func(t *testing.T) {
			w := bounded(t, limit, 0)
			before := names(t, w.root)
			r, out := io.Pipe()
			var sent int64
			done := make(chan error)
			go func() {
				z, _ := gzip.NewWriterLevel(out, gzip.BestSpeed)
				err := bomb(z, header, size, &sent)
				done <- errors.Join(err, z.Close(), out.Close())
			}()
			_, _, err := w.Unpack(t.Context(), "", r, true)
			wants(t, name, err, files.ErrTooLarge)
			r.CloseWithError(io.ErrClosedPipe)
			if err := <-done; !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("writer of the bomb: got error %v, want io.ErrClosedPipe", err)
			}
			if sent > 2*limit {
				t.Errorf("bytes packed before Unpack stopped: got %d, want at most %d", sent, 2*limit)
			}
			if after := names(t, w.root); !slices.Equal(before, after) {
				t.Errorf("entries after the bomb: got %q, want %q", after, before)
			}
		})
	}
}

func bomb(z io.Writer, header tar.Header, size int64, sent *int64) error {
	chunk := make([]byte, 1<<20)
	w := tar.NewWriter(z)
	for i := 0; *sent < size; i++ {
		if header.Size > 0 && header.Size < size || i == 0 {
			h := header
			h.Name = fmt.Sprint(h.Name, i)
			if err := w.WriteHeader(&h); err != nil {
				return err
			}
		}
		to := io.Writer(w)
		if header.Size == 0 {
			to = z
		}
		n, err := to.Write(chunk)
		if *sent += int64(n); err != nil {
			return err
		}
	}
	return w.Close()
}

// The 10 GiB are there once for real, in 10 MB on the disk: gzip takes the same member again and again.
func TestUnpackStopsRealBombEarly(t *testing.T) {
	member := archiveBytes(false, file("zeros", string(make([]byte, 1<<20))))
	members := (10<<30)/len(member) + 1
	path := filepath.Join(t.TempDir(), "bomb.tar.gz")
	if err := os.WriteFile(path, bytes.Repeat(gzipped(member), members), 0o600); err != nil {
		t.Fatal(err)
	}
	w := bounded(t, 64<<20, 0)
	before := names(t, w.root)
	in, err := os.Open(path)
	w.must(t, err)
	defer in.Close()
	start := time.Now()
	_, _, err = w.Unpack(t.Context(), "", in, true)
	wants(t, "", err, files.ErrTooLarge)
	at, err := in.Seek(0, io.SeekCurrent)
	w.must(t, err)
	info, err := in.Stat()
	w.must(t, err)
	t.Logf("stopped after %d of %d bytes, in %v", at, info.Size(), time.Since(start))
	if at > info.Size()/10 {
		t.Errorf("bytes read of the bomb: got %d of %d, want a tenth at most", at, info.Size())
	}
	if after := names(t, w.root); !slices.Equal(before, after) {
		t.Errorf("entries after the bomb: got %q, want %q", after, before)
	}
}

// A million entries stop at the limit.
func TestUnpackStopsAtEntryLimit(t *testing.T) {
	limit := 5_000
	if !testing.Short() {
		limit = 20_000
	}
	w := bounded(t, 0, limit)
	before := names(t, w.root)
	r, out := io.Pipe()
	done := make(chan int)
	go func() {
		z, _ := gzip.NewWriterLevel(out, gzip.BestSpeed)
		tw := tar.NewWriter(z)
		for i := range 1_000_000 {
			if tw.WriteHeader(&tar.Header{Name: fmt.Sprintf("%d/%d", i%1000, i), Typeflag: tar.TypeReg, Mode: 0o644}) != nil {
				done <- i
				return
			}
		}
		done <- 1_000_000
	}()
	start := time.Now()
	_, _, err := w.Unpack(t.Context(), "", r, true)
	r.CloseWithError(io.ErrClosedPipe)
	wants(t, "", err, files.ErrTooLarge)
	if sent := <-done; sent > 100_000 {
		t.Errorf("entries read of a million: got %d, want 100000 at most", sent)
	}
	t.Log(time.Since(start))
	if after := names(t, w.root); !slices.Equal(before, after) {
		t.Errorf("entries after Unpack: got %d, want %d", len(after), len(before))
	}
}
