package acp

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Found is the content of a line that is no message by itself.
type Found struct {
	Messages []Envelope // in their order
	Rest     string     // the text around the messages, as far as a person can read it
}

// Find searches for messages in a line that Peek refuses. Real programs print more than their messages: a window title, a reset of
// colours, progress or a log prefix before a message, two messages without a line feed between them, a byte order mark, or a whole line
// in UTF-16; and their libraries write text that is almost JSON: NaN, bytes that are not UTF-8, unescaped control characters. An object
// counts that is a message of JSON-RPC. A message within a log text does not count when the text says that the message was sent or
// received: the agent then logs a message that the agent has sent separately, or has received.
func Find(line []byte) Found {
	line = narrow(line)
	f := find(line)
	if len(f.Messages) > 0 {
		return f
	}
	if plain := WithoutEscapes(string(line)); len(plain) != len(line) { // colours within the message
		return find([]byte(plain))
	}
	return f
}

// mostTries bounds the cost of a line of nothing but braces.
const mostTries = 200

func find(line []byte) Found {
	var f Found
	var around []string
	rest := 0 // where the text begins that is not in around yet
	budget := 8*len(line) + 1<<16
	for at, tries := 0, 0; tries < mostTries && budget > 0; {
		n := bytes.IndexByte(line[at:], '{')
		if n < 0 {
			break
		}
		at += n
		s := scanner{data: line, pos: at, lax: true}
		if !s.object(1, nil) {
			budget -= s.pos - at
			at++
			tries++
			continue
		}
		if e, ok := message(line[at:s.pos]); ok {
			before := readable(line[rest:at])
			if before == "" || e.standsInText(strings.ToLower(before)) {
				f.Messages = append(f.Messages, e)
				around = append(around, before)
				rest = s.pos
			}
		}
		at = s.pos
	}
	around = append(around, readable(line[rest:]))
	f.Rest = strings.Join(slices.DeleteFunc(around, func(text string) bool { return text == "" }), " ")
	return f
}

func readable(text []byte) string {
	return strings.TrimSpace(WithoutEscapes(strings.ToValidUTF8(string(text), string(utf8.RuneError))))
}

// message returns the message in an object. ok is false when the object is none.
func message(object []byte) (Envelope, bool) {
	e, err := Peek(object)
	if err != nil {
		e, err = Peek(mend(object))
	}
	return e, err == nil && e.Kind != Other
}

// standsInText reports whether a message behind some text is a message that its agent sends.
func (e *Envelope) standsInText(before string) bool {
	var members map[string]json.RawMessage
	if json.Unmarshal(e.Raw, &members) != nil || e.isEcho(before) {
		return false
	}
	if members["jsonrpc"] != nil {
		return true
	}
	for name := range members {
		if !slices.Contains([]string{"id", "method", "params", "result", "error"}, name) {
			return false // such as a line of a log that has a method
		}
	}
	return e.Kind == Response || strings.Contains(e.Method(), "/")
}

// isEcho reports whether an agent logs the message: a message that only a client sends, or any message that the text before it calls sent
// or received.
func (e *Envelope) isEcho(before string) bool {
	switch e.Method() {
	case "initialize", "authenticate", "logout", "session/new", "session/load", "session/resume", "session/prompt", "session/cancel", "session/list",
		"session/fork", "session/close", "session/delete", "session/set_mode", "session/set_model", "session/set_config_option":
		return true
	}
	if end := sentenceEnd.FindAllStringIndex(before, -1); end != nil {
		before = before[end[len(end)-1][1]:]
	}
	return echoWords.MatchString(before)
}

// The text before a message calls the message sent or received by a word or an arrow in its last sentence: "Sending telemetry…" speaks of
// something else, and so does a "sentence-transformers".
var (
	echoWords = regexp.MustCompile(`(?:^|[^\pL\pN])(?:recv|receiv(?:e|es|ed|ing)|incoming|inbound|got|sent|sends?|sending|outgoing|outbound|stdin|requests?|responses?)` +
		`(?:[^\pL\pN]|$)|->|<-|=>|<=|>>|<<`)
	sentenceEnd = regexp.MustCompile(`…|[.!?](?:\s|$)`)
)

// mend makes valid JSON from an object that the lax scanner accepted: NaN and Infinity become null, bytes that are not UTF-8 become
// U+FFFD, and control characters and stray backslashes in texts are escaped. Two halves of a character beyond U+FFFF, which Java writes
// separately, are joined. Where a text begins or ends within a character, the units that it has of the character are escaped, see [Cut].
func mend(object []byte) []byte {
	out := make([]byte, 0, len(object)+64)
	for i := 0; i < len(object); {
		switch c := object[i]; {
		case c == '"':
			var n int
			out, n = mendText(out, object[i:])
			i += n
		case c == 'N' || c == 'I' || c == '-' && object[i+1] == 'I':
			out = append(out, "null"...)
			for i++; 'A' <= object[i] && object[i] <= 'z'; i++ {
			}
		default:
			out = append(out, c)
			i++
		}
	}
	return out
}

