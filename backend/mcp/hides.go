package mcp

import (
	"io/fs"
	"strings"
)

// What is approved beside the servers is judged by the same rules.

// Hides tells of a value under a name that is a secret and may be hidden from who approves: no program can be run by it.
func Hides(name, value string) bool { return tells(name) && !loads(name) && secretive(value) }

// Scripted tells of a file that is likely to be run.
func Scripted(path string, info fs.FileInfo) bool { return scripted(path, info) }

// Interprets tells of a program that runs the file that it is given, whatever that is called.
func Interprets(program string) bool { return interprets(program) }

// CoverURL hides the user, and the values of the query, of an address as far as no program can be run by them.
func CoverURL(address string) string { return strings.ReplaceAll(coverURL(address), cover, Hidden) }
