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

// wire is what the editor reads. Any number may write; one goroutine does, since an editor that has stopped reading would hold up whoever
// else has something to say, and the end as well.
type wire struct {
	out  io.Writer
	ctx  context.Context //nolint:containedctx // as long as the editor is listened to
	wake chan struct{}   // holds a token when there is something to write, or the end has come
	over chan struct{}   // closed when nothing is written any more

	mu      sync.Mutex // protects what is below
	queue   [][]byte
	size    int           // of the queue, in bytes
	room    chan struct{} // closed when the queue was taken
	ending  bool
	broken  bool // the editor reads no more: its input will end in a moment
	last    int64
	pending map[acp.Key]reply
}

// reply is called with what the editor answers, once, by the goroutine that reads.
type reply func(result json.RawMessage, failure *acp.Error)

const (
	mostQueued = 16 << 20        // bytes that wait for the editor, before who has more to tell waits too
	lastWords  = 1 * time.Second // for what waits when the end has come
)

// newWire writes until it is closed.
func newWire(ctx context.Context, out io.Writer) *wire {
	w := &wire{
		out: out, ctx: ctx, wake: make(chan struct{}, 1), over: make(chan struct{}), room: make(chan struct{}), pending: map[acp.Key]reply{},
	}
	go w.write()
	return w
}

// close waits until all is written, but not long: a write to an editor that does not read cannot be broken off, and ends with us.
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

// put has a message written. patient tells that it may wait for those before it: nobody who reads what the editor says may.
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

// ask sends a request to the editor and gives its id.
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

// withdraw tells the editor that its answer is wanted no more. It answers all the same, and that is heard by nobody.
func (w *wire) withdraw(id json.RawMessage) {
	w.notify("$/cancel_request", map[string]any{"requestId": id})
}

func (w *wire) answered(key acp.Key, data []byte) {
	w.mu.Lock()
	if w.pending[key] == nil {
		key = key.Twin() // ours are numbers, and some editors send them back as texts
	}
	then := w.pending[key]
	delete(w.pending, key)
	w.mu.Unlock()
	if then == nil {
		return // an answer to nothing, or a second one
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
