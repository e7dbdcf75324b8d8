package acp

import "encoding/json"

// Text is a text that names something: an id, a value to choose, a word of a command line. Libraries of languages that tell texts from
// numbers by their look (Perl, PHP, Lua) write such a text as a number; a number of any form is the text that all numbers of its value
// share. Any other value is the empty text.
type Text string

// UnmarshalJSON never fails.
func (t *Text) UnmarshalJSON(b []byte) error {
	text, _ := ParseText(b)
	*t = Text(text)
	return nil
}

// ParseText returns the text that a valid JSON value stands for, see [Text]. ok is false when the value is neither a text nor a number.
func ParseText(raw json.RawMessage) (text string, ok bool) {
	if isNumber(raw) {
		return numberKey(string(raw)), true
	}
	err := json.Unmarshal(raw, &text)
	return text, err == nil && string(raw) != "null"
}

// isNumber reports whether a valid JSON value is a number.
func isNumber(b []byte) bool { return len(b) > 0 && (b[0] == '-' || '0' <= b[0] && b[0] <= '9') }
