package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestPromptAttach: files go with a prompt, and a file that cannot be attached is named before any agent starts.
func TestPromptAttach(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	put := func(name, text string) string {
		path := filepath.Join(work, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	large := put("large.bin", "")
	if err := os.Truncate(large, 50<<20+1); err != nil {
		t.Fatal(err)
	}
	odd := put("50% of a,b\n✓.txt", "odd words")
	plain := put("plain.txt", "plain words")
	plans := filepath.Join(work, "plans")
	if err := os.Mkdir(plans, 0o700); err != nil {
		t.Fatal(err)
	}

	out, log, code := run(t, dir, "prompt", "--agent", "mock", "--dir", work, "--attach", plain, "--attach", odd, "--attach", plans, "attachments")
	first, second := strings.Index(out, "plain.txt"), strings.Index(out, "b%0A%E2%9C%93.txt")
	if code != 0 || first < 0 || second < first || !strings.Contains(out, "3. file file://") || !strings.Contains(out, "/plans") {
		t.Errorf("want exit code 0, first at least 0, second at least %v, stdout with \"3. file file://\" and stdout with \"/plans\", got exit code %d\nstdout %s\nlog %s", first, code, out, log)
	}
	for _, c := range []struct {
		want string
		args []string
	}{
		{"absent.txt does not exist", []string{"--attach", filepath.Join(work, "absent.txt"), "x"}},
		{"50 MiB are the most", []string{"--attach", large, "x"}},
		{"a device", []string{"--attach", os.DevNull, "x"}},
		{"100 files are the most", append(repeated("--attach", plain, 101), "x")},
		{"nothing to say", []string{""}},
	} {
		_, log, code := run(t, dir, append([]string{"prompt", "--agent", "mock", "--dir", work}, c.args...)...)
		if code != 2 || !strings.Contains(log, c.want) {
			t.Errorf("%s: got exit code %d, log %s, want exit code 2 and log with %s", c.want, code, log, c.want)
		}
	}
	// A message may consist of files alone.
	if out, log, code := run(t, dir, "prompt", "--agent", "mock", "--dir", work, "--approve", "once", "--attach", plain, ""); code != 0 {
		t.Errorf("deskhand prompt --agent mock --dir WORK --approve once --attach PLAIN: want exit code 0, got exit code %d\nstdout %s\nlog %s", code, out, log)
	}
}

func repeated(flag, value string, n int) (args []string) {
	for range n {
		args = append(args, flag, value)
	}
	return args
}
