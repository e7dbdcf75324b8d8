package session

import (
	"encoding/json"
	"strings"
	"testing"

	"deskhand/backend/lifecycle"
)

func TestWhereAnAddressLeads(t *testing.T) {
	for address, want := range map[string]destination{
		"https://example.com":                      {url: "https://example.com", host: "example.com"},
		"HTTP://EXAMPLE.com:8080/P?q#f":            {url: "http://example.com:8080/P?q#f", host: "example.com:8080"},
		"https://example.com./":                    {url: "https://example.com./", host: "example.com."},
		"https://sub_domain.example.com/":          {url: "https://sub_domain.example.com/", host: "sub_domain.example.com"},
		"http://127.0.0.1:7/":                      {url: "http://127.0.0.1:7/", host: "127.0.0.1:7"},
		"http://[::1]:7/":                          {url: "http://[::1]:7/", host: "[::1]:7"},
		"https://bücher.example/ü":                 {url: "https://xn--bcher-kva.example/%C3%BC", host: "xn--bcher-kva.example", unicode: "bücher.example"},
		"https://xn--bcher-kva.example/":           {url: "https://xn--bcher-kva.example/", host: "xn--bcher-kva.example", unicode: "bücher.example"},
		"https://xn--80ak6aa92e.com/":              {url: "https://xn--80ak6aa92e.com/", host: "xn--80ak6aa92e.com", unicode: "аррӏе.com"}, // all of it Cyrillic
		"https://www.p\u0430ypal.example/":         {url: "https://www.xn--pypal-4ve.example/", host: "www.xn--pypal-4ve.example", unicode: "www.pаypal.example"},
		"https://example.com\u3002evil.com":        {url: "https://example.com.evil.com", host: "example.com.evil.com"},
		"https://a.example/?b=\u202ec <\"d\">":     {url: "https://a.example/?b=%E2%80%AEc%20%3C%22d%22%3E", host: "a.example"},
		"https://a.example/?b=%41+c&d='e'#\u202ef": {url: "https://a.example/?b=%41+c&d='e'#%E2%80%AEf", host: "a.example"},
		"https://\uff45xample.com/":                {url: "https://example.com/", host: "example.com"},
	} {
		if have, err := readDestination(address); err != nil || have != want {
			t.Errorf("%s leads to %+v, %v; want %+v", address, have, err, want)
		}
	}
	for _, address := range []string{
		"", "example.com", "//example.com", "/x", "ftp://example.com", "javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "mailto:a@b", "https:", "https:/example.com",
		"https:///example.com", "https://", "https://:80/", "https://user@example.com", "https://a:b@example.com/", `https://example.com\@evil.com`, "https://exam ple.com",
		"https://example.com\n.evil.com", "\thttps://example.com", "http://0x7f.1/", "http://2130706433/", "http://127.1/", "http://2130706433./", "http://127.0.0.1./", "http://0x7f000001.:8080/", "http://[::1", "https://example.com:port/", "https://%zz/",
		"https://xn--\u0430.com/", "https://example.com/" + strings.Repeat("a", longestURL),
	} {
		if have, err := readDestination(address); err == nil {
			t.Errorf("%q is opened as %+v", address, have)
		}
	}
}

func FuzzDestination(f *testing.F) {
	f.Add("https://bücher.example:8080/ü?q#f")
	f.Add("http://[::1]/")
	f.Add("http://a.example/?b=\u202ec <\"d\">")
	f.Fuzz(func(t *testing.T, address string) {
		to, err := readDestination(address)
		if err != nil {
			return
		}
		again, err := readDestination(to.url)
		if err != nil || again != to {
			t.Errorf("%q is %+v, which is %+v, %v", address, to, again, err)
		}
		for _, r := range to.host {
			if r > '~' || r <= ' ' {
				t.Errorf("the host of %q is %q", address, to.host)
			}
		}
		if !strings.Contains(to.url, "://"+to.host) {
			t.Errorf("%q does not lead to %q", to.url, to.host)
		}
	})
}

// Whatever an agent asks for, and whatever is answered: nothing panics, and what is taken for an answer fits.
func FuzzForm(f *testing.F) {
	f.Add([]byte(`{"type":"object","properties":{"a":{"type":"string","minLength":1,"pattern":"^a"},"b":{"type":"array","items":{"enum":["x"]}}},"required":["a"]}`), []byte(`{"a":"ab","b":["x"]}`), "x")
	f.Add([]byte(`{"properties":{"n":{"type":"integer","minimum":1}}}`), []byte(`{"n":1.5}`), "7")
	f.Add([]byte(`{"$ref":"http://127.0.0.1/x","properties":{}}`), []byte(`{}`), "")
	f.Add([]byte(`{"properties":{"q":{"type":"string","oneOf":[{"const":"a"}],"_meta":{"codex":{"isOther":true}}},"q_note":{"type":"string"}},"required":["q"]}`), []byte(`[]`), "own")
	f.Fuzz(func(t *testing.T, schema, content []byte, word string) {
		r := &openRequest{Request: Request{ID: "r", Kind: kindForm, Title: word, Schema: schema}, method: "elicitation/create"}
		if showable(schema) != (len(r.asks()) > 0) {
			t.Errorf("%s is shown, and asks nothing", schema)
		}
		if !showable(schema) {
			return
		}
		status, result, err := r.respond(Answer{Action: "accept", Content: content})
		if err == nil && (status != lifecycle.StatusAnswered || result == nil || !json.Valid(content)) {
			t.Errorf("%s for %s is %s %v", content, schema, status, result)
		}
		a, err := r.fromLists([][]string{{word}, {word, word}})
		if err != nil {
			return
		}
		if _, _, err := r.respond(a); err == nil {
			r.Status, r.Answer = lifecycle.StatusAnswered, mustJSON(a)
		}
		for _, e := range r.questionEvents() {
			mustJSON(e)
		}
	})
}
