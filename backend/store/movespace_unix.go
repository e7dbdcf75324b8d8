//go:build unix

package store

import "golang.org/x/sys/unix"

// FreeSpace returns how many bytes the user may still write to the disk of dir.
func FreeSpace(dir string) (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return 0, err
	}
	return int64(s.Bavail) * int64(s.Bsize), nil //nolint:unconvert // the types differ from system to system
}
