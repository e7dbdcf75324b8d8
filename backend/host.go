package backend

import (
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"sync"

	"deskhand/backend/datadir"
	"deskhand/backend/httpapi"
	"deskhand/backend/session"
	"deskhand/backend/store"
)

// Host is a backend whose data directory can move while the backend runs. Callers keep their address, behind which another backend then
// answers.
type Host struct {
	cfg    Config
	ctx    context.Context //nolint:containedctx // the host's life
	stop   context.CancelFunc
	failed chan error // receives the error after which the host cannot go on
	wg     sync.WaitGroup

	acts sync.Mutex // held during operations that may take as long as a disk; mu is not held meanwhile

	mu       sync.Mutex // protects the fields below
	now      *Backend   // nil while the data is unavailable
	missing  error      // why: a *datadir.MissingError, or a lost or damaged database
	window   swapped
	listener *Listener
	local    int               // the port of OpenLocal, once called
	move     *httpapi.DataMove // the running move, or the latest
	cancel   context.CancelFunc
	closed   bool
}

// OpenHost is Open for a program that stays. With patient, OpenHost also succeeds when the data is unavailable; see Missing.
func OpenHost(ctx context.Context, cfg Config, patient bool) (*Host, error) {
	h := &Host{cfg: cfg, failed: make(chan error, 1)}
	h.ctx, h.stop = context.WithCancel(context.WithoutCancel(ctx))
	b, err := open(ctx, cfg, h.moving())
	switch {
	case patient && withoutData(err):
		h.missing = err
		lack := h.lack()
		h.window.now.Store(&lack)
		return h, nil
	case err != nil:
		h.stop()
		return nil, err
	}
	h.cfg.Places = b.cfg.Places
	h.takeLocked(b)
	if b.lock != nil {
		if err := h.cfg.Places.FinishMove(); err != nil {
			cfg.Logger.Warn("what was left of a move of the data could not be done", "error", err)
		}
		h.move = sweepMove(h.cfg)
	}
	return h, nil
}

// takeLocked makes b the served backend. The caller holds h.mu.
func (h *Host) takeLocked(b *Backend) {
	window := b.Window()
	h.now, h.missing = b, nil
	h.window.now.Store(&window)
}

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

// Backend is the backend that is served now. The caller must not keep the result.
func (h *Host) Backend() *Backend {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// Failed receives an error when the host cannot go on, since neither directory could be opened after a move.
func (h *Host) Failed() <-chan error { return h.failed }

// Window is the handler of the window's asset server.
func (h *Host) Window() http.Handler { return &h.window }

// Running is the number of running turns.
func (h *Host) Running() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now == nil || h.cancel != nil { // a move has ended the turns, or asks for itself
		return 0
	}
	return h.now.Running()
}

// Programs is Backend.Programs, or a lookup in our own environment while the data is unavailable.
func (h *Host) Programs(ctx context.Context) (env func(name string) string, find func(name string) (string, error)) {
	if b := h.Backend(); b != nil {
		return b.Programs(ctx)
	}
	return os.Getenv, exec.LookPath
}

// Listen is Backend.Listen. After a move the listener serves the new backend.
func (h *Host) Listen(ctx context.Context, host string, port int) (*Listener, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l, err := h.now.Listen(ctx, host, port)
	h.listener = l
	return l, err
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
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now == nil {
		return nil
	}
	return h.now.Alone()
}

// act runs an operation that may take as long as a disk, one at a time. The progress of a move can be read meanwhile, and Close ends the
// operation.
func (h *Host) act(ctx context.Context, do func(context.Context) error) error {
	h.acts.Lock()
	defer h.acts.Unlock()
	if h.ctx.Err() != nil {
		return session.ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)() //nolint:contextcheck // h.ctx ends the call
	return refusal(do(ctx))
}

func (h *Host) step(name string) { h.cfg.step(name) }

// Close ends a move, which leaves the valid directory in use, and then the backend.
func (h *Host) Close() error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.stop()
	h.wg.Wait()
	h.acts.Lock()
	defer h.acts.Unlock()
	h.mu.Lock()
	now := h.now
	h.mu.Unlock()
	if now == nil {
		return nil
	}
	return now.Close()
}

// Again opens the data if it is available by now.
func (h *Host) Again(ctx context.Context) error {
	return h.reach(ctx, func(*datadir.Paths) error { return nil })
}

// Accept continues with the directory although its database is not the former database.
func (h *Host) Accept(ctx context.Context) error {
	return h.reach(ctx, func(p *datadir.Paths) error {
		_, err := AcceptData(*p)
		return err
	})
}

// Back continues with the old copy while the data is unavailable.
func (h *Host) Back(ctx context.Context) error {
	return h.reach(ctx, func(p *datadir.Paths) error {
		missing, is := errors.AsType[*datadir.MissingError](p.Check())
		if !is || missing.Old == "" {
			return p.Check()
		}
		return p.Use(missing.Old)
	})
}

func (h *Host) reach(ctx context.Context, change func(*datadir.Paths) error) error {
	return h.act(ctx, func(ctx context.Context) error {
		h.mu.Lock()
		missing, cfg := h.missing, h.cfg
		h.mu.Unlock()
		if missing == nil {
			return nil
		}
		if err := change(&cfg.Places); err != nil {
			return err
		}
		b, err := open(ctx, cfg, h.moving())
		if err != nil {
			return err
		}
		if b.lock == nil {
			return errors.Join(b.holder, b.Close())
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.cfg.Places = b.cfg.Places
		h.takeLocked(b)
		if h.local != 0 {
			b.OpenLocal(h.ctx, h.local) //nolint:contextcheck // as long as the host
		}
		return nil
	})
}
