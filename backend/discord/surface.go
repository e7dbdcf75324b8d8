// Package discord shows conversations in channels of Discord and takes the messages of listed people there. The package hides Discord:
// its gateway, its limits, the size of its messages. The conversations are those of backend/session; this package stores only which
// message shows which part.
//
// Delivery: a message in a bound channel is stored before the hand-over to its conversation, and is handed over once. An agent's text is
// shown at least in its final form, also after an interruption of the connection; a message of ours that was sent twice is made once.
package discord

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"deskhand/backend/roster"
	"deskhand/backend/session"
	"deskhand/backend/store"
)

// Config configures a surface.
type Config struct {
	Sessions *session.Client
	Agents   *roster.Agents
	Store    *store.DB
	Logger   *slog.Logger
	Version  string
	Token    Vault
}

// Vault keeps the bot's token.
type Vault struct {
	Keep   func(ctx context.Context, token string) (where string, err error) // where: keyring or file
	Value  func(ctx context.Context) (string, error)                         // "" = no token
	Forget func(ctx context.Context) error
}

// Surface is the bot and its messages. Its parts are: the connection to Discord (client.go), the input (inbound.go, commands.go), the
// output (output.go) and the requests (requests.go). The client passes events to the parts one after the other, so the parts have to
// return soon.
type Surface struct {
	cfg      Config
	client   *client
	bindings *bindings
	in       *inbound
	out      *output
	requests *requestCards

	ctx  context.Context //nolint:containedctx // the life of the surface, which outlives every call
	stop context.CancelFunc
	wg   sync.WaitGroup
	news chan struct{} // the state has to be published

	setting sync.Mutex // held while the setup is changed, which asks Discord

	mu      sync.Mutex // protects the fields below
	set     setting
	heard   map[string]bool // the ids of set.Users
	counted Ignored
	started bool
	closed  bool
}

// New reads the setup. Nothing is requested from Discord before Start. The owner of Sessions and Store closes them after the surface.
func New(ctx context.Context, cfg Config) (*Surface, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Surface{cfg: cfg, news: make(chan struct{}, 1)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.client, s.bindings, s.in, s.out, s.requests = newClient(s), newBindings(s), newInbound(s), newOutput(s), newRequestCards(s)
	if err := errors.Join(s.load(ctx), s.bindings.load(ctx)); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// Start opens the connection, if set up, and keeps the connection open. A program that only runs a single command must not call Start: the
// program would take the messages of the channels, and end.
func (s *Surface) Start() {
	s.mu.Lock()
	s.started = true
	s.mu.Unlock()
	s.spawn(s.client.run)
	s.spawn(s.out.run)
	s.spawn(s.announce)
}

// Close ends the connection and all goroutines of the surface, and waits for them.
func (s *Surface) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.wg.Wait()
	s.client.close()
	return nil
}

// spawn runs f as long as the surface lives; Close waits for f. After Close, spawn does nothing.
func (s *Surface) spawn(f func(ctx context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.wg.Go(func() { f(s.ctx) })
	}
}

// changed publishes the state soon, and makes texts and requests move to their present channels. changed returns at once.
func (s *Surface) changed() {
	select {
	case s.news <- struct{}{}:
	default: // will be published anyhow
	}
	s.out.changed()
}

// settle is how long a changed count may wait, so that a busy server does not fill the feed.
const settle = 2 * time.Second

// announce publishes the state after every change, and the counts of ignored messages now and then.
func (s *Surface) announce(ctx context.Context) {
	tick := time.NewTicker(settle)
	defer tick.Stop()
	last := s.State()
	for {
		soon := false
		select {
		case <-ctx.Done():
			return
		case <-s.news:
			soon = true
		case <-tick.C:
		}
		now := s.State()
		if !soon && now.Ignored == last.Ignored {
			continue
		}
		last = now
		s.cfg.Sessions.Publish(EventState, now)
		if soon {
			s.requests.refresh()
		}
	}
}

// write runs f in a write transaction of the store.
func (s *Surface) write(ctx context.Context, f func(*sql.Tx) error) error {
	if err := s.cfg.Store.Write(ctx, f); err != nil {
		return fmt.Errorf("%w: %w", session.ErrStorage, err)
	}
	return nil
}
