package attachment

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gabriel-vasile/mimetype"
)

// DownloadLimits limit a call of Download.
type DownloadLimits struct {
	Hosts   []string      // host, or host:port; without a port 443. Empty = the hosts of Discord
	PerFile int64         // bytes received; 0 = 25 MiB
	PerCall int64         // bytes received; 0 = 50 MiB
	Idle    time.Duration // longest silence of a server; 0 = 30 s
}

func (l DownloadLimits) orUsual() DownloadLimits {
	const perFile, perCall, idle = 25 << 20, 50 << 20, 30 * time.Second
	if len(l.Hosts) == 0 {
		l.Hosts = []string{"cdn.discordapp.com", "media.discordapp.net"}
	}
	if l.PerFile <= 0 {
		l.PerFile = perFile
	}
	if l.PerCall <= 0 {
		l.PerCall = perCall
	}
	if l.Idle <= 0 {
		l.Idle = idle
	}
	return l
}

// Downloaded is a file of a download.
type Downloaded struct {
	Path      string `json:"path"`
	SHA10     string `json:"sha10"`
	Bytes     int64  `json:"bytes"`
	SourceURL string `json:"sourceUrl"` // without the query, which may be a signature
	MimeType  string `json:"mimeType,omitempty"`
}

// DownloadDir opens the directory for downloads, and creates the directory if needed: "" is Downloads in home, "~" is home, and a relative
// path is below cwd. With all links resolved, the directory has to be in an allowed directory, else DownloadDir fails with attachment.outside.
// The returned root's name is absolute; the caller closes the root.
func DownloadDir(given, home, cwd string, allowed ...string) (*os.Root, error) {
	const usual = "Downloads"
	wanted := given
	switch rest, below := strings.CutPrefix(filepath.ToSlash(given), "~/"); {
	case given == "":
		wanted = filepath.Join(home, usual)
	case given == "~":
		wanted = home
	case below:
		wanted = filepath.Join(home, filepath.FromSlash(rest))
	case !filepath.IsAbs(given):
		wanted = filepath.Join(cwd, given)
	}
	outside := problem("outside", "name", cmp.Or(given, wanted))
	if !filepath.IsAbs(wanted) || strings.ContainsRune(wanted, 0) {
		return nil, outside
	}
	wanted = filepath.Clean(wanted)
	there, rest := wanted, ""
	for {
		real, err := filepath.EvalSymlinks(there)
		if err == nil {
			there = real
			break
		}
		parent := filepath.Dir(there)
		if parent == there {
			return nil, outside.because(err)
		}
		there, rest = parent, filepath.Join(filepath.Base(there), rest)
	}
	root, below, ok := containing(there, allowed)
	if !ok {
		return nil, outside
	}
	dir, err := makeDir(root, filepath.Join(below, rest))
	if err != nil {
		return nil, notWritten(cmp.Or(given, wanted), err)
	}
	return dir, nil
}

// makeDir creates a directory below root, following no link out of root.
func makeDir(root, below string) (*os.Root, error) {
	top, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	defer top.Close()
	if err := top.MkdirAll(below, dirMode); err != nil {
		return nil, err
	}
	within, err := top.Stat(below)
	if err != nil {
		return nil, err
	}
	// Opened by the full path, so that Name returns the path, and compared: another process may have changed the path's meaning.
	dir, err := os.OpenRoot(filepath.Join(root, below))
	if err != nil {
		return nil, err
	}
	opened, err := dir.Stat(".")
	if err == nil && !os.SameFile(opened, within) {
		err = problem("changed", "name", filepath.Base(below))
	}
	if err != nil {
		return nil, errors.Join(err, dir.Close())
	}
	return dir, nil
}

// Download fetches items into dir, named by the first ten digits of the content's SHA-256. A file that exists with the same content is not
// written again, and a file with other content is never overwritten. Download only uses https at the hosts of limits, for redirects too. The
// limits count the bytes received, whatever length the server announces. The client provides the transport and the timeout; Download itself
// decides about redirects, cookies and compression.
//
// Items are independent: files are those present in dir now, each hash once, and err joins a *Problem for each other item. After the end of
// ctx no incomplete file is left. No error contains a query.
func Download(ctx context.Context, client *http.Client, items []SentinelItem, dir *os.Root, limits DownloadLimits) (files []Downloaded, err error) {
	limits = limits.orUsual()
	if len(items) == 0 {
		return nil, problem("empty")
	}
	if err := (Limits{}).Count(len(items)); err != nil {
		return nil, err
	}
	d := newDownload(client, limits)
	files = []Downloaded{}
	var failed []error
	for _, item := range items {
		file, err := d.item(ctx, item, dir)
		switch {
		case ctx.Err() != nil:
			return files, ctx.Err()
		case err != nil:
			failed = append(failed, err)
		case !slices.ContainsFunc(files, func(f Downloaded) bool { return f.SHA10 == file.SHA10 }):
			files = append(files, file)
		}
	}
	return files, errors.Join(failed...)
}

