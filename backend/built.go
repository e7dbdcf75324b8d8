package backend

import (
	"runtime"
	"runtime/debug"
)

// Build tells what a program was built from.
type Build struct {
	Version     string `json:"version"`
	Commit      string `json:"commit,omitempty"`      // of git; empty where the program was not built in a checkout
	CommittedAt string `json:"committedAt,omitempty"` // RFC 3339
	Modified    bool   `json:"modified,omitempty"`    // files differed from the commit
	Go          string `json:"go"`
	OS          string `json:"os"`
	Arch        string `json:"arch"`
}

// Built tells it of this program. The commit is what the go command has written into it, so that no build can forget to say it.
func Built(version string) Build {
	b := Build{Version: version, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return b
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = s.Value
		case "vcs.time":
			b.CommittedAt = s.Value
		case "vcs.modified":
			b.Modified = s.Value == "true"
		}
	}
	return b
}
