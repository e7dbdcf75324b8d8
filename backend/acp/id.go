package acp

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
)

// Key is an id by its value, for comparing ids: 1, 1.0 and 1e0 have the same key, "1" has another. The empty key means a missing id, or
// an id of a type that JSON-RPC does not allow (a boolean, an array, an object).
type Key string

// Key returns the key of the message's id.
func (e *Envelope) Key() Key {
	if len(e.ID) == 0 {
		return ""
	}
	switch c := e.ID[0]; {
	case c == '"':
		return textKey(e.ID)
	case c == 'n':
		return "null"
	case c == '-' || '0' <= c && c <= '9':
		return Key(numberKey(string(e.ID)))
	default:
		return ""
	}
}

// Twin returns the key of the id with the same text and the other type: for "1" the key of 1, and the reverse. Twin returns "" when there
// is no such id. Some peers read an id as the wrong type and send it back so; a caller that finds no request under a key may look for its
// twin.
func (k Key) Twin() Key {
	if text, isText := strings.CutPrefix(string(k), `"`); isText {
		e, err := Peek([]byte(`{"id":` + strings.TrimSpace(text) + `}`))
		if err != nil || len(e.ID) == 0 || e.ID[0] == '"' || len(e.ID) != len(strings.TrimSpace(text)) {
			return ""
		}
		if k := e.Key(); k != "null" {
			return k
		}
		return ""
	}
	if k == "" || k == "null" {
		return ""
	}
	return `"` + k
}

// textKey starts with a quote, which no number does.
func textKey(token []byte) Key {
	if bytes.IndexByte(token, '\\') < 0 {
		return Key(token[:len(token)-1])
	}
	var text string
	_ = json.Unmarshal(token, &text) // Peek has checked the token
	return Key(`"` + text)
}

// plainDigits is the most digits of a number whose key has no exponent.
const plainDigits = 18

// numberKey returns a JSON number in the form that all numbers of its value share: an integer of up to plainDigits digits unchanged,
// everything else as digits without zeros at either end, "e", and a power of ten. Values are exact, not rounded to a float.
func numberKey(token string) string {
	digits, negative := strings.CutPrefix(token, "-")
	digits, exponent := splitExponent(digits)
	if len(exponent) > plainDigits {
		return token // an exponent beyond reason: equal only to itself
	}
	power, _ := strconv.Atoi(exponent)
	whole, fraction, _ := strings.Cut(digits, ".")
	power -= len(fraction)
	digits = strings.TrimLeft(whole+fraction, "0")
	short := strings.TrimRight(digits, "0")
	power += len(digits) - len(short)
	switch {
	case short == "":
		return "0"
	case power >= 0 && len(short)+power <= plainDigits:
		short += strings.Repeat("0", power)
	default:
		short += "e" + strconv.Itoa(power)
	}
	if negative {
		return "-" + short
	}
	return short
}

// splitExponent splits the exponent off a number and removes its redundant signs and zeros.
func splitExponent(number string) (mantissa, exponent string) {
	i := strings.IndexAny(number, "eE")
	if i < 0 {
		return number, "0"
	}
	mantissa, exponent = number[:i], strings.TrimPrefix(number[i+1:], "+")
	exponent, negative := strings.CutPrefix(exponent, "-")
	exponent = strings.TrimLeft(exponent, "0")
	switch {
	case exponent == "":
		return mantissa, "0"
	case negative:
		return mantissa, "-" + exponent
	default:
		return mantissa, exponent
	}
}
