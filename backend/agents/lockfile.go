package agents

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"deskhand/backend/environ"
)

// Limits of asking the registry for sizes, which are worth only a short wait.
const (
	sizeLimit    = 5 * time.Second
	sizeAtOnce   = 8
	sizePackages = 500
	manifestMax  = 1 << 20
)

var errNoSize = errors.New("the registry does not tell the size")

// size returns how many bytes the locked packages for this system take unpacked, or 0. npm knows the sizes and does not print them, so size
// requests the manifest of each package from where npm got the package. Many mirrors have no sizes, and a private registry does not answer
// without npm's tokens: then there is no total, and nothing else is missing.
func (l lockFile) size(ctx context.Context, main lockedPackage) int64 {
	return l.sum(ctx, main, lockedPackage.unpacked)
}

// packed returns how many bytes npm downloads with an empty cache, or 0. packed sends a request for every package: a person who asked for a
// plan waits for that, an installation does not.
func (l lockFile) packed(ctx context.Context, main lockedPackage) int64 {
	return l.sum(ctx, main, lockedPackage.packed)
}

// sum adds up the answers of ask for each package, or returns 0, since a partial sum would mislead. If the registry has no answer for the
// main package, the others are not asked.
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
	var mu sync.Mutex // protects total and failed
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

// unpacked requests a manifest: <registry>/<name>/<version>, which precedes the "/-/" of the tarball's URL.
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

// packed requests the length of a tarball.
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

// isForUs reports whether npm would install the package on this machine. The answer is wrong where node is built for another processor than
// Deskhand.
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

// libc returns the C library of this Linux, judged by the loader of programs.
func libc() string {
	if musl, _ := filepath.Glob("/lib/ld-musl-*.so.1"); len(musl) > 0 {
		return "musl"
	}
	return "glibc"
}

// allows evaluates a list of npm: allowed names, or, with !, excluded names.
func allows(list []string, name string) bool {
	if len(list) == 0 {
		return true
	}
	if slices.Contains(list, "!"+name) {
		return false
	}
	return slices.Contains(list, name) || strings.HasPrefix(list[0], "!")
}

// lockFile is the part of npm's package-lock.json that sizes need.
type lockFile struct {
	Packages map[string]lockedPackage `json:"packages"`

	through environ.Proxy // the proxy for size requests
}

type lockedPackage struct {
	Version   string   `json:"version"`
	Resolved  string   `json:"resolved"`
	Integrity string   `json:"integrity"`
	OS        []string `json:"os"`
	CPU       []string `json:"cpu"`
	LibC      []string `json:"libc"`
	InBundle  bool     `json:"inBundle"` // bundled in the tarball of another package
}

func readLock(file string) (lockFile, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return lockFile{}, err
	}
	var lock lockFile
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&lock); err != nil {
		return lockFile{}, fmt.Errorf("npm's package-lock.json is broken: %w", err)
	}
	return lock, nil
}

// count returns the number of packages for this machine.
func (l lockFile) count() int {
	n := 0
	for name, p := range l.Packages {
		if name != "" && p.isForUs() {
			n++
		}
	}
	return n
}
