package agents_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const (
	claudePackage   = "@agentclientprotocol/claude-agent-acp"
	openCodePackage = "opencode-ai"
)

// registry is an npm registry on loopback.
type registry struct {
	*httptest.Server
	t *testing.T

	mu       sync.Mutex // protects the fields below
	packages map[string]map[string]*pack
	tarballs int                    // number of served tarballs
	requests []string               // requested paths
	hold     map[string]chan string // tarballs to hold back; the channel gets each request
}

// pack is a version of a package.
type pack struct {
	manifest map[string]any
	tarball  []byte
	size     int64
	told     int64 // size that the registry reports; 0 = none
	cut      bool  // the download breaks off half-way
}

func openRegistry(t *testing.T) *registry {
	t.Helper()
	r := &registry{t: t, packages: map[string]map[string]*pack{}, hold: map[string]chan string{}}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *registry) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	r.mu.Lock()
	name := strings.TrimPrefix(q.URL.Path, "/")
	r.requests = append(r.requests, name)
	base, file, isTarball := strings.Cut(name, "/-/")
	versions := maps.Clone(r.packages[base])
	held := r.hold[file]
	r.mu.Unlock()
	if isTarball {
		for version, p := range versions {
			if file != tarballName(base, version) {
				continue
			}
			if held != nil {
				half := p.tarball[:len(p.tarball)/2]
				w.Header().Set("Content-Type", "application/octet-stream")
				_, _ = w.Write(half)
				_ = http.NewResponseController(w).Flush()
				held <- file
				<-q.Context().Done()
				return
			}
			if q.Method == http.MethodHead {
				w.Header().Set("Content-Length", strconv.Itoa(len(p.tarball)))
				return
			}
			r.mu.Lock()
			r.tarballs++
			r.mu.Unlock()
			if p.cut {
				_, _ = w.Write(p.tarball[:len(p.tarball)/2])
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
			_, _ = w.Write(p.tarball)
			return
		}
	}
	if versions != nil {
		r.answer(w, r.packument(base, versions))
		return
	}
	if p := r.packages[path.Dir(name)][path.Base(name)]; p != nil {
		manifest := map[string]any{"version": path.Base(name), "dist": map[string]any{}}
		if p.told > 0 {
			manifest["dist"] = map[string]any{"unpackedSize": p.told}
		}
		r.answer(w, manifest)
		return
	}
	http.NotFound(w, q)
}

func (r *registry) packument(name string, versions map[string]*pack) map[string]any {
	all, latest := map[string]any{}, ""
	for version, p := range versions {
		all[version] = p.manifest
		latest = max(latest, version)
	}
	return map[string]any{"name": name, "versions": all, "dist-tags": map[string]any{"latest": latest}}
}

func (r *registry) answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		r.t.Error(err)
	}
}

func tarballName(name, version string) string { return path.Base(name) + "-" + version + ".tgz" }

// publish adds a version of a package to the registry; more goes into its package.json, files are added beside.
func (r *registry) publish(name, version string, more map[string]any, files map[string]string) *pack {
	r.t.Helper()
	manifest := map[string]any{"name": name, "version": version}
	maps.Copy(manifest, more)
	data, err := json.Marshal(manifest)
	if err != nil {
		r.t.Fatal(err)
	}
	contents := map[string]string{"package.json": string(data)}
	maps.Copy(contents, files)
	p := &pack{manifest: manifest}
	var buf bytes.Buffer
	zip := gzip.NewWriter(&buf)
	archive := tar.NewWriter(zip)
	for file, text := range contents {
		p.size += int64(len(text))
		header := &tar.Header{Name: "package/" + file, Mode: 0o755, Size: int64(len(text)), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			r.t.Fatal(err)
		}
		if _, err := archive.Write([]byte(text)); err != nil {
			r.t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		r.t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		r.t.Fatal(err)
	}
	p.tarball, p.told = buf.Bytes(), p.size
	sum := sha512.Sum512(p.tarball)
	manifest["dist"] = map[string]any{
		"tarball": r.URL + "/" + name + "/-/" + tarballName(name, version), "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
	}
	if more["scripts"] != nil {
		manifest["hasInstallScript"] = true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.packages[name] == nil {
		r.packages[name] = map[string]*pack{}
	}
	r.packages[name][version] = p
	return p
}

// holdBack makes a download of Claude's adapter hang half-way; the channel reports when.
func (r *registry) holdBack() <-chan string {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := make(chan string, 8)
	r.hold[tarballName(claudePackage, "0.101.0")] = held
	return held
}

func (r *registry) release() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.hold)
}

func (r *registry) served() (tarballs, requests int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tarballs, len(r.requests)
}

// agentScript returns an agent for node, which reports the version of its package; before runs first.
func agentScript(version, before string) string {
	return `#!/usr/bin/env node
const dep = require('fake-dep');
` + before + `
require('readline').createInterface({input: process.stdin}).on('line', (line) => {
  const q = JSON.parse(line);
  if (q.method === undefined) return;
  const say = (o) => process.stdout.write(JSON.stringify({jsonrpc: '2.0', id: q.id, ...o}) + '\n');
  if (q.method === 'initialize') say({result: {protocolVersion: 1, agentInfo: {name: dep, version: '` + version + `'}}});
  else if (q.method === 'session/new') say({result: {sessionId: 's', configOptions: []}});
  else say({error: {code: -32601, message: 'Method not found'}});
});
`
}

// publishClaude adds a version of Claude's adapter to the registry: a package with a dependency, another dependency for another system, and
// a script that must not run. before is JavaScript that the agent runs first.
func (r *registry) publishClaude(version, before string) *pack {
	r.t.Helper()
	r.publishDependencies()
	return r.publish(claudePackage, version, map[string]any{
		"bin":                  map[string]any{"claude-agent-acp": "dist/index.js"},
		"engines":              map[string]any{"node": ">=999"},
		"dependencies":         map[string]any{"fake-dep": "1.0.0"},
		"optionalDependencies": map[string]any{"fake-elsewhere": "1.0.0", "fake-libc": "1.0.0"},
		"scripts":              map[string]any{"postinstall": marking("claude")},
	}, map[string]string{"dist/index.js": agentScript(version, before)})
}

func (r *registry) publishDependencies() {
	r.publish("fake-dep", "1.0.0", map[string]any{"main": "i.js", "scripts": map[string]any{"postinstall": marking("dependency")}},
		map[string]string{"i.js": "module.exports = 'fake';"})
	r.publish("fake-elsewhere", "1.0.0", map[string]any{"os": []string{"plan9"}}, nil).told = 1 << 50
	r.publish("fake-libc", "1.0.0", map[string]any{"os": []string{runtime.GOOS}, "libc": []string{"none"}}, nil).told = 1 << 50
}

// marking returns an install script that leaves a file in the home directory.
func marking(name string) string {
	return `node -e "require('fs').writeFileSync(process.env.HOME + '/script-` + name + `', '')"`
}
