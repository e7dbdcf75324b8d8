package discordtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/snowflake/v2"
)

// The kinds of interactions and of their answers, as Discord numbers them.
const (
	interactionCommand   = 2
	interactionComponent = 3
	interactionModal     = 5

	answerMessage         = 4
	answerDeferredMessage = 5
	answerDeferred        = 6
	answerUpdate          = 7
	answerModal           = 9
)

// Interaction is one use of a control, a slash command or a modal. The exported fields do not change.
type Interaction struct {
	ID    snowflake.ID
	User  snowflake.ID
	Token string

	d       *Discord
	kind    int
	channel *channel
	message *message // the message with the control
	payload object
	begun   time.Time
	first   Answer
	answer  *message // the message that answers the interaction, or will after a deferred answer
	only    []*message
}

// Answer is the bot's first answer to an interaction. Kind is message, deferred message, deferred (an update will follow), update or
// modal.
type Answer struct {
	Kind    string        `json:"kind"`
	Private bool          `json:"private,omitempty"`
	Message snowflake.ID  `json:"message,omitempty"`
	Text    string        `json:"text,omitempty"`
	Modal   *Modal        `json:"modal,omitempty"`
	After   time.Duration `json:"-"`
}

// Modal is a form that the bot asks a person to fill in.
type Modal struct {
	CustomID   string    `json:"customId"`
	Title      string    `json:"title"`
	Fields     []Control `json:"fields"`
	components []*component
}

// interactions has the uses of controls, commands and modals, and the commands of the bot.
type interactions struct {
	d        *Discord
	patience time.Duration // how long an interaction waits for its first answer
	byID     map[snowflake.ID]*Interaction
	commands map[snowflake.ID][]command // by guild; 0 = in every guild
}

// Wait waits for the first answer to i.
func (i *Interaction) Wait(ctx context.Context) (a Answer, err error) {
	err = i.d.Wait(ctx, func(s Seen) (answered bool) {
		a, answered = s.Answer(i)
		return answered
	})
	return a, err
}

// Private returns the messages that only the person of i sees.
func (i *Interaction) Private() (list []Message) {
	i.d.look(func(Seen) { list = i.private() })
	return list
}

func (i *Interaction) private() (list []Message) {
	for _, m := range i.only {
		if !m.deleted {
			list = append(list, i.d.show(m))
		}
	}
	return list
}

func (x *interactions) interact(c *channel, user snowflake.ID, kind int, m *message, how manner) *Interaction {
	i := &Interaction{ID: x.d.nextID(), User: user, d: x.d, kind: kind, channel: c, message: m, begun: time.Now()}
	if m != nil {
		if at := m.id.Time().Add(how.after); how.quick || at.After(i.ID.Time()) {
			const counter = 1<<22 - 1
			i.ID = snowflake.New(at)&^counter | i.ID&counter
		}
	}
	for x.byID[i.ID] != nil {
		i.ID++
	}
	i.Token = "aW50ZXJhY3Rpb24" + i.ID.String()
	i.payload = object{
		"id": i.ID, "application_id": x.d.Application, "type": kind, "token": i.Token, "version": 1, "locale": "en-US",
		"app_permissions": permissions(x.d.may(c)), "entitlements": []any{}, "authorizing_integration_owners": object{"0": c.guild},
		"context": 0, "attachment_size_limit": x.d.largest(c.guild), "channel_id": c.id,
	}
	where := x.d.channelJSON(c)
	where["permissions"] = permissions(discord.PermissionsAllText)
	i.payload["channel"] = where
	if g := x.d.guild(c.guild); g != nil {
		member := x.d.memberJSON(g, user)
		member["user"], member["permissions"] = x.d.userJSON(user), permissions(g.everyone)
		i.payload["member"], i.payload["guild_id"], i.payload["guild_locale"] = member, g.id, "en-US"
		i.payload["guild"] = object{"id": g.id, "locale": "en-US", "features": []string{}}
	} else {
		i.payload["user"], i.payload["context"] = x.d.userJSON(user), 1
	}
	x.byID[i.ID] = i
	return i
}

// Press uses a control of a message: a button, or a menu when values are given. Press returns an error where a person could not press. By
// Discord's clock the press comes at least a second after the message.
func (d *Discord) Press(message, user snowflake.ID, customID string, values ...string) (i *Interaction, err error) {
	d.do(func() { i, err = d.interactions.press(message, user, customID, values, manner{after: time.Second}) })
	return i, err
}

// PressQuickly is Press by a person who aimed at something else: the press comes a tenth of a second after the message.
func (d *Discord) PressQuickly(message, user snowflake.ID, customID string, values ...string) (i *Interaction, err error) {
	d.do(func() {
		i, err = d.interactions.press(message, user, customID, values, manner{after: time.Second / 10, quick: true})
	})
	return i, err
}

