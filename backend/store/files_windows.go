package store

import (
	"errors"

	"golang.org/x/sys/windows"
)

// heldOpen reports whether an error may mean that another program has the file open without sharing. A missing permission looks the same.
func heldOpen(err error) bool {
	return errors.Is(err, windows.ERROR_ACCESS_DENIED) || errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_LOCK_VIOLATION)
}
