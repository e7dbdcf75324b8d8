package discord

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"

	"deskhand/backend/session"
)

// Messages that were written while Deskhand was away are taken in their order, as long as somebody may still wait for them: a prompt of
// yesterday that runs by itself this morning is a surprise.

const (
	mostAway = time.Hour       // older messages are not taken
	pageSize = 100             // of messages, Discord's limit
	lookBack = 200             // entries of a conversation that are searched for a recent message
	unsure   = 5 * time.Second // the precision of comparing two clocks: Discord's is in whole seconds
)

// here converts a time of Discord's clock to our clock.
func (in *inbound) here(at time.Time) time.Time { return at.Add(time.Since(in.s.client.now())) }

// connected requests the messages written meanwhile, unless Discord has replayed them.
func (in *inbound) connected(resumed bool) {
	if resumed {
		return
	}
	for _, channel := range in.s.bindings.reconnected() {
		in.lanes.queue(channel, func(ctx context.Context) { in.catchUp(ctx, channel) })
	}
}

// catchUp takes the messages of a channel after the newest message that was looked at.
func (in *inbound) catchUp(ctx context.Context, channel snowflake.ID) {
	b, ok := in.s.bindings.bond(channel)
	if !ok || !b.behind() || b.deleted {
		return
	}
	old, err := in.resume(ctx, b.Session)
	if err == nil {
		var more int
		more, err = in.goThrough(ctx, channel, b)
		old += more
	}
	switch {
	case err != nil:
	case b.Session == "":
		err = in.newThreads(ctx, b)
	default:
		err = in.reread(ctx, b.Session)
	}
	if ctx.Err() != nil {
		return
	}
	if old > 0 {
		in.tell(ctx, heard{channel: channel, session: b.Session}, tooOld(old))
	}
	if err = in.unseen(ctx, channel, err); err != nil {
		in.fails(ctx, "what was said meanwhile cannot be asked for", channel, err) // the next message requests them again
		return
	}
	in.s.bindings.caughtUp(channel, b.away)
}

// unseen returns the error of a request for messages, or nil when another request is useless.
func (in *inbound) unseen(ctx context.Context, channel snowflake.ID, err error) error {
	refused, ok := errors.AsType[*rest.Error](err)
	if !ok || refused.Response == nil {
		return err
	}
	switch refused.Response.StatusCode {
	case http.StatusNotFound:
		in.s.bindings.trouble(ctx, channel, problemGone)
		return nil
	case http.StatusForbidden: // new messages come all the same; the check reports the missing permission
		in.s.cfg.Logger.Warn("the history of a channel cannot be read", "channel", channel.String(), "error", err)
		return nil
	}
	return err
}

func tooOld(n int) string {
	if n == 1 {
		return "-# A message that was written here while Deskhand was away was not taken: it is older than an hour."
	}
	return fmt.Sprintf("-# %d messages that were written here while Deskhand was away were not taken: they are older than an hour.", n)
}

// goThrough takes the messages of a channel after the mark, and returns how many are too old.
func (in *inbound) goThrough(ctx context.Context, channel snowflake.ID, b bond) (old int, err error) {
	after := b.newest
	for {
		page, err := in.s.client.rest.GetMessages(channel, 0, 0, after, pageSize, rest.WithCtx(ctx))
		if err != nil {
			return old, err
		}
		stale, err := in.goThroughPage(ctx, channel, page, idOf(b.Guild))
		if old += stale; err != nil || len(page) < pageSize {
			return old, err
		}
		after = page[len(page)-1].ID
	}
}

// goThroughPage takes the messages of a page in order. The mark is moved over the ignored messages of a page at once, because a write for
// each would take long.
func (in *inbound) goThroughPage(ctx context.Context, channel snowflake.ID, page []discord.Message, guild snowflake.ID) (old int, err error) {
	slices.SortFunc(page, func(a, b discord.Message) int { return cmpIDs(a.ID, b.ID) })
	for _, m := range page {
		stale, err := in.missed(ctx, m, guild)
		if err != nil || ctx.Err() != nil {
			return old, errors.Join(err, ctx.Err())
		}
		if stale {
			old++
		}
	}
	if len(page) == 0 {
		return old, nil
	}
	return old, in.s.bindings.looked(ctx, heard{channel: channel, id: page[len(page)-1].ID, late: true}, func(*sql.Tx) error { return nil })
}

// missed takes a message that was written while we were away; stale reports that the message is too old.
func (in *inbound) missed(ctx context.Context, m discord.Message, guild snowflake.ID) (stale bool, err error) {
	m.GuildID = &guild // Discord sends the server with events alone
	h := readMessage(m)
	h.late = true
	if says, _ := in.says(m); !says {
		return false, nil
	}
	_, known, err := in.message(ctx, h.channel, h.id)
	switch {
	case err != nil || known:
		return false, err
	case in.stale(h):
		return true, nil
	}
	in.hear(ctx, h, &guild)
	return false, nil
}

func (in *inbound) stale(h heard) bool { return in.s.client.now().Sub(h.id.Time()) > mostAway }

