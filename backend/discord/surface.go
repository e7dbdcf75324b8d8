// Package discord shows conversations in channels of Discord and takes in what listed people say there. It hides Discord: its gateway,
// its limits, what its messages can hold. The conversations are those of backend/session; nothing of them is kept here but which message
// shows what.
//
// Delivery: what is said in a bound channel is written down before it is handed to its conversation, and once. What an agent says is
// shown at least as of its end, also when the line to Discord was down meanwhile; a message of ours that was sent twice is made once.
package discord

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"deskhand/backend/session"
	"deskhand/backend/store"
)

// Config of a surface.
type Config struct {
	Sessions *session.Client
	Store    *store.DB
	Logger   *slog.Logger
	Version  string
	Token    Vault
}

// Vault keeps the bot's token.
type Vault struct {
	Keep   func(ctx context.Context, token string) (where string, err error) // keyring or file
	Value  func(ctx context.Context) (string, error)                         // "" = there is none
	Forget func(ctx context.Context) error
}

// Surface is the bot and what it shows. Its parts are: the line to Discord (line.go), what comes in (inbound.go, commands.go), what goes
// out (output.go) and what is asked (asks.go). What the line hears it gives to the parts one after the other, so that they return soon.
type Surface struct {
	cfg  Config
	line *line
	in   *inbound
	out  *output
	asks *asks

	ctx  context.Context //nolint:containedctx // the life of the surface, which outlives every call
	stop context.CancelFunc
	wg   sync.WaitGroup
	news chan struct{} // there is something to publish

	setting sync.Mutex // held while the setup is changed, which asks Discord

	mu      sync.Mutex // protects the fields below
	set     setting
	heard   map[string]bool // the ids of set.Users
	counted Ignored
	started bool
	closed  bool
}

// New reads what was set up. Nothing is asked of Discord before Start. The owner of Sessions and Store closes them after the surface.
func New(ctx context.Context, cfg Config) (*Surface, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Surface{cfg: cfg, news: make(chan struct{}, 1)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.line, s.in, s.out, s.asks = newLine(s), newInbound(s), newOutput(s), newAsks(s)
	if err := errors.Join(s.load(ctx), s.in.load(ctx)); err != nil {
		s.stop()
		return nil, err
	}
	return s, nil
}

// Start opens the line, as far as it is set up, and keeps it open. A program that only runs one command leaves it alone: it would take
// what is said in the channels, and end.
func (s *Surface) Start() {
	s.mu.Lock()
	s.started = true
	s.mu.Unlock()
	s.spawn(s.line.run)
	s.spawn(s.out.run)
	s.spawn(s.announce)
}

// Close ends the line and everything that goes on here, and waits for it.
func (s *Surface) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	s.wg.Wait()
	s.line.close()
	return nil
}

// spawn runs f as long as the surface lives; Close waits for it. After Close nothing is run any more.
func (s *Surface) spawn(f func(ctx context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.wg.Go(func() { f(s.ctx) })
	}
}

// changed publishes the state soon, and has what is said and asked shown where it belongs now. It returns at once.
func (s *Surface) changed() {
	select {
	case s.news <- struct{}{}:
	default: // it will be published anyhow
	}
	s.out.changed()
}

// settle is how long what is counted may wait, so that a busy server does not fill the feed.
const settle = 2 * time.Second

// announce publishes the state whenever it has changed, and what was ignored now and then.
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
			s.asks.refresh()
		}
	}
}
