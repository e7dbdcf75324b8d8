//go:build !linux && !darwin

package session

import "io/fs"

// identity is not read here: a directory is known by its path alone.
func identity(string, fs.FileInfo) (device, inode, born int64) { return 0, 0, 0 }
