package transcript

import (
	"strings"
	"unicode/utf16"

	"deskhand/backend/acp"
)

// texts are the texts of entries that may go on.
type texts struct {
	growing map[*Entry]*growth // entries that text is added to
	begun   map[*Entry]string  // the beginnings of characters that texts end with so far
	clipped map[*Entry]int     // Clipped as last published: a message is published again when Clipped has doubled, and at the message's end
}

// growth is the text of an entry that is added to: a string would be copied whole for each word.
type growth struct {
	text  strings.Builder
	units int // the length of text
}

// lengthen gives how long the text was before, in UTF-16 units.
func (x *texts) lengthen(e *Entry, text string) (before int) {
	g := x.growing[e]
	if g == nil || g.text.Len() != len(e.Text) { // nil, or the entry's text was cut since
		g = &growth{units: Units(e.Text)}
		g.text.WriteString(e.Text)
		x.growing[e] = g
	}
	before = g.units
	g.text.WriteString(text)
	g.units += Units(text)
	e.Text = g.text.String()
	return before
}

// joined returns what a piece adds to the text of an entry: a character that is cut between two pieces comes with the second.
func (x *texts) joined(e *Entry, piece acp.Cut) string {
	text, begun := piece.Joined(x.begun[e])
	if x.begun[e] = begun; begun == "" {
		delete(x.begun, e)
	}
	return text
}

// Units returns the length of a text in UTF-16 units, as JavaScript counts.
func Units(s string) int {
	n := 0
	for _, r := range s {
		n += utf16.RuneLen(r)
	}
	return n
}
