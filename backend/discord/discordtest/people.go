package discordtest

import (
	"fmt"
	"strings"
	"time"

	"github.com/disgoorg/snowflake/v2"
)

// Say posts a message in a channel as a person or as another bot. On return the channel shows the message and the event is on its way to
// the clients of the gateway.
func (d *Discord) Say(channel, user snowflake.ID, text string, files ...File) Message {
	return d.SayAt(time.Time{}, channel, user, text, files...)
}

// SayAt is Say with a time; the zero time means now. A message with a time sends no event, since the message was posted before any client
// listened.
func (d *Discord) SayAt(at time.Time, channel, user snowflake.ID, text string, files ...File) (shown Message) {
	d.do(func() {
		m := d.newMessage(d.channels[channel], user, messageDefault)
		if !at.IsZero() {
			m.id = snowflake.New(at) | m.id&(1<<22-1)
		}
		m.text, m.mentions = text, true
		for _, f := range files {
			m.files = append(m.files, d.newFile(m, f.Name, f.Type, f.Data))
		}
		if at.IsZero() {
			d.post(m)
		} else {
			d.keep(m)
		}
		shown = d.show(m)
	})
	return shown
}

// Reply posts an answer to a message.
func (d *Discord) Reply(to, user snowflake.ID, text string) (shown Message) {
	d.do(func() {
		m := d.newMessage(d.messages[to].channel, user, messageReply)
		m.text, m.reference, m.mentions = text, &reference{Message: to}, true
		d.post(m)
		shown = d.show(m)
	})
	return shown
}

// SayWebhook posts a message as a webhook of a channel.
func (d *Discord) SayWebhook(channel snowflake.ID, name, text string) (shown Message) {
	d.do(func() {
		m := d.newMessage(d.channels[channel], d.Bot, messageDefault)
		m.webhook, m.text = name, text
		d.post(m)
		shown = d.show(m)
	})
	return shown
}

// Edit changes the text of a person's message.
func (d *Discord) Edit(id snowflake.ID, text string) {
	d.do(func() {
		m := d.messages[id]
		m.edits, m.text, m.edited = append(m.edits, m.text), text, d.now()
		d.tell("MESSAGE_UPDATE", m)
	})
}

