package discord

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/gateway"
	"github.com/disgoorg/snowflake/v2"

	"deskhand/backend/attachment"
	"deskhand/backend/attachments"
	"deskhand/backend/session"
)

// People's messages. A message is stored before any work for it, and then marked with the turn or the item of the queue that it has
// become. So a message is taken once, whatever Discord sends again, and the next start continues after a crash. The work of each channel
// is done in order, in the order in which Discord sent the messages.

// inbound takes the messages of bound channels.
type inbound struct {
	s       *Surface
	outside *http.Client         // fetches files
	lanes   *lanes[snowflake.ID] // of channels; the next start requests the messages of unfinished work

	mu    sync.Mutex                     // protects the fields below
	above map[snowflake.ID]snowflake.ID  // the channels of threads
	born  map[snowflake.ID]chan struct{} // threads that are begun; closed when they are bound
	gates map[string]chan struct{}       // hold an element while a message is handed to a conversation

	passed map[snowflake.ID]snowflake.ID // of threads that are not bound: the newest message that was refused
}

// The kinds of ignored messages, which are counted.
const (
	ignoredStrangers = "strangers"
	ignoredBots      = "bots"
	ignoredDirect    = "direct"
	ignoredUnbound   = "unbound"
)

// newInbound is called once, before the line is opened.
func newInbound(s *Surface) *inbound {
	const (
		handshake = 10 * time.Second
		whole     = 5 * time.Minute // of a file: a server that sends a byte now and then must not block a lane for ever
	)
	return &inbound{
		s: s, lanes: newLanes[snowflake.ID](s.spawn), above: map[snowflake.ID]snowflake.ID{},
		born: map[snowflake.ID]chan struct{}{}, gates: map[string]chan struct{}{}, passed: map[snowflake.ID]snowflake.ID{},
		outside: &http.Client{Timeout: whole, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: handshake, DisableKeepAlives: true}},
	}
}

