package discordtest

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/disgoorg/snowflake/v2"
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

// faults holds the faults that are switched on.
type faults struct {
	dropAfter   int // events still sent before the connection breaks; -1 = the connection does not break
	muted, deaf bool
	gatewayDown bool
	apiDown     bool
	revoked     bool
	startsLeft  int // -1 = as many as Discord gives
	lockedUntil time.Time
	limits      []limited
	failing     []failing
	holds       []*hold
	natural     natural
	uploadLimit int64 // 0 = by the guild's tier
	declared    int   // of files; 0 = the truth
	redirect    string
	cutShort    bool
	filesFail   int
	fileStatus  int
	epoch       int // addresses that were signed in an earlier epoch are invalid
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

// Drop breaks every connection to the gateway without a close frame. The sessions stay and can be resumed.
func (d *Discord) Drop() {
	d.do(func() {
		for l := range d.lines {
			l.drop()
		}
	})
}

// DropAfter breaks the connection that would receive the event after the next n events.
func (d *Discord) DropAfter(n int) { d.do(func() { d.faults.dropAfter = n }) }

// HangUp closes every connection to the gateway with one of Discord's codes, such as CloseUnknown.
func (d *Discord) HangUp(code int) {
	d.do(func() {
		for l := range d.lines {
			l.hangUp(code, "")
		}
	})
}

// InvalidSession tells every client that its session is invalid. Unless resumable, the sessions end.
func (d *Discord) InvalidSession(resumable bool) {
	d.do(func() {
		for l := range d.lines {
			if s := l.session; s != nil && !resumable {
				delete(d.sessions, s.id)
				l.session = nil
			}
			l.say(object{"op": opInvalid, "d": resumable})
		}
		if !resumable {
			clear(d.sessions)
		}
	})
}

// Forget ends all sessions, so that a client which resumes a session hears that the session is invalid.
func (d *Discord) Forget() { d.do(func() { clear(d.sessions) }) }

// Reconnect asks every client to connect again, as Discord does when a gateway machine goes out of service.
func (d *Discord) Reconnect() {
	d.do(func() {
		for l := range d.lines {
			l.say(object{"op": opReconnect, "d": nil})
		}
	})
}

// Beat asks every client for a heartbeat now.
func (d *Discord) Beat() {
	d.do(func() {
		for l := range d.lines {
			l.say(object{"op": opHeartbeat, "d": nil})
		}
	})
}

// Mute keeps everything from being sent at the gateway, acknowledgements too, while the connections stay open. Mute(false) sends
// everything that waited.
func (d *Discord) Mute(on bool) {
	d.do(func() {
		d.faults.muted = on
		for l := range d.lines {
			l.poke()
		}
	})
}

// Deaf leaves heartbeats without acknowledgement while events still arrive.
func (d *Discord) Deaf(on bool) { d.do(func() { d.faults.deaf = on }) }

// Down makes the API, the gateway or both answer 503. Open connections stay open.
func (d *Discord) Down(api, gateway bool) {
	d.do(func() { d.faults.apiDown, d.faults.gatewayDown = api, gateway })
}

// StartsLeft sets how many more sessions the API says the bot may start today.
func (d *Discord) StartsLeft(n int) { d.do(func() { d.faults.startsLeft = n }) }

// RateLimit answers the next n calls of a route with 429. Retry-After is rounded up to whole seconds, as Discord rounds; the body has the
// exact time.
func (d *Discord) RateLimit(route string, n int, retryAfter time.Duration, global bool) {
	d.do(func() { d.faults.limits = append(d.faults.limits, limited{route, n, retryAfter, global}) })
}

// Limit lets n calls that write messages through per channel and period, and answers further calls with 429. Discord's own limit is 5 in
// 5 s.
func (d *Discord) Limit(n int, per time.Duration) {
	d.do(func() { d.faults.natural = natural{n, per} })
}

// LockOut answers every call with 429 for a while, as the proxy in front of Discord does after too many mistakes of a bot: without JSON
// and without Discord's headers.
func (d *Discord) LockOut(while time.Duration) {
	d.do(func() { d.faults.lockedUntil = time.Now().Add(while) })
}

// FailUploads fails the next n calls that carry files. For a status of 500 and above the body is HTML, as from the proxy in front of
// Discord.
func (d *Discord) FailUploads(n, status int) {
	d.do(func() { d.faults.failing = append(d.faults.failing, failing{uploads: true, left: n, status: status}) })
}

// FailWrites fails the next n calls that change something, before their effect.
func (d *Discord) FailWrites(n, status int) { d.Fail("", n, status) }

// Fail fails the next n calls of a route before their effect; "" means every call that changes something.
func (d *Discord) Fail(route string, n, status int) {
	d.do(func() { d.faults.failing = append(d.faults.failing, failing{route: route, left: n, status: status}) })
}

// LoseAnswers lets the next n calls of a route take effect and answers them with a failure, for tests that a retry does nothing twice.
func (d *Discord) LoseAnswers(route string, n, status int) {
	d.do(func() {
		d.faults.failing = append(d.faults.failing, failing{route: route, left: n, status: status, after: true})
	})
}

// Hold delays the calls of a route, before their effect, until the caller calls release.
func (d *Discord) Hold(route string) (release func()) {
	h := &hold{route: route, gate: make(chan struct{})}
	d.do(func() { d.faults.holds = append(d.faults.holds, h) })
	return h.open
}

// UploadLimit sets the largest size of a file; 0 = the size that the tier of the guild allows.
func (d *Discord) UploadLimit(bytes int64) { d.do(func() { d.faults.uploadLimit = bytes }) }

// Revoke makes the bot's token invalid: the API answers 401 and the gateway closes the connections.
func (d *Discord) Revoke() {
	d.do(func() {
		d.faults.revoked = true
		for l := range d.lines {
			l.hangUp(CloseToken, "Authentication failed.")
		}
	})
}

// Renew returns a new token, as Discord gives a person who resets the token of a bot.
func (d *Discord) Renew() (token string) {
	d.do(func() {
		d.faults.revoked = false
		d.Token += "1"
		token = d.Token
	})
	return token
}

// Replace gives the bot another user id, with the same name and guilds and a new token. The messages so far are then not the bot's own,
// as after a person created a second application.
func (d *Discord) Replace() (token string) {
	d.do(func() {
		d.Bot = d.addUser(d.users[d.Bot].Name, true)
		clear(d.sessions)
		d.Token += "1"
		token = d.Token
	})
	return token
}

// Pardon makes the revoked token valid again, which Discord never does, so that a test need not pass a new token on.
func (d *Discord) Pardon() { d.do(func() { d.faults.revoked = false }) }

// Clock sets how far Discord's clock is from ours: the Date header, the times of rate limits and the ids. A test calls Clock before the
// first message, since a clock that goes back makes later ids smaller than earlier ids.
func (d *Discord) Clock(skew time.Duration) { d.do(func() { d.skew, d.lastID = skew, 0 }) }

// AllowContent gives the bot the privileged intent for content or takes the intent away. Without the intent the gateway closes the
// connection of a client that uses the intent.
func (d *Discord) AllowContent(on bool) {
	d.do(func() {
		d.options.NoContent = !on
		for l := range d.lines {
			if s := l.session; !on && s != nil && s.intents&intentContent != 0 {
				delete(d.sessions, s.id)
				l.hangUp(CloseNotAllowed, "Disallowed intent(s).")
			}
		}
	})
}

// LieAboutSize declares every file to have a size of bytes, whatever its real size; 0 = the real size.
func (d *Discord) LieAboutSize(bytes int) { d.do(func() { d.faults.declared = bytes }) }

// CutShort ends every download before its end.
func (d *Discord) CutShort(on bool) { d.do(func() { d.faults.cutShort = on }) }

// RedirectAway redirects every download to another address; "" ends the redirection.
func (d *Discord) RedirectAway(to string) { d.do(func() { d.faults.redirect = to }) }

// FailFiles fails the next n downloads.
func (d *Discord) FailFiles(n, status int) {
	d.do(func() { d.faults.filesFail, d.faults.fileStatus = n, status })
}

// ExpireFiles makes every address of a file that was given so far invalid. Fetching the message again gives new addresses.
func (d *Discord) ExpireFiles() { d.do(func() { d.faults.epoch++ }) }

// limit returns the rate limit that applies to a call of route, or nil.
func (f *faults) limit(route string) *limited {
	for i := range f.limits {
		if l := &f.limits[i]; l.left > 0 && matches(route, l.route) {
			l.left--
			return l
		}
	}
	return nil
}

// fails returns the status with which a call fails; 0 = the call does not fail.
func (f *faults) fails(route string, upload, after bool) int {
	for i := range f.failing {
		l := &f.failing[i]
		writes := l.route != "" || !strings.HasPrefix(route, http.MethodGet+" ")
		if l.left > 0 && l.after == after && matches(route, l.route) && writes && (upload || !l.uploads) {
			l.left--
			return l.status
		}
	}
	return 0
}

// held returns the holds that a call of route waits for.
func (f *faults) held(route string) (list []*hold) {
	for _, h := range f.holds {
		if matches(route, h.route) {
			list = append(list, h)
		}
	}
	return list
}

// largest returns the largest size of a file in a guild.
func (d *Discord) largest(guild snowflake.ID) int64 {
	if d.faults.uploadLimit > 0 {
		return d.faults.uploadLimit
	}
	const usual, second, third = 10 << 20, 50 << 20, 100 << 20
	if g := d.guild(guild); g != nil && g.premiumTier >= 2 {
		return map[int]int64{2: second, 3: third}[g.premiumTier]
	}
	return usual
}
