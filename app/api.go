package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// api calls the client API within the process, as the page does.
type api struct{ handler http.Handler }

// call makes one API call. When the API refuses the call, the error is an *Error with the API's code.
func (a api) call(ctx context.Context, method, route string, body, into any) error {
	var sent bytes.Buffer
	if body != nil {
		if err := json.NewEncoder(&sent).Encode(body); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, route, &sent)
	if err != nil {
		return err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Deskhand-Surface", surface)
	w := &heard{header: http.Header{}}
	a.handler.ServeHTTP(w, r)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case w.status >= http.StatusBadRequest:
		return refusal(w.body.Bytes())
	case into == nil:
		return nil
	}
	if err := json.Unmarshal(w.body.Bytes(), into); err != nil {
		return fmt.Errorf("%s %s: %w", method, route, err)
	}
	return nil
}

// surface marks the answers that are given beside the window.
const surface = "native"

// heard is a response in memory.
type heard struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (h *heard) Header() http.Header { return h.header }

func (h *heard) WriteHeader(status int) {
	if h.status == 0 {
		h.status = status
	}
}

func (h *heard) Write(data []byte) (int, error) {
	h.WriteHeader(http.StatusOK)
	return h.body.Write(data)
}

// batch is a part of the feed; see the client API.
type batch struct {
	Gen    string `json:"gen"`
	Seq    int64  `json:"seq"`
	Reset  bool   `json:"reset"`
	Events []struct {
		Type string          `json:"type"`
		Data json.RawMessage `json:"data"`
	} `json:"events"`
}

// events returns the events after a number, and waits until there is one.
func (a api) events(ctx context.Context, gen string, after int64) (b batch, err error) {
	q := url.Values{"gen": {gen}, "after": {strconv.FormatInt(after, 10)}, "types": {strings.Join([]string{eventRequest, eventSession, eventRemoved, eventSettings}, ",")}}
	err = a.call(ctx, http.MethodGet, "/client/events?"+q.Encode(), nil, &b)
	return b, err
}

const (
	eventRequest  = "request.upsert"
	eventSession  = "session.upsert"
	eventRemoved  = "session.removed"
	eventSettings = "settings.upsert"
)

// waiting returns the requests that wait for a person, and the set-ups that hold an agent of the conversations that changed last.
func (a api) waiting(ctx context.Context) ([]request, error) {
	var page struct {
		Items []request `json:"items"`
	}
	var list struct {
		Items []conversation `json:"items"`
	}
	if err := a.call(ctx, http.MethodGet, "/client/inbox", nil, &page); err != nil {
		return nil, err
	}
	err := a.call(ctx, http.MethodGet, "/client/sessions?limit=200", nil, &list)
	for _, c := range list.Items {
		if r, held := c.held(); held {
			page.Items = append(page.Items, r)
		}
	}
	return page.Items, err
}

func (a api) settings(ctx context.Context) (s settings, err error) {
	err = a.call(ctx, http.MethodGet, "/client/settings", nil, &s)
	return s, err
}

// place returns the session and the directory that a request comes from.
func (a api) place(ctx context.Context, session string) (p place, err error) {
	err = a.call(ctx, http.MethodGet, "/client/sessions/"+url.PathEscape(session), nil, &p)
	return p, err
}

// question returns the question of a waiting request, and false when the request asks no question, or several.
func (a api) question(ctx context.Context, request string) (question, bool, error) {
	var page struct {
		Questions []question `json:"questions"`
	}
	err := a.call(ctx, http.MethodGet, "/client/inbox", nil, &page)
	for _, q := range page.Questions {
		if q.ID == request {
			return q, true, err
		}
	}
	return question{}, false, err
}

// dangers returns the codes of the dangers that a person must see before giving a permission.
func (a api) dangers(ctx context.Context, request string) ([]string, error) {
	var about struct {
		Danger []string `json:"danger"`
	}
	err := a.call(ctx, http.MethodGet, "/client/requests/"+url.PathEscape(request)+"/rules", nil, &about)
	return about.Danger, err
}

func (a api) answer(ctx context.Context, w wish) error {
	return a.call(ctx, http.MethodPost, w.route, w.body, nil)
}

// late reports whether an answer was refused because another answer came first.
func late(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == "request.resolved"
}
