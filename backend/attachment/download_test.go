package attachment_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deskhand/backend/attachment"
)

const signature = "?ex=1&is=2&hm=SECRETSIGNATURE"

func sha10(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])[:10]
}

// cdn is a server with files, a client that trusts the server, and a directory for downloads.
type cdn struct {
	*httptest.Server

	at     string
	dir    *os.Root
	limits attachment.DownloadLimits
}

func newCDN(t *testing.T, handler http.HandlerFunc) *cdn {
	t.Helper()
	s := httptest.NewTLSServer(handler)
	t.Cleanup(s.Close)
	at := realTemp(t)
	dir, err := os.OpenRoot(at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dir.Close() })
	return &cdn{s, at, dir, attachment.DownloadLimits{Hosts: []string{strings.TrimPrefix(s.URL, "https://")}}}
}

func (c *cdn) download(t *testing.T, items ...attachment.SentinelItem) ([]attachment.Downloaded, error) {
	t.Helper()
	return attachment.Download(t.Context(), c.Client(), items, c.dir, c.limits)
}

func (c *cdn) item(path, filename, mime string) attachment.SentinelItem {
	return attachment.SentinelItem{URL: c.URL + path + signature, Filename: filename, MimeType: mime}
}

// noSignature checks that the results contain no query.
func noSignature(t *testing.T, what string, files []attachment.Downloaded, err error) {
	t.Helper()
	var causes []string
	for e := err; e != nil; e = errors.Unwrap(e) {
		causes = append(causes, e.Error())
	}
	if told := fmt.Sprintf("%+v %v %#v %q", files, err, err, causes); strings.Contains(told, "SECRET") {
		t.Errorf("%s: the signature is told: %s", what, told)
	}
}

func TestDownload(t *testing.T) {
	c := newCDN(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("hm") != "SECRETSIGNATURE" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if kind := r.URL.Query().Get("type"); kind != "" {
			w.Header().Set("Content-Type", kind)
		} else {
			w.Header()["Content-Type"] = nil
		}
		io.WriteString(w, r.URL.Path)
	})
	typed := func(path, filename, mime, kind string) attachment.SentinelItem {
		item := c.item(path, filename, mime)
		item.URL += "&type=" + url.QueryEscape(kind)
		return item
	}
	long := strings.Repeat("x", 10)
	cases := []struct {
		item      attachment.SentinelItem
		ext, mime string
	}{
		{typed("/1/a.gif", "a.jpg", "image/jpeg", "image/png"), ".png", "image/png"},
		{typed("/2/a.gif", "a.jpg", "", "text/plain;charset=utf-8"), ".txt", "text/plain"},
		{c.item("/3/a.gif", "A.JPG", "image/jpeg"), ".jpg", "image/jpeg"},
		{typed("/4/a.gif", "a.tar.gz", "", "application/octet-stream"), ".gz", "text/plain"}, // these bytes are no gzip
		{c.item("/5/a.GIF", "a", ""), ".gif", "text/plain"},
		{c.item("/6/a", "", ""), "", "text/plain"},
		{c.item("/7/a.b-c", "a.thisistoolong", "text/x-mine"), "", "text/x-mine"},
		{c.item("/8/a."+long, "a.é", ""), "." + long, "text/plain"},
		{typed("/9/a", "../../../etc/passwd", "", "application/x-unheard-of"), "", "application/x-unheard-of"},
		{typed("/10/main", "main.go", "", "nonsense"), ".go", "text/x-go"},
	}
	var items []attachment.SentinelItem
	var want []attachment.Downloaded
	for _, one := range cases {
		path, _, _ := strings.Cut(strings.TrimPrefix(one.item.URL, c.URL), "?")
		items = append(items, one.item)
		want = append(want, attachment.Downloaded{
			Path: filepath.Join(c.at, sha10(path)+one.ext), SHA10: sha10(path), Bytes: int64(len(path)), SourceURL: c.URL + path, MimeType: one.mime,
		})
	}
	for range 2 { // the second time every file exists
		got, err := c.download(t, append(items, items[0])...) // and each hash is reported once
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%v\n%+v\nwant\n%+v", err, got, want)
		}
		noSignature(t, "files", got, err)
		if there := below(t, c.at); len(there) != len(want) {
			t.Errorf("there are %q", keys(there))
		}
	}
	for _, f := range want {
		info, err := os.Stat(f.Path)
		if err != nil || info.Mode().Perm() != 0o600 || info.Size() != f.Bytes {
			t.Errorf("%s: got info %v, error %v, want no error, info.Mode().Perm() 0o600 and info.Size() %v", f.Path, info, err, f.Bytes)
		}
	}
}

