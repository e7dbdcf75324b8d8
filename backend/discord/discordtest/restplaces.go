package discordtest

import (
	"net/http"
	"slices"

	"github.com/disgoorg/snowflake/v2"
)

func (d *Discord) gatewayBot(*request) reply {
	const total, day = 1000, 14400000
	left := d.faults.startsLeft
	if left < 0 {
		left = total - len(d.connects)
	}
	return ok(object{
		"url": d.gateway, "shards": 1,
		"session_start_limit": object{"total": total, "remaining": left, "reset_after": day, "max_concurrency": 1},
	})
}

func (d *Discord) application(*request) reply {
	return ok(object{
		"id": d.Application, "name": d.users[d.Bot].Name, "icon": nil, "description": "", "bot_public": false, "bot_require_code_grant": false,
		"verify_key": "0", "flags": d.applicationFlags(), "team": nil, "bot": d.userJSON(d.Bot), "owner": d.userJSON(d.Owner),
		"integration_types_config": object{},
	})
}

func (d *Discord) getUser(r *request) reply {
	id := r.id("user")
	if d.users[id] == nil {
		return unknown(10013, "User").reply()
	}
	return ok(d.userJSON(id))
}

func (d *Discord) ownGuilds(*request) reply {
	list := []object{}
	for _, g := range d.guilds {
		list = append(list, object{
			"id": g.id, "name": g.name, "icon": nil, "banner": nil, "owner": false, "permissions": permissions(g.everyone | g.bots), "features": []string{},
		})
	}
	return ok(list)
}

func (d *Discord) openDirect(r *request) reply {
	var in struct {
		To snowflake.ID `json:"recipient_id"`
	}
	if f := r.decode(&in); f != nil {
		return f.reply()
	}
	if d.users[in.To] == nil {
		return unknown(10013, "User").reply()
	}
	return ok(d.channelJSON(d.channels[d.direct(in.To)]))
}

func guildRoutes() map[string]endpoint {
	return map[string]endpoint{
		"GET /guilds/{guild}":          ofGuild(func(d *Discord, g *guild, _ *request) reply { return ok(d.guildJSON(g, false)) }),
		"GET /guilds/{guild}/channels": ofGuild(func(d *Discord, g *guild, _ *request) reply { return ok(d.channelsJSON(g, false)) }),
		"GET /guilds/{guild}/roles":    ofGuild(func(d *Discord, g *guild, _ *request) reply { return ok(d.rolesJSON(g)) }),
		"GET /guilds/{guild}/threads/active": ofGuild(func(d *Discord, g *guild, _ *request) reply {
			return ok(object{"threads": d.channelsJSON(g, true), "members": []any{}})
		}),
		"GET /guilds/{guild}/members/{user}": ofGuild((*Discord).getMember),
	}
}

// ofGuild returns an endpoint for calls about a guild of the bot.
func ofGuild(f func(*Discord, *guild, *request) reply) endpoint {
	return func(d *Discord, r *request) reply {
		g := d.guild(r.id("guild"))
		if g == nil {
			return missingAccess().reply() // Discord does not say whether the guild exists
		}
		return f(d, g, r)
	}
}

func (d *Discord) getMember(g *guild, r *request) reply {
	id := r.id("user")
	if r.PathValue("user") == "@me" {
		id = d.Bot
	}
	if d.users[id] == nil {
		return unknown(10007, "Member").reply()
	}
	o := d.memberJSON(g, id)
	o["user"] = d.userJSON(id)
	return ok(o)
}

func channelRoutes() map[string]endpoint {
	return map[string]endpoint{
		"GET /channels/{channel}":                                             ofChannel(func(d *Discord, c *channel, _ *request) reply { return ok(d.channelJSON(c)) }),
		"POST /channels/{channel}/typing":                                     ofChannel((*Discord).types),
		"POST /channels/{channel}/threads":                                    ofChannel((*Discord).createThread),
		"PUT /channels/{channel}/thread-members/@me":                          ofChannel(nothing),
		"DELETE /channels/{channel}/thread-members/@me":                       ofChannel(nothing),
		"PUT /channels/{channel}/messages/{message}/reactions/{emoji}/@me":    ofMessage((*Discord).react),
		"DELETE /channels/{channel}/messages/{message}/reactions/{emoji}/@me": ofMessage((*Discord).unreact),
		"GET /channels/{channel}/messages/{message}":                          ofMessage((*Discord).getMessage),
		RouteHistory: ofChannel((*Discord).history),
		RouteCreate:  ofChannel((*Discord).createMessage),
		RouteEdit:    ofMessage((*Discord).editMessage),
		RouteDelete:  ofMessage((*Discord).deleteMessage),
		RouteThread:  ofMessage((*Discord).threadFrom),
	}
}

func nothing(*Discord, *channel, *request) reply { return done() }

// ofChannel returns an endpoint for calls about a channel that the bot sees.
func ofChannel(f func(*Discord, *channel, *request) reply) endpoint {
	return func(d *Discord, r *request) reply {
		c := d.channels[r.id("channel")]
		switch {
		case c == nil || c.gone:
			return unknown(10003, "Channel").reply()
		case !d.sees(c):
			return missingAccess().reply()
		}
		return f(d, c, r)
	}
}

// ofMessage returns an endpoint for calls about a message of a channel.
func ofMessage(f func(*Discord, *message, *request) reply) endpoint {
	return ofChannel(func(d *Discord, c *channel, r *request) reply {
		m := d.messages[r.id("message")]
		if m == nil || m.deleted || m.channel != c || m.only != nil {
			return unknown(10008, "Message").reply()
		}
		return f(d, m, r)
	})
}

func (d *Discord) types(c *channel, _ *request) reply {
	if f := d.mayPost(c, false); f != nil {
		return f.reply()
	}
	d.typing[c.id]++
	return done()
}

func (d *Discord) react(m *message, r *request) reply {
	m.reactions = append(m.reactions, r.PathValue("emoji"))
	return done()
}

func (d *Discord) unreact(m *message, r *request) reply {
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

func (d *Discord) createThread(c *channel, r *request) reply {
	in := threadName{Type: kindThread}
	f := r.decode(&in)
	if f == nil {
		f = in.refused()
	}
	if f == nil && d.may(c)&permissionThreads(in.Type) == 0 {
		f = missingPermissions()
	}
	if f == nil && (c.thread() || c.kind == kindVoice || c.kind == kindForum) {
		f = refuse(http.StatusBadRequest, 50024, "Cannot execute action on this channel type")
	}
	if f != nil {
		return f.reply()
	}
	return reply{status: http.StatusCreated, body: d.channelJSON(d.beginThread(c.id, d.Bot, in.Name, 0, in.Type))}
}

func (d *Discord) threadFrom(m *message, r *request) reply {
	var in threadName
	f := r.decode(&in)
	switch {
	case f != nil:
	case in.refused() != nil:
		f = in.refused()
	case d.may(m.channel)&permissionThreads(kindThread) == 0:
		f = missingPermissions()
	case m.channel.thread():
		f = refuse(http.StatusBadRequest, 50024, "Cannot execute action on this channel type")
	case d.channels[m.id] != nil:
		f = refuse(http.StatusBadRequest, 160004, "A thread has already been created for this message")
	}
	if f != nil {
		return f.reply()
	}
	kind := kindThread
	if m.channel.kind == kindAnnouncement {
		kind = kindNewsThread
	}
	return reply{status: http.StatusCreated, body: d.channelJSON(d.beginThread(m.channel.id, d.Bot, in.Name, m.id, kind))}
}
