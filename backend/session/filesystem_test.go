package session_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"deskhand/backend/transcript"
)

func read(path string, more ...any) step {
	params := map[string]any{"path": path}
	for i := 0; i+1 < len(more); i += 2 {
		params[more[i].(string)] = more[i+1]
	}
	return step{Ask: "fs/read_text_file", Params: params}
}

func write(path, content string) step {
	return step{Ask: "fs/write_text_file", Params: map[string]any{"path": path, "content": content}}
}

func content(t *testing.T, a answer) string {
	t.Helper()
	var r struct{ Content *string }
	if a.Error != nil || json.Unmarshal(a.Result, &r) != nil || r.Content == nil {
		t.Fatalf("no content: %s %+v", a.Result, a.Error)
	}
	return *r.Content
}

func TestFilesystemReadsFiles(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir())
	further := filepath.Join(d.dir, "further")
	if err := os.MkdirAll(further, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(further, "there"), []byte("further"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(further, "there"), filepath.Join(d.work, "link")); err != nil {
		t.Fatal(err)
	}
	file := d.write("a.txt", "one\ntwo\r\nthrée")
	id := d.asking(further)
	tests := []struct {
		name string
		step step
		want string
	}{
		{"whole", read(file), "one\ntwo\r\nthrée"},
		{"null is absent", read(file, "line", nil, "limit", nil), "one\ntwo\r\nthrée"},
		{"from a line", read(file, "line", 2), "two\r\nthrée"},
		{"line 0 is the first", read(file, "line", 0, "limit", 1), "one\n"},
		{"some lines", read(file, "line", 1, "limit", 2), "one\ntwo\r\n"},
		{"beyond the end", read(file, "line", 7), ""},
		{"no line", read(file, "limit", 0), ""},
		{"more lines than there are", read(file, "line", 3, "limit", 9), "thrée"},
		{"another root", read(filepath.Join(further, "there")), "further"},
		{"a link into another root", read(filepath.Join(d.work, "link")), "further"},
	}
	var steps []step
	for _, tc := range tests {
		steps = append(steps, tc.step)
	}
	for i, a := range d.steps(id, steps...) {
		if got := content(t, a); got != tests[i].want {
			t.Errorf("%s: %q, want %q", tests[i].name, got, tests[i].want)
		}
	}
	d.sameAsRebuilt(id)
}

func TestFilesystemRefusesFiles(t *testing.T) {
	d := askingDesk(t, t.TempDir())
	secret := filepath.Join(d.dir, "private", "token")
	outside := filepath.Join(d.dir, "outside")
	for path, text := range map[string]string{secret: "0123456789abcdef", outside: "outside"} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"out": outside, "dir": d.dir, "private": filepath.Dir(secret), "new": filepath.Join(d.dir, "made")} {
		if err := os.Symlink(to, filepath.Join(d.work, name)); err != nil {
			t.Fatal(err)
		}
	}
	in := func(name string) string { return filepath.Join(d.work, name) }
	d.write("file", "x")
	d.write("binary", "\xff\xfe\x00")
	huge := d.write("huge", "")
	if err := os.Truncate(huge, 20<<20); err != nil {
		t.Fatal(err)
	}
	fifo(t, in("fifo"))
	const invalid, absent = -32602, -32002
	tests := []struct {
		name string
		step step
		code int
	}{
		{"absent", read(in("absent")), absent},
		{"absent in an absent directory", read(in("a/b/c")), absent},
		{"relative", read("file"), invalid},
		{"no path", step{Ask: "fs/read_text_file"}, invalid},
		{"path of another type", step{Ask: "fs/read_text_file", Params: map[string]any{"path": 7}}, invalid},
		{"outside", read(outside), invalid},
		{"our database", read(filepath.Join(d.dir, "deskhand.db")), invalid},
		{"through ..", read(d.work + "/../outside"), invalid},
		{"through a link", read(in("out")), invalid},
		{"through a linked directory", read(in("dir/outside")), invalid},
		{"private", read(secret), invalid},
		{"private, through a link", read(in("private/token")), invalid},
		{"of this process", read("/proc/self/environ"), invalid},
		{"through this process", read("/proc/self/cwd/file"), invalid},
		{"a directory", read(d.work), invalid},
		{"a FIFO", read(in("fifo")), invalid},
		{"a device", read("/dev/zero"), invalid},
		{"too long", read(huge), invalid},
		{"too long a line", read(huge, "line", 1, "limit", 1), invalid},
		{"no UTF-8", read(in("binary")), invalid},
		{"NUL", read(in("a\x00b")), invalid},
		{"write relative", write("file", "y"), invalid},
		{"write outside", write(outside, "y"), invalid},
		{"write through ..", write(d.work+"/../outside", "y"), invalid},
		{"write through a link", write(in("out"), "y"), invalid},
		{"write a new file through a link", write(in("new"), "y"), invalid},
		{"write through a linked directory", write(in("dir/outside"), "y"), invalid},
		{"write private", write(in("private/token"), "y"), invalid},
		{"write a directory", write(d.work, "y"), invalid},
		{"write a FIFO", write(in("fifo"), "y"), invalid},
		{"write below a file", write(in("file/x"), "y"), invalid},
		{"write without content", step{Ask: "fs/write_text_file", Params: map[string]any{"path": in("file")}}, invalid},
		{"write too much", write(in("file"), strings.Repeat("y", 17<<20)), invalid},
	}
	var steps []step
	for _, tc := range tests {
		steps = append(steps, tc.step)
	}
	id := d.asking()
	for i, a := range d.steps(id, steps...) {
		if a.Error == nil || a.Error.Code != tests[i].code || a.Error.Message == "" {
			t.Errorf("%s: %s %+v, want error %d", tests[i].name, a.Result, a.Error, tests[i].code)
		}
		if a.Error != nil && strings.Contains(a.Error.Message, "0123456789abcdef") {
			t.Errorf("%s tells the secret", tests[i].name)
		}
	}
	for path, want := range map[string]string{secret: "0123456789abcdef", outside: "outside", in("file"): "x"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			t.Errorf("%s holds %q, %v", path, got, err)
		}
	}
	if _, err := os.Stat(filepath.Join(d.dir, "made")); err == nil {
		t.Error("a file was made outside")
	}
	if list := kinds(d.transcript(id), "file"); len(list) != 0 {
		t.Errorf("%d changes are told that were not made", len(list))
	}
}

