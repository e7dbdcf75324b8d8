package editor

import (
	"encoding/json"
	"io"
	"strconv"
	"sync"

	"deskhand/backend/acp"
)

// wire is what the editor reads. Any number may write.
type wire struct {
	out io.Writer

	mu      sync.Mutex // protects what is below, and keeps lines whole
	broken  bool       // the editor reads no more: its input will end in a moment
	last    int64
	pending map[acp.Key]reply
}

// reply is called with what the editor answers, once, by the goroutine that reads.
type reply func(result json.RawMessage, failure *acp.Error)

func newWire(out io.Writer) *wire { return &wire{out: out, pending: map[acp.Key]reply{}} }

func (w *wire) put(msg []byte, err error) {
	if err != nil {
		panic("editor: a message of ours that is no JSON: " + err.Error())
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken {
		return
	}
	_, err = w.out.Write(append(msg, '\n'))
	w.broken = err != nil
}

func (w *wire) answer(id json.RawMessage, result any) { w.put(acp.NewResponse(id, result)) }

func (w *wire) fail(id json.RawMessage, failure *acp.Error) {
	w.put(acp.NewErrorResponse(id, failure))
}

func (w *wire) notify(method string, params any) { w.put(acp.NewNotification(method, params)) }

// ask sends a request to the editor and gives its id.
func (w *wire) ask(method string, params any, then reply) json.RawMessage {
	w.mu.Lock()
	w.last++
	id := json.RawMessage(strconv.FormatInt(w.last, 10))
	w.pending[acp.Key(id)] = then
	w.mu.Unlock()
	w.put(acp.NewRequest(id, method, params))
	return id
}

// withdraw tells the editor that its answer is wanted no more. It answers all the same, and that is heard by nobody.
func (w *wire) withdraw(id json.RawMessage) {
	w.notify("$/cancel_request", map[string]any{"requestId": id})
}

func (w *wire) answered(key acp.Key, data []byte) {
	w.mu.Lock()
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