// TestSameBytesUnderTwoTypesAreOneFile: the same bytes under two types are a single file, within a call and across calls.
func TestSameBytesUnderTwoTypesAreOneFile(t *testing.T) {
	c := newCDN(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", map[string]string{"/a": "text/plain", "/b": "application/json"}[r.URL.Path])
		_, _ = w.Write([]byte("{}"))
	})
	for range 2 {
		files, err := c.download(t, c.item("/b", "x.json", ""), c.item("/a", "x.txt", ""))
		if err != nil || len(files) != 1 || filepath.Base(files[0].Path) != sha10("{}")+".json" {
			t.Errorf("got %+v, %v; want one file", files, err)
		}
		if _, err := c.download(t, c.item("/a", "x.txt", "")); err != nil {
			t.Error(err)
		}
	}
	entries, err := os.ReadDir(c.at)
	if err != nil || len(entries) != 1 {
		t.Errorf("the directory: got %v, %v; want one file", entries, err)
	}
}

func TestDownloadOverwritesNothing(t *testing.T) {
	c := newCDN(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) })
	name := func(path string) string { return filepath.Join(c.at, sha10(path)+".txt") }
	long := time.Now().Add(-time.Hour)
	write(t, name("/same"), "/same")
	if err := os.Chtimes(name("/same"), long, long); err != nil {
		t.Fatal(err)
	}
	write(t, name("/other"), "another")
	write(t, name("/shorter"), "")
	if err := os.Mkdir(name("/dir"), 0o755); err != nil {
		t.Fatal(err)
	}
	outside := write(t, filepath.Join(realTemp(t), "target"), "/linked")
	link(t, outside, name("/linked"))
	link(t, filepath.Join(filepath.Dir(outside), "new"), name("/dangling"))
	var items []attachment.SentinelItem
	for _, path := range []string{"/same", "/other", "/shorter", "/dir", "/linked", "/dangling", "/new"} {
		items = append(items, c.item(path, path+".txt", ""))
	}
	got, err := c.download(t, items...)
	if len(got) != 2 || got[0].Path != name("/same") || got[1].Path != name("/new") {
		t.Errorf(`download: got %+v, want 2 in got, got[0].Path name("/same") and got[1].Path name("/new")`, got)
	}
	wants(t, "those that are there", err, "exists")
	if n := strings.Count(fmt.Sprint(err), "is there already, with other content"); n != 5 {
		t.Errorf("%d are told: %v", n, err)
	}
	if info, err := os.Stat(name("/same")); err != nil || !info.ModTime().Equal(long.Truncate(0)) && info.ModTime().Unix() != long.Unix() {
		t.Errorf("what was the same was written: %v, %v", info, err)
	}
	there := below(t, c.at)
	if there[filepath.Base(name("/other"))] != "another" || there[filepath.Base(name("/shorter"))] != "" || len(below(t, filepath.Dir(outside))) != 1 {
		t.Errorf("there are %v", there)
	}
	noSignature(t, "exists", got, err)
}

