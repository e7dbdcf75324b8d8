package environ

import (
	"strings"
	"testing"
)

func TestNamesOfProgramsOnWindows(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ command, pathext, want string }{
		{"npm", ".EXE;.CMD", "npm.EXE npm.CMD"},
		{"npm.cmd", ".EXE;.CMD", "npm.cmd npm.cmd.EXE npm.cmd.CMD"},
		{"agent-1.2", ".EXE;.CMD", "agent-1.2.EXE agent-1.2.CMD"},
		{"npm", "", "npm.com npm.exe npm.bat npm.cmd"},
		{"npm", ";.EXE;exe;", "npm.EXE"},
	} {
		if got := strings.Join(withExtensions(tc.command, tc.pathext), " "); got != tc.want {
			t.Errorf("%s, %s: %q, want %q", tc.command, tc.pathext, got, tc.want)
		}
	}
}
