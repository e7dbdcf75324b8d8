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

// standardREST is the address of Discord's API. The library has this address and no token: the transport replaces both by the setup, so
// that a call uses the present token and address, and no error of the library contains a token.
const standardREST = "https://discord.com/api/v10"

// standardGateway is the usual address of Discord's gateway; its API tells the present address.
const standardGateway = "wss://gateway.discord.gg"

// errOff is the error of every call while there is no token.
var errOff error = &session.RefusedError{Code: refusedOff}

// Times of a call. Uploads get more, by their size.
const (
	callLimit   = 30 * time.Second
	slowest     = 32 << 10 // bytes of an upload per second
	attempts    = 4        // of a repeatable call
	secondTry   = 500 * time.Millisecond
	mostOfError = 1 << 20 // bytes of an answer that is an error
)

// access is the token and the address of a call.
type access struct {
	token string
	rest  string
	trial bool // being tried, not in use: Discord's answer does not change the state of the line
}

// accessKey is the key of an access in a context.
type accessKey struct{}

// with returns a context whose calls use another token or address than the line.
func with(ctx context.Context, a access) context.Context {
	return context.WithValue(ctx, accessKey{}, a)
}

// transport carries the calls of the library: the transport adds token and address, repeats repeatable calls when Discord fails, ends
// slow calls, and reads the headers of every answer.
type transport struct {
	l     *client
	base  *http.Transport
	limit time.Duration // of a call without an upload
}

func newTransport(l *client) *transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}
	return &transport{l: l, limit: callLimit, base: &http.Transport{
		Proxy: http.ProxyFromEnvironment, DialContext: dialer.DialContext, ForceAttemptHTTP2: true, MaxIdleConns: 8,
		IdleConnTimeout: time.Minute, TLSHandshakeTimeout: 10 * time.Second,
	}}
}

// newREST returns the library's client on our transport. The library logs bodies, with people's messages, so it gets no log.
func newREST(t *transport, l *limits, version string) rest.Rest {
	client := rest.NewClient("", rest.WithURL(standardREST), rest.WithRateLimiter(l), rest.WithLogger(slog.New(slog.DiscardHandler)),
		rest.WithUserAgent("DiscordBot (Deskhand, "+cmp.Or(version, "0")+")"),
		rest.WithHTTPClient(&http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse // the API does not redirect, and the token must not go elsewhere
		}}))
	return rest.New(client, rest.WithDefaultAllowedMentions(discord.AllowedMentions{}))
}

// RoundTrip implements http.RoundTripper.
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
			_ = resp.Body.Close() // of no use
		}
		if err := pause(r.Context(), t.l.patience(secondTry<<(try-1))); err != nil {
			return nil, err
		}
	}
}

// beaten notices that somebody else has answered an interaction: another program has the token, and people would get two answers to
// everything. We answer each interaction only once.
func (t *transport) beaten(r *http.Request, resp *http.Response) {
	if resp.StatusCode != http.StatusBadRequest || !strings.HasSuffix(r.URL.Path, "/callback") {
		return
	}
	text, _ := io.ReadAll(io.LimitReader(resp.Body, mostOfError)) // the next reader of the body gets the error
	resp.Body = &restored{Reader: io.MultiReader(bytes.NewReader(text), resp.Body), Closer: resp.Body}
	var said struct {
		Code rest.JSONErrorCode `json:"code"`
	}
	if json.Unmarshal(text, &said) == nil && said.Code == rest.JSONErrorCodeInteractionAlreadyAcknowledged {
		t.l.doubled()
	}
}

// restored is a body whose beginning was read already.
type restored struct {
	io.Reader
	io.Closer
}

// try makes a call once. Its time limit ends when the body of its answer is closed.
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

// repeatable reports whether a call has the same effect when made twice. Creating a message does, because all our messages have a nonce
// with which Discord makes a single message.
func repeatable(r *http.Request) bool {
	if r.Body != nil && r.GetBody == nil {
		return false
	}
	return r.Method != http.MethodPost || strings.HasSuffix(r.URL.Path, "/messages") && strings.Contains(r.URL.Path, "/channels/")
}

// ending is a body whose Close ends the time limit of its call.
type ending struct {
	io.ReadCloser

	end context.CancelFunc
}

func (e *ending) Close() error {
	defer e.end()
	return e.ReadCloser.Close()
}

// refusalOf returns the error of a call in a form for people, or nil for a fault of ours or a cancelled call.
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
	case e.Code == 0: // not an answer of Discord's
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

// why returns an error in the words of the network, without the address of the call, which people know.
func why(err error) string {
	if e, ok := errors.AsType[*url.Error](err); ok {
		err = e.Err
	}
	const longest = 300
	text := err.Error()
	return text[:min(len(text), longest)]
}
