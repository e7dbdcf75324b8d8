package discord

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deskhand/backend/agents"
	"deskhand/backend/agenttest"
	"deskhand/backend/discord/discordtest"
	"deskhand/backend/feed"
	"deskhand/backend/files"
	"deskhand/backend/lifecycle"
	"deskhand/backend/proxy"
	"deskhand/backend/requests"
	"deskhand/backend/roster"
	"deskhand/backend/session"
	"deskhand/backend/settings"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
	"deskhand/backend/testkit"
	"deskhand/backend/vault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a client with a data directory of its own: what a surface shows.
type fixture struct {
	*session.Client
	roster *roster.Agents
	t      testing.TB
	dir    string // of the data
	work   string // where agents work
	db     *store.DB
	close  func()
}

func openFixture(tb testing.TB, dir string) *fixture {
	tb.Helper()
	return openFixtureWith(tb, dir, session.Config{})
}

// openFixtureWith is openFixture with a config, to which the fields that every client needs are added.
func openFixtureWith(tb testing.TB, dir string, cfg session.Config) *fixture {
	tb.Helper()
	db := storetest.Open(tb, dir)
	set, err := proxy.Open(proxy.Config{})
	if err != nil {
		tb.Fatal(err)
	}
	catalogue := agents.Open(agents.Config{
		Self: agenttest.Program(tb), File: filepath.Join(dir, "agents.json"), Vault: vault.Open(vault.Config{File: filepath.Join(dir, "logins.json"), WriteFile: store.WriteFile}), WriteFile: store.WriteFile,
		Environ: append(os.Environ(), "DESKHAND_DEMO_STATE="+filepath.Join(dir, "demo")),
	})
	cfg.Store, cfg.Agents, cfg.Proxy, cfg.Version, cfg.Replace = db, catalogue, set, "test", files.Replace
	cfg.Patience = 300 * time.Millisecond
	if cfg.Settings == nil {
		cfg.Settings = settings.New(filepath.Join(dir, "settings.json"))
	}
	cfg.Roster = roster.New(roster.Deps{Catalogue: catalogue})
	c, err := session.Open(tb.Context(), cfg)
	if err != nil {
		tb.Fatal(err)
	}
	d := &fixture{Client: c, roster: cfg.Roster, t: tb, dir: dir, db: db, work: filepath.Join(dir, "work")}
	if err := os.MkdirAll(d.work, 0o700); err != nil {
		tb.Fatal(err)
	}
	closed := false
	d.close = func() {
		if closed {
			return
		}
		closed = true
		if err := errors.Join(c.Close(), catalogue.Close(), set.Close(), db.Close()); err != nil {
			tb.Error(err)
		}
	}
	tb.Cleanup(d.close)
	return d
}

func (d *fixture) create() session.Session {
	d.t.Helper()
	s, err := d.Create(d.t.Context(), session.New{Agent: "mock", Cwd: d.work})
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

func (d *fixture) get(id string) session.Session {
	d.t.Helper()
	s, err := d.Get(d.t.Context(), id)
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// until waits, by the feed, until the condition holds.
func (d *fixture) until(what string, holds func() bool) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), testkit.Limit)
	defer cancel()
	q := feed.Query{Gen: d.Feed().Gen(), Wait: 200 * time.Millisecond}
	for !holds() {
		batch, err := d.Feed().After(ctx, q)
		if err != nil || ctx.Err() != nil {
			d.t.Fatalf("until: got no %s, want it", what)
		}
		q.After = batch.Seq
	}
}

// works waits until a session's turn is with the agent.
func (d *fixture) works(id string) {
	d.t.Helper()
	d.until("running turn", func() bool { return d.get(id).Phase == lifecycle.Working })
}

