package discord

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"

	"deskhand/backend/session"
)

// The output. The reader of the feed (follow.go) notes the texts of turns, and never waits for Discord. For each conversation a goroutine
// shows them (turnstate.go): the goroutine compares the wanted and the present text of its messages, and makes one call after the other
// until they agree. So a failed call simply remains to be made, later text is part of the next call, and a crash is only a longer wait.
// Files are different (files.go): each is sent once.

// output shows the agents' texts of bound conversations, and the results of their turns.
type output struct {
	s    *Surface
	work sync.WaitGroup // the tellers

	mu      sync.Mutex // protects the fields below
	tellers map[string]*teller
	uploads map[string]upload       // by guild
	follows map[string]snowflake.ID // the followed conversations, with their channels
	rouse   context.CancelFunc      // makes the reader look again which conversations to follow
	over    bool                    // run has ended

	reading sync.Mutex // held while events are taken: reading a conversation and its events must not overtake each other
}

const (
	editPace      = time.Second // between two edits of a message
	belowPatience = 3 * time.Second
)

func newOutput(s *Surface) *output {
	return &output{s: s, tellers: map[string]*teller{}, uploads: map[string]upload{}, follows: map[string]snowflake.ID{}, rouse: func() {}}
}

// teller returns the teller of a conversation, and starts one if needed; nil when the program ends.
func (o *output) teller(ctx context.Context, session string) *teller {
	o.mu.Lock()
	defer o.mu.Unlock()
	te := o.tellers[session]
	if te != nil || o.over {
		return te
	}
	ctx, end := context.WithCancel(ctx)
	te = &teller{o: o, session: session, wake: make(chan struct{}, 1), end: end}
	o.tellers[session] = te
	o.work.Go(func() { te.run(ctx) })
	return te
}

// changed takes that the followed conversations or their channels may have changed, and returns at once.
func (o *output) changed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, te := range o.tellers {
		te.stir()
	}
	o.rouse()
}

// missed takes that an event of a conversation was missed: the conversation is read as soon as it is shown somewhere.
func (o *output) missed(session string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.follows, session)
	o.rouse()
}

// forget ends the teller of a deleted conversation.
func (o *output) forget(session string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if te := o.tellers[session]; te != nil {
		te.end()
		delete(o.tellers, session)
	}
}

// close ends the tellers and waits for them.
func (o *output) close() {
	o.mu.Lock()
	o.over = true
	for _, te := range o.tellers {
		te.end()
	}
	clear(o.tellers)
	o.mu.Unlock()
	o.work.Wait()
}

// below makes the next text of a conversation's running turn begin a new message, below a message that is posted now. below waits until
// the earlier text is in the channel, but not for long.
func (o *output) below(session string) {
	o.mu.Lock()
	te := o.tellers[session]
	o.mu.Unlock()
	if te == nil {
		return
	}
	shown := te.breakOff()
	if shown == nil {
		return
	}
	patience := time.NewTimer(belowPatience)
	defer patience.Stop()
	select {
	case <-shown:
	case <-patience.C:
	case <-o.s.ctx.Done():
	}
}

// say posts a text in a channel, as an answer to the message reply unless 0, and returns the id of the last message.
func (o *output) say(ctx context.Context, channel, reply snowflake.ID, text string) (last snowflake.ID, err error) {
	for _, piece := range split(text) {
		m, err := o.create(ctx, channel, discord.MessageCreate{Content: piece, MessageReference: answerTo(reply)})
		if err != nil {
			return last, err
		}
		last, reply = m.ID, 0
	}
	return last, nil
}

// answerTo returns the reference of an answer to a message, or nil.
func answerTo(message snowflake.ID) *discord.MessageReference {
	if message == 0 {
		return nil
	}
	return &discord.MessageReference{MessageID: &message}
}