// Save stores our own bytes as Download stores downloaded bytes.
func Save(ctx context.Context, dir *os.Root, data []byte, filename, mime, sourceURL string) (Downloaded, error) {
	sum := sha256.Sum256(data)
	const digits = 10
	file := Downloaded{SHA10: hex.EncodeToString(sum[:])[:digits], Bytes: int64(len(data)), SourceURL: withoutQuery(sourceURL)}
	file.MimeType = MIME(mime, filename, data[:min(len(data), headSize)])
	name := cmp.Or(saved(dir, file.SHA10, data), file.SHA10+extension(mime, filename, sourceURL))
	file.Path = filepath.Join(dir.Name(), name)
	if err := put(ctx, dir, name, data); err != nil {
		return Downloaded{}, notWritten(name, err)
	}
	return file, nil
}

// saved is the file of dir that holds these bytes under their hash, with any extension; "" when there is none.
func saved(dir *os.Root, hash string, data []byte) string {
	names, err := fs.Glob(dir.FS(), hash+"*")
	if err != nil {
		return ""
	}
	for _, name := range names {
		info, err := dir.Lstat(name)
		if rest := strings.TrimPrefix(name, hash); err != nil || !info.Mode().IsRegular() || info.Size() != int64(len(data)) || rest != "" && rest[0] != '.' {
			continue
		}
		if have, err := dir.ReadFile(name); err == nil && bytes.Equal(have, data) {
			return name
		}
	}
	return ""
}

type download struct {
	client http.Client
	limits DownloadLimits
	left   int64 // bytes that the call may still receive
}

func newDownload(client *http.Client, limits DownloadLimits) *download {
	d := &download{limits: limits, left: limits.PerCall, client: http.Client{Transport: client.Transport, Timeout: client.Timeout}}
	d.client.CheckRedirect = d.redirect
	return d
}

func (d *download) item(ctx context.Context, item SentinelItem, dir *os.Root) (Downloaded, error) {
	name := item.name()
	data, given, err := d.fetch(ctx, name, item.URL)
	if err != nil {
		return Downloaded{}, err
	}
	file, err := Save(ctx, dir, data, item.Filename, given, item.URL)
	if err != nil {
		return Downloaded{}, err
	}
	if sane(given) == "" || base(given) == unknownType {
		file.MimeType = MIME(item.MimeType, item.Filename, data[:min(len(data), headSize)])
	}
	file.MimeType = base(file.MimeType)
	return file, nil
}

// name is the item's name in errors.
func (i SentinelItem) name() string {
	if i.Filename != "" {
		return baseName(i.Filename, i.MimeType)
	}
	return baseName(path.Base(withoutQuery(i.URL)), i.MimeType)
}

// errIdle ends a request whose server is silent.
var errIdle = errors.New("the server sent nothing for too long")

func (d *download) fetch(ctx context.Context, name, address string) (data []byte, mime string, err error) {
	where, err := url.Parse(address)
	if err != nil {
		return nil, "", problem("unreadable", "name", name, "detail", "it has no valid address") // the parser's error contains the query
	}
	if err := d.allows(where, name); err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	idle := time.AfterFunc(d.limits.Idle, func() { cancel(errIdle) })
	defer idle.Stop()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, where.String(), http.NoBody)
	if err != nil {
		return nil, "", problem("unreadable", "name", name, "detail", "it has no valid address")
	}
	req.Close = true                              // else the transport logs bytes that follow the server's answer
	req.Header.Set("Accept-Encoding", "identity") // else the transport decompresses, and a small answer becomes large
	res, err := d.client.Do(req)
	if err != nil {
		return nil, "", d.unreachable(ctx, name, err)
	}
	defer res.Body.Close()
	if err := answered(res, name); err != nil {
		return nil, "", err
	}
	most := min(d.limits.PerFile, d.left)
	data, err = io.ReadAll(io.LimitReader(&awaited{res.Body, idle, d.limits.Idle}, most+1))
	d.left -= min(int64(len(data)), d.left)
	if err == nil {
		// A server that notices our hang-up may end its answer properly, and the data would look complete.
		err = context.Cause(ctx)
	}
	switch {
	case err != nil:
		return nil, "", d.unreachable(ctx, name, err)
	case int64(len(data)) <= most:
		return data, res.Header.Get("Content-Type"), nil
	case most < d.limits.PerFile:
		return nil, "", problem("total_too_large", "name", name, "limit", bytesText(d.limits.PerCall))
	}
	return nil, "", problem("too_large", "name", name, "limit", bytesText(d.limits.PerFile))
}

