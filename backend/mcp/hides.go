package mcp

import (
	"io/fs"
	"strings"
)

// Other approvals besides those of servers use the same rules.

// Hides reports whether a value with a secret name may be hidden from a person who approves: no program can run because of the value.
func Hides(name, value string) bool { return tells(name) && !loads(name) && secretive(value) }

// Scripted reports whether a file is likely to be run.
func Scripted(path string, info fs.FileInfo) bool { return scripted(path, info) }

// Interprets reports whether a program runs the file in its arguments, whatever the file's name.
func Interprets(program string) bool { return interprets(program) }

// CoverURL hides the user and the query values of an address, as far as no program can run because of them.
func CoverURL(address string) string { return strings.ReplaceAll(coverURL(address), cover, Hidden) }
