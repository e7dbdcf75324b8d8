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
	"sync"
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

// change wakes everyone who waits for a change. The caller holds the lock.
func (w *World) change() {
	close(w.changed)
	w.changed = make(chan struct{})
}

// do runs f under the lock and then wakes everyone who waits for a change.
func (w *World) do(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	w.change()
}

// World is the content of a stand-in: its people and bots, guilds, channels and messages. The exported methods of World act as people, or
// change the guilds and channels that the bot sees.
type World struct {
	Token       string
	Bot         snowflake.ID // the bot's user
	Application snowflake.ID
	Guild       snowflake.ID
	Channel     snowflake.ID // "general"
	Owner       snowflake.ID // a person whom tests let in
	Stranger    snowflake.ID // a person whom tests do not let in

	gateway *Gateway // receives the events
	cdn     *CDN     // has the files of the messages

	mu          sync.Mutex    // protects the fields below and the other parts of the stand-in
	changed     chan struct{} // closed at each change
	skew        time.Duration
	lastID      snowflake.ID
	users       map[snowflake.ID]*user
	guilds      []*guild
	channels    map[snowflake.ID]*channel
	messages    map[snowflake.ID]*message // deleted messages too
	typing      map[snowflake.ID]int
	revoked     bool  // the token is invalid
	noContent   bool  // the bot lacks the intent for the content of messages
	uploadLimit int64 // 0 = by the guild's tier
}

func newWorld(o Options) *World {
	w := &World{
		Token: o.Token, changed: make(chan struct{}), skew: o.Clock, noContent: o.NoContent, users: map[snowflake.ID]*user{},
		channels: map[snowflake.ID]*channel{}, messages: map[snowflake.ID]*message{}, typing: map[snowflake.ID]int{},
	}
	w.populate()
	if w.Token == "" {
		w.Token = madeToken(w.Application)
	}
	return w
}

func (w *World) populate() {
	w.Application = w.nextID()
	w.Bot = w.Application
	w.users[w.Bot] = &user{User{w.Bot, "Deskhand", true}}
	w.Owner = w.addUser("owner", false)
	w.Stranger = w.addUser("stranger", false)
	w.Guild = w.addGuild("Workshop")
	w.Channel = w.addChannel(w.Guild, "general", kindText)
}

// AddUser adds a person. Every person is in every guild.
func (w *World) AddUser(name string) (id snowflake.ID) {
	w.do(func() { id = w.addUser(name, false) })
	return id
}

// AddBot adds a bot other than the bot under test.
func (w *World) AddBot(name string) (id snowflake.ID) {
	w.do(func() { id = w.addUser(name, true) })
	return id
}

func (w *World) addUser(name string, bot bool) snowflake.ID {
	id := w.nextID()
	w.users[id] = &user{User{id, name, bot}}
	return id
}

// AddGuild adds the bot to another guild.
func (w *World) AddGuild(name string) (id snowflake.ID) {
	w.do(func() {
		id = w.addGuild(name)
		w.gateway.dispatch("GUILD_CREATE", intentGuilds, w.guildJSON(w.guild(id), true))
	})
	return id
}

func (w *World) addGuild(name string) snowflake.ID {
	g := &guild{
		id: w.nextID(), owner: w.Owner, name: name, botRole: w.nextID(), bots: discord.PermissionsAllText | discord.PermissionsAllThread,
		everyone: discord.PermissionViewChannel | discord.PermissionUseApplicationCommands | discord.PermissionReadMessageHistory |
			discord.PermissionSendMessages | discord.PermissionSendMessagesInThreads | discord.PermissionCreatePublicThreads,
	}
	w.guilds = append(w.guilds, g)
	return g.id
}

// RemoveGuild removes the bot from a guild.
func (w *World) RemoveGuild(id snowflake.ID) {
	w.do(func() {
		w.guilds = slices.DeleteFunc(w.guilds, func(g *guild) bool { return g.id == id })
		for _, c := range w.channels {
			c.gone = c.gone || c.guild == id
		}
		w.gateway.dispatch("GUILD_DELETE", intentGuilds, object{"id": id})
	})
}

// Premium sets the tier of a guild: tier 2 allows files of 50 MiB, tier 3 of 100 MiB.
func (w *World) Premium(id snowflake.ID, tier int) {
	w.do(func() {
		w.guild(id).premiumTier = tier
		w.gateway.dispatch("GUILD_UPDATE", intentGuilds, w.guildJSON(w.guild(id), false))
	})
}

// BotPermissions sets the permissions in a guild, of everyone and of the bot's own role.
func (w *World) BotPermissions(id snowflake.ID, everyone, bot discord.Permissions) {
	w.do(func() { w.guild(id).everyone, w.guild(id).bots = everyone, bot })
}

// AddChannel adds a channel: text, announcement, voice or forum.
func (w *World) AddChannel(guild snowflake.ID, name, kind string) (id snowflake.ID) {
	number, ok := map[string]int{"text": kindText, "announcement": kindAnnouncement, "voice": kindVoice, "forum": kindForum}[kind]
	if !ok {
		panic(fmt.Sprintf("standin: there is no kind %q of channels", kind))
	}
	w.do(func() {
		id = w.addChannel(guild, name, number)
		w.gateway.dispatch("CHANNEL_CREATE", intentGuilds, w.channelJSON(w.channels[id]))
	})
	return id
}

