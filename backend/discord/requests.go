package discord

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"

	"deskhand/backend/requests"
	"deskhand/backend/session"
)

// surfaceName is the source of an answer that was given here.
const surfaceName = "discord"

// requestCards shows the waiting requests in the channels of their conversations, and takes the answers from there. A request is shown as a
// card: a message, with controls while the request waits. A card is kept in the database from before its posting until its end is shown,
// so that a restarted program finds every control that has to be removed.
//
// Work runs in lanes, each in order in a single goroutine: the cards of a conversation are shown one after the other, and the answers to
// a request are taken one after the other. Neither waits for the other.
type requestCards struct {
	s *Surface

	lanes *lanes[string]
	ack   time.Duration // how long an acknowledgement of a press may take

	mu     sync.Mutex                  // protects the fields below
	latest map[string]requests.Request // the latest state of requests whose cards may have to be shown again
	shown  map[string]card             // the present messages of cards, as far as this program has written them
	later  map[string]bool             // requests that will be looked at again after a pause
}

func newRequestCards(s *Surface) *requestCards {
	return &requestCards{s: s, ack: ackTime, lanes: newLanes[string](s.spawn), latest: map[string]requests.Request{}, shown: map[string]card{}, later: map[string]bool{}}
}

// changed takes the new state of a request, and returns at once.
func (a *requestCards) changed(r requests.Request) {
	a.mu.Lock()
	a.latest[r.ID] = r
	a.mu.Unlock()
	a.show(r.Session, r.ID)
}

// show queues the update of a card.
func (a *requestCards) show(session, request string) {
	a.lanes.queue("show "+session, func(ctx context.Context) { a.fit(ctx, request) })
}

// refresh queues the update of all cards: when the line is back, and when a channel was bound. refresh returns at once.
func (a *requestCards) refresh() {
	a.lanes.queue("refresh", func(ctx context.Context) {
		if err := a.reload(ctx); err != nil && ctx.Err() == nil {
			a.s.cfg.Logger.Warn("what waits cannot be shown", "error", err)
		}
	})
}

// reload updates all cards, after a start and whenever events may have been missed.
func (a *requestCards) reload(ctx context.Context) error {
	waiting, err := a.s.cfg.Sessions.Requests().Waiting(ctx)
	if err != nil {
		return err
	}
	cards, err := a.kept(ctx, "")
	if err != nil {
		return err
	}
	for _, r := range waiting {
		a.changed(r)
	}
	for _, k := range cards {
		if slices.ContainsFunc(waiting, func(r requests.Request) bool { return r.ID == k.request }) {
			continue
		}
		r, err := a.s.cfg.Sessions.Requests().Get(ctx, k.request)
		switch {
		case err == nil:
			a.changed(r)
		case errors.Is(err, session.ErrNotFound):
			a.lanes.queue("show "+k.session, func(ctx context.Context) {
				a.s.in.fails(ctx, "the controls of a request that is gone cannot be taken away", k.channel, a.finish(ctx, k, card{}))
			})
		default:
			return err
		}
	}
	return nil
}

// deleted takes the deletion of a message: a waiting card is posted again. deleted returns at once.
func (a *requestCards) deleted(channel, message snowflake.ID) {
	a.lanes.queue("refresh", func(ctx context.Context) {
		cards, err := a.kept(ctx, "")
		if err != nil {
			return // the next update notices the deletion
		}
		for _, k := range cards {
			if k.channel == channel && (k.message == message || k.message == 0) {
				a.lanes.queue("show "+k.session, func(ctx context.Context) { a.replace(ctx, k.request, message) })
			}
		}
	})
}

// replace posts the card again whose message was deleted. The deletion may come before the id of the message was stored.
func (a *requestCards) replace(ctx context.Context, request string, gone snowflake.ID) {
	if k, ok, err := a.one(ctx, request); err == nil && ok && k.message == gone {
		a.forget(request)
		a.fit(ctx, request)
	}
}

// forget forgets the present message of a card.
func (a *requestCards) forget(request string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.shown, request)
}

// anew makes all cards be written again, because they are in messages of another bot, whose presses reach nobody.
func (a *requestCards) anew() {
	a.mu.Lock()
	defer a.mu.Unlock()
	clear(a.shown)
}

