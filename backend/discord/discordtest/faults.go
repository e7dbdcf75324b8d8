package discordtest

import (
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/disgoorg/snowflake/v2"
)

// The routes that faults and Calls are told most often. A fault of a method alone ("PATCH") takes every route of it, and "" takes all.
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
	RouteFile     = "FILE /attachments" // a download, whatever its method
)

func matches(route, wanted string) bool {
	return wanted == "" || route == wanted || strings.HasPrefix(route, wanted+" ")
}

// faults are those that are on.
type faults struct {
	dropAfter   int // events that are sent until the line breaks; -1 = it does not
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
	epoch       int // addresses of files that were signed before it are no longer good
}

// limited is a storm of 429 on a route.
type limited struct {
	route  string
	left   int
	after  time.Duration
	global bool
}

// failing makes calls fail: before they did anything, or after.
type failing struct {
	route   string
	uploads bool // only those with files
	left    int
	status  int
	after   bool
}

// natural is the limit that Discord has for the messages of a channel; 0 = none that a test could meet.
type natural struct {
	n   int
	per time.Duration
}

// hold keeps calls of a route from being answered.
type hold struct {
	route string
	once  sync.Once
	gate  chan struct{}
}

func (h *hold) open() { h.once.Do(func() { close(h.gate) }) }

// Drop breaks every line to the gateway without a word. Their sessions wait for whoever resumes them.
func (d *Discord) Drop() {
	d.do(func() {
		for l := range d.lines {
			l.drop()
		}
	})
}

// DropAfter breaks the line that would be sent the event after the next n ones.
func (d *Discord) DropAfter(n int) { d.do(func() { d.faults.dropAfter = n }) }

// HangUp hangs up with a code of Discord's, as CloseUnknown.
func (d *Discord) HangUp(code int) {
	d.do(func() {
		for l := range d.lines {
			l.hangUp(code, "")
		}
	})
}

// InvalidSession tells every client that its session is over; when it is not resumable, it is.
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

// Forget forgets all sessions, so that whoever resumes one is told that it is invalid.
func (d *Discord) Forget() { d.do(func() { clear(d.sessions) }) }

// Reconnect asks every client to come again, as Discord does when it moves its machines.
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

// Mute keeps everything from being sent at the gateway, acknowledgements too, while lines stay open; false sends what waited.
func (d *Discord) Mute(on bool) {
	d.do(func() {
		d.faults.muted = on
		for l := range d.lines {
			l.poke()
		}
	})
}

// Deaf leaves heartbeats without acknowledgement, while events go on.
func (d *Discord) Deaf(on bool) { d.do(func() { d.faults.deaf = on }) }

// Down makes the API, the gateway or both answer 503. Lines that are open stay.
func (d *Discord) Down(api, gateway bool) {
	d.do(func() { d.faults.apiDown, d.faults.gatewayDown = api, gateway })
}

// StartsLeft is how many more sessions the bot may begin today, as the API tells it.
func (d *Discord) StartsLeft(n int) { d.do(func() { d.faults.startsLeft = n }) }

// RateLimit answers the next n calls of a route with 429. Retry-After, in whole seconds, is rounded up, as Discord does it; the body has
// the exact time.
func (d *Discord) RateLimit(route string, n int, retryAfter time.Duration, global bool) {
	d.do(func() { d.faults.limits = append(d.faults.limits, limited{route, n, retryAfter, global}) })
}

// Limit lets n calls that write messages through in each time, a channel, and answers 429 to others. Discord's own is 5 in 5 s.
func (d *Discord) Limit(n int, per time.Duration) {
	d.do(func() { d.faults.natural = natural{n, per} })
}

// LockOut answers everything with 429 for a while, as what stands before Discord does when a bot made too many mistakes: no JSON and
// none of Discord's headers.
func (d *Discord) LockOut(while time.Duration) {
	d.do(func() { d.faults.lockedUntil = time.Now().Add(while) })
}

// FailUploads fails the next n calls that carry files. 500 and above is said in HTML, as what stands before Discord says it.
func (d *Discord) FailUploads(n, status int) {
	d.do(func() { d.faults.failing = append(d.faults.failing, failing{uploads: true, left: n, status: status}) })
}

