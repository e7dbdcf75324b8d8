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

// Run is an agent for an editor: on standard input and output it speaks ACP, and what the editor begins is a session of the running app,
// or of this process when none runs.
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
		err = nil // somebody wants us to end, and says so by a signal
	}
	calls.CloseIdleConnections()
	return errors.Join(err, n.close())
}

// spoken says with each call who makes it.
type spoken struct {
	surface string
	next    http.RoundTripper
}

// RoundTrip makes the call.
func (s spoken) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set(backend.SurfaceHeader, s.surface)
	return s.next.RoundTrip(r)
}

// nearest finds the process that has the data directory, whenever it is asked. When there is none, it becomes that itself: an editor may
// be opened before Deskhand is, or stay open when Deskhand ends.
type nearest struct {
	cfg backend.Config

	mu  sync.Mutex // protects own, and has one look at a time
	own *backend.Backend
}

func (n *nearest) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	const tries, pause = 20, 100 * time.Millisecond // one that has just taken the directory gets a moment to open its socket
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

// become takes the data directory, unless somebody has it.
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

// outlast lets the turns end that run in this process, when the editor is gone.
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

// personsTime is how long turns that wait for a person have: whoever opens Deskhand then cannot, as long as this process has its data.
const personsTime = 10 * time.Minute

// lastTurns waits until no turn runs, or all that do have waited for a person for long enough: none has worked since.
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
