package discord

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/disgoorg/disgo/discord"
	"github.com/disgoorg/disgo/rest"
	"github.com/disgoorg/snowflake/v2"

	"deskhand/backend/requests"
	"deskhand/backend/session"
)

// The verbs of controls. A control is named by its request and a verb, most of them with a number behind; the name contains no text of
// the agent's.
const (
	controlPrefix = "ask:"

	verbOption  = "option-"  // a button: the number of the option
	verbOptions = "options-" // a select of options: the number of the select
	verbMenu    = "menu-"    // a select of choices: the number of the question, a dot, and the number of the select
	verbWords   = "words-"   // a button that opens a modal, and the modal: the number of the page. Its fields: the question
	verbPage    = "page-"    // a button: the page to go to
	verbSend    = "send"
	verbAccept  = "accept"
	verbDecline = "decline"
	verbCancel  = "cancel"
)

const (
	// guardTime is how long after the posting of a card no press counts, because a press may have been meant for the message before.
	guardTime = 400 * time.Millisecond
	// ackTime is how long Discord waits for the acknowledgement of a press, less the time on the network.
	ackTime = 2500 * time.Millisecond
)

func customID(request, verb string) string { return controlPrefix + request + ":" + verb }

// press is a press of a control, a choice, or a submitted modal.
type press struct {
	id, application  snowflake.ID
	token            string
	user             snowflake.ID
	channel, message snowflake.ID
	request, verb    string
	values           []string
	modal            *discord.ModalSubmitInteractionData // the text that was written
}

// pressed takes a press of a button or a choice of a select, and returns at once.
func (a *requestCards) pressed(i discord.ComponentInteraction) {
	p := press{id: i.ID(), application: i.ApplicationID(), token: i.Token(), user: i.User().ID, channel: i.Message.ChannelID, message: i.Message.ID}
	p.request, p.verb, _ = strings.Cut(strings.TrimPrefix(i.Data.CustomID(), controlPrefix), ":")
	if menu, ok := i.Data.(discord.StringSelectMenuInteractionData); ok {
		p.values = menu.Values
	}
	a.take(p)
}

// submitted takes a submitted modal, and returns at once.
func (a *requestCards) submitted(i discord.ModalSubmitInteraction) {
	p := press{id: i.ID(), application: i.ApplicationID(), token: i.Token(), user: i.User().ID, modal: &i.Data}
	p.request, p.verb, _ = strings.Cut(strings.TrimPrefix(i.Data.CustomID, controlPrefix), ":")
	if i.Message != nil {
		p.channel, p.message = i.Message.ChannelID, i.Message.ID
	}
	a.take(p)
}

// take acknowledges a press at once, and queues the rest in the order of the presses.
func (a *requestCards) take(p press) {
	taken := make(chan bool, 1)
	a.s.spawn(func(ctx context.Context) { taken <- a.acknowledge(ctx, p) })
	a.lanes.queue("answer "+p.request, func(ctx context.Context) {
		select {
		case ok := <-taken:
			if ok {
				a.act(ctx, p)
			}
		case <-ctx.Done():
		}
	})
}

// acknowledge acknowledges a press to Discord, and reports whether the press counts. A press that Discord does not see acknowledged in
// time does not count: the person reads that the press has failed, and may decide otherwise.
func (a *requestCards) acknowledge(ctx context.Context, p press) bool {
	ctx, cancel := context.WithTimeout(ctx, a.ack)
	defer cancel()
	respond := func(kind discord.InteractionResponseType, data discord.InteractionResponseData) bool {
		err := a.s.client.rest.CreateInteractionResponse(p.id, p.token, discord.InteractionResponse{Type: kind, Data: data}, rest.WithCtx(ctx))
		a.s.in.fails(ctx, "a press cannot be acknowledged", p.channel, err)
		return err == nil
	}
	if !a.s.allowed(p.user) {
		a.s.ignored("strangers")
		respond(discord.InteractionResponseTypeCreateMessage, aside(notForYou))
		return false
	}
	k, why := a.open(ctx, p)
	if why != "" {
		respond(discord.InteractionResponseTypeCreateMessage, aside(why))
		return false
	}
	if page, ok := number(p.verb, verbWords); ok && p.modal == nil {
		r, err := a.current(ctx, p.request)
		if err == nil {
			d := &drawing{r: &r, h: k.held, asks: requests.QuestionsOf([]requests.Request{r})}
			if m, ok := d.modal(page); ok {
				respond(discord.InteractionResponseTypeModal, m)
				return false
			}
		}
	}
	return respond(discord.InteractionResponseTypeDeferredUpdateMessage, nil)
}

