//go:build !windows

package datadir

import "os"

// MakePrivate creates a directory that only we may use, with missing parents.
func MakePrivate(dir string) error { return os.MkdirAll(dir, 0o700) }

// grants returns no accounts, since the mode of each file limits the access here.
func grants(string) ([]grant, string, error) { return nil, "", nil }
