package discordtest

import (
	"net/http"
	"slices"

	"github.com/disgoorg/snowflake/v2"
)

func (api *API) gatewayBot(*request) reply {
	const total, day = 1000, 14400000
	left := api.d.Gateway.startsLeft
	if left < 0 {
		left = total - len(api.d.Gateway.connects)
	}
	return ok(object{
		"url": api.d.Gateway.URL, "shards": 1,
		"session_start_limit": object{"total": total, "remaining": left, "reset_after": day, "max_concurrency": 1},
	})
}

func (api *API) application(*request) reply {
	return ok(object{
		"id": api.d.Application, "name": api.d.users[api.d.Bot].Name, "icon": nil, "description": "", "bot_public": false, "bot_require_code_grant": false,
		"verify_key": "0", "flags": api.d.applicationFlags(), "team": nil, "bot": api.d.userJSON(api.d.Bot), "owner": api.d.userJSON(api.d.Owner),
		"integration_types_config": object{},
	})
}

func (api *API) getUser(r *request) reply {
	id := r.id("user")
	if api.d.users[id] == nil {
		return unknown(10013, "User").reply()
	}
	return ok(api.d.userJSON(id))
}

func (api *API) ownGuilds(*request) reply {
	list := []object{}
	for _, g := range api.d.guilds {
		list = append(list, object{
			"id": g.id, "name": g.name, "icon": nil, "banner": nil, "owner": false, "permissions": permissions(g.everyone | g.bots), "features": []string{},
		})
	}
	return ok(list)
}

func (api *API) openDirect(r *request) reply {
	var in struct {
		To snowflake.ID `json:"recipient_id"`
	}
	if f := r.decode(&in); f != nil {
		return f.reply()
	}
	if api.d.users[in.To] == nil {
		return unknown(10013, "User").reply()
	}
	return ok(api.d.channelJSON(api.d.channels[api.d.direct(in.To)]))
}

func (api *API) guildRoutes() map[string]endpoint {
	return map[string]endpoint{
		"GET /guilds/{guild}":          api.ofGuild(func(g *guild, _ *request) reply { return ok(api.d.guildJSON(g, false)) }),
		"GET /guilds/{guild}/channels": api.ofGuild(func(g *guild, _ *request) reply { return ok(api.d.channelsJSON(g, false)) }),
		"GET /guilds/{guild}/roles":    api.ofGuild(func(g *guild, _ *request) reply { return ok(api.d.rolesJSON(g)) }),
		"GET /guilds/{guild}/threads/active": api.ofGuild(func(g *guild, _ *request) reply {
			return ok(object{"threads": api.d.channelsJSON(g, true), "members": []any{}})
		}),
		"GET /guilds/{guild}/members/{user}": api.ofGuild(api.getMember),
	}
}

// ofGuild returns an endpoint for calls about a guild of the bot.
func (api *API) ofGuild(f func(*guild, *request) reply) endpoint {
	return func(r *request) reply {
		g := api.d.guild(r.id("guild"))
		if g == nil {
			return missingAccess().reply() // Discord does not say whether the guild exists
		}
		return f(g, r)
	}
}

func (api *API) getMember(g *guild, r *request) reply {
	id := r.id("user")
	if r.PathValue("user") == "@me" {
		id = api.d.Bot
	}
	if api.d.users[id] == nil {
		return unknown(10007, "Member").reply()
	}
	o := api.d.memberJSON(g, id)
	o["user"] = api.d.userJSON(id)
	return ok(o)
}

