//go:build !windows

package datadir

import "os"

// MakePrivate makes a directory that only we may use, with those above it as far as they are missing.
func MakePrivate(dir string) error { return os.MkdirAll(dir, 0o700) }

// grants: the mode says it, of each file too.
func grants(string) ([]grant, string, error) { return nil, "", nil }