// idle waits until no turn runs and gives the transcript. What is stored of a turn that begins can be read a moment before the session shows the
// turn: the list of the queue comes from the session itself, after that moment.
func (d *fixture) idle(id string) session.Transcript {
	d.t.Helper()
	if _, err := d.Queue(d.t.Context(), id); err != nil {
		d.t.Fatal(err)
	}
	d.until("end of the turn", func() bool {
		s := d.get(id)
		return s.Turn == nil && s.Phase != lifecycle.Starting && s.Phase != lifecycle.Replaying
	})
	t, err := d.Transcripts().Entries(d.t.Context(), id, 0, 1000)
	if err != nil {
		d.t.Fatal(err)
	}
	return t
}

// request waits for the request that waits.
func (d *fixture) request(id string) requests.Request {
	d.t.Helper()
	var found requests.Request
	d.until("request", func() bool {
		list, err := d.Requests().Waiting(d.t.Context())
		if err != nil {
			d.t.Fatal(err)
		}
		i := slices.IndexFunc(list, func(r requests.Request) bool { return r.Session == id })
		if i >= 0 {
			found = list[i]
		}
		return i >= 0
	})
	return found
}

// bot is a surface that is connected to a stand-in, where its owner is heard.
type bot struct {
	*fixture
	dc *discordtest.Discord
	s  *Surface
}

func openBot(tb testing.TB) *bot {
	tb.Helper()
	return openBotAt(tb, discordtest.New(discordtest.Options{RealHosts: true, Answer: time.Minute}), tb.TempDir())
}

// openBotAt is openBot for a stand-in and a data directory that may have been there before.
func openBotAt(tb testing.TB, dc *discordtest.Discord, dir string) *bot {
	tb.Helper()
	b := openBotWith(tb, dc, dir, func(*setting) {})
	b.until("line", func() bool { return b.s.State().Status == statusConnected })
	return b
}

// openBotWith is openBotAt with another setup, which need not connect.
func openBotWith(tb testing.TB, dc *discordtest.Discord, dir string, change func(*setting)) *bot {
	tb.Helper()
	tb.Cleanup(dc.Close)
	b := &bot{fixture: openFixture(tb, dir), dc: dc}
	wanted := setting{Enabled: true, TokenIn: "file", Users: []User{{ID: dc.Owner.String(), Name: "owner"}}, REST: dc.API.URL, Gateway: dc.Gateway.URL}
	change(&wanted)
	set, err := json.Marshal(wanted)
	if err != nil {
		tb.Fatal(err)
	}
	err = b.db.Write(tb.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(tb.Context(), `INSERT INTO discord_setting (id, data) VALUES (1, ?) ON CONFLICT DO NOTHING`, string(set))
		return err
	})
	if err != nil {
		tb.Fatal(err)
	}
	b.s, err = New(tb.Context(), Config{
		Sessions: b.Client, Agents: b.roster, Store: b.db, Version: "test", Logger: slog.New(slog.NewTextHandler(tb.Output(), nil)),
		Token: Vault{Value: func(context.Context) (string, error) { return dc.Token, nil }},
	})
	if err != nil {
		tb.Fatal(err)
	}
	// All of the surface ends before the desk does.
	shut, closed := b.close, false
	b.close = func() {
		if closed {
			return
		}
		closed = true
		if err := b.s.Close(); err != nil {
			tb.Error(err)
		}
		shut()
	}
	tb.Cleanup(b.close)
	b.s.in.outside = dc.CDN.Client
	b.s.client.unit = 10 * time.Millisecond
	b.s.requests.ack = time.Minute
	b.s.Start()
	return b
}

// away has something happen at Discord while the line is down; what was missed is not sent again by itself.
func (b *bot) away(meanwhile func()) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), testkit.Limit)
	defer cancel()
	b.dc.Down(false, true)
	b.dc.Gateway.Forget()
	b.dc.Gateway.Drop()
	if err := b.dc.Wait(ctx, func(s discordtest.Seen) bool { return s.Lines() == 0 }); err != nil {
		b.t.Fatal(err)
	}
	meanwhile()
	b.dc.Down(false, false)
	if err := b.dc.Wait(ctx, func(s discordtest.Seen) bool { return s.Lines() == 1 }); err != nil {
		b.t.Fatal(err)
	}
}
