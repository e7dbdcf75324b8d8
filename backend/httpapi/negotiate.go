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

// mediaType is the type of a body, without parameters. A body of two types has none.
func mediaType(r *http.Request) string {
	given := r.Header["Content-Type"]
	if len(given) != 1 {
		return ""
	}
	if given[0] == "application/json" { // what nearly all send; parsing allocates
		return given[0]
	}
	t, _, err := mime.ParseMediaType(given[0])
	if err != nil {
		return ""
	}
	return t
}

// query is the parameters of a request. One that stands there twice means two things, and is refused like one that cannot be read.
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

// get is a parameter, or what it is when it is left out.
func (q query) get(name, otherwise string) string {
	if values := q[name]; len(values) > 0 && values[0] != "" {
		return values[0]
	}
	return otherwise
}

// require is a parameter that must be there, under one of its names.
func (q query) require(names ...string) (string, error) {
	for _, name := range names {
		if value := q.get(name, ""); value != "" {
			return value, nil
		}
	}
	return "", &refusal{"invalid_request", names[0] + " is required"}
}

// flag is a parameter that is true or false.
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

// pathOf is the path that a request is about.
func pathOf(r *http.Request) (string, error) {
	q, err := queryOf(r)
	if err != nil {
		return "", err
	}
	return q.require("path")
}

// maxRecord bounds the bodies that are records of ours.
const maxRecord = 1 << 20

// readRecord reads a JSON body into v. What v does not have is ignored, as the contract's clients expect.
func readRecord(w http.ResponseWriter, r *http.Request, v any) error {
	body, err := readJSON(w, r)
	if err != nil {
		return err
	}
	if !utf8.Valid(body) { // encoding/json would make other names of it
		return &refusal{"invalid_request", "the body is not UTF-8"}
	}
	if err := json.Unmarshal(body, v); err != nil {
		return &refusal{"invalid_request", "the body is not as the call wants it: " + err.Error()}
	}
	return nil
}

// readJSON reads a body that says it is JSON.
func readJSON(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if mediaType(r) != "application/json" {
		return nil, &refusal{"unsupported_media_type", "the body must be application/json"}
	}
	return readBody(w, r, maxRecord)
}

// quality is how much the caller wants a media type, from 0 (not at all) to 1000, by the most specific range of its Accept
// (RFC 9110, 12.5.1). Without Accept anything is welcome.
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

// qualityOf reads the q of a media range's parameters.
func qualityOf(params string) int {
	for param := range strings.SplitSeq(params, ";") {
		name, value, _ := strings.Cut(strings.TrimSpace(param), "=")
		if !strings.EqualFold(strings.TrimSpace(name), "q") {
			continue
		}
		q, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil || !(q >= 0 && q <= 1) { // what is not a number is neither
			return 0
		}
		return int(q * 1000)
	}
	return 1000
}

// listIn is all lines of a header as one list. What separates items is taken out of quoted strings, where it separates nothing.
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

// preference is what the caller says in Prefer (RFC 7240).
type preference struct {
	async bool
	wait  time.Duration
	waits bool // wait was given
}

// longestWait bounds what a caller may ask for; longer is not to be told from for ever.
const longestWait = 24 * time.Hour

// prefers reads Prefer. What it does not know or cannot read it ignores, as the RFC says; of a repeated one the first counts.
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

// lastEventID is where a stream goes on; given is false when it starts at the beginning.
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
