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

// Host is a backend whose data directory can be moved while it runs: who is served by it stays where they are, and finds another backend
// behind the same address.
type Host struct {
	cfg    Config
	ctx    context.Context //nolint:containedctx // of what lives as long as the host
	stop   context.CancelFunc
	failed chan error // why it cannot go on, once
	wg     sync.WaitGroup

	acts sync.Mutex // one thing at a time is done that takes as long as a disk, without mu

	mu       sync.Mutex // protects the fields below
	now      *Backend   // nil while the data is not there
	missing  error      // why not: a *datadir.MissingError, or a lost or damaged database
	window   swapped
	listener *Listener
	local    int               // the port of OpenLocal, where that was called
	move     *httpapi.DataMove // that is done, or was done last
	cancel   context.CancelFunc
	closed   bool
}

// OpenHost is Open for a program that stays. With patient it opens although the data directory is not there: see Missing.
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

// takeLocked makes a backend the one that is served.
func (h *Host) takeLocked(b *Backend) {
	window := b.Window()
	h.now, h.missing = b, nil
	h.window.now.Store(&window)
}

// withoutData tells that a start failed for want of its data, which a person can do something about.
func withoutData(err error) bool {
	_, missing := errors.AsType[*datadir.MissingError](err)
	_, lost := errors.AsType[*store.LostError](err)
	_, damaged := errors.AsType[*store.DamagedError](err)
	return missing || lost || damaged
}

// Missing tells why there is no data: a *[datadir.MissingError], or an error of the store for a database that is lost or damaged; nil = it is there.
func (h *Host) Missing() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.missing
}

// Backend is the one that is served now. It is not to be kept.
func (h *Host) Backend() *Backend {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// Failed tells why the host cannot go on: neither directory could be opened after a move.
func (h *Host) Failed() <-chan error { return h.failed }

// Window is the handler for the window's own asset server.
func (h *Host) Window() http.Handler { return &h.window }

// Running counts the turns that run.
func (h *Host) Running() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.now == nil || h.cancel != nil { // a move has ended them, or asks by itself
		return 0
	}
	return h.now.Running()
}

// Programs is Backend.Programs; while the data is not there it is our own environment.
func (h *Host) Programs(ctx context.Context) (env func(name string) string, find func(name string) (string, error)) {
	if b := h.Backend(); b != nil {
		return b.Programs(ctx)
	}
	return os.Getenv, exec.LookPath
}

// Listen is Backend.Listen; what is behind the address changes with the data directory.
func (h *Host) Listen(ctx context.Context, host string, port int) (*Listener, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	l, err := h.now.Listen(ctx, host, port)
	h.listener = l
	return l, err
}

// OpenLocal is Backend.OpenLocal, now or when the data is there.
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

// act does one thing at a time that takes as long as a disk. Who asks how far a move is does not wait for it, and the end of the host ends it.
func (h *Host) act(ctx context.Context, do func(context.Context) error) error {
	h.acts.Lock()
	defer h.acts.Unlock()
	if h.ctx.Err() != nil {
		return session.ErrClosed
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)() //nolint:contextcheck // our end is the call's
	return refusal(do(ctx))
}

func (h *Host) step(name string) { h.cfg.step(name) }

// Close ends a move, which leaves the directory that counts by then, and then the backend.
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

// Again looks whether the data is there by now, and opens it.
func (h *Host) Again(ctx context.Context) error {
	return h.reach(ctx, func(*datadir.Paths) error { return nil })
}

// Accept goes on with the directory as it is, although its database is not the one that was there.
func (h *Host) Accept(ctx context.Context) error {
	return h.reach(ctx, func(p *datadir.Paths) error {
		_, err := AcceptData(*p)
		return err
	})
}

// Back goes on with the old copy while the data is not there.
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