// create posts a message that pings nobody and fetches nothing. When the message that it answers is gone, create posts without the
// reference, because Discord would refuse the whole message, and the library has no option against that.
func (o *output) create(ctx context.Context, channel snowflake.ID, m discord.MessageCreate) (*discord.Message, error) {
	m.AllowedMentions = nobodyPinged()
	m.Flags |= discord.MessageFlagSuppressEmbeds
	if m.Nonce == "" {
		m.Nonce = newNonce()
	}
	m.EnforceNonce = true
	made, err := o.s.client.rest.CreateMessage(channel, m, rest.WithCtx(ctx))
	if err == nil || m.MessageReference == nil || !isReference(err) {
		return made, err
	}
	m.MessageReference = nil
	for _, f := range m.Files {
		if again, ok := f.Reader.(io.Seeker); ok {
			if _, err := again.Seek(0, io.SeekStart); err != nil {
				return nil, err
			}
		}
	}
	return o.s.client.rest.CreateMessage(channel, m, rest.WithCtx(ctx))
}

// nobodyPinged returns the mentions of all our messages: an agent's text must not ping anybody.
func nobodyPinged() *discord.AllowedMentions {
	return &discord.AllowedMentions{Parse: []discord.AllowedMentionType{}}
}

// newNonce returns a nonce with which Discord makes a single message, however often the message is sent.
func newNonce() string {
	const longest = 25
	return rand.Text()[:longest]
}

// verdict is the meaning of a failure of Discord's for a message.
type verdict int

const (
	unclear   verdict = iota // the content is fine, and the call may have succeeded
	off                      // the surface is off
	noChannel                // the channel is gone
	forbidden                // the bot lacks a permission
	foreign                  // the message belongs to another bot, whose token was used before
	lost                     // the message is gone
	archived                 // the message is in an archived thread
	large                    // the files are too large
	unwanted                 // Discord refuses the content
)

// verdictOf returns the meaning of a failure.
func verdictOf(err error) verdict {
	var answer *rest.Error
	if errors.Is(err, errOff) {
		return off
	}
	if !errors.As(err, &answer) || answer.Response == nil {
		return unclear
	}
	switch answer.Code {
	case rest.JSONErrorCodeUnknownChannel, rest.JSONErrorCodeUnknownGuild:
		return noChannel
	case rest.JSONErrorCodeUnknownMessage:
		return lost
	case rest.JSONErrorCodeCannotEditMessageAuthoredByAnotherUser:
		return foreign
	case rest.JSONErrorCodeOperationOnArchivedThread:
		return archived
	case rest.JSONErrorCodeRequestEntityTooLarge, rest.JSONErrorCodeFileUploadedExceedsMaximumSize:
		return large
	case rest.JSONErrorCodeMaximumEditsToMessagesOlderThan1HourReached:
		return unclear // passes by itself
	case rest.JSONErrorCodeMissingAccess, rest.JSONErrorCodeLackPermissionsToPerformAction, rest.JSONErrorCodeThreadLocked:
		return forbidden
	default:
		return verdictOfStatus(answer.Response.StatusCode, answer.Code != 0)
	}
}

func verdictOfStatus(status int, discords bool) verdict {
	switch {
	case status == http.StatusRequestEntityTooLarge:
		return large
	case status == http.StatusForbidden && discords:
		return forbidden
	case status == http.StatusBadRequest:
		return unwanted
	}
	return unclear // also for 401, after which a working token may come
}

// isServers reports whether a call failed at Discord, for a reason of its own. A call that did not reach Discord says nothing about its
// content.
func isServers(err error) bool {
	var answer *rest.Error
	return errors.As(err, &answer) && answer.Response != nil && answer.Response.StatusCode >= http.StatusInternalServerError
}

// isReference reports whether a message was refused because of the message that it answers.
func isReference(err error) bool {
	var answer *rest.Error
	if !errors.As(err, &answer) {
		return false
	}
	return answer.Code == rest.JSONErrorCodeCannotReplyWithoutReadMessageHistoryPermission || answer.Code == rest.JSONErrorCodeInvalidFormBody && strings.Contains(string(answer.Errors), "message_reference")
}

// pace returns how long to wait between two edits of a message.
func (o *output) pace() time.Duration { return o.s.client.patience(editPace) }

// enabled reports whether the surface is on.
func (o *output) enabled() bool { return o.s.settings().Enabled }

// warn logs an error that no caller waits for.
func (o *output) warn(ctx context.Context, text, session string, err error) {
	if err != nil && ctx.Err() == nil {
		o.s.cfg.Logger.Warn(text, "session", session, "error", err) //nolint:sloglint // text is one of few
	}
}

// client returns the client of the conversations.
func (o *output) client() *session.Client { return o.s.cfg.Sessions }
