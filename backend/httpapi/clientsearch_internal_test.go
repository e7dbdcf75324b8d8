package httpapi

import (
	"io"
	"os"
	"runtime"
	"testing"
)

// writing is an export that lists the directory before writing.
type writing struct {
	t    *testing.T
	dir  string
	left int
}

func (x *writing) WriteTo(w io.Writer) (int64, error) {
	files, err := os.ReadDir(x.dir)
	if err != nil {
		x.t.Fatal(err)
	}
	x.left = len(files)
	n, err := io.WriteString(w, "a conversation")
	return int64(n), err
}

// A kill during an export leaves no file, where the system allows unnamed files; a regular end never does.
func TestExportLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		t.Setenv(name, dir)
	}
	x := &writing{t: t, dir: dir}
	f, err := spool(x)
	if err != nil {
		t.Fatal(err)
	}
	if data, err := io.ReadAll(f); err != nil || string(data) != "a conversation" || f.size != int64(len(data)) {
		t.Errorf("export: got %q, size %d, %v, want the conversation", data, f.size, err)
	}
	if x.left > 0 && runtime.GOOS != "windows" {
		t.Errorf("%d files while it is written", x.left)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("%v is left, %v", files, err)
	}
}
