package agents

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// Limits of asking the registry for sizes: it is worth a moment, and no more.
const (
	sizeLimit    = 5 * time.Second
	sizeAtOnce   = 8
	sizePackages = 500
	manifestMax  = 1 << 20
)

var errNoSize = errors.New("the registry does not tell the size")

// size is how many bytes the locked packages take unpacked, those for other systems left out, or 0. npm knows and does not tell, so
// the registry is asked for the manifest of each, where npm got the package from. Many mirrors have no sizes, and a private one
// does not answer us, who have none of npm's tokens: then there is no total, and nothing else is missing.
func (l lockFile) size(ctx context.Context, main lockedPackage) int64 {
	return l.sum(ctx, main, lockedPackage.unpacked)
}

// packed is how many bytes npm downloads, if its cache has none of them, or 0. It asks for every package, which a person who wants to know
// waits for, and an installation does not.
func (l lockFile) packed(ctx context.Context, main lockedPackage) int64 {
	return l.sum(ctx, main, lockedPackage.packed)
}

// sum adds up what is asked of each package, or gives 0: a part of it would mislead. If the registry does not tell it of the main one,
// the others are not asked.
func (l lockFile) sum(ctx context.Context, main lockedPackage, ask func(lockedPackage, context.Context, *http.Client) (int64, error)) int64 {
	if len(l.Packages) > sizePackages {
		return 0
	}
	ctx, cancel := context.WithTimeout(ctx, sizeLimit)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{Proxy: l.through, MaxConnsPerHost: sizeAtOnce}}
	defer client.CloseIdleConnections()
	if _, err := ask(main, ctx, client); err != nil {
		return 0
	}
	var total int64
	var failed error
	var mu sync.Mutex // protects the two above
	var asking sync.WaitGroup
	slots := make(chan struct{}, sizeAtOnce)
	for name, p := range l.Packages {
		if name == "" || p.InBundle || !p.isForUs() {
			continue
		}
		slots <- struct{}{}
		asking.Go(func() {
			defer func() { <-slots }()
			n, err := ask(p, ctx, client)
			mu.Lock()
			defer mu.Unlock()
			total += n
			if err != nil {
				failed = err
				cancel()
			}
		})
	}
	asking.Wait()
	if failed != nil {
		return 0
	}
	return total
}

// unpacked asks for one manifest: <registry>/<name>/<version>, which stands before the "/-/" of the tarball's URL.
func (p lockedPackage) unpacked(ctx context.Context, client *http.Client) (int64, error) {
	base, _, ok := strings.Cut(p.Resolved, "/-/")
	if !ok {
		return 0, errNoSize
	}
	resp, err := request(ctx, client, http.MethodGet, base+"/"+p.Version)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var manifest struct {
		Dist struct {
			UnpackedSize int64 `json:"unpackedSize"`
		} `json:"dist"`
	}
	err = json.NewDecoder(io.LimitReader(resp.Body, manifestMax)).Decode(&manifest)
	if err == nil && manifest.Dist.UnpackedSize <= 0 {
		err = errNoSize
	}
	return manifest.Dist.UnpackedSize, err
}

// packed asks how long one tarball is.
func (p lockedPackage) packed(ctx context.Context, client *http.Client) (int64, error) {
	resp, err := request(ctx, client, http.MethodHead, p.Resolved)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	if resp.ContentLength <= 0 {
		return 0, errNoSize
	}
	return resp.ContentLength, nil
}

func request(ctx context.Context, client *http.Client, method, url string) (*http.Response, error) {
	if !strings.HasPrefix(url, "http://") && !strings.HasPrefix(url, "https://") {
		return nil, errNoSize
	}
	req, err := http.NewRequestWithContext(ctx, method, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.Join(errNoSize, resp.Body.Close())
	}
	return resp, err
}

// isForUs tells whether npm would install the package on this machine. Where node is for another processor than we are, it errs.
func (p lockedPackage) isForUs() bool {
	system, processor := runtime.GOOS, runtime.GOARCH
	if system == "windows" {
		system = "win32"
	}
	if processor == "amd64" {
		processor = "x64"
	}
	return allows(p.OS, system) && allows(p.CPU, processor) && (system != "linux" || allows(p.LibC, libc()))
}

// libc is the C library of this Linux, by what loads its programs.
func libc() string {
	if musl, _ := filepath.Glob("/lib/ld-musl-*.so.1"); len(musl) > 0 {
		return "musl"
	}
	return "glibc"
}

// allows reads a list of npm: names that are allowed, or, with !, names that are not.
func allows(list []string, name string) bool {
	if len(list) == 0 {
		return true
	}
	if slices.Contains(list, "!"+name) {
		return false
	}
	return slices.Contains(list, name) || strings.HasPrefix(list[0], "!")
}
