package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"deskhand/backend"
	"deskhand/backend/datadir"
)

// api calls the client API over the private socket of the process that holds the data directory.
type api struct {
	http *http.Client
	page int // conversations listed per call; 0 = the API's maximum
}

// problem is an error answer of the API.
type problem struct {
	Status int               `json:"status"`
	Code   string            `json:"code"`
	Detail string            `json:"detail"`
	Params map[string]string `json:"params"`
}

func (e *problem) Error() string {
	if e.Detail != "" {
		return e.Detail
	}
	return e.Code
}

// dial connects to the running process. A process that has just taken the directory gets two seconds to open its socket.
func dial(ctx context.Context, places datadir.Paths) (*api, error) {
	var lastErr error
	for range 20 {
		owner, err := places.Owner()
		if err == nil {
			a := socketAPI(owner.Socket)
			if err = a.call(ctx, "GET", "hello", nil, nil); err == nil {
				return a, nil
			}
		}
		lastErr = err
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil, lastErr
}

// connect opens the data directory or, when another process holds the directory, that process's API. connect waits for a process that is just
// ending; the directory then belongs to this process, or to another that was faster.
func connect(ctx context.Context, cfg backend.Config) (*backend.Backend, *api, error) {
	const most = 3
	for n := 1; ; n++ {
		b, err := backend.Open(ctx, cfg)
		if err != nil {
			return nil, nil, err
		}
		a, err := dial(ctx, b.Places())
		if err == nil {
			return b, a, nil
		}
		beside := b.Alone() != nil
		if failed := b.Close(); n == most || !beside || failed != nil || ctx.Err() != nil {
			return nil, nil, errors.Join(fmt.Errorf("the running Deskhand does not answer: %w", err), failed)
		}
	}
}

// withAPI calls f with the API of the process that holds the data directory, which may be this process.
func (p *Program) withAPI(c common, f func(context.Context, *backend.Backend, *api) error) (err error) {
	cfg, log, err := p.config(c, "command")
	if err != nil {
		return err
	}
	defer log.Close()
	ctx, stop := interruptible()
	defer stop()
	b, api, err := connect(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() {
		p.outlast(b)
		err = errors.Join(err, b.Close())
	}()
	defer api.close()
	p.sayReadOnly(b)
	if err := f(ctx, b, api); err != nil {
		if ctx.Err() != nil {
			return errInterrupted()
		}
		return err
	}
	return nil
}

// errInterrupted is the failure of a command that a signal has ended.
func errInterrupted() error { return &failure{exitCancel, errors.New("interrupted")} }

// sayAgentsFile warns when agents.json cannot be read, wholly or in part.
func (p *Program) sayAgentsFile(b *backend.Backend) {
	if fault := b.AgentsFileProblem(); fault != "" {
		p.say("deskhand: %s\n", fault)
	}
}

// sayReadOnly warns when the data can only be read.
func (p *Program) sayReadOnly(b *backend.Backend) {
	if why := b.ReadOnly(); why != "" {
		p.say("%s.\n", why)
	}
}

// withRunning calls f with the API of the running Deskhand, and fails when none runs.
func withRunning(c common, f func(context.Context, *api) error) error {
	places, err := datadir.Find(c.DataDir)
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	if !everOwned(places) {
		return nobodyRuns(places)
	}
	api, err := dial(ctx, places)
	if ctx.Err() != nil {
		return errInterrupted()
	}
	if err != nil {
		return nobodyRuns(places)
	}
	defer api.close()
	return f(ctx, api)
}

// everOwned reports whether any process has recorded itself as the owner of the data directory.
func everOwned(places datadir.Paths) bool {
	_, err := places.Owner()
	return !errors.Is(err, fs.ErrNotExist)
}

// nobodyRuns is the failure of a command that needs a running Deskhand. Its text lists the processes that a crashed Deskhand has left.
func nobodyRuns(places datadir.Paths) error {
	text := "no Deskhand runs on " + places.Data
	left, err := backend.Leftovers(places)
	if err != nil || len(left) == 0 {
		return errors.New(text + "; `deskhand` opens the window, and `deskhand server` works without one")
	}
	var b strings.Builder
	b.WriteString(text + ". The last one has left these processes, which the next one ends:")
	for _, m := range left {
		fmt.Fprintf(&b, "\n  %d %s, for %s", m.PID, plain(m.Name), span(time.Since(m.StartedAt)))
	}
	return errors.New(b.String())
}

// outlast waits for the turns and installations that run in this process: those of other commands, which use this process because it holds the
// data directory, and this command's own turn while it is being stopped. A signal ends the wait.
func (p *Program) outlast(b *backend.Backend) {
	busy := func() bool { return b.Running() > 0 || b.Installing() > 0 }
	switch {
	case !busy():
		return
	case b.Running() == 0:
		p.say("An agent is being installed here for another command; waiting for its end.\n")
	default:
		p.say("A turn still runs here; waiting for its end.\n")
	}
	ctx, stop := interruptible()
	defer stop()
	const pause = 200 * time.Millisecond // also the time in which the other command reads how its turn ended
	again := time.NewTicker(pause)
	defer again.Stop()
	for running := true; running; {
		running = busy()
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

func socketAPI(socket string) *api {
	return &api{http: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
	}}}
}

func (a *api) close() { a.http.CloseIdleConnections() }

// call makes one API call. in and out may be nil.
func (a *api) call(ctx context.Context, method, path string, in, out any) error {
	var data bytes.Buffer
	if _, err := a.send(ctx, method, path, in, &data); err != nil {
		return err
	}
	if out == nil || data.Len() == 0 {
		return nil
	}
	if err := json.Unmarshal(data.Bytes(), out); err != nil {
		return fmt.Errorf("%s %s: %w", method, path, err)
	}
	return nil
}

// send makes one API call and copies a successful answer to out. Any other answer is an error.
func (a *api) send(ctx context.Context, method, path string, in any, out io.Writer) (http.Header, error) {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://deskhand/client/"+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(backend.SurfaceHeader, "cli")
	resp, err := a.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= http.StatusBadRequest {
		data, err := io.ReadAll(resp.Body)
		if err != nil {
			return nil, err
		}
		p := &problem{Status: resp.StatusCode}
		if json.Unmarshal(data, p) != nil {
			p.Detail = resp.Status
		}
		return nil, p
	}
	_, err = io.Copy(out, resp.Body)
	return resp.Header, err
}

// follow passes every event of a session to each, from now on, until each returns enough. follow calls started once no later event can be
// missed.
func (a *api) follow(ctx context.Context, started func() (sessionID string, err error), each func(backend.Event) (enough bool, err error)) error {
	batch, err := a.events(ctx, backend.FeedQuery{}, 0)
	if err != nil {
		return err
	}
	q := backend.FeedQuery{Gen: batch.Gen, After: batch.Seq}
	if q.Session, err = started(); err != nil {
		return err
	}
	last := int64(0) // seq of the last entry
	for {
		batch, err := a.next(ctx, q, last)
		if err != nil {
			return unanswered(ctx, err)
		}
		q.After = batch.Seq
		for _, e := range batch.Events {
			last = max(last, placeOf(e))
			if enough, err := each(e); enough || err != nil {
				return err
			}
		}
	}
}

// next is the next batch of events. After a gap in the feed, next returns the missed entries instead.
func (a *api) next(ctx context.Context, q backend.FeedQuery, last int64) (backend.Batch, error) {
	const wait = 25
	batch, err := a.events(ctx, q, wait)
	if err != nil || !batch.Reset {
		return batch, err
	}
	if batch.Gen != q.Gen || q.Session == "" {
		return batch, errAhead
	}
	batch.Events, err = a.missed(ctx, q.Session, last)
	return batch, err
}

// placeOf is the seq of an event's entry, or 0 for other events.
func placeOf(e backend.Event) int64 {
	var entry struct{ Seq int64 }
	if e.Type != "entry.upsert" || json.Unmarshal(e.Data, &entry) != nil {
		return 0
	}
	return entry.Seq
}

// missed reads the entries from last on, as events, when this process read too slowly and the feed dropped them.
func (a *api) missed(ctx context.Context, session string, last int64) (events []backend.Event, err error) {
	const page = 1000
	for after := last - 1; ; {
		var t struct {
			Items, Turns, Requests []json.RawMessage
			Newer                  int64
		}
		path := fmt.Sprintf("sessions/%s/entries?limit=%d", url.PathEscape(session), page)
		if after > 0 {
			path += fmt.Sprintf("&after=%d", after)
		}
		if err := a.call(ctx, "GET", path, nil, &t); err != nil {
			return nil, err
		}
		for _, part := range []struct {
			kind string
			list []json.RawMessage
		}{{"entry.upsert", t.Items}, {"request.upsert", t.Requests}, {"turn.upsert", t.Turns}} {
			for _, data := range part.list {
				events = append(events, backend.Event{Session: session, Type: part.kind, Data: data})
			}
		}
		if after = t.Newer; after == 0 {
			return events, nil
		}
	}
}

var errAhead = errors.New("the program that runs the agent was restarted, or ran ahead too far")

// errEnded replaces the socket's error when the process behind the API has ended: the error of a socket explains nothing to a person.
var errEnded = errors.New("the Deskhand that ran the agent has ended; the conversation is kept as far as it was shown")

// unanswered returns errEnded for a call that nobody answered. Errors that are an answer of the API, or that stem from ctx, stay as they are.
func unanswered(ctx context.Context, err error) error {
	if _, answered := errors.AsType[*problem](err); err == nil || answered || ctx.Err() != nil || errors.Is(err, errAhead) {
		return err
	}
	return errEnded
}

func (a *api) events(ctx context.Context, q backend.FeedQuery, wait int) (backend.Batch, error) {
	v := url.Values{"gen": {q.Gen}, "after": {strconv.FormatInt(q.After, 10)}, "wait": {strconv.Itoa(wait)}, "session": {q.Session}}
	if len(q.Types) > 0 {
		v.Set("types", strings.Join(q.Types, ","))
	}
	var batch backend.Batch
	return batch, a.call(ctx, "GET", "events?"+v.Encode(), nil, &batch)
}

// printJSON writes a value as indented JSON.
func printJSON(out io.Writer, value any) error {
	var text strings.Builder
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(value); err != nil {
		return err
	}
	_, err := io.WriteString(out, visibleJSON(text.String()))
	return err
}
