package mcp

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deskhand/backend/acp"
	"deskhand/backend/proxy"
)

// wire is a server's process, as the SDK's transport and its only connection. The SDK's own transport for commands ends only the process
// that it started; an instance of package proxy ends the whole tree, and does not survive a crash of Deskhand.
type wire struct {
	inst *proxy.Instance
	log  *proxy.Reader
	life context.Context //nolint:containedctx // ends Read on Close
	end  context.CancelFunc

	waiting []proxy.Message // used only by the reader, like heard
	heard   int

	mu    sync.Mutex // protects the fields below
	why   error      // reason of the end, when more precise than the SDK's
	first string     // first line on stdout that was no message
}

func (w *wire) Connect(context.Context) (sdk.Connection, error) { return w, nil }
func (w *wire) SessionID() string                               { return "" }

func (w *wire) Close() error {
	w.end()
	return nil
}

// cause returns why the server did not answer, or nil when unknown.
func (w *wire) cause() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.why != nil && w.first != "" {
		return fmt.Errorf("%w; on stdout it wrote %q, where only messages may be", w.why, w.first)
	}
	return w.why
}

func (w *wire) ended(why error) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.why == nil {
		w.why = why
	}
	return w.why
}

// Read returns the next message; the SDK calls Read from a single goroutine.
func (w *wire) Read(ctx context.Context) (jsonrpc.Message, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.life, cancel)() //nolint:contextcheck // either context ends the read
	for {
		if len(w.waiting) == 0 {
			batch, err := w.log.Next(ctx)
			if err != nil {
				return nil, errors.Join(io.EOF, err)
			}
			w.waiting = batch
		}
		data := w.waiting[0].Data
		w.waiting = w.waiting[1:]
		if w.heard += len(data); w.heard > mostBytes {
			return nil, w.ended(ErrFlood)
		}
		msg, err := w.decode(data)
		if msg != nil || err != nil {
			return msg, err
		}
	}
}

// decode returns nil for data that is no message to the SDK.
func (w *wire) decode(data []byte) (jsonrpc.Message, error) {
	env, err := acp.Peek(data)
	if err != nil {
		return nil, nil // lines such as banners are skipped, as agents do
	}
	switch env.Method() {
	case "_adapter/agent_exited":
		how := proxy.ExitError{Status: w.inst.Status()}
		return nil, w.ended(fmt.Errorf("%w %s", errEnded, howEnded(how)))
	case "_adapter/invalid_stdout":
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.first == "" {
			w.first = clip(proxy.InvalidLine(data), longestName)
		}
		return nil, nil
	}
	msg, err := jsonrpc.DecodeMessage(data)
	if err != nil {
		return nil, nil // as above
	}
	return msg, nil
}

func howEnded(e proxy.ExitError) string {
	switch {
	case e.Status.Signal != "":
		return "by " + e.Status.Signal
	case e.Status.ExitCode != nil:
		return fmt.Sprintf("with code %d", *e.Status.ExitCode)
	}
	return "by itself"
}

func (w *wire) Write(ctx context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.life, cancel)() //nolint:contextcheck // either context ends the write
	return w.inst.Send(ctx, data)
}

// trip adds the headers to every request, refuses other hosts, ends all requests with its life, and limits how many bytes of answers are
// read.
type trip struct {
	scheme, host string

	headers []pair
	next    http.RoundTripper
	life    context.Context //nolint:containedctx // the SDK's requests have contexts of their own, which live longer

	mu   sync.Mutex // protects left
	left int
}

func (t *trip) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != t.scheme || r.URL.Host != t.host { // a server over SSE may name another host
		return nil, fmt.Errorf("%w: %s", errMoved, r.URL.Host)
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(t.life, cancel) //nolint:contextcheck // either context ends the request
	r = r.Clone(ctx)
	for _, h := range t.headers {
		r.Header.Set(h.Name, h.Value)
	}
	answer, err := t.next.RoundTrip(r)
	if err != nil {
		stop()
		cancel()
		return nil, err
	}
	answer.Body = &meter{ReadCloser: answer.Body, trip: t, release: func() { stop(); cancel() }}
	return answer, nil
}

func (t *trip) take(n int) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.left -= n
	return t.left >= 0
}

func (t *trip) flooded() bool { return !t.take(0) }

type meter struct {
	io.ReadCloser
	trip    *trip
	release func()
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	if !m.trip.take(n) {
		return 0, ErrFlood
	}
	return n, err
}

func (m *meter) Close() error {
	defer m.release()
	return m.ReadCloser.Close()
}
