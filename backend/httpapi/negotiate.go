package httpapi

import (
	"mime"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// mediaType is the type of a body, without parameters.
func mediaType(r *http.Request) string {
	t, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return t
}

// quality is how much the caller wants a media type, from 0 (not at all) to 1000, by the most specific range of its Accept
// (RFC 9110, 12.5.1). Without Accept anything is welcome.
func quality(r *http.Request, want string) int {
	ranges := strings.Join(r.Header.Values("Accept"), ",")
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
		if err != nil || q < 0 || q > 1 {
			return 0
		}
		return int(q * 1000)
	}
	return 1000
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
	for item := range strings.SplitSeq(strings.Join(r.Header.Values("Prefer"), ","), ",") {
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
