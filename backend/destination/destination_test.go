package destination

import (
	"strings"
	"testing"
)

func TestRead(t *testing.T) {
	for address, want := range map[string]Destination{
		"https://example.com":                      {URL: "https://example.com", Host: "example.com"},
		"HTTP://EXAMPLE.com:8080/P?q#f":            {URL: "http://example.com:8080/P?q#f", Host: "example.com:8080"},
		"https://example.com./":                    {URL: "https://example.com./", Host: "example.com."},
		"https://sub_domain.example.com/":          {URL: "https://sub_domain.example.com/", Host: "sub_domain.example.com"},
		"http://127.0.0.1:7/":                      {URL: "http://127.0.0.1:7/", Host: "127.0.0.1:7"},
		"http://[::1]:7/":                          {URL: "http://[::1]:7/", Host: "[::1]:7"},
		"https://bücher.example/ü":                 {URL: "https://xn--bcher-kva.example/%C3%BC", Host: "xn--bcher-kva.example", Unicode: "bücher.example"},
		"https://xn--bcher-kva.example/":           {URL: "https://xn--bcher-kva.example/", Host: "xn--bcher-kva.example", Unicode: "bücher.example"},
		"https://xn--80ak6aa92e.com/":              {URL: "https://xn--80ak6aa92e.com/", Host: "xn--80ak6aa92e.com", Unicode: "аррӏе.com"}, // all of it Cyrillic
		"https://www.p\u0430ypal.example/":         {URL: "https://www.xn--pypal-4ve.example/", Host: "www.xn--pypal-4ve.example", Unicode: "www.pаypal.example"},
		"https://example.com\u3002evil.com":        {URL: "https://example.com.evil.com", Host: "example.com.evil.com"},
		"https://a.example/?b=\u202ec <\"d\">":     {URL: "https://a.example/?b=%E2%80%AEc%20%3C%22d%22%3E", Host: "a.example"},
		"https://a.example/?b=%41+c&d='e'#\u202ef": {URL: "https://a.example/?b=%41+c&d='e'#%E2%80%AEf", Host: "a.example"},
		"https://\uff45xample.com/":                {URL: "https://example.com/", Host: "example.com"},
	} {
		if got, err := Read(address); err != nil || got != want {
			t.Errorf("Read(%q) = %+v, %v; want %+v", address, got, err, want)
		}
	}
	for _, address := range []string{
		"", "example.com", "//example.com", "/x", "ftp://example.com", "javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "mailto:a@b", "https:", "https:/example.com",
		"https:///example.com", "https://", "https://:80/", "https://user@example.com", "https://a:b@example.com/", `https://example.com\@evil.com`, "https://exam ple.com",
		"https://example.com\n.evil.com", "\thttps://example.com", "http://0x7f.1/", "http://2130706433/", "http://127.1/", "http://2130706433./", "http://127.0.0.1./", "http://0x7f000001.:8080/", "http://[::1", "https://example.com:port/", "https://%zz/",
		"https://xn--\u0430.com/", "https://example.com/" + strings.Repeat("a", longest),
	} {
		if got, err := Read(address); err == nil {
			t.Errorf("Read(%q) = %+v, want an error", address, got)
		}
	}
}

func FuzzDestination(f *testing.F) {
	f.Add("https://bücher.example:8080/ü?q#f")
	f.Add("http://[::1]/")
	f.Add("http://a.example/?b=\u202ec <\"d\">")
	f.Fuzz(func(t *testing.T, address string) {
		to, err := Read(address)
		if err != nil {
			return
		}
		again, err := Read(to.URL)
		if err != nil || again != to {
			t.Errorf("Read(%q) = %+v, read again got %+v, %v; want the same", address, to, again, err)
		}
		for _, r := range to.Host {
			if r > '~' || r <= ' ' {
				t.Errorf("Read(%q): got the host %q, want seen ASCII alone", address, to.Host)
			}
		}
		if !strings.Contains(to.URL, "://"+to.Host) {
			t.Errorf("Read(%q): got the address %q, want an address of %q", address, to.URL, to.Host)
		}
	})
}
