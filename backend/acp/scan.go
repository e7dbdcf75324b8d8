package acp

import (
	"encoding/binary"
	"fmt"
	"unicode/utf8"
)

// maxDepth is how deep arrays and objects may nest. It equals the limit of encoding/json: a deeper message could be passed on but not be
// decoded.
const maxDepth = 10_000

// A SyntaxError says where a text stops being JSON.
type SyntaxError struct {
	Offset int
	Reason string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("not JSON: %s at byte %d", e.Reason, e.Offset)
}

// A scanner walks over a JSON text (RFC 8259, in UTF-8) and checks the text without building values. For a message of 200 bytes that
// takes 0.1 us instead of 2 us with encoding/json, and every message of every agent goes through the scanner.
type scanner struct {
	data   []byte
	pos    int
	spaced bool // white space was seen
	lax    bool // accepts the almost-JSON that mend repairs
	err    *SyntaxError
}

func (s *scanner) fail(reason string) bool {
	if s.pos >= len(s.data) {
		reason = "unexpected end"
	}
	s.err = &SyntaxError{Offset: s.pos, Reason: reason}
	return false
}

// space skips white space.
func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
			s.spaced = true
		default:
			return
		}
	}
}

// peek returns the next byte, or 0 at the end; the byte 0 itself is never valid, inside of a string or outside.
func (s *scanner) peek() byte {
	if s.pos < len(s.data) {
		return s.data[s.pos]
	}
	return 0
}

func (s *scanner) value(depth int) bool {
	switch c := s.peek(); c {
	case '"':
		return s.text()
	case '{':
		return s.object(depth+1, nil)
	case '[':
		return s.array(depth + 1)
	case 't':
		return s.literal("true")
	case 'f':
		return s.literal("false")
	case 'n':
		return s.literal("null")
	default:
		if c == '-' || '0' <= c && c <= '9' {
			return s.number()
		}
		if s.lax && c == 'N' {
			return s.literal("NaN")
		}
		if s.lax && c == 'I' {
			return s.literal("Infinity")
		}
		return s.fail("no value")
	}
}

// object walks over an object, and calls note of the envelope, unless nil, for each member. (A func in its place costs an allocation.)
func (s *scanner) object(depth int, envelope *Envelope) bool {
	if depth > maxDepth {
		return s.fail("nested too deep")
	}
	s.pos++
	s.space()
	if s.peek() == '}' {
		s.pos++
		return true
	}
	for {
		key, ok := s.key()
		start := s.pos
		if !ok || !s.value(depth) {
			return false
		}
		if envelope != nil {
			envelope.note(key, s.data[start:s.pos])
		}
		if done, ok := s.next('}'); done || !ok {
			return ok
		}
	}
}

// key walks over a key, up to its value, and returns its token.
func (s *scanner) key() ([]byte, bool) {
	start := s.pos
	if s.peek() != '"' {
		return nil, s.fail("no key")
	}
	if !s.text() {
		return nil, false
	}
	key := s.data[start:s.pos]
	s.space()
	if s.peek() != ':' {
		return nil, s.fail("no colon")
	}
	s.pos++
	s.space()
	return key, true
}

func (s *scanner) array(depth int) bool {
	if depth > maxDepth {
		return s.fail("nested too deep")
	}
	s.pos++
	s.space()
	if s.peek() == ']' {
		s.pos++
		return true
	}
	for {
		if !s.value(depth) {
			return false
		}
		if done, ok := s.next(']'); done || !ok {
			return ok
		}
	}
}

// next walks over the separator behind an item: a comma, or the end.
func (s *scanner) next(end byte) (done, ok bool) {
	s.space()
	switch s.peek() {
	case ',':
		s.pos++
		s.space()
		return false, true
	case end:
		s.pos++
		return true, true
	default:
		return false, s.fail("no comma")
	}
}

func (s *scanner) literal(word string) bool {
	if len(s.data)-s.pos < len(word) || string(s.data[s.pos:s.pos+len(word)]) != word {
		return s.fail("no value")
	}
	s.pos += len(word)
	return true
}

func (s *scanner) number() bool {
	if s.peek() == '-' {
		s.pos++
	}
	if s.peek() == '0' {
		s.pos++
	} else if s.lax && s.peek() == 'I' {
		return s.literal("Infinity")
	} else if !s.digits() {
		return false
	}
	if s.peek() == '.' {
		s.pos++
		if !s.digits() {
			return false
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.pos++
		if c := s.peek(); c == '+' || c == '-' {
			s.pos++
		}
		return s.digits()
	}
	return true
}

func (s *scanner) digits() bool {
	start := s.pos
	for c := s.peek(); '0' <= c && c <= '9'; c = s.peek() {
		s.pos++
	}
	if s.pos == start {
		return s.fail("no digit")
	}
	return true
}

// text walks over a string token.
func (s *scanner) text() bool {
	s.pos++
	for {
		s.pos += plainPrefix(s.data[s.pos:])
		from, ok := s.pos, true
		switch c := s.peek(); {
		case c == '"':
			s.pos++
			return true
		case c == '\\':
			ok = s.escape()
		case c < 0x20:
			ok = s.fail("control character in a string")
		default: // not ASCII
			r, size := utf8.DecodeRune(s.data[s.pos:])
			if r == utf8.RuneError && size <= 1 {
				ok = s.fail("not UTF-8")
			}
			s.pos += size
		}
		if !ok && !s.pardon(from) {
			return false
		}
	}
}

// pardon skips the invalid byte at from when the scanner is lax, because mend repairs the byte.
func (s *scanner) pardon(from int) bool {
	if !s.lax || from >= len(s.data) {
		return false
	}
	s.pos = from + 1
	return true
}

func (s *scanner) escape() bool {
	s.pos++
	switch s.peek() {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.pos++
		return true
	case 'u':
		s.pos++
		for range 4 {
			if !isHex(s.peek()) {
				return s.fail("bad escape")
			}
			s.pos++
		}
		return true
	default:
		return s.fail("bad escape")
	}
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// plainPrefix counts the bytes at the start of b that stand for themselves in a string: ASCII without control characters, quote and
// backslash. plainPrefix reads eight bytes at a time, because messages are mostly text.
func plainPrefix(b []byte) int {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		x := binary.LittleEndian.Uint64(b[i:])
		quote, slash := x^(ones*'"'), x^(ones*'\\')
		// Bytes below the subtracted number, and bytes from 0x80 on, leave their top bit set.
		if (x|(x-ones*0x20)|(quote-ones)|(slash-ones))&tops != 0 {
			break
		}
	}
	for ; i < len(b); i++ {
		if c := b[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x80 {
			break
		}
	}
	return i
}
