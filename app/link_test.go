package app

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestCheckLink(t *testing.T) {
	for link, want := range map[string]string{
		"https://example.org/a?b=c#d":          "https://example.org/a?b=c#d",
		"http://127.0.0.1:8080/":               "http://127.0.0.1:8080/",
		"HTTPS://example.org":                  "https://example.org",
		"mailto:a@example.org?subject=x":       "mailto:a@example.org?subject=x",
		"https://example.org/$(touch x)":       "https://example.org/$%28touch%20x%29",
		"file:///etc/passwd":                   "",
		"javascript:alert(1)":                  "",
		"vscode://file/x":                      "",
		"ssh://host":                           "",
		"/etc/passwd":                          "",
		"//host/share":                         "",
		"-a":                                   "",
		"":                                     "",
		"https://":                             "",
		"https:opaque":                         "",
		"mailto:":                              "",
		"http://a\nfile:///etc":                "",
		" https://example.org":                 "",
		"data:text/html,<script>1</script>":    "",
		"search-ms:query=x&crumb=location:\\x": "",
	} {
		got, err := checkLink(link)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: got %q, %v; want %q", link, got, err, want)
		}
	}
}

func TestOpenLinkRefuses(t *testing.T) {
	err := openLink("file:///etc/passwd")
	var coded *Error
	if !errors.As(err, &coded) || coded.Code != "link.refused" || coded.Params["link"] != "file:///etc/passwd" {
		t.Fatalf("got %#v", err)
	}
	if !errors.Is(err, errScheme) {
		t.Fatalf("the cause is lost: %v", err)
	}
}

func TestSettle(t *testing.T) {
	boom := errors.New("no browser")
	if err := settle(func(string) error { return boom }, "x", time.Minute); !errors.Is(err, boom) {
		t.Errorf("an early failure: got %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		browser := make(chan struct{})
		start := time.Now()
		if err := settle(func(string) error { <-browser; return boom }, "x", time.Second); err != nil {
			t.Errorf("a browser that stays: got %v", err)
		}
		if waited := time.Since(start); waited != time.Second {
			t.Errorf("waited %v", waited)
		}
		close(browser)
	})
}
