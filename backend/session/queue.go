package session

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/attachments"
	"deskhand/backend/lifecycle"
	"deskhand/backend/transcript"
)

// The queue of a session holds prompts that wait for the running turn to end. The state machine (package lifecycle) decides which item is
// sent when; this file holds the texts and files of the items, and carries out what a person does with them. An item is stored before its
// sender gets an answer, and leaves the queue in the step that begins its turn: it is sent once, or still waits after a crash.

// Prompt is a message with its files.
type Prompt struct {
	Message     string
	Attachments []attachments.PromptAttachment
	When        When
	Elsewhere   bool // the message was not written in the draft of the session, so the draft stays
}

// When says how a prompt is handled while a turn runs.
type When string

// Now is refused, Queue waits for the turn to end, Interrupt cancels the turn and is sent next, Steer is sent into the turn.
const (
	Now       When = "now"
	Queue     When = "queue"
	Interrupt When = "interrupt"
	Steer     When = "steer"
)

// same reports whether two items are equal. Attachments are compared by id, since their records never change.
func (q QueueItem) same(as QueueItem) bool {
	return q.ID == as.ID && q.Message == as.Message && q.Position == as.Position && q.Held == as.Held &&
		slices.EqualFunc(q.Attachments, as.Attachments, func(a, b transcript.Attachment) bool { return a.ID == b.ID })
}

// Sent tells whether a prompt has become a turn or an item of the queue.
type Sent struct {
	Turn      *Turn      `json:"turn,omitempty"`
	QueueItem *QueueItem `json:"queueItem,omitempty"`
}

// QueuePatch holds a person's changes to an item; nil leaves a field as it is.
type QueuePatch struct {
	Message *string `json:"message,omitempty"`

	Attachments *[]string `json:"attachments,omitempty" maxItems:"100" doc:"The ids of what goes with it: the whole list"`

	Position *int  `json:"position,omitempty" minimum:"0" doc:"0 is the first; what is too large is the last"`
	Held     *bool `json:"held,omitempty" doc:"false lets it go out in its turn: at once while no turn runs"`
	Send     bool  `json:"send,omitempty" doc:"Sends it now: a turn that runs is cancelled for it"`
}

// said is a message of a person, with attachments that were accepted.
type said struct {
	text  string
	files []transcript.Attachment
	chips []string // the ids of the files in the draft

	elsewhere bool // the message did not come from the draft
}

// waitingPrompts holds the items of a conversation's queue. The methods of waitingPrompts are called in the conversation's goroutine.
type waitingPrompts struct {
	v *conversation

	items   map[string]QueueItem // by id, including items that are just added or sent; order and Held come from v.state.Queue
	stored  []QueueItem          // the queue as of the last step
	removed []QueueItem          // items that a person deleted, the newest last
}

// removedKept is how many deleted items can be restored.
const removedKept = 20

// load takes the stored items into the queue of a new conversation.
func (w *waitingPrompts) load(items []QueueItem) {
	*w = waitingPrompts{v: w.v, items: map[string]QueueItem{}, stored: items}
	for _, q := range items {
		if q.Held == lifecycle.HeldSteering { // the program ended while the item was sent into a turn
			q.Held = lifecycle.HeldInterrupted
		}
		w.items[q.ID] = q
		w.v.state.Queue = append(w.v.state.Queue, lifecycle.Queued{Item: q.ID, Held: q.Held})
	}
	w.v.row.Queue = len(items)
}

// list returns the queue in order, with the positions and Held of the state machine.
func (w *waitingPrompts) list() []QueueItem {
	list := make([]QueueItem, len(w.v.state.Queue))
	for i, q := range w.v.state.Queue {
		list[i] = w.items[q.Item]
		list[i].Position, list[i].Held = i, q.Held
	}
	return list
}

func (w *waitingPrompts) newItem(m said) QueueItem {
	return QueueItem{ID: uuid.Must(uuid.NewV7()).String(), Session: w.v.id, Message: m.text, CreatedAt: Time{Time: time.Now()}, Attachments: w.v.composer.planned(m.files)}
}

// enqueue adds a message to the queue; how returns the command for its item, which may begin a turn with it at once.
func (w *waitingPrompts) enqueue(m said, how func(item string) lifecycle.Command) (Sent, error) {
	item, before, unheard := w.newItem(m), w.v.turn, w.v.stopping.unheard()
	w.items[item.ID] = item
	if err := w.v.wish(how(item.ID)); err != nil {
		delete(w.items, item.ID)
		return Sent{}, err
	}
	w.v.composer.spoken(m)
	if unheard && w.v.turn != before {
		w.v.stopping.waitAgain(before)
	}
	w.v.row.ArchivedAt = nil // a message takes the session out of the archive
	w.v.touched()
	w.v.step.sync = true // a person's message must survive a loss of power too
	return w.sent(item.ID), nil
}