// askTries is how often a step that Discord or the network refuses is tried, with a pause that doubles. Then the conversation's other
// cards have their turn, and the step is tried again after askPause, or at the refresh of a line that comes back.
const (
	askTries   = 6
	firstPause = time.Second
	askPause   = time.Minute
)

// fit updates a card until the card fits its request, or nothing more can be done now.
func (a *requestCards) fit(ctx context.Context, request string) {
	wait := a.s.client.patience(firstPause)
	for range askTries {
		again, err := a.step(ctx, request)
		if err == nil {
			if !again {
				return
			}
			continue
		}
		if ctx.Err() != nil {
			return
		}
		if a.hopeless(ctx, request, err) {
			a.tryUnlessTold(request, verdictOf(err))
			return
		}
		a.s.cfg.Logger.Warn("a request cannot be shown", "request", request, "error", why(err))
		if pause(ctx, wait) != nil {
			return
		}
		wait *= 2
	}
	a.tryLater(request)
}

// tryUnlessTold is tryLater, except for a problem whose end is reported.
func (a *requestCards) tryUnlessTold(request string, v verdict) {
	if v != off && v != noChannel {
		a.tryLater(request)
	}
}

// tryLater updates a card again after a pause, because nobody reports when Discord will accept the card. tryLater returns at once.
func (a *requestCards) tryLater(request string) {
	a.mu.Lock()
	r, known := a.latest[request]
	again := known && !a.later[request]
	if again {
		a.later[request] = true
	}
	a.mu.Unlock()
	if !again {
		return
	}
	a.s.spawn(func(ctx context.Context) {
		err := pause(ctx, a.s.client.patience(askPause))
		a.mu.Lock()
		delete(a.later, request)
		a.mu.Unlock()
		if err == nil {
			a.show(r.Session, request)
		}
	})
}

// hopeless reports whether trying again is useless after an error.
func (a *requestCards) hopeless(ctx context.Context, request string, err error) bool {
	problem := ""
	switch verdictOf(err) {
	case noChannel:
		problem = problemGone
	case forbidden:
		problem = problemForbidden
	case off, archived, large, unwanted:
	default:
		return false
	}
	a.mu.Lock()
	r, known := a.latest[request]
	a.mu.Unlock()
	channel, bound := a.s.bindings.channelOf(r.Session)
	if verdictOf(err) != off {
		a.s.in.fails(ctx, "a request cannot be shown", channel, err)
	}
	if known && bound && problem != "" {
		a.s.in.fails(ctx, "the trouble of a channel cannot be kept", channel, a.s.bindings.troubled(ctx, channel, problem))
	}
	return true
}

// step does the next step to make a card fit its request; again reports that another step may follow.
func (a *requestCards) step(ctx context.Context, request string) (again bool, err error) {
	a.mu.Lock()
	r, known := a.latest[request]
	a.mu.Unlock()
	k, kept, err := a.one(ctx, request)
	if err != nil || !known {
		return false, err
	}
	if kept && k.message == 0 {
		if err := a.find(ctx, &k); err != nil {
			return false, err
		}
	}
	channel, bound := a.s.bindings.channelOf(r.Session)
	waits := r.Status == "requested"
	switch {
	case kept && (!waits || !bound || k.channel != channel):
		return true, a.end(ctx, k, r, waits)
	case !waits || !bound:
		a.dismiss(r)
		return false, nil
	case !kept:
		k = keptCard{request: request, session: r.Session, channel: channel}
		if err := a.keep(ctx, k); err != nil {
			return false, err
		}
	}
	return a.put(ctx, k, a.drawn(ctx, r, k.held))
}

// drawn returns the card of a request. A request too long for its record is read whole; if that fails, the request can only be refused
// here.
func (a *requestCards) drawn(ctx context.Context, r requests.Request, h held) card {
	whole, err := a.s.cfg.Sessions.WholeRequest(ctx, r)
	if err != nil {
		a.s.cfg.Logger.Warn("a long request cannot be read whole", "request", r.ID, "error", err)
		h.Small = true
	}
	return draw(&whole, a.directory(ctx, r.Session), h)
}

// dismiss forgets a request without a card, unless the request has changed.
func (a *requestCards) dismiss(r requests.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.latest[r.ID].Status == r.Status {
		delete(a.latest, r.ID)
	}
	delete(a.shown, r.ID)
}