// newThreads takes the messages written meanwhile in threads that are not bound, and waits for that. Messages that cannot be requested
// are requested again with the rest.
func (in *inbound) newThreads(ctx context.Context, b bond) error {
	list, err := in.s.client.rest.GetActiveGuildThreads(idOf(b.Guild), rest.WithCtx(ctx))
	if err != nil {
		return err
	}
	done, waiting := make(chan error, len(list.Threads)), 0
	for _, t := range list.Threads {
		parent := t.ParentID()
		if _, bound := in.s.bindings.bond(t.ID()); bound || parent == nil || parent.String() != b.Channel {
			continue
		}
		in.isBelow(t.ID(), *parent)
		waiting++
		in.lanes.queue(t.ID(), func(ctx context.Context) { done <- in.goThroughThread(ctx, t.ID(), b) })
	}
	for range waiting {
		select {
		case e := <-done:
			err = errors.Join(err, e)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return err
}

// catchUpThread takes the earlier messages of a thread that is not bound, when these could not be requested as the line came back. In a
// forum, no message in the channel itself would trigger that.
func (in *inbound) catchUpThread(ctx context.Context, thread snowflake.ID) {
	channel, err := in.channelAbove(ctx, thread)
	b, ok := in.s.bindings.bond(channel)
	if err != nil || !ok || !b.behind() || b.Session != "" {
		return
	}
	err = in.goThroughThread(ctx, thread, b)
	in.fails(ctx, "what was said meanwhile cannot be asked for", thread, err)
	in.lanes.queue(channel, func(ctx context.Context) { in.catchUp(ctx, channel) })
}

// goThroughThread takes the messages of a thread that is not bound, since its channel was bound. Messages that are too old are not
// reported, because no mark would prevent repeating the report.
func (in *inbound) goThroughThread(ctx context.Context, thread snowflake.ID, b bond) error {
	now := in.s.client.now()
	since := b.CreatedAt.Add(time.Until(now) - unsure)
	if oldest := now.Add(-mostAway); since.Before(oldest) {
		since = oldest
	}
	in.mu.Lock()
	after := max(thread, snowflake.New(since), in.passed[thread]+1) - 1 // in a forum the first message has the thread's id
	in.mu.Unlock()
	_, err := in.goThrough(ctx, thread, bond{Binding: b.Binding, newest: after})
	if refused, ok := errors.AsType[*rest.Error](err); ok && refused.Response != nil {
		switch refused.Response.StatusCode {
		case http.StatusNotFound, http.StatusForbidden: // another request is useless
			in.fails(ctx, "what was said meanwhile cannot be asked for", thread, err)
			return nil
		}
	}
	return err
}

// reread updates the waiting messages of a conversation, because Discord does not report changes and deletions made while we were away.
func (in *inbound) reread(ctx context.Context, session string) error {
	ours, err := in.ours(ctx, session)
	if isNotFound(err) {
		return nil
	}
	for _, w := range ours {
		for _, h := range w.of {
			m, gone := in.s.client.rest.GetMessage(h.channel, h.id, rest.WithCtx(ctx))
			switch {
			case rest.IsJSONErrorCode(gone, rest.JSONErrorCodeUnknownMessage):
				in.drop(ctx, h)
			case gone != nil:
				return gone
			case m.EditedTimestamp != nil:
				in.edit(ctx, h, readMessage(*m))
			}
		}
	}
	return err
}

func isNotFound(err error) bool { return errors.Is(err, session.ErrNotFound) }

// resume continues with the messages that were stored but not handed over when the program ended, and returns how many are too old.
func (in *inbound) resume(ctx context.Context, id string) (old int, err error) {
	if id == "" {
		return 0, nil
	}
	left, err := in.messages(ctx, `WHERE session = ? AND item = ''`, id)
	for _, h := range left {
		if h.item, err = in.already(ctx, h); err != nil {
			return old, err
		}
		switch {
		case h.item == "" && !in.stale(h):
			if err := in.recall(ctx, h); err != nil {
				return old, err
			}
			in.handOver(ctx, h.channel, h.id)
			continue
		case h.item == "":
			h.item = notTaken
			old++
		}
		if err := in.save(ctx, h); err != nil {
			return old, err
		}
	}
	return old, err
}

// recall updates a message that is not handed over yet from Discord, where somebody may have changed or deleted the message.
func (in *inbound) recall(ctx context.Context, h heard) error {
	m, err := in.s.client.rest.GetMessage(h.channel, h.id, rest.WithCtx(ctx))
	switch {
	case rest.IsJSONErrorCode(err, rest.JSONErrorCodeUnknownMessage):
		return in.forget(ctx, h)
	case err != nil && !isRefused(err):
		return err
	case err == nil && m.EditedTimestamp != nil:
		in.edit(ctx, h, readMessage(*m))
	}
	return nil // an unreadable message stays as it was
}

// words are the text and time of a queue item or a turn.
type words struct {
	text string
	at   time.Time
}

// said returns the texts of the waiting items and recent turns of a conversation, or nil when the conversation is gone.
func (in *inbound) said(ctx context.Context, id string) (map[string]words, error) {
	client := in.s.cfg.Sessions
	queue, err := client.Queue(ctx, id)
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	said := map[string]words{}
	for _, q := range queue {
		said[q.ID] = words{q.Message, q.CreatedAt.Time}
	}
	t, err := client.Transcripts().Entries(ctx, id, 0, lookBack)
	for _, e := range t.Items {
		if e.Kind == "user" {
			said[e.Turn] = words{e.Text, e.At.Time}
		}
	}
	return said, err
}

// already returns the item or turn of a message that was handed over right before the program ended, or "": the item or turn whose text
// equals the texts of its known messages together with this message. An older item without known messages was written by somebody who
// said the same.
func (in *inbound) already(ctx context.Context, h heard) (item string, err error) {
	if h.text == "" {
		return "", nil
	}
	since := in.here(h.id.Time()).Add(-unsure)
	said, err := in.said(ctx, h.session)
	for id, w := range said {
		of, err := in.messages(ctx, `WHERE session = ? AND item = ?`, h.session, id)
		if err != nil {
			return "", err
		}
		if len(of) == 0 && w.at.Before(since) {
			continue
		}
		if whole, _ := together(append(of, h)); w.text == whole || strings.HasPrefix(w.text, whole+"\n\nAttachments:\n") {
			return id, nil
		}
	}
	return "", err
}
