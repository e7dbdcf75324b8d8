package demoagent

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"deskhand/backend/acp"
)

// maxLine limits a line of input. The limit is generous, since attachments travel inline.
const maxLine = 64 << 20

// rpcError is the error object of JSON-RPC.
type rpcError struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

func errorf(code int64, format string, args ...any) *rpcError {
	return &rpcError{Code: code, Message: fmt.Sprintf(format, args...)}
}

// frame is an outgoing message.
type frame struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

// encode returns the frame as a line. Encoding cannot fail, since frames hold our own types and JSON that was parsed before.
func (f frame) encode() []byte {
	f.Version = "2.0"
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(f); err != nil {
		panic(fmt.Sprintf("demo agent: a frame that cannot be encoded: %v", err))
	}
	return line.Bytes()
}

// message is a message of the client.
type message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"` // nil when absent, null when null
	Method  *string         `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// parse decodes a line. With an error, the message holds the id to answer with, or null when the id is unknown.
func parse(line []byte) (message, *rpcError) {
	nobody := message{ID: json.RawMessage("null")}
	switch {
	case !utf8.Valid(line) || !json.Valid(line):
		return nobody, errorf(acp.CodeParseError, "parse error: the line is not JSON")
	case line[0] == '[':
		return nobody, errorf(acp.CodeInvalidRequest, "invalid request: batches are not supported")
	case line[0] != '{':
		return nobody, errorf(acp.CodeInvalidRequest, "invalid request: not an object")
	}
	var m message
	if err := json.Unmarshal(line, &m); err != nil {
		return nobody, errorf(acp.CodeInvalidRequest, "invalid request: %v", err)
	}
	if m.ID != nil && !validID(m.ID) {
		return nobody, errorf(acp.CodeInvalidRequest, "invalid request: id must be an integer, a string or null")
	}
	answers := m.Result != nil || m.Error != nil
	if m.Version == "2.0" && (m.Method != nil || m.ID != nil && answers) {
		return m, nil
	}
	if m.ID == nil {
		m.ID = nobody.ID
	}
	if m.Version != "2.0" {
		return m, errorf(acp.CodeInvalidRequest, `invalid request: jsonrpc must be "2.0"`)
	}
	return m, errorf(acp.CodeInvalidRequest, "invalid request: neither a method nor an answer")
}

func validID(id json.RawMessage) bool {
	if id[0] == '"' || string(id) == "null" {
		return true
	}
	_, err := strconv.ParseInt(string(id), 10, 64)
	return err == nil
}

// incoming is a line of the client. tooLong marks a line longer than maxLine, which has been skipped.
type incoming struct {
	line    []byte
	tooLong bool
}

// readLines reads lines until in ends. The second channel then receives io.EOF or the failure, and both channels are closed. The goroutine
// ends with in, or after ctx as soon as a read returns.
func readLines(ctx context.Context, in io.Reader) (<-chan incoming, <-chan error) {
	lines, ended := make(chan incoming), make(chan error, 1)
	go func() {
		defer close(lines)
		defer close(ended)
		reader := bufio.NewReaderSize(in, 64<<10)
		for ctx.Err() == nil {
			next, err := readLine(reader)
			if len(next.line) > 0 || next.tooLong {
				select {
				case lines <- next:
				case <-ctx.Done():
				}
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	return lines, ended
}

func readLine(reader *bufio.Reader) (incoming, error) {
	var next incoming
	for {
		part, err := reader.ReadSlice('\n')
		if len(next.line)+len(part) > maxLine {
			next = incoming{tooLong: true}
		}
		if !next.tooLong {
			next.line = append(next.line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		next.line = bytes.TrimSpace(next.line)
		return next, err
	}
}

// outgoing is an entry of the writer's queue.
type outgoing struct {
	line    []byte
	before  func()          // called just before the line is written
	written chan<- struct{} // closed when everything up to here is written
}

// writer writes all messages to the client, in the order of the calls of send. send waits while the client does not read, until quit is
// closed.
type writer struct {
	queue chan outgoing
	quit  <-chan struct{}
	done  chan struct{} // closed when the writer has ended
	lost  chan struct{} // closed when a write has failed; later lines are dropped
	err   error         // the failure; set before lost is closed
}

func newWriter(out io.Writer, quit <-chan struct{}) *writer {
	w := &writer{queue: make(chan outgoing, 64), quit: quit, done: make(chan struct{}), lost: make(chan struct{})}
	go w.run(bufio.NewWriterSize(out, 64<<10))
	return w
}

func (w *writer) run(out *bufio.Writer) {
	defer close(w.done)
	for next := range w.queue {
		if next.before != nil {
			next.before()
		}
		_, err := out.Write(next.line)
		if err == nil && (len(w.queue) == 0 || next.written != nil) {
			err = out.Flush()
		}
		if err != nil && w.err == nil {
			w.err = fmt.Errorf("demo agent: write: %w", err)
			close(w.lost)
		}
		if next.written != nil {
			close(next.written)
		}
	}
}

func (w *writer) send(next outgoing) {
	select {
	case w.queue <- next:
	case <-w.quit:
	}
}

// flush returns when every earlier line is written.
func (w *writer) flush() {
	written := make(chan struct{})
	w.send(outgoing{written: written})
	select {
	case <-written:
	case <-w.quit:
	}
}

// close ends the writer once its queue is empty. Nobody may send after close. close does not wait for a write that the client blocks when quit
// is closed.
func (w *writer) close() {
	close(w.queue)
	select {
	case <-w.done:
	case <-w.quit:
	}
}
