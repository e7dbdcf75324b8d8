package agents

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Windows has no execute bit; the name's extension tells.
func mayRun(fs.FileInfo) bool { return true }

func programNames(command string) []string {
	if filepath.Ext(command) != "" {
		return []string{command}
	}
	var names []string
	for ext := range strings.SplitSeq(os.Getenv("PATHEXT"), ";") {
		names = append(names, command+ext)
	}
	return names
}

// Windows writes it Path.
func sameVariable(a, b string) bool { return strings.EqualFold(a, b) }
