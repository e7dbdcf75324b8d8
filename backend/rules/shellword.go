package rules

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"mvdan.cc/sh/v3/syntax"
)

// word is a word of a command, as far as its text is known before the command runs.
type word struct {
	text  string
	plain bool   // the program gets exactly text
	why   string // why plain is false
	lost  bool   // text says nothing, as for a variable or a substitution
	glob  int    // index in text of the first glob letter; -1 = no glob
}

func plainWord(text string) word { return word{text: text, plain: true, glob: -1} }

// unknown reports whether the word cannot be compared with anything.
func (w word) unknown() bool { return w.lost || w.glob >= 0 }

func (w *word) not(why string) {
	w.plain = false
	if w.why == "" {
		w.why = why
	}
}

// word returns the text that the program gets: quotes and backslashes are gone. A text that only a shell can know makes the word not
// plain. The text of such a word serves the deny rules, which need no certainty.
func (r *reading) word(w *syntax.Word) word {
	out := word{plain: true, glob: -1}
	b := &wordReader{r: r, out: &out}
	for i, p := range w.Parts {
		b.part(p, i == 0)
	}
	out.text = b.text.String()
	if b.brace && b.list {
		out.not("braces")
		out.lost = true
	}
	return out
}

type wordReader struct {
	r           *reading
	out         *word
	text        strings.Builder
	brace, list bool // an unquoted {, and a comma or .. that makes a list
}

func (b *wordReader) part(p syntax.WordPart, first bool) {
	switch p := p.(type) {
	case *syntax.Lit:
		b.literal(p.Value, first)
	case *syntax.SglQuoted:
		if !p.Dollar {
			b.text.WriteString(p.Value)
			return
		}
		b.out.not("quoting")
		b.text.WriteString(unescape(p.Value))
	case *syntax.DblQuoted:
		if p.Dollar {
			b.out.not("quoting")
		}
		for _, inner := range p.Parts {
			switch inner := inner.(type) {
			case *syntax.Lit:
				b.quoted(inner.Value)
			case *syntax.CmdSubst:
				b.substituted(inner)
			default:
				b.part(inner, false)
			}
		}
	case *syntax.ParamExp:
		b.out.not("variable")
		b.variable(p)
	case *syntax.ExtGlob:
		b.out.not("glob")
		b.out.lost = true
	default:
		b.out.not("substitution")
		b.out.lost = true
	}
}

// literal reads text without quotes.
func (b *wordReader) literal(s string, first bool) {
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch c {
		case '\\':
			i++
			switch {
			case i == len(s):
				b.out.not("quoting")
			case s[i] != '\n':
				b.text.WriteByte(s[i])
			}
			continue
		case '*', '?', '[':
			if b.out.glob < 0 {
				b.out.glob = b.text.Len()
			}
			b.out.not("glob")
		case '{':
			b.brace = true
		case ',':
			b.list = true
		case '.':
			b.list = b.list || strings.HasPrefix(s[i:], "..")
		case '~':
			if first && i == 0 {
				b.tilde(s)
				continue
			}
		}
		b.text.WriteByte(c)
	}
}

func (b *wordReader) tilde(s string) {
	b.out.not("tilde")
	if home := b.r.where.Home; home != "" && (s == "~" || strings.HasPrefix(s, "~/")) {
		b.text.WriteString(home)
		return
	}
	b.text.WriteByte('~')
}

// quoted reads text in double quotes.
func (b *wordReader) quoted(s string) {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte("$`\"\\\n", s[i+1]) >= 0 {
			i++
			if s[i] == '\n' {
				continue
			}
		}
		b.text.WriteByte(s[i])
	}
}

// variable expands HOME and PWD, the two variables that name directories which must not be lost.
func (b *wordReader) variable(p *syntax.ParamExp) {
	simple := p.Param != nil && p.Exp == nil && p.Slice == nil && p.Repl == nil && p.Index == nil && !p.Excl && !p.Length && !p.Width
	switch {
	case simple && p.Param.Value == "HOME" && b.r.where.Home != "":
		b.text.WriteString(b.r.where.Home)
	case simple && p.Param.Value == "PWD":
		b.text.WriteString(b.r.dirs[0])
	default:
		b.out.lost = true
	}
}

// unescape decodes the inside of $'…' as bash does.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		if at := strings.IndexByte("abeEfnrtv", s[i]); at >= 0 {
			b.WriteByte("\a\b\x1b\x1b\f\n\r\t\v"[at])
			continue
		}
		text, used := numbered(s[i:])
		b.WriteString(text)
		i += used - 1
	}
	return b.String()
}

// numbered decodes an escape that gives a letter by number, and returns how many bytes the escape has. Any other escape is its next
// letter.
func numbered(s string) (text string, used int) {
	prefix, numeric, most := 0, 8, 3
	switch s[0] {
	case 'x':
		prefix, numeric, most = 1, 16, 2
	case 'u':
		prefix, numeric, most = 1, 16, 4
	case 'U':
		prefix, numeric, most = 1, 16, 8
	}
	n := prefix
	for n < len(s) && n < prefix+most && isDigit(s[n], numeric) {
		n++
	}
	value, err := strconv.ParseUint(s[prefix:n], numeric, 32)
	switch {
	case err != nil:
		return s[:1], 1
	case most > 3:
		return string(rune(value)), n //nolint:gosec // what is no letter is written as such
	}
	return string([]byte{byte(value)}), n //nolint:gosec // as bash does
}

func isDigit(c byte, numeric int) bool {
	_, err := strconv.ParseUint(string(c), numeric, 8)
	return err == nil && c < utf8.RuneSelf
}