// aside returns a message that only the person sees who has pressed.
func aside(text string) discord.MessageCreate {
	return discord.MessageCreate{
		Content: short(text, mostContent), AllowedMentions: nobodyPinged(), Flags: discord.MessageFlagEphemeral | discord.MessageFlagSuppressEmbeds,
	}
}

// open finds the card of a press; why says why the press does not count.
func (a *requestCards) open(ctx context.Context, p press) (k keptCard, why string) {
	k, ok, err := a.one(ctx, p.request)
	if err != nil {
		a.s.cfg.Logger.Error("the cards cannot be read", "error", err)
		return k, "Deskhand cannot read its data at the moment. Try again."
	}
	channel, bound := a.s.bindings.channelOf(k.session)
	if !ok || !bound || channel != k.channel || p.channel != k.channel || p.message < k.message {
		return k, "This is no longer asked here." // a card that was posted, or posted again, a moment ago may not be known here yet, and is newer
	}
	// Both times are Discord's: our clock may be wrong.
	if p.modal == nil && p.id.Time().Sub(p.message.Time()) < guardTime {
		return k, "That was too soon after it appeared to be meant for it. Look at it, and press again."
	}
	return k, ""
}

// current returns the present state of a request.
func (a *requestCards) current(ctx context.Context, request string) (requests.Request, error) {
	a.mu.Lock()
	r, ok := a.latest[request]
	a.mu.Unlock()
	if ok {
		return r, nil
	}
	return a.s.cfg.Sessions.Requests().Get(ctx, request)
}

// act does what a press asks for, and tells the person when that fails.
func (a *requestCards) act(ctx context.Context, p press) {
	k, ok, err := a.one(ctx, p.request)
	r, again := a.current(ctx, p.request) // read after the card: without a card, the request has ended, and this says how
	if err = errors.Join(err, again); err == nil && !ok {
		err = withoutCard(r)
	}
	why := ""
	if err == nil {
		s := &sheet{r: &r, k: &k, p: &p, asks: requests.QuestionsOf([]requests.Request{r})}
		why, err = a.done(ctx, s)
	}
	if err != nil {
		why = a.refusal(ctx, p.request, err)
	}
	if why == "" {
		return
	}
	a.show(r.Session, p.request)
	_, err = a.s.client.rest.CreateFollowupMessage(p.application, p.token, aside(why), rest.WithCtx(ctx))
	a.s.in.fails(ctx, "what was wrong with an answer cannot be told", p.channel, err)
}

// withoutCard returns the error for a press whose card has gone since the acknowledgement, because somebody else was faster.
func withoutCard(r requests.Request) error {
	if r.Status == "requested" {
		return session.ErrNotFound
	}
	return refuse("request.resolved", "status", r.Status, "answeredBy", r.AnsweredBy)
}

// sheet is a press with everything needed to interpret the press.
type sheet struct {
	r    *requests.Request
	k    *keptCard
	p    *press
	asks []requests.WaitingQuestion
}

// done gives the answer of a press, or stores the choice of a press that is only part of an answer; why says which answer is missing.
func (a *requestCards) done(ctx context.Context, s *sheet) (why string, err error) {
	r := s.r
	if page, ok := number(s.p.verb, verbPage); ok {
		return "", a.choose(ctx, s, map[string]any{"page": page})
	}
	if r.Kind == "question" || r.Kind == "form" {
		if s.change() {
			return a.changeOr(ctx, s)
		}
		if s.p.verb == verbSend || s.p.verb == verbAccept && onlyYes(r, s.asks) {
			return a.send(ctx, s)
		}
	}
	answer, ok := s.answer()
	if !ok {
		return "That cannot be answered here.", nil
	}
	return "", a.give(ctx, r.ID, s.p.user, func() error { return a.s.cfg.Sessions.Answer(ctx, r.ID, answer, surfaceName) })
}

// changeOr stores a choice, or answers when the choice is the whole answer.
func (a *requestCards) changeOr(ctx context.Context, s *sheet) (why string, err error) {
	if err := a.choose(ctx, s, map[string]any{"picked": s.k.held.Picked, "own": s.k.held.Own}); err != nil {
		return "", err
	}
	if atOnce(s.r, s.asks) {
		return a.send(ctx, s)
	}
	return "", nil
}

