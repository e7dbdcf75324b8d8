//go:build unix

package attachment_test

import (
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"deskhand/backend/attachment"
	"deskhand/backend/unprivileged"
)

// odd are a disk's entries that are no files, by description.
func odd(t *testing.T, dir string) map[string]string {
	t.Helper()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	// A socket's path has to be short, and a temporary directory's path may be long.
	socket := filepath.Join(dir, "s")
	if len(socket) > 100 {
		short, err := os.MkdirTemp("/tmp", "s") //nolint:usetesting // t.TempDir is too long
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(short) })
		socket = filepath.Join(short, "s")
	}
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return map[string]string{
		"a pipe": fifo, "a link to a pipe": link(t, fifo, filepath.Join(dir, "to-fifo")), "a socket": socket, "a device": "/dev/zero",
		"a link to a device": link(t, "/dev/zero", filepath.Join(dir, "zero")), "a terminal": "/dev/tty",
	}
}

// TestInspectRefusesWhatIsNoFile: no such entry is opened, so that none can block.
func TestInspectRefusesWhatIsNoFile(t *testing.T) {
	for what, path := range odd(t, realTemp(t)) {
		_, err := attachment.Inspect(t.Context(), path, nil, true, attachment.Limits{})
		wants(t, what, err, "not_a_file")
		_, err = attachment.Snapshot(t.Context(), blobs(t), attachment.File{Filename: "x", Path: path}, attachment.Limits{})
		wants(t, what+", taken in", err, "not_a_file")
	}
}

// TestInspectReadsNoMoreThanItMay: a kernel file has no length before it is read, and is read up to the limit.
func TestInspectReadsNoMoreThanItMay(t *testing.T) {
	const path = "/proc/self/maps"
	if _, err := os.Stat(path); err != nil {
		t.Skip("there is no /proc here")
	}
	_, err := attachment.Inspect(t.Context(), path, nil, true, attachment.Limits{Bytes: 16})
	wants(t, path, err, "too_large")
}

func TestInspectRefusesWhatMayNotBeRead(t *testing.T) {
	unprivileged.Bind(t)
	path := write(t, filepath.Join(realTemp(t), "closed"), "x")
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	_, err := attachment.Inspect(t.Context(), path, nil, true, attachment.Limits{})
	wants(t, "closed", err, "unreadable")
}

func TestOutgoingRefusesWhatIsNoFile(t *testing.T) {
	cwd := realTemp(t)
	for what, path := range odd(t, cwd) {
		code := "not_a_file"
		if real, err := filepath.EvalSymlinks(path); err != nil || filepath.Dir(real) != cwd {
			code = "outside"
		}
		_, err := attachment.Outgoing(t.Context(), cwd, nil, []attachment.Wanted{{Path: path}}, 0, 0, nil)
		wants(t, what, err, code)
	}
}

func TestDownloadLeavesWhatIsNoFile(t *testing.T) {
	at := realTemp(t)
	name := filepath.Join(at, sha10("one")+".txt")
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Fatal(err)
	}
	dir, err := os.OpenRoot(at)
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	_, err = attachment.Save(t.Context(), dir, []byte("one"), "a.txt", "", "")
	wants(t, "a pipe of that name", err, "exists")
}

// TestPlaceWhereNothingMayBeWritten: an unwritable directory has an error of its own.
func TestPlaceWhereNothingMayBeWritten(t *testing.T) {
	unprivileged.Bind(t)
	cwd := realTemp(t)
	if err := os.Chmod(cwd, 0o500); err != nil {
		t.Fatal(err)
	}
	_, err := attachment.Place(t.Context(), cwd, "a", []byte("x"), false)
	wants(t, "closed", err, "unwritable")
}
