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

// What goes out. The reader of the feed (follow.go) notes what turns say, and never waits for Discord. For each conversation one goroutine
// shows it (telling.go): it compares what its messages should say with what they say, and does one call after the other until they agree.
// So a call that fails is simply still to be done, what came meanwhile is in the next one, and a crash is only a longer wait. Files
// are told apart (files.go): those are sent once.

// output shows what the agents of bound conversations say, and what became of their turns.
type output struct {
	s    *Surface
	work sync.WaitGroup // the tellers

	mu      sync.Mutex // protects what is below
	tellers map[string]*teller
	uploads map[string]upload       // by guild
	follows map[string]snowflake.ID // the conversations that are followed, and where each is shown
	rouse   context.CancelFunc      // has the reader look at what is to be followed
	over    bool                    // run has ended

	reading sync.Mutex // held while events are taken: what is read of a conversation and what comes must not overtake each other
}

const (
	editPace      = time.Second // between two edits of one message
	belowPatience = 3 * time.Second
)

func newOutput(s *Surface) *output {
	return &output{s: s, tellers: map[string]*teller{}, uploads: map[string]upload{}, follows: map[string]snowflake.ID{}, rouse: func() {}}
}

// teller is the one of a conversation, begun where there is none; nil when the program ends.
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

// changed takes that it may be another one now what is shown, and where. It returns at once.
func (o *output) changed() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, te := range o.tellers {
		te.stir()
	}
	o.rouse()
}

// missed takes that something was not heard of a conversation: it is read as soon as it is shown somewhere.
func (o *output) missed(session string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.follows, session)
	o.rouse()
}

// forget ends the teller of a conversation that is gone.
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

// below makes what the running turn of a conversation says next come in a new message, below what is posted now. It waits until what was
// said before is in the channel, but not for long.
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

// say posts a text in a channel, as an answer to a message where reply is not 0, and tells the id of its last message.
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

// answerTo is the reference of an answer to a message; nil where there is none.
func answerTo(message snowflake.ID) *discord.MessageReference {
	if message == 0 {
		return nil
	}
	return &discord.MessageReference{MessageID: &message}
}

// create posts a message that pings nobody and fetches nothing. Where the message that it answers is gone, it answers none: Discord would
// refuse the whole message, and the library cannot say that it should not.
func (o *output) create(ctx context.Context, channel snowflake.ID, m discord.MessageCreate) (*discord.Message, error) {
	m.AllowedMentions = nobodyPinged()
	m.Flags |= discord.MessageFlagSuppressEmbeds
	if m.Nonce == "" {
		m.Nonce = newNonce()
	}
	m.EnforceNonce = true
	made, err := o.s.line.rest.CreateMessage(channel, m, rest.WithCtx(ctx))
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
	return o.s.line.rest.CreateMessage(channel, m, rest.WithCtx(ctx))
}

// nobodyPinged are the mentions of everything that we post: an agent's text must not call anybody.
func nobodyPinged() *discord.AllowedMentions {
	return &discord.AllowedMentions{Parse: []discord.AllowedMentionType{}}
}

// newNonce is a name of a message by which Discord makes one of it, however often it is sent.
func newNonce() string {
	const longest = 25
	return rand.Text()[:longest]
}

// verdict is what a failure of Discord's means for what was to be shown.
type verdict int

const (
	unclear   verdict = iota // nothing is wrong with it, and it may have been done
	off                      // the surface is
	noChannel                // the channel is gone
	forbidden                // the bot may not
	foreign                  // the message is another bot's: the token is of another one now
	lost                     // the message is gone
	archived                 // the message stands in a thread that is
	large                    // the files are too large
	unwanted                 // Discord does not take what it says
)

// verdictOf judges a failure.
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
		return unclear // that passes
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
	return unclear // 401 as well: a token that works may come
}

// isServers tells whether a call has failed at Discord, for reasons of its own. A call that never came there says nothing of what it had.
func isServers(err error) bool {
	var answer *rest.Error
	return errors.As(err, &answer) && answer.Response != nil && answer.Response.StatusCode >= http.StatusInternalServerError
}

// isReference tells whether a message was refused for the message that it answers.
func isReference(err error) bool {
	var answer *rest.Error
	if !errors.As(err, &answer) {
		return false
	}
	return answer.Code == rest.JSONErrorCodeCannotReplyWithoutReadMessageHistoryPermission || answer.Code == rest.JSONErrorCodeInvalidFormBody && strings.Contains(string(answer.Errors), "message_reference")
}

// pace is how long to wait between two edits of one message.
func (o *output) pace() time.Duration { return o.s.line.patience(editPace) }

// enabled tells whether the surface is on.
func (o *output) enabled() bool { return o.s.settings().Enabled }

// warn notes what went wrong where nobody waits for it.
func (o *output) warn(ctx context.Context, text, session string, err error) {
	if err != nil && ctx.Err() == nil {
		o.s.cfg.Logger.Warn(text, "session", session, "error", err) //nolint:sloglint // text is one of few
	}
}

// client is the conversations.
func (o *output) client() *session.Client { return o.s.cfg.Sessions }
