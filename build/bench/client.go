package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"time"
)

// The time that a read waits for the next bytes. Its end ends a stream whose last message was lost, and a call without an answer; the
// existing server has both, and would take minutes.
const (
	patience     = 15 * time.Second
	peerPatience = 2 * time.Second
)

// client is an HTTP connection.
type client struct {
	server   *server
	conn     net.Conn
	in       *bufio.Reader
	buf      []byte
	patience time.Duration
}

func (s *server) dial() (*client, error) {
	conn, err := net.Dial("tcp", s.addr) //nolint:noctx // to this machine
	if err != nil {
		return nil, err
	}
	c := &client{server: s, conn: conn, patience: patience}
	c.in = bufio.NewReaderSize(c, 256<<10)
	return c, nil
}

// Read reads from the connection, but does not wait for ever.
func (c *client) Read(p []byte) (int, error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(c.patience)); err != nil {
		return 0, err
	}
	return c.conn.Read(p)
}

// hurry makes the client wait less for the existing server.
func (c *client) hurry() {
	if c.server.column == peer {
		c.patience = peerPatience
	}
}

func (c *client) close() { _ = c.conn.Close() }

// statusError is an answer that is no success.
type statusError struct {
	code int
	body string
}

func (e *statusError) Error() string { return fmt.Sprintf("%d %s", e.code, e.body) }

// open sends a request and reads the answer up to the answer's body.
func (c *client) open(method, path, body string) (*http.Response, error) {
	c.buf = fmt.Appendf(c.buf[:0], "%s /v1/%s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n", method, path, c.server.addr, token)
	if body != "" {
		c.buf = fmt.Appendf(c.buf, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	c.buf = append(append(c.buf, "\r\n"...), body...)
	_, failed := c.conn.Write(c.buf) // a server that refuses the body may have answered all the same
	res, err := http.ReadResponse(c.in, nil)
	if err != nil {
		return nil, errors.Join(failed, err)
	}
	if res.StatusCode >= http.StatusMultipleChoices {
		text, _ := io.ReadAll(io.LimitReader(res.Body, 300))
		return nil, errors.Join(&statusError{res.StatusCode, string(text)}, res.Body.Close())
	}
	return res, nil
}

// do sends a request and returns the length of the answer.
func (c *client) do(method, path, body string) (int64, error) {
	res, err := c.open(method, path, body)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	return io.Copy(io.Discard, res.Body)
}

// spawn starts an instance, and waits for its answer.
func (c *client) spawn(id string) error {
	_, err := c.do(http.MethodPost, "acp/"+id+"?agent="+c.server.agent, request(0))
	return err
}

func (c *client) remove(id string) error {
	_, err := c.do(http.MethodDelete, "acp/"+id, "")
	return err
}

// request is a small request.
func request(id int) string {
	return `{"jsonrpc":"2.0","id":` + strconv.Itoa(id) + `,"method":"m"}`
}

// received counts the messages that a reader of a stream has seen.
type received struct {
	messages int
	last     time.Time // time of the last message
}

// events is a stream that is being read.
type events struct {
	in *bufio.Reader
	id int // id of the last message
}

// events opens the stream of a new instance, and reads the first message, the answer to the bootstrap: then the server knows the reader.
func (c *client) events(path string) (*events, error) {
	res, err := c.open(http.MethodGet, path, "") //nolint:bodyclose // the body ends with the connection
	if err != nil {
		return nil, err
	}
	e := &events{in: bufio.NewReaderSize(res.Body, 256<<10)}
	_, err = e.read(1, 0)
	return e, err
}

// read reads so many messages, or as many as come. A slow reader pauses after every thousandth.
func (e *events) read(want int, pause time.Duration) (r received, err error) {
	for r.messages < want {
		line, err := e.in.ReadSlice('\n')
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return r, nil // the rest is lost
		case err != nil:
			return r, err
		}
		text, ok := bytes.CutPrefix(line, []byte("id: "))
		if !ok {
			continue
		}
		next, err := strconv.Atoi(string(bytes.TrimSpace(text)))
		if err != nil || next <= e.id {
			return r, fmt.Errorf("event id %q after %d", text, e.id)
		}
		e.id = next
		r.messages++
		r.last = time.Now()
		if pause > 0 && r.messages%1000 == 0 {
			<-time.After(pause)
		}
	}
	return r, nil
}
