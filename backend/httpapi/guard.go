package httpapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"math"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// gate guards everything on a listener. Its checks, in order:
//
//  1. Host must name this server, unlike that of a page whose name was rebound to its address (421). A request to a proxy (GET http://…) has two
//     hosts, of which net/http reports only the second, and is refused: this server is no proxy.
//  2. Origin, if present, must be this server's or allowed, and the browser must not mark the request as cross-site (403).
//  3. A preflight is answered; its origin has been checked by then.
//  4. The token, where needed (401): that of the data directory, that of a tab for this start, or a named token with the scope. One peer may guess
//     ten times a minute, all peers together a hundred times; after that a wrong token is a 429. A right token always passes.
//
// The gate uses no cookies, no wildcards and no credentials, and records every call with its result in the audit.
type gate struct {
	next    http.Handler
	hosts   map[string]bool
	origins map[string]bool // allowed foreign origins
	runtime *secret         // nil: /v1 needs no token
	client  *secret
	tabs    *Tabs
	access  *Access // nil: no named tokens, and no audit
	guesses guesses
}

func newGate(cfg Config, addr net.Addr, next http.Handler) *gate {
	g := &gate{next: next, hosts: ownHosts(addr, cfg.AllowHosts), origins: map[string]bool{}, client: newSecret(cfg.ClientToken), tabs: cfg.Tabs, access: cfg.Access}
	if !cfg.NoToken || !isLoopback(addr) {
		g.runtime = newSecret(cfg.RuntimeToken)
	}
	for _, origin := range cfg.AllowOrigins {
		g.origins[strings.ToLower(strings.TrimSuffix(origin, "/"))] = true
	}
	return g
}

// ownHosts returns the values of Host for this server. A browser omits HTTP's default port.
func ownHosts(addr net.Addr, more []string) map[string]bool {
	names := []string{"127.0.0.1", "localhost", "[::1]"}
	port := "80"
	if host, p, err := net.SplitHostPort(addr.String()); err == nil {
		port = p
		if ip := net.ParseIP(host); ip != nil && !ip.IsUnspecified() && !ip.IsLoopback() {
			names = append(names, strings.TrimSuffix(net.JoinHostPort(host, ""), ":"))
		}
	}
	hosts := map[string]bool{}
	for _, name := range append(names, more...) {
		name = strings.ToLower(name)
		if _, p, err := net.SplitHostPort(name); err == nil && p != "" {
			hosts[name] = true
			continue
		}
		hosts[name+":"+port] = true
		if port == "80" {
			hosts[name] = true
		}
	}
	return hosts
}

func isLoopback(addr net.Addr) bool {
	host, _, err := net.SplitHostPort(addr.String())
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r = pace(w, r)
	if g.access == nil || guarded(r.URL.Path) == "" {
		g.admit(w, r, &visit{})
		return
	}
	n, v, came := &noted{ResponseWriter: w}, &visit{by: byNobody}, time.Now()
	defer func() { g.access.noteCall(r, n, v, came) }() // also after a panic
	g.admit(n, r, v)
}

// visit records how a call was let in.
type visit struct {
	by    string
	grant *grant // the named token, if any
}

// admit lets a call in, or answers with the refusal.
func (g *gate) admit(w http.ResponseWriter, r *http.Request, v *visit) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if r.URL.Host != "" || !g.hosts[strings.ToLower(r.Host)] {
		WriteProblem(w, Problem{Type: "misdirected_request", Detail: "this server is not " + strconv.Quote(r.Host)})
		return
	}
	if !g.originAllowed(w, r) {
		WriteProblem(w, Problem{Type: "permission_denied", Detail: "requests from this origin are not allowed"})
		return
	}
	if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
		v.by = byNothing
		preflight(w, r)
		return
	}
	if !g.tokenFits(w, r, v) {
		return
	}
	if v.grant != nil {
		r, end := v.grant.bound(r)
		defer end()
		g.next.ServeHTTP(w, r)
		return
	}
	g.next.ServeHTTP(w, r)
}

// originAllowed checks the origin that the browser reports, and lets an allowed foreign page read the answer.
func (g *gate) originAllowed(w http.ResponseWriter, r *http.Request) bool {
	w.Header().Add("Vary", "Origin")
	origins := r.Header.Values("Origin")
	if len(origins) > 1 {
		return false
	}
	if len(origins) == 1 {
		origin := strings.ToLower(origins[0])
		if g.origins[origin] {
			w.Header().Set("Access-Control-Allow-Origin", origins[0])
			w.Header().Set("Access-Control-Expose-Headers",
				"Accept-Ranges, Acp-Connection-Id, Acp-Session-Id, Allow, Content-Range, ETag, Preference-Applied, Retry-After, WWW-Authenticate")
			return true
		}
		// Compared as a string, without parsing: an origin with an extra part, such as a path, does not match.
		host, plain := strings.CutPrefix(origin, "http://")
		if !plain || !g.hosts[host] && !g.hosts[host+":80"] {
			return false
		}
	}
	return !slices.Contains(r.Header.Values("Sec-Fetch-Site"), "cross-site")
}

