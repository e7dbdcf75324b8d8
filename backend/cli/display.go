package cli

import (
	"os"
	"runtime"
)

// hasDisplay reports whether a window can be opened.
func hasDisplay() bool {
	if runtime.GOOS != "linux" {
		return true
	}
	return os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != ""
}
