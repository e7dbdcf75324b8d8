// Package remote hides that an agent runs in a runtime elsewhere: HTTP, server-sent events, broken lines and their replay.
//
// Delivery. What an agent says comes in its order, each message once, as long as the runtime still holds it: a line that breaks is made
// anew, for as long as the instance is wanted, and goes on behind the last message that came. Where messages are lost (the runtime holds
// them no more, or counts anew) [Instance.Next] says so with a [GapError] between those that came. A response is taken from wherever it
// comes first and is whole, the stream or the answer of the request's POST, and is handed over once. The runtime giving up its wait for an
// answer (504) ends nothing.
//
// What is sent goes out in order, each message once as far as can be known. While the line is broken it waits. Where a line breaks between
// a request and its confirmation, a Deskhand is asked again (it refuses an id that is in flight); of another runtime, which would have the
// agent do it twice, [Instance.Next] tells with a [DoubtError].
//
// Failure. A runtime that no longer knows the instance has lost it: [ErrGone]. What it refuses for good (an unknown agent, one that cannot
// be started) comes as the JSON-RPC error that it has no other way to send, with the problem in its data. An agent that a
// Deskhand cannot write to is [ErrInput]. A token that is refused is no end: it may be replaced, and the line is tried on.
//
// A runtime is reached by https, or by http on this machine; further by http only when somebody has said that they want it. Redirects are
// not followed, and every body is bounded.
package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// Errors of this package. Those of a call wrap one of the first three.
var (
	ErrUnreachable = errors.New("the runtime cannot be reached")
	ErrRefused     = errors.New("the runtime refuses the token")
	ErrProblem     = errors.New("the runtime says no")                       // a *ProblemError has the details
	ErrGone        = errors.New("the runtime no longer knows the agent")     // it was restarted, or somebody ended it there
	ErrClosed      = errors.New("the agent was let go")                      // by Close or Leave
	ErrInput       = errors.New("the agent takes no messages")               // though it runs
	ErrNotEnded    = errors.New("the runtime has not confirmed the end")     // of the agent, by Close
	ErrURL         = errors.New("this is no URL of a runtime")               //
	ErrInsecure    = errors.New("http would send the token in the open")     // to another machine
	errNotThere    = errors.New("the runtime knows no such agent")           // at the moment
	errStalled     = errors.New("nothing has come over the line for a time") //
	errHole        = errors.New("messages were skipped")                     // and may be had by asking again
	errRenewed     = errors.New("the line is made anew")                     // by our own wish
	errForeign     = errors.New("what answers there is no runtime")
)

const (
	answerLimit = 20 * time.Second // for a call that is no message
	bodyLimit   = 4 << 20          // of its answer
	// maxMessage is the longest message of a runtime of this API, with room for what it stands in.
	maxMessage = 64<<20 + 4<<10
)

// Config is how a runtime is reached.
type Config struct {
	URL    string // as CheckURL gave it
	Token  func(context.Context) (string, error)
	Logger *slog.Logger

	// Stall is how long a line may be silent before it counts as broken; 0 = 40 s. Runtimes say something every 15 s.
	Stall time.Duration
	// Unconfirmed is how long after it was written a request counts as delivered where nothing confirms it; 0 = 250 ms.
	Unconfirmed time.Duration
	// Answer is how long a call that is no message may take, and a message to get on: a part of it to be sent, then to be taken; 0 = 20 s.
	Answer time.Duration
	// Backoff is the longest pause between two attempts; 0 = 15 s.
	Backoff time.Duration
}

// Runtime is one that runs elsewhere. It holds no connection but those of its instances and of calls.
type Runtime struct {
	cfg  Config
	http *http.Client

	asked   atomic.Bool // what it is has been found out
	careful atomic.Bool // it refuses an id that is in flight, and confirms a request at once if it is asked to
}

