// Package pictures fetches a picture of the web for a person who asked to see it. An agent wrote the address, so the package keeps the
// fetch from being of any other use to it: https alone and its usual port, no address of this machine or of a private network, whatever
// name leads there and however often it redirects, nothing sent that says who asks, and nothing returned that is no picture of pixels.
//
// The check of the address is made when a connection is begun, on the address that is connected to: a name that is looked up twice may
// have two answers. No proxy is used, since it would look the name up by itself.
package pictures

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"deskhand/backend/refusal"
)

const (
	// MaxBytes is the size of the largest picture that is fetched.
	MaxBytes     = 10 << 20
	mostAddress  = 2048 // bytes of an address
	mostRedirect = 3
	patience     = 15 * time.Second // for all of it
)

// Picture is what was fetched.
type Picture struct {
	MIME string // image/png, image/jpeg, image/gif or image/webp, as its bytes say
	Data []byte
}

// Fetcher fetches pictures. Its zero value is ready for use.
type Fetcher struct {
	// Of tests, whose server is on this machine.
	near  func(netip.AddrPort) bool   // addresses that are let through in spite of the rules
	leads func(address string) string // the host and port that stand behind those of an address
	trust *x509.CertPool              // nil = the system's
}

var (
	errNear    = errors.New("the address is of this machine or of a private network")
	errAddress = errors.New("not a plain https address")
)

// Fetch gets the picture at an address. Its errors are a *refusal.Error, or ctx's.
func (f Fetcher) Fetch(ctx context.Context, address string) (Picture, error) {
	to, err := read(address)
	if err != nil {
		return Picture{}, refusal.Bad("picture.address")
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, to.String(), http.NoBody)
	if err != nil {
		return Picture{}, refusal.Bad("picture.address")
	}
	r.Header.Set("Accept", "image/webp,image/png,image/jpeg,image/gif")
	r.Header.Set("User-Agent", "Deskhand") // many hosts refuse the one of Go
	client := f.client()
	defer client.CloseIdleConnections()
	answer, err := client.Do(r)
	if err != nil {
		return Picture{}, refused(err, to.Hostname())
	}
	defer answer.Body.Close()
	return taken(answer, to.Hostname())
}

// read returns an address as it is asked for: https, a host, the usual port, no user and no fragment.
func read(address string) (*url.URL, error) {
	if len(address) > mostAddress {
		return nil, errAddress
	}
	to, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if err := plain(to); err != nil {
		return nil, err
	}
	to.Fragment, to.RawFragment = "", ""
	return to, nil
}

func plain(to *url.URL) error {
	if to.Scheme != "https" || to.Opaque != "" || to.User != nil || to.Hostname() == "" || (to.Port() != "" && to.Port() != "443") {
		return errAddress
	}
	return nil
}

func (f Fetcher) client() *http.Client {
	dialer := &net.Dialer{Control: f.control}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: f.trust, MinVersion: tls.VersionTLS12},
		ForceAttemptHTTP2: true, DisableKeepAlives: true, DisableCompression: true, MaxResponseHeaderBytes: 64 << 10,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if f.leads != nil {
				address = f.leads(address)
			}
			return dialer.DialContext(ctx, network, address)
		},
	}
	return &http.Client{Transport: transport, CheckRedirect: func(to *http.Request, via []*http.Request) error {
		to.Header.Del("Referer")
		if len(via) > mostRedirect {
			return http.ErrUseLastResponse
		}
		return plain(to.URL)
	}}
}

// control refuses a connection before it is begun. It is called with the address that the name was looked up to.
func (f Fetcher) control(_, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if f.near != nil && f.near(to) {
		return nil
	}
	if !public(to.Addr()) {
		return errNear
	}
	return nil
}

// special returns the networks, beside those that netip knows, which are not the public internet: by the registries of special-purpose addresses
// (RFC 6890), and those in whose IPv6 addresses an IPv4 address stands.
func special() (all []netip.Prefix) {
	for _, one := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		"2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
	} {
		all = append(all, netip.MustParsePrefix(one))
	}
	return all
}

// public reports whether an address is of the public internet.
func public(a netip.Addr) bool {
	a = a.Unmap()
	if a.Zone() != "" || !a.IsGlobalUnicast() || a.IsPrivate() {
		return false
	}
	if a.Is6() && !netip.MustParsePrefix("2000::/3").Contains(a) { // no other network is given out
		return false
	}
	return !slices.ContainsFunc(special(), func(p netip.Prefix) bool { return p.Contains(a) })
}

// taken returns the picture of an answer.
func taken(answer *http.Response, host string) (Picture, error) {
	if answer.StatusCode != http.StatusOK {
		return Picture{}, refusal.Bad("picture.missing", "host", host, "status", answer.Status)
	}
	said, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(said, "image/") || answer.Header.Get("Content-Encoding") != "" {
		return Picture{}, refusal.Bad("picture.kind", "host", host)
	}
	if answer.ContentLength > MaxBytes {
		return Picture{}, refusal.Bad("picture.too_large", "host", host)
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, MaxBytes+1))
	if err != nil {
		return Picture{}, refused(err, host)
	}
	if len(data) > MaxBytes {
		return Picture{}, refusal.Bad("picture.too_large", "host", host)
	}
	// What the bytes are counts, and not what the host says of them. A drawing (SVG) is text, and may act.
	found := http.DetectContentType(data)
	if !slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp"}, found) {
		return Picture{}, refusal.Bad("picture.kind", "host", host)
	}
	return Picture{MIME: found, Data: data}, nil
}

// refused returns what a person is told of a fetch that failed.
func refused(err error, host string) error {
	switch {
	case errors.Is(err, context.Canceled):
		return context.Canceled
	case errors.Is(err, errNear):
		return refusal.Bad("picture.near", "host", host)
	case errors.Is(err, errAddress):
		return refusal.Bad("picture.redirect", "host", host)
	}
	return refusal.Bad("picture.unreachable", "host", host)
}
