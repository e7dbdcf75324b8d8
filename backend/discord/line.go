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

// The codes of what can be wrong; refusedBound stands with the bindings.
const (
	refusedOff         = "discord.off"
	refusedToken       = "discord.token_invalid"
	refusedMalformed   = "discord.token_malformed"
	refusedUnreadable  = "discord.token_unreadable" // detail: what the keyring says
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

// The states of the line, as State has them.
const (
	statusOff          = "off"
	statusConnecting   = "connecting"
	statusConnected    = "connected"
	statusReconnecting = "reconnecting"
	statusRefused      = "refused"
)

// line is the way to Discord: its REST API, and its gateway (gateway.go). One goroutine keeps it open (run).
type line struct {
	s      *Surface
	rest   rest.Rest // made once: which token and which address it has is said by the transport
	limits *limits
	wire   *transport
	unit   time.Duration // a second; tests have shorter ones

	mu     sync.Mutex // protects the fields below
	use    access
	id     snowflake.ID  // of the bot
	skew   time.Duration // by how much Discord's clock is ahead of ours
	skewed bool          // that is known
	how    condition
	again  context.CancelFunc      // begins anew, with what is set up now
	refuse context.CancelCauseFunc // ends what is open, for a reason

	commands string // why they could not be made known; "" = they were, or nobody has tried
	known    bool   // commands are known to Discord
}

// condition is how the line is, for people.
type condition struct {
	status, reason, detail string
	since                  time.Time
}

func newLine(s *Surface) *line {
	l := &line{s: s, limits: newLimits(), unit: time.Second, how: condition{status: statusOff, since: time.Now()}}
	l.wire = newTransport(l)
	l.rest = newREST(l.wire, l.limits, s.cfg.Version)
	return l
}

func (l *line) close() { l.wire.base.CloseIdleConnections() }

// self is the id of the bot; 0 before Discord has told it.
func (l *line) self() snowflake.ID {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.id
}

// now is Discord's time, as far as its answers have told it: the ids of messages are of its clock, and ours may be wrong.
func (l *line) now() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Add(l.skew)
}

func (l *line) access() access {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.use
}

// patience is how long to wait where a person would wait as long.
func (l *line) patience(d time.Duration) time.Duration {
	return time.Duration(float64(d) * l.unit.Seconds())
}

// heard reads what an answer tells beside its content.
func (l *line) heard(resp *http.Response, a access) {
	if at, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		l.mu.Lock()
		l.skew, l.skewed = time.Until(at), true
		if -time.Second <= l.skew && l.skew <= time.Second {
			l.skew = 0 // that is how exact the header is
		}
		l.mu.Unlock()
	}
	if resp.StatusCode == http.StatusUnauthorized && resp.Request.Header.Get("Authorization") != "" && !a.trial {
		// Every further call would be one more for which Discord locks out an address.
		l.drop(refuse(refusedToken), a.token)
	}
}

// drop ends what is open with a token that is good for nothing any more.
func (l *line) drop(because error, token string) {
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

// doubled says, while the line is open, that another program uses the token.
func (l *line) doubled() {
	if l.condition().status == statusConnected {
		l.set(statusConnected, refusedElsewhere, "")
	}
}

// condition is how the line is.
func (l *line) condition() condition {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.how
}

func (l *line) set(status, reason, detail string) {
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

// restart begins anew with what is set up now. It returns at once.
func (l *line) restart() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.again != nil {
		l.again()
	}
}

// run keeps the line open until ctx ends.
func (l *line) run(ctx context.Context) {
	for ctx.Err() == nil {
		life, end := context.WithCancel(ctx)
		l.mu.Lock()
		l.again = end // before the setup is read: what changes after that begins anew
		l.mu.Unlock()
		l.live(life)
		<-life.Done()
		end()
	}
	l.set(statusOff, "", "")
}

// live is the line with one setup. It returns when ctx ends, or when there is nothing to be done before the setup changes.
func (l *line) live(ctx context.Context) {
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

func (l *line) take(a access) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.use, l.known, l.commands = a, false, ""
}

// token reads the token. A keyring may be locked until its owner is back.
func (l *line) token(ctx context.Context) (string, error) {
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

// backoff is how long to wait after so many failures in a row: nothing after the first drop, which the network makes now and then, and
// longer and longer then, never in step with others who were dropped at the same time.
func (l *line) backoff(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	longest := min(longestBackoff, time.Second<<min(failures-1, 10))
	return l.patience(longest/2 + rand.N(longest/2))
}

// keep connects, and connects again, until Discord refuses or ctx ends.
func (l *line) keep(ctx context.Context, token, fixed string) error {
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

// final tells what no further try can change.
func final(code string) bool {
	return code == refusedToken || code == refusedIntents || code == refusedURL
}

// clock tells by how much Discord's clock is ahead of ours, in seconds.
func (l *line) clock() (seconds string, off, known bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strconv.Itoa(int(l.skew.Round(time.Second) / time.Second)), l.skew.Abs() > mostSkew, l.skewed
}

// mostSkew is how wrong our clock may be before people are told.
const mostSkew = 30 * time.Second