func (w *World) addChannel(guild snowflake.ID, name string, kind int) snowflake.ID {
	c := &channel{id: w.nextID(), guild: guild, name: name, kind: kind}
	w.channels[c.id] = c
	return c.id
}

// Direct returns the channel between a person and the bot.
func (w *World) Direct(user snowflake.ID) (id snowflake.ID) {
	w.do(func() { id = w.direct(user) })
	return id
}

func (w *World) direct(user snowflake.ID) snowflake.ID {
	for _, c := range w.channels {
		if c.kind == kindDirect && c.owner == user {
			return c.id
		}
	}
	id := w.addChannel(0, "", kindDirect)
	w.channels[id].owner = user
	return id
}

// RemoveChannel deletes a channel or thread.
func (w *World) RemoveChannel(id snowflake.ID) {
	w.do(func() {
		c := w.channels[id]
		c.gone = true
		if c.thread() {
			w.gateway.dispatch("THREAD_DELETE", intentGuilds, object{"id": id, "guild_id": c.guild, "parent_id": c.parent, "type": c.kind})
			return
		}
		w.gateway.dispatch("CHANNEL_DELETE", intentGuilds, w.channelJSON(c))
	})
}

// Deny takes permissions in a channel from the bot; without permissions Deny gives all back.
func (w *World) Deny(id snowflake.ID, permissions ...discord.Permissions) {
	w.do(func() {
		c := w.channels[id]
		c.denied = 0
		for _, p := range permissions {
			c.denied |= p
		}
		if w.sees(c) {
			w.gateway.dispatch("CHANNEL_UPDATE", intentGuilds, w.channelJSON(c))
		}
	})
}

// Thread starts a thread of a person from a message, or without a message when from is 0. In a forum the thread is a post and text its
// first message.
func (w *World) Thread(parent, user snowflake.ID, name string, from snowflake.ID, text ...string) (id snowflake.ID) {
	w.do(func() { id = w.beginThread(parent, user, name, from, kindThread).id })
	for _, t := range text {
		w.Say(id, user, t)
	}
	return id
}

// Archive archives a thread, as Discord does by itself after some days, and locks it.
func (w *World) Archive(thread snowflake.ID, locked bool) {
	w.do(func() { w.archive(w.channels[thread], true, locked) })
}

func (w *World) archive(c *channel, archived, locked bool) {
	c.archived, c.locked = archived, locked
	if w.sees(c) {
		w.gateway.dispatch("THREAD_UPDATE", intentGuilds, w.channelJSON(c))
	}
}

// beginThread starts a thread. A thread from a message has the id of that message, as at Discord.
func (w *World) beginThread(parent, user snowflake.ID, name string, from snowflake.ID, kind int) *channel {
	id := from
	if id == 0 {
		id = w.nextID()
	}
	c := &channel{id: id, guild: w.channels[parent].guild, parent: parent, owner: user, name: name, kind: kind}
	w.channels[id] = c
	if w.sees(c) {
		made := w.channelJSON(c)
		made["newly_created"] = true
		w.gateway.dispatch("THREAD_CREATE", intentGuilds, made)
	}
	switch {
	case from != 0:
		first := w.messages[from]
		first.flags |= flagHasThread
		w.tell("MESSAGE_UPDATE", first)
		starter := w.newMessage(c, user, messageThreadStarter)
		starter.reference = &reference{Message: from, Channel: parent}
		w.post(starter)
	case w.channels[parent].kind != kindForum:
		made := w.newMessage(w.channels[parent], user, messageThreadCreated)
		made.text, made.reference = name, &reference{Channel: id}
		w.post(made)
	}
	return c
}

// nextID returns the next snowflake: from Discord's clock and larger than every id before.
func (w *World) nextID() snowflake.ID {
	w.lastID = max(w.lastID+1, snowflake.New(w.now()))
	return w.lastID
}

// now returns the time by Discord's clock.
func (w *World) now() time.Time { return time.Now().Add(w.skew) }

func (w *World) guild(id snowflake.ID) *guild {
	for _, g := range w.guilds {
		if g.id == id {
			return g
		}
	}
	return nil
}

func (w *World) channelIDs() []snowflake.ID {
	return slices.Sorted(maps.Keys(w.channels))
}

// may returns the permissions of the bot in a channel.
func (w *World) may(c *channel) discord.Permissions {
	if c.kind == kindDirect {
		return discord.PermissionsAllText
	}
	g := w.guild(c.guild)
	if g == nil {
		return 0
	}
	all := (g.everyone | g.bots) &^ c.denied
	if c.thread() {
		all &^= w.channels[c.parent].denied
	}
	return all
}

func (w *World) sees(c *channel) bool {
	return !c.gone && w.may(c)&discord.PermissionViewChannel != 0
}