// PressLate is Press of a control that the bot has removed meanwhile: the screen of a person can be older than the bot's last change.
func (d *Discord) PressLate(message, user snowflake.ID, customID string, values ...string) (i *Interaction, err error) {
	d.do(func() {
		i, err = d.interactions.press(message, user, customID, values, manner{after: time.Second, late: true})
	})
	return i, err
}

// manner says how a control is pressed: how long after the message by Discord's clock, so that no test has to wait for that time, and
// whether on a screen that is older than the message.
type manner struct {
	after       time.Duration
	quick, late bool
}

func (x *interactions) press(id, user snowflake.ID, customID string, values []string, how manner) (*Interaction, error) {
	late := how.late
	m := x.d.messages[id]
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
	i := x.interact(m.channel, user, interactionComponent, m, how)
	data := object{"custom_id": customID, "component_type": kind, "id": 1}
	if kind != componentButton {
		data["values"] = values
	}
	i.payload["data"], i.payload["message"] = data, x.d.messageJSON(m, true)
	x.d.Gateway.dispatch("INTERACTION_CREATE", 0, i.payload)
	return i, nil
}

// Slash sends a slash command. Slash returns an error where a person could not send the command: the bot has no such command.
func (d *Discord) Slash(channel, user snowflake.ID, name string, options map[string]any) (i *Interaction, err error) {
	d.do(func() { i, err = d.interactions.slash(channel, user, strings.TrimPrefix(name, "/"), options) })
	return i, err
}

func (x *interactions) slash(channel, user snowflake.ID, name string, options map[string]any) (*Interaction, error) {
	where := x.d.channels[channel]
	known := x.command(where.guild, name)
	if known == nil {
		return nil, fmt.Errorf("the bot has no command /%s here", name)
	}
	list, err := known.given(options)
	if err != nil {
		return nil, err
	}
	i := x.interact(where, user, interactionCommand, nil, manner{})
	data := object{"id": known.id, "name": name, "type": 1}
	if len(list) > 0 {
		data["options"] = list
	}
	i.payload["data"] = data
	x.d.Gateway.dispatch("INTERACTION_CREATE", 0, i.payload)
	return i, nil
}

// SubmitModal submits the modal that answered the interaction of. The values go by custom id; each value is a string, a []string or a
// bool.
func (d *Discord) SubmitModal(of *Interaction, values map[string]any) (i *Interaction, err error) {
	d.do(func() { i, err = d.interactions.submit(of, values) })
	return i, err
}

func (x *interactions) submit(of *Interaction, values map[string]any) (*Interaction, error) {
	modal := of.first.Modal
	if modal == nil {
		return nil, fmt.Errorf("interaction %d was not answered with a modal", of.ID)
	}
	filled, err := fill(modal.components, values)
	if err != nil {
		return nil, err
	}
	i := x.interact(of.channel, of.User, interactionModal, of.message, manner{after: time.Second})
	i.payload["data"] = object{"custom_id": modal.CustomID, "components": filled}
	if of.message != nil {
		i.payload["message"] = x.d.messageJSON(of.message, true)
	}
	x.d.Gateway.dispatch("INTERACTION_CREATE", 0, i.payload)
	return i, nil
}

func (x *interactions) routes() map[string]endpoint {
	const original = "/webhooks/{application}/{token}/messages/@original"
	const followup = "/webhooks/{application}/{token}/messages/{message}"
	return map[string]endpoint{
		RouteCallback:        x.callback,
		RouteFollowup:        x.ofInteraction(x.followup),
		"GET " + original:    x.ofAnswer(func(m *message, _ *request) reply { return ok(x.d.messageJSON(m, true)) }),
		"PATCH " + original:  x.ofAnswer(x.editAnswer),
		"DELETE " + original: x.ofAnswer(x.deleteAnswer),
		"GET " + followup:    x.ofAnswer(func(m *message, _ *request) reply { return ok(x.d.messageJSON(m, true)) }),
		"PATCH " + followup:  x.ofAnswer(x.editAnswer),
		"DELETE " + followup: x.ofAnswer(x.deleteAnswer),

		RouteCommands: x.setCommands,
		"GET /applications/{application}/commands":                x.getCommands,
		"PUT /applications/{application}/guilds/{guild}/commands": x.setCommands,
		"GET /applications/{application}/guilds/{guild}/commands": x.getCommands,
	}
}

type modalBody struct {
	CustomID   string       `json:"custom_id"`
	Title      string       `json:"title"`
	Components []*component `json:"components"`
}