// enter waits until no message is being handed to a conversation, and blocks others until leave is called.
func (in *inbound) enter(ctx context.Context, session string) (leave func(), err error) {
	in.mu.Lock()
	gate := in.gates[session]
	if gate == nil {
		gate = make(chan struct{}, 1)
		in.gates[session] = gate
	}
	in.mu.Unlock()
	select {
	case gate <- struct{}{}:
		return func() { <-gate }, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// heard is a message of a listed person.
type heard struct {
	channel, id snowflake.ID
	session     string
	item        string // the turn or queue item that the message has become; "" until then
	text        string // the message's part of that
	raw         rawMessage
	late        bool // the message was written while we were away
}

// notTaken marks a message that will not be taken.
const notTaken = "-"

// rawMessage is a message as received.
type rawMessage struct {
	Author  User   `json:"author"`
	Content string `json:"content"`
	Raw     struct {
		Discord struct {
			Attachments []rawAttachment `json:"attachments"`
		} `json:"discord"`
	} `json:"raw"`

	Taken []string `json:"taken,omitempty"` // of each attachment: the id of the kept file, or notTaken
}

type rawAttachment struct {
	URL      string `json:"url"`
	Filename string `json:"filename,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
	Size     int    `json:"size,omitempty"`
}

// readMessage converts a message of Discord's. A forwarded message has the content of the original.
func readMessage(m discord.Message) heard {
	h := heard{channel: m.ChannelID, id: m.ID}
	h.raw.Author = User{ID: m.Author.ID.String(), Name: m.Author.EffectiveName()}
	h.raw.Content = m.Content
	files := m.Attachments
	for _, f := range m.MessageSnapshots {
		h.raw.Content = strings.TrimSpace(h.raw.Content + "\n\n" + f.Message.Content)
		files = append(slices.Clone(files), f.Message.Attachments...)
	}
	for _, a := range files {
		f := rawAttachment{URL: a.URL, Filename: a.Filename, Size: a.Size}
		if a.ContentType != nil {
			f.MimeType = *a.ContentType
		}
		h.raw.Raw.Discord.Attachments = append(h.raw.Raw.Discord.Attachments, f)
	}
	return h
}

// says reports whether a message was written by a listed person. Otherwise why is the kind of the ignored message; "" = not counted.
func (in *inbound) says(m discord.Message) (says bool, why string) {
	switch {
	case m.Author.ID == in.s.client.self(), m.Type != discord.MessageTypeDefault && m.Type != discord.MessageTypeReply:
		return false, ""
	case m.Author.Bot || m.Author.System || m.WebhookID != nil:
		return false, ignoredBots
	case m.GuildID == nil:
		return false, ignoredDirect
	case !in.s.allowed(m.Author.ID):
		return false, ignoredStrangers
	}
	return true, ""
}

// created takes a new message.
func (in *inbound) created(ev gateway.EventMessageCreate) {
	m := ev.Message
	_, bound := in.s.bindings.bond(m.ChannelID)
	says, why := in.says(m)
	if says && !bound && !in.s.bindings.begins(*m.GuildID) {
		says, why = false, ignoredUnbound
	}
	if why != "" {
		in.s.ignored(why)
	}
	switch {
	case says:
		in.lanes.queue(m.ChannelID, func(ctx context.Context) { in.take(ctx, m) })
	case bound:
		in.lanes.queue(m.ChannelID, func(ctx context.Context) { in.pass(ctx, m) })
	}
}

// pass moves the mark over an ignored message.
func (in *inbound) pass(ctx context.Context, m discord.Message) {
	if err := in.s.bindings.looked(ctx, heard{channel: m.ChannelID, id: m.ID}, func(*sql.Tx) error { return nil }); err != nil {
		in.fails(ctx, "a mark cannot be moved", m.ChannelID, err)
	}
}

// take takes a message of a listed person. When earlier messages are unknown, they come first, together with this message.
func (in *inbound) take(ctx context.Context, m discord.Message) {
	switch b, ok := in.s.bindings.bond(m.ChannelID); {
	case ok && b.behind():
		in.catchUp(ctx, m.ChannelID)
	case !ok:
		in.catchUpThread(ctx, m.ChannelID)
	}
	in.hear(ctx, readMessage(m), m.GuildID)
}

// hear takes a message for the conversation of its channel, or begins a conversation with the message.
func (in *inbound) hear(ctx context.Context, h heard, guild *snowflake.ID) {
	b, ok := in.s.bindings.bond(h.channel)
	if !ok || b.deleted {
		ok = in.beginIn(ctx, h, guild, b)
		if b, _ = in.s.bindings.bond(h.channel); !ok {
			return
		}
	}
	if b.Problem != "" {
		in.s.bindings.trouble(ctx, h.channel, "")
	}
	if b.Session == "" {
		in.beginFrom(ctx, b.Binding, h)
		return
	}
	h.session = b.Session
	switch fresh, err := in.keep(ctx, h); {
	case err != nil: // a message that is not stored goes no further
		if ctx.Err() == nil {
			in.tell(ctx, h, "Not taken: "+in.whyNot(ctx, h.session, err))
		}
	case fresh:
		in.handOver(ctx, h.channel, h.id)
	}
}

// keep stores a message. fresh reports that the message was not stored already.
func (in *inbound) keep(ctx context.Context, h heard) (fresh bool, err error) {
	err = in.s.bindings.looked(ctx, h, func(tx *sql.Tx) error {
		fresh, err = insert(ctx, tx, h)
		return err
	})
	return fresh && err == nil, err
}

func insert(ctx context.Context, tx *sql.Tx, h heard) (fresh bool, err error) {
	raw, err := json.Marshal(h.raw)
	if err != nil {
		return false, err
	}
	done, err := tx.ExecContext(ctx, `INSERT INTO discord_message (channel, id, session, item, text, raw_json) VALUES (?, ?, ?, ?, ?, ?)
		ON CONFLICT DO NOTHING`, h.channel.String(), h.id.String(), h.session, h.item, h.text, string(raw))
	if err != nil {
		return false, err
	}
	n, err := done.RowsAffected()
	return n > 0, err
}

// save stores the state of messages.
func (in *inbound) save(ctx context.Context, list ...heard) error {
	return in.s.write(ctx, func(tx *sql.Tx) error {
		for _, h := range list {
			raw, err := json.Marshal(h.raw)
			if err != nil {
				return err
			}
			if _, err := tx.ExecContext(ctx, `UPDATE discord_message SET item = ?, text = ?, raw_json = ? WHERE channel = ? AND id = ?`,
				h.item, h.text, string(raw), h.channel.String(), h.id.String()); err != nil {
				return err
			}
		}
		return nil
	})
}

// forget deletes a message that was not handed over.
func (in *inbound) forget(ctx context.Context, h heard) error {
	return in.s.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM discord_message WHERE channel = ? AND id = ?`, h.channel.String(), h.id.String())
		return err
	})
}