// CheckURL gives the URL of a runtime in its one form. One that would send a token over a network in the open is ErrInsecure unless that is wanted.
func CheckURL(text string, insecure bool) (string, error) {
	u, err := url.Parse(strings.TrimSpace(text))
	switch {
	case err != nil:
		return "", fmt.Errorf("%w: %w", ErrURL, err)
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "", u.User != nil, u.RawQuery != "", u.Fragment != "":
		return "", fmt.Errorf("%w: it is http or https with a host, and nothing behind its path", ErrURL)
	case u.Scheme == "http" && !insecure && !loopback(u.Hostname()):
		return "", ErrInsecure
	}
	return u.Scheme + "://" + strings.ToLower(u.Host) + strings.TrimRight(u.EscapedPath(), "/"), nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

// New makes a runtime of its URL; nothing is asked of it yet.
func New(cfg Config) *Runtime {
	if cfg.Stall == 0 {
		cfg.Stall = 40 * time.Second
	}
	cfg.Unconfirmed = cmp.Or(cfg.Unconfirmed, unconfirmed)
	cfg.Answer = cmp.Or(cfg.Answer, answerLimit)
	if cfg.Backoff == 0 {
		cfg.Backoff = 15 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Runtime{cfg: cfg, http: &http.Client{
		Transport:     transport(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// transport has a connection for each request at a time: HTTP/1. What is given up is given up with its connection then. Over HTTP/2, which
// proxies offer, the next try went out on the same one, dead or not, until the system gave it up after a quarter of an hour; its pings would
// take a line whose buffers a long message fills for dead.
func transport() *http.Transport { // no copy of the usual one, which offers HTTP/2 whatever its Protocols say
	t := &http.Transport{
		Proxy:       http.ProxyFromEnvironment,
		DialContext: (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		Protocols:   new(http.Protocols), TLSHandshakeTimeout: 10 * time.Second, ExpectContinueTimeout: time.Second,
		MaxIdleConns: 100, IdleConnTimeout: 90 * time.Second,
		DisableCompression: true, // a stream is to come as it is written
	}
	t.Protocols.SetHTTP1(true)
	return t
}

// Close gives up the connections that nobody uses.
func (r *Runtime) Close() { r.http.CloseIdleConnections() }

// request makes a request with the token.
func (r *Runtime) request(ctx context.Context, method, path string, query url.Values, body io.Reader) (*http.Request, error) {
	target := r.cfg.URL + path
	if len(query) > 0 {
		target += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrURL, err)
	}
	token, err := r.cfg.Token(ctx)
	if err != nil {
		return nil, fmt.Errorf("%w: it cannot be read: %w", ErrRefused, err)
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	req.Header.Set("User-Agent", "deskhand")
	return req, nil
}

// do makes a request; an answer that is no success is an error.
func (r *Runtime) do(req *http.Request) (*http.Response, error) {
	res, err := r.http.Do(req) //nolint:gosec // a person has named the host
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, plain(err))
	}
	if res.StatusCode/100 == 2 {
		return res, nil
	}
	defer drop(res)
	return nil, problemOf(res)
}

// foreign is the error of an answer that is none of a runtime, which counts as not reached: a gateway may answer with a page to log in at.
func foreign(res *http.Response) error {
	_ = res.Body.Close()
	return fmt.Errorf("%w: %w", ErrUnreachable, errForeign)
}

// isOf tells whether an answer is of a media type.
func isOf(res *http.Response, want string) bool {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return kind == want
}

// drop reads the rest of a body, if it is short, so that the connection can be used again.
func drop(res *http.Response) {
	_, _ = io.CopyN(io.Discard, res.Body, 64<<10)
	_ = res.Body.Close()
}

// plain is an error of package http without the URL, which people know.
func plain(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}

// get asks for JSON.
func (r *Runtime) get(ctx context.Context, path string, query url.Values, into any) error {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Answer)
	defer cancel()
	req, err := r.request(ctx, http.MethodGet, path, query, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	res, err := r.do(req)
	if err != nil {
		return err
	}
	defer drop(res)
	data, err := io.ReadAll(io.LimitReader(res.Body, bodyLimit+1))
	switch {
	case err != nil:
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	case len(data) > bodyLimit:
		return fmt.Errorf("%w: its answer is too long", ErrUnreachable)
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: %w: %w", ErrUnreachable, errForeign, err)
	}
	return nil
}

// ProblemError is a refusal of the runtime.
type ProblemError struct {
	Status  int             `json:"status"`
	Type    string          `json:"type"`
	Title   string          `json:"title"`
	Detail  string          `json:"detail"`
	Details json.RawMessage `json:"details,omitempty"`

	after time.Duration // when it wants to be asked again
}

func (p *ProblemError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("%s (%d)", firstOf(p.Detail, p.Title, http.StatusText(p.Status)), p.Status))
}

func firstOf(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// kind is the last part of the type, where it is the API's own.
func (p *ProblemError) kind() string {
	kind, ours := strings.CutPrefix(p.Type, "urn:sandbox-agent:error:")
	if !ours {
		return ""
	}
	return kind
}

// closedInput tells that the agent takes no messages any more. Other stream errors may be over with the next message: it is behind with
// reading, say.
func (p *ProblemError) closedInput() bool {
	var details struct {
		Reason string `json:"reason"`
	}
	return p.kind() == "stream_error" && json.Unmarshal(p.Details, &details) == nil && details.Reason == "input_closed"
}

// Is makes a problem ErrRefused, ErrUnreachable or ErrProblem. What comes from something between us and the runtime (a gateway whose
// server is away) is no word of the runtime.
func (p *ProblemError) Is(target error) bool {
	switch {
	case p.Status == http.StatusUnauthorized, p.Status == http.StatusForbidden && p.kind() != "permission_denied", p.Status == http.StatusProxyAuthRequired:
		return target == ErrRefused
	case p.Status == http.StatusTooManyRequests, p.Status >= 500 && p.kind() == "", p.Status == http.StatusNotFound && p.kind() == "":
		return target == ErrUnreachable
	}
	return target == ErrProblem
}

// problemOf reads what an answer says that is no success.
func problemOf(res *http.Response) *ProblemError {
	p := &ProblemError{}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if slices.Contains([]string{"application/problem+json", "application/json"}, kind) {
		if data, err := io.ReadAll(io.LimitReader(res.Body, 64<<10)); err == nil {
			_ = json.Unmarshal(data, p)
		}
	}
	p.Status = res.StatusCode
	if res.StatusCode/100 == 3 {
		p.Detail = "it redirects to another address, which is not followed"
	}
	if seconds, err := time.ParseDuration(res.Header.Get("Retry-After") + "s"); err == nil {
		p.after = min(seconds, time.Minute)
	}
	return p
}

// Info is what a runtime says of itself.
type Info struct {
	Software string
	Version  string // "" when it does not say
}

const ourName = "deskhand"

// Check asks the runtime what it is, and whether it takes the token.
func (r *Runtime) Check(ctx context.Context) (Info, error) {
	var health struct {
		Status string `json:"status"`
	}
	if err := r.get(ctx, "/v1/health", nil, &health); err != nil {
		return Info{}, err
	}
	if health.Status != "ok" {
		return Info{}, fmt.Errorf("%w: %w", ErrUnreachable, errForeign)
	}
	var hello struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	}
	err := r.get(ctx, "/", nil, &hello)
	if _, said := errors.AsType[*ProblemError](err); err != nil && !said && !errors.Is(err, errForeign) {
		return Info{}, err
	}
	r.careful.Store(strings.EqualFold(hello.Name, ourName))
	r.asked.Store(true)
	return Info{clip(hello.Name), clip(hello.Version)}, nil
}

// clip keeps what a stranger says of itself short.
func clip(text string) string {
	const most = 80
	text = strings.Map(func(r rune) rune {
		if r < ' ' {
			return -1
		}
		return r
	}, text)
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most])
	}
	return text
}

// Agent is an agent that the runtime could start.
type Agent struct {
	ID        string `json:"id"`
	Name      string `json:"name"` // "" when it does not say
	Installed bool   `json:"installed"`
	Version   string `json:"version"`
}

// Agents lists them.
func (r *Runtime) Agents(ctx context.Context) ([]Agent, error) {
	var list struct {
		Agents []Agent `json:"agents"`
	}
	if err := r.get(ctx, "/v1/agents", nil, &list); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Agents, func(a Agent) bool { return a.ID == "" || len(a.ID) > 64 }), nil
}

