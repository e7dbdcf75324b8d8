package discord

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"

	"deskhand/backend/session"
)

// The codes of refusals; refusedBound is in bindings.go.
const (
	refusedOff         = "discord.off"
	refusedToken       = "discord.token_invalid"
	refusedMalformed   = "discord.token_malformed"
	refusedUnreadable  = "discord.token_unreadable" // detail: the keyring's error
	refusedIntents     = "discord.intents"
	refusedUnreachable = "discord.unreachable" // detail
	refusedRate        = "discord.rate"        // until
	refusedURL         = "discord.url"         // url
	refusedUser        = "discord.user"        // id
	refusedUnknown     = "discord.channel_unknown"
	refusedKind        = "discord.channel_kind"
	refusedDirectory   = "discord.directory" // path
	refusedAgent       = "discord.agent"     // agent
	refusedElsewhere   = "discord.elsewhere_taken"
)

// The states of the connection, as in State.
const (
	statusOff          = "off"
	statusConnecting   = "connecting"
	statusConnected    = "connected"
	statusReconnecting = "reconnecting"
	statusRefused      = "refused"
)

// client is the connection to Discord: its REST API, and its gateway (gateway.go). A single goroutine keeps the connection open (run).
type client struct {
	s      *Surface
	rest   rest.Rest // made once: the transport adds the token and the address
	limits *limits
	wire   *transport
	unit   time.Duration // a second; shorter in tests

	mu     sync.Mutex // protects the fields below
	use    access
	id     snowflake.ID  // of the bot
	skew   time.Duration // by how much Discord's clock is ahead of ours
	skewed bool          // skew is known
	how    condition
	again  context.CancelFunc      // starts again with the present setup
	refuse context.CancelCauseFunc // ends the open connection, for a reason

	commands string // why the commands could not be registered; "" = they were, or were not tried
	known    bool   // the commands are registered with Discord
}

// condition is the state of the connection, for people.
type condition struct {
	status, reason, detail string
	since                  time.Time
}

func newClient(s *Surface) *client {
	l := &client{s: s, limits: newLimits(), unit: time.Second, how: condition{status: statusOff, since: time.Now()}}
	l.wire = newTransport(l)
	l.rest = newREST(l.wire, l.limits, s.cfg.Version)
	return l
}

func (l *client) close() { l.wire.base.CloseIdleConnections() }

// self returns the id of the bot; 0 before Discord has sent the id.
func (l *client) self() snowflake.ID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id
}

// now returns Discord's time, as far as its answers have told it: the ids of messages use its clock, and ours may be wrong.
func (l *client) now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Add(l.skew)
}

func (l *client) access() access {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.use
}

// patience scales a duration by the length of a second in tests.
func (l *client) patience(d time.Duration) time.Duration {
	return time.Duration(float64(d) * l.unit.Seconds())
}

// heard reads the headers of an answer.
func (l *client) heard(resp *http.Response, a access) {
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		l.mu.Lock()
		l.skew, l.skewed = time.Until(at), true
		if -time.Second <= l.skew && l.skew <= time.Second {
			l.skew = 0 // the header is no more precise
		}
		l.mu.Unlock()
	}
	if resp.StatusCode == http.StatusUnauthorized && resp.Request.Header.Get("Authorization") != "" && !a.trial {
		// Every further call would bring Discord closer to locking out the address.
		l.drop(refuse(refusedToken), a.token)
	}
}

// drop ends the open connection of a token that no longer works.
func (l *client) drop(because error, token string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.use.token != token || token == "" {
		return
	}
	l.use.token = ""
	if l.refuse != nil {
		l.refuse(because)
	}
}

// doubled reports, while the connection is open, that another program uses the token.
func (l *client) doubled() {
	if l.condition().status == statusConnected {
		l.set(statusConnected, refusedElsewhere, "")
	}
}

// condition returns the state of the connection.
func (l *client) condition() condition {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.how
}

func (l *client) set(status, reason, detail string) {
	l.mu.Lock()
	if token := l.use.token; token != "" {
		detail = strings.ReplaceAll(detail, token, "…")
	}
	was := l.how
	l.how = condition{status: status, reason: reason, detail: detail, since: was.since}
	if was.status != status {
		l.how.since = time.Now()
	}
	changed := l.how != was
	l.mu.Unlock()
	if changed {
		l.s.cfg.Logger.Info("discord", "status", status, "reason", reason, "detail", detail)
		l.s.changed()
	}
}

