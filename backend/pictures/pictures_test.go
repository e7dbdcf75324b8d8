package pictures

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"deskhand/backend/refusal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// dot returns a PNG of one pixel.
func dot() []byte {
	data, err := base64.StdEncoding.DecodeString("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
	if err != nil {
		panic(err)
	}
	return data
}

// serve returns a fetcher to which a server of this machine is example.com, and other.example.com a server that it may not reach.
func serve(t *testing.T, handler http.HandlerFunc) Fetcher {
	t.Helper()
	server := httptest.NewTLSServer(handler)
	t.Cleanup(server.Close)
	other := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the other server was reached") }))
	t.Cleanup(other.Close)
	at := netip.MustParseAddrPort(server.Listener.Addr().String())
	return Fetcher{
		near: func(a netip.AddrPort) bool { return a == at },
		leads: func(address string) string {
			if address == "other.example.com:443" {
				return other.Listener.Addr().String()
			}
			return at.String()
		},
		trust: server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs,
	}
}

func codeOf(err error) string {
	if refused, ok := errors.AsType[*refusal.Error](err); ok {
		return refused.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

func TestFetch(t *testing.T) {
	var asked http.Header
	f := serve(t, func(w http.ResponseWriter, r *http.Request) {
		asked = r.Header
		w.Header().Set("Content-Type", "image/png; charset=binary")
		w.Header().Set("Set-Cookie", "a=b; Domain=example.com")
		if r.URL.Path == "/moved.png" {
			http.Redirect(w, r, "https://example.com/a.png", http.StatusFound)
			return
		}
		_, _ = w.Write(dot())
	})
	for _, address := range []string{"https://example.com/a.png", "https://example.com:443/a.png#b", "https://example.com/moved.png?secret"} {
		got, err := f.Fetch(t.Context(), address)
		if err != nil || got.MIME != "image/png" || !bytes.Equal(got.Data, dot()) {
			t.Errorf("Fetch(%q): got %q, %d bytes, %v, want the picture", address, got.MIME, len(got.Data), err)
		}
		for _, name := range []string{"Cookie", "Referer", "Authorization", "Accept-Encoding"} {
			if said := asked.Get(name); said != "" {
				t.Errorf("Fetch(%q) sent %s: %q, want nothing", address, name, said)
			}
		}
	}
}

func TestFetchRefusesAddresses(t *testing.T) {
	f := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was asked") })
	for _, address := range []string{
		"", "a.png", "http://example.com/a.png", "ftp://example.com/a.png", "file:///etc/passwd", "https:///a.png", "https:a.png", "data:image/png;base64,",
		"https://me:secret@example.com/a.png", "https://example.com:8443/a.png", "https://example.com/" + strings.Repeat("a", mostAddress), "https://exa mple.com/", "https://[::1/",
	} {
		if _, err := f.Fetch(t.Context(), address); codeOf(err) != "picture.address" {
			t.Errorf("Fetch(%.60q): got %v, want picture.address", address, err)
		}
	}
}

// TestFetchRefusesNear uses addresses as they come from a look-up, without the allowance of the other tests.
func TestFetchRefusesNear(t *testing.T) {
	for _, address := range []string{"https://127.0.0.1/a.png", "https://localhost/a.png", "https://[::1]/a.png", "https://10.0.0.1/", "https://[::ffff:10.0.0.1]/", "https://169.254.169.254/latest", "https://0.0.0.0/", "https://2130706433/"} {
		got := codeOf(second(Fetcher{}.Fetch(t.Context(), address)))
		if got != "picture.near" && (address != "https://2130706433/" || got != "picture.unreachable") { // a look-up may know no such name
			t.Errorf("Fetch(%q): got %q, want picture.near", address, got)
		}
	}
}

func second(_ Picture, err error) error { return err }

// TestFetchFollows is of names that were looked up well once and lead elsewhere now, and of redirects.
func TestFetchFollows(t *testing.T) {
	for to, want := range map[string]string{
		"https://other.example.com/a.png": "picture.near",
		"http://example.com/a.png":        "picture.redirect",
		"https://example.com:8443/a.png":  "picture.redirect",
		"https://me@example.com/a.png":    "picture.redirect",
		"https://example.com/again":       "picture.missing",
	} {
		f := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, http.StatusFound) })
		if got := codeOf(second(f.Fetch(t.Context(), "https://example.com/a.png"))); got != want {
			t.Errorf("a redirect to %s: got %q, want %q", to, got, want)
		}
	}
}

func TestFetchRefusesWhatIsNoPicture(t *testing.T) {
	large := append(bytes.Clone(dot()), make([]byte, MaxBytes)...)
	for name, c := range map[string]struct {
		media, encoding string
		status          int
		data            []byte
		want            string
	}{
		"a drawing":             {"image/svg+xml", "", 200, []byte("<svg xmlns='http://www.w3.org/2000/svg'/>"), "picture.kind"},
		"a drawing called else": {"image/png", "", 200, []byte("<svg xmlns='http://www.w3.org/2000/svg'/>"), "picture.kind"},
		"a page":                {"text/html", "", 200, dot(), "picture.kind"},
		"no type":               {"", "", 200, dot(), "picture.kind"},
		"an encoding":           {"image/png", "gzip", 200, dot(), "picture.kind"},
		"a bitmap":              {"image/bmp", "", 200, []byte("BM000000"), "picture.kind"},
		"nothing":               {"image/png", "", 200, nil, "picture.kind"},
		"a missing one":         {"image/png", "", 404, dot(), "picture.missing"},
		"a large one":           {"image/png", "", 200, large, "picture.too_large"},
	} {
		t.Run(name, func(t *testing.T) {
			f := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header()["Content-Type"] = []string{c.media}
				if c.encoding != "" {
					w.Header().Set("Content-Encoding", c.encoding)
				}
				w.WriteHeader(c.status)
				for data := c.data; len(data) > 0; data = data[min(len(data), 1<<20):] { // in pieces, so that no length is said
					_, _ = w.Write(data[:min(len(data), 1<<20)])
				}
			})
			if got := codeOf(second(f.Fetch(t.Context(), "https://example.com/a"))); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestFetchEndsWithItsCaller(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	f := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if _, err := f.Fetch(ctx, "https://example.com/a.png"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the caller's end", err)
	}
}

func TestPublic(t *testing.T) {
	for address, want := range map[string]bool{
		"93.184.216.34": true, "8.8.8.8": true, "2606:2800:220:1:248:1893:25c8:1946": true, "::ffff:8.8.8.8": true,
		"127.0.0.1": false, "127.8.8.8": false, "10.1.2.3": false, "172.16.0.1": false, "192.168.1.1": false, "169.254.169.254": false, "100.64.0.1": false,
		"0.0.0.0": false, "0.1.2.3": false, "224.0.0.1": false, "255.255.255.255": false, "198.18.0.1": false, "203.0.113.9": false,
		"::": false, "::1": false, "fe80::1": false, "fe80::1%eth0": false, "fc00::1": false, "fd12::1": false, "fec0::1": false, "ff02::1": false,
		"::ffff:127.0.0.1": false, "::127.0.0.1": false, "64:ff9b::7f00:1": false, "64:ff9b:1::1": false, "2002:7f00:1::": false, "2001:0:1::": false, "2001:db8::1": false,
	} {
		if got := public(netip.MustParseAddr(address)); got != want {
			t.Errorf("public(%s): got %v, want %v", address, got, want)
		}
	}
}
