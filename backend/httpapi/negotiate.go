package httpapi

import (
	"encoding/json"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// mediaType returns the type of a body without parameters, or "" for a body with two types.
func mediaType(r *http.Request) string {
	given := r.Header["Content-Type"]
	if len(given) != 1 {
		return ""
	}
	if given[0] == "application/json" { // the usual case, without the allocations of parsing
		return given[0]
	}
	t, _, err := mime.ParseMediaType(given[0])
	if err != nil {
		return ""
	}
	return t
}

// query is the parameters of a request. A duplicate parameter is ambiguous, and refused like an unreadable parameter.
type query url.Values

func queryOf(r *http.Request) (query, error) {
	if r.URL.RawQuery == "" {
		return nil, nil
	}
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, &refusal{"invalid_request", "the query cannot be read"}
	}
	for name, all := range values {
		if len(all) > 1 {
			return nil, &refusal{"invalid_request", "the query says " + strconv.Quote(name) + " twice"}
		}
	}
	return query(values), nil
}

// get returns a parameter, or otherwise.
func (q query) get(name, otherwise string) string {
	if values := q[name]; len(values) > 0 && values[0] != "" {
		return values[0]
	}
	return otherwise
}

// require returns a mandatory parameter, under any of its names.
func (q query) require(names ...string) (string, error) {
	for _, name := range names {
		if value := q.get(name, ""); value != "" {
			return value, nil
		}
	}
	return "", &refusal{"invalid_request", names[0] + " is required"}
}

// flag returns a boolean parameter.
func (q query) flag(name string) (bool, error) {
	switch q.get(name, "false") {
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	default:
		return false, &refusal{"invalid_request", name + " must be true or false"}
	}
}

// pathOf returns the path parameter of a request.
func pathOf(r *http.Request) (string, error) {
	q, err := queryOf(r)
	if err != nil {
		return "", err
	}
	return q.require("path")
}

// maxRecord limits bodies that are JSON records.
const maxRecord = 1 << 20

// readRecord reads a JSON body into v. Unknown fields are ignored, as the contract's clients expect.
func readRecord(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := readJSON(w, r)
	if err != nil {
		return err
	}
	if !utf8.Valid(body) { // encoding/json would silently change the names
		return &refusal{"invalid_request", "the body is not UTF-8"}
	}
	if err := json.Unmarshal(body, v); err != nil {
		return &refusal{"invalid_request", "the body is not as the call wants it: " + err.Error()}
	}
	return nil
}

// readJSON reads a body whose type is JSON.
func readJSON(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if mediaType(r) != "application/json" {
		return nil, &refusal{"unsupported_media_type", "the body must be application/json"}
	}
	return readBody(w, r, maxRecord)
}

// quality returns the caller's preference for a media type, from 0 (refused) to 1000, by the most specific range of Accept (RFC 9110,
// 12.5.1). Without Accept every type is welcome.
func quality(r *http.Request, want string) int {
	ranges := listIn(r, "Accept")
	if strings.Trim(ranges, ", ") == "" {
		return 1000
	}
	wantMain, _, _ := strings.Cut(want, "/")
	best, q := -1, 0
	for item := range strings.SplitSeq(ranges, ",") {
		name, params, _ := strings.Cut(item, ";")
		specific := -1
		switch strings.ToLower(strings.TrimSpace(name)) {
		case want:
			specific = 2
		case wantMain + "/*":
			specific = 1
		case "*/*":
			specific = 0
		}
		if specific > best {
			best, q = specific, qualityOf(params)
		}
	}
	return q
}

// qualityOf returns the q of a media range's parameters.
func qualityOf(params string) int {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || !(q >= 0 && q <= 1) { // false for NaN too
			return 0
		}
		return int(q * 1000)
	}
	return 1000
}

// listIn returns all lines of a header as a list. Separators inside quoted strings are removed, where they separate nothing.
func listIn(r *http.Request, header string) string {
	text := strings.Join(r.Header.Values(header), ",")
	if !strings.Contains(text, `"`) {
		return text
	}
	quoted, escaped := false, false
	return strings.Map(func(c rune) rune {
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		}
		if quoted && strings.ContainsRune(",;=", c) {
			return '_'
		}
		return c
	}, text)
}

// preference is the content of Prefer (RFC 7240).
type preference struct {
	async bool
	wait  time.Duration
	waits bool // wait was given
}

// longestWait limits the wait that a caller may ask for; a longer wait is as good as none.
const longestWait = 24 * time.Hour

// prefers reads Prefer, and ignores unknown and unreadable parts, as the RFC says; the first of a repeated preference counts.
func prefers(r *http.Request) preference {
	var p preference
	for item := range strings.SplitSeq(listIn(r, "Prefer"), ",") {
		token, _, _ := strings.Cut(item, ";")
		name, value, _ := strings.Cut(token, "=")
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "respond-async":
			p.async = true
		case "wait":
			seconds, err := strconv.ParseUint(strings.Trim(strings.TrimSpace(value), `"`), 10, 31)
			if err == nil && !p.waits {
				p.waits, p.wait = true, min(time.Duration(seconds)*time.Second, longestWait)
			}
		}
	}
	return p
}

// lastEventID returns where a stream continues; given is false for a start at the beginning.
func lastEventID(r *http.Request) (id uint64, given bool, err error) {
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		return 0, false, nil
	}
	id, err = strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, false, &refusal{"invalid_request", "Last-Event-ID must be a positive integer"}
	}
	return id, true, nil
}