// mendText appends the text at the start of b, and returns its length in b.
func mendText(out, b []byte) ([]byte, int) {
	out = append(out, '"')
	for i := 1; i < len(b); {
		n := plainPrefix(b[i:])
		out = append(out, b[i:i+n]...)
		if i += n; i >= len(b) {
			break
		}
		switch c := b[i]; {
		case c == '"':
			return append(out, '"'), i + 1
		case c == '\\':
			s := scanner{data: b, pos: i}
			if s.escape() {
				out = append(out, b[i:s.pos]...)
				i = s.pos
				continue
			}
			out = append(out, `\\`...)
			i++
		case c < 0x20:
			out = append(out, `\u00`...)
			out = append(out, hexDigits[c>>4], hexDigits[c&0xf])
			i++
		default:
			units, size := cutUnits(b[i:], i == 1)
			for _, unit := range units {
				out = append(out, escapeOf(unit)...)
			}
			if units == nil {
				var r rune
				r, size = wideRune(b[i:])
				out = utf8.AppendRune(out, r)
			}
			i += size
		}
	}
	return out, len(b)
}

// cutUnits returns the units of a character that is cut by the start or by the end of its text; b begins with the units. cutUnits returns
// nil when there is no such character.
func cutUnits(b []byte, atStart bool) (units []rune, size int) {
	if r, size := utf8.DecodeRune(b); r != utf8.RuneError || size != 1 {
		return nil, 0
	}
	half := surrogate(b)
	n := bytes.IndexByte(b[:min(len(b), mostBytes+1)], '"') // of bytes until the end of the text
	switch {
	case half >= 0xdc00 && atStart, half != 0 && half < 0xdc00 && n == len(halfBytes(half)):
		return []rune{half}, len(halfBytes(half))
	case atStart:
		for size < mostBytes && size < len(b) && !utf8.RuneStart(b[size]) {
			size++
		}
		if size > 0 {
			return unitsOf(b[:size]), size
		}
	}
	if n > 0 && isBeginning(string(b[:n])) {
		return unitsOf(b[:n]), n
	}
	return nil, 0
}

func unitsOf(b []byte) []rune {
	units := make([]rune, len(b))
	for i, c := range b {
		units[i] = 0xdc00 | rune(c)
	}
	return units
}

// escapeOf returns the escape of a UTF-16 unit.
func escapeOf(unit rune) string { return fmt.Sprintf(`\u%04x`, unit) }

// surrogate returns the half of a character that is encoded at the start of b as if it were a character; 0 when there is none.
func surrogate(b []byte) rune {
	if len(b) < 3 || b[0] != 0xed || b[1]&0xe0 != 0xa0 || b[2]&0xc0 != 0x80 {
		return 0
	}
	return 0xd000 | rune(b[1]&0x3f)<<6 | rune(b[2]&0x3f)
}

const hexDigits = "0123456789abcdef"

// wideRune returns the character at the start of b, also when its two halves are encoded as if they were characters.
func wideRune(b []byte) (rune, int) {
	r, size := utf8.DecodeRune(b)
	if r != utf8.RuneError || size != 1 {
		return r, size
	}
	const half = 3 // bytes
	first := surrogate(b)
	switch {
	case first == 0:
		return utf8.RuneError, 1
	case len(b) >= 2*half:
		if r := utf16.DecodeRune(first, surrogate(b[half:])); r != utf8.RuneError {
			return r, 2 * half
		}
	}
	return utf8.RuneError, half
}

// narrow converts a line in UTF-16 to UTF-8. Such a line has a byte order mark, or a zero in many bytes; it may begin or end with half of
// a line feed.
func narrow(line []byte) []byte {
	zeros, head := bytes.Count(line, []byte{0}), line[:min(len(line), 4)]
	little, big := bytes.Contains(head, []byte{0xff, 0xfe}), bytes.HasPrefix(head, []byte{0xfe, 0xff})
	if len(line) < 2 || zeros == 0 || !little && !big && zeros < len(line)/3 {
		return line
	}
	var order binary.ByteOrder = binary.LittleEndian
	if big || !little && len(line)%2 == 0 && line[0] == 0 && line[1] != 0 {
		order = binary.BigEndian
	}
	if len(line)%2 == 1 {
		if line[0] == 0 && order == binary.LittleEndian {
			line = line[1:]
		} else {
			line = line[:len(line)-1]
		}
	}
	units := make([]uint16, 0, len(line)/2)
	for i := 0; i+1 < len(line); i += 2 {
		units = append(units, order.Uint16(line[i:]))
	}
	return []byte(string(utf16.Decode(units)))
}
