package session_test

import (
	"errors"
	"testing"

	"deskhand/backend/requests"
	"deskhand/backend/session"
)

func TestRequestIsFoundByID(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "permission")
	r := d.request(s.ID)
	if found, err := d.Requests().Get(t.Context(), r.ID); err != nil || found.ID != r.ID || found.Status != "requested" {
		t.Errorf("Request(%s): got %+v, %v; want it requested", r.ID, found, err)
	}
	d.answer(r, requests.Answer{OptionID: optionOf(t, r, "reject_once")})
	d.idle(s.ID)
	if found, err := d.Requests().Get(t.Context(), r.ID); err != nil || found.Status != "rejected" || found.AnsweredBy == "" {
		t.Errorf("Request(%s) after the answer: got %+v, %v; want it rejected by somebody", r.ID, found, err)
	}
	if _, err := d.Requests().Get(t.Context(), "none"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("Request(none) = %v, want ErrNotFound", err)
	}
}
