package attachment_test

import (
	"encoding/json"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"deskhand/backend/attachment"
)

// TestTextForm: the results of format_message_with_attachments, byte for byte.
func TestTextForm(t *testing.T) {
	for _, c := range []struct {
		message string
		paths   []string
		want    string
	}{
		{"look", nil, "look"},
		{"look", []string{}, "look"},
		{"", nil, ""},
		{"look", []string{"/a b/ü%20.txt"}, "look\n\nAttachments:\n- /a b/ü%20.txt\n"},
		{"look\n", []string{"/a", "b", "file:///c"}, "look\n\n\nAttachments:\n- /a\n- b\n- file:///c\n"},
		{"", []string{""}, "\n\nAttachments:\n- \n"},
		{"x", []string{"/two\nlines"}, "x\n\nAttachments:\n- /two\nlines\n"},
	} {
		if got := attachment.TextForm(c.message, c.paths); got != c.want {
			t.Errorf("TextForm(%q, %q) = %q, want %q", c.message, c.paths, got, c.want)
		}
	}
}

// TestFilename: the results of Path::file_name of Rust's library, without "file://".
func TestFilename(t *testing.T) {
	for path, want := range map[string]string{
		"/workspace/file.py": "file.py", "file:///workspace/file.py": "file.py", "file.py": "file.py", "a b%20ü": "a b%20ü",
		"/a/b/": "b", "/a/b//": "b", "/a/b/.": "b", "/a/b/./": "b", "a/.": "a", "a/././": "a", "..a": "..a", "a..": "a..", "...": "...", ".env": ".env",
		"/a/../b": "b", "file://file://a": "a", "file:/a": "a", `a\b`: `a\b`, "/a/b\n": "b\n",
		"": "", "/": "", "//": "", ".": "", "./": "", "./.": "", "..": "", "../": "", "/..": "", "/a/..": "", "/a/../": "", "/a/.././": "", "file://": "", "file:///": "",
	} {
		got, ok := attachment.Filename(path)
		if got != want || ok != (want != "") {
			t.Errorf("Filename(%q) = %q, %v, want %q", path, got, ok, want)
		}
	}
}

func TestFilePart(t *testing.T) {
	for _, c := range []struct {
		path, mime, filename string
		want                 map[string]any
	}{
		{"/workspace/file.py", "text/x-python", "file.py", map[string]any{"type": "file", "mime": "text/x-python", "url": "file:///workspace/file.py", "filename": "file.py"}},
		{"/workspace/file.py", "", "", map[string]any{"type": "file", "mime": "application/octet-stream", "url": "file:///workspace/file.py", "filename": "file.py"}},
		{"file:///a%20b/c", "", "", map[string]any{"type": "file", "mime": "application/octet-stream", "url": "file:///a%20b/c", "filename": "c"}},
		{"file:///a b", "", "named", map[string]any{"type": "file", "mime": "application/octet-stream", "url": "file:///a b", "filename": "named"}},
		{"/a b/100%?#.txt", "", "", map[string]any{"type": "file", "mime": "application/octet-stream", "url": "file:///a%20b/100%25%3F%23.txt", "filename": "100%?#.txt"}},
		{"relative.txt", "text/plain", "", map[string]any{"type": "file", "mime": "text/plain", "url": "file://relative.txt", "filename": "relative.txt"}},
		{"/", "", "", map[string]any{"type": "file", "mime": "application/octet-stream", "url": "file:///"}},
		{"/a/..", "", "", map[string]any{"type": "file", "mime": "application/octet-stream", "url": "file:///a/.."}},
	} {
		if got := attachment.FilePart(c.path, c.mime, c.filename); !maps.Equal(got, c.want) {
			t.Errorf("FilePart(%q, %q, %q) = %v, want %v", c.path, c.mime, c.filename, got, c.want)
		}
	}
}

// FuzzFilename: a name has no slash, is no dot, and stays the same when the path continues with parts that do not count.
func FuzzFilename(f *testing.F) {
	for _, path := range []string{"", "/", "a/..", "file:///a/./", "//a//", "...", "file://"} {
		f.Add(path)
	}
	f.Fuzz(func(t *testing.T, path string) {
		name, ok := attachment.Filename(path)
		if ok != (name != "") || name == "." || name == ".." || strings.Contains(name, "/") || !strings.Contains(path, name) {
			t.Fatalf("Filename(%q) = %q, %v", path, name, ok)
		}
		rest := strings.TrimPrefix(path, "file://")
		if more, _ := attachment.Filename("/" + rest + "/./"); rest != "" && rest != "." && more != name && !startsWithDot(rest) {
			t.Fatalf("%q has the name %q, and with more at its end %q", path, name, more)
		}
		if part := attachment.FilePart(path, "", ""); utf8.ValidString(path) && !strings.HasPrefix(part["url"].(string), "file://") {
			t.Fatalf("FilePart(%q) has the url %q", path, part["url"])
		}
	})
}

// startsWithDot reports whether the path's first element is a dot, which counts, unlike a dot after a slash.
func startsWithDot(path string) bool { return path == "." || strings.HasPrefix(path, "./") }

// TestFilePartIsTheSeeds compares with testdata/seed.jsonl: the path, url and name from the compiled code of the seed. Our url also escapes
// the characters that no URL may contain.
func TestFilePartIsTheSeeds(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("testdata", "seed.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var row [3]*string
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatal(err)
		}
		path, address, name := *row[0], *row[1], row[2]
		part := attachment.FilePart(path, "", "")
		got, has := part["filename"]
		if has != (name != nil) || has && got != *name {
			t.Errorf("%q is called %v, the seed says %v", path, got, name)
		}
		ours, _ := part["url"].(string)
		if strings.HasPrefix(path, "file://") {
			if ours != address {
				t.Errorf("%q has the url %q, the seed says %q", path, ours, address)
			}
			continue
		}
		if back, err := url.PathUnescape(ours); err != nil || back != address {
			t.Errorf("%q has the url %q, the seed says %q", path, ours, address)
		}
		if plain := regexp.MustCompile(`^[A-Za-z0-9/._-]*$`); plain.MatchString(path) && ours != address {
			t.Errorf("%q has the url %q, the seed says %q", path, ours, address)
		}
	}
}
