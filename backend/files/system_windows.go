package files

import (
	"io/fs"
	"os"

	"golang.org/x/sys/windows"
)

// nonBlocking is 0: no open waits on Windows.
const nonBlocking = 0

// systemKind returns the kind of the errors that have no name in the portable part of package syscall.
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

// identity returns "", as only os.SameFile can compare the identity of files on Windows.
func identity(fs.FileInfo) string { return "" }

// keepOwner returns the mode that a file may have which replaces another file.
func keepOwner(_ *os.File, like fs.FileInfo) fs.FileMode { return like.Mode().Perm() }

// syncDir does nothing: Windows syncs no directories.
func syncDir(*os.Root) error { return nil }

// writable reports an error unless a file may be written to.
func writable(_ *os.Root, _ string, info fs.FileInfo) error {
	if info.Mode()&0o200 == 0 {
		return fs.ErrPermission
	}
	return nil
}

// removable reports no error, as only trying shows the result on Windows.
func removable(*os.Root) error { return nil }
