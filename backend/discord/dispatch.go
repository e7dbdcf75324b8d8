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

// ready is the first event of a session.
type ready struct {
	Session     string       `json:"session_id"`
	Resume      string       `json:"resume_gateway_url"`
	User        discord.User `json:"user"`
	Application struct {
		ID snowflake.ID `json:"id"`
	} `json:"application"`
}

// guild is a server with its channels. The library's own type fails as a whole on a kind of channel that the library does not know.
type guild struct {
	ID          snowflake.ID `json:"id"`
	Name        string       `json:"name"`
	Unavailable bool         `json:"unavailable"` // an outage of Discord; otherwise the bot was removed from the server
	Channels    []place      `json:"channels"`
	Threads     []place      `json:"threads"`
}

// gone names deleted messages.
type gone struct {
	ID      snowflake.ID   `json:"id"`
	IDs     []snowflake.ID `json:"ids"`
	Channel snowflake.ID   `json:"channel_id"`
}

// dispatch passes an event on. An event that cannot be read is skipped, without its content in the log.
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

// opened reports that the messages written meanwhile have come, or come now.
func (g *link) opened(p *plug, resumed bool) error {
	if err := p.conn.SetReadDeadline(time.Time{}); err != nil { // from now on heartbeats show whether the connection lives
		return err
	}
	g.l.set(statusConnected, "", "")
	g.l.s.in.connected(resumed)
	g.l.s.requests.refresh()
	return nil
}

// introduce registers the commands with Discord, once for each setup, and requests unknown names.
func (l *client) introduce(ctx context.Context, application snowflake.ID) {
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

// event passes on an event about messages, channels and presses.
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
		s.requests.deleted(g.Channel, id)
	}
}

func (s *Surface) interaction(e gateway.EventInteractionCreate) {
	switch i := e.Interaction.(type) {
	case discord.ApplicationCommandInteraction:
		s.in.command(i)
	case discord.ComponentInteraction:
		s.requests.pressed(i)
	case discord.ModalSubmitInteraction:
		s.requests.submitted(i)
	}
}

// rename takes the present names of bound channels.
func (s *Surface) rename(guild string, list ...place) {
	for _, p := range list {
		if _, ok := s.bindings.bound(p.ID); ok {
			s.spawn(func(ctx context.Context) {
				if err := s.bindings.renamed(ctx, p.ID, p.Name, guild); err != nil && ctx.Err() == nil {
					s.cfg.Logger.Warn("the name of a channel cannot be written down", "error", err)
				}
			})
		}
	}
}

// guildThere takes that a server is available, with the channels that the bot sees.
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
	for _, b := range s.bindings.list() {
		switch {
		case b.Guild != g.ID.String():
		case seen[b.Channel] && b.Problem == problemGone:
			s.spawn(func(ctx context.Context) { s.bindings.trouble(ctx, idOf(b.Channel), "") })
		case !seen[b.Channel] && !b.Thread: // a sleeping thread is not listed
			s.in.channelGone(idOf(b.Channel))
		}
	}
}

// guildGone takes that the bot was removed from a server.
func (s *Surface) guildGone(g guild) {
	if g.Unavailable {
		return
	}
	for _, b := range s.bindings.list() {
		if b.Guild == g.ID.String() {
			s.in.channelGone(idOf(b.Channel))
		}
	}
}
