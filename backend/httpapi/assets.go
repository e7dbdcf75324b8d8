package httpapi

import (
	"encoding/json"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
)

// contentPolicy lets the app run only its own code. Inline styles are allowed: the highlighter and the terminal write them. Media from the
// client API are blobs.
const contentPolicy = "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; media-src 'self' blob:; " +
	"font-src 'self' data:; object-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// front answers GET /: with the app for a caller that prefers HTML, else with a greeting.
func (a *API) front(w http.ResponseWriter, r *http.Request) {
	w.Header().Add("Vary", "Accept")
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		methodNotAllowed(w, r, map[string]struct{}{http.MethodGet: {}, http.MethodHead: {}})
		return
	}
	if a.cfg.Assets != nil && quality(r, "text/html") > quality(r, "application/json") {
		a.sendAsset(w, r, "index.html")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_ = json.NewEncoder(w).Encode(map[string]string{ // fails only when the caller is gone
		"name": "Deskhand", "version": a.cfg.Version, "docs": "/openapi.json",
	})
}

// asset answers with a file of the frontend, without a token.
func (a *API) asset(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/")
	if a.cfg.Assets == nil || !fs.ValidPath(name) {
		notFound(w, r)
		return
	}
	if info, err := fs.Stat(a.cfg.Assets, name); err != nil || !info.Mode().IsRegular() {
		notFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		methodNotAllowed(w, r, map[string]struct{}{http.MethodGet: {}, http.MethodHead: {}})
		return
	}
	a.sendAsset(w, r, name)
}

// sendAsset answers with a file, always whole: WebKit's custom schemes cannot handle 304, so no validator is sent that would let a client
// ask for a 304. Files with a hash of their content in the name may be cached for ever.
func (a *API) sendAsset(w http.ResponseWriter, r *http.Request, name string) {
	f, err := a.cfg.Assets.Open(name)
	if err != nil {
		notFound(w, r)
		return
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		notFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", typeOf(name))
	h.Set("Content-Length", strconv.FormatInt(info.Size(), 10))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	if strings.HasPrefix(name, "assets/") {
		h.Set("Cache-Control", "public, max-age=31536000, immutable")
	}
	if path.Ext(name) == ".html" {
		h.Set("Content-Security-Policy", contentPolicy)
		h.Set("Referrer-Policy", "no-referrer")
	}
	if r.Method == http.MethodGet {
		_, _ = io.Copy(w, f) // fails only when the caller is gone
	}
}

// typeOf returns the media type of a frontend file. The machine's own table is not used: on Windows that table may map scripts to
// text/plain.
func typeOf(name string) string {
	switch path.Ext(name) {
	case ".html":
		return "text/html; charset=utf-8"
	case ".js", ".mjs":
		return "text/javascript; charset=utf-8"
	case ".css":
		return "text/css; charset=utf-8"
	case ".json", ".map":
		return "application/json"
	case ".webmanifest":
		return "application/manifest+json"
	case ".svg":
		return "image/svg+xml"
	case ".png":
		return "image/png"
	case ".jpg", ".jpeg":
		return "image/jpeg"
	case ".webp":
		return "image/webp"
	case ".ico":
		return "image/x-icon"
	case ".wav":
		return "audio/wav"
	case ".woff2":
		return "font/woff2"
	case ".woff":
		return "font/woff"
	case ".wasm":
		return "application/wasm"
	case ".txt":
		return "text/plain; charset=utf-8"
	default:
		return "application/octet-stream"
	}
}