func preflight(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Access-Control-Allow-Methods", "GET, POST, PUT, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Accept, Acp-Connection-Id, Acp-Session-Id, Last-Event-ID, Prefer, Idempotency-Key, "+
		"Range, If-Range, If-None-Match, If-Modified-Since")
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" { // the page is allowed by now
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}

// tokenFits checks the token, and answers with the refusal.
func (g *gate) tokenFits(w http.ResponseWriter, r *http.Request, v *visit) bool {
	scope := guarded(r.URL.Path)
	want := g.wanted(scope)
	if want == nil || openToAll(r.URL.Path) {
		v.by = byNothing
		return true
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	given := strings.EqualFold(scheme, "Bearer") && token != ""
	if given && (want.is(token) || scope == ScopeClient && g.tabs.of(token) != "") {
		v.by = byOwn
		return true
	}
	if given {
		if made := g.access.find(token, addressOf(r)); made != nil {
			v.by, v.grant = byNamed, made
			return made.fits(w, scope)
		}
		if wait := g.guesses.wrong(peerOf(r), time.Now()); wait > 0 {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(wait.Seconds()))))
			WriteProblem(w, Problem{Type: "too_many_requests", Detail: "too many wrong tokens"})
			return false
		}
	}
	w.Header().Set("WWW-Authenticate", `Bearer realm="deskhand"`)
	WriteProblem(w, Problem{Type: "token_invalid", Detail: "a valid bearer token is required"})
	return false
}

// openPaths lists the calls of /client that need no token: the first takes a one-time code, the second reveals nothing.
//
//nolint:gochecknoglobals // a constant in all but name
var openPaths = []string{"/client/login", "/client/tab/proof"}

func openToAll(path string) bool { return slices.Contains(openPaths, path) }

// peerOf returns the peer of a request for counting guesses. An IPv4 address may come as IPv6. The owner of one IPv6 address has the 2^64
// addresses of the network, and a process on this machine has all addresses of loopback.
func peerOf(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr // a private socket, which has no addresses
	}
	addr := peer.Addr().Unmap().WithZone("")
	if addr.IsLoopback() { // a local process has all loopback addresses
		return "loopback"
	}
	if addr.Is4() {
		return addr.String()
	}
	network, _ := addr.Prefix(64) // fails only for longer prefixes
	return network.String()
}

// guarded returns the scope that a path needs, or "" for none.
func guarded(path string) string {
	switch {
	case under(path, "/client"):
		return ScopeClient
	case under(path, "/v1"), under(path, "/acp"):
		return ScopeRuntime
	default:
		return ""
	}
}

// wanted returns the data directory's token for a scope, or nil when none is needed.
func (g *gate) wanted(scope string) *secret {
	switch scope {
	case ScopeClient:
		return g.client
	case ScopeRuntime:
		return g.runtime
	default:
		return nil
	}
}

// secret is a token's hash, so that comparing takes constant time.
type secret struct {
	hash [sha256.Size]byte
	none bool
}

// newSecret makes a secret. Nothing matches the secret of an empty token.
func newSecret(token string) *secret { return &secret{sha256.Sum256([]byte(token)), token == ""} }

func (s *secret) is(token string) bool {
	hash := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(hash[:], s.hash[:]) == 1 && !s.none
}

const (
	maxGuesses  = 10
	allGuesses  = 100 // of all peers together: more addresses give no more guesses
	guessWindow = time.Minute
	maxPeers    = 1024 // remembered peers; beyond that all counts restart
)

// guesses counts wrong tokens per peer.
type guesses struct {
	mu    sync.Mutex // protects the fields below
	peers map[string][]time.Time
	all   []time.Time
}

// recent returns the times within the window.
func recent(times []time.Time, now time.Time) []time.Time {
	for len(times) > 0 && now.Sub(times[0]) >= guessWindow {
		times = times[1:]
	}
	return times
}

// wrong counts a wrong token and returns how long the peer must wait after too many. Refused guesses do not count, so that the wait ends.
func (g *guesses) wrong(peer string, now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	times := recent(g.peers[peer], now)
	g.all = recent(g.all, now)
	switch {
	case len(times) >= maxGuesses:
		return times[0].Add(guessWindow).Sub(now)
	case len(g.all) >= allGuesses:
		return g.all[0].Add(guessWindow).Sub(now)
	}
	g.all = append(g.all, now)
	if g.peers == nil || len(g.peers) > maxPeers {
		g.peers = map[string][]time.Time{}
	}
	g.peers[peer] = append(times, now)
	return 0
}
