//go:build !windows

package agents

import "testing"

func TestShellIn(t *testing.T) {
	t.Parallel()
	passwd := "root:x:0:0:Super User:/root:/bin/bash\n# c\nbroken:x:7\nshort:x:8:8::/:\nann:x:1000:1000:Ann,,,:/home/ann:/usr/bin/fish\n"
	for uid, want := range map[int]string{0: "/bin/bash", 1000: "/usr/bin/fish", 7: "", 8: "", 100: ""} {
		if got := shellIn(passwd, uid); got != want {
			t.Errorf("%d: %q, want %q", uid, got, want)
		}
	}
}