const messageColumns = `SELECT channel, id, session, item, text, raw_json FROM discord_message `

// messages reads messages, in the order in which they were written.
func (in *inbound) messages(ctx context.Context, where string, args ...any) (list []heard, err error) {
	rows, err := in.s.cfg.Store.Read().QueryContext(ctx, messageColumns+where+` ORDER BY CAST(id AS INTEGER)`, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var h heard
		var channel, id, raw string
		if err := rows.Scan(&channel, &id, &h.session, &h.item, &h.text, &raw); err != nil {
			return nil, err
		}
		h.channel, h.id = idOf(channel), idOf(id)
		if err := json.Unmarshal([]byte(raw), &h.raw); err != nil {
			return nil, err
		}
		list = append(list, h)
	}
	return list, rows.Err()
}

// message reads a single message.
func (in *inbound) message(ctx context.Context, channel, id snowflake.ID) (heard, bool, error) {
	list, err := in.messages(ctx, `WHERE channel = ? AND id = ?`, channel.String(), id.String())
	if err != nil || len(list) == 0 {
		return heard{}, false, err
	}
	return list[0], true, nil
}

// from returns the messages of the channel that became a turn. from waits while a message of that session is being handed over, so that
// the events of a turn cannot overtake its record. A message of another channel, with which a thread was begun, is not included, because
// no message in the thread can answer that message.
func (in *inbound) from(ctx context.Context, session, turn string) (messages []snowflake.ID, ok bool) {
	leave, err := in.enter(ctx, session)
	if err != nil {
		return nil, false
	}
	leave()
	list, err := in.messages(ctx, `WHERE session = ? AND item = ?`, session, turn)
	channel, _ := in.s.bindings.channelOf(session)
	in.fails(ctx, "messages cannot be read", channel, err)
	for _, h := range list {
		if h.channel == channel {
			messages = append(messages, h.id)
		}
	}
	return messages, len(list) > 0
}

// handOver gives a stored message to its conversation, and reports a failure in the channel.
func (in *inbound) handOver(ctx context.Context, channel, id snowflake.ID) {
	h, ok, err := in.message(ctx, channel, id)
	if err != nil {
		in.fails(ctx, "a message cannot be read", channel, err)
		in.later(channel, id)
	}
	if err != nil || !ok || h.item != "" {
		return
	}
	in.fetch(ctx, &h)
	if ctx.Err() != nil {
		return // the next start continues
	}
	h.text = in.textOf(h)
	if h.text == "" {
		in.giveUp(ctx, h, "There is nothing in this message that an agent could read.")
		return
	}
	if err := in.save(ctx, h); err != nil { // so that the message is recognised in the queue if the program ends before the message is marked
		in.fails(ctx, "a message cannot be written", channel, err)
		in.later(channel, id)
		return
	}
	leave, err := in.enter(ctx, h.session)
	if err != nil {
		return
	}
	err = in.send(ctx, h)
	leave()
	if err != nil {
		in.refuse(ctx, h, err)
	}
}