func TestDownloadOnlyFromItsHosts(t *testing.T) {
	asked := 0
	foreign := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(foreign.Close)
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	t.Cleanup(plain.Close)
	var referers []string
	c := newCDN(t, func(w http.ResponseWriter, r *http.Request) {
		referers = append(referers, r.Referer())
		switch to := r.URL.Query().Get("to"); {
		case strings.HasPrefix(r.URL.Path, "/round"):
			http.Redirect(w, r, r.URL.Path+"x"+signature, http.StatusFound)
		case to != "":
			http.Redirect(w, r, to, http.StatusFound)
		default:
			io.WriteString(w, "here")
		}
	})
	host := strings.TrimPrefix(c.URL, "https://")
	for what, address := range map[string]string{
		"a foreign host": foreign.URL + "/" + signature, "http": "http://" + host + "/" + signature, "another port": "https://127.0.0.1/" + signature,
		"a host before it": "https://127.0.0.1.evil.example/" + signature, "a user": "https://me@" + host + "/" + signature, "file": "file:///etc/passwd",
		"no host": "https:///" + signature, "opaque": "https:" + host + signature, "nothing": "", "a path": "/etc/passwd", "the usual host is not in the setting": "https://cdn.discordapp.com/" + signature,
		"a redirect to a foreign host": c.URL + "/" + signature + "&to=" + foreign.URL + "/%3FSECRET", "a redirect to http": c.URL + "/" + signature + "&to=" + plain.URL + "/%3FSECRET",
		"a redirect to a file": c.URL + "/?to=file:///etc/passwd",
	} {
		got, err := c.download(t, attachment.SentinelItem{URL: address, Filename: "a"})
		wants(t, what, err, "host")
		noSignature(t, what, got, err)
	}
	got, err := c.download(t, attachment.SentinelItem{URL: "https://a b/%zz" + signature, Filename: "a"}, attachment.SentinelItem{URL: c.URL + "/round" + signature, Filename: "b"})
	wants(t, "no address, and one that goes round", err, "unreadable")
	if !strings.Contains(fmt.Sprint(err), "too many redirects") || !strings.Contains(fmt.Sprint(err), "no valid address") {
		t.Errorf("it says %v", err)
	}
	noSignature(t, "no address", got, err)
	referers = nil
	got, err = c.download(t, attachment.SentinelItem{URL: c.URL + "/a.txt" + signature + "&to=" + c.URL + "/b.txt%3Fhm=SECRET"})
	if err != nil || len(got) != 1 || got[0].SourceURL != c.URL+"/a.txt" {
		t.Errorf("a redirect within the host: %+v, %v", got, err)
	}
	noSignature(t, "a redirect", got, err)
	if !slices.Equal(referers, []string{"", ""}) {
		t.Errorf("the server was told %q", referers)
	}
	if asked != 0 || len(below(t, c.at)) != 1 {
		t.Errorf("other servers were asked %d times; there are %q", asked, keys(below(t, c.at)))
	}
}

func TestDownloadAllowsThePortOfHTTPS(t *testing.T) {
	c := newCDN(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "here") })
	client := c.Client()
	client.Transport = redirected{client.Transport, strings.TrimPrefix(c.URL, "https://")}
	for _, hosts := range [][]string{nil, {"CDN.discordapp.com"}, {"cdn.discordapp.com:443"}} {
		for _, host := range []string{"cdn.discordapp.com", "cdn.discordapp.com:443", "Cdn.DiscordApp.com"} {
			got, err := attachment.Download(t.Context(), client, []attachment.SentinelItem{{URL: "https://" + host + "/a.txt"}}, c.dir, attachment.DownloadLimits{Hosts: hosts})
			if err != nil || len(got) != 1 {
				t.Errorf("%s of %q: %v", host, hosts, err)
			}
		}
		for _, host := range []string{"cdn.discordapp.com:8443", "discordapp.com", "cdn.discordapp.com."} {
			_, err := attachment.Download(t.Context(), client, []attachment.SentinelItem{{URL: "https://" + host + "/a.txt"}}, c.dir, attachment.DownloadLimits{Hosts: hosts})
			wants(t, host, err, "host")
		}
	}
}

// redirected sends every request to a server.
type redirected struct {
	http.RoundTripper

	to string
}

func (r redirected) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	req.URL.Host = r.to
	return r.RoundTripper.RoundTrip(req)
}

