package discordtest

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// The routes that tests name most often in faults and Calls. A method alone ("PATCH") means every route of that method, and "" means
// every route.
const (
	RouteCreate   = "POST /channels/{channel}/messages"
	RouteEdit     = "PATCH /channels/{channel}/messages/{message}"
	RouteDelete   = "DELETE /channels/{channel}/messages/{message}"
	RouteHistory  = "GET /channels/{channel}/messages"
	RouteThread   = "POST /channels/{channel}/messages/{message}/threads"
	RouteCallback = "POST /interactions/{interaction}/{token}/callback"
	RouteFollowup = "POST /webhooks/{application}/{token}"
	RouteCommands = "PUT /applications/{application}/commands"
	RouteSelf     = "GET /users/@me"
	RouteFile     = "FILE /attachments" // a download by any method
)

func matches(route, wanted string) bool {
	return wanted == "" || route == wanted || strings.HasPrefix(route, wanted+" ")
}

// limited answers a number of calls of a route with 429.
type limited struct {
	route  string
	left   int
	after  time.Duration
	global bool
}

// failing makes calls fail, either before or after their effect.
type failing struct {
	route   string
	uploads bool // only those with files
	left    int
	status  int
	after   bool
}

// natural is the rate limit for the messages of a channel; 0 = no limit that a test could reach.
type natural struct {
	n   int
	per time.Duration
}

// hold delays the calls of a route.
type hold struct {
	route string
	once  sync.Once
	gate  chan struct{}
}

func (h *hold) open() { h.once.Do(func() { close(h.gate) }) }

// RateLimit answers the next n calls of a route with 429. Retry-After is rounded up to whole seconds, as Discord rounds; the body has the
// exact time.
func (api *API) RateLimit(route string, n int, retryAfter time.Duration, global bool) {
	api.d.do(func() { api.limits = append(api.limits, limited{route, n, retryAfter, global}) })
}

// Limit lets n calls that write messages through per channel and period, and answers further calls with 429. Discord's own limit is 5 in
// 5 s.
func (api *API) Limit(n int, per time.Duration) {
	api.d.do(func() { api.natural = natural{n, per} })
}

// LockOut answers every call with 429 for a while, as the proxy in front of Discord does after too many mistakes of a bot: without JSON
// and without Discord's headers.
func (api *API) LockOut(while time.Duration) {
	api.d.do(func() { api.lockedUntil = time.Now().Add(while) })
}

// FailUploads fails the next n calls that carry files. For a status of 500 and above the body is HTML, as from the proxy in front of
// Discord.
func (api *API) FailUploads(n, status int) {
	api.d.do(func() { api.failing = append(api.failing, failing{uploads: true, left: n, status: status}) })
}

// FailWrites fails the next n calls that change something, before their effect.
func (api *API) FailWrites(n, status int) { api.Fail("", n, status) }

// Fail fails the next n calls of a route before their effect; "" means every call that changes something.
func (api *API) Fail(route string, n, status int) {
	api.d.do(func() { api.failing = append(api.failing, failing{route: route, left: n, status: status}) })
}

// LoseAnswers lets the next n calls of a route take effect and answers them with a failure, for tests that a retry does nothing twice.
func (api *API) LoseAnswers(route string, n, status int) {
	api.d.do(func() {
		api.failing = append(api.failing, failing{route: route, left: n, status: status, after: true})
	})
}

// Hold delays the calls of a route, before their effect, until the caller calls release.
func (api *API) Hold(route string) (release func()) {
	h := &hold{route: route, gate: make(chan struct{})}
	api.d.do(func() { api.holds = append(api.holds, h) })
	return h.open
}

// limit returns the rate limit that applies to a call of route, or nil.
func (api *API) limit(route string) *limited {
	for i := range api.limits {
		if l := &api.limits[i]; l.left > 0 && matches(route, l.route) {
			l.left--
			return l
		}
	}
	return nil
}

// fails returns the status with which a call fails; 0 = the call does not fail.
func (api *API) fails(route string, upload, after bool) int {
	for i := range api.failing {
		l := &api.failing[i]
		writes := l.route != "" || !strings.HasPrefix(route, http.MethodGet+" ")
		if l.left > 0 && l.after == after && matches(route, l.route) && writes && (upload || !l.uploads) {
			l.left--
			return l.status
		}
	}
	return 0
}

// held returns the holds that a call of route waits for.
func (api *API) held(route string) (list []*hold) {
	for _, h := range api.holds {
		if matches(route, h.route) {
			list = append(list, h)
		}
	}
	return list
}
