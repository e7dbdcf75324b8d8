package discordtest

import (
	"slices"
	"strings"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/snowflake/v2"
)

// The kinds of messages, and the flags, as Discord numbers them.
const (
	messageDefault       = 0
	messageThreadCreated = 18
	messageReply         = 19
	messageCommand       = 20
	messageThreadStarter = 21

	flagNoEmbeds  = 1 << 2
	flagHasThread = 1 << 5
	flagEphemeral = 1 << 6
	flagLoading   = 1 << 7
)

// Message is a message as people see it.
type Message struct {
	ID       snowflake.ID `json:"id"`
	Channel  snowflake.ID `json:"channel"`
	Author   User         `json:"author"`
	Text     string       `json:"text"`
	Files    []File       `json:"files,omitempty"`
	Controls []Control    `json:"controls,omitempty"` // from the left, row by row
	Reply    snowflake.ID `json:"reply,omitempty"`    // the message that is answered; 0 = none
	Kind     int          `json:"kind"`               // 0 and 19 (a reply) come from people and bots; Discord itself posts the others
	Flags    int          `json:"flags"`
	Nonce    string       `json:"nonce,omitempty"`
	Edits    []string     `json:"edits,omitempty"` // the earlier texts, oldest first; an edit that changed no text counts too
	At       time.Time    `json:"at"`
	Private  bool         `json:"private,omitempty"` // only one person sees the message
	Deleted  bool         `json:"deleted,omitempty"`
	Mentions bool         `json:"mentions,omitempty"` // whether the message may ping anybody
}

// File is a file of a message.
type File struct {
	ID   snowflake.ID `json:"id"`
	Name string       `json:"name"`
	Type string       `json:"type,omitempty"` // as Discord reports the type; "" = not reported
	URL  string       `json:"url,omitempty"`
	Data []byte       `json:"data"`
}

// Control is a button or a menu of a message, or a field of a modal.
type Control struct {
	Kind     string   `json:"kind"` // button, link, select, text, choice, choices, check
	Label    string   `json:"label,omitempty"`
	CustomID string   `json:"customId,omitempty"`
	Style    int      `json:"style,omitempty"`
	URL      string   `json:"url,omitempty"`
	Disabled bool     `json:"disabled,omitempty"`
	Options  []Option `json:"options,omitempty"`
	Least    int      `json:"least"` // how many options must be chosen
	Most     int      `json:"most,omitempty"`
	Required bool     `json:"required,omitempty"`
	Value    string   `json:"value,omitempty"`
	Row      int      `json:"row"`
}

// Option is an option of a menu.
type Option struct {
	Label       string `json:"label"`
	Value       string `json:"value"`
	Description string `json:"description,omitempty"`
}

// Control returns the control of m with the label, placeholder or custom id name.
func (m Message) Control(name string) (Control, bool) {
	i := slices.IndexFunc(m.Controls, func(c Control) bool { return c.Label == name || c.CustomID == name })
	if i < 0 {
		return Control{}, false
	}
	return m.Controls[i], true
}

type reference struct {
	Message, Channel snowflake.ID
}

type message struct {
	id          snowflake.ID
	channel     *channel
	author      snowflake.ID
	webhook     string // the name of the webhook that posted the message
	kind, flags int
	text        string
	files       []*file
	components  []*component
	reference   *reference
	nonce       string
	edits       []string
	edited      time.Time
	deleted     bool
	mentions    bool
	reactions   []string
	only        *Interaction // the interaction whose person alone sees the message
	made        *Interaction // the interaction that the message came from
}

func (w *World) newMessage(c *channel, author snowflake.ID, kind int) *message {
	return &message{id: w.nextID(), channel: c, author: author, kind: kind}
}

// post shows a message and sends its event. The caller holds the lock.
func (w *World) post(m *message) {
	w.keep(m)
	w.tell("MESSAGE_CREATE", m)
}

// keep shows a message without sending an event.
func (w *World) keep(m *message) {
	w.messages[m.id] = m
	if m.only != nil {
		m.only.only = append(m.only.only, m)
		return
	}
	at, _ := slices.BinarySearchFunc(m.channel.messages, m.id, byID)
	m.channel.messages = slices.Insert(m.channel.messages, at, m)
}

// tell sends an event about m to the clients of the gateway, unless only one person sees m.
func (w *World) tell(kind string, m *message) {
	if m.only != nil || !w.sees(m.channel) {
		return
	}
	w.gateway.dispatchMessage(kind, m)
}

// remove deletes a message and sends the event.
func (w *World) remove(m *message) {
	m.deleted = true
	if m.only != nil || !w.sees(m.channel) {
		return
	}
	o := object{"id": m.id, "channel_id": m.channel.id}
	if m.channel.guild != 0 {
		o["guild_id"] = m.channel.guild
	}
	w.gateway.dispatch("MESSAGE_DELETE", messageIntent(m.channel), o)
}

func messageIntent(c *channel) int {
	if c.kind == kindDirect {
		return intentDirect
	}
	return intentMessages
}

func (w *World) list(id snowflake.ID, deleted bool) []Message {
	var list []Message
	c := w.channels[id]
	if c == nil {
		return nil
	}
	for _, m := range c.messages {
		if deleted || !m.deleted {
			list = append(list, w.show(m))
		}
	}
	return list
}

