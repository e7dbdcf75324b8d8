package app

import (
	"errors"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"syscall"
)

// mount serves the API from our handler and every other path from the assets. mount is middleware instead of the asset server's own
// Handler, because the asset server calls its Handler last and, in development, only after the frontend's server.
func mount(ours http.Handler, seal func(), logger *slog.Logger) func(http.Handler) http.Handler {
	return func(assets http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			handler := assets
			if strings.HasPrefix(r.URL.Path, "/v1/") || strings.HasPrefix(r.URL.Path, "/client/") {
				handler = ours
			}
			answer := &sealed{ResponseWriter: w, seal: seal}
			if survives(handler, answer, r, logger) {
				answer.WriteHeader(http.StatusOK) // as in net/http, when a handler wrote nothing; Wails would answer 501
			} else {
				answer.WriteHeader(http.StatusInternalServerError) // only when nothing was sent yet
			}
		})
	}
}

// survives serves a request, and reports whether the handler came to its end. A handler that panics ends only its own answer here, as in
// net/http's server; Wails would end the program, and every agent with it. The API's library panics whenever it cannot write an answer, so
// each reload of the page during an answer could cause a panic.
func survives(handler http.Handler, w http.ResponseWriter, r *http.Request, logger *slog.Logger) (ended bool) {
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if err, is := p.(error); is && (errors.Is(err, http.ErrAbortHandler) || errors.Is(err, syscall.EPIPE)) {
			return // nobody reads the answer any more
		}
		logger.Error("an answer to the page panicked", "method", r.Method, "path", r.URL.Path, "panic", p, "stack", string(debug.Stack()))
	}()
	handler.ServeHTTP(w, r)
	return true
}

// sealed is a response that no child process keeps open.
//
// On Linux Wails hands WebKit a response as a pipe, and makes that pipe without close-on-exec. A process that is started in this moment,
// such as an agent that the request itself starts, inherits the writing end; the page then waits for the end of the response for as long as
// the agent lives. Go starts no process while ForkLock is held, so sealed makes and seals the pipe under ForkLock.
type sealed struct {
	http.ResponseWriter
	seal  func()
	begun bool
}

func (s *sealed) WriteHeader(code int) {
	if s.begun {
		return
	}
	s.begun = true
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	s.ResponseWriter.WriteHeader(code)
	s.seal()
}

func (s *sealed) Write(data []byte) (int, error) {
	if !s.begun {
		if s.Header().Get("Content-Type") == "" {
			s.Header().Set("Content-Type", http.DetectContentType(data))
		}
		s.WriteHeader(http.StatusOK)
	}
	return s.ResponseWriter.Write(data) // not under the lock: Write waits for the page
}

// Flush does nothing, since nothing is held back: a pipe has no buffer of ours.
func (s *sealed) Flush() {}
