package store

import (
	"errors"

	"golang.org/x/sys/windows"
)

// heldOpen tells of a file that somebody has open who does not share that. That a right is missing looks the same.
func heldOpen(err error) bool {
	return errors.Is(err, windows.ERROR_ACCESS_DENIED) || errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_LOCK_VIOLATION)
}
