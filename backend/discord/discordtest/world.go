package discordtest

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/snowflake/v2"
)

// object is a JSON object.
type object = map[string]any

// User is a person or a bot.
type User struct {
	ID   snowflake.ID `json:"id"`
	Name string       `json:"name"`
	Bot  bool         `json:"bot,omitempty"`
}

type user struct{ User }

type guild struct {
	id, owner   snowflake.ID
	name        string
	everyone    discord.Permissions
	bots        discord.Permissions // of the role that the bot came with
	botRole     snowflake.ID
	premiumTier int
}

// The kinds of channels, as Discord numbers them.
const (
	kindText         = 0
	kindDirect       = 1
	kindVoice        = 2
	kindAnnouncement = 5
	kindNewsThread   = 10
	kindThread       = 11
	kindPrivate      = 12
	kindForum        = 15
)

type channel struct {
	id, guild, parent snowflake.ID
	owner             snowflake.ID // of a thread; for a direct channel, the person
	name              string
	kind              int
	denied            discord.Permissions // to the bot
	archived, locked  bool
	messages          []*message // by id
	gone              bool
}

func (c *channel) thread() bool {
	return c.kind == kindNewsThread || c.kind == kindThread || c.kind == kindPrivate
}

func (d *Discord) populate() {
	d.Application = d.nextID()
	d.Bot = d.Application
	d.users[d.Bot] = &user{User{d.Bot, "Deskhand", true}}
	d.Owner = d.addUser("owner", false)
	d.Stranger = d.addUser("stranger", false)
	d.Guild = d.addGuild("Workshop")
	d.Channel = d.addChannel(d.Guild, "general", kindText)
}

// AddUser adds a person. Every person is in every guild.
func (d *Discord) AddUser(name string) (id snowflake.ID) {
	d.do(func() { id = d.addUser(name, false) })
	return id
}

// AddBot adds a bot other than the bot under test.
func (d *Discord) AddBot(name string) (id snowflake.ID) {
	d.do(func() { id = d.addUser(name, true) })
	return id
}

func (d *Discord) addUser(name string, bot bool) snowflake.ID {
	id := d.nextID()
	d.users[id] = &user{User{id, name, bot}}
	return id
}

// AddGuild adds the bot to another guild.
func (d *Discord) AddGuild(name string) (id snowflake.ID) {
	d.do(func() {
		id = d.addGuild(name)
		d.dispatch("GUILD_CREATE", intentGuilds, d.guildJSON(d.guild(id), true))
	})
	return id
}

func (d *Discord) addGuild(name string) snowflake.ID {
	g := &guild{
		id: d.nextID(), owner: d.Owner, name: name, botRole: d.nextID(), bots: discord.PermissionsAllText | discord.PermissionsAllThread,
		everyone: discord.PermissionViewChannel | discord.PermissionUseApplicationCommands | discord.PermissionReadMessageHistory |
			discord.PermissionSendMessages | discord.PermissionSendMessagesInThreads | discord.PermissionCreatePublicThreads,
	}
	d.guilds = append(d.guilds, g)
	return g.id
}

// RemoveGuild removes the bot from a guild.
func (d *Discord) RemoveGuild(id snowflake.ID) {
	d.do(func() {
		d.guilds = slices.DeleteFunc(d.guilds, func(g *guild) bool { return g.id == id })
		for _, c := range d.channels {
			c.gone = c.gone || c.guild == id
		}
		d.dispatch("GUILD_DELETE", intentGuilds, object{"id": id})
	})
}

// Premium sets the tier of a guild: tier 2 allows files of 50 MiB, tier 3 of 100 MiB.
func (d *Discord) Premium(id snowflake.ID, tier int) {
	d.do(func() {
		d.guild(id).premiumTier = tier
		d.dispatch("GUILD_UPDATE", intentGuilds, d.guildJSON(d.guild(id), false))
	})
}

// BotPermissions sets the permissions in a guild, of everyone and of the bot's own role.
func (d *Discord) BotPermissions(id snowflake.ID, everyone, bot discord.Permissions) {
	d.do(func() { d.guild(id).everyone, d.guild(id).bots = everyone, bot })
}

// AddChannel adds a channel: text, announcement, voice or forum.
func (d *Discord) AddChannel(guild snowflake.ID, name, kind string) (id snowflake.ID) {
	number, ok := map[string]int{"text": kindText, "announcement": kindAnnouncement, "voice": kindVoice, "forum": kindForum}[kind]
	if !ok {
		panic(fmt.Sprintf("standin: there is no kind %q of channels", kind))
	}
	d.do(func() {
		id = d.addChannel(guild, name, number)
		d.dispatch("CHANNEL_CREATE", intentGuilds, d.channelJSON(d.channels[id]))
	})
	return id
}

func (d *Discord) addChannel(guild snowflake.ID, name string, kind int) snowflake.ID {
	c := &channel{id: d.nextID(), guild: guild, name: name, kind: kind}
	d.channels[c.id] = c
	return c.id
}