// FailWrites fails the next n calls that change something, before they do.
func (d *Discord) FailWrites(n, status int) { d.Fail("", n, status) }

// Fail fails the next n calls of a route, before they do anything; "" = all that change something.
func (d *Discord) Fail(route string, n, status int) {
	d.do(func() { d.faults.failing = append(d.faults.failing, failing{route: route, left: n, status: status}) })
}

// LoseAnswers does what the next n calls of a route ask for, and answers them with a failure: what a retry must not do twice.
func (d *Discord) LoseAnswers(route string, n, status int) {
	d.do(func() {
		d.faults.failing = append(d.faults.failing, failing{route: route, left: n, status: status, after: true})
	})
}

// Hold keeps calls of a route waiting, before they do anything, until release is called.
func (d *Discord) Hold(route string) (release func()) {
	h := &hold{route: route, gate: make(chan struct{})}
	d.do(func() { d.faults.holds = append(d.faults.holds, h) })
	return h.open
}

// UploadLimit is how large a file may be; 0 = as the guild's tier has it.
func (d *Discord) UploadLimit(bytes int64) { d.do(func() { d.faults.uploadLimit = bytes }) }

// Revoke makes the bot's token worthless: 401 at the API, and the gateway hangs up.
func (d *Discord) Revoke() {
	d.do(func() {
		d.faults.revoked = true
		for l := range d.lines {
			l.hangUp(CloseToken, "Authentication failed.")
		}
	})
}

// Renew makes a new token, as the person does who has lost one, and gives it.
func (d *Discord) Renew() (token string) {
	d.do(func() {
		d.faults.revoked = false
		d.Token += "1"
		token = d.Token
	})
	return token
}

// Replace has the bot be another one of the same name and guilds, with a token of its own: no message is its own, as where another
// application is made.
func (d *Discord) Replace() (token string) {
	d.do(func() {
		d.Bot = d.addUser(d.users[d.Bot].Name, true)
		clear(d.sessions)
		d.Token += "1"
		token = d.Token
	})
	return token
}

// Pardon makes the token that was revoked good again, which Discord never does: a test need not tell everybody a new one.
func (d *Discord) Pardon() { d.do(func() { d.faults.revoked = false }) }

// Clock sets how far Discord's clock is from ours: its Date, its times of rate limits and its ids. It is set before anything is said, since
// the ids of what follows go back with it.
func (d *Discord) Clock(skew time.Duration) { d.do(func() { d.skew, d.lastID = skew, 0 }) }

// AllowContent gives the bot the privileged intent, or takes it: then the gateway hangs up on whoever uses it.
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

// LieAboutSize declares every file to be of a size, whatever it is; 0 = the truth.
func (d *Discord) LieAboutSize(bytes int) { d.do(func() { d.faults.declared = bytes }) }

// CutShort ends every download before its end.
func (d *Discord) CutShort(on bool) { d.do(func() { d.faults.cutShort = on }) }

// RedirectAway sends whoever fetches a file to another address; "" = no longer.
func (d *Discord) RedirectAway(to string) { d.do(func() { d.faults.redirect = to }) }

// FailFiles fails the next n downloads.
func (d *Discord) FailFiles(n, status int) {
	d.do(func() { d.faults.filesFail, d.faults.fileStatus = n, status })
}

// ExpireFiles makes every address of a file that was given so far no longer good. A message that is asked for again has new ones.
func (d *Discord) ExpireFiles() { d.do(func() { d.faults.epoch++ }) }

// limit tells the storm that takes a call.
func (f *faults) limit(route string) *limited {
	for i := range f.limits {
		if l := &f.limits[i]; l.left > 0 && matches(route, l.route) {
			l.left--
			return l
		}
	}
	return nil
}

// fails tells with what a call fails; 0 = it does not.
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

// held are the holds that a call waits for.
func (f *faults) held(route string) (list []*hold) {
	for _, h := range f.holds {
		if matches(route, h.route) {
			list = append(list, h)
		}
	}
	return list
}

// largest is how large a file in a channel may be.
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