func (api *API) channelRoutes() map[string]endpoint {
	return map[string]endpoint{
		"GET /channels/{channel}":                                             api.ofChannel(func(c *channel, _ *request) reply { return ok(api.d.channelJSON(c)) }),
		"POST /channels/{channel}/typing":                                     api.ofChannel(api.types),
		"POST /channels/{channel}/threads":                                    api.ofChannel(api.createThread),
		"PUT /channels/{channel}/thread-members/@me":                          api.ofChannel(nothing),
		"DELETE /channels/{channel}/thread-members/@me":                       api.ofChannel(nothing),
		"PUT /channels/{channel}/messages/{message}/reactions/{emoji}/@me":    api.ofMessage(api.react),
		"DELETE /channels/{channel}/messages/{message}/reactions/{emoji}/@me": api.ofMessage(api.unreact),
		"GET /channels/{channel}/messages/{message}":                          api.ofMessage(api.getMessage),
		RouteHistory: api.ofChannel(api.history),
		RouteCreate:  api.ofChannel(api.createMessage),
		RouteEdit:    api.ofMessage(api.editMessage),
		RouteDelete:  api.ofMessage(api.deleteMessage),
		RouteThread:  api.ofMessage(api.threadFrom),
	}
}

func nothing(*channel, *request) reply { return done() }

// ofChannel returns an endpoint for calls about a channel that the bot sees.
func (api *API) ofChannel(f func(*channel, *request) reply) endpoint {
	return func(r *request) reply {
		c := api.d.channels[r.id("channel")]
		switch {
		case c == nil || c.gone:
			return unknown(10003, "Channel").reply()
		case !api.d.sees(c):
			return missingAccess().reply()
		}
		return f(c, r)
	}
}

// ofMessage returns an endpoint for calls about a message of a channel.
func (api *API) ofMessage(f func(*message, *request) reply) endpoint {
	return api.ofChannel(func(c *channel, r *request) reply {
		m := api.d.messages[r.id("message")]
		if m == nil || m.deleted || m.channel != c || m.only != nil {
			return unknown(10008, "Message").reply()
		}
		return f(m, r)
	})
}

func (api *API) types(c *channel, _ *request) reply {
	if f := api.d.mayPost(c, false); f != nil {
		return f.reply()
	}
	api.d.typing[c.id]++
	return done()
}

func (api *API) react(m *message, r *request) reply {
	m.reactions = append(m.reactions, r.PathValue("emoji"))
	return done()
}

func (api *API) unreact(m *message, r *request) reply {
	m.reactions = slices.DeleteFunc(m.reactions, func(e string) bool { return e == r.PathValue("emoji") })
	return done()
}

// threadName is the body with which a thread is created.
type threadName struct {
	Name string `json:"name"`
	Type int    `json:"type"`
}

func (n threadName) refused() *failure {
	const longest = 100
	if units(n.Name) < 1 || units(n.Name) > longest {
		return invalid("name", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
	}
	return nil
}

func (api *API) createThread(c *channel, r *request) reply {
	in := threadName{Type: kindThread}
	f := r.decode(&in)
	if f == nil {
		f = in.refused()
	}
	if f == nil && api.d.may(c)&permissionThreads(in.Type) == 0 {
		f = missingPermissions()
	}
	if f == nil && (c.thread() || c.kind == kindVoice || c.kind == kindForum) {
		f = refuse(http.StatusBadRequest, 50024, "Cannot execute action on this channel type")
	}
	if f != nil {
		return f.reply()
	}
	return reply{status: http.StatusCreated, body: api.d.channelJSON(api.d.beginThread(c.id, api.d.Bot, in.Name, 0, in.Type))}
}

func (api *API) threadFrom(m *message, r *request) reply {
	var in threadName
	f := r.decode(&in)
	switch {
	case f != nil:
	case in.refused() != nil:
		f = in.refused()
	case api.d.may(m.channel)&permissionThreads(kindThread) == 0:
		f = missingPermissions()
	case m.channel.thread():
		f = refuse(http.StatusBadRequest, 50024, "Cannot execute action on this channel type")
	case api.d.channels[m.id] != nil:
		f = refuse(http.StatusBadRequest, 160004, "A thread has already been created for this message")
	}
	if f != nil {
		return f.reply()
	}
	kind := kindThread
	if m.channel.kind == kindAnnouncement {
		kind = kindNewsThread
	}
	return reply{status: http.StatusCreated, body: api.d.channelJSON(api.d.beginThread(m.channel.id, api.d.Bot, in.Name, m.id, kind))}
}
