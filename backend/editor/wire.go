package editor

import (
	"context"
	"encoding/json"
	"io"
	"strconv"
	"sync"
	"time"

	"deskhand/backend/acp"
)

// wire sends messages to the editor. Any goroutine may call wire's methods; a single goroutine writes, since an editor that has stopped
// reading must neither block the senders nor the end.
type wire struct {
	out  io.Writer
	ctx  context.Context //nolint:containedctx // ends with the editor's input
	wake chan struct{}   // holds a token when there is something to write, or at the end
	over chan struct{}   // closed when the writing has ended

	mu      sync.Mutex // protects the fields below
	queue   [][]byte
	size    int           // bytes in the queue
	room    chan struct{} // closed when the queue was taken
	ending  bool
	broken  bool // the editor has stopped reading; its input ends soon
	last    int64
	pending map[acp.Key]reply
}

// reply receives the editor's answer once. The goroutine that reads calls reply.
type reply func(result json.RawMessage, failure *acp.Error)

const (
	mostQueued = 16 << 20        // bytes in the queue before senders have to wait
	lastWords  = 1 * time.Second // time for the queue at the end
)

// newWire starts a writer, which runs until close.
func newWire(ctx context.Context, out io.Writer) *wire {
	w := &wire{
		out: out, ctx: ctx, wake: make(chan struct{}, 1), over: make(chan struct{}), room: make(chan struct{}), pending: map[acp.Key]reply{},
	}
	go w.write()
	return w
}

// close waits up to lastWords for the queue. A write to an editor that does not read cannot be interrupted, and ends with the process.
func (w *wire) close() {
	w.mu.Lock()
	w.ending = true
	w.mu.Unlock()
	w.poke()
	select {
	case <-w.over:
	case <-time.After(lastWords):
	}
}

func (w *wire) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

func (w *wire) write() {
	defer close(w.over)
	for {
		w.mu.Lock()
		batch, ending := w.queue, w.ending
		w.queue, w.size = nil, 0
		close(w.room)
		w.room = make(chan struct{})
		w.mu.Unlock()
		if len(batch) == 0 {
			if ending {
				return
			}
			<-w.wake
			continue
		}
		for _, line := range batch {
			if _, err := w.out.Write(line); err != nil {
				w.mu.Lock()
				w.broken = true
				close(w.room)
				w.room = make(chan struct{})
				w.mu.Unlock()
				return
			}
		}
	}
}

// put queues a message. With patient, put waits while the queue is full; the goroutine that reads the editor's messages must not wait.
func (w *wire) put(patient bool, msg []byte, err error) {
	if err != nil {
		panic("editor: a message of ours that is no JSON: " + err.Error())
	}
	for {
		w.mu.Lock()
		if w.broken {
			w.mu.Unlock()
			return
		}
		if !patient || w.size < mostQueued || w.ctx.Err() != nil {
			w.queue = append(w.queue, append(msg, '\n'))
			w.size += len(msg) + 1
			w.mu.Unlock()
			w.poke()
			return
		}
		room := w.room
		w.mu.Unlock()
		select {
		case <-room:
		case <-w.ctx.Done():
		}
	}
}

func (w *wire) answer(id json.RawMessage, result any) {
	msg, err := acp.NewResponse(id, result)
	w.put(false, msg, err)
}

func (w *wire) fail(id json.RawMessage, failure *acp.Error) {
	msg, err := acp.NewErrorResponse(id, failure)
	w.put(false, msg, err)
}

func (w *wire) notify(method string, params any) {
	msg, err := acp.NewNotification(method, params)
	w.put(true, msg, err)
}

// ask sends a request to the editor and returns the request's id.
func (w *wire) ask(method string, params any, then reply) json.RawMessage {
	w.mu.Lock()
	w.last++
	id := json.RawMessage(strconv.FormatInt(w.last, 10))
	w.pending[acp.Key(id)] = then
	w.mu.Unlock()
	msg, err := acp.NewRequest(id, method, params)
	w.put(true, msg, err)
	return id
}

// withdraw cancels a request at the editor. The editor still answers, and the answer is dropped.
func (w *wire) withdraw(id json.RawMessage) {
	w.notify("$/cancel_request", map[string]any{"requestId": id})
}

func (w *wire) answered(key acp.Key, data []byte) {
	w.mu.Lock()
	if w.pending[key] == nil {
		key = key.Twin() // our ids are numbers, and some editors return them as strings
	}
	then := w.pending[key]
	delete(w.pending, key)
	w.mu.Unlock()
	if then == nil {
		return // an unknown id, or a second answer
	}
	var m struct {
		Result json.RawMessage `json:"result"`
		Error  *acp.Error      `json:"error"`
	}
	if err := json.Unmarshal(data, &m); err != nil && m.Error == nil {
		m.Error = &acp.Error{Code: acp.CodeInternalError, Message: err.Error()}
	}
	then(m.Result, m.Error)
}