// Clock sets how far Discord's clock is from ours: the Date header, the times of rate limits and the ids. A test calls Clock before the
// first message, since a clock that goes back makes later ids smaller than earlier ids.
func (w *World) Clock(skew time.Duration) { w.do(func() { w.skew, w.lastID = skew, 0 }) }

// UploadLimit sets the largest size of a file; 0 = the size that the tier of the guild allows.
func (w *World) UploadLimit(bytes int64) { w.do(func() { w.uploadLimit = bytes }) }

// largest returns the largest size of a file in a guild.
func (w *World) largest(guild snowflake.ID) int64 {
	if w.uploadLimit > 0 {
		return w.uploadLimit
	}
	const usual, second, third = 10 << 20, 50 << 20, 100 << 20
	if g := w.guild(guild); g != nil && g.premiumTier >= 2 {
		return map[int]int64{2: second, 3: third}[g.premiumTier]
	}
	return usual
}

func permissions(p discord.Permissions) string { return strconv.FormatInt(int64(p), 10) }

func (w *World) userJSON(id snowflake.ID) object {
	u := w.users[id]
	o := object{
		"id": id, "username": u.Name, "discriminator": "0", "global_name": nil, "avatar": nil, "banner": nil, "accent_color": nil,
		"public_flags": 0, "avatar_decoration_data": nil, "collectibles": nil, "primary_guild": nil,
	}
	if u.Bot {
		o["bot"], o["discriminator"] = true, "0001"
	}
	return o
}

func (w *World) memberJSON(g *guild, id snowflake.ID) object {
	roles := []snowflake.ID{}
	if id == w.Bot {
		roles = append(roles, g.botRole)
	}
	return object{
		"roles": roles, "joined_at": stamp(g.id.Time()), "nick": nil, "avatar": nil, "banner": nil, "premium_since": nil, "deaf": false,
		"mute": false, "pending": false, "flags": 0, "communication_disabled_until": nil,
	}
}

func (w *World) guildJSON(g *guild, whole bool) object {
	o := object{
		"id": g.id, "name": g.name, "icon": nil, "splash": nil, "discovery_splash": nil, "owner_id": g.owner, "afk_channel_id": nil,
		"afk_timeout": 300, "verification_level": 1, "default_message_notifications": 1, "explicit_content_filter": 0, "features": []string{},
		"mfa_level": 0, "application_id": nil, "system_channel_id": nil, "system_channel_flags": 0, "rules_channel_id": nil,
		"max_members": 500000, "vanity_url_code": nil, "description": nil, "banner": nil, "premium_tier": g.premiumTier,
		"premium_subscription_count": 0, "preferred_locale": "en-US", "public_updates_channel_id": nil, "nsfw_level": 0,
		"premium_progress_bar_enabled": false, "safety_alerts_channel_id": nil, "stickers": []any{}, "emojis": []any{}, "roles": w.rolesJSON(g),
	}
	if !whole {
		return o
	}
	own := w.memberJSON(g, w.Bot)
	own["user"] = w.userJSON(w.Bot)
	o["channels"], o["threads"] = w.channelsJSON(g, false), w.channelsJSON(g, true)
	o["members"], o["member_count"], o["joined_at"] = []any{own}, len(w.users), stamp(g.id.Time())
	o["large"], o["unavailable"] = false, false
	for _, empty := range []string{"voice_states", "presences", "stage_instances", "guild_scheduled_events", "soundboard_sounds"} {
		o[empty] = []any{}
	}
	return o
}

func (w *World) rolesJSON(g *guild) []object {
	role := func(id snowflake.ID, name string, p discord.Permissions, position int) object {
		return object{
			"id": id, "name": name, "description": nil, "color": 0, "hoist": false, "position": position, "permissions": permissions(p),
			"managed": position > 0, "icon": nil, "unicode_emoji": nil, "mentionable": false, "flags": 0,
			"colors": object{"primary_color": 0, "secondary_color": nil, "tertiary_color": nil},
		}
	}
	bots := role(g.botRole, w.users[w.Bot].Name, g.bots, 1)
	bots["tags"] = object{"bot_id": w.Bot}
	return []object{role(g.id, "@everyone", g.everyone, 0), bots}
}

// channelsJSON returns the channels of a guild, or its active threads.
func (w *World) channelsJSON(g *guild, threads bool) []object {
	list := []object{}
	for _, id := range w.channelIDs() {
		if c := w.channels[id]; c.guild == g.id && !c.gone && c.thread() == threads && (!threads || !c.archived && w.sees(c)) {
			list = append(list, w.channelJSON(c))
		}
	}
	return list
}

func (w *World) channelJSON(c *channel) object {
	o := object{"id": c.id, "type": c.kind, "flags": 0, "last_message_id": nil}
	if n := len(c.messages); n > 0 {
		o["last_message_id"] = c.messages[n-1].id
	}
	switch {
	case c.kind == kindDirect:
		o["recipients"] = []any{w.userJSON(c.owner)}
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
			overwrites = append(overwrites, object{"id": w.Bot, "type": 1, "allow": "0", "deny": permissions(c.denied)})
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
