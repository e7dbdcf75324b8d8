package discord

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"

	"deskhand/backend/lifecycle"
	"deskhand/backend/requests"
	"deskhand/backend/session"
)

// notForYou is the only answer to a stranger.
const notForYou = "Not for you."

// commands returns the commands for a bound channel.
func commands() []discord.ApplicationCommandCreate {
	command := func(name, what string) discord.ApplicationCommandCreate {
		return discord.SlashCommandCreate{Name: name, Description: what, Contexts: []discord.InteractionContextType{discord.InteractionContextTypeGuild}}
	}
	return []discord.ApplicationCommandCreate{
		command("new", "Begins a new conversation here, with the same agent in the same directory"),
		command("stop", "Stops what the agent does now"),
		command("status", "Tells what the agent does and what waits"),
		command("approve", "Allows, once, the one approval that waits"),
	}
}

// command takes a command, and returns at once.
func (in *inbound) command(i discord.ApplicationCommandInteraction) {
	in.s.spawn(func(ctx context.Context) { in.obey(ctx, i) })
}

// obey answers a command. Discord waits for three seconds, so the work comes after a first response.
func (in *inbound) obey(ctx context.Context, i discord.ApplicationCommandInteraction) {
	answer := discord.InteractionResponse{Type: discord.InteractionResponseTypeDeferredCreateMessage, Data: discord.MessageCreate{Flags: discord.MessageFlagEphemeral}}
	known := in.mayCommand(i)
	if !known {
		answer.Type, answer.Data = discord.InteractionResponseTypeCreateMessage, discord.MessageCreate{
			Content: notForYou, Flags: discord.MessageFlagEphemeral, AllowedMentions: &discord.AllowedMentions{},
		}
	}
	err := in.s.client.rest.CreateInteractionResponse(i.ID(), i.Token(), answer, rest.WithCtx(ctx))
	channel := i.Channel().MessageChannel
	if err != nil || !known || channel == nil { // nobody would see the result
		in.fails(ctx, "a command cannot be answered", 0, err)
		return
	}
	text := in.given(ctx, channel.ID(), i)
	flags := discord.MessageFlagSuppressEmbeds
	_, err = in.s.client.rest.UpdateInteractionResponse(i.ApplicationID(), i.Token(), discord.MessageUpdate{
		Content: &text, Flags: &flags, AllowedMentions: &discord.AllowedMentions{},
	}, rest.WithCtx(ctx))
	in.fails(ctx, "a command cannot be answered", channel.ID(), err)
}

// mayCommand reports whether the person is allowed to give commands, and counts all others.
func (in *inbound) mayCommand(i discord.ApplicationCommandInteraction) bool {
	switch {
	case i.GuildID() == nil || i.Member() == nil:
		in.s.ignored(ignoredDirect)
	case !in.s.allowed(i.Member().User.ID):
		in.s.ignored(ignoredStrangers)
	default:
		return true
	}
	return false
}

// given executes a command, and returns the text of the result.
func (in *inbound) given(ctx context.Context, channel snowflake.ID, i discord.ApplicationCommandInteraction) string {
	b, ok := in.s.bindings.bound(channel)
	name := i.Data.CommandName()
	switch {
	case !ok:
		return "This channel is not bound to a conversation."
	case name == "new":
		return in.begun(ctx, channel)
	case b.Session == "" && name == "status":
		return fmt.Sprintf("Each message here begins a conversation with %s in %s.", b.Agent, quoted(b.Directory))
	case b.Session == "":
		return "Give this command in the thread of a conversation."
	case name == "stop":
		return in.stop(ctx, b.Session)
	case name == "status":
		return in.status(ctx, b.Session)
	case name == "approve":
		return in.approve(ctx, channel, b.Session, i)
	}
	return "There is no such command any more."
}

func (in *inbound) stop(ctx context.Context, id string) string {
	err := in.s.cfg.Sessions.Cancel(ctx, id)
	if r, ok := errors.AsType[*session.RefusedError](err); ok && r.Code == "turn.none" {
		return "Nothing runs."
	}
	if err != nil {
		return "Not stopped: " + in.inWords(ctx, err)
	}
	s, err := in.s.cfg.Sessions.Get(ctx, id)
	if err != nil || s.Queue == 0 {
		return "Stopping."
	}
	return fmt.Sprintf("Stopping. What waits in the queue (%d) goes out only when somebody sends it at the desk.", s.Queue)
}

func (in *inbound) status(ctx context.Context, id string) string {
	s, err := in.s.cfg.Sessions.Get(ctx, id)
	if err != nil {
		return "Not known: " + in.inWords(ctx, err)
	}
	lines := []string{
		fmt.Sprintf("%s · %s", quoted(cmp.Or(s.Title, "New conversation")), s.AgentName),
		fmt.Sprintf("%s, in %s", phaseWords(s), quoted(s.Cwd)),
	}
	if queue, err := in.s.cfg.Sessions.Queue(ctx, id); err == nil && len(queue) > 0 {
		held := 0
		for _, q := range queue {
			if q.Held != "" {
				held++
			}
		}
		lines = append(lines, fmt.Sprintf("Waiting messages: %d, of which held until somebody sends them at the desk: %d", len(queue), held))
	}
	if s.Waiting > 0 {
		lines = append(lines, fmt.Sprintf("Waiting for an answer: %d", s.Waiting))
	}
	if u := s.Usage; u != nil && u.Size > 0 {
		const whole = 100
		lines = append(lines, fmt.Sprintf("Context: %d %% full", u.Used*whole/u.Size))
		if u.Cost != nil {
			lines = append(lines, fmt.Sprintf("Cost so far: %.2f %s", u.Cost.Amount, u.Cost.Currency))
		}
	}
	return strings.Join(lines, "\n")
}

