package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"deskhand/backend/acp"
)

// relay is the smallest program that brings a request to an agent and the answer back: net/http, a pipe and a map. The relay checks
// nothing, keeps nothing and streams nothing.
type relay struct {
	mu      sync.Mutex // protects the fields below
	agent   io.Writer
	waiting map[acp.Key]chan []byte
}

// runFloor serves a relay until stdin ends. GET is HTTP alone.
func runFloor(in io.Reader, out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	p, err := startPipe(context.Background(), self)
	if err != nil {
		return err
	}
	r := &relay{agent: p.in, waiting: map[acp.Key]chan []byte{}}
	go r.answers(p.out)
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // the listener lives as long as this process
	if err != nil {
		return err
	}
	server := &http.Server{Handler: r, ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		_ = server.Close()
	}()
	fmt.Fprintf(out, "http://%s\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return p.stop()
}

// answers passes on the agent's answers, until the agent ends.
func (r *relay) answers(out *bufio.Reader) {
	for {
		line, err := out.ReadSlice('\n')
		if err != nil {
			return
		}
		e, err := acp.Peek(line)
		if err != nil {
			return
		}
		r.mu.Lock()
		r.waiting[e.Key()] <- bytes.Clone(line)
		delete(r.waiting, e.Key())
		r.mu.Unlock()
	}
}

func (r *relay) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if q.Method == http.MethodGet {
		_, _ = io.WriteString(w, `{"status":"ok"}`)
		return
	}
	body, _ := io.ReadAll(q.Body)
	e, err := acp.Peek(body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	answer := make(chan []byte, 1)
	r.mu.Lock()
	r.waiting[e.Key()] = answer
	_, _ = r.agent.Write(append(body, '\n'))
	r.mu.Unlock()
	select {
	case line := <-answer:
		_, _ = w.Write(line)
	case <-q.Context().Done():
	}
}