// Direct returns the channel between a person and the bot.
func (d *Discord) Direct(user snowflake.ID) (id snowflake.ID) {
	d.do(func() { id = d.direct(user) })
	return id
}

func (d *Discord) direct(user snowflake.ID) snowflake.ID {
	for _, c := range d.channels {
		if c.kind == kindDirect && c.owner == user {
			return c.id
		}
	}
	id := d.addChannel(0, "", kindDirect)
	d.channels[id].owner = user
	return id
}

// RemoveChannel deletes a channel or thread.
func (d *Discord) RemoveChannel(id snowflake.ID) {
	d.do(func() {
		c := d.channels[id]
		c.gone = true
		if c.thread() {
			d.dispatch("THREAD_DELETE", intentGuilds, object{"id": id, "guild_id": c.guild, "parent_id": c.parent, "type": c.kind})
			return
		}
		d.dispatch("CHANNEL_DELETE", intentGuilds, d.channelJSON(c))
	})
}

// Deny takes permissions in a channel from the bot; without permissions Deny gives all back.
func (d *Discord) Deny(id snowflake.ID, permissions ...discord.Permissions) {
	d.do(func() {
		c := d.channels[id]
		c.denied = 0
		for _, p := range permissions {
			c.denied |= p
		}
		if d.sees(c) {
			d.dispatch("CHANNEL_UPDATE", intentGuilds, d.channelJSON(c))
		}
	})
}

// Thread starts a thread of a person from a message, or without a message when from is 0. In a forum the thread is a post and text its
// first message.
func (d *Discord) Thread(parent, user snowflake.ID, name string, from snowflake.ID, text ...string) (id snowflake.ID) {
	d.do(func() { id = d.beginThread(parent, user, name, from, kindThread).id })
	for _, t := range text {
		d.Say(id, user, t)
	}
	return id
}

// Archive archives a thread, as Discord does by itself after some days, and locks it.
func (d *Discord) Archive(thread snowflake.ID, locked bool) {
	d.do(func() { d.archive(d.channels[thread], true, locked) })
}

func (d *Discord) archive(c *channel, archived, locked bool) {
	c.archived, c.locked = archived, locked
	if d.sees(c) {
		d.dispatch("THREAD_UPDATE", intentGuilds, d.channelJSON(c))
	}
}

// beginThread starts a thread. A thread from a message has the id of that message, as at Discord.
func (d *Discord) beginThread(parent, user snowflake.ID, name string, from snowflake.ID, kind int) *channel {
	id := from
	if id == 0 {
		id = d.nextID()
	}
	c := &channel{id: id, guild: d.channels[parent].guild, parent: parent, owner: user, name: name, kind: kind}
	d.channels[id] = c
	if d.sees(c) {
		made := d.channelJSON(c)
		made["newly_created"] = true
		d.dispatch("THREAD_CREATE", intentGuilds, made)
	}
	switch {
	case from != 0:
		first := d.messages[from]
		first.flags |= flagHasThread
		d.tell("MESSAGE_UPDATE", first)
		starter := d.newMessage(c, user, messageThreadStarter)
		starter.reference = &reference{Message: from, Channel: parent}
		d.post(starter)
	case d.channels[parent].kind != kindForum:
		made := d.newMessage(d.channels[parent], user, messageThreadCreated)
		made.text, made.reference = name, &reference{Channel: id}
		d.post(made)
	}
	return c
}

// nextID returns the next snowflake: from Discord's clock and larger than every id before.
func (d *Discord) nextID() snowflake.ID {
	d.lastID = max(d.lastID+1, snowflake.New(d.now()))
	return d.lastID
}

// now returns the time by Discord's clock.
func (d *Discord) now() time.Time { return time.Now().Add(d.skew) }

func (d *Discord) guild(id snowflake.ID) *guild {
	for _, g := range d.guilds {
		if g.id == id {
			return g
		}
	}
	return nil
}

func (d *Discord) channelIDs() []snowflake.ID {
	return slices.Sorted(maps.Keys(d.channels))
}

// may returns the permissions of the bot in a channel.
func (d *Discord) may(c *channel) discord.Permissions {
	if c.kind == kindDirect {
		return discord.PermissionsAllText
	}
	g := d.guild(c.guild)
	if g == nil {
		return 0
	}
	all := (g.everyone | g.bots) &^ c.denied
	if c.thread() {
		all &^= d.channels[c.parent].denied
	}
	return all
}

func (d *Discord) sees(c *channel) bool {
	return !c.gone && d.may(c)&discord.PermissionViewChannel != 0
}

func permissions(p discord.Permissions) string { return strconv.FormatInt(int64(p), 10) }

func (d *Discord) userJSON(id snowflake.ID) object {
	u := d.users[id]
	o := object{
		"id": id, "username": u.Name, "discriminator": "0", "global_name": nil, "avatar": nil, "banner": nil, "accent_color": nil,
		"public_flags": 0, "avatar_decoration_data": nil, "collectibles": nil, "primary_guild": nil,
	}
	if u.Bot {
		o["bot"], o["discriminator"] = true, "0001"
	}
	return o
}

