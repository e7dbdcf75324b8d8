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
	"deskhand/backend/session"
)

// What people say. A message is written down before anything is done for it, and marked with what it has become: the turn or the item of
// the queue. So it is taken once, whatever Discord sends again, and a crash in between is made good at the next start. For each channel one
// thing is done after the other, in the order in which Discord told it.

// inbound is what people say in bound channels, and which channel is bound to what.
type inbound struct {
	s       *Surface
	outside *http.Client         // by which files are fetched
	lanes   *lanes[snowflake.ID] // of channels; what is not done at the end is asked for at the next start

	writing sync.Mutex // of bindings: what is written and what is known of it change together

	mu    sync.Mutex // protects what is below
	bonds map[snowflake.ID]*bond
	away  int                            // how often the line has come back anew
	above map[snowflake.ID]snowflake.ID  // the channels of threads
	born  map[snowflake.ID]chan struct{} // threads that are begun; closed when they are bound
	gates map[string]chan struct{}       // of one: held while a message is handed to a conversation

	passed map[snowflake.ID]snowflake.ID // of threads that are not bound: the newest message that was refused
}

// What is not listened to, as it is counted.
const (
	ignoredStrangers = "strangers"
	ignoredBots      = "bots"
	ignoredDirect    = "direct"
	ignoredUnbound   = "unbound"
)

// newInbound is made once, before the line is opened.
func newInbound(s *Surface) *inbound {
	const (
		handshake = 10 * time.Second
		whole     = 5 * time.Minute // of a file: a server that sends a byte now and then must not keep a lane for ever
	)
	return &inbound{
		s: s, bonds: map[snowflake.ID]*bond{}, lanes: newLanes[snowflake.ID](s.spawn), above: map[snowflake.ID]snowflake.ID{},
		born: map[snowflake.ID]chan struct{}{}, gates: map[string]chan struct{}{}, passed: map[snowflake.ID]snowflake.ID{},
		outside: &http.Client{Timeout: whole, Transport: &http.Transport{Proxy: http.ProxyFromEnvironment, TLSHandshakeTimeout: handshake, DisableKeepAlives: true}},
	}
}

// enter waits until no message is being handed to a conversation, and keeps others from it until leave is called.
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

// heard is a message that somebody has said.
type heard struct {
	channel, id snowflake.ID
	session     string
	item        string // the turn or item of the queue that it has become; "" until then
	text        string // its part of that
	raw         rawMessage
	late        bool // it was said while we were away
}

// notTaken marks a message that nothing comes of.
const notTaken = "-"

// rawMessage is a message as it came.
type rawMessage struct {
	Author  User   `json:"author"`
	Content string `json:"content"`
	Raw     struct {
		Discord struct {
			Attachments []rawAttachment `json:"attachments"`
		} `json:"discord"`
	} `json:"raw"`

	Taken []string `json:"taken,omitempty"` // of each of them: the id under which it was taken in, or notTaken
}

type rawAttachment struct {
	URL      string `json:"url"`
	Filename string `json:"filename,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
	Size     int    `json:"size,omitempty"`
}

// readMessage reads what Discord told. Of a message that was forwarded it is what that says.
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

// says tells whether somebody who is heard has said something with the message, else why it is not listened to; "" = it is of no account.
func (in *inbound) says(m discord.Message) (says bool, why string) {
	switch {
	case m.Author.ID == in.s.line.self(), m.Type != discord.MessageTypeDefault && m.Type != discord.MessageTypeReply:
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

// created takes a message.
func (in *inbound) created(ev gateway.EventMessageCreate) {
	m := ev.Message
	_, bound := in.bond(m.ChannelID)
	says, why := in.says(m)
	if says && !bound && !in.begins(*m.GuildID) {
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

// pass moves the mark over a message that is none of ours.
func (in *inbound) pass(ctx context.Context, m discord.Message) {
	if err := in.looked(ctx, heard{channel: m.ChannelID, id: m.ID}, func(*sql.Tx) error { return nil }); err != nil {
		in.fails(ctx, "a mark cannot be moved", m.ChannelID, err)
	}
}

// take takes a message of somebody who is heard. Where what came before it is not known, that comes first, and the message with it.
func (in *inbound) take(ctx context.Context, m discord.Message) {
	switch b, ok := in.bond(m.ChannelID); {
	case ok && b.behind():
		in.catchUp(ctx, m.ChannelID)
	case !ok:
		in.catchUpThread(ctx, m.ChannelID)
	}
	in.hear(ctx, readMessage(m), m.GuildID)
}

// hear takes a message where it stands: for the conversation of its channel, or as the beginning of one.
func (in *inbound) hear(ctx context.Context, h heard, guild *snowflake.ID) {
	b, ok := in.bond(h.channel)
	if !ok || b.deleted {
		ok = in.beginIn(ctx, h, guild, b)
		if b, _ = in.bond(h.channel); !ok {
			return
		}
	}
	if b.Problem != "" {
		in.trouble(ctx, h.channel, "")
	}
	if b.Session == "" {
		in.beginFrom(ctx, b.Binding, h)
		return
	}
	h.session = b.Session
	switch fresh, err := in.keep(ctx, h); {
	case err != nil: // it is not written down, so nothing goes on with it
		if ctx.Err() == nil {
			in.tell(ctx, h, "Not taken: "+in.whyNot(ctx, h.session, err))
		}
	case fresh:
		in.handOver(ctx, h.channel, h.id)
	}
}

// keep writes a message down. fresh = it was not there already.
func (in *inbound) keep(ctx context.Context, h heard) (fresh bool, err error) {
	err = in.looked(ctx, h, func(tx *sql.Tx) error {
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

// save writes down what has become of a message.
func (in *inbound) save(ctx context.Context, list ...heard) error {
	return in.write(ctx, func(tx *sql.Tx) error {
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

// forget takes out a message that nothing came of.
func (in *inbound) forget(ctx context.Context, h heard) error {
	return in.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM discord_message WHERE channel = ? AND id = ?`, h.channel.String(), h.id.String())
		return err
	})
}

