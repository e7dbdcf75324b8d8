package discord

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"

	"deskhand/backend/session"
)

// standardREST is where Discord's API is. The library is given this address and no token: the transport puts in what is set up, so that
// a call can be made with the token and at the address of this moment, and no error of the library holds a token.
const standardREST = "https://discord.com/api/v10"

// standardGateway is where Discord's gateway is, as a rule; its API tells which it is.
const standardGateway = "wss://gateway.discord.gg"

// errOff is what every call says while there is no token.
var errOff error = &session.RefusedError{Code: refusedOff}

// Times of a call. Uploads get more, by their size.
const (
	callLimit   = 30 * time.Second
	slowest     = 32 << 10 // bytes of an upload in a second
	attempts    = 4        // of a call that can be made twice
	secondTry   = 500 * time.Millisecond
	mostOfError = 1 << 20 // bytes of an answer that is an error
)

// access is with what a call is made.
type access struct {
	token string
	rest  string
	trial bool // it is looked at, and not yet in use: what Discord says of it is no news of the line
}

// accessKey is where a context holds an access of its own.
type accessKey struct{}

// with gives calls another token or address than the line has.
func with(ctx context.Context, a access) context.Context {
	return context.WithValue(ctx, accessKey{}, a)
}

// transport carries the calls of the library: it puts in token and address, makes those again that may be made twice when Discord fails,
// ends what takes too long, and reads what every answer tells beside its content.
type transport struct {
	l     *line
	base  *http.Transport
	limit time.Duration // of a call that uploads nothing
}

func newTransport(l *line) *transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	return &transport{l: l, limit: callLimit, base: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true, MaxIdleConns: 8,
		IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 10 * time.Second,
	}}
}

// newREST is the library's client on our transport. It logs bodies, with what people have said: it gets no log.
func newREST(t *transport, l *limits, version string) rest.Rest {
	client := rest.NewClient("", rest.WithURL(standardREST), rest.WithRateLimiter(l), rest.WithLogger(slog.New(slog.DiscardHandler)),
		rest.WithUserAgent("DiscordBot (Deskhand, "+cmp.Or(version, "0")+")"),
		rest.WithHTTPClient(&http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // the API sends nobody elsewhere, and the token must not go there
		}}))
	return rest.New(client, rest.WithDefaultAllowedMentions(discord.AllowedMentions{}))
}

// RoundTrip is of http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	a, ok := r.Context().Value(accessKey{}).(access)
	if !ok {
		a = t.l.access()
	}
	bot := r.Header.Get("Authorization") != ""
	if bot && a.token == "" {
		return nil, errOff
	}
	target, err := url.Parse(cmp.Or(a.rest, standardREST) + strings.TrimPrefix(r.URL.String(), standardREST))
	if err != nil {
		return nil, err
	}
	again := repeatable(r)
	for try := 1; ; try++ {
		resp, err := t.try(r, target, bot, a)
		failed := err != nil || resp.StatusCode >= http.StatusInternalServerError
		if !failed || !again || try == attempts || r.Context().Err() != nil {
			return resp, err
		}
		if resp != nil {
			_ = resp.Body.Close() // it is of no use
		}
		if err := pause(r.Context(), t.l.patience(secondTry<<(try-1))); err != nil {
			return nil, err
		}
	}
}

// beaten notices that an interaction was answered by somebody else: another program has the token, and people would get two answers to
// everything. We answer each of them once, and never again.
func (t *transport) beaten(r *http.Request, resp *http.Response) {
	if resp.StatusCode != http.StatusBadRequest || !strings.HasSuffix(r.URL.Path, "/callback") {
		return
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, mostOfError)) // whoever reads it again hears of an error
	resp.Body = &restored{Reader: io.MultiReader(bytes.NewReader(text), resp.Body), Closer: resp.Body}
	var said struct {
		Code rest.JSONErrorCode `json:"code"`
	}
	if json.Unmarshal(text, &said) == nil && said.Code == rest.JSONErrorCodeInteractionAlreadyAcknowledged {
		t.l.doubled()
	}
}

// restored is a body of which the beginning was read.
type restored struct {
	io.Reader
	io.Closer
}

// try makes a call once. Its time ends with its answer's body.
func (t *transport) try(r *http.Request, target *url.URL, bot bool, a access) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(r.Context(), t.limit+time.Duration(max(r.ContentLength, 0)/slowest)*time.Second)
	out := r.Clone(ctx)
	out.URL, out.Host = target, ""
	if bot {
		out.Header.Set("Authorization", "Bot "+a.token)
	}
	var err error
	if r.GetBody != nil {
		out.Body, err = r.GetBody()
	}
	var resp *http.Response
	if err == nil {
		resp, err = t.base.RoundTrip(out)
	}
	if err != nil {
		cancel()
		return nil, err
	}
	t.l.heard(resp, a)
	t.beaten(r, resp)
	resp.Body = &ending{ReadCloser: resp.Body, end: cancel}
	return resp, nil
}

// repeatable tells whether a call does the same when it is made twice. A new message does: all that we make carry a nonce which Discord
// is told to look at, and makes one message of it.
func repeatable(r *http.Request) bool {
	if r.Body != nil && r.GetBody == nil {
		return false
	}
	return r.Method != http.MethodPost || strings.HasSuffix(r.URL.Path, "/messages") && strings.Contains(r.URL.Path, "/channels/")
}

// ending is a body with whose end the time of its call ends.
type ending struct {
	io.ReadCloser

	end context.CancelFunc
}

func (e *ending) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}

// refusalOf makes of what a call says what people can read, nil where it is a fault of ours or nobody's.
func refusalOf(err error) *session.RefusedError {
	var refused *session.RefusedError
	var limited *limitedError
	var answer *rest.Error
	var reach net.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return refused
	case errors.As(err, &limited):
		return refuse(refusedRate, "until", limited.until.UTC().Format(time.RFC3339))
	case errors.As(err, &answer):
		return answered(answer)
	case errors.Is(err, context.Canceled):
		return nil
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &reach):
		return refuse(refusedUnreachable, "detail", why(err))
	}
	return nil
}

func answered(e *rest.Error) *session.RefusedError {
	switch status := e.Response.StatusCode; {
	case status == http.StatusUnauthorized && e.Code != rest.JSONErrorCodeInvalidWebhookToken:
		return refuse(refusedToken)
	case status == http.StatusTooManyRequests:
		return refuse(refusedRate, "until", time.Now().Add(retryAfter(e.Response.Header)).UTC().Format(time.RFC3339))
	case status >= http.StatusInternalServerError:
		return refuse(refusedUnreachable, "detail", e.Response.Status)
	case e.Code == 0: // it is no answer of Discord's
		return refuse(refusedUnreachable, "detail", e.Response.Status)
	}
	return nil
}

func refuse(code string, params ...string) *session.RefusedError {
	r := &session.RefusedError{Code: code, Params: map[string]string{}}
	for i := 0; i+1 < len(params); i += 2 {
		r.Params[params[i]] = params[i+1]
	}
	return r
}

// why is an error in the words of the network, without the address of the call, which people know.
func why(err error) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	const longest = 300
	text := err.Error()
	return text[:min(len(text), longest)]
}