func answered(res *http.Response, name string) error {
	switch {
	case res.StatusCode == http.StatusNotFound, res.StatusCode == http.StatusGone:
		return problem("missing", "name", name, "detail", "HTTP "+strconv.Itoa(res.StatusCode))
	case res.StatusCode != http.StatusOK:
		return problem("unreadable", "name", name, "detail", "HTTP "+strconv.Itoa(res.StatusCode))
	case res.Header.Get("Content-Encoding") != "" && !strings.EqualFold(res.Header.Get("Content-Encoding"), "identity"):
		return problem("unreadable", "name", name, "detail", "the server compressed it, though it was asked not to")
	}
	return nil
}

// unreachable is a network failure without the address that net/http puts in front.
func (d *download) unreachable(ctx context.Context, name string, err error) error {
	if p, ok := errors.AsType[*Problem](err); ok {
		if p.Params["name"] == "" {
			p.Params["name"] = name
		}
		return p
	}
	if cause := context.Cause(ctx); errors.Is(cause, errIdle) {
		err = cause
	}
	for wrapped := (*url.Error)(nil); errors.As(err, &wrapped); {
		err = wrapped.Err
	}
	return problem("unreadable", "name", name, "detail", queries().ReplaceAllString(err.Error(), "")).because(context.Cause(ctx))
}

// queries matches text that may be a query in an error.
//
//nolint:gochecknoglobals // a constant in all but name
var queries = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\?[^\s"']*`) })

// allows reports whether Download may fetch from an address.
func (d *download) allows(u *url.URL, name string) error {
	host := u.Host
	if u.Port() == "443" {
		host = u.Hostname()
	}
	if u.Scheme != "https" || u.User != nil || u.Opaque != "" || !slices.ContainsFunc(d.limits.Hosts, func(h string) bool { return strings.EqualFold(strings.TrimSuffix(h, ":443"), host) }) {
		return problem("host", "name", name, "host", u.Scheme+"://"+u.Host)
	}
	return nil
}

func (d *download) redirect(req *http.Request, via []*http.Request) error {
	const most = 5
	if len(via) > most {
		return errors.New("too many redirects")
	}
	req.Header.Del("Referer") // net/http puts the previous address with its signature there
	return d.allows(req.URL, "")
}

// awaited is a body whose reads reset the idle timer.
type awaited struct {
	body io.Reader
	idle *time.Timer
	time time.Duration
}

func (a *awaited) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	if n > 0 {
		a.idle.Reset(a.time)
	}
	return n, err
}

func withoutQuery(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		before, _, _ := strings.Cut(address, "?")
		return before
	}
	u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment, u.User = "", false, "", "", nil
	return u.String()
}

// extension is the extension of a download's file: by the Content-Type, else by the name, else by the address.
func extension(mime, filename, address string) string {
	if u, err := url.Parse(address); err == nil {
		address = u.Path
	}
	for _, ext := range []string{extensionOf(mime), path.Ext(filename), path.Ext(address)} {
		if ext = strings.ToLower(ext); isExtension(ext) {
			return ext
		}
	}
	return ""
}

func isExtension(ext string) bool {
	const most = 10
	return len(ext) > 1 && len(ext) <= 1+most && ext[0] == '.' && !strings.ContainsFunc(ext[1:], func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
}

// extensionOf is the extension of a type, with its dot, or "".
func extensionOf(mime string) string {
	mime = base(mime)
	if ext := preferred()[mime]; ext != "" {
		return "." + ext
	}
	if known := mimetype.Lookup(mime); known != nil {
		return known.Extension()
	}
	return ""
}