const messageColumns = `SELECT channel, id, session, item, text, raw_json FROM discord_message `

// messages reads messages, in the order in which they were said.
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

// message reads one.
func (in *inbound) message(ctx context.Context, channel, id snowflake.ID) (heard, bool, error) {
	list, err := in.messages(ctx, `WHERE channel = ? AND id = ?`, channel.String(), id.String())
	if err != nil || len(list) == 0 {
		return heard{}, false, err
	}
	return list[0], true, nil
}

// from tells which messages of the channel a turn came from. It waits while a message of that session is being handed over, so that
// the news of a turn cannot overtake what is known of it. A message of another channel, from which a thread was begun, is not among them:
// nothing can be an answer to it there.
func (in *inbound) from(ctx context.Context, session, turn string) (messages []snowflake.ID, ok bool) {
	leave, err := in.enter(ctx, session)
	if err != nil {
		return nil, false
	}
	leave()
	list, err := in.messages(ctx, `WHERE session = ? AND item = ?`, session, turn)
	channel, _ := in.channelOf(session)
	in.fails(ctx, "messages cannot be read", channel, err)
	for _, h := range list {
		if h.channel == channel {
			messages = append(messages, h.id)
		}
	}
	return messages, len(list) > 0
}

// handOver gives a message that is written down to its conversation, and says in the channel what cannot be.
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
		return // the next start goes on with it
	}
	h.text = in.textOf(h)
	if h.text == "" {
		in.giveUp(ctx, h, "There is nothing in this message that an agent could read.")
		return
	}
	if err := in.save(ctx, h); err != nil { // so that it is known again in the queue, if the program ends before it is marked
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

// later hands a message over again after a while, where it stays as it was: a store that cannot be read or written mostly can be soon.
func (in *inbound) later(channel, id snowflake.ID) {
	const pause = 15 * time.Second
	lane := channel
	if _, ok := in.bond(id); ok {
		lane = id // a thread was begun from it
	}
	in.s.spawn(func(ctx context.Context) {
		timer := time.NewTimer(in.s.line.patience(pause))
		defer timer.Stop()
		select {
		case <-timer.C:
			in.lanes.queue(lane, func(ctx context.Context) { in.handOver(ctx, channel, id) })
		case <-ctx.Done(): // the next start goes on with it
		}
	})
}

// textOf is what a message says to the agent: without our name before it, and with the block of its files.
func (in *inbound) textOf(h heard) string {
	text := strings.TrimSpace(h.raw.Content)
	self := in.s.line.self().String()
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

// files are what a message has that was taken in.
func (h heard) files() (list []session.PromptAttachment) {
	for _, id := range h.raw.Taken {
		if id != notTaken {
			list = append(list, session.PromptAttachment{ID: id})
		}
	}
	return list
}

// refuse says that a message was not taken, and why. One that could not be given to anybody since the program ends is kept for its next
// start.
func (in *inbound) refuse(ctx context.Context, h heard, err error) {
	if ctx.Err() != nil || errors.Is(err, session.ErrClosed) {
		return
	}
	in.giveUp(ctx, h, "Not taken: "+in.whyNot(ctx, h.session, err))
}

// whyNot is why a conversation has not taken something: that it is gone, before all else.
func (in *inbound) whyNot(ctx context.Context, id string, err error) string {
	if _, gone := in.s.cfg.Sessions.Get(ctx, id); errors.Is(gone, session.ErrNotFound) {
		err = gone
	}
	return in.inWords(ctx, err)
}

// giveUp marks a message as one that nothing comes of, and says why. One that cannot be marked is tried again, and nothing is said: it may
// be taken yet.
func (in *inbound) giveUp(ctx context.Context, h heard, why string) {
	h.item = notTaken
	if err := in.save(ctx, h); err != nil {
		in.fails(ctx, "a message cannot be marked", h.channel, err)
		in.later(h.channel, h.id)
		return
	}
	in.tell(ctx, h, why)
}

// tell says something in the channel of a conversation about a message.
func (in *inbound) tell(ctx context.Context, h heard, text string) {
	channel, reply := h.channel, h.id
	if at, ok := in.channelOf(h.session); ok && at != channel {
		channel, reply = at, 0
	}
	if _, err := in.s.out.say(ctx, channel, reply, text); err != nil {
		in.fails(ctx, "something cannot be said", channel, err)
	}
}

// fails writes down what cannot be told to anybody. The address that the library puts before an error can hold the secret of an answer.
func (in *inbound) fails(ctx context.Context, what string, channel snowflake.ID, err error) {
	for wrapped := (*url.Error)(nil); errors.As(err, &wrapped); {
		err = wrapped.Err
	}
	if err != nil && ctx.Err() == nil {
		in.s.cfg.Logger.Error(what, "channel", channel.String(), "error", err) //nolint:sloglint // what is one of few texts
	}
}