func (w *World) show(m *message) Message {
	s := Message{
		ID: m.id, Channel: m.channel.id, Author: w.users[m.author].User, Text: m.text, Kind: m.kind, Flags: m.flags, Nonce: m.nonce,
		Edits: slices.Clone(m.edits), At: m.id.Time(), Private: m.only != nil, Deleted: m.deleted, Mentions: m.mentions,
		Controls: controls(m.components),
	}
	if m.webhook != "" {
		s.Author = User{Name: m.webhook, Bot: true}
	}
	if m.reference != nil {
		s.Reply = m.reference.Message
	}
	for _, f := range m.files {
		s.Files = append(s.Files, File{ID: f.id, Name: f.name, Type: f.mime, URL: w.cdn.address(f), Data: f.data})
	}
	return s
}

// messageJSON returns m as JSON. Without content the JSON lacks the text, files and components, as for a bot without the privileged
// intent.
func (w *World) messageJSON(m *message, content bool) object {
	content = content || m.author == w.Bot && m.webhook == "" || m.channel.kind == kindDirect || strings.Contains(m.text, "<@"+w.Bot.String()+">")
	o := object{
		"id": m.id, "channel_id": m.channel.id, "type": m.kind, "flags": m.flags, "timestamp": stamp(m.id.Time()), "edited_timestamp": nil,
		"tts": false, "pinned": false, "mention_everyone": false, "mentions": []any{}, "mention_roles": []any{}, "embeds": []any{},
		"content": "", "attachments": []any{}, "components": []any{},
	}
	if m.webhook != "" {
		o["webhook_id"] = m.author
		o["author"] = object{"id": m.author, "username": m.webhook, "discriminator": "0000", "avatar": nil, "bot": true}
	} else {
		o["author"] = w.userJSON(m.author)
	}
	if !m.edited.IsZero() {
		o["edited_timestamp"] = stamp(m.edited)
	}
	if content {
		o["content"], o["attachments"] = m.text, w.cdn.attachmentsJSON(m)
		if m.components != nil {
			o["components"] = m.components
		}
	}
	if m.nonce != "" {
		o["nonce"] = m.nonce
	}
	w.addRelations(o, m, content)
	return o
}

// addRelations adds the message that m answers, the thread that began from m and the interaction that m came from.
func (w *World) addRelations(o object, m *message, content bool) {
	if r := m.reference; r != nil {
		ref := object{"type": 0, "channel_id": cmpOr(r.Channel, m.channel.id)}
		if m.channel.guild != 0 {
			ref["guild_id"] = m.channel.guild
		}
		if r.Message != 0 {
			ref["message_id"] = r.Message
			if answered := w.messages[r.Message]; answered != nil && !answered.deleted {
				shallow := *answered
				shallow.reference = nil
				o["referenced_message"] = w.messageJSON(&shallow, content)
			} else {
				o["referenced_message"] = nil
			}
		}
		o["message_reference"] = ref
	}
	if begun := w.channels[m.id]; begun != nil && begun.thread() {
		o["thread"] = w.channelJSON(begun)
	}
	if i := m.made; i != nil {
		o["application_id"], o["webhook_id"] = w.Application, w.Application
		o["interaction_metadata"] = object{"id": i.ID, "type": i.kind, "user": w.userJSON(i.User), "authorizing_integration_owners": object{}}
	}
}

func cmpOr(a, b snowflake.ID) snowflake.ID {
	if a != 0 {
		return a
	}
	return b
}

// dispatchMessage sends an event about m: with content to the sessions that may read the content, without content to the others.
func (gw *Gateway) dispatchMessage(kind string, m *message) {
	event := func(content bool) object {
		o := gw.d.messageJSON(m, content)
		if g := gw.d.guild(m.channel.guild); g != nil {
			o["guild_id"] = g.id
			if m.webhook == "" {
				o["member"] = gw.d.memberJSON(g, m.author)
			}
		}
		return o
	}
	for _, s := range gw.sessions {
		if s.intents&messageIntent(m.channel) != 0 {
			s.add(kind, event(s.intents&intentContent != 0))
		}
	}
}

// said holds the fields with which a message is posted or changed, by a person or the bot.
type said struct {
	text       string
	files      []upload
	components []*component
	flags      int
	reply      *reference
	nonce      string
}

// mayPost returns the reason why the bot may not post in a channel, or nil.
func (w *World) mayPost(c *channel, files bool) *failure {
	have := w.may(c)
	needed := discord.PermissionSendMessages
	if c.thread() {
		needed = discord.PermissionSendMessagesInThreads
	}
	if files {
		needed |= discord.PermissionAttachFiles
	}
	switch {
	case have&discord.PermissionViewChannel == 0:
		return missingAccess()
	case have&needed != needed:
		return missingPermissions()
	case c.kind == kindForum:
		return refuse(400, 40058, "Cannot send a message in a forum channel")
	case c.thread() && c.locked && have&discord.PermissionManageThreads == 0:
		return refuse(400, 160005, "This thread is locked")
	}
	return nil
}

// write posts a message of the bot.
func (w *World) write(c *channel, s said, i *Interaction) *message {
	if c.thread() && c.archived {
		w.archive(c, false, c.locked)
	}
	m := w.newMessage(c, w.Bot, messageDefault)
	m.text, m.components, m.flags, m.nonce, m.made = s.text, s.components, s.flags, s.nonce, i
	if s.reply != nil {
		m.kind, m.reference = messageReply, s.reply
	}
	if i != nil && s.flags&flagEphemeral != 0 {
		m.only = i
	}
	for _, u := range s.files {
		m.files = append(m.files, w.cdn.newFile(m, u.name, u.mime, u.data))
	}
	w.post(m)
	return m
}
