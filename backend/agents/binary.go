package agents

import (
	"cmp"
	"compress/bzip2"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Limits of a download. The largest agent of npm has 457 MB unpacked.
const (
	archiveMax   = 2 << 30          // bytes to download
	answerLimit  = 30 * time.Second // until a server answers
	stallLimit   = time.Minute      // without any byte
	archiveFile  = ".archive"       // the download, until unpacked
	archiveFiles = "files"          // the unpacked content
)

var (
	errStalled = errors.New("nothing has come for a minute")
	errLate    = errors.New("there is no answer")
)

// archiveSupply downloads and unpacks an archive, or downloads a bare program.
type archiveSupply struct{ *installation }

func (a *archiveSupply) target() binaryTarget { return a.e.known.binary }

// resolve asks the server for the size of the archive.
func (a *archiveSupply) resolve(ctx context.Context) error {
	resp, end, err := a.get(ctx)
	if err != nil {
		return err
	}
	defer end()
	defer resp.Body.Close()
	if resp.ContentLength > archiveMax {
		return fmt.Errorf("the archive has %d MB, and more than %d are not taken", resp.ContentLength/1e6, archiveMax/1_000_000)
	}
	a.download = max(resp.ContentLength, 0)
	a.packages = 1
	return nil
}

// get requests the archive. The caller calls end to release the connection.
func (a *archiveSupply) get(ctx context.Context) (_ *http.Response, end func(), err error) {
	if err := a.target().sound(); err != nil {
		return nil, nil, err
	}
	transport := &http.Transport{Proxy: a.installer.environment.Proxy(), DisableKeepAlives: true}
	client := &http.Client{Transport: transport, CheckRedirect: func(to *http.Request, via []*http.Request) error {
		if len(via) > mostRedirects || !encrypted(to.URL) || via[0].URL.Scheme == "https" && to.URL.Scheme != "https" {
			return errors.New("it leads elsewhere than we go")
		}
		return nil
	}}
	ctx, cancel := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.target().Archive, http.NoBody)
	if err != nil {
		cancel(nil)
		return nil, nil, err
	}
	req.Header.Set("User-Agent", "deskhand")
	req.Header.Set("Accept-Encoding", "identity") // the checksum is that of the file as stored
	// A timer instead of the transport's own limits: none of those covers the handshake, redirects and the wait for headers together.
	late := time.AfterFunc(cmp.Or(a.installer.cfg.Patience, answerLimit), func() { cancel(errLate) })
	resp, err := client.Do(req)
	late.Stop()
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errLate):
		err = fmt.Errorf("the archive cannot be had: %w from %s", errLate, req.URL.Host)
	case err != nil:
		err = fmt.Errorf("the archive cannot be had: %w", err)
	case resp.StatusCode != http.StatusOK:
		err = errors.Join(fmt.Errorf("the archive cannot be had: %s answers with status %d", req.URL.Host, resp.StatusCode), resp.Body.Close())
	}
	end = func() {
		cancel(nil)
		transport.CloseIdleConnections()
	}
	if err != nil {
		end()
		return nil, nil, err
	}
	return resp, end, nil
}

// fetch downloads, verifies and unpacks the archive.
func (a *archiveSupply) fetch(ctx context.Context) error {
	file := filepath.Join(a.dir, archiveFile)
	sum, err := a.save(ctx, file)
	if err != nil {
		return err
	}
	want := strings.ToLower(a.target().SHA256)
	switch have := hex.EncodeToString(sum); {
	case want == "":
		a.tell(Progress{Step: a.step, Bytes: a.download, Total: a.download, Log: "the registry gives no checksum of this archive: that it is the right one is the word of its server alone"})
	case have != want:
		return fmt.Errorf("the checksum of the archive is wrong: it is %s, and the registry says %s", have, want)
	}
	a.at = release{
		Version: a.plan.version, Package: a.target().Archive, Integrity: "sha256-" + base64.StdEncoding.EncodeToString(sum), Unchecked: want == "",
	}
	a.tell(Progress{Step: a.step, Bytes: a.download, Total: a.download, Log: "unpacking"})
	if err := a.unpack(ctx, file); err != nil {
		return fmt.Errorf("the archive cannot be unpacked: %w", err)
	}
	return os.Remove(file)
}

// save downloads to a file, reports progress, and returns the checksum.
func (a *archiveSupply) save(ctx context.Context, file string) (sum []byte, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	resp, end, err := a.get(ctx)
	if err != nil {
		return nil, err
	}
	defer end()
	defer resp.Body.Close()
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	stalled := time.AfterFunc(stallLimit, func() { cancel(errStalled) })
	defer stalled.Stop()
	hash := sha256.New()
	in := &counted{from: resp.Body, most: archiveMax, each: a.progress(max(resp.ContentLength, 0), func() { stalled.Reset(stallLimit) })}
	n, err := io.Copy(io.MultiWriter(f, hash), in)
	switch {
	case err != nil && context.Cause(ctx) != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fmt.Errorf("the download broke off after %d bytes: %w", n, err)
	case resp.ContentLength >= 0 && n != resp.ContentLength:
		return nil, fmt.Errorf("the download broke off after %d of %d bytes", n, resp.ContentLength)
	}
	a.download = n
	return hash.Sum(nil), nil
}

// progress returns a callback for each received piece, which reports progress now and then.
func (a *archiveSupply) progress(total int64, alive func()) func(int64) error {
	var told time.Time
	return func(n int64) error {
		alive()
		if now := time.Now(); now.Sub(told) >= lookEvery || n == total {
			told = now
			a.tell(Progress{Step: a.step, Bytes: n, Total: total})
		}
		return nil
	}
}

// program returns the path of the program that the entry names, and makes the file executable.
func (a *archiveSupply) program() (string, error) {
	cmd := slashed(a.target().Cmd)
	bin := path.Join(archiveFiles, cmd)
	file := filepath.Join(a.dir, filepath.FromSlash(bin))
	info, err := os.Lstat(file)
	if err != nil || !info.Mode().IsRegular() {
		return "", fmt.Errorf("there is no %s in the archive", cmd)
	}
	return bin, os.Chmod(file, 0o700) // archives made on Windows carry no execute bit
}

// unpack extracts the whole archive.
func (a *archiveSupply) unpack(ctx context.Context, file string) (err error) {
	dir := filepath.Join(a.dir, archiveFiles)
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	target, err := url.Parse(a.target().Archive)
	if err != nil {
		return err
	}
	kind, err := kindOf(target)
	if err != nil {
		return err
	}
	u := &unpacking{ctx: ctx, into: root, left: unpackedMax}
	if kind == kindZip {
		return u.zip(file)
	}
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	switch kind {
	case kindGzip:
		unzipped, err := gzip.NewReader(f)
		if err != nil {
			return err
		}
		return u.tar(unzipped)
	case kindBzip:
		return u.tar(bzip2.NewReader(f))
	}
	return u.file(slashed(a.target().Cmd), 0o700, f)
}
