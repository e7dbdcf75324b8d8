package discordtest

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"image"
	_ "image/gif" // so that pictures have a width and a height, as at Discord
	_ "image/jpeg"
	_ "image/png"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/disgoorg/snowflake/v2"
)

// file is a file of a message, which anyone with its signed address may download.
type file struct {
	id      snowflake.ID
	message *message
	name    string
	mime    string
	data    []byte
}

// CDN is the server that files are downloaded from.
type CDN struct {
	URL         string       // without a path
	Host        string       // with the port, as the rules for downloads name the server
	Client      *http.Client // trusts Certificate and finds the server under Discord's names too; dials nothing outside this machine
	Certificate []byte       // PEM

	d          *Discord
	key        []byte
	files      map[snowflake.ID]*file
	declared   int // size of every file that messages declare; 0 = the truth
	redirect   string
	cutShort   bool
	failing    int // downloads that still fail
	failStatus int
	epoch      int // addresses that were signed in an earlier epoch are invalid
}

const realHost = "cdn.discordapp.com"

// open starts the server. With realHosts the addresses of files name Discord's own server.
func (c *CDN) open(realHosts bool) {
	certificate, leaf := selfSigned()
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	c.Certificate = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw})
	where := c.d.serve(http.HandlerFunc(c.download), func(l net.Listener) net.Listener {
		return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
	})
	dialer := &net.Dialer{}
	c.Client = &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
		// Discord's own names lead to this machine. Every other address outside this machine is refused, so that tests stay on loopback.
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			host, _, err := net.SplitHostPort(address)
			switch {
			case err != nil:
				return nil, err
			case strings.HasSuffix(host, ".discordapp.com") || strings.HasSuffix(host, ".discordapp.net"):
				address = where
			case host != "127.0.0.1":
				return nil, fmt.Errorf("the stand-in does not let %s be dialled", address)
			}
			return dialer.DialContext(ctx, network, address)
		},
	}}
	c.Host = where
	if realHosts {
		c.Host = realHost
	}
	c.URL = "https://" + c.Host
}

// selfSigned returns a certificate for this machine and for the names of Discord's file servers.
func selfSigned() (tls.Certificate, *x509.Certificate) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "Deskhand's stand-in for Discord"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		DNSNames: []string{"localhost", realHost, "media.discordapp.net"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(err)
	leaf, err := x509.ParseCertificate(raw)
	must(err)
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key, Leaf: leaf}, leaf
}

func must(err error) {
	if err != nil {
		panic(fmt.Sprintf("standin: %v", err))
	}
}

func (c *CDN) newFile(m *message, name, mime string, data []byte) *file {
	f := &file{c.d.nextID(), m, stored(name), mime, data}
	c.files[f.id] = f
	return f
}

// stored returns name as Discord stores it, without the characters that Discord removes.
func stored(name string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '_'
		case r == '.', r == '-', r == '_', r >= '0' && r <= '9', r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z':
			return r
		}
		return -1
	}, name)
	if strings.Trim(clean, "._-") == "" {
		return "unknown"
	}
	return clean
}

// address returns a signed address that serves f for a day.
func (c *CDN) address(f *file) string {
	path := fmt.Sprintf("/attachments/%d/%d/%s", f.message.channel.id, f.id, url.PathEscape(f.name))
	query := url.Values{
		"ex": {strconv.FormatInt(time.Now().Add(24*time.Hour).Unix(), 16)},
		"is": {strconv.FormatInt(time.Now().Unix(), 16)},
	}
	query.Set("hm", c.sign(path, query))
	return c.URL + path + "?" + query.Encode() + "&"
}

func (c *CDN) sign(path string, query url.Values) string {
	sum := hmac.New(sha256.New, c.key)
	fmt.Fprintf(sum, "%s %s %s %d", path, query.Get("ex"), query.Get("is"), c.epoch)
	return hex.EncodeToString(sum.Sum(nil))
}

func (c *CDN) attachmentsJSON(m *message) []object {
	list := []object{}
	for _, f := range m.files {
		size := len(f.data)
		if c.declared != 0 {
			size = c.declared
		}
		o := object{"id": f.id, "filename": f.name, "size": size, "url": c.address(f), "proxy_url": c.address(f), "flags": 0}
		if f.mime != "" {
			o["content_type"] = f.mime
		}
		if picture, _, err := image.DecodeConfig(bytes.NewReader(f.data)); err == nil {
			o["width"], o["height"] = picture.Width, picture.Height
		}
		if m.only != nil {
			o["ephemeral"] = true
		}
		list = append(list, o)
	}
	return list
}

func (c *CDN) download(w http.ResponseWriter, r *http.Request) {
	f, status, redirect, short := c.fetched(r)
	c.d.do(func() {
		code := status
		if redirect != "" {
			code = http.StatusFound
		}
		c.d.API.calls = append(c.d.API.calls, Call{At: time.Now(), Route: RouteFile, Path: r.URL.Path, Status: code})
	})
	switch {
	case status != http.StatusOK:
		http.Error(w, "This content is no longer available.", status)
	case redirect != "":
		http.Redirect(w, r, redirect, http.StatusFound)
	default:
		kind := f.mime
		if kind == "" {
			kind = "application/octet-stream"
		}
		w.Header().Set("Content-Type", kind)
		length := len(f.data)
		if short {
			length++ // and the server hangs up where it has no more
		}
		w.Header().Set("Content-Length", strconv.Itoa(length))
		_, _ = w.Write(f.data)
	}
}

func (c *CDN) fetched(r *http.Request) (f *file, status int, redirect string, short bool) {
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	parts := strings.Split(r.URL.Path, "/")
	id, _ := snowflake.Parse(parts[min(len(parts)-1, 3)])
	query := r.URL.Query()
	until, _ := strconv.ParseInt(query.Get("ex"), 16, 64)
	f = c.files[id]
	switch signed := hmac.Equal([]byte(query.Get("hm")), []byte(c.sign(r.URL.EscapedPath(), query))); {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return f, http.StatusMethodNotAllowed, "", false
	case c.failing > 0:
		c.failing--
		return f, c.failStatus, "", false
	case f == nil, !signed, time.Now().Unix() > until, f.message.deleted:
		return f, http.StatusNotFound, "", false
	}
	return f, http.StatusOK, c.redirect, c.cutShort
}

// LieAboutSize declares every file to have a size of bytes, whatever its real size; 0 = the real size.
func (c *CDN) LieAboutSize(bytes int) { c.d.do(func() { c.declared = bytes }) }

// CutShort ends every download before its end.
func (c *CDN) CutShort(on bool) { c.d.do(func() { c.cutShort = on }) }

// RedirectAway redirects every download to another address; "" ends the redirection.
func (c *CDN) RedirectAway(to string) { c.d.do(func() { c.redirect = to }) }

// Fail fails the next n downloads.
func (c *CDN) Fail(n, status int) {
	c.d.do(func() { c.failing, c.failStatus = n, status })
}

// Expire makes every address of a file that was given so far invalid. Fetching the message again gives new addresses.
func (c *CDN) Expire() { c.d.do(func() { c.epoch++ }) }