// sent returns the current form of an item: a queue item, or the turn that it became.
func (w *waitingPrompts) sent(item string) Sent {
	if i := w.v.state.Find(item); i >= 0 {
		return Sent{QueueItem: &w.list()[i]}
	}
	if w.v.turn == nil || w.v.turn.ID != item {
		return Sent{}
	}
	turn := *w.v.turn
	return Sent{Turn: &turn}
}

// change applies a patch to an item; files are the accepted attachments of the patch.
func (w *waitingPrompts) change(item string, p QueuePatch, files []transcript.Attachment) (Sent, error) {
	if w.v.state.Find(item) < 0 {
		return Sent{}, &RefusedError{Code: lifecycle.RefusedGone}
	}
	if w.v.state.Steering(item) {
		return Sent{}, &RefusedError{Code: lifecycle.RefusedSteering}
	}
	q := w.items[item]
	if p.Message != nil {
		q.Message = *p.Message
	}
	if p.Attachments != nil {
		q.Attachments = w.v.composer.planned(files)
	}
	if strings.TrimSpace(q.Message) == "" && len(q.Attachments) == 0 {
		return Sent{}, bad("prompt.empty")
	}
	if p.Message != nil || p.Attachments != nil {
		w.items[item] = q
		w.v.step.sync = true
	}
	if p.Position != nil {
		w.v.do(lifecycle.Move{Item: item, To: *p.Position})
	}
	before, unheard := w.v.turn, w.v.stopping.unheard()
	switch {
	case p.Send:
		w.v.do(lifecycle.Send{Item: item})
		if unheard && w.v.turn != before {
			w.v.stopping.waitAgain(before)
		}
	case p.Held != nil && *p.Held:
		w.v.do(lifecycle.Hold{Item: item})
	case p.Held != nil:
		w.v.do(lifecycle.Release{Item: item})
	}
	return w.sent(item), nil
}

// remove deletes an item for a person, and keeps the item for restore.
func (w *waitingPrompts) remove(item string) error {
	i := w.v.state.Find(item)
	if i < 0 {
		return &RefusedError{Code: lifecycle.RefusedGone}
	}
	if w.v.state.Steering(item) {
		return &RefusedError{Code: lifecycle.RefusedSteering}
	}
	w.removed = append(w.removed, w.list()[i])
	if len(w.removed) > removedKept {
		w.removed = w.removed[1:]
	}
	return w.v.wish(lifecycle.Remove{Item: item})
}

// restore puts a deleted item back at its position.
func (w *waitingPrompts) restore(item string) (QueueItem, error) {
	i := slices.IndexFunc(w.removed, func(q QueueItem) bool { return q.ID == item })
	if i < 0 {
		return QueueItem{}, &RefusedError{Code: lifecycle.RefusedGone}
	}
	q := w.removed[i]
	w.items[item] = q
	if err := w.v.wish(lifecycle.Restore{Queued: lifecycle.Queued{Item: item, Held: q.Held}, To: q.Position}); err != nil {
		delete(w.items, item)
		return QueueItem{}, err
	}
	w.removed = slices.Delete(w.removed, i, i+1)
	w.v.step.sync = true
	return w.list()[w.v.state.Find(item)], nil
}

// effect runs the effects of an event of the queue.
func (w *waitingPrompts) effect(e lifecycle.QueueEvent) {
	switch e := e.(type) {
	case lifecycle.ItemTaken:
		q := w.items[e.Item]
		w.v.prepare(e.Item, said{text: q.Message, files: q.Attachments})
		delete(w.items, e.Item)
	case lifecycle.SteerSent:
		w.sendSteering(e.Item)
	case lifecycle.ItemSteered:
		w.wasSteered(e.Item)
	case lifecycle.NextChosen, lifecycle.ItemQueued, lifecycle.ItemMoved, lifecycle.ItemHeld, lifecycle.ItemRemoved:
	}
}

// addTo adds the changes of the queue since the last step to the current step.
func (w *waitingPrompts) addTo() {
	now := w.list()
	if slices.EqualFunc(now, w.stored, QueueItem.same) {
		return
	}
	before := map[string]QueueItem{}
	for _, q := range w.stored {
		before[q.ID] = q
	}
	for _, q := range now {
		if was := before[q.ID]; !q.same(was) {
			w.v.step.queue = append(w.v.step.queue, q)
			w.v.composer.freed(was.Attachments, q.Attachments)
		}
		delete(before, q.ID)
	}
	w.v.step.unqueued = slices.Sorted(maps.Keys(before))
	for _, q := range before {
		w.v.composer.freed(q.Attachments, nil)
	}
	for _, id := range w.v.step.unqueued {
		delete(w.items, id)
	}
	w.stored = now
	w.v.row.Queue = len(now)
	w.v.saveRow()
}

// QueueRemoved is the data of the event that an item has left the queue.
type QueueRemoved struct {
	ID string `json:"id"`
}
