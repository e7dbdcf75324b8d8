package discord

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/gateway"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"

	"deskhand/backend/session"
)

// A channel that is bound to a directory: a message in the channel itself begins a thread, and the first message in a thread begins a
// conversation there. A crash in between leaves at most an empty conversation: the message is stored in the transaction that binds the
// thread, and is requested again until then.

// mostAbove limits for how many threads the channel is remembered.
const mostAbove = 10000

// threadMade takes a new thread.
func (in *inbound) threadMade(ev gateway.EventThreadCreate) {
	if parent := ev.ParentID(); parent != nil {
		in.isBelow(ev.ID(), *parent)
	}
}

func (in *inbound) isBelow(thread, channel snowflake.ID) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.above) >= mostAbove {
		clear(in.above) // the channels can be requested again
	}
	in.above[thread] = channel
}

// channelAbove returns the channel of a thread; 0 when the id is no thread.
func (in *inbound) channelAbove(ctx context.Context, thread snowflake.ID) (snowflake.ID, error) {
	in.mu.Lock()
	channel, known := in.above[thread]
	in.mu.Unlock()
	if known {
		return channel, nil
	}
	found, err := in.lookAt(ctx, thread)
	if err != nil {
		return 0, err
	}
	if t, ok := found.(discord.GuildThread); ok && t.ParentID() != nil {
		channel = *t.ParentID()
	}
	in.isBelow(thread, channel)
	return channel, nil
}

// lookAt requests a channel, several times when Discord fails, because a message of an unknown channel would be lost.
func (in *inbound) lookAt(ctx context.Context, channel snowflake.ID) (found discord.Channel, err error) {
	const tries = 3
	pause := in.s.client.patience(firstPause)
	for left := tries; ; left-- {
		found, err = in.s.client.rest.GetChannel(channel, rest.WithCtx(ctx))
		if err == nil || left == 1 || isRefused(err) || ctx.Err() != nil {
			return found, err
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		}
		pause *= 2
	}
}

// isRefused reports whether an error is Discord's refusal of a call, and not a failure.
func isRefused(err error) bool {
	refused, ok := errors.AsType[*rest.Error](err)
	return ok && refused.Response != nil && refused.Response.StatusCode < http.StatusInternalServerError
}

// beginIn begins a conversation with a message in a thread whose channel is bound to a directory; b is the thread's earlier binding, if
// any.
func (in *inbound) beginIn(ctx context.Context, h heard, guild *snowflake.ID, b bond) bool {
	in.mu.Lock()
	born := in.born[h.channel]
	in.mu.Unlock()
	if born != nil { // we have made the thread, and bind it now
		select {
		case <-born:
		case <-ctx.Done():
		}
		_, ok := in.s.bindings.bound(h.channel)
		return ok
	}
	channel, err := in.channelAbove(ctx, h.channel)
	in.fails(ctx, "a channel cannot be looked at", h.channel, err)
	above, ok := in.s.bindings.bound(channel)
	switch {
	case ok && above.Session == "" && guild != nil:
		return in.beginHere(ctx, h, above)
	case b.deleted:
		in.tell(ctx, h, "Not taken: "+in.inWords(ctx, session.ErrNotFound))
	default:
		in.s.ignored(ignoredUnbound)
	}
	return false
}

// beginHere begins a conversation in the thread of a message, and reports success.
func (in *inbound) beginHere(ctx context.Context, h heard, above Binding) bool {
	if err := in.begin(ctx, above, h.channel, "", func(string, *sql.Tx) error { return nil }); err != nil {
		if ctx.Err() == nil {
			in.pastBy(h)
			in.tell(ctx, h, "Not taken: "+in.inWords(ctx, err))
		}
		return false
	}
	return true
}

// pastBy remembers that a message was refused in a thread that is not bound, so that the refusal is not repeated when the line comes
// back.
func (in *inbound) pastBy(h heard) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if len(in.passed) >= mostAbove {
		clear(in.passed)
	}
	in.passed[h.channel] = max(in.passed[h.channel], h.id)
}

// begin makes a conversation in a directory and binds a thread to the conversation. with runs in the same transaction.
func (in *inbound) begin(ctx context.Context, above Binding, thread snowflake.ID, name string, with func(string, *sql.Tx) error) error {
	s, err := in.s.cfg.Sessions.Create(ctx, session.New{Agent: above.Agent, Cwd: above.Directory})
	if err != nil {
		return err
	}
	b := Binding{
		Channel: thread.String(), Name: cmp.Or(name, above.Name), Guild: above.Guild, GuildName: above.GuildName, Thread: true,
		Session: s.ID, CreatedAt: session.Time{Time: time.Now()},
	}
	return in.s.bindings.bindWith(ctx, b, 0, func(tx *sql.Tx) error { return with(s.ID, tx) })
}

// beginFrom begins a thread with a message in a channel, and a conversation in the thread.
func (in *inbound) beginFrom(ctx context.Context, b Binding, h heard) {
	done := make(chan struct{})
	in.mu.Lock()
	in.born[h.id] = done // a thread has the id of the message with which it begins
	in.mu.Unlock()
	defer func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		delete(in.born, h.id)
		close(done)
	}()
	if _, known, err := in.message(ctx, h.channel, h.id); known || err != nil {
		in.fails(ctx, "a message cannot be read", h.channel, err)
		return
	}
	name := threadName(h)
	err := in.thread(ctx, h, name)
	if err == nil {
		err = in.begin(ctx, b, h.id, name, func(id string, tx *sql.Tx) error {
			h.session = id
			_, err := insert(ctx, tx, h)
			return err
		})
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		in.tell(ctx, h, "Not taken: "+in.inWords(ctx, err))
	} else {
		in.lanes.queue(h.id, func(ctx context.Context) { in.handOver(ctx, h.channel, h.id) })
	}
	err = in.s.bindings.looked(ctx, h, func(*sql.Tx) error { return nil })
	in.fails(ctx, "a mark cannot be moved", h.channel, err)
}

const codeThreadThere rest.JSONErrorCode = 160004 // the message has a thread

// thread makes the thread of a message; an existing thread is no error. So thread tries again when the result of a call is unknown.
func (in *inbound) thread(ctx context.Context, h heard, name string) (err error) {
	const tries = 3
	in.isBelow(h.id, h.channel)
	for range tries {
		_, err = in.s.client.rest.CreateThreadFromMessage(h.channel, h.id, discord.ThreadCreateFromMessage{Name: name}, rest.WithCtx(ctx))
		refused, told := errors.AsType[*rest.Error](err)
		switch {
		case told && refused.Code == codeThreadThere:
			return nil
		case err == nil, ctx.Err() != nil, told && refused.Response != nil && refused.Response.StatusCode < http.StatusInternalServerError:
			return err
		}
	}
	return err
}

// threadName returns the first line of a message, shortened if long.
func threadName(h heard) string {
	const most = 80
	line := ""
	for text := range strings.Lines(h.raw.Content) {
		if line = strings.Join(strings.Fields(text), " "); line != "" {
			break
		}
	}
	if files := h.raw.Raw.Discord.Attachments; line == "" && len(files) > 0 {
		line = files[0].name()
	}
	if runes := []rune(line); len(runes) > most {
		line = string(runes[:most]) + "…"
	}
	return cmp.Or(line, "Conversation")
}
