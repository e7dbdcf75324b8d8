package discordtest

import (
	"time"

	"github.com/disgoorg/snowflake/v2"
)

// Say posts a message in a channel as a person or as another bot. On return the channel shows the message and the event is on its way to
// the clients of the gateway.
func (w *World) Say(channel, user snowflake.ID, text string, files ...File) Message {
	return w.SayAt(time.Time{}, channel, user, text, files...)
}

// SayAt is Say with a time; the zero time means now. A message with a time sends no event, since the message was posted before any client
// listened.
func (w *World) SayAt(at time.Time, channel, user snowflake.ID, text string, files ...File) (shown Message) {
	w.do(func() {
		m := w.newMessage(w.channels[channel], user, messageDefault)
		if !at.IsZero() {
			m.id = snowflake.New(at) | m.id&(1<<22-1)
		}
		m.text, m.mentions = text, true
		for _, f := range files {
			m.files = append(m.files, w.cdn.newFile(m, f.Name, f.Type, f.Data))
		}
		if at.IsZero() {
			w.post(m)
		} else {
			w.keep(m)
		}
		shown = w.show(m)
	})
	return shown
}

// Reply posts an answer to a message.
func (w *World) Reply(to, user snowflake.ID, text string) (shown Message) {
	w.do(func() {
		m := w.newMessage(w.messages[to].channel, user, messageReply)
		m.text, m.reference, m.mentions = text, &reference{Message: to}, true
		w.post(m)
		shown = w.show(m)
	})
	return shown
}

// SayWebhook posts a message as a webhook of a channel.
func (w *World) SayWebhook(channel snowflake.ID, name, text string) (shown Message) {
	w.do(func() {
		m := w.newMessage(w.channels[channel], w.Bot, messageDefault)
		m.webhook, m.text = name, text
		w.post(m)
		shown = w.show(m)
	})
	return shown
}

// Edit changes the text of a person's message.
func (w *World) Edit(id snowflake.ID, text string) {
	w.do(func() {
		m := w.messages[id]
		m.edits, m.text, m.edited = append(m.edits, m.text), text, w.now()
		w.tell("MESSAGE_UPDATE", m)
	})
}

// DropFile removes a file from a person's message, as people can.
func (w *World) DropFile(id snowflake.ID, name string) {
	w.do(func() {
		m := w.messages[id]
		m.edits, m.edited = append(m.edits, m.text), w.now()
		m.files = without(m.files, name)
		w.tell("MESSAGE_UPDATE", m)
	})
}

func without(files []*file, name string) (left []*file) {
	for _, f := range files {
		if f.name != name {
			left = append(left, f)
		}
	}
	return left
}

// Preview makes Discord add a link preview to a message: an update event that leaves the text unchanged.
func (w *World) Preview(id snowflake.ID) {
	w.do(func() { w.tell("MESSAGE_UPDATE", w.messages[id]) })
}

// Delete deletes a message, as its author or a moderator.
func (w *World) Delete(id snowflake.ID) { w.do(func() { w.remove(w.messages[id]) }) }

// DeleteUnderUs deletes a message of the bot, as a moderator.
func (w *World) DeleteUnderUs(id snowflake.ID) { w.Delete(id) }

// DeleteBulk deletes messages of one channel at once.
func (w *World) DeleteBulk(channel snowflake.ID, ids ...snowflake.ID) {
	w.do(func() {
		for _, id := range ids {
			w.messages[id].deleted = true
		}
		c := w.channels[channel]
		w.gateway.dispatch("MESSAGE_DELETE_BULK", messageIntent(c), object{"ids": ids, "channel_id": channel, "guild_id": c.guild})
	})
}