// callback handles the call with the first answer to an interaction.
func (x *interactions) callback(r *request) reply {
	i := x.byID[r.id("interaction")]
	var in struct {
		Type int             `json:"type"`
		Data json.RawMessage `json:"data"`
	}
	if f := r.decode(&in); f != nil {
		return f.reply()
	}
	switch {
	case i == nil || i.Token != r.PathValue("token") || time.Since(i.begun) > x.patience && i.first.Kind == "":
		return unknown(10062, "interaction").reply()
	case i.first.Kind != "":
		return refuse(http.StatusBadRequest, 40060, "Interaction has already been acknowledged.").reply()
	}
	inner := &request{Request: r.Request, body: in.Data, uploads: r.uploads}
	a, f := x.answer(i, in.Type, inner)
	if f != nil {
		return f.reply()
	}
	a.After = time.Since(i.begun)
	i.first = a
	if r.URL.Query().Get("with_response") != "true" {
		return done()
	}
	resource := object{"type": in.Type}
	if i.answer != nil {
		resource["message"] = x.d.messageJSON(i.answer, true)
	}
	return ok(object{
		"interaction": object{
			"id": i.ID, "type": i.kind, "response_message_id": a.Message, "response_message_loading": in.Type == answerDeferredMessage,
			"response_message_ephemeral": a.Private,
		},
		"resource": resource,
	})
}

func (x *interactions) answer(i *Interaction, kind int, r *request) (Answer, *failure) {
	wrong := invalid("type", "BASE_TYPE_CHOICES", "This interaction cannot be answered so.")
	switch kind {
	case answerMessage, answerDeferredMessage:
		return x.answerMessage(i, kind, r)
	case answerDeferred, answerUpdate:
		if i.message == nil {
			return Answer{}, wrong
		}
		i.answer = i.message
		if kind == answerDeferred {
			return Answer{Kind: "deferred", Message: i.message.id}, nil
		}
		var b messageBody
		f := r.decode(&b)
		if f == nil {
			f = x.d.API.apply(i.message, r, &b)
		}
		return Answer{Kind: "update", Message: i.message.id, Text: i.message.text}, f
	case answerModal:
		var m modalBody
		if f := r.decode(&m); f != nil || i.kind == interactionModal {
			return Answer{}, wrong
		}
		if f := checkModal(m); f != nil {
			return Answer{}, f
		}
		number(m.Components)
		return Answer{Kind: "modal", Modal: &Modal{m.CustomID, m.Title, controls(m.Components), m.Components}}, nil
	}
	return Answer{}, wrong
}

func (x *interactions) answerMessage(i *Interaction, kind int, r *request) (Answer, *failure) {
	var b messageBody
	if f := r.decode(&b); f != nil {
		return Answer{}, f
	}
	var w said
	var f *failure
	if kind == answerMessage {
		w, f = x.d.API.compose(i.channel, r, &b)
	} else if b.Flags != nil {
		w.flags = *b.Flags & flagEphemeral
	}
	if f != nil {
		return Answer{}, f
	}
	if kind == answerDeferredMessage {
		w.flags |= flagLoading
	}
	i.answer = x.d.write(i.channel, w, i)
	if i.kind == interactionCommand {
		i.answer.kind = messageCommand
	}
	i.answer.mentions = kind == answerMessage && b.pings()
	a := Answer{Kind: "message", Private: i.answer.only != nil, Message: i.answer.id, Text: w.text}
	if kind == answerDeferredMessage {
		a.Kind = "deferred message"
	}
	return a, nil
}

// editableFor is how long the token of an interaction is valid.
const editableFor = 15 * time.Minute

// ofInteraction returns an endpoint for calls with the token of an interaction that was answered.
func (x *interactions) ofInteraction(f func(*Interaction, *request) reply) endpoint {
	return func(r *request) reply {
		for _, i := range x.byID {
			if i.Token != r.PathValue("token") || r.id("application") != x.d.Application {
				continue
			}
			switch {
			case time.Since(i.begun) > editableFor:
				return refuse(http.StatusUnauthorized, 50027, "Invalid Webhook Token").reply()
			case i.first.Kind == "":
				return unknown(10015, "Webhook").reply()
			}
			return f(i, r)
		}
		return unknown(10015, "Webhook").reply()
	}
}

// ofAnswer returns an endpoint for calls about a message that belongs to an interaction.
func (x *interactions) ofAnswer(f func(*message, *request) reply) endpoint {
	return x.ofInteraction(func(i *Interaction, r *request) reply {
		m := i.answer
		if r.PathValue("message") != "" {
			m = x.d.messages[r.id("message")]
			if m != nil && m.made != i && m != i.answer {
				m = nil
			}
		}
		if m == nil || m.deleted {
			return unknown(10008, "Message").reply()
		}
		return f(m, r)
	})
}

