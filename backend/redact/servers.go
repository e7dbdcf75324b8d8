package redact

import (
	"bytes"
	"encoding/json"
	"strings"

	"deskhand/backend/mcp"
)

// redactServers blanks the values of env and headers below mcpServers in a JSON message, and puts the names of variables back in the place
// of filled words. Other messages stay.
func redactServers(msg []byte, filled map[string]string) []byte {
	if !bytes.Contains(msg, []byte(`"mcpServers"`)) {
		return msg
	}
	dec := json.NewDecoder(bytes.NewReader(msg))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || dec.More() {
		return msg
	}
	blankServers(v, false, filled)
	out, err := json.Marshal(v)
	if err != nil {
		return msg
	}
	return out
}

func blankServers(v any, inside bool, filled map[string]string) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			blankServers(x, inside, filled)
		}
	case map[string]any:
		for k, x := range v {
			switch {
			case inside && (strings.EqualFold(k, "env") || strings.EqualFold(k, "headers")):
				v[k] = blankValues(x)
				continue
			case inside && strings.EqualFold(k, "url"):
				v[k] = blankURL(asWritten(x, filled))
				continue
			case inside && strings.EqualFold(k, "args"):
				v[k] = blankArgs(asWritten(x, filled))
				continue
			}
			blankServers(x, inside || k == "mcpServers", filled)
		}
	}
}

// asWritten returns a word, or a list of words, with the names of variables in the place of filled words.
func asWritten(v any, filled map[string]string) any {
	switch v := v.(type) {
	case string:
		if word, ok := filled[v]; ok {
			return word
		}
	case []any:
		for i, x := range v {
			v[i] = asWritten(x, filled)
		}
	}
	return v
}

// blankURL returns an address without its user, its password and the values of its query.
func blankURL(v any) any {
	if address, ok := v.(string); ok {
		return mcp.MaskURL(address)
	}
	return v
}

// blankArgs blanks the values of a command line's options that are secrets by their names.
func blankArgs(v any) any {
	list, _ := v.([]any)
	words := make([]string, len(list))
	for i, x := range list {
		word, ok := x.(string)
		if !ok {
			return v
		}
		words[i] = word
	}
	if list == nil {
		return v
	}
	return mcp.MaskArgs(words)
}

// blankValues blanks the values of a list of {name, value} or of an object, and keeps the names.
func blankValues(v any) any {
	switch v := v.(type) {
	case []any:
		for i, x := range v {
			pair, ok := x.(map[string]any)
			if !ok {
				v[i] = Mark
				continue
			}
			if _, has := pair["value"]; has {
				pair["value"] = Mark
			}
		}
		return v
	case map[string]any:
		for k := range v {
			v[k] = Mark
		}
		return v
	}
	return Mark
}