func phaseWords(s session.Session) string {
	switch s.Phase {
	case lifecycle.Starting, lifecycle.Replaying:
		return "The agent starts"
	case lifecycle.Working:
		return "At work"
	case lifecycle.Waiting:
		return "Waits for an answer"
	case lifecycle.Cancelling:
		return "Is being stopped"
	case lifecycle.Ready:
		return "Ready"
	case lifecycle.Closed:
	}
	if s.Exit != nil {
		return "The agent has ended; the next message starts it again"
	}
	return "Asleep; the next message wakes the agent"
}

// approve answers the only waiting approval of a conversation with the option that allows it once, as a press of its button does. The
// approval must be shown in this channel, and the person must have had time to read it. Where the person may have meant another approval,
// only its button works.
func (in *inbound) approve(ctx context.Context, channel snowflake.ID, id string, i discord.ApplicationCommandInteraction) string {
	list, err := in.s.cfg.Sessions.Requests().Waiting(ctx)
	if err != nil {
		return "Not allowed: " + in.inWords(ctx, err)
	}
	list = slices.DeleteFunc(list, func(r requests.Request) bool { return r.Session != id || r.Kind != "permission" })
	if len(list) == 0 {
		return "Nothing waits for an approval."
	}
	ended, err := in.justEnded(ctx, id, i.ID().Time())
	if err != nil {
		return "Not allowed: " + in.inWords(ctx, err)
	}
	if len(list) > 1 {
		return "More than one waits: use their buttons."
	}
	if ended {
		return "Another one has just ended. Look at this one, and give the command again."
	}
	r := list[0]
	options := slices.DeleteFunc(slices.Clone(r.Options), func(o requests.Option) bool { return o.Kind != "allow_once" })
	if r.Choice || r.Clipped || len(options) != 1 {
		return "It cannot simply be allowed once. Choose among its buttons."
	}
	card, shown, err := in.s.requests.one(ctx, r.ID)
	if err == nil && (!shown || card.channel != channel || card.message == 0 || i.ID().Time().Sub(card.message.Time()) < guardTime) {
		return "It has only just come. Look at it first."
	}
	if err == nil {
		err = in.s.requests.answer(ctx, r.ID, i.User().ID, requests.Answer{OptionID: options[0].ID})
	}
	if late, ok := errors.AsType[*session.RefusedError](err); ok && late.Code == "request.resolved" {
		return "It was answered already."
	}
	if err != nil {
		return "Not allowed: " + in.inWords(ctx, err)
	}
	return "Allowed once: " + quoted(r.Title)
}

// justEnded reports whether an approval of a conversation ended shortly before or after a time of Discord's clock: a person who gave a
// command then may have meant that approval.
func (in *inbound) justEnded(ctx context.Context, id string, at time.Time) (bool, error) {
	const shortly = 3 * time.Second
	t, err := in.s.cfg.Sessions.Transcripts().Entries(ctx, id, 0, lookBack)
	since := in.here(at).Add(-shortly)
	return slices.ContainsFunc(t.Requests, func(r requests.Request) bool {
		return r.Kind == "permission" && r.ResolvedAt != nil && !r.ResolvedAt.Before(since)
	}), err
}

// begun begins a new conversation, after the earlier messages of the channel.
func (in *inbound) begun(ctx context.Context, channel snowflake.ID) string {
	done := make(chan string, 1)
	in.lanes.queue(channel, func(ctx context.Context) { done <- in.another(ctx, channel) })
	select {
	case text := <-done:
		return text
	case <-ctx.Done():
		return "Deskhand ends."
	}
}

func (in *inbound) another(ctx context.Context, channel snowflake.ID) string {
	b, ok := in.s.bindings.bound(channel)
	if !ok {
		return "This channel is not bound to a conversation."
	}
	if b.Session == "" {
		return in.anotherThread(ctx, b)
	}
	old, err := in.s.cfg.Sessions.Get(ctx, b.Session)
	switch {
	case err != nil:
		return "Not begun: " + in.inWords(ctx, err)
	case old.Turn != nil || old.Waiting > 0:
		return "The agent is still at work. Stop it with /stop first, or let it finish."
	}
	s, err := in.s.cfg.Sessions.Create(ctx, session.New{Agent: old.Agent, Cwd: old.Cwd, Place: old.Place, Directories: old.Directories})
	if err == nil {
		b.Session, b.CreatedAt = s.ID, session.Time{Time: time.Now()}
		err = in.s.bindings.bind(ctx, b, 0)
	}
	if err != nil {
		return "Not begun: " + in.inWords(ctx, err)
	}
	if old.Queue > 0 {
		return fmt.Sprintf("A new conversation begins with your next message. The one before is at the desk, with %d messages that wait there.", old.Queue)
	}
	return "A new conversation begins with your next message. The one before is at the desk."
}

// anotherThread begins a thread with a conversation, where threads are conversations.
func (in *inbound) anotherThread(ctx context.Context, b Binding) string {
	const name = "Conversation"
	made, err := in.s.client.rest.CreateThread(idOf(b.Channel), discord.GuildPublicThreadCreate{Name: name}, rest.WithCtx(ctx))
	if err != nil {
		return "Not begun: " + in.inWords(ctx, err)
	}
	in.isBelow(made.ID(), idOf(b.Channel))
	return "Say what it is about in <#" + made.ID().String() + ">: your first message there begins the conversation."
}