// put writes a card into its message, or posts the card when there is no message any more.
func (a *requestCards) put(ctx context.Context, k keptCard, c card) (again bool, err error) {
	if k.message == 0 {
		return a.post(ctx, k, c)
	}
	a.mu.Lock()
	same := sameCard(a.shown[k.request], c)
	a.mu.Unlock()
	if same {
		return false, nil
	}
	switch err = a.edit(ctx, k, c); verdictOf(err) {
	case lost, foreign:
		return a.post(ctx, k, c)
	case unwanted:
		return a.less(ctx, k, c, err)
	default:
		return false, err
	}
}

// end shows the result of a request, or that its conversation has another channel now, and forgets the card.
func (a *requestCards) end(ctx context.Context, k keptCard, r requests.Request, waits bool) error {
	if waits {
		r.Status = movedAway
	}
	return a.finish(ctx, k, a.drawn(ctx, r, k.held))
}

// finish writes the last state of a card into its message and forgets the card. For an unknown request, finish only removes the controls.
func (a *requestCards) finish(ctx context.Context, k keptCard, c card) error {
	if k.message != 0 {
		if err := a.edit(ctx, k, c); err != nil && !slices.Contains([]verdict{lost, noChannel, forbidden, foreign, unwanted}, verdictOf(err)) {
			return err
		}
	}
	a.forget(k.request)
	return a.drop(ctx, k.request)
}

// directory returns the directory of a session, or "" when unknown.
func (a *requestCards) directory(ctx context.Context, id string) string {
	s, err := a.s.cfg.Sessions.Get(ctx, id)
	if err != nil {
		return ""
	}
	return s.Cwd
}

// post posts the message of a card. The nonce is made of the request and the message before, so that a message whose creation was not
// confirmed is not made twice. When no file can be sent, the card has to be drawn again without a file.
func (a *requestCards) post(ctx context.Context, k keptCard, c card) (again bool, err error) {
	name := sha256.Sum256([]byte(k.request + " " + k.message.String()))
	create := discord.MessageCreate{Nonce: hex.EncodeToString(name[:12]), Content: c.content, Components: c.rows}
	if c.file != "" {
		create.Files = []*discord.File{discord.NewFile(c.name, "", strings.NewReader(c.file))}
	}
	a.s.out.below(k.session)
	m, err := a.s.out.create(ctx, k.channel, create)
	if err != nil {
		if c.file != "" && unsendable(err) {
			return true, a.hold(ctx, k.request, map[string]any{"small": true})
		}
		return a.less(ctx, k, c, err)
	}
	a.mu.Lock()
	a.shown[k.request] = c
	a.mu.Unlock()
	return false, a.posted(ctx, k.request, m.ID)
}

// less leaves out a part of a card that Discord refuses: first the button to an address, then everything. When Discord refuses for
// another reason than the content, less returns err.
func (a *requestCards) less(ctx context.Context, k keptCard, c card, err error) (again bool, _ error) {
	if verdictOf(err) != unwanted || k.held.Bare >= unsaid {
		return false, err
	}
	bare := unsaid
	if k.held.Bare < unlinked && slices.ContainsFunc(c.rows, leads) {
		bare = unlinked
	}
	a.s.in.fails(ctx, "a request is shown with less in it", k.channel, err)
	return true, a.hold(ctx, k.request, map[string]any{"bare": bare})
}

// leads reports whether a row has a button that leads to an address.
func leads(row discord.LayoutComponent) bool {
	r, ok := row.(discord.ActionRowComponent)
	return ok && slices.ContainsFunc(r.Components, func(c discord.InteractiveComponent) bool {
		b, ok := c.(discord.ButtonComponent)
		return ok && b.Style == discord.ButtonStyleLink
	})
}