// DropFile removes a file from a person's message, as people can.
func (d *Discord) DropFile(id snowflake.ID, name string) {
	d.do(func() {
		m := d.messages[id]
		m.edits, m.edited = append(m.edits, m.text), d.now()
		m.files = without(m.files, name)
		d.tell("MESSAGE_UPDATE", m)
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
func (d *Discord) Preview(id snowflake.ID) {
	d.do(func() { d.tell("MESSAGE_UPDATE", d.messages[id]) })
}

// Delete deletes a message, as its author or a moderator.
func (d *Discord) Delete(id snowflake.ID) { d.do(func() { d.remove(d.messages[id]) }) }

// DeleteUnderUs deletes a message of the bot, as a moderator.
func (d *Discord) DeleteUnderUs(id snowflake.ID) { d.Delete(id) }

// DeleteBulk deletes messages of one channel at once.
func (d *Discord) DeleteBulk(channel snowflake.ID, ids ...snowflake.ID) {
	d.do(func() {
		for _, id := range ids {
			d.messages[id].deleted = true
		}
		c := d.channels[channel]
		d.dispatch("MESSAGE_DELETE_BULK", messageIntent(c), object{"ids": ids, "channel_id": channel, "guild_id": c.guild})
	})
}

// Press uses a control of a message: a button, or a menu when values are given. Press returns an error where a person could not press. By
// Discord's clock the press comes at least a second after the message.
func (d *Discord) Press(message, user snowflake.ID, customID string, values ...string) (i *Interaction, err error) {
	d.do(func() { i, err = d.press(message, user, customID, values, manner{after: time.Second}) })
	return i, err
}

// PressQuickly is Press by a person who aimed at something else: the press comes a tenth of a second after the message.
func (d *Discord) PressQuickly(message, user snowflake.ID, customID string, values ...string) (i *Interaction, err error) {
	d.do(func() {
		i, err = d.press(message, user, customID, values, manner{after: time.Second / 10, quick: true})
	})
	return i, err
}

// PressLate is Press of a control that the bot has removed meanwhile: the screen of a person can be older than the bot's last change.
func (d *Discord) PressLate(message, user snowflake.ID, customID string, values ...string) (i *Interaction, err error) {
	d.do(func() { i, err = d.press(message, user, customID, values, manner{after: time.Second, late: true}) })
	return i, err
}

// manner says how a control is pressed: how long after the message by Discord's clock, so that no test has to wait for that time, and
// whether on a screen that is older than the message.
type manner struct {
	after       time.Duration
	quick, late bool
}

func (d *Discord) press(id, user snowflake.ID, customID string, values []string, how manner) (*Interaction, error) {
	late := how.late
	m := d.messages[id]
	if m == nil || m.deleted && !late {
		return nil, fmt.Errorf("there is no message %d", id)
	}
	kind := componentButton
	if len(values) > 0 {
		kind = componentSelect
	}
	c := find(m.components, customID)
	switch {
	case c == nil && late:
	case c == nil:
		return nil, fmt.Errorf("message %d has no control %q", id, customID)
	case c.Disabled && !late:
		return nil, fmt.Errorf("the control %q is off", customID)
	default:
		kind = c.Type
		if err := c.takes(values); err != nil && !late {
			return nil, err
		}
	}
	i := d.interact(m.channel, user, interactionComponent, m, how)
	data := object{"custom_id": customID, "component_type": kind, "id": 1}
	if kind != componentButton {
		data["values"] = values
	}
	i.payload["data"], i.payload["message"] = data, d.messageJSON(m, true)
	d.dispatch("INTERACTION_CREATE", 0, i.payload)
	return i, nil
}

// Slash sends a slash command. Slash returns an error where a person could not send the command: the bot has no such command.
func (d *Discord) Slash(channel, user snowflake.ID, name string, options map[string]any) (i *Interaction, err error) {
	d.do(func() { i, err = d.slash(channel, user, strings.TrimPrefix(name, "/"), options) })
	return i, err
}

func (d *Discord) slash(channel, user snowflake.ID, name string, options map[string]any) (*Interaction, error) {
	where := d.channels[channel]
	known := d.command(where.guild, name)
	if known == nil {
		return nil, fmt.Errorf("the bot has no command /%s here", name)
	}
	list, err := known.given(options)
	if err != nil {
		return nil, err
	}
	i := d.interact(where, user, interactionCommand, nil, manner{})
	data := object{"id": known.id, "name": name, "type": 1}
	if len(list) > 0 {
		data["options"] = list
	}
	i.payload["data"] = data
	d.dispatch("INTERACTION_CREATE", 0, i.payload)
	return i, nil
}

// SubmitModal submits the modal that answered the interaction of. The values go by custom id; each value is a string, a []string or a
// bool.
func (d *Discord) SubmitModal(of *Interaction, values map[string]any) (i *Interaction, err error) {
	d.do(func() { i, err = d.submit(of, values) })
	return i, err
}

func (d *Discord) submit(of *Interaction, values map[string]any) (*Interaction, error) {
	modal := of.first.Modal
	if modal == nil {
		return nil, fmt.Errorf("interaction %d was not answered with a modal", of.ID)
	}
	filled, err := fill(modal.components, values)
	if err != nil {
		return nil, err
	}
	i := d.interact(of.channel, of.User, interactionModal, of.message, manner{after: time.Second})
	i.payload["data"] = object{"custom_id": modal.CustomID, "components": filled}
	if of.message != nil {
		i.payload["message"] = d.messageJSON(of.message, true)
	}
	d.dispatch("INTERACTION_CREATE", 0, i.payload)
	return i, nil
}
