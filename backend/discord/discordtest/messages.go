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

func (d *Discord) newMessage(c *channel, author snowflake.ID, kind int) *message {
	return &message{id: d.nextID(), channel: c, author: author, kind: kind}
}

// post shows a message and sends its event. The caller holds the lock.
func (d *Discord) post(m *message) {
	d.keep(m)
	d.tell("MESSAGE_CREATE", m)
}

// keep shows a message without sending an event.
func (d *Discord) keep(m *message) {
	d.messages[m.id] = m
	if m.only != nil {
		m.only.only = append(m.only.only, m)
		return
	}
	at, _ := slices.BinarySearchFunc(m.channel.messages, m.id, byID)
	m.channel.messages = slices.Insert(m.channel.messages, at, m)
}

// tell sends an event about m to the clients of the gateway, unless only one person sees m.
func (d *Discord) tell(kind string, m *message) {
	if m.only != nil || !d.sees(m.channel) {
		return
	}
	d.dispatchMessage(kind, m)
}

// remove deletes a message and sends the event.
func (d *Discord) remove(m *message) {
	m.deleted = true
	if m.only != nil || !d.sees(m.channel) {
		return
	}
	o := object{"id": m.id, "channel_id": m.channel.id}
	if m.channel.guild != 0 {
		o["guild_id"] = m.channel.guild
	}
	d.dispatch("MESSAGE_DELETE", messageIntent(m.channel), o)
}

func messageIntent(c *channel) int {
	if c.kind == kindDirect {
		return intentDirect
	}
	return intentMessages
}

func (d *Discord) list(id snowflake.ID, deleted bool) []Message {
	var list []Message
	c := d.channels[id]
	if c == nil {
		return nil
	}
	for _, m := range c.messages {
		if deleted || !m.deleted {
			list = append(list, d.show(m))
		}
	}
	return list
}

func (d *Discord) show(m *message) Message {
	s := Message{
		ID: m.id, Channel: m.channel.id, Author: d.users[m.author].User, Text: m.text, Kind: m.kind, Flags: m.flags, Nonce: m.nonce,
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
		s.Files = append(s.Files, File{ID: f.id, Name: f.name, Type: f.mime, URL: d.address(f), Data: f.data})
	}
	return s
}

// messageJSON returns m as JSON. Without content the JSON lacks the text, files and components, as for a bot without the privileged
// intent.
func (d *Discord) messageJSON(m *message, content bool) object {
	content = content || m.author == d.Bot && m.webhook == "" || m.channel.kind == kindDirect || strings.Contains(m.text, "<@"+d.Bot.String()+">")
	o := object{
		"id": m.id, "channel_id": m.channel.id, "type": m.kind, "flags": m.flags, "timestamp": stamp(m.id.Time()), "edited_timestamp": nil,
		"tts": false, "pinned": false, "mention_everyone": false, "mentions": []any{}, "mention_roles": []any{}, "embeds": []any{},
		"content": "", "attachments": []any{}, "components": []any{},
	}
	if m.webhook != "" {
		o["webhook_id"] = m.author
		o["author"] = object{"id": m.author, "username": m.webhook, "discriminator": "0000", "avatar": nil, "bot": true}
	} else {
		o["author"] = d.userJSON(m.author)
	}
	if !m.edited.IsZero() {
		o["edited_timestamp"] = stamp(m.edited)
	}
	if content {
		o["content"], o["attachments"] = m.text, d.attachmentsJSON(m)
		if m.components != nil {
			o["components"] = m.components
		}
	}
	if m.nonce != "" {
		o["nonce"] = m.nonce
	}
	d.addRelations(o, m, content)
	return o
}

// addRelations adds the message that m answers, the thread that began from m and the interaction that m came from.
func (d *Discord) addRelations(o object, m *message, content bool) {
	if r := m.reference; r != nil {
		ref := object{"type": 0, "channel_id": cmpOr(r.Channel, m.channel.id)}
		if m.channel.guild != 0 {
			ref["guild_id"] = m.channel.guild
		}
		if r.Message != 0 {
			ref["message_id"] = r.Message
			if answered := d.messages[r.Message]; answered != nil && !answered.deleted {
				shallow := *answered
				shallow.reference = nil
				o["referenced_message"] = d.messageJSON(&shallow, content)
			} else {
				o["referenced_message"] = nil
			}
		}
		o["message_reference"] = ref
	}
	if begun := d.channels[m.id]; begun != nil && begun.thread() {
		o["thread"] = d.channelJSON(begun)
	}
	if i := m.made; i != nil {
		o["application_id"], o["webhook_id"] = d.Application, d.Application
		o["interaction_metadata"] = object{"id": i.ID, "type": i.kind, "user": d.userJSON(i.User), "authorizing_integration_owners": object{}}
	}
}

func cmpOr(a, b snowflake.ID) snowflake.ID {
	if a != 0 {
		return a
	}
	return b
}

// dispatchMessage sends an event about m: with content to the sessions that may read the content, without content to the others.
func (d *Discord) dispatchMessage(kind string, m *message) {
	event := func(content bool) object {
		o := d.messageJSON(m, content)
		if g := d.guild(m.channel.guild); g != nil {
			o["guild_id"] = g.id
			if m.webhook == "" {
				o["member"] = d.memberJSON(g, m.author)
			}
		}
		return o
	}
	for _, s := range d.sessions {
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
func (d *Discord) mayPost(c *channel, files bool) *failure {
	have := d.may(c)
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
func (d *Discord) write(c *channel, w said, i *Interaction) *message {
	if c.thread() && c.archived {
		d.archive(c, false, c.locked)
	}
	m := d.newMessage(c, d.Bot, messageDefault)
	m.text, m.components, m.flags, m.nonce, m.made = w.text, w.components, w.flags, w.nonce, i
	if w.reply != nil {
		m.kind, m.reference = messageReply, w.reply
	}
	if i != nil && w.flags&flagEphemeral != 0 {
		m.only = i
	}
	for _, u := range w.files {
		m.files = append(m.files, d.newFile(m, u.name, u.mime, u.data))
	}
	d.post(m)
	return m
}
