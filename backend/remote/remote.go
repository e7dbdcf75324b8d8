// Package remote hides that an agent runs in a runtime elsewhere: HTTP, server-sent events, broken lines and their replay.
//
// Delivery. The messages of an agent come in their order, each once, as long as the runtime still holds them: a broken line is replaced,
// for as long as the instance is wanted, and the new line goes on behind the last message. Where messages are lost (the runtime no longer
// holds them, or counts anew), [Instance.Next] reports a [GapError] between the others. A response is taken from whichever source is
// first and whole, the stream or the answer of the request's POST, and is returned once. A runtime that gives up waiting for an answer
// (504) ends nothing.
//
// Messages to the agent go out in order, each once as far as can be known. They wait while the line is broken. When a line breaks between
// a request and its confirmation, the request is sent again to a Deskhand, which refuses an id that is in flight. Any other runtime would
// have the agent do the request twice, so [Instance.Next] reports a [DoubtError] instead.
//
// Failure. A runtime that no longer knows the instance has lost the instance: [ErrGone]. A permanent refusal (an unknown agent, an agent
// that cannot be started) comes as a JSON-RPC error in answer to the request, with the problem in its data. An agent that a Deskhand
// cannot write to is [ErrInput]. A refused token is no end: the token may be replaced, and the line is tried again.
//
// A runtime is reached by https, or by http on this machine; http to other machines needs a person's consent. Redirects are not followed,
// and every body is bounded.
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

// The errors of this package. An error of a call wraps one of the first three.
var (
	ErrUnreachable = errors.New("the runtime cannot be reached")
	ErrRefused     = errors.New("the runtime refuses the token")
	ErrProblem     = errors.New("the runtime says no")                   // a *ProblemError has the details
	ErrGone        = errors.New("the runtime no longer knows the agent") // the runtime was restarted, or somebody ended the agent there
	ErrClosed      = errors.New("the agent was let go")                  // by Close or Leave
	ErrInput       = errors.New("the agent takes no messages")           // although the agent runs
	ErrNotEnded    = errors.New("the runtime has not confirmed the end") // of the agent, in Close
	ErrURL         = errors.New("this is no URL of a runtime")
	ErrInsecure    = errors.New("http would send the token in the open") // to another machine
	errNotThere    = errors.New("the runtime knows no such agent")       // at the moment
	errStalled     = errors.New("nothing has come over the line for a time")
	errHole        = errors.New("messages were skipped") // and may still be requested again
	errRenewed     = errors.New("the line is made anew") // by renew
	errForeign     = errors.New("what answers there is no runtime")
)

const (
	answerLimit = 20 * time.Second // for a call that is no message
	bodyLimit   = 4 << 20          // of the answer of such a call
	// maxMessage is the longest message of a runtime of this API, with room for the event around the message.
	maxMessage = 64<<20 + 4<<10
)

// Config says how a runtime is reached.
type Config struct {
	URL    string // a result of CheckURL
	Token  func(context.Context) (string, error)
	Logger *slog.Logger

	// Stall is how long a line may be silent before the line counts as broken; 0 = 40 s. Runtimes send something every 15 s.
	Stall time.Duration
	// Unconfirmed is how long after its write a request counts as delivered when nothing confirms the request; 0 = 250 ms.
	Unconfirmed time.Duration
	// Answer is how long a call that is no message may take, and how long a message may make no progress: first its sending, then its
	// acceptance; 0 = 20 s.
	Answer time.Duration
	// Backoff is the longest pause between two attempts; 0 = 15 s.
	Backoff time.Duration
}

// Runtime is a remote runtime. A Runtime holds no connections but those of its instances and of calls.
type Runtime struct {
	cfg  Config
	http *http.Client

	asked   atomic.Bool // Check has found out the runtime's software
	careful atomic.Bool // the runtime refuses an id that is in flight, and confirms a request at once when asked to
}

// CheckURL returns the URL of a runtime in its canonical form. A URL that would send a token over a network unencrypted is ErrInsecure,
// unless insecure is set.
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

// New makes a runtime from its URL. New makes no request.
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

