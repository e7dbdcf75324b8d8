package discord

import (
	"context"
	"encoding/json"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/gateway"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"
)

// ready is what Discord says first of a session.
type ready struct {
	Session     string       `json:"session_id"`
	Resume      string       `json:"resume_gateway_url"`
	User        discord.User `json:"user"`
	Application struct {
		ID snowflake.ID `json:"id"`
	} `json:"application"`
}

// guild is a server with its channels, as far as we look at them. The library's own fails as a whole on one kind of channel that it does
// not know.
type guild struct {
	ID          snowflake.ID `json:"id"`
	Name        string       `json:"name"`
	Unavailable bool         `json:"unavailable"` // an outage of Discord's; else it is one that the bot was put out of
	Channels    []place      `json:"channels"`
	Threads     []place      `json:"threads"`
}

// gone names messages that were deleted.
type gone struct {
	ID      snowflake.ID   `json:"id"`
	IDs     []snowflake.ID `json:"ids"`
	Channel snowflake.ID   `json:"channel_id"`
}

// dispatch hands an event to who it is for. One that cannot be read is left out: what it says is not ours to log.
func (g *link) dispatch(p *plug, f frame) error {
	switch f.T {
	case gateway.EventTypeReady:
		return g.ready(p, f.D)
	case gateway.EventTypeResumed:
		return g.opened(p, true)
	default:
		if err := g.l.s.event(f.T, f.D); err != nil {
			g.l.s.cfg.Logger.Warn("an event of Discord cannot be read", "event", string(f.T))
		}
		return nil
	}
}

func (g *link) ready(p *plug, data json.RawMessage) error {
	var r ready
	if err := json.Unmarshal(data, &r); err != nil {
		return err
	}
	g.session, g.address = r.Session, ""
	if address, ok := g.trusted(r.Resume); ok {
		g.address = address
	}
	g.l.mu.Lock()
	g.l.id = r.User.ID
	g.l.mu.Unlock()
	g.l.s.met(Bot{ID: r.User.ID.String(), Name: r.User.EffectiveName(), Application: r.Application.ID.String()})
	g.l.s.spawn(func(ctx context.Context) { g.l.introduce(ctx, r.Application.ID) })
	return g.opened(p, false)
}

// opened tells everybody that what was said meanwhile has come, or comes now.
func (g *link) opened(p *plug, resumed bool) error {
	if err := p.conn.SetReadDeadline(time.Time{}); err != nil { // from now on heartbeats tell whether it lives
		return err
	}
	g.l.set(statusConnected, "", "")
	g.l.s.in.connected(resumed)
	g.l.s.asks.refresh()
	return nil
}

// introduce makes the commands known to Discord, once for each setup, and asks for the names that are not known.
func (l *line) introduce(ctx context.Context, application snowflake.ID) {
	l.mu.Lock()
	known := l.known
	l.known = true
	l.mu.Unlock()
	if known {
		return
	}
	_, err := l.rest.SetGlobalCommands(application, commands(), rest.WithCtx(ctx))
	l.mu.Lock()
	l.commands = ""
	if err != nil {
		l.commands, l.known = why(err), false // the next connection tries again
	}
	l.mu.Unlock()
	if err != nil && ctx.Err() == nil {
		l.s.cfg.Logger.Warn("the commands cannot be made known to Discord", "error", err)
	}
	l.s.nameUsers(ctx)
}

// event hands over what is told of messages, channels and presses.
func (s *Surface) event(kind gateway.EventType, data json.RawMessage) error {
	switch kind {
	case gateway.EventTypeMessageCreate:
		return hand(data, s.in.created)
	case gateway.EventTypeMessageUpdate:
		return hand(data, s.in.updated)
	case gateway.EventTypeMessageDelete, gateway.EventTypeMessageDeleteBulk:
		return hand(data, s.deleted)
	case gateway.EventTypeThreadCreate:
		return hand(data, s.in.threadMade)
	case gateway.EventTypeChannelDelete, gateway.EventTypeThreadDelete:
		return hand(data, func(p place) { s.in.channelGone(p.ID) })
	case gateway.EventTypeChannelUpdate, gateway.EventTypeThreadUpdate:
		return hand(data, func(p place) { s.rename("", p) })
	case gateway.EventTypeGuildCreate:
		return hand(data, s.guildThere)
	case gateway.EventTypeGuildDelete:
		return hand(data, s.guildGone)
	case gateway.EventTypeInteractionCreate:
		return hand(data, s.interaction)
	default:
		return nil
	}
}

func hand[T any](data json.RawMessage, take func(T)) error {
	var v T
	if err := json.Unmarshal(data, &v); err != nil {
		return err
	}
	take(v)
	return nil
}

func (s *Surface) deleted(g gone) {
	if g.ID != 0 {
		g.IDs = append(g.IDs, g.ID)
	}
	for _, id := range g.IDs {
		s.in.deleted(g.Channel, id)
		s.asks.deleted(g.Channel, id)
	}
}

func (s *Surface) interaction(e gateway.EventInteractionCreate) {
	switch i := e.Interaction.(type) {
	case discord.ApplicationCommandInteraction:
		s.in.command(i)
	case discord.ComponentInteraction:
		s.asks.pressed(i)
	case discord.ModalSubmitInteraction:
		s.asks.submitted(i)
	}
}

// rename takes what bound channels are called now.
func (s *Surface) rename(guild string, list ...place) {
	for _, p := range list {
		if _, ok := s.in.bound(p.ID); ok {
			s.spawn(func(ctx context.Context) {
				if err := s.in.renamed(ctx, p.ID, p.Name, guild); err != nil && ctx.Err() == nil {
					s.cfg.Logger.Warn("the name of a channel cannot be written down", "error", err)
				}
			})
		}
	}
}

// guildThere takes that a server is there: which of its channels can be seen is known now.
func (s *Surface) guildThere(g guild) {
	if g.Unavailable {
		return
	}
	seen := map[string]bool{}
	for _, list := range [][]place{g.Channels, g.Threads} {
		s.rename(g.Name, list...)
		for _, p := range list {
			seen[p.ID.String()] = true
		}
	}
	for _, b := range s.in.bindings() {
		switch {
		case b.Guild != g.ID.String():
		case seen[b.Channel] && b.Problem == problemGone:
			s.spawn(func(ctx context.Context) { s.in.trouble(ctx, idOf(b.Channel), "") })
		case !seen[b.Channel] && !b.Thread: // a thread is not named while it sleeps
			s.in.channelGone(idOf(b.Channel))
		}
	}
}

// guildGone takes that the bot was put out of a server.
func (s *Surface) guildGone(g guild) {
	if g.Unavailable {
		return
	}
	for _, b := range s.in.bindings() {
		if b.Guild == g.ID.String() {
			s.in.channelGone(idOf(b.Channel))
		}
	}
}
