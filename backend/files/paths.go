package files

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

const (
	onWindows = runtime.GOOS == "windows"
	// folds says that names which differ by case alone are usually the same file on this system.
	folds   = onWindows || runtime.GOOS == "darwin"
	maxPath = 4096 // bytes; Linux's own limit, which opening name by name would circumvent
)

// location is a path before any lookup: the number of a top, and the names from that top.
type location struct {
	top  int
	segs []string
}

// locate returns the location of a caller's path, and the path as an absolute path. locate does not access the disk.
func (t *Tree) locate(given string) (location, string, error) {
	if fault := faultOf(given, onWindows); fault != "" {
		return location{}, "", refuse(ErrInvalid, given, fault)
	}
	path := filepath.Clean(given) // "" becomes "."
	if !filepath.IsAbs(path) {
		path = filepath.Join(t.names[0], path)
	}
	at, ok := t.find(nil, segments(path))
	if !ok {
		return at, path, refuse(ErrOutside, given, "is outside of the roots")
	}
	return at, path, nil
}

// faultOf returns why a path is invalid whatever is on the disk, or "". windows is an argument so that the rules of Windows are tested on
// every system.
func faultOf(path string, windows bool) string {
	if strings.ContainsRune(path, 0) {
		return "holds NUL"
	}
	if len(path) > maxPath {
		return "is too long"
	}
	rest := path
	if windows {
		rest = strings.ReplaceAll(rest, `\`, "/")
		drive := len(rest) > 1 && rest[1] == ':' && isLetter(rest[0])
		switch {
		case strings.HasPrefix(rest, "//"):
			return "is a UNC path or a device"
		case drive && !strings.HasPrefix(rest[2:], "/"), strings.HasPrefix(rest, "/"):
			return "is relative to a drive"
		case drive:
			rest = rest[2:]
		}
	}
	for seg := range strings.SplitSeq(rest, "/") {
		if seg == ".." {
			return "holds .."
		}
		if windows && seg != "" && seg != "." && !windowsName(seg) {
			return "holds a name that Windows reads in its own way"
		}
	}
	return ""
}

func isLetter(b byte) bool { return 'a' <= b|0x20 && b|0x20 <= 'z' }

// windowsName reports whether Windows reads a name as written: no stream (a:b), no device (whatever the extension), no sign that Windows
// refuses or reads as a pattern, and no ending that Windows drops.
func windowsName(name string) bool {
	if strings.ContainsAny(name, `<>:"|?*\`) || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' }) ||
		strings.HasSuffix(name, ".") || strings.HasSuffix(name, " ") {
		return false
	}
	base, _, _ := strings.Cut(name, ".")
	base = strings.ToUpper(strings.TrimRight(base, " "))
	switch base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return false
	}
	digit, port := strings.CutPrefix(base, "COM")
	if !port {
		digit, port = strings.CutPrefix(base, "LPT")
	}
	return !port || !slices.Contains([]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "¹", "²", "³"}, digit)
}

// segments returns the names of a path, without empty names and dots.
func segments(path string) []string {
	segs := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == filepath.Separator })
	return slices.DeleteFunc(segs, func(s string) bool { return s == "." })
}

// find extends known, an absolute path without links, by the further names until it reaches a root. Names outside of all roots are not
// looked up, so the path fails when .. leaves such a name again.
func (t *Tree) find(known, further []string) (location, bool) {
	at, unseen := slices.Clone(known), 0
	for {
		for _, a := range t.aliases {
			if slices.EqualFunc(a.segs, at, sameText) {
				return location{a.top, slices.Concat(a.location.segs, further)}, true
			}
		}
		switch {
		case len(further) == 0:
			return location{}, false
		case further[0] != "..":
			at = append(at, further[0])
			unseen++
		case unseen > 0 || len(at) == 0:
			return location{}, false
		default:
			at = at[:len(at)-1]
		}
		further = further[1:]
	}
}

func sameText(a, b string) bool { return a == b || onWindows && strings.EqualFold(a, b) }

// sameName compares names of missing entries, which have no identity to compare.
func sameName(a, b string) bool { return a == b || folds && strings.EqualFold(a, b) }

// within reports whether path is below outer, at any depth. Both are results of EvalSymlinks.
func within(outer, path string) bool {
	o, p := segments(outer), segments(path)
	return len(o) < len(p) && slices.EqualFunc(o, p[:len(o)], sameText)
}
