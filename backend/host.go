package backend

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"

	"deskhand/backend/datadir"
	"deskhand/backend/session"
	"deskhand/backend/store"
)

// Host is the backend of a window, which also opens while the data is unavailable: the window then has a page on which a person resolves that,
// and the app afterwards.
type Host struct {
	cfg  Config
	ctx  context.Context //nolint:containedctx // the host's life
	stop context.CancelFunc

	acts sync.Mutex // held during operations that may take as long as a disk; mu is not held meanwhile

	mu      sync.Mutex // protects the fields below
	now     *Backend   // nil while the data is unavailable
	missing error      // why: a *datadir.MissingError, or a lost or damaged database
	window  swapped
	local   int // the port of OpenLocal, once called
}

// OpenHost is Open for a window. OpenHost also succeeds when the data is unavailable; see Missing.
func OpenHost(ctx context.Context, cfg Config) (*Host, error) {
	h := &Host{cfg: cfg}
	h.ctx, h.stop = context.WithCancel(context.WithoutCancel(ctx))
	b, err := Open(ctx, cfg)
	switch {
	case withoutData(err):
		h.missing = err
		lack := h.lack()
		h.window.now.Store(&lack)
		return h, nil
	case err != nil:
		h.stop()
		return nil, err
	}
	h.takeLocked(b)
	return h, nil
}

// takeLocked makes b the served backend. The caller holds h.mu, or is OpenHost.
func (h *Host) takeLocked(b *Backend) {
	window := b.Window()
	h.now, h.missing = b, nil
	h.window.now.Store(&window)
}

// swapped serves a handler that changes once the data is available.
type swapped struct{ now atomic.Pointer[http.Handler] }

func (s *swapped) ServeHTTP(w http.ResponseWriter, r *http.Request) { (*s.now.Load()).ServeHTTP(w, r) }

// withoutData reports whether a start failed because the data is unavailable, which a person can resolve.
func withoutData(err error) bool {
	_, missing := errors.AsType[*datadir.MissingError](err)
	_, lost := errors.AsType[*store.LostError](err)
	_, damaged := errors.AsType[*store.DamagedError](err)
	return missing || lost || damaged
}

// Missing explains why the data is unavailable: a *[datadir.MissingError], or the store's error for a lost or damaged database. Missing
// returns nil when the data is available.
func (h *Host) Missing() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.missing
}

// Backend returns the served backend, or nil while the data is unavailable.
func (h *Host) Backend() *Backend {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// Window is the handler of the window's asset server.
func (h *Host) Window() http.Handler { return &h.window }

// Running is the number of running turns.
func (h *Host) Running() int {
	if b := h.Backend(); b != nil {
		return b.Running()
	}
	return 0
}

// Programs is Backend.Programs, or a lookup in our own environment while the data is unavailable.
func (h *Host) Programs(ctx context.Context) (env func(name string) string, find func(name string) (string, error)) {
	if b := h.Backend(); b != nil {
		return b.Programs(ctx)
	}
	return os.Getenv, exec.LookPath
}

// Editor is Backend.Editor, or none while the data is unavailable.
func (h *Host) Editor(file, line string) []string {
	if b := h.Backend(); b != nil {
		return b.Editor(file, line)
	}
	return nil
}

// OpenLocal is Backend.OpenLocal, now or once the data is available.
func (h *Host) OpenLocal(ctx context.Context, port int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.local = port
	if h.now != nil {
		h.now.OpenLocal(ctx, port)
	}
}

// Alone is Backend.Alone.
func (h *Host) Alone() *datadir.HeldError {
	if b := h.Backend(); b != nil {
		return b.Alone()
	}
	return nil
}

// Close ends an operation that runs, and then the backend.
func (h *Host) Close() error {
	h.stop()
	h.acts.Lock()
	defer h.acts.Unlock()
	if b := h.Backend(); b != nil {
		return b.Close()
	}
	return nil
}

// Again opens the data if it is available by now.
func (h *Host) Again(ctx context.Context) error {
	return h.reach(ctx, func(context.Context, *datadir.Paths) error { return nil })
}

// Accept continues with the directory although its database is not the former database.
func (h *Host) Accept(ctx context.Context) error {
	return h.reach(ctx, func(_ context.Context, p *datadir.Paths) error {
		_, err := AcceptData(*p)
		return err
	})
}

// Back continues with the old copy while the data is unavailable.
func (h *Host) Back(ctx context.Context) error {
	return h.reach(ctx, func(ctx context.Context, p *datadir.Paths) error {
		missing, is := errors.AsType[*datadir.MissingError](p.Check())
		if !is || missing.Old == "" {
			return p.Check()
		}
		return p.Use(ctx, missing.Old, true)
	})
}

// reach changes the paths and opens the data, one call at a time. Close ends the call.
func (h *Host) reach(ctx context.Context, change func(context.Context, *datadir.Paths) error) error {
	h.acts.Lock()
	defer h.acts.Unlock()
	if h.ctx.Err() != nil {
		return session.ErrClosed
	}
	if h.Missing() == nil {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)() //nolint:contextcheck // h.ctx ends the call
	cfg := h.cfg
	if err := change(ctx, &cfg.Places); err != nil {
		return err
	}
	b, err := Open(ctx, cfg)
	if err != nil {
		return err
	}
	if b.lock == nil {
		return errors.Join(b.holder, b.Close())
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.takeLocked(b)
	if h.local != 0 {
		b.OpenLocal(h.ctx, h.local) //nolint:contextcheck // as long as the host
	}
	return nil
}
