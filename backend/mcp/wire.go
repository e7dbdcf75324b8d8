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

// wire is a server's process as the SDK's transport and its only connection. The SDK's own transport for commands ends the process
// that it started and leaves what that has started; an instance of package proxy ends the whole tree, and outlives no crash of ours.
type wire struct {
	inst *proxy.Instance
	log  *proxy.Reader
	life context.Context //nolint:containedctx // Read is to end with Close too
	end  context.CancelFunc

	waiting []proxy.Message // the reader's alone, like heard
	heard   int

	mu    sync.Mutex // protects what is below
	why   error      // why it ended, when we know better than the SDK
	first string     // line on stdout that was no message
}

func (w *wire) Connect(context.Context) (sdk.Connection, error) { return w, nil }
func (w *wire) SessionID() string                               { return "" }

func (w *wire) Close() error {
	w.end()
	return nil
}

// cause is why the server did not answer, nil when that is not known.
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

// Read gives the next message; the SDK calls it from one goroutine.
func (w *wire) Read(ctx context.Context) (jsonrpc.Message, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.life, cancel)() //nolint:contextcheck // the end of either ends it
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

// decode is nil for what is no message to the SDK.
func (w *wire) decode(data []byte) (jsonrpc.Message, error) {
	env, err := acp.Peek(data)
	if err != nil {
		return nil, nil // what is no message at all, as banners are, is passed over: so do agents
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
	defer context.AfterFunc(w.life, cancel)() //nolint:contextcheck // the end of either ends it
	return w.inst.Send(ctx, data)
}

// trip sends the headers with every request, to one host and no other, ends all of them with its life, and reads no more of the answers
// than there is left.
type trip struct {
	scheme, host string

	headers []pair
	next    http.RoundTripper
	life    context.Context //nolint:containedctx // the SDK's requests have contexts of their own, which outlive ours

	mu   sync.Mutex // protects left
	left int
}

func (t *trip) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Scheme != t.scheme || r.URL.Host != t.host { // as a server over SSE may say
		return nil, fmt.Errorf("%w: %s", errMoved, r.URL.Host)
	}
	ctx, cancel := context.WithCancel(r.Context())
	stop := context.AfterFunc(t.life, cancel) //nolint:contextcheck // the end of either ends it
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
