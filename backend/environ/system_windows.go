package environ

import (
	"io/fs"
	"os"
	"strings"
)

// mayRun is always true: Windows has no execute bit, only extensions.
func mayRun(fs.FileInfo) bool { return true }

func programNames(command string) []string { return withExtensions(command, os.Getenv("PATHEXT")) }

// sameVariable ignores case: Windows spells PATH as Path.
func sameVariable(a, b string) bool { return strings.EqualFold(a, b) }
