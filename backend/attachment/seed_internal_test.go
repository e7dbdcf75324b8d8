package attachment

import (
	"net/url"
	"path/filepath"
	"testing"
)

func TestPathIn(t *testing.T) {
	for _, c := range []struct{ given, windows string }{
		{"/C:/work/a b.txt", "C:/work/a b.txt"},
		{"/c:", "c:"},
		{`/C:\work`, `C:\work`},
		{"C:/work", "C:/work"},
		{"/work/a.txt", "/work/a.txt"},
		{"/C:x", "/C:x"}, // not the root of a drive
		{"//server/share", "//server/share"},
		{"", ""},
	} {
		if got := pathIn(c.given, true); got != c.windows {
			t.Errorf("%q on Windows is %q, want %q", c.given, got, c.windows)
		}
		if got := pathIn(c.given, false); got != c.given {
			t.Errorf("%q elsewhere is %q", c.given, got)
		}
	}
	path := filepath.Join(t.TempDir(), "a b%.txt") // FromURI reads the result of URI
	u, err := url.Parse(URI(path))
	if err != nil || u.Host != "" || PathIn(u.Path) != path {
		t.Errorf("%s is written as %s, and read as %s (%v)", path, URI(path), PathIn(u.Path), err)
	}
}
