package backend

import (
	"context"
	"errors"
	"sync"
	"syscall"

	"deskhand/backend/httpapi"
	"deskhand/backend/session"
)

// localAPI is the API on loopback of a program with a window, which does not depend on that API. The API can be switched on and off while the
// program runs, and the settings store its state. The private socket is always open.
type localAPI struct {
	mu       sync.Mutex // protects the fields below, and is held while switching
	open     bool       // the program has a window; without one the API is the program's purpose
	port     int        // the preferred port
	listener *Listener
	problem  string
	ends     sync.WaitGroup // waits for listeners that were switched off
}

const loopbackHost = "127.0.0.1"

// OpenLocal serves the API on loopback, unless the settings switch the API off, on the given port or, when that is taken, on another. A
// failure does not prevent the window, which shows the failure.
func (b *Backend) OpenLocal(ctx context.Context, port int) {
	l := &b.local
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open, l.port = true, port
	switch s := b.settings.Get(); {
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

// localState is the present state of the API.
func (b *Backend) localState() httpapi.LocalAPI {
	l := &b.local
	l.mu.Lock()
	defer l.mu.Unlock()
	return b.localStateLocked()
}

func (b *Backend) localStateLocked() httpapi.LocalAPI {
	url := b.address.get()
	return httpapi.LocalAPI{On: url != "", URL: url, Fixed: !b.local.open, Problem: b.local.problem}
}

// switchLocal switches the API on or off. A caller that switches the API off over the API still gets the answer: the listener's end waits for
// running calls, and switchLocal does not wait for the listener. When the state cannot be stored, switchLocal fails; the API is then off in
// any case.
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
	if err := b.settings.PutLocalAPI(on); err != nil {
		return httpapi.LocalAPI{}, err
	}
	if on && l.listener == nil {
		l.ends.Wait() // the port is free then
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
	b.address.set("")
	b.describe("")
	l.ends.Go(func() {
		if err := listener.Close(); err != nil {
			b.cfg.Logger.Warn("the API on this machine did not end as it should", "error", err)
		}
	})
}

// close ends the listener, waits for those switched off before, and refuses to switch the API on again.
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
