package files

import (
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// nonBlocking: an open waits for nobody here.
const nonBlocking = 0

// systemKind knows the errors that have no name in package syscall's portable part.
func systemKind(err error) (text string, kind error) {
	switch {
	case isAny(err, windows.ERROR_DISK_FULL, windows.ERROR_HANDLE_DISK_FULL, windows.ERROR_DISK_QUOTA_EXCEEDED):
		return "does not fit: no space is left", ErrFull
	case isAny(err, windows.ERROR_DIR_NOT_EMPTY):
		return "is not empty", ErrNotEmpty
	case isAny(err, windows.ERROR_SHARING_VIOLATION, windows.ERROR_LOCK_VIOLATION, windows.ERROR_WRITE_PROTECT):
		return "is in use, or protected", ErrPermission
	case isAny(err, windows.ERROR_DIRECTORY):
		return "is of the wrong kind", ErrInvalid
	case isAny(err, windows.ERROR_INVALID_NAME, windows.ERROR_FILENAME_EXCED_RANGE, windows.ERROR_CANT_RESOLVE_FILENAME):
		return "cannot be used", ErrInvalid
	}
	return "", nil
}

// identity: os.SameFile keeps it to itself here.
func identity(fs.FileInfo) string { return "" }

// keepOwner tells which mode a file may have that replaces another one.
func keepOwner(_ *os.File, like fs.FileInfo) fs.FileMode { return like.Mode().Perm() }

// syncDir: Windows syncs no directories.
func syncDir(*os.Root) error { return nil }

// writable asks whether a file may be written to.
func writable(_ *os.Root, _ string, info fs.FileInfo) error {
	if info.Mode()&0o200 == 0 {
		return fs.ErrPermission
	}
	return nil
}

// removable: only trying tells.
func removable(*os.Root) error { return nil }
