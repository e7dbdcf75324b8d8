package session

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
)

// redactor takes secrets out of a message before it is written anywhere: texts of known shapes, the values of env and headers of
// MCP servers, and our own tokens. The agent gets the message as it is; the journal, the index and an export never do.
//
// A secret that streams in over several chunks is not seen: no chunk holds it whole.
type redactor struct{ own []string }

const redacted = "[redacted]"

// shapes are the keys and tokens that are recognised wherever they stand. Each begins with a mark of marks, which is looked for
// first, because nearly every message has none.
//
//nolint:gochecknoglobals // constants in all but name
var (
	shapes = regexp.MustCompile(`sk-[A-Za-z0-9_-]{16,}|(?:gh[pousr]_|github_pat_)[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|` +
		`xox[abeoprs]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{30,}|npm_[A-Za-z0-9]{30,}|hf_[A-Za-z0-9]{30,}|` +
		`eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}|([Bb]earer )[A-Za-z0-9._~+/-]{12,}=*|` +
		`-----BEGIN [A-Z ]*PRIVATE KEY-----[^"]*?-----END [A-Z ]*PRIVATE KEY-----`)
	marks = [][]byte{
		[]byte("sk-"), []byte("ghp_"), []byte("gho_"), []byte("ghu_"), []byte("ghs_"), []byte("ghr_"), []byte("github_pat_"), []byte("glpat-"), []byte("xox"), []byte("AKIA"), []byte("AIza"), []byte("npm_"), []byte("hf_"),
		[]byte("eyJ"), []byte("earer "), []byte("PRIVATE KEY"),
	}
)

// text redacts a text of a record.
func (r redactor) text(s string) string { return string(r.redact([]byte(s))) }

func (r redactor) redact(msg []byte) []byte {
	if bytes.Contains(msg, []byte(`"mcpServers"`)) {
		msg = redactServers(msg)
	}
	for _, secret := range r.own {
		if secret != "" {
			msg = bytes.ReplaceAll(msg, []byte(secret), []byte(redacted))
		}
	}
	for _, mark := range marks {
		if bytes.Contains(msg, mark) {
			return shapes.ReplaceAll(msg, []byte("${1}"+redacted))
		}
	}
	return msg
}

// redactServers blanks the values of env and headers below mcpServers; what is no JSON is left to the shapes.
func redactServers(msg []byte) []byte {
	dec := json.NewDecoder(bytes.NewReader(msg))
	dec.UseNumber()
	var v any
	if dec.Decode(&v) != nil || dec.More() {
		return msg
	}
	blankServers(v, false)
	out, err := json.Marshal(v)
	if err != nil {
		return msg
	}
	return out
}

func blankServers(v any, inside bool) {
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			blankServers(x, inside)
		}
	case map[string]any:
		for k, x := range v {
			if inside && (strings.EqualFold(k, "env") || strings.EqualFold(k, "headers")) {
				v[k] = blankValues(x)
				continue
			}
			blankServers(x, inside || k == "mcpServers")
		}
	}
}

// blankValues keeps the names of a list of {name, value} or of an object, and no value.
func blankValues(v any) any {
	switch v := v.(type) {
	case []any:
		for i, x := range v {
			pair, ok := x.(map[string]any)
			if !ok {
				v[i] = redacted
				continue
			}
			if _, has := pair["value"]; has {
				pair["value"] = redacted
			}
		}
		return v
	case map[string]any:
		for k := range v {
			v[k] = redacted
		}
		return v
	}
	return redacted
}