// later hands a message over again after a pause, because a store that cannot be read or written usually can be soon.
func (in *inbound) later(channel, id snowflake.ID) {
	const pause = 15 * time.Second
	lane := channel
	if _, ok := in.s.bindings.bond(id); ok {
		lane = id // a thread was begun with the message
	}
	in.s.spawn(func(ctx context.Context) {
		timer := time.NewTimer(in.s.client.patience(pause))
		defer timer.Stop()
		select {
		case <-timer.C:
			in.lanes.queue(lane, func(ctx context.Context) { in.handOver(ctx, channel, id) })
		case <-ctx.Done(): // the next start continues
		}
	})
}

// textOf returns the text of a message for the agent: without the bot's name before the text, and with the block of its files.
func (in *inbound) textOf(h heard) string {
	text := strings.TrimSpace(h.raw.Content)
	self := in.s.client.self().String()
	for _, name := range []string{"<@" + self + ">", "<@!" + self + ">"} {
		text = strings.TrimSpace(strings.TrimPrefix(text, name))
	}
	var items []attachment.SentinelItem
	for i, a := range h.raw.Raw.Discord.Attachments {
		if i < len(h.raw.Taken) && h.raw.Taken[i] != notTaken {
			items = append(items, attachment.SentinelItem{URL: a.URL, Filename: a.Filename, MimeType: a.MimeType})
		}
	}
	if len(items) == 0 {
		return text
	}
	return strings.TrimPrefix(text+"\n"+attachment.Sentinel(items), "\n")
}

// files returns the kept files of a message.
func (h heard) files() (list []attachments.PromptAttachment) {
	for _, id := range h.raw.Taken {
		if id != notTaken {
			list = append(list, attachments.PromptAttachment{ID: id})
		}
	}
	return list
}

// refuse reports that a message was not taken, and why. A message that could not be handed over because the program ends is kept for the
// next start.
func (in *inbound) refuse(ctx context.Context, h heard, err error) {
	if ctx.Err() != nil || errors.Is(err, session.ErrClosed) {
		return
	}
	in.giveUp(ctx, h, "Not taken: "+in.whyNot(ctx, h.session, err))
}

// whyNot says why a conversation has not taken a message; first of all, whether the conversation is gone.
func (in *inbound) whyNot(ctx context.Context, id string, err error) string {
	if _, gone := in.s.cfg.Sessions.Get(ctx, id); errors.Is(gone, session.ErrNotFound) {
		err = gone
	}
	return in.inWords(ctx, err)
}

// giveUp marks a message as not taken, and reports why. A message that cannot be marked is tried again, without a report, because the
// message may still be taken.
func (in *inbound) giveUp(ctx context.Context, h heard, why string) {
	h.item = notTaken
	if err := in.save(ctx, h); err != nil {
		in.fails(ctx, "a message cannot be marked", h.channel, err)
		in.later(h.channel, h.id)
		return
	}
	in.tell(ctx, h, why)
}

// tell writes a text about a message to the channel of its conversation.
func (in *inbound) tell(ctx context.Context, h heard, text string) {
	channel, reply := h.channel, h.id
	if at, ok := in.s.bindings.channelOf(h.session); ok && at != channel {
		channel, reply = at, 0
	}
	if _, err := in.s.out.say(ctx, channel, reply, text); err != nil {
		in.fails(ctx, "something cannot be said", channel, err)
	}
}

// fails logs an error that nobody can be told about. The address that the library puts before an error may contain the secret of an
// answer.
func (in *inbound) fails(ctx context.Context, what string, channel snowflake.ID, err error) {
	for wrapped := (*url.Error)(nil); errors.As(err, &wrapped); {
		err = wrapped.Err
	}
	if err != nil && ctx.Err() == nil {
		in.s.cfg.Logger.Error(what, "channel", channel.String(), "error", err) //nolint:sloglint // what is one of few texts
	}
}

// channelGone takes that a channel or thread was deleted, or that the bot no longer sees the channel. The binding stays, because a server
// to which the bot returns still has its channels, and a person should see why no message comes.
func (in *inbound) channelGone(channel snowflake.ID) {
	if _, ok := in.s.bindings.bond(channel); !ok {
		return
	}
	in.lanes.queue(channel, func(ctx context.Context) { in.s.bindings.trouble(ctx, channel, problemGone) })
}
