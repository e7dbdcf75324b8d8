package cli

import (
	"os"
	"runtime"
)

// hasDisplay tells whether a window can be opened at all.
func hasDisplay() bool {
	if runtime.GOOS != "linux" {
		return true
	}
	return os.Getenv("DISPLAY") != "" || os.Getenv("WAYLAND_DISPLAY") != ""
}
