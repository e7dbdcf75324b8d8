package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// encoding/json keeps neither the order of an object's members nor the second of two members with one name, and a map of raw values would
// lose the spelling of the keys. So objects are taken apart here, after encoding/json has checked that the text is JSON: all functions
// below rely on that check.

// member is a member of an object.
type member struct {
	name  string
	key   []byte // the name as written, in quotes
	value []byte // as written, without the white space around the value
}

const maxDepth = 64

// parseFile returns the members of a file.
func parseFile(data []byte) ([]member, error) {
	if err := syntax(data); err != nil {
		return nil, err
	}
	value := bytes.TrimSpace(data)
	if value[0] != '{' {
		return nil, errors.New("is not a JSON object")
	}
	list := members(value)
	if twice := duplicate(slices.Values(list)); twice != nil {
		return nil, fmt.Errorf("has the entry %s twice", twice)
	}
	return list, nil
}

// syntax reports an error unless data is a single JSON text in UTF-8.
func syntax(data []byte) error {
	if !utf8.Valid(data) {
		return errors.New("is not UTF-8")
	}
	var value json.RawMessage
	err := json.Unmarshal(data, &value)
	if fault, ok := errors.AsType[*json.SyntaxError](err); ok {
		before := data[:min(max(fault.Offset-1, 0), int64(len(data)))]
		return fmt.Errorf("is not JSON: line %d: %w", bytes.Count(before, []byte("\n"))+1, err)
	}
	if err != nil {
		return fmt.Errorf("is not JSON: %w", err)
	}
	return nil
}

// bounded checks that a value nests no deeper than maxDepth and that no object in the value has a name twice.
func bounded(value []byte, depth int) error {
	if value[0] != '{' && value[0] != '[' {
		return nil
	}
	if depth == maxDepth {
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	if value[0] == '{' {
		if twice := duplicate(each(value)); twice != nil {
			return fmt.Errorf("has the key %s twice", twice)
		}
	}
	for m := range each(value) {
		if err := bounded(m.value, depth+1); err != nil {
			return err
		}
	}
	return nil
}

func duplicate(list iter.Seq[member]) []byte {
	seen := map[string]bool{}
	for m := range list {
		if seen[m.name] {
			return m.key
		}
		seen[m.name] = true
	}
	return nil
}

// members returns the members of an object.
func members(value []byte) []member { return slices.Collect(each(value)) }

// each yields the members of an object, or the elements of an array as members without names. A list instead would need a hundred times
// the size of a file that is all commas.
func each(value []byte) iter.Seq[member] {
	return func(yield func(member) bool) {
		at := space(value, 1)
		for value[at] != '}' && value[at] != ']' {
			var m member
			if value[0] == '{' {
				end := valueEnd(value, at)
				m.key = value[at:end]
				m.name = keyName(m.key)
				at = space(value, space(value, end)+1) // skips the colon
			}
			end := valueEnd(value, at)
			m.value = value[at:end]
			if !yield(m) {
				return
			}
			at = space(value, end)
			if value[at] == ',' {
				at = space(value, at+1)
			}
		}
	}
}

// keyName returns the name that a key spells. A key with half a surrogate pair spells no name and stands for itself: unescaping would
// make all such halves equal.
func keyName(key []byte) string {
	if !paired(key) {
		return string(key)
	}
	return unquote(key)
}

func space(data []byte, at int) int {
	for at < len(data) && (data[at] == ' ' || data[at] == '\t' || data[at] == '\n' || data[at] == '\r') {
		at++
	}
	return at
}

// valueEnd returns the index behind the value that begins at the index at.
func valueEnd(data []byte, at int) int {
	depth := 0
	for ; at < len(data); at++ {
		switch data[at] {
		case '"':
			at = stringEnd(data, at) - 1
		case '{', '[':
			depth++
			continue
		case '}', ']':
			depth--
		default:
			if depth == 0 {
				return literalEnd(data, at)
			}
			continue
		}
		if depth == 0 {
			return at + 1
		}
	}
	return at
}

func stringEnd(data []byte, at int) int {
	for at++; data[at] != '"'; at++ {
		if data[at] == '\\' {
			at++
		}
	}
	return at + 1
}

func literalEnd(data []byte, at int) int {
	for at < len(data) && bytes.IndexByte([]byte(" \t\r\n,]}"), data[at]) < 0 {
		at++
	}
	return at
}

// unquote decodes a JSON string.
func unquote(text []byte) string {
	var s string
	_ = json.Unmarshal(text, &s)
	return s
}

// quote encodes a JSON string.
func quote(s string) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	_ = e.Encode(s)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// paired reports whether each surrogate escaped in a string has its other half.
func paired(text []byte) bool {
	for at := 0; at < len(text); at++ {
		if text[at] != '\\' {
			continue
		}
		at++
		if text[at] != 'u' {
			continue
		}
		r := escaped(text[at+1:])
		at += 4
		if !utf16.IsSurrogate(r) {
			continue
		}
		rest := text[at+1:]
		if !bytes.HasPrefix(rest, []byte(`\u`)) || utf16.DecodeRune(r, escaped(rest[2:])) == utf8.RuneError {
			return false
		}
		at += 6
	}
	return true
}

func escaped(hex []byte) rune {
	n, _ := strconv.ParseUint(string(hex[:4]), 16, 32)
	return rune(n)
}

func indent(value []byte) []byte {
	var out bytes.Buffer
	_ = json.Indent(&out, value, "  ", "  ")
	return out.Bytes()
}

func compact(value []byte) []byte {
	var out bytes.Buffer
	_ = json.Compact(&out, value)
	return out.Bytes()
}
