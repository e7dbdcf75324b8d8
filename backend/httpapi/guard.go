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

// gate stands in front of everything on a listener. Its checks, in their order:
//
//  1. Host must name us: a page whose name was rebound to our address does not (421). A request to a proxy (GET http://…) names its
//     Host twice, and net/http tells us of one of them only; we are no proxy.
//  2. Origin, when there is one, must be ours or allowed, and the browser must not call the request cross-site (403).
//  3. A preflight is answered; by now its origin is fine.
//  4. The token, where one is needed (401): that of the data directory, that of a tab and this start, or one that a person has made for it.
//     One peer may guess ten times a minute, all together a hundred times, then a wrong token is a 429; a right one always passes.
//
// No cookies, no wildcards, no credentials. Who called, and what came of it, is noted in the audit.
type gate struct {
	next    http.Handler
	hosts   map[string]bool
	origins map[string]bool // foreign ones that are allowed
	runtime *secret         // nil: /v1 is open
	client  *secret
	tabs    *Tabs
	access  *Access // nil: there are no tokens but those two, and no audit
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

// ownHosts are the values of Host that mean us. A browser leaves out the port when it is HTTP's own.
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
	defer func() { g.access.noteCall(r, n, v, came) }() // also when the call ends in a panic
	g.admit(n, r, v)
}

// visit is how a call was let in.
type visit struct {
	by    string
	grant *grant // the token that a person has made
}

// admit lets a call in, or answers why not.
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

// originAllowed checks where the browser says that the request comes from, and lets an allowed foreign page read the answer.
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
		// Compared as it stands, and not taken apart: what an origin may not have, such as a path, makes it another one.
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
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" { // by now the page is one that is allowed
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
}

// tokenFits checks the token, and answers when it does not fit.
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

// openPaths are the calls of /client that anybody may make: the first takes a one-time code, the second gives nothing away.
//
//nolint:gochecknoglobals // a constant in all but name
var openPaths = []string{"/client/login", "/client/tab/proof"}

func openToAll(path string) bool { return slices.Contains(openPaths, path) }

// peerOf is who a request comes from, as far as guesses go. An IPv4 address may come as IPv6. Who has one IPv6 address has the 2^64 of its
// network, and who is on this machine has all addresses of loopback.
func peerOf(r *http.Request) string {
	peer, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr // of a socket, where there are no addresses
	}
	addr := peer.Addr().Unmap().WithZone("")
	if addr.IsLoopback() { // who is on this machine has all of them
		return "loopback"
	}
	if addr.Is4() {
		return addr.String()
	}
	network, _ := addr.Prefix(64) // fails for longer prefixes only
	return network.String()
}

// guarded is the scope that opens a path; "" where anybody may come.
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

// wanted is the token of the data directory that opens a scope; nil where none is needed.
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

// secret is a token as its hash, so that comparing takes the same time whatever is compared.
type secret struct {
	hash [sha256.Size]byte
	none bool
}

// newSecret makes a secret. An empty one is no token at all: nothing fits it.
func newSecret(token string) *secret { return &secret{sha256.Sum256([]byte(token)), token == ""} }

func (s *secret) is(token string) bool {
	hash := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(hash[:], s.hash[:]) == 1 && !s.none
}

const (
	maxGuesses  = 10
	allGuesses  = 100 // of all peers together: who has many addresses has no more
	guessWindow = time.Minute
	maxPeers    = 1024 // peers remembered; more are a flood, and then all start anew
)

// guesses counts wrong tokens per peer.
type guesses struct {
	mu    sync.Mutex // protects what is below
	peers map[string][]time.Time
	all   []time.Time
}

// recent are those of the times that are within the window.
func recent(times []time.Time, now time.Time) []time.Time {
	for len(times) > 0 && now.Sub(times[0]) >= guessWindow {
		times = times[1:]
	}
	return times
}

// wrong counts one more and returns how long the peer has to wait when it was one too many. What is refused does not count, so that
// the wait ends.
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