// transport uses a connection for each concurrent request: HTTP/1. An abandoned request then closes its connection. With HTTP/2, which
// proxies offer, the next try went out on the same connection, dead or not, until the system gave the connection up after a quarter of an
// hour; the pings of HTTP/2 would take a line whose buffers a long message fills for dead.
func transport() *http.Transport { // not a copy of http.DefaultTransport, which offers HTTP/2 whatever its Protocols say
	t := &http.Transport{
		Proxy:       http.ProxyFromEnvironment,
		DialContext: (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 15 * time.Second}).DialContext,
		Protocols:   new(http.Protocols), TLSHandshakeTimeout: 10 * time.Second, ExpectContinueTimeout: time.Second,
		MaxIdleConns: 100, IdleConnTimeout: 90 * time.Second,
		DisableCompression: true, // a stream must arrive as it is written
	}
	t.Protocols.SetHTTP1(true)
	return t
}

// Close closes the idle connections.
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

// do sends a request. An answer without success is an error.
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

// foreign returns the error for an answer that does not come from a runtime. The runtime then counts as not reached: a gateway may answer
// with a login page.
func foreign(res *http.Response) error {
	_ = res.Body.Close()
	return fmt.Errorf("%w: %w", ErrUnreachable, errForeign)
}

// isOf reports whether an answer has a media type.
func isOf(res *http.Response, want string) bool {
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	return kind == want
}

// drop reads the rest of a short body, so that the connection can be used again.
func drop(res *http.Response) {
	_, _ = io.CopyN(io.Discard, res.Body, 64<<10)
	_ = res.Body.Close()
}

// plain returns an error of package http without the URL, which people know.
func plain(err error) error {
	if failed, ok := errors.AsType[*url.Error](err); ok {
		return failed.Err
	}
	return err
}

// get requests a JSON value.
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

	after time.Duration // when the runtime wants to be asked again
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

// kind returns the last part of the type, when the type belongs to the API.
func (p *ProblemError) kind() string {
	kind, ours := strings.CutPrefix(p.Type, "urn:sandbox-agent:error:")
	if !ours {
		return ""
	}
	return kind
}

// closedInput reports whether the agent takes no messages any more. Other stream errors may pass with the next message: the agent may be
// slow to read, for example.
func (p *ProblemError) closedInput() bool {
	var details struct {
		Reason string `json:"reason"`
	}
	return p.kind() == "stream_error" && json.Unmarshal(p.Details, &details) == nil && details.Reason == "input_closed"
}

// Is makes a problem ErrRefused, ErrUnreachable or ErrProblem. An answer from a gateway whose server is away is not an answer of the
// runtime.
func (p *ProblemError) Is(target error) bool {
	switch {
	case p.Status == http.StatusUnauthorized, p.Status == http.StatusForbidden && p.kind() != "permission_denied", p.Status == http.StatusProxyAuthRequired:
		return target == ErrRefused
	case p.Status == http.StatusTooManyRequests, p.Status >= 500 && p.kind() == "", p.Status == http.StatusNotFound && p.kind() == "":
		return target == ErrUnreachable
	}
	return target == ErrProblem
}

// problemOf reads the problem of an answer without success.
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

// Info is a runtime's description of itself.
type Info struct {
	Software string
	Version  string // "" when not given
}

const ourName = "deskhand"

// Check asks the runtime for its software, and whether the runtime accepts the token.
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

// clip shortens a text from a foreign runtime.
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
	Name      string `json:"name"` // "" when not given
	Installed bool   `json:"installed"`
	Version   string `json:"version"`
}

// Agents lists the agents of the runtime.
func (r *Runtime) Agents(ctx context.Context) ([]Agent, error) {
	var list struct {
		Agents []Agent `json:"agents"`
	}
	if err := r.get(ctx, "/v1/agents", nil, &list); err != nil {
		return nil, err
	}
	return slices.DeleteFunc(list.Agents, func(a Agent) bool { return a.ID == "" || len(a.ID) > 64 }), nil
}

// Entry is a file or directory of the runtime.
type Entry struct {
	Name string `json:"name"`
	Path string `json:"path"`
	Type string `json:"entryType"`
}

// Directories lists the directories in path; "" is where the runtime's paths begin. A runtime may lack this call: the error is then a
// *ProblemError.
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
	if err == nil && isOf(res, "text/html") { // runtimes answer with an empty body or with JSON
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

// knows reports whether the runtime lists an instance.
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
