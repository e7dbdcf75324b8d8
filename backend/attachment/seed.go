package attachment

import (
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
)

const (
	unknownType = "application/octet-stream"
	fileScheme  = "file://"
)

// TextForm is a message with the paths of files below, for an agent that takes nothing else (format_message_with_attachments of the seed).
// Paths are not escaped. Without paths TextForm returns the message.
func TextForm(message string, paths []string) string {
	if len(paths) == 0 {
		return message
	}
	var b strings.Builder
	b.WriteString(message)
	b.WriteString("\n\nAttachments:\n")
	for _, path := range paths {
		b.WriteString("- ")
		b.WriteString(path)
		b.WriteByte('\n')
	}
	return b.String()
}

// FilePart is a file in the form of OpenCode's API (opencode_file_part_input of the seed): type, mime, url and, if given, filename. An empty
// mime or filename counts as absent. FilePart escapes a path that is no URL yet.
func FilePart(path, mime, filename string) map[string]any {
	address := path
	if !strings.HasPrefix(path, fileScheme) {
		address = fileScheme + escaped(path)
	}
	if mime == "" {
		mime = unknownType
	}
	part := map[string]any{"type": "file", "mime": mime, "url": address}
	if filename == "" {
		filename, _ = Filename(path)
	}
	if filename != "" {
		part["filename"] = filename
	}
	return part
}

// Filename is the last element of a path or file URL, as by Rust's Path::file_name: trailing slashes and single dots do not count. ok is false
// for a path that ends in "..", or that consists of slashes and dots.
func Filename(path string) (string, bool) {
	rest := strings.TrimPrefix(path, fileScheme)
	if runtime.GOOS == "windows" {
		rest = filepath.ToSlash(rest[len(filepath.VolumeName(rest)):])
	}
	for rest != "" {
		cut := strings.LastIndexByte(rest, '/')
		last := rest[cut+1:]
		switch {
		case last == "..", last == "." && cut < 0:
			return "", false
		case last != "" && last != ".":
			return last, true
		}
		rest = rest[:max(cut, 0)]
	}
	return "", false
}

// URI is the file URL of an absolute path.
func URI(path string) string {
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // as in /C:/…
	}
	return fileScheme + escaped(path)
}

// FromURI is the local path of a file URI: the part behind the scheme, without percent-encoding. Characters such as # and ? belong to the
// path, since many programs build such URIs by concatenation. ok is false for other URIs.
func FromURI(uri string) (path string, ok bool) {
	rest, ok := strings.CutPrefix(uri, fileScheme)
	if !ok {
		return "", false
	}
	if local, cut := strings.CutPrefix(rest, "localhost/"); cut {
		rest = "/" + local
	}
	if !strings.HasPrefix(rest, "/") {
		return "", false // a file of another computer
	}
	if plain, err := url.PathUnescape(rest); err == nil {
		rest = plain
	}
	return PathIn(rest), true
}

// PathIn is the local path of a file URL's path, which on Windows has a slash before the drive.
func PathIn(urlPath string) string {
	return filepath.FromSlash(pathIn(urlPath, runtime.GOOS == "windows"))
}

func pathIn(urlPath string, windows bool) string {
	if windows && len(urlPath) > 2 && urlPath[0] == '/' && urlPath[2] == ':' && (len(urlPath) == 3 || urlPath[3] == '/' || urlPath[3] == '\\') {
		return urlPath[1:]
	}
	return urlPath
}

func escaped(path string) string { return (&url.URL{Path: path}).EscapedPath() }
