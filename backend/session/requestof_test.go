package session_test

import (
	"errors"
	"testing"

	"deskhand/backend/session"
)

func TestOneRequest(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "permission")
	r := d.request(s.ID)
	if found, err := d.Request(t.Context(), r.ID); err != nil || found.ID != r.ID || found.Status != "requested" {
		t.Errorf("%+v, %v", found, err)
	}
	d.answer(r, session.Answer{OptionID: optionOf(t, r, "reject_once")})
	d.idle(s.ID)
	if found, err := d.Request(t.Context(), r.ID); err != nil || found.Status != "rejected" || found.AnsweredBy == "" {
		t.Errorf("%+v, %v", found, err)
	}
	if _, err := d.Request(t.Context(), "none"); !errors.Is(err, session.ErrNotFound) {
		t.Error(err)
	}
}
