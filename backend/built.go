package backend

import (
	"runtime"
	"runtime/debug"
)

// Build describes the build of a program.
type Build struct {
	Version     string `json:"version"`
	Commit      string `json:"commit,omitempty"`      // of git; empty for a build outside a checkout
	CommittedAt string `json:"committedAt,omitempty"` // RFC 3339
	Modified    bool   `json:"modified,omitempty"`    // files differed from the commit
	Go          string `json:"go"`
	OS          string `json:"os"`
	Arch        string `json:"arch"`
}

// Built describes this program's build. The commit comes from the go command, so that no build script can omit the commit.
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
