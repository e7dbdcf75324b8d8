package discord

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/disgoorg/disgo/gateway"
	"github.com/disgoorg/snowflake/v2"

	"deskhand/backend/attachment"
	"deskhand/backend/lifecycle"
	"deskhand/backend/session"
)

// The messages of a channel that wait in the queue. While an agent is at work, messages without files become a single follow-up as long
// as nothing else was written between them; a message with files stays an item of its own. So every message reaches the agent in the
// order of writing, and files come with their words. The messages of an item are known: an edit or a deletion changes the item as long as
// the item waits. An item that somebody has changed at the desk belongs to the desk, and nothing here changes the item any more.

const refusedGone = "queue.gone"

// waiting is an item of the queue that came from Discord.
type waiting struct {
	session.QueueItem

	of []heard
}

// send hands a message to its conversation: merged into the waiting messages of this channel, or as a message of its own. The caller
// holds the conversation's gate.
func (in *inbound) send(ctx context.Context, h heard) error {
	now, err := in.s.cfg.Sessions.Get(ctx, h.session) // read before the queue: a stop that has ended since has held the waiting items
	if err != nil {
		return err
	}
	var last []waiting
	if now.Phase != lifecycle.Cancelling { // a stop will hold the waiting items, but not a message written after it
		if last, err = in.mergeable(ctx, h.session); err != nil {
			return err
		}
	}
	all := []heard{h}
	for _, w := range last {
		all = append(all, w.of...)
	}
	if text, one := together(all); one && len(last) > 0 {
		done, err := in.merge(ctx, last, all, text)
		if done || err != nil {
			return err
		}
	}
	p := session.Prompt{Message: h.text, Attachments: h.files(), When: session.Queue, Elsewhere: true}
	sent, err := patiently(ctx, func(ctx context.Context) (session.Sent, error) { return in.s.cfg.Sessions.Send(ctx, h.session, p) })
	if err != nil {
		return err
	}
	h.item = itemOf(sent)
	in.mark(ctx, h)
	return nil
}