// find searches the message of a card whose posting was not confirmed, because the program or the line ended meanwhile. The nonce
// prevents a second message for some minutes only.
func (a *requestCards) find(ctx context.Context, k *keptCard) error {
	const newest = 100
	list, err := a.s.client.rest.GetMessages(k.channel, 0, 0, 0, newest, rest.WithCtx(ctx))
	if err != nil {
		if v := verdictOf(err); v == noChannel || v == forbidden {
			return nil // the message cannot be found
		}
		return err
	}
	for _, m := range list {
		for c := range m.AllComponents() {
			if one, ok := c.(discord.InteractiveComponent); ok && strings.HasPrefix(one.GetCustomID(), customID(k.request, "")) {
				k.message = m.ID
				return a.posted(ctx, k.request, m.ID)
			}
		}
	}
	return nil
}

func (a *requestCards) posted(ctx context.Context, request string, message snowflake.ID) error {
	return a.write(ctx, `UPDATE discord_request SET message = ? WHERE request = ?`, message.String(), request)
}

// unsendable reports whether a message without a file may be accepted after an error.
func unsendable(err error) bool {
	v := verdictOf(err)
	return v == large || v == forbidden || v == unwanted
}

func (a *requestCards) edit(ctx context.Context, k keptCard, c card) error {
	rows := c.rows
	if rows == nil {
		rows = []discord.LayoutComponent{}
	}
	update := discord.MessageUpdate{Components: &rows, AllowedMentions: nobodyPinged()}
	if c.content != "" {
		update.Content = &c.content
	}
	_, err := a.s.client.rest.UpdateMessage(k.channel, k.message, update, rest.WithCtx(ctx))
	if verdictOf(err) == archived {
		// Posting to an archived thread opens the thread, but editing does not, and the controls would stay.
		if _, err = a.s.client.rest.UpdateChannel(k.channel, discord.GuildThreadUpdate{Archived: new(false)}, rest.WithCtx(ctx)); err == nil {
			_, err = a.s.client.rest.UpdateMessage(k.channel, k.message, update, rest.WithCtx(ctx))
		}
	}
	if err == nil {
		a.mu.Lock()
		a.shown[k.request] = c
		a.mu.Unlock()
	}
	return err
}

func sameCard(a, b card) bool {
	if a.content != b.content {
		return false
	}
	one, err := json.Marshal(a.rows)
	other, again := json.Marshal(b.rows)
	return err == nil && again == nil && string(one) == string(other)
}

// keptCard is a row of discord_request.
type keptCard struct {
	request, session string
	channel, message snowflake.ID // message is 0 until the posting is confirmed
	held             held
}

// kept returns the stored cards; with a request only its own card.
func (a *requestCards) kept(ctx context.Context, request string) (list []keptCard, err error) {
	rows, err := a.s.cfg.Store.Read().QueryContext(ctx, `SELECT request, session, channel, message, data FROM discord_request WHERE ? IN ('', request)`, request)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	for rows.Next() {
		var k keptCard
		var channel, message, data string
		if err := rows.Scan(&k.request, &k.session, &channel, &message, &data); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(data), &k.held); err != nil {
			return nil, err
		}
		if k.channel, err = snowflake.Parse(channel); err != nil {
			return nil, err
		}
		if message != "" {
			if k.message, err = snowflake.Parse(message); err != nil {
				return nil, err
			}
		}
		list = append(list, k)
	}
	return list, rows.Err()
}

func (a *requestCards) one(ctx context.Context, request string) (k keptCard, ok bool, err error) {
	list, err := a.kept(ctx, request)
	if err != nil || len(list) == 0 {
		return keptCard{}, false, err
	}
	return list[0], true, nil
}

func (a *requestCards) keep(ctx context.Context, k keptCard) error {
	return a.write(ctx, `INSERT INTO discord_request (request, session, channel, message) VALUES (?, ?, ?, '')`, k.request, k.session, k.channel.String())
}

func (a *requestCards) drop(ctx context.Context, request string) error {
	return a.write(ctx, `DELETE FROM discord_request WHERE request = ?`, request)
}

// hold changes fields of a card's held data, by their JSON names: both lanes write there, each its own fields. A nil value removes a
// field.
func (a *requestCards) hold(ctx context.Context, request string, change map[string]any) error {
	data, err := json.Marshal(change)
	if err != nil {
		return err
	}
	return a.write(ctx, `UPDATE discord_request SET data = json_patch(data, ?) WHERE request = ?`, string(data), request)
}

func (a *requestCards) write(ctx context.Context, statement string, args ...any) error {
	return a.s.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, statement, args...)
		return err
	})
}