func (x *interactions) followup(i *Interaction, r *request) reply {
	var b messageBody
	if f := r.decode(&b); f != nil {
		return f.reply()
	}
	w, f := x.d.API.compose(i.channel, r, &b)
	if f != nil {
		return f.reply()
	}
	if a := i.answer; a != nil && a.flags&flagLoading != 0 {
		// The first message after a deferred answer replaces the deferred answer and is private if that answer was private.
		if f := x.d.API.apply(a, r, &b); f != nil {
			return f.reply()
		}
		return ok(x.d.messageJSON(a, true))
	}
	m := x.d.write(i.channel, w, i)
	m.mentions = b.pings()
	return ok(x.d.messageJSON(m, true))
}

func (x *interactions) editAnswer(m *message, r *request) reply {
	var b messageBody
	if f := r.decode(&b); f != nil {
		return f.reply()
	}
	if f := x.d.API.apply(m, r, &b); f != nil {
		return f.reply()
	}
	return ok(x.d.messageJSON(m, true))
}

func (x *interactions) deleteAnswer(m *message, _ *request) reply {
	x.d.remove(m)
	return done()
}

// command is a slash command of the bot.
type command struct {
	id          snowflake.ID
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Type        int             `json:"type"`
	Options     []commandOption `json:"options"`
	raw         object
}

type commandOption struct {
	Type        int    `json:"type"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Required    bool   `json:"required"`
	Choices     []struct {
		Name  string `json:"name"`
		Value any    `json:"value"`
	} `json:"choices"`
}

func (x *interactions) command(guild snowflake.ID, name string) *command {
	for _, list := range [][]command{x.commands[guild], x.commands[0]} {
		if i := slices.IndexFunc(list, func(c command) bool { return c.Name == name }); i >= 0 {
			return &list[i]
		}
	}
	return nil
}

// given returns the options of a command as Discord sends them after a person filled them in.
func (c *command) given(options map[string]any) ([]object, error) {
	var list []object
	for _, o := range c.Options {
		value, has := options[o.Name]
		if !has && o.Required {
			return nil, fmt.Errorf("/%s needs %q", c.Name, o.Name)
		}
		if has {
			list = append(list, object{"name": o.Name, "type": o.Type, "value": value})
		}
	}
	if len(list) != len(options) {
		return nil, fmt.Errorf("/%s does not have all of %v", c.Name, options)
	}
	return list, nil
}

func (x *interactions) setCommands(r *request) reply {
	var raw []object
	var list []command
	f := r.decode(&raw)
	if f == nil {
		f = r.decode(&list)
	}
	if f != nil {
		return f.reply()
	}
	if r.id("application") != x.d.Application {
		return refuse(http.StatusForbidden, 20012, "You are not authorized to perform this action on this application").reply()
	}
	named := regexp.MustCompile(`^[-_\p{Ll}\p{N}]{1,32}$`)
	for i := range list {
		c := &list[i]
		if f := c.refused(named, strconv.Itoa(i)); f != nil {
			return f.reply()
		}
		c.id, c.raw = x.d.nextID(), raw[i]
		c.raw["id"], c.raw["application_id"], c.raw["version"], c.raw["default_member_permissions"] = c.id, x.d.Application, c.id, nil
		if c.raw["type"] == nil {
			c.raw["type"] = 1
		}
	}
	x.commands[r.id("guild")] = list
	return x.getCommands(r)
}

func (c *command) refused(named *regexp.Regexp, path string) *failure {
	const longest = 100
	if c.Type > 1 {
		return nil
	}
	if !named.MatchString(c.Name) {
		return invalid(path+".name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
	}
	if c.Description == "" || units(c.Description) > longest {
		return invalid(path+".description", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
	}
	for i, o := range c.Options {
		here := path + ".options." + strconv.Itoa(i)
		switch {
		case !named.MatchString(o.Name):
			return invalid(here+".name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
		case o.Description == "" || units(o.Description) > longest:
			return invalid(here+".description", "BASE_TYPE_BAD_LENGTH", "Must be between 1 and 100 in length.")
		case o.Required && i > 0 && !c.Options[i-1].Required:
			return invalid(here, "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", "Required options must be placed before non-required options")
		}
	}
	return nil
}

func (x *interactions) getCommands(r *request) reply {
	list := []object{}
	for _, c := range x.commands[r.id("guild")] {
		list = append(list, c.raw)
	}
	return ok(list)
}