// Entry is a file or directory there.
type Entry struct {
	Name string `json:"name"`
	Path string `json:"path"`
	Type string `json:"entryType"`
}

// Directories lists the directories in one; "" is where the runtime's paths begin. A runtime may have no such call: that is a *ProblemError.
func (r *Runtime) Directories(ctx context.Context, path string) ([]Entry, error) {
	query := url.Values{}
	if path != "" {
		query.Set("path", path)
	}
	var list []Entry
	err := r.get(ctx, "/v1/fs/entries", query, &list)
	if err != nil && path == "" && errors.Is(err, ErrProblem) {
		err = r.get(ctx, "/v1/fs/entries", url.Values{"path": {"."}}, &list)
	}
	return slices.DeleteFunc(list, func(e Entry) bool { return e.Type == "file" || e.Path == "" }), err
}

// Remove ends an instance that nobody here reads any more.
func (r *Runtime) Remove(ctx context.Context, serverID string) error {
	ctx, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	req, err := r.request(ctx, http.MethodDelete, instancePath(serverID), nil, nil)
	if err != nil {
		return err
	}
	res, err := r.do(req)
	if err == nil && isOf(res, "text/html") { // runtimes have nothing to say here, or some JSON
		return foreign(res)
	}
	if err == nil {
		drop(res)
		return nil
	}
	if p, ok := errors.AsType[*ProblemError](err); ok && p.Status == http.StatusNotFound {
		return nil
	}
	return err
}

// knows tells whether the runtime lists an instance.
func (r *Runtime) knows(ctx context.Context, serverID string) (bool, error) {
	var list struct {
		Servers []struct {
			ServerID string `json:"serverId"`
		} `json:"servers"`
	}
	if err := r.get(ctx, "/v1/acp", nil, &list); err != nil {
		return false, err
	}
	for _, s := range list.Servers {
		if s.ServerID == serverID {
			return true, nil
		}
	}
	return false, nil
}

func instancePath(serverID string) string { return "/v1/acp/" + url.PathEscape(serverID) }
