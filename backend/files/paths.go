package files

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

const (
	onWindows = runtime.GOOS == "windows"
	// folds is whether names that differ by case alone are, as a rule, the same file here.
	folds   = onWindows || runtime.GOOS == "darwin"
	maxPath = 4096 // bytes; Linux's own limit, which going down name by name would get around
)

// location is a path before anything has been looked at: the number of a top, and the names from there.
type location struct {
	top  int
	segs []string
}

// locate says where a caller's path is, and how it is called as an absolute one. It looks at nothing.
func (t *Tree) locate(given string) (location, string, error) {
	if fault := faultOf(given, onWindows); fault != "" {
		return location{}, "", refuse(ErrInvalid, given, fault)
	}
	path := filepath.Clean(given) // "" is "."
	if !filepath.IsAbs(path) {
		path = filepath.Join(t.names[0], path)
	}
	at, ok := t.find(nil, segments(path))
	if !ok {
		return at, path, refuse(ErrOutside, given, "is outside of the roots")
	}
	return at, path, nil
}

// faultOf is what is wrong with a path whatever is on the disk; "" is nothing. Windows is said, so that its rules are tested
// everywhere.
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

// windowsName reports whether Windows takes a name for what it says: no stream (a:b), no device (with whatever extension), no
// sign that it refuses or understands as a pattern, and nothing at its end that it drops.
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

// segments are the names of a path, without the empty ones and the dots.
func segments(path string) []string {
	segs := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == filepath.Separator })
	return slices.DeleteFunc(segs, func(s string) bool { return s == "." })
}

// find goes on from an absolute path without links (known) by further names, until it is at a root. Names on the way that are in
// no root are not looked at, so one that is left again by .. leads nowhere.
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

// sameName is for names of what is not there, which have no identity to compare.
func sameName(a, b string) bool { return a == b || folds && strings.EqualFold(a, b) }

// within reports whether a real path is a directory of another one, at any depth. Both are what EvalSymlinks gives.
func within(outer, path string) bool {
	o, p := segments(outer), segments(path)
	return len(o) < len(p) && slices.EqualFunc(o, p[:len(o)], sameText)
}