// TestDownloadCountsWhatArrives: the limits count received bytes.
func TestDownloadCountsWhatArrives(t *testing.T) {
	c := newCDN(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/endless":
			for r.Context().Err() == nil {
				if _, err := w.Write(bytes.Repeat([]byte("x"), 1<<16)); err != nil {
					return
				}
			}
		case "/more": // than it declares
			conn, buf, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			buf.WriteString("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n" + strings.Repeat("x", 1<<16))
			buf.Flush()
		case "/less":
			w.Header().Set("Content-Length", "100")
			io.WriteString(w, "few")
		case "/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			z := gzip.NewWriter(w)
			z.Write(make([]byte, 1<<20))
			z.Close()
		case "/asked":
			io.WriteString(w, r.Header.Get("Accept-Encoding"))
		case "/gone":
			w.WriteHeader(http.StatusNotFound)
		case "/refused":
			w.WriteHeader(http.StatusForbidden)
		default:
			io.WriteString(w, strings.Repeat(r.URL.Path[1:2], 80))
		}
	})
	c.limits.PerFile, c.limits.PerCall = 100, 250
	for _, one := range []struct {
		path, code string
	}{
		{"/endless", "too_large"},
		{"/less", "unreadable"},
		{"/gzip", "unreadable"},
		{"/gone", "missing"},
		{"/refused", "unreadable"},
	} {
		got, err := c.download(t, c.item(one.path, "", ""))
		wants(t, one.path, err, one.code)
		noSignature(t, one.path, got, err)
	}
	if there := below(t, c.at); len(there) != 0 {
		t.Errorf("there are %q", keys(there))
	}
	for path, want := range map[string]string{"/more": "xxxx", "/asked": "identity"} {
		if got, err := c.download(t, c.item(path, "", "")); err != nil || len(got) != 1 || below(t, c.at)[filepath.Base(got[0].Path)] != want {
			t.Errorf("%s: got %+v, error %v, want no error, 1 in got and below(t, c.at)[filepath.Base(got[0].Path)] %v", path, got, err, want)
		}
	}
	// The three files of 80 bytes fit and the fourth does not; no other file that was too large fits either.
	got, err := c.download(t, c.item("/a", "", ""), c.item("/b", "", ""), c.item("/c", "", ""), c.item("/d", "d.bin", ""))
	if wants(t, "the fourth", err, "total_too_large"); len(got) != 3 || !strings.Contains(fmt.Sprint(err), `"d.bin"`) {
		t.Errorf("wants(\"the fourth\", %v, \"total_too_large\"): got %+v, want 3 in got and fmt.Sprint(err) with \"\\\"d.bin\\\"\"", err, got)
	}
	got, err = c.download(t, c.item("/endless", "", ""), c.item("/endless", "", ""), c.item("/f", "", ""))
	if wants(t, "after two that were too large", err, "too_large"); len(got) != 0 {
		t.Errorf(`wants("after two that were too large", %v, "too_large"): got %+v, want no got`, err, got)
	}
}

// TestDownloadFromASlowServer: a slow server gets time as long as it sends, and no time after a cancel.
func TestDownloadFromASlowServer(t *testing.T) {
	arrived := make(chan struct{}, 8)
	c := newCDN(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/part") {
			io.WriteString(w, "part")
			_ = http.NewResponseController(w).Flush()
		}
		if r.URL.Path == "/first" {
			io.WriteString(w, "first")
			return
		}
		if strings.HasSuffix(r.URL.Path, "/now") { // a limit may pass before a request has arrived
			arrived <- struct{}{}
		}
		<-r.Context().Done()
	})
	for _, path := range []string{"/silent", "/part"} {
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-arrived; cancel() }()
		got, err := attachment.Download(ctx, c.Client(), []attachment.SentinelItem{c.item("/first", "", ""), c.item(path+"/now", "", ""), c.item("/never", "", "")}, c.dir, c.limits)
		if !errors.Is(err, context.Canceled) || len(got) != 1 || len(below(t, c.at)) != 1 {
			t.Errorf("%s, cancelled: %+v, %v, %q", path, got, err, keys(below(t, c.at)))
		}
		noSignature(t, path, got, err)
		c.limits.Idle = 50 * time.Millisecond
		got, err = c.download(t, c.item(path, "", ""))
		wants(t, path+", with a limit", err, "unreadable")
		if !strings.Contains(fmt.Sprint(err), "sent nothing for too long") {
			t.Errorf("%s: it says %v", path, err)
		}
		noSignature(t, path, got, err)
		c.limits.Idle = 0
	}
}

