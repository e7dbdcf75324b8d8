package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"deskhand/backend"
	"deskhand/backend/datadir"
)

type acpCommand struct {
	common
	Agent string `required:"" help:"The agent, by its id."`
	Login bool   `help:"Sign in to the agent at this terminal, and end."`
}

// Run serves an editor as its agent: the command speaks ACP on standard input and output. A session that the editor begins belongs to the
// running app, or to this process when no app runs.
func (c *acpCommand) Run(p *Program) error {
	if c.Login {
		return (&loginCommand{common: c.common, Agent: c.Agent}).Run(p)
	}
	cfg, log, err := p.config(c.common, "command")
	if err != nil {
		return err
	}
	defer log.Close()
	ctx, stop := interruptible()
	defer stop()
	n := &nearest{cfg: cfg}
	calls := &http.Transport{DialContext: n.dial}
	err = backend.ServeEditor(ctx, backend.EditorConfig{
		HTTP: &http.Client{Transport: spoken{"editor", calls}}, Agent: c.Agent, Version: p.Version, Self: cfg.Self, Args: p.Args,
		Login: []string{"--login"}, Tell: func(text string) { p.say("deskhand: %s\n", text) },
	}, p.Stdin, p.Stdout)
	if ctx.Err() == nil {
		n.outlast(ctx, p)
	} else {
		err = nil // a signal has asked this process to end, which is no failure
	}
	calls.CloseIdleConnections()
	return errors.Join(err, n.close())
}

// spoken is a transport that sets the header naming the surface on every call.
type spoken struct {
	surface string
	next    http.RoundTripper
}

func (s spoken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(backend.SurfaceHeader, s.surface)
	return s.next.RoundTrip(r)
}

// nearest finds, at every call, the process that holds the data directory. When no process holds the directory, nearest opens the directory in
// this process: an editor may start before Deskhand does, or stay open when Deskhand ends.
type nearest struct {
	cfg backend.Config

	mu  sync.Mutex // protects own, and serialises the search
	own *backend.Backend
}

func (n *nearest) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	const tries, pause = 20, 100 * time.Millisecond // a process that has just taken the directory gets a moment to open its socket
	var err error
	for range tries {
		var conn net.Conn
		if conn, err = dialOwner(ctx, n.cfg.Places); err == nil {
			return conn, nil
		}
		if err := n.become(ctx); err != nil {
			return nil, err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return nil, fmt.Errorf("the running Deskhand does not answer: %w", err)
}

// become opens the data directory in this process, unless another process holds the directory.
func (n *nearest) become(ctx context.Context) error {
	if n.own != nil {
		return nil
	}
	b, err := backend.Open(context.WithoutCancel(ctx), n.cfg)
	if err != nil {
		return err
	}
	if b.Alone() != nil {
		return b.Close()
	}
	n.own = b
	frugal()
	return nil
}

func dialOwner(ctx context.Context, places datadir.Paths) (net.Conn, error) {
	owner, err := places.Owner()
	if err != nil {
		return nil, err
	}
	var d net.Dialer
	return d.DialContext(ctx, "unix", owner.Socket)
}

// outlast waits for the turns that run in this process after the editor is gone.
func (n *nearest) outlast(ctx context.Context, p *Program) {
	n.mu.Lock()
	b := n.own
	n.mu.Unlock()
	if b == nil || b.Running() == 0 {
		return
	}
	p.say("deskhand: the editor is gone; its turn is brought to an end\n")
	lastTurns(ctx, b.Running, b.Working)
}

// personsTime limits how long this process waits for turns that wait for a person: as long as this process holds the data, a person who opens
// Deskhand cannot answer them.
const personsTime = 10 * time.Minute

// lastTurns waits until no turn runs, or until every running turn has waited for a person for personsTime without any work in between.
func lastTurns(ctx context.Context, running, working func() int) {
	const pause = 200 * time.Millisecond
	again := time.NewTicker(pause)
	defer again.Stop()
	for since := time.Now(); running() > 0 && time.Since(since) < personsTime; {
		if working() > 0 {
			since = time.Now()
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return
		}
	}
}

func (n *nearest) close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.own == nil {
		return nil
	}
	return n.own.Close()
}
