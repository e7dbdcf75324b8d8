package attachment

import (
	"bytes"
	"mime"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/gabriel-vasile/mimetype"
)

// headSize is the length of the part that decides a file's type.
const headSize = 3072

// MIME is the type of a file: the given type, else the name's type unless the bytes contradict it, else the bytes' type, else
// application/octet-stream. A given application/octet-stream counts as no type, since browsers send it for every source file. head is the
// beginning of the file, 3 KiB suffice; an empty head contradicts nothing.
func MIME(given, name string, head []byte) string {
	if given = sane(given); given != "" && given != unknownType {
		return given
	}
	named := typeOfName(name)
	if len(head) == 0 {
		if named != "" {
			return named
		}
		return unknownType
	}
	found := mimetype.Detect(head)
	if named != "" && !contradicts(found, named) {
		return named
	}
	return base(found.String())
}

// sane returns a type that is valid in a header, else "".
func sane(given string) string {
	const longest = 255
	given = strings.TrimSpace(given)
	if len(given) > longest || !strings.Contains(given, "/") {
		return ""
	}
	if _, _, err := mime.ParseMediaType(given); err != nil || strings.ContainsFunc(given, func(r rune) bool { return r < ' ' || r > '~' }) {
		return ""
	}
	return given
}

// base is a type without its parameters.
func base(t string) string {
	t, _, _ = strings.Cut(t, ";")
	return strings.ToLower(strings.TrimSpace(t))
}

// contradicts reports whether the type found in the bytes rules out the name's type.
func contradicts(found *mimetype.MIME, named string) bool {
	if isText(named) {
		return !isTextual(found)
	}
	if isTextual(found) {
		return true
	}
	if found.Is(unknownType) {
		return false // most formats have no mark of their own
	}
	if isRecording(named) && isRecording(found.String()) {
		return false // the containers are the same for both
	}
	for m := found; m != nil; m = m.Parent() {
		if m.Is(named) {
			return false // the found type is a kind of the named type
		}
	}
	for m := mimetype.Lookup(named); m != nil && !m.Is(unknownType); m = m.Parent() {
		if found.Is(m.String()) {
			return false // the named type is a kind of the found type, such as a document in a zip
		}
	}
	return true
}

func isRecording(t string) bool {
	return strings.HasPrefix(t, "audio/") || strings.HasPrefix(t, "video/") || t == "application/ogg"
}

// isTextual reports whether the bytes are text of any kind.
func isTextual(found *mimetype.MIME) bool {
	for m := found; m != nil; m = m.Parent() {
		if m.Is("text/plain") {
			return true
		}
	}
	return false
}

// isText reports whether files of a type can be read as text.
func isText(t string) bool {
	t = base(t)
	kind, sub, _ := strings.Cut(t, "/")
	switch {
	case kind == "text", strings.HasSuffix(sub, "+json"), strings.HasSuffix(sub, "+xml"), strings.HasSuffix(sub, "+yaml"):
		return true
	case kind == "message":
		return sub == "rfc822"
	case kind != "application":
		return false
	}
	switch sub {
	case "json", "xml", "javascript", "ecmascript", "typescript", "yaml", "x-yaml", "toml", "sql", "graphql", "x-sh", "x-shellscript", "x-httpd-php",
		"x-ndjson", "jsonl", "json5", "x-pem-file", "x-tex", "x-perl", "x-ruby", "x-subrip", "x-mpegurl", "vnd.apple.mpegurl", "xml-dtd", "x-ipynb+json",
		"rtf", "postscript", "x-desktop", "x-java-properties", "geo+json", "x-wine-extension-ini", "x-patch", "x-troff":
		return true
	}
	return false
}

// isPlain reports whether bytes can travel as text: UTF-8 without NUL.
func isPlain(data []byte) bool {
	return utf8.Valid(data) && bytes.IndexByte(data, 0) < 0
}

func isPDF(t string) bool { return base(t) == "application/pdf" }

// isPicture reports whether agents take the type as an image.
func isPicture(t string) bool {
	switch base(t) {
	case "image/png", "image/jpeg", "image/gif", "image/webp":
		return true
	}
	return false
}

// typeOfName is the type that a name implies, or "".
func typeOfName(name string) string {
	name = strings.ToLower(filepath.Base(name))
	if t := wholeName(name); t != "" {
		return t
	}
	return typeOfExtension(strings.TrimPrefix(filepath.Ext(name), "."))
}

func wholeName(name string) string {
	switch name {
	case "makefile", "gnumakefile":
		return "text/x-makefile"
	case "dockerfile", "containerfile":
		return "text/x-dockerfile"
	case "cmakelists.txt":
		return "text/x-cmake"
	case "gemfile", "rakefile", "vagrantfile", "podfile":
		return "text/x-ruby"
	case "jenkinsfile":
		return "text/x-groovy"
	case "license", "licence", "copying", "readme", "changelog", "authors", "notice", "codeowners", "justfile", "procfile", "go.mod", "go.sum", "go.work",
		".gitignore", ".gitattributes", ".gitmodules", ".dockerignore", ".npmignore", ".npmrc", ".editorconfig", ".env":
		return "text/plain"
	case ".bashrc", ".bash_profile", ".profile", ".zshrc", ".zprofile":
		return "text/x-shellscript"
	}
	return ""
}
