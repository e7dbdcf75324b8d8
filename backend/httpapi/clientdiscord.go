package httpapi

import (
	"context"
	"net/http"
	"reflect"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/discord"
	"deskhand/backend/requests"
	"deskhand/backend/session"
)

type channelPath struct {
	Channel string `path:"channel" maxLength:"30" doc:"Id of a channel or thread"`
}

// nameSchema names a record in the document. Records of Discord get a prefix, because State and User mean too much, and so do the options and
// rules of requests.
func nameSchema(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	switch {
	case t.PkgPath() == reflect.TypeFor[discord.State]().PkgPath():
		return "Discord" + name
	case t == reflect.TypeFor[requests.Option](), t == reflect.TypeFor[requests.Rule]():
		return "Request" + name
	}
	return name
}

// discordRoutes adds the routes of Discord, which never return the bot's token.
func (c *Client) discordRoutes() {
	register(c, op("discord", http.MethodGet, "discord", "Get the bot, the people whom the bot hears, and the bound channels", http.StatusOK),
		func(context.Context, *struct{}) (*body[discord.State], error) {
			d, err := c.discord()
			if err != nil {
				return nil, problemOf(err)
			}
			return answer(d.State(), nil)
		})
	register(c, op("setUpDiscord", http.MethodPut, "discord", "Change the setup of Discord; a token is checked with Discord before it is kept", http.StatusOK),
		func(ctx context.Context, in *body[discord.Setup]) (*body[discord.State], error) {
			return withDiscord(c, func(d *discord.Surface) (discord.State, error) { return d.SetUp(ctx, in.Body) })
		})
	huma.Register(c.api, op("forgetDiscord", http.MethodDelete, "discord", "Turn Discord off, and delete the token, the people and the bindings", http.StatusNoContent),
		func(ctx context.Context, _ *struct{}) (*none, error) {
			d, err := c.discord()
			if err == nil {
				err = d.Forget(ctx)
			}
			return done(err)
		})
	register(c, op("checkDiscord", http.MethodPost, "discord/check", "Check the setup of Discord", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[discord.Checked], error) {
			return withDiscord(c, func(d *discord.Surface) (discord.Checked, error) { return d.Check(ctx) })
		})
	register(c, op("discordChannels", http.MethodGet, "discord/channels", "List the servers of the bot, and the channels that the bot sees", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[discord.Servers], error) {
			return withDiscord(c, func(d *discord.Surface) (discord.Servers, error) { return d.Channels(ctx) })
		})
	register(c, op("bindDiscord", http.MethodPut, "discord/bindings/{channel}", "Bind a channel to a session, or to a directory and an agent", http.StatusOK),
		func(ctx context.Context, in *struct {
			Channel string `path:"channel" maxLength:"30" doc:"Id of a channel or thread"`
			Body    discord.Bind
		},
		) (*body[discord.Binding], error) {
			return withDiscord(c, func(d *discord.Surface) (discord.Binding, error) { return d.Bind(ctx, in.Channel, in.Body) })
		})
	huma.Register(c.api, op("unbindDiscord", http.MethodDelete, "discord/bindings/{channel}", "Remove a binding; the session stays", http.StatusNoContent),
		func(ctx context.Context, in *channelPath) (*none, error) {
			d, err := c.discord()
			if err == nil {
				err = d.Unbind(ctx, in.Channel)
			}
			return done(err)
		})
}

// discord returns the surface, or an error where newer or damaged data cannot be read.
func (c *Client) discord() (*discord.Surface, error) {
	if c.cfg.Discord == nil {
		if c.cfg.DiscordProblem != "" {
			return nil, &session.RefusedError{Code: "discord.damaged", Params: map[string]string{"detail": c.cfg.DiscordProblem}}
		}
		return nil, &session.RefusedError{Code: "discord.off"}
	}
	return c.cfg.Discord, nil
}

func withDiscord[T any](c *Client, f func(*discord.Surface) (T, error)) (*body[T], error) {
	d, err := c.discord()
	if err != nil {
		return nil, problemOf(err)
	}
	return answer(f(d))
}