func (d *Discord) memberJSON(g *guild, id snowflake.ID) object {
	roles := []snowflake.ID{}
	if id == d.Bot {
		roles = append(roles, g.botRole)
	}
	return object{
		"roles": roles, "joined_at": stamp(g.id.Time()), "nick": nil, "avatar": nil, "banner": nil, "premium_since": nil, "deaf": false,
		"mute": false, "pending": false, "flags": 0, "communication_disabled_until": nil,
	}
}

func (d *Discord) guildJSON(g *guild, whole bool) object {
	o := object{
		"id": g.id, "name": g.name, "icon": nil, "splash": nil, "discovery_splash": nil, "owner_id": g.owner, "afk_channel_id": nil,
		"afk_timeout": 300, "verification_level": 1, "default_message_notifications": 1, "explicit_content_filter": 0, "features": []string{},
		"mfa_level": 0, "application_id": nil, "system_channel_id": nil, "system_channel_flags": 0, "rules_channel_id": nil,
		"max_members": 500000, "vanity_url_code": nil, "description": nil, "banner": nil, "premium_tier": g.premiumTier,
		"premium_subscription_count": 0, "preferred_locale": "en-US", "public_updates_channel_id": nil, "nsfw_level": 0,
		"premium_progress_bar_enabled": false, "safety_alerts_channel_id": nil, "stickers": []any{}, "emojis": []any{}, "roles": d.rolesJSON(g),
	}
	if !whole {
		return o
	}
	own := d.memberJSON(g, d.Bot)
	own["user"] = d.userJSON(d.Bot)
	o["channels"], o["threads"] = d.channelsJSON(g, false), d.channelsJSON(g, true)
	o["members"], o["member_count"], o["joined_at"] = []any{own}, len(d.users), stamp(g.id.Time())
	o["large"], o["unavailable"] = false, false
	for _, empty := range []string{"voice_states", "presences", "stage_instances", "guild_scheduled_events", "soundboard_sounds"} {
		o[empty] = []any{}
	}
	return o
}

func (d *Discord) rolesJSON(g *guild) []object {
	role := func(id snowflake.ID, name string, p discord.Permissions, position int) object {
		return object{
			"id": id, "name": name, "description": nil, "color": 0, "hoist": false, "position": position, "permissions": permissions(p),
			"managed": position > 0, "icon": nil, "unicode_emoji": nil, "mentionable": false, "flags": 0,
			"colors": object{"primary_color": 0, "secondary_color": nil, "tertiary_color": nil},
		}
	}
	bots := role(g.botRole, d.users[d.Bot].Name, g.bots, 1)
	bots["tags"] = object{"bot_id": d.Bot}
	return []object{role(g.id, "@everyone", g.everyone, 0), bots}
}

// channelsJSON returns the channels of a guild, or its active threads.
func (d *Discord) channelsJSON(g *guild, threads bool) []object {
	list := []object{}
	for _, id := range d.channelIDs() {
		if c := d.channels[id]; c.guild == g.id && !c.gone && c.thread() == threads && (!threads || !c.archived && d.sees(c)) {
			list = append(list, d.channelJSON(c))
		}
	}
	return list
}

func (d *Discord) channelJSON(c *channel) object {
	o := object{"id": c.id, "type": c.kind, "flags": 0, "last_message_id": nil}
	if n := len(c.messages); n > 0 {
		o["last_message_id"] = c.messages[n-1].id
	}
	switch {
	case c.kind == kindDirect:
		o["recipients"] = []any{d.userJSON(c.owner)}
		return o
	case c.thread():
		o["owner_id"], o["message_count"], o["total_message_sent"], o["member_count"] = c.owner, len(c.messages), len(c.messages), 1
		o["thread_metadata"] = object{
			"archived": c.archived, "auto_archive_duration": 4320, "archive_timestamp": stamp(c.id.Time()), "locked": c.locked,
			"create_timestamp": stamp(c.id.Time()),
		}
		o["parent_id"] = c.parent
	default:
		overwrites := []any{}
		if c.denied != 0 {
			overwrites = append(overwrites, object{"id": d.Bot, "type": 1, "allow": "0", "deny": permissions(c.denied)})
		}
		o["permission_overwrites"], o["parent_id"], o["topic"], o["nsfw"], o["position"] = overwrites, nil, nil, false, 0
	}
	o["guild_id"], o["name"], o["rate_limit_per_user"] = c.guild, c.name, 0
	return o
}

// stamp returns t as Discord writes times.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000000+00:00") }

// madeToken returns a token in the form of Discord's tokens: the id, a time and a signature.
func madeToken(id snowflake.ID) string {
	return base64.RawStdEncoding.EncodeToString([]byte(id.String())) + ".GsTand." + "in0nLoopbackOnlyOfNoWorthAnywhere00000"
}

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

// byID compares a message with an id, for binary searches.
func byID(m *message, id snowflake.ID) int { return cmp.Compare(m.id, id) }
