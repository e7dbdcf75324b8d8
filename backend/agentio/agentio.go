// Package agentio hides the agent's end of ACP on stdin and stdout: lines that are read within a bound, what is no message of JSON-RPC, and
// a writer whose messages keep their order. The demo agent and the player of recordings use the package.
package agentio

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

// MaxLine limits a line of input. The limit is generous, since attachments travel inline.
const MaxLine = 64 << 20

// Error is the error object of JSON-RPC.
type Error struct {
	Code    int64  `json:"code"`
	Message string `json:"message"`
	Data    any    `json:"data,omitempty"`
}

// Errorf returns an Error with a formatted message.
func Errorf(code int64, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Frame is an outgoing message.
type Frame struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  any             `json:"params,omitempty"`
	Result  any             `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// Encode returns the frame as a line. Encoding cannot fail, since frames hold our own types and JSON that was parsed before.
func (f Frame) Encode() []byte {
	f.Version = "2.0"
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(f); err != nil {
		panic(fmt.Sprintf("agentio: a frame that cannot be encoded: %v", err))
	}
	return line.Bytes()
}

// Message is a message of the client.
type Message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"` // nil when absent, null when null
	Method  *string         `json:"method"`
	Params  json.RawMessage `json:"params"`
	Result  json.RawMessage `json:"result"`
	Error   json.RawMessage `json:"error"`
}

// Parse decodes a line. With an error, the message holds the id to answer with, or null when the id is unknown.
func Parse(line []byte) (Message, *Error) {
	nobody := Message{ID: json.RawMessage("null")}
	switch {
	case !utf8.Valid(line) || !json.Valid(line):
		return nobody, Errorf(acp.CodeParseError, "parse error: the line is not JSON")
	case line[0] == '[':
		return nobody, Errorf(acp.CodeInvalidRequest, "invalid request: batches are not supported")
	case line[0] != '{':
		return nobody, Errorf(acp.CodeInvalidRequest, "invalid request: not an object")
	}
	var m Message
	if err := json.Unmarshal(line, &m); err != nil {
		return nobody, Errorf(acp.CodeInvalidRequest, "invalid request: %v", err)
	}
	if m.ID != nil && !validID(m.ID) {
		return nobody, Errorf(acp.CodeInvalidRequest, "invalid request: id must be an integer, a string or null")
	}
	answers := m.Result != nil || m.Error != nil
	if m.Version == "2.0" && (m.Method != nil || m.ID != nil && answers) {
		return m, nil
	}
	if m.ID == nil {
		m.ID = nobody.ID
	}
	if m.Version != "2.0" {
		return m, Errorf(acp.CodeInvalidRequest, `invalid request: jsonrpc must be "2.0"`)
	}
	return m, Errorf(acp.CodeInvalidRequest, "invalid request: neither a method nor an answer")
}

func validID(id json.RawMessage) bool {
	if id[0] == '"' || string(id) == "null" {
		return true
	}
	_, err := strconv.ParseInt(string(id), 10, 64)
	return err == nil
}

// Line is a line of the client. TooLong marks a line longer than MaxLine, which has been skipped.
type Line struct {
	Text    []byte
	TooLong bool
}

// ReadLines reads lines until in ends. The second channel then receives io.EOF or the failure, and both channels are closed. The goroutine
// ends with in, or after ctx as soon as a read returns.
func ReadLines(ctx context.Context, in io.Reader) (<-chan Line, <-chan error) {
	lines, ended := make(chan Line), make(chan error, 1)
	go func() {
		defer close(lines)
		defer close(ended)
		reader := bufio.NewReaderSize(in, 64<<10)
		for ctx.Err() == nil {
			next, err := readLine(reader)
			if len(next.Text) > 0 || next.TooLong {
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

func readLine(reader *bufio.Reader) (Line, error) {
	var next Line
	for {
		part, err := reader.ReadSlice('\n')
		if len(next.Text)+len(part) > MaxLine {
			next = Line{TooLong: true}
		}
		if !next.TooLong {
			next.Text = append(next.Text, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		next.Text = bytes.TrimSpace(next.Text)
		return next, err
	}
}

// Entry is an entry of the writer's queue.
type Entry struct {
	Line   []byte
	Before func() // called just before the line is written

	written chan<- struct{} // closed when everything up to here is written
}

// Writer writes all messages to the client, in the order of the calls of Send. Send waits while the client does not read, until quit is
// closed.
type Writer struct {
	queue chan Entry
	quit  <-chan struct{}
	done  chan struct{} // closed when the writer has ended
	lost  chan struct{} // closed when a write has failed; later lines are dropped
	err   error         // the failure; set before lost is closed
}

// NewWriter starts a writer to out. The writer ends with Close.
func NewWriter(out io.Writer, quit <-chan struct{}) *Writer {
	w := &Writer{queue: make(chan Entry, 64), quit: quit, done: make(chan struct{}), lost: make(chan struct{})}
	go w.run(bufio.NewWriterSize(out, 64<<10))
	return w
}

func (w *Writer) run(out *bufio.Writer) {
	defer close(w.done)
	for next := range w.queue {
		if next.Before != nil {
			next.Before()
		}
		_, err := out.Write(next.Line)
		if err == nil && (len(w.queue) == 0 || next.written != nil) {
			err = out.Flush()
		}
		if err != nil && w.err == nil {
			w.err = fmt.Errorf("writing to the client: %w", err)
			close(w.lost)
		}
		if next.written != nil {
			close(next.written)
		}
	}
}

// Send queues an entry. Send may be called by any number of goroutines.
func (w *Writer) Send(next Entry) {
	select {
	case w.queue <- next:
	case <-w.quit:
	}
}

// Lost is closed when a write has failed. Err returns the failure afterwards.
func (w *Writer) Lost() <-chan struct{} { return w.lost }

// Err returns the first failure of a write. Err may be called once Lost is closed, or after Close.
func (w *Writer) Err() error { return w.err }

// Flush returns when every earlier line is written.
func (w *Writer) Flush() {
	written := make(chan struct{})
	w.Send(Entry{written: written})
	select {
	case <-written:
	case <-w.quit:
	}
}

// Close ends the writer once its queue is empty. Nobody may send after Close. Close does not wait for a write that the client blocks when quit
// is closed.
func (w *Writer) Close() {
	close(w.queue)
	select {
	case <-w.done:
	case <-w.quit:
	}
}
