package discord

import (
	"strings"
	"unicode"
	"unicode/utf16"
)

// How a text is cut into messages. The pieces of a growing text are computed again and again, and full pieces are in the channel already:
// so the end of a piece depends only on the text before that end, and no addition moves it.

// mostText is the length of a message in UTF-16 units, as Discord's own programs count. Its API counts characters, of which there are
// never more.
const mostText = 2000

// The limits of a code fence that is opened again: longer rows of backticks are text.
const (
	shortestFence   = 3
	longestFence    = 8
	longestLanguage = 24
)

// fence is a block of code; the zero value is none.
type fence struct{ mark, language string }

// spot is a position in a text at which a piece begins.
type spot struct {
	at     int   // in bytes
	within fence // the block of code around the position
	mid    bool  // the position is within a line
}

// split cuts a text into messages.
func split(text string) (pieces []string) {
	p, full := spot{}, true
	for full {
		var piece string
		if piece, p, full = p.piece(text, mostText); piece != "" {
			pieces = append(pieces, piece)
		}
	}
	return pieces
}

// piece returns a message with at most most units, and where the rest begins. An open block of code is closed, and opened again in the
// next piece. full says that there is a rest: then no addition to the text changes the piece and the rest.
func (p spot) piece(text string, most int) (piece string, rest spot, full bool) {
	p = p.begin(text)
	if p.at == len(text) {
		return "", p, false
	}
	s := scan{text: text[p.at:], most: most - width(p.within.head()), within: p.within, mid: p.mid, lead: !p.mid}
	if p.within.mark != "" {
		s.reserve = 1 + len(p.within.mark)
	}
	cut, full := s.run()
	rest = spot{at: p.at + cut.at, within: cut.within, mid: !strings.HasSuffix(text[:p.at+cut.at], "\n")}
	return p.within.head() + cut.within.close(s.text[:cut.at]), rest, full
}

// begin skips text that needs no message: space, and the end of an otherwise empty block of code.
func (p spot) begin(text string) spot {
	if p.within.mark == "" {
		left := text[p.at:]
		skipped := left[:len(left)-len(strings.TrimLeftFunc(left, unicode.IsSpace))]
		p.at += len(skipped)
		p.mid = p.mid && !strings.Contains(skipped, "\n")
		return p
	}
	line, _, ends := strings.Cut(text[p.at:], "\n")
	if p.mid || !p.within.endsWith(line) {
		return p
	}
	p.at += len(line)
	if ends {
		p.at++
	}
	p.within = fence{}
	return p.begin(text)
}

// head returns the line that opens the block again.
func (f fence) head() string {
	if f.mark == "" {
		return ""
	}
	return f.mark + f.language + "\n"
}

// close returns a piece that ends within the block, or within none.
func (f fence) close(piece string) string {
	if f.mark == "" {
		return strings.TrimRightFunc(piece, unicode.IsSpace)
	}
	return strings.TrimSuffix(piece, "\n") + "\n" + f.mark
}

// after returns the block that contains the line after this line.
func (f fence) after(line string) fence {
	if f.mark != "" {
		if f.endsWith(line) {
			return fence{}
		}
		return f
	}
	row := rowOf(line)
	if row < shortestFence || row > longestFence {
		return fence{}
	}
	mark, info := strings.TrimLeft(line, " \t")[:row], strings.TrimLeft(line, " \t")[row:]
	if strings.Contains(info, "`") {
		return fence{} // code within a line
	}
	language := ""
	if words := strings.Fields(info); len(words) > 0 && len(words[0]) <= longestLanguage {
		language = words[0]
	}
	return fence{mark, language}
}

func (f fence) endsWith(line string) bool {
	return rowOf(line) >= len(f.mark) && strings.Trim(line, " \t\r`") == ""
}

// rowOf returns how many backticks a line begins with.
func rowOf(line string) int {
	line = strings.TrimLeft(line, " \t")
	return len(line) - len(strings.TrimLeft(line, "`"))
}

// cut is a possible end of a piece.
type cut struct {
	at     int
	width  int // of the text before
	within fence
}

// scan looks for the end of a piece.
type scan struct {
	text string
	most int

	width   int // of the text so far
	reserve int // for the end of a block of code, once there may be a block
	within  fence
	mid     bool // the text begins within a line
	line    int  // where the line begins
	lead    bool // the line so far is only backticks
	row     int  // how many backticks
	begun   cut  // where the open block begins

	paragraph, newline, space cut // the last of each
}

// run returns the end of the piece, and whether there is a rest. run looks only as far as the room reaches, so the end depends on no
// later text. Room for the end of a block stays reserved once a block has begun, even after its end: otherwise a full piece could fit
// again.
func (s *scan) run() (end cut, full bool) {
	for i, r := range s.text {
		s.see(r)
		w := utf16.RuneLen(r)
		if s.width+w+s.reserve > s.most && i > 0 {
			return s.choose(i), true
		}
		s.width += w
		switch r {
		case '\n':
			s.endLine(i)
		case ' ':
			s.space = cut{i + 1, s.width, s.within}
		}
	}
	if s.line > 0 || !s.mid {
		s.within = s.within.after(s.text[s.line:])
	}
	return cut{len(s.text), s.width, s.within}, false
}

// see counts the backticks at the start of a line.
func (s *scan) see(r rune) {
	switch {
	case !s.lead:
	case r == '`':
		if s.row++; s.row >= shortestFence && s.row <= longestFence {
			s.reserve = max(s.reserve, 1+s.row)
		}
	case r != ' ' && r != '\t' || s.row > 0:
		s.lead = false
	}
}

func (s *scan) endLine(i int) {
	line, before := s.text[s.line:i], s.within
	if s.line > 0 || !s.mid {
		s.within = before.after(line)
	}
	if before.mark == "" && s.within.mark != "" {
		s.begun = cut{s.line, s.width - width(line) - 1, fence{}}
	}
	s.newline = cut{i + 1, s.width, s.within}
	if s.within.mark == "" && strings.TrimSpace(line) == "" {
		s.paragraph = s.newline
	}
	s.line, s.lead, s.row = i+1, true, 0
}

// choose returns the best end within the window: behind a paragraph, else a line, else a word, unless too little text would come before.
// A block of code that began late goes into the next piece as a whole.
func (s *scan) choose(window int) cut {
	half, quarter := s.most/2, s.most/4
	switch late := s.begun; {
	case s.paragraph.width >= half:
		return s.paragraph
	case s.newline.width >= quarter && s.newline.within.mark != "" && late.at > 0 && late.width >= half:
		return late
	case s.newline.width >= quarter:
		return s.newline
	case s.space.width >= quarter:
		return s.space
	case s.newline.at > 0:
		return s.newline
	case s.space.at > 0:
		return s.space
	}
	return cut{window, s.width, s.within}
}

// width returns the length of a text in UTF-16 units.
func width(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}

// short returns a text of at most most units, with a mark where text is left out.
func short(s string, most int) string {
	if width(s) <= most {
		return s
	}
	n := 0
	for i, r := range s {
		if n += utf16.RuneLen(r); n > most-1 {
			return strings.TrimRightFunc(s[:i], unicode.IsSpace) + "…"
		}
	}
	return s
}
