package backend

import (
	"context"
	"errors"
	"sync"
	"syscall"

	"deskhand/backend/httpapi"
	"deskhand/backend/session"
)

// localAPI is the API on loopback of a program that has a window beside it, and can therefore do without. It goes on and off while the
// program runs, and the settings keep which; the private socket is there in any case.
type localAPI struct {
	mu       sync.Mutex // one switches at a time; it protects what is below
	open     bool       // there is a window: else the API is what the program is for
	port     int        // the first choice
	listener *Listener
	problem  string
	ends     sync.WaitGroup // of listeners that were switched off
}

const loopbackHost = "127.0.0.1"

// OpenLocal serves the API on loopback unless the settings say that it is off: on the port if that is free, else on another. That it
// cannot be served is no reason to have no window: it is told there.
func (b *Backend) OpenLocal(ctx context.Context, port int) {
	l := &b.local
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open, l.port = true, port
	switch s := b.client.Settings(); {
	case s.LocalAPI:
		b.listenLocalLocked(ctx)
	case s.Problem != "":
		b.cfg.Logger.Warn("the API is off on this machine, and the settings are not as they should be", "file", s.Path, "problem", s.Problem)
	}
}

func (b *Backend) listenLocalLocked(ctx context.Context) {
	l := &b.local
	listener, err := b.Listen(ctx, loopbackHost, l.port)
	if errors.Is(err, syscall.EADDRINUSE) {
		listener, err = b.Listen(ctx, loopbackHost, 0)
	}
	l.listener, l.problem = listener, ""
	if err != nil {
		l.problem = err.Error()
		b.cfg.Logger.Error("the API is not served on this machine", "error", err)
	}
}

// localState tells how it is.
func (b *Backend) localState() httpapi.LocalAPI {
	l := &b.local
	l.mu.Lock()
	defer l.mu.Unlock()
	return b.localStateLocked()
}

func (b *Backend) localStateLocked() httpapi.LocalAPI {
	url := b.url()
	return httpapi.LocalAPI{On: url != "", URL: url, Fixed: !b.local.open, Problem: b.local.problem}
}

// switchLocal serves the API, or serves it no more. Who switches it off over the API itself still hears the answer: the end of the
// listener waits for the calls that run, and nobody here waits for it. It is off also when that cannot be written down, which is an error;
// on it is only when it can.
func (b *Backend) switchLocal(ctx context.Context, on bool) (httpapi.LocalAPI, error) {
	l := &b.local
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open {
		return httpapi.LocalAPI{}, &session.RefusedError{Code: "access.fixed"}
	}
	if !on {
		b.endLocalLocked()
	}
	if err := b.client.PutLocalAPI(on); err != nil {
		return httpapi.LocalAPI{}, err
	}
	if on && l.listener == nil {
		l.ends.Wait() // the port is free again
		b.listenLocalLocked(context.WithoutCancel(ctx))
	}
	return b.localStateLocked(), nil
}

func (b *Backend) endLocalLocked() {
	l := &b.local
	listener := l.listener
	l.listener, l.problem = nil, ""
	if listener == nil {
		return
	}
	b.mu.Lock()
	b.base = ""
	b.mu.Unlock()
	b.describe("")
	l.ends.Go(func() {
		if err := listener.Close(); err != nil {
			b.cfg.Logger.Warn("the API on this machine did not end as it should", "error", err)
		}
	})
}

// close ends what is served, and waits for what was switched off. Nothing is switched on any more.
func (l *localAPI) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var err error
	l.open = false
	if l.listener != nil {
		err = l.listener.Close()
		l.listener = nil
	}
	l.ends.Wait()
	return err
}
