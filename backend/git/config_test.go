package git

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// ParseConfig reads the same settings as git, since approvals rely on that.
func TestParseConfigReadsAsGitDoes(t *testing.T) {
	t.Parallel()
	b := set(t)
	for _, text := range []string{
		"[core]\n\tbare = false\n", "[core] fsmonitor = ./x\n", "[CORE]\nFsMonitor=./x # no\n", "[filter \"a b\"]\nclean = \"./x\" ; y\n", "[filter \"a\\\"b\"]\n\tclean = x\\\ny\n",
		"[alias]\n\tx = \"!sh -c 'a b'\"\n\ty\n", "; c\n[a.B]\n  c=d   \n", "[a \"B\"]c= d  e \\t f\n", "[a]\nb = \"c # d\" e # f\n", "[a]\n", "", "\ufeff[core]\n\tx=y\n", "[a]\r\n\tb = c\r\n",
		"[a]\nb=\n", "[a]\nb = \\\n  c\n", "[a]b=c [d]\ne=f", "oops", "[a\nb=c\n", "[a]\nb = \"c\n", "[a]\n1=2\n", "[a]\nb c\n", "[a]\nb = \\q\n", "b = c\n", "[a \"b\nc\"]\nd=e\n",
	} {
		file := filepath.Join(t.TempDir(), "config")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		said, failed := b.run(Command{}, "config", "--file", file, "--null", "--list")
		var want []string
		for part := range strings.SplitSeq(said, "\x00") {
			if part != "" && !strings.Contains(part, "\n") {
				part += "\ntrue" // a name alone
			}
			if part != "" {
				want = append(want, part)
			}
		}
		list, err := ParseConfig([]byte(text))
		var got []string
		for _, s := range list {
			got = append(got, s.Key+"\n"+s.Value)
		}
		switch {
		case failed != nil && err == nil:
			t.Errorf("%q: got %q, want an error as of git: %v", text, got, failed)
		case failed == nil && err != nil:
			t.Logf("%q: git reads it, and ParseConfig leaves it to the person", text)
		case failed == nil && !slices.Equal(got, want):
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
