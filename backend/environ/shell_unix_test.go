//go:build !windows

package environ

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestLoginShellInPasswd(t *testing.T) {
	t.Parallel()
	passwd := "root:x:0:0:Super User:/root:/bin/bash\n# c\nbroken:x:7\nshort:x:8:8::/:\nann:x:1000:1000:Ann,,,:/home/ann:/usr/bin/fish\n"
	for uid, want := range map[int]string{0: "/bin/bash", 1000: "/usr/bin/fish", 7: "", 8: "", 100: ""} {
		if got := shellIn(passwd, uid); got != want {
			t.Errorf("%d: %q, want %q", uid, got, want)
		}
	}
}

// Every shell prints its environment with the printer of every system, wherever Deskhand's program is.
func TestShellTellsItsEnvironment(t *testing.T) {
	t.Parallel()
	self := filepath.Join(t.TempDir(), "it's a \"$program\" of 'ours'")
	if err := os.Symlink(os.Args[0], self); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"sh", "bash", "zsh", "fish"} {
		file, err := exec.LookPath(name)
		if err != nil {
			t.Fatalf("%v (build/setup.sh go installs it)", err)
		}
		for _, system := range []string{"linux", "darwin"} {
			s := shell{
				file: file, environ: []string{"HOME=" + t.TempDir(), "PATH=/usr/bin:/bin", "LINES_OF=a\nb=c"}, print: environmentPrinter(system, self),
				patience: time.Minute, work: func(func()) bool { return false }, show: func(string, int) func() { return func() {} },
			}
			if env, err := s.ask(t.Context()); err != nil || !slices.Contains(env, "LINES_OF=a\nb=c") {
				t.Errorf("%s on %s: %q, %v", name, system, env, err)
			}
		}
	}
}

func TestEnvironmentPrinter(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ system, self, want string }{
		{"linux", "/opt/deskhand", "/usr/bin/env -0"},
		{"darwin", "/Applications/Desk hand.app/x", "'/Applications/Desk hand.app/x' environment"}, // older versions of its env lack -0
		{"darwin", "", "/usr/bin/env -0"},
	} {
		if got := environmentPrinter(tc.system, tc.self); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.system, got, tc.want)
		}
	}
}

func TestEnvironmentOnTerminal(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		system, environ, want string
	}{
		{"linux", "A=1 TERM=x LINES=3", "A=1"},
		{"darwin", "A=1 TERM=x LINES=3", "A=1 LC_CTYPE=UTF-8"},
		{"darwin", "LANG= A=1", "LANG= A=1 LC_CTYPE=UTF-8"},
		{"darwin", "LANG=de_DE.UTF-8", "LANG=de_DE.UTF-8"},
		{"darwin", "LC_CTYPE=C", "LC_CTYPE=C"}, // the person's own setting
		{"darwin", "LC_ALL=C", "LC_ALL=C"},
		{"darwin", "LC_TIME=de_DE.UTF-8", "LC_TIME=de_DE.UTF-8 LC_CTYPE=UTF-8"},
	} {
		want := tc.want + " TERM=xterm-256color COLORTERM=truecolor"
		if got := strings.Join(onTerminal(strings.Fields(tc.environ), tc.system), " "); got != want {
			t.Errorf("%s, %s: %s, want %s", tc.system, tc.environ, got, want)
		}
	}
}