func (a *requestCards) choose(ctx context.Context, s *sheet, change map[string]any) error {
	err := a.hold(ctx, s.r.ID, change)
	a.show(s.r.Session, s.r.ID)
	return err
}

// send answers with the choices and texts so far.
func (a *requestCards) send(ctx context.Context, s *sheet) (why string, err error) {
	lists := s.lists()
	if i := slices.IndexFunc(lists, func(list []string) bool { return len(list) == 0 }); i >= 0 && s.r.Kind == "question" {
		at := slices.IndexFunc(pages(s.asks), func(p span) bool { return i < p.to })
		return "This needs an answer: " + quiet(short(oneLine(s.asks[i].Prompt), longestWords)), a.choose(ctx, s, map[string]any{"page": at})
	}
	return "", a.give(ctx, s.r.ID, s.p.user, func() error {
		return a.s.cfg.Sessions.ReplyQuestion(ctx, s.r.Session, s.r.ID, lists, surfaceName)
	})
}

// answer answers an approval for a person, in turn with the presses. An answer that no button of the card gives is refused.
func (a *requestCards) answer(ctx context.Context, request string, user snowflake.ID, answer requests.Answer) error {
	done := make(chan error, 1)
	a.lanes.queue("answer "+request, func(ctx context.Context) {
		r, err := a.current(ctx, request)
		k, _, again := a.one(ctx, request)
		if err = errors.Join(err, again); err == nil {
			d := &drawing{r: &r, h: k.held}
			if !slices.ContainsFunc(d.offered(), func(i int) bool { return r.Options[i].ID == answer.OptionID }) {
				err = refuse("answer.unknown_option", "optionId", answer.OptionID)
			}
		}
		if err == nil {
			err = a.give(ctx, request, user, func() error { return a.s.cfg.Sessions.Answer(ctx, request, answer, surfaceName) })
		}
		done <- err
	})
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// give stores whose answer is given before giving the answer, because the end of the request may be shown before its acceptance is known.
func (a *requestCards) give(ctx context.Context, request string, user snowflake.ID, answer func() error) error {
	k, _, err := a.one(ctx, request)
	if err != nil {
		return err
	}
	if r, err := a.s.cfg.Sessions.Requests().Get(ctx, request); err == nil && r.Status != "requested" {
		return answer() // somebody else was first: their name stays, and this answer fails
	}
	// A name that exists already belongs to an answer that a crash has prevented.
	if err := a.hold(ctx, request, map[string]any{"by": user.String()}); err != nil {
		return err
	}
	err = answer()
	if err != nil {
		var before any // no name
		if k.held.By != "" {
			before = k.held.By
		}
		return errors.Join(err, a.hold(ctx, request, map[string]any{"by": before}))
	}
	return nil
}

// answer returns the answer that a press gives by itself; ok is false for a press without an answer, or with an answer that must not be
// given here.
func (s *sheet) answer() (answer requests.Answer, ok bool) {
	choices := s.r.Kind == "permission" || s.r.Kind == "trust"
	at, isOption := number(s.p.verb, verbOption)
	if strings.HasPrefix(s.p.verb, verbOptions) && len(s.p.values) == 1 {
		at, isOption = number(s.p.values[0], "")
	}
	if isOption {
		d := &drawing{r: s.r, h: s.k.held}
		if !choices || !slices.Contains(d.offered(), at) {
			return answer, false
		}
		return requests.Answer{OptionID: s.r.Options[at].ID}, true
	}
	switch {
	case choices:
		return answer, false
	case s.p.verb == verbDecline && s.r.Kind == "question":
		return requests.Answer{Reject: true}, true
	case s.p.verb == verbAccept && s.r.Kind == "url", s.p.verb == verbDecline && s.r.Kind != "raw", s.p.verb == verbCancel && s.r.Kind != "question":
		return requests.Answer{Action: s.p.verb}, true
	}
	return answer, false
}

// change applies a press to the held choices and texts, and returns false for a press that changes neither.
func (s *sheet) change() bool {
	picked, own := make([][]int, len(s.asks)), make([]string, len(s.asks))
	for i := range s.asks {
		picked[i], own[i] = s.k.held.picked(i), s.k.held.own(i)
	}
	if s.p.modal != nil {
		s.write(picked, own)
	} else if !s.menu(picked, own) {
		return false
	}
	s.k.held.Picked, s.k.held.Own = picked, own
	return true
}

// menu applies the choice in a select. For a question with a single answer, the choice replaces a text.
func (s *sheet) menu(picked [][]int, own []string) bool {
	at, n, _ := strings.Cut(strings.TrimPrefix(s.p.verb, verbMenu), ".")
	i, known := number(at, "")
	menu, numbered := number(n, "")
	if !strings.HasPrefix(s.p.verb, verbMenu) || !known || !numbered || i >= len(s.asks) || menu >= menusOf(s.asks[i]) {
		return false
	}
	picked[i] = s.pick(i, menu, picked[i])
	if !s.asks[i].MultiSelect && len(picked[i]) > 0 {
		own[i] = ""
	}
	return true
}

// write applies the texts of a modal. For a question with a single answer, the text replaces a choice.
func (s *sheet) write(picked [][]int, own []string) {
	for i, q := range s.asks {
		text, given := s.p.modal.OptText(verbWords + strconv.Itoa(i))
		if !given || !q.FreeText {
			continue
		}
		own[i] = strings.TrimSpace(text)
		if own[i] != "" && !q.MultiSelect {
			picked[i] = nil
		}
	}
}

// pick replaces the earlier choice in a select of a question.
func (s *sheet) pick(i, menu int, before []int) []int {
	q := s.asks[i]
	first := menu * mostChoices
	var now []int
	for _, value := range s.p.values {
		if at, ok := number(value, ""); ok && at >= first && at < min(first+mostChoices, len(q.Choices)) {
			now = append(now, at)
		}
	}
	if q.MultiSelect || len(now) == 0 {
		for _, at := range before {
			if at < first || at >= first+mostChoices {
				now = append(now, at)
			}
		}
	}
	slices.Sort(now)
	return slices.Compact(now)
}

// lists returns the answers to all questions: the ids of choices, and then the own text.
func (s *sheet) lists() [][]string {
	lists := make([][]string, len(s.asks))
	for i, q := range s.asks {
		for _, at := range s.k.held.picked(i) {
			if at < len(q.Choices) {
				lists[i] = append(lists[i], q.Choices[at].ID)
			}
		}
		if own := s.k.held.own(i); own != "" && q.FreeText {
			lists[i] = append(lists[i], own)
		}
	}
	if s.p.verb == verbAccept {
		lists = [][]string{{verbAccept}}
	}
	return lists
}

// number returns the number behind a verb.
func number(verb, after string) (int, bool) {
	rest, ok := strings.CutPrefix(verb, after)
	n, err := strconv.Atoi(rest)
	return n, ok && err == nil && n >= 0
}

// refusal says in words why an answer was not accepted.
func (a *requestCards) refusal(ctx context.Context, request string, err error) string {
	refused, ok := errors.AsType[*session.RefusedError](err)
	switch {
	case errors.Is(err, session.ErrNotFound):
		return "This is no longer asked here."
	case !ok && ctx.Err() != nil:
		return ""
	case !ok:
		a.s.cfg.Logger.Error("an answer cannot be given", "request", request, "error", err)
		return "Deskhand cannot take the answer at the moment. Try again."
	}
	switch refused.Code {
	case "request.resolved":
		k, _, _ := a.one(ctx, request) // without the card, the message names nobody
		return tooLate(refused.Params, k.held.By)
	case "answer.invalid":
		return "That does not fit: " + quiet(short(oneLine(refused.Params["detail"]), longestWords))
	case "answer.unknown_option":
		return "That is none of the choices: " + quiet(short(oneLine(refused.Params["optionId"]), longestWords))
	case "answer.choose":
		return "This takes one answer: " + quiet(short(oneLine(refused.Params["question"]), longestWords))
	}
	return fmt.Sprintf("It was not taken (%s).", refused.Code)
}

// tooLate says who was first, or how the request ended.
func tooLate(params map[string]string, by string) string {
	switch params["status"] {
	case "cancelled":
		return "Too late: its turn has ended, or the agent took it back."
	case "expired":
		return "Too late: its agent has ended."
	}
	if params["answeredBy"] == surfaceName && by != "" {
		return "Too late: it was answered by <@" + by + ">."
	}
	return "Too late: it was answered " + answeredWhere(params["answeredBy"]) + "."
}
