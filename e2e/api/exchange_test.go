package api

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var headerLine = regexp.MustCompile(`^([A-Z][A-Za-z-]*):( |\n|$)`)

// cutHeaders takes the header lines off a text.
func cutHeaders(text string) (headers [][2]string, rest string) {
	for headerLine.MatchString(text) {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		name, value, _ := strings.Cut(line, ":")
		headers = append(headers, [2]string{name, strings.TrimSpace(value)})
	}
	return headers, text
}

var events, times = regexp.MustCompile(`^N(\d+) `), regexp.MustCompile(`^x(\d+) `)

// count takes a number off the front of a request.
func count(text string, form *regexp.Regexp) (int, string) {
	m := form.FindStringSubmatch(text)
	if m == nil {
		return 0, text
	}
	n, _ := strconv.Atoi(m[1])
	return n, text[len(m[0]):]
}

// answer is a response as it is compared.
type answer struct {
	status int
	header http.Header
	body   string
}

// send makes one request of a transcript. sent is closed when the request is on its way, and a stream connected.
func (s *server) send(t *testing.T, text string, sent chan struct{}) answer {
	t.Helper()
	again, text := count(text, times)
	number, text := count(text, events)
	first, rest, _ := strings.Cut(text, "\n")
	method, path, _ := strings.Cut(first, " ")
	wait := method == "WAIT"
	if wait {
		method = http.MethodGet
	}
	headers, body := cutHeaders(rest)
	r, err := http.NewRequestWithContext(t.Context(), method, s.base+path, bytes.NewReader(content(body)))
	if err != nil {
		return answer{body: err.Error()}
	}
	r.Header.Set("Authorization", "Bearer the-token-of-these-tests")
	if method == http.MethodPost || method == http.MethodPut {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, h := range headers {
		r.Header.Del(h[0])
		if h[1] != "" {
			r.Header.Set(h[0], h[1])
		}
		if h[0] == "Host" {
			r.Host = h[1]
		}
	}
	if number == 0 {
		close(sent)
	}
	for ; again > 1; again-- {
		if res, err := s.client.Do(r.Clone(t.Context())); err == nil {
			_ = res.Body.Close()
		}
	}
	res, err := s.client.Do(r)
	for wait && err == nil && res.StatusCode == http.StatusNotFound {
		_ = res.Body.Close()
		<-time.After(time.Millisecond)
		res, err = s.client.Do(r)
	}
	if number > 0 {
		close(sent)
	}
	if err != nil {
		return answer{body: err.Error()}
	}
	defer res.Body.Close()
	got := answer{res.StatusCode, res.Header, read(res.Body, number)}
	doc, err := published()
	if err != nil {
		t.Error(err)
		return got
	}
	doc.check(t, method, s.base+path, res, got.body)
	return got
}

// content is the body that a transcript writes down.
func content(text string) []byte {
	switch word, rest, _ := strings.Cut(text, "\n"); {
	case strings.HasPrefix(text, "raw "):
		text, _ = strconv.Unquote(strings.TrimPrefix(text, "raw "))
	case word == "tar" || word == "targz":
		return archive(rest, word == "targz")
	}
	return []byte(text)
}

// read reads a body, or so many events of it.
func read(in io.Reader, number int) string {
	var body strings.Builder
	if number == 0 {
		_, _ = io.Copy(&body, in)
		return strings.TrimSuffix(body.String(), "\n")
	}
	for lines := bufio.NewReader(in); number > 0; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return body.String() + "the stream ended: " + err.Error()
		}
		if line == "\n" {
			number--
			continue
		}
		body.WriteString(line)
	}
	return strings.TrimSuffix(body.String(), "\n")
}

// compare compares an answer with a paragraph of "want".
func (a answer) compare(t *testing.T, request, want string) {
	t.Helper()
	status, rest, _ := strings.Cut(want, "\n")
	headers, body := cutHeaders(rest)
	ok := fmt.Sprint(a.status) == status && like(a.body, string(content(body)))
	for _, h := range headers {
		value := strings.Join(a.header.Values(h[0]), ", ")
		ok = ok && like(value, h[1])
	}
	if !ok {
		var got strings.Builder
		for _, name := range slices.Sorted(maps.Keys(a.header)) {
			fmt.Fprintf(&got, "%s: %s\n", name, strings.Join(a.header[name], ", "))
		}
		t.Errorf("%.200s\n\ngot\n%d\n%s%.2000s\n\nwant\n%.2000s", request, a.status, &got, a.body, want)
	}
}

// like compares a text with one in which "..." stands for anything.
func like(text, want string) bool {
	first, rest, open := strings.Cut(want, "...")
	text, ok := strings.CutPrefix(text, first)
	for ok && open {
		first, rest, open = strings.Cut(rest, "...")
		if !open {
			return strings.HasSuffix(text, first)
		}
		_, text, ok = strings.Cut(text, first)
	}
	return ok && text == ""
}
