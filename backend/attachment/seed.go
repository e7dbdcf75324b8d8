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

// TextForm is a message with the paths of files below it, for an agent that takes nothing else
// (format_message_with_attachments of the seed). Paths stand there as they are; no path leaves the message as it is.
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

// FilePart is a file in the form that OpenCode's own API takes (opencode_file_part_input of the seed): type, mime, url, and filename
// where there is one. "" is a mime or filename that nobody has given. A path that is no URL yet is escaped where it must be.
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

// Filename is the last name of a path or file URL, as Rust's Path::file_name has it: slashes and single dots at the end do not count,
// and there is none where the path ends in "..", or is nothing but slashes and dots.
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
		path = "/" + path // C:/…
	}
	return fileScheme + escaped(path)
}

// FromURI is the path that a file URI names, on this computer: all that is behind the scheme, with its percent-encoding undone. What stands in
// a path, such as # and ?, is a part of it there too, since many write such URIs by putting texts together.
func FromURI(uri string) (path string, ok bool) {
	rest, ok := strings.CutPrefix(uri, fileScheme)
	if !ok {
		return "", false
	}
	if local, cut := strings.CutPrefix(rest, "localhost/"); cut {
		rest = "/" + local
	}
	if !strings.HasPrefix(rest, "/") {
		return "", false // another computer's
	}
	if plain, err := url.PathUnescape(rest); err == nil {
		rest = plain
	}
	return PathIn(rest), true
}

// PathIn is what a file URL names on this computer: its path, which on Windows has a slash before the drive.
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
