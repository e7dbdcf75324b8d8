package git

import (
	"bytes"
	"errors"
	"regexp"
	"strings"
)

var (
	errConfig   = errors.New("it is no configuration that git reads")
	sectionLine = regexp.MustCompile(`^\[[ \t]*([A-Za-z0-9.-]+)[ \t]*(?:"((?:[^"\\\n]|\\.)*)"[ \t]*)?\]`)
	keyName     = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9-]*`)
	escapedChar = regexp.MustCompile(`\\(.)`)
)

// ParseConfig parses a file of git's configuration, without the included files. Callers judge what git would do because of
// the file, so text that git may read differently is an error.
func ParseConfig(data []byte) (list []Setting, err error) {
	text := string(bytes.TrimPrefix(data, []byte("\ufeff")))
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if strings.ContainsAny(text, "\r\x00") {
		return nil, errConfig
	}
	section := ""
	for text != "" {
		text = strings.TrimLeft(text, " \t\n\f\v")
		switch {
		case text == "":
		case text[0] == '#' || text[0] == ';':
			_, text, _ = strings.Cut(text, "\n")
		case text[0] == '[':
			m := sectionLine.FindStringSubmatch(text)
			if m == nil {
				return nil, errConfig
			}
			section = strings.ToLower(m[1])
			if strings.Contains(m[0], `"`) {
				section += "." + escapedChar.ReplaceAllString(m[2], "$1")
			}
			text = text[len(m[0]):]
		default:
			var s Setting
			if s, text, err = setting(section, text); err != nil {
				return nil, err
			}
			list = append(list, s)
		}
	}
	return list, nil
}

// setting parses a setting, up to the end of its line.
func setting(section, text string) (s Setting, rest string, err error) {
	key := keyName.FindString(text)
	if key == "" || section == "" {
		return Setting{}, "", errConfig
	}
	s.Key = section + "." + strings.ToLower(key)
	rest = strings.TrimLeft(text[len(key):], " \t")
	after, has := strings.CutPrefix(rest, "=")
	if !has {
		line, rest, _ := strings.Cut(rest, "\n")
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' && line[0] != ';' {
			return Setting{}, "", errConfig
		}
		s.Value = "true"
		return s, rest, nil
	}
	s.Value, rest, err = value(after)
	return s, rest, err
}

// value parses the text after the =, with quotes, escapes, and continued lines.
func value(text string) (_, rest string, err error) {
	v := valueReader{}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n' && !v.quoted:
			return v.text(), text[i+1:], nil
		case c == '\n':
			return "", "", errConfig
		case c == '"':
			v.quoted = !v.quoted
			v.kept = v.Len()
		case (c == '#' || c == ';') && !v.quoted:
			_, rest, _ = strings.Cut(text[i:], "\n")
			return v.text(), rest, nil
		case c == '\\':
			if i++; i == len(text) || !v.escape(text[i]) {
				return "", "", errConfig
			}
		default:
			v.put(c, v.quoted || c != ' ' && c != '\t')
		}
	}
	if v.quoted {
		return "", "", errConfig
	}
	return v.text(), "", nil
}

// valueReader collects a value; kept is the length without blanks at the end.
type valueReader struct {
	strings.Builder

	quoted bool
	kept   int
}

func (v *valueReader) put(c byte, counts bool) {
	v.WriteByte(c)
	if counts {
		v.kept = v.Len()
	}
}

// escape adds the character for an escape, and returns false for an escape that git does not know.
func (v *valueReader) escape(c byte) bool {
	if c == '\n' {
		return true // a continued line
	}
	plain, known := map[byte]byte{'n': '\n', 't': '\t', 'b': '\b', '"': '"', '\\': '\\'}[c]
	if known {
		v.put(plain, true)
	}
	return known
}

func (v *valueReader) text() string { return strings.TrimLeft(v.String()[:v.kept], " \t") }