// patiently calls do and waits for the result, however long the disk refuses the write: after an error we would repeat the call, and the
// conversation makes the write by itself when the disk accepts it. The end of the surface ends the wait, because the conversations end
// behind the surface; the next start then finds out what became of the message, as after a crash.
func patiently[T any](ctx context.Context, do func(context.Context) (T, error)) (T, error) {
	type outcome struct {
		of  T
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		of, err := do(session.Patiently(ctx))
		done <- outcome{of, err}
	}()
	select {
	case o := <-done:
		return o.of, o.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// changeQueued changes an item of a queue, patiently.
func (in *inbound) changeQueued(ctx context.Context, q session.QueueItem, patch session.QueuePatch) error {
	_, err := patiently(ctx, func(ctx context.Context) (session.Sent, error) {
		return in.s.cfg.Sessions.ChangeQueued(ctx, q.Session, q.ID, patch)
	})
	return err
}

// removeQueued deletes an item of a queue, patiently.
func (in *inbound) removeQueued(ctx context.Context, q session.QueueItem) error {
	_, err := patiently(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, in.s.cfg.Sessions.RemoveQueued(ctx, q.Session, q.ID)
	})
	return err
}

// mark stores what messages have become. A failure is only logged, because the next start finds the messages again.
func (in *inbound) mark(ctx context.Context, list ...heard) {
	in.fails(ctx, "messages cannot be marked", list[0].channel, in.save(ctx, list...))
}

func itemOf(s session.Sent) string {
	switch {
	case s.Turn != nil:
		return s.Turn.ID
	case s.QueueItem != nil:
		return s.QueueItem.ID
	}
	return ""
}

// merge makes a single item of the waiting items and the newest message. done is false when the first item was sent meanwhile. A crash in
// the middle repeats a message, and loses none.
func (in *inbound) merge(ctx context.Context, ours []waiting, all []heard, text string) (done bool, err error) {
	first := ours[0]
	err = in.changeQueued(ctx, first.QueueItem, session.QueuePatch{Message: &text})
	if isGone(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for i := range all {
		all[i].item = first.ID
	}
	in.mark(ctx, all...)
	for _, w := range ours[1:] {
		if err := in.removeQueued(ctx, w.QueueItem); !isGone(err) {
			in.fails(ctx, "what was merged stays in the queue too", all[0].channel, err)
		}
	}
	return true, nil
}

func isGone(err error) bool {
	r, ok := errors.AsType[*session.RefusedError](err)
	return ok && (r.Code == refusedGone || r.Code == "queue.steering")
}

// mergeable returns the items at the end of the queue into which a further message can be merged: items of this channel without files,
// with only held items between them.
func (in *inbound) mergeable(ctx context.Context, id string) (list []waiting, err error) {
	queue, err := in.s.cfg.Sessions.Queue(ctx, id)
	if err != nil {
		return nil, err
	}
	queue = slices.DeleteFunc(queue, func(q session.QueueItem) bool { return q.Held != "" })
	if list, err = in.oursOf(ctx, id, queue); err != nil {
		return nil, err
	}
	n := 0
	for ; n < len(list); n++ {
		w := list[len(list)-1-n]
		if w.ID != queue[len(queue)-1-n].ID || len(w.Attachments) > 0 || attachment.HasSentinel(w.Message) {
			break
		}
	}
	return list[len(list)-n:], nil
}

// together joins messages in the order in which they were written; one is false when a message has files.
func together(list []heard) (text string, one bool) {
	slices.SortFunc(list, func(a, b heard) int { return cmpIDs(a.id, b.id) })
	texts := make([]string, len(list))
	for i, h := range list {
		texts[i] = h.text
	}
	return attachment.Merge(texts)
}

func cmpIDs(a, b snowflake.ID) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// ours returns the items of a conversation's queue that came from Discord and are unchanged, in their order.
func (in *inbound) ours(ctx context.Context, id string) (list []waiting, err error) {
	queue, err := in.s.cfg.Sessions.Queue(ctx, id)
	if err != nil {
		return nil, err
	}
	return in.oursOf(ctx, id, queue)
}

func (in *inbound) oursOf(ctx context.Context, id string, queue []session.QueueItem) (list []waiting, err error) {
	for _, q := range queue {
		of, err := in.messages(ctx, `WHERE session = ? AND item = ?`, id, q.ID)
		if err != nil {
			return nil, err
		}
		files := 0
		for _, h := range of {
			files += len(h.files())
		}
		if text, _ := together(of); len(of) > 0 && text == q.Message && files == len(q.Attachments) {
			list = append(list, waiting{q, of})
		}
	}
	return list, nil
}

// updated takes an edit of a message. An addition by Discord, such as a preview, is no edit.
func (in *inbound) updated(ev gateway.EventMessageUpdate) {
	m := ev.Message
	if m.EditedTimestamp == nil || m.GuildID == nil || !in.s.allowed(m.Author.ID) {
		return
	}
	in.about(m.ChannelID, m.ID, func(ctx context.Context, h heard) { in.edit(ctx, h, readMessage(m)) })
}

// deleted takes the deletion of a message.
func (in *inbound) deleted(channel, id snowflake.ID) { in.about(channel, id, in.drop) }

// about runs work for a message, behind the other work for its conversation.
func (in *inbound) about(channel, id snowflake.ID, work func(context.Context, heard)) {
	if _, ok := in.s.bindings.bond(channel); !ok {
		return
	}
	in.lanes.queue(channel, func(ctx context.Context) {
		h, ok, err := in.message(ctx, channel, id)
		if err != nil || !ok || h.item == notTaken {
			in.fails(ctx, "a message cannot be read", channel, err)
			return
		}
		at, bound := in.s.bindings.channelOf(h.session)
		if !bound || at == channel {
			work(ctx, h)
			return
		}
		in.lanes.queue(at, func(ctx context.Context) { // a thread was begun with the message
			if h, ok, err := in.message(ctx, channel, id); err == nil && ok {
				work(ctx, h)
			}
		})
	})
}

// edit changes the waiting item of a message. A message that was sent to the agent stays.
func (in *inbound) edit(ctx context.Context, old, now heard) {
	now.session, now.item = old.session, old.item
	now.raw.Author = old.raw.Author
	now.raw.Taken = taken(old.raw, now.raw)
	in.fetch(ctx, &now)
	if now.text = in.textOf(now); now.text == "" || now.text == old.text || ctx.Err() != nil {
		return
	}
	if old.item == "" { // not handed over yet
		in.fails(ctx, "a message cannot be changed", old.channel, in.save(ctx, now))
		return
	}
	leave, err := in.enter(ctx, old.session)
	if err != nil {
		return
	}
	defer leave()
	in.change(ctx, old, &now)
}

// taken returns the kept files of an edited message, which are recognised by their addresses without the changing signatures.
func taken(old, now rawMessage) (list []string) {
	plain := func(f rawAttachment) string { address, _, _ := strings.Cut(f.URL, "?"); return address }
	for _, f := range now.Raw.Discord.Attachments {
		i := slices.IndexFunc(old.Raw.Discord.Attachments, func(g rawAttachment) bool { return plain(g) == plain(f) })
		if i < 0 || i >= len(old.Taken) {
			break // the rest is fetched
		}
		list = append(list, old.Taken[i])
	}
	return list
}

// drop removes a deleted message from the waiting items. A message that was sent to the agent stays.
func (in *inbound) drop(ctx context.Context, old heard) {
	if old.item == "" { // not handed over yet
		in.fails(ctx, "a message cannot be forgotten", old.channel, in.forget(ctx, old))
		return
	}
	leave, err := in.enter(ctx, old.session)
	if err != nil {
		return
	}
	defer leave()
	in.change(ctx, old, nil)
}

// change updates the item of a message for the message's new state; nil = deleted.
func (in *inbound) change(ctx context.Context, old heard, now *heard) {
	ours, err := in.ours(ctx, old.session)
	i := slices.IndexFunc(ours, func(w waiting) bool { return w.ID == old.item })
	if err != nil || i < 0 {
		in.fails(ctx, "the queue cannot be read", old.channel, err)
		return
	}
	item := ours[i]
	rest := slices.DeleteFunc(item.of, func(h heard) bool { return h.id == old.id && h.channel == old.channel })
	if now != nil {
		rest = append(rest, *now)
	}
	if len(rest) == 0 {
		err = in.removeQueued(ctx, item.QueueItem)
	} else {
		text, _ := together(rest)
		patch := session.QueuePatch{Message: &text}
		if files := without(item.QueueItem, old, now); files != nil {
			patch.Attachments = &files
		}
		err = in.changeQueued(ctx, item.QueueItem, patch)
	}
	switch {
	case isGone(err):
		return
	case err == nil && now != nil:
		err = in.save(ctx, *now)
	case err == nil:
		err = in.forget(ctx, old)
	}
	in.fails(ctx, "what waits cannot be changed", old.channel, err)
}

// without returns the files of an item after the change of a message; nil = no change.
func without(q session.QueueItem, old heard, now *heard) []string {
	before, after := old.raw.Taken, []string{}
	if now != nil {
		after = now.raw.Taken
	}
	if slices.Equal(before, after) {
		return nil
	}
	list := []string{}
	for _, a := range q.Attachments {
		if !slices.Contains(before, a.ID) {
			list = append(list, a.ID)
		}
	}
	return append(list, slices.DeleteFunc(slices.Clone(after), func(id string) bool { return id == notTaken })...)
}
