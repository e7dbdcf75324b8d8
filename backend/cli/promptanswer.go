package cli

import (
	"context"
	"errors"
	"slices"
	"strings"

	"deskhand/backend"
)

// Values of --approve: who answers when the agent asks for an approval.
const (
	approveAsk    = "ask"    // the person at the terminal answers
	approveOnce   = "once"   // the approval is given once, where the agent offers that
	approveNever  = "never"  // the approval is rejected, by the person's choice
	approveNobody = "nobody" // it is turned down, for there is no terminal and no flag
)

// decide answers a request without asking a person. decide allows an approval once with --approve once, and rejects every other request. When
// the agent offers no rejection, decide stops the turn.
func (t *terminalTurn) decide(ctx context.Context, r backend.Request) error {
	switch r.Kind {
	case "trust":
		return t.decideTrust(ctx, r)
	case "raw": // no answer was missed, for there is none to give
		t.aside("· dismissed, for Deskhand does not know what it asks: %s", barred(r.Title))
		a, _ := turnDown(r)
		_, err := t.answer(ctx, r, a)
		return err
	}
	option, can := allowedOnce(r)
	if can && t.approve == approveOnce {
		t.aside("· allowed once: %s (%s)", barred(r.Title), barred(option.Shown()))
		_, err := t.answer(ctx, r, backend.Answer{OptionID: option.ID})
		return err
	}
	t.aside("· turned down, %s: %s", t.why(r, can), barred(r.Title))
	a, ok := turnDown(r)
	if !ok {
		t.aside("  the agent offers no way to turn it down, so the turn is stopped")
		t.missed()
		return t.api.call(ctx, "POST", "sessions/"+r.Session+"/cancel", nil, nil)
	}
	ours, err := t.answer(ctx, r, a)
	if ours {
		t.missed()
	}
	return err
}

// allowedOnce is the option that --approve once selects. ok is false when the agent only offers to allow for ever, and when the permission is
// a choice between several ways, since a person has to make that choice.
func allowedOnce(r backend.Request) (backend.RequestOption, bool) {
	i := slices.IndexFunc(r.Options, func(o backend.RequestOption) bool { return o.Kind == "allow_once" })
	if r.Kind != "permission" || r.IsChoice() || i < 0 {
		return backend.RequestOption{}, false
	}
	return r.Options[i], true
}

// why explains why a request is rejected, and names the flag that would have answered. can reports whether the request could be allowed once.
func (t *terminalTurn) why(r backend.Request, can bool) string {
	const asks = "--approve ask, at a terminal, asks you"
	switch {
	case t.approve == approveNever:
		return "as --approve never says"
	case t.approve == approveOnce && r.Kind != "permission":
		return "for --approve once answers approvals alone (" + asks + ")"
	case t.approve == approveOnce && r.IsChoice():
		return "for it is a choice, which --approve once makes for nobody (" + asks + ")"
	case t.approve == approveOnce:
		return "for the agent does not offer to allow it once, and --approve once allows nothing for ever (" + asks + ")"
	case can:
		return "for nobody is here to answer (--approve once would have allowed it; " + asks + ")"
	}
	return "for nobody is here to answer (" + asks + ")"
}

// missed records that an answer was needed and nobody gave one.
func (t *terminalTurn) missed() {
	t.state.Lock()
	defer t.state.Unlock()
	t.unmet = true
}

// turnDown is the rejection of a request. ok is false when the request has no rejection.
func turnDown(r backend.Request) (a backend.Answer, ok bool) {
	switch r.Kind {
	case "permission":
		id := plainestNo(r.Options)
		return backend.Answer{OptionID: id}, id != ""
	case "question":
		return backend.Answer{Reject: true}, true
	case "form", "url":
		return backend.Answer{Action: "decline"}, true
	}
	return backend.Answer{Action: "cancel"}, true
}

// answer answers a request. ours is false when the request had ended before, which answer reports on stderr.
func (t *terminalTurn) answer(ctx context.Context, r backend.Request, a backend.Answer) (ours bool, err error) {
	err = t.api.call(ctx, "POST", "requests/"+r.ID+"/answer", a, nil)
	if p, ok := errors.AsType[*problem](err); ok && p.Code == "request.resolved" {
		t.aside("· %s", strings.TrimPrefix(resolved(p.Params), "too late: "))
		return false, nil
	}
	return err == nil, err
}
