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

// What was said while we were away is taken in its order, as long as somebody may still wait for it: a prompt of yesterday that runs by
// itself this morning is a surprise.

const (
	mostAway = time.Hour // what is older is not taken
	pageSize = 100       // of messages, as Discord has it
)

// connected asks for what was said meanwhile, unless Discord has replayed it.
func (in *inbound) connected(resumed bool) {
	if resumed {
		return
	}
	var channels []snowflake.ID
	in.mu.Lock()
	for channel, b := range in.bonds {
		b.behind = true
		channels = append(channels, channel)
	}
	in.mu.Unlock()
	for _, channel := range channels {
		in.lanes.queue(channel, func(ctx context.Context) { in.catchUp(ctx, channel) })
	}
}

// catchUp takes what was said in a channel after the newest message that was looked at.
func (in *inbound) catchUp(ctx context.Context, channel snowflake.ID) {
	b, ok := in.bond(channel)
	if !ok || !b.behind || b.deleted {
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
		in.fails(ctx, "what was said meanwhile cannot be asked for", channel, err) // the next message asks again
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if now := in.bonds[channel]; now != nil {
		now.behind = false
	}
}

// unseen is an error of what was asked for, nil where asking again is no use.
func (in *inbound) unseen(ctx context.Context, channel snowflake.ID, err error) error {
	refused, ok := errors.AsType[*rest.Error](err)
	if !ok || refused.Response == nil {
		return err
	}
	switch refused.Response.StatusCode {
	case http.StatusNotFound:
		in.trouble(ctx, channel, problemGone)
		return nil
	case http.StatusForbidden: // what is said from now on comes all the same; the check tells what is missing
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

// goThrough takes what is newer than the mark of a channel, and tells how much of it is too old.
func (in *inbound) goThrough(ctx context.Context, channel snowflake.ID, b bond) (old int, err error) {
	after := b.newest
	for {
		page, err := in.s.line.rest.GetMessages(channel, 0, 0, after, pageSize, rest.WithCtx(ctx))
		if err != nil {
			return old, err
		}
		slices.SortFunc(page, func(a, b discord.Message) int { return cmpIDs(a.ID, b.ID) })
		for _, m := range page {
			after = m.ID
			stale, err := in.missed(ctx, m, idOf(b.Guild))
			if err != nil || ctx.Err() != nil {
				return old, errors.Join(err, ctx.Err())
			}
			if stale {
				old++
			}
		}
		if len(page) > 0 { // of what nobody who is heard has said the mark is moved at once: a write for each would take a while
			if err := in.looked(ctx, heard{channel: channel, id: after, late: true}, func(*sql.Tx) error { return nil }); err != nil {
				return old, err
			}
		}
		if len(page) < pageSize {
			return old, nil
		}
	}
}

// missed takes a message that was said while we were away; stale = it is too old for that.
func (in *inbound) missed(ctx context.Context, m discord.Message, guild snowflake.ID) (stale bool, err error) {
	m.GuildID = &guild // it is told with an event alone
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

func (in *inbound) stale(h heard) bool { return in.s.line.now().Sub(h.id.Time()) > mostAway }

// newThreads takes what was said in threads that were made while we were away.
func (in *inbound) newThreads(ctx context.Context, b bond) error {
	list, err := in.s.line.rest.GetActiveGuildThreads(idOf(b.Guild), rest.WithCtx(ctx))
	if err != nil {
		return err
	}
	for _, t := range list.Threads {
		parent := t.ParentID()
		if _, bound := in.bond(t.ID()); bound || parent == nil || parent.String() != b.Channel || t.ID() <= b.newest {
			continue
		}
		in.isBelow(t.ID(), *parent)
		in.lanes.queue(t.ID(), func(ctx context.Context) {
			old, err := in.goThrough(ctx, t.ID(), bond{Binding: b.Binding, newest: t.ID() - 1}) // in a forum the first message has its id
			in.fails(ctx, "what was said meanwhile cannot be asked for", t.ID(), err)
			if old > 0 && ctx.Err() == nil {
				in.tell(ctx, heard{channel: t.ID()}, tooOld(old))
			}
		})
	}
	return nil
}

// reread looks at what waits of a conversation: what was changed or deleted while we were away is told to nobody.
func (in *inbound) reread(ctx context.Context, session string) error {
	ours, err := in.ours(ctx, session)
	if isNotFound(err) {
		return nil
	}
	for _, w := range ours {
		for _, h := range w.of {
			m, gone := in.s.line.rest.GetMessage(h.channel, h.id, rest.WithCtx(ctx))
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

// resume goes on with what was written down and not handed over when the program ended, and tells how much of it is too old.
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

// already tells what has become of a message that was handed over in the moment in which the program ended: the item or turn which says
// what the messages that are known of it say together with this one. "" = it was not.
func (in *inbound) already(ctx context.Context, h heard) (item string, err error) {
	if h.text == "" {
		return "", nil
	}
	client := in.s.cfg.Sessions
	queue, err := client.Queue(ctx, h.session)
	if isNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	said := map[string]string{}
	for _, q := range queue {
		said[q.ID] = q.Message
	}
	const lookBack = 200
	t, err := client.Entries(ctx, h.session, 0, lookBack)
	for _, e := range t.Items {
		if e.Kind == "user" {
			said[e.Turn] = e.Text
		}
	}
	for id, text := range said {
		of, err := in.messages(ctx, `WHERE session = ? AND item = ?`, h.session, id)
		if err != nil {
			return "", err
		}
		if whole, _ := together(append(of, h)); text == whole || strings.HasPrefix(text, whole+"\n\nAttachments:\n") {
			return id, nil
		}
	}
	return "", err
}
