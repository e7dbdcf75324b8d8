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

// cdn is the server that files are downloaded from.
type cdn struct {
	where  string // host and port
	pem    []byte
	client *http.Client
	key    []byte
	files  map[snowflake.ID]*file
}

const realHost = "cdn.discordapp.com"

func (d *Discord) openCDN() {
	certificate, leaf := selfSigned()
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	d.files.key = []byte(d.Token)
	d.files.pem = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: leaf.Raw})
	where := d.serve(http.HandlerFunc(d.download), func(l net.Listener) net.Listener {
		return tls.NewListener(l, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
	})
	dialer := &net.Dialer{}
	d.files.client = &http.Client{Transport: &http.Transport{
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
	d.do(func() { d.files.where = where })
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

// CDN returns the address of the file server, without a path.
func (d *Discord) CDN() string { return "https://" + d.CDNHost() }

// CDNHost returns the host and port of the file server, as the rules for downloads name them.
func (d *Discord) CDNHost() string {
	if d.options.RealHosts {
		return realHost
	}
	return d.files.where
}

// CDNClient returns a client that trusts the certificate of the file server and also finds the server under Discord's names. The client
// dials nothing outside this machine.
func (d *Discord) CDNClient() *http.Client { return d.files.client }

// Certificate returns the certificate of the file server as PEM.
func (d *Discord) Certificate() []byte { return d.files.pem }

func (d *Discord) newFile(m *message, name, mime string, data []byte) *file {
	f := &file{d.nextID(), m, stored(name), mime, data}
	if d.files.files == nil {
		d.files.files = map[snowflake.ID]*file{}
	}
	d.files.files[f.id] = f
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

func (d *Discord) fileByID(id snowflake.ID) *file { return d.files.files[id] }

// address returns a signed address that serves f for a day.
func (d *Discord) address(f *file) string {
	path := fmt.Sprintf("/attachments/%d/%d/%s", f.message.channel.id, f.id, url.PathEscape(f.name))
	query := url.Values{
		"ex": {strconv.FormatInt(time.Now().Add(24*time.Hour).Unix(), 16)},
		"is": {strconv.FormatInt(time.Now().Unix(), 16)},
	}
	query.Set("hm", d.sign(path, query))
	return d.CDN() + path + "?" + query.Encode() + "&"
}

func (d *Discord) sign(path string, query url.Values) string {
	sum := hmac.New(sha256.New, d.files.key)
	fmt.Fprintf(sum, "%s %s %s %d", path, query.Get("ex"), query.Get("is"), d.faults.epoch)
	return hex.EncodeToString(sum.Sum(nil))
}

func (d *Discord) attachmentsJSON(m *message) []object {
	list := []object{}
	for _, f := range m.files {
		size := len(f.data)
		if d.faults.declared != 0 {
			size = d.faults.declared
		}
		o := object{"id": f.id, "filename": f.name, "size": size, "url": d.address(f), "proxy_url": d.address(f), "flags": 0}
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

func (d *Discord) download(w http.ResponseWriter, r *http.Request) {
	f, status, redirect, short := d.fetched(r)
	d.do(func() {
		code := status
		if redirect != "" {
			code = http.StatusFound
		}
		d.calls = append(d.calls, Call{At: time.Now(), Route: RouteFile, Path: r.URL.Path, Status: code})
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

func (d *Discord) fetched(r *http.Request) (f *file, status int, redirect string, short bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	parts := strings.Split(r.URL.Path, "/")
	id, _ := snowflake.Parse(parts[min(len(parts)-1, 3)])
	query := r.URL.Query()
	until, _ := strconv.ParseInt(query.Get("ex"), 16, 64)
	f = d.files.files[id]
	switch signed := hmac.Equal([]byte(query.Get("hm")), []byte(d.sign(r.URL.EscapedPath(), query))); {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return f, http.StatusMethodNotAllowed, "", false
	case d.faults.filesFail > 0:
		d.faults.filesFail--
		return f, d.faults.fileStatus, "", false
	case f == nil, !signed, time.Now().Unix() > until, f.message.deleted:
		return f, http.StatusNotFound, "", false
	}
	return f, http.StatusOK, d.faults.redirect, d.faults.cutShort
}