// restart starts again with the present setup, and returns at once.
func (l *client) restart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.again != nil {
		l.again()
	}
}

// run keeps the connection open until ctx ends.
func (l *client) run(ctx context.Context) {
	for ctx.Err() == nil {
		life, end := context.WithCancel(ctx)
		l.mu.Lock()
		l.again = end // set before the setup is read: a later change starts again
		l.mu.Unlock()
		l.live(life)
		<-life.Done()
		end()
	}
	l.set(statusOff, "", "")
}

// live keeps the connection open with the present setup. live returns when ctx ends, or when nothing can be done before the setup changes.
func (l *client) live(ctx context.Context) {
	set := l.s.settings()
	l.limits.Reset()
	l.take(access{})
	if !set.Enabled || set.TokenIn == "" {
		l.set(statusOff, "", "")
		return
	}
	l.set(statusConnecting, "", "")
	token, err := l.token(ctx)
	if err != nil {
		return // ctx has ended
	}
	if token == "" {
		l.set(statusRefused, refusedToken, "")
		return
	}
	l.take(access{token: token, rest: set.REST})
	inner, refuse := context.WithCancelCause(ctx)
	defer refuse(nil)
	l.mu.Lock()
	l.refuse = refuse
	l.mu.Unlock()
	err = l.keep(inner, token, set.Gateway)
	if cause := context.Cause(inner); cause != nil && ctx.Err() == nil {
		err = cause
	}
	if refused, ok := errors.AsType[*session.RefusedError](err); ok && ctx.Err() == nil {
		if refused.Code == refusedToken {
			l.take(access{}) // every further call would count against this machine
		}
		l.set(statusRefused, refused.Code, refused.Params["detail"])
	}
}

func (l *client) take(a access) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.use, l.known, l.commands = a, false, ""
}

// token reads the token, again and again while the keyring is locked.
func (l *client) token(ctx context.Context) (string, error) {
	for try := 0; ; try++ {
		token, err := l.s.cfg.Token.Value(ctx)
		if err == nil {
			l.s.cfg.Sessions.Hide(token)
			return token, nil
		}
		if ctx.Err() == nil {
			l.set(statusReconnecting, refusedUnreadable, why(err))
		}
		if err := pause(ctx, l.backoff(try)); err != nil {
			return "", err
		}
	}
}

const longestBackoff = time.Minute

// backoff returns how long to wait after failures failures in a row: not at all after the first, because networks drop connections now
// and then, and then longer and longer, with a random part so that dropped clients do not return in step.
func (l *client) backoff(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	longest := min(longestBackoff, time.Second<<min(failures-1, 10))
	return l.patience(longest/2 + rand.N(longest/2))
}

// keep connects, and connects again, until Discord refuses or ctx ends.
func (l *client) keep(ctx context.Context, token, fixed string) error {
	g := &link{l: l, token: token, fixed: fixed}
	for failures := 0; ; failures++ {
		begun := time.Now()
		err := g.connect(ctx)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		refused := refusalOf(err)
		if refused == nil {
			refused = refuse(refusedUnreachable, "detail", why(err))
		}
		if final(refused.Code) {
			return refused
		}
		if time.Since(begun) > l.patience(longestBackoff) {
			failures = 0
		}
		wait := max(l.backoff(failures), l.patience(g.wait()))
		detail := refused.Params["detail"]
		if until, err := time.Parse(time.RFC3339, refused.Params["until"]); err == nil {
			wait, detail = max(wait, time.Until(until)), refused.Params["until"]
		}
		l.set(statusReconnecting, refused.Code, detail)
		if err := pause(ctx, wait); err != nil {
			return context.Cause(ctx)
		}
	}
}

// final reports whether no further try can change a refusal.
func final(code string) bool {
	return code == refusedToken || code == refusedIntents || code == refusedURL
}

// clock returns by how many seconds Discord's clock is ahead of ours.
func (l *client) clock() (seconds string, off, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strconv.Itoa(int(l.skew.Round(time.Second) / time.Second)), l.skew.Abs() > mostSkew, l.skewed
}

// mostSkew is how wrong our clock may be before people are told.
const mostSkew = 30 * time.Second
