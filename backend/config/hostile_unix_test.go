//go:build unix

package config

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"deskhand/backend/unprivileged"
)

// A FIFO waits for its other end, for ever; what opens it must not.
func TestPipesDoNotBlock(t *testing.T) {
	for _, place := range []string{".sandbox-agent", ".sandbox-agent/config", ".sandbox-agent/config/mcp.json"} {
		t.Run(place, func(t *testing.T) {
			dir := t.TempDir()
			name := filepath.Join(dir, place)
			if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := unix.Mkfifo(name, 0o600); err != nil {
				t.Fatal(err)
			}
			everyCall(t, in(t, dir))
		})
	}
	t.Run("lock", func(t *testing.T) {
		dir := t.TempDir()
		write(t, fileOf(dir, MCP), "{}")
		if err := unix.Mkfifo(filepath.Join(filepath.Dir(fileOf(dir, MCP)), ".lock"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := in(t, dir).Put(t.Context(), MCP, "a", []byte(`{"type":"local","command":"c"}`)); !errors.Is(err, ErrBroken) {
			t.Errorf("Put with a FIFO for a lock: got error %v, want ErrBroken", err)
		}
	})
	t.Run("socket", func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(filepath.Dir(fileOf(dir, MCP)), "x"), "")
		t.Chdir(dir) // the system takes names of about 100 bytes
		l, err := net.Listen("unix", fileOf("", MCP))
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		everyCall(t, in(t, dir))
	})
}

// A directory where we may not write is the system's refusal, and no broken file.
func TestMissingPermissionIsReported(t *testing.T) {
	unprivileged.Bind(t)
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(dir, 0o700)
	err := in(t, dir).Put(t.Context(), MCP, "a", []byte(`{"type":"local","command":"c"}`))
	if !errors.Is(err, ErrPermission) {
		t.Errorf("Put to a read-only directory: got error %v, want ErrPermission", err)
	}
}

// The system's own failures are not the directory's fault.
func TestSystemFailuresAreNotBroken(t *testing.T) {
	for _, errno := range []unix.Errno{unix.EACCES, unix.EPERM, unix.EROFS} {
		if err := unusable("x", &fs.PathError{Op: "openat", Path: "/secret/x", Err: errno}); !errors.Is(err, ErrPermission) || strings.Contains(err.Error(), "secret") {
			t.Errorf("unusable(%v): got %v, want ErrPermission without the path", errno, err)
		}
	}
	for _, errno := range []unix.Errno{unix.EMFILE, unix.EIO, unix.ENOSPC, unix.ENOENT} {
		if err := unusable("x", &fs.PathError{Op: "openat", Path: "x", Err: errno}); errors.Is(err, ErrBroken) || !errors.Is(err, errno) {
			t.Errorf("unusable(%v): got %v, want the system's error", errno, err)
		}
	}
}
