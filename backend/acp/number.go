package acp

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// Integer is a whole number in every form that JSON libraries write: 7, 7.0, 7e0, and "7", as libraries write that keep 64 bits from
// JavaScript. A fraction is cut off, and a number out of range becomes the nearest in range. Given is false for anything else, also for
// null.
type Integer struct {
	Value int64
	Given bool
}

// UnmarshalJSON never fails.
func (i *Integer) UnmarshalJSON(b []byte) error {
	*i = Integer{} // the field may be repeated
	var f Float
	_ = f.UnmarshalJSON(b) // never fails
	switch exact, err := strconv.ParseInt(f.text, 10, 64); {
	case !f.Given:
	case err == nil:
		*i = Integer{exact, true}
	case f.Value >= math.MaxInt64: // compared as floats, of which MaxInt64 rounds up
		*i = Integer{math.MaxInt64, true}
	case f.Value <= math.MinInt64:
		*i = Integer{math.MinInt64, true}
	default:
		*i = Integer{int64(f.Value), true}
	}
	return nil
}

// Pointer returns nil when the number is not given.
func (i Integer) Pointer() *int64 {
	if !i.Given {
		return nil
	}
	return &i.Value
}

// Int returns nil when the number is not given.
func (i Integer) Int() *int {
	if !i.Given {
		return nil
	}
	n := int(i.Value)
	return &n
}

// Float is a number, or a text with a number, as for Integer. Given is false for a text that is no finite number.
type Float struct {
	Value float64
	Given bool
	text  string
}

// UnmarshalJSON never fails.
func (f *Float) UnmarshalJSON(b []byte) error {
	*f = Float{}
	text := string(b)
	if len(b) > 0 && b[0] == '"' {
		_ = json.Unmarshal(b, &text)                                            // on an error the text keeps its quotes, and is no number
		if text = strings.TrimSpace(text); strings.ContainsAny(text, "xX_pP") { // Go alone reads such texts as numbers
			return nil
		}
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil && !math.IsInf(n, 0) || math.IsNaN(n) || strings.ContainsAny(text, "nN") { // "inf", "nan"
		return nil
	}
	if math.IsInf(n, 0) { // beyond the range of a float
		n = math.Copysign(math.MaxFloat64, n)
	}
	*f = Float{n, true, text}
	return nil
}

// Flag is a boolean, or a text or a number that stands for a boolean. Any other value is false.
type Flag bool

// UnmarshalJSON never fails.
func (f *Flag) UnmarshalJSON(b []byte) error {
	text := strings.ToLower(strings.Trim(string(b), `"`))
	*f = text == "true" || text == "1" || text == "1.0"
	return nil
}