func TestDownloadFromNowhere(t *testing.T) {
	c := newCDN(t, nil)
	c.Close()
	got, err := c.download(t, c.item("/a", "", ""))
	wants(t, "a server that is not there", err, "unreadable")
	noSignature(t, "a server that is not there", got, err)
	_, err = c.download(t)
	wants(t, "nothing", err, "empty")
	_, err = c.download(t, make([]attachment.SentinelItem, 101)...)
	wants(t, "101", err, "too_many")
}

// TestTwoDownloadsAtOnce: concurrent downloads of the same files succeed, and each file exists once, whole.
func TestTwoDownloadsAtOnce(t *testing.T) {
	c := newCDN(t, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, strings.Repeat(r.URL.Path, 1<<14)) })
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if got, err := attachment.Download(t.Context(), c.Client(), []attachment.SentinelItem{c.item("/a.txt", "", ""), c.item("/b.txt", "", "")}, c.dir, c.limits); err != nil || len(got) != 2 {
				t.Errorf("Download: got %+v, error %v, want no error and 2 in got", got, err)
			}
		})
	}
	all.Wait()
	if there := below(t, c.at); len(there) != 2 {
		t.Errorf("there are %q", keys(there))
	}
}

func TestSave(t *testing.T) {
	c := newCDN(t, nil)
	got, err := attachment.Save(t.Context(), c.dir, []byte("one"), "a.md", "", "file:///x/a.md"+signature)
	want := attachment.Downloaded{Path: filepath.Join(c.at, sha10("one")+".md"), SHA10: sha10("one"), Bytes: 3, SourceURL: "file:///x/a.md", MimeType: "text/markdown"}
	if err != nil || got != want {
		t.Errorf("got %+v, error %v, want no error and %v", got, err, want)
	}
	if _, err := attachment.Save(ended(t), c.dir, []byte("two"), "", "", ""); !errors.Is(err, context.Canceled) || len(below(t, c.at)) != 1 {
		t.Errorf("cancelled: %v", err)
	}
}

func TestDownloadDir(t *testing.T) {
	top := realTemp(t)
	home, cwd, other := filepath.Join(top, "home"), filepath.Join(top, "cwd"), filepath.Join(top, "other")
	for _, dir := range []string{home, cwd, other} {
		write(t, filepath.Join(dir, "file"), "")
	}
	link(t, other, filepath.Join(home, "out"))
	link(t, cwd, filepath.Join(home, "in"))
	link(t, filepath.Join(other, "new"), filepath.Join(cwd, "dangling"))
	for _, c := range []struct{ given, want, code string }{
		{"", home + "/Downloads", ""},
		{"", home + "/Downloads", ""}, // the directory exists now
		{"~", home, ""},
		{"~/a/b", home + "/a/b", ""},
		{"down", cwd + "/down", ""},
		{".", cwd, ""},
		{cwd + "/x/../y", cwd + "/y", ""},
		{home + "/in/z", cwd + "/z", ""},
		{"../home/q", home + "/q", ""},
		{"..", "", "outside"},
		{other, "", "outside"},
		{other + "/new/deep", "", "outside"},
		{top + "/home2", "", "outside"},
		{"/", "", "outside"},
		{"~/out", "", "outside"},
		{"~/out/deep", "", "outside"},
		{"~/../other", "", "outside"},
		{"~root", cwd + "/~root", ""},
		{"a\x00b", "", "outside"},
		{"file", "", "unwritable"},
		{"file/below", "", "unwritable"},
		{"dangling", "", "outside"},
		{"dangling/deep", "", "outside"},
	} {
		dir, err := attachment.DownloadDir(c.given, home, cwd, home, cwd)
		wants(t, c.given, err, c.code)
		if err != nil {
			continue
		}
		if dir.Name() != c.want {
			t.Errorf("%q is %s, not %s", c.given, dir.Name(), c.want)
		}
		write(t, filepath.Join(c.want, "probe"), "")
		if _, err := dir.Stat("probe"); err != nil {
			t.Errorf(`%q: Stat("probe"): got error %v, want no error`, c.given, err)
		}
		dir.Close()
	}
	if there := keys(below(t, other)); !slices.Equal(there, []string{"file"}) {
		t.Errorf("outside there are %q", there)
	}
}
