package transcript

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	"deskhand/backend/record"
)

// ClipText returns the text with at most MaxItem bytes, see [Clip].
func ClipText(s string) string { return Clip(s, MaxItem) }

// Clip returns at most so many bytes of a text. A text that was cut ends with a mark that says how many bytes are missing.
func Clip(s string, most int) string {
	if len(s) <= most {
		return s
	}
	cut := most
	for !utf8.RuneStart(s[cut]) {
		cut--
	}
	return fmt.Sprintf("%s\n… %d"+ClippedMark, s[:cut], len(s)-cut)
}

// ClippedMark ends every text that was cut.
const ClippedMark = " more bytes, kept in the journal"

// IsPrefixOf reports whether a stored record is the entry itself, or the entry as it was with less text.
func IsPrefixOf(data []byte, e *Entry) bool {
	var stored struct {
		Text    string
		Clipped int
	}
	if json.Unmarshal(data, &stored) != nil || !strings.HasPrefix(e.Text, stored.Text) || stored.Clipped > e.Clipped {
		return false
	}
	before := *e
	before.Text, before.Clipped = stored.Text, stored.Clipped
	return bytes.Equal(data, record.JSON(&before))
}