func TestFilesystemWritesFiles(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir())
	old := d.write("old.sh", "one\n")
	if err := os.Chmod(old, 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("old.sh", filepath.Join(d.work, "alias")); err != nil {
		t.Fatal(err)
	}
	long := d.write("long", strings.Repeat("a", 100<<10))
	fresh := filepath.Join(d.work, "new", "deep", "file")
	id := d.asking()
	got := d.steps(id, write(old, "two\n"), write(fresh, "née"), write(filepath.Join(d.work, "alias"), "three\n"), write(long, "short"))
	for i, a := range got {
		if a.Error != nil || string(a.Result) != "{}" {
			t.Errorf("write %d: %s %+v", i, a.Result, a.Error)
		}
	}
	for path, want := range map[string]string{old: "three\n", fresh: "née", long: "short"} {
		if data, err := os.ReadFile(path); err != nil || string(data) != want {
			t.Errorf("%s holds %q, %v", path, data, err)
		}
	}
	if info, err := os.Stat(old); err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if info, err := os.Lstat(filepath.Join(d.work, "alias")); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info.Mode(), err)
	}
	told := kinds(d.transcript(id), "file")
	if len(told) != 4 {
		t.Fatalf("%d changes are told, want 4", len(told))
	}
	type diff struct{ Type, Path, OldText, NewText string }
	want := []transcript.FileChange{{Path: old, Bytes: 4}, {Path: fresh, Bytes: 4, Created: true}, {Path: filepath.Join(d.work, "alias"), Bytes: 6}, {Path: long, Bytes: 5}}
	diffs := []diff{{"diff", old, "one\n", "two\n"}, {"diff", fresh, "", "née"}, {"diff", want[2].Path, "two\n", "three\n"}, {}}
	for i, e := range told {
		var have diff
		if e.File.Diff != nil {
			if err := json.Unmarshal(e.File.Diff, &have); err != nil {
				t.Error(err)
			}
		}
		f := *e.File
		f.Diff = nil
		if f.Path != want[i].Path || f.Bytes != want[i].Bytes || f.Created != want[i].Created || have != diffs[i] || e.Turn == "" {
			t.Errorf("change %d: %+v %+v", i, f, have)
		}
	}
	d.sameAsRebuilt(id)
}

func TestFilesystemWorksInOrder(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir())
	file := filepath.Join(d.work, "file")
	var steps []step
	for _, text := range []string{"1", "2", "3", "4", "5", "6", "7", "8"} {
		w := write(file, text)
		w.As = "w" + text
		r := read(file)
		r.As = "r" + text
		steps = append(steps, w, r)
	}
	for _, name := range []string{"r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8"} {
		steps = append(steps, step{Await: name})
	}
	for i, a := range d.steps(d.asking(), steps...) {
		if got := content(t, a); got != string(rune('1'+i)) {
			t.Errorf("read %d gave %q", i+1, got)
		}
	}
}

// While another process swaps a directory and a link, no file outside is read or written.
func TestFilesystemIsNotLedOutsideBySwap(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir())
	outside := filepath.Join(d.dir, "outside")
	if err := os.MkdirAll(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(outside, "file")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.write("dir/file", "inside")
	dir, aside, link := filepath.Join(d.work, "dir"), filepath.Join(d.work, "aside"), filepath.Join(d.work, "link")
	if err := os.Symlink(outside, link); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var swapping sync.WaitGroup
	swapping.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Rename(dir, aside)
			_ = os.Rename(link, dir)
			_ = os.Rename(dir, link)
			_ = os.Rename(aside, dir)
		}
	})
	var steps []step
	for range 150 {
		steps = append(steps, read(dir+"/file"), write(dir+"/file", "inside"))
	}
	got := d.steps(d.asking(), steps...)
	close(stop)
	swapping.Wait()
	for _, a := range got {
		if strings.Contains(string(a.Result), "secret") {
			t.Fatalf("it read what is outside: %s", a.Result)
		}
	}
	if data, err := os.ReadFile(secret); err != nil || string(data) != "secret" {
		t.Errorf("it wrote what is outside: %q, %v", data, err)
	}
}

func TestFilesystemIsAbsentAtPlace(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir()) // without Config.Files
	s := d.create()
	d.idle(s.ID)
	for dir, data := range d.journal(s.ID) {
		if dir == "out" && strings.Contains(string(data), `"initialize"`) &&
			(!strings.Contains(string(data), `"readTextFile":false,"writeTextFile":false`) || !strings.Contains(string(data), `"terminal":false`)) {
			t.Errorf("it is told that it has files and terminals: %s", data)
		}
	}
}
