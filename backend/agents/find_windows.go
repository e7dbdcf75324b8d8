package agents

import (
	"io/fs"
	"os"
	"strings"
)

// Windows has no execute bit; the name's extension tells.
func mayRun(fs.FileInfo) bool { return true }

func programNames(command string) []string { return withExtensions(command, os.Getenv("PATHEXT")) }

// Windows writes it Path.
func sameVariable(a, b string) bool { return strings.EqualFold(a, b) }
