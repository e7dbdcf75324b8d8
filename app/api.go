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
)

// api calls the client API within the process, as the page does.
type api struct{ handler http.Handler }

// call makes one call. What the API refuses is an *Error with its code.
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

// surface is what our answers are marked with.
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

// events waits for what follows.
func (a api) events(ctx context.Context, gen string, after int64) (b batch, err error) {
	q := url.Values{"gen": {gen}, "after": {strconv.FormatInt(after, 10)}, "types": {eventRequest + "," + eventSettings}}
	err = a.call(ctx, http.MethodGet, "/client/events?"+q.Encode(), nil, &b)
	return b, err
}

const (
	eventRequest  = "request.upsert"
	eventSettings = "settings.upsert"
)

// waiting is what waits now.
func (a api) waiting(ctx context.Context) ([]request, error) {
	var page struct {
		Items []request `json:"items"`
	}
	err := a.call(ctx, http.MethodGet, "/client/inbox", nil, &page)
	return page.Items, err
}

func (a api) settings(ctx context.Context) (s settings, err error) {
	err = a.call(ctx, http.MethodGet, "/client/settings", nil, &s)
	return s, err
}

// place is where a request comes from.
func (a api) place(ctx context.Context, session string) (p place, err error) {
	err = a.call(ctx, http.MethodGet, "/client/sessions/"+url.PathEscape(session), nil, &p)
	return p, err
}

// question is a request that waits, as the one question that it is; false when it is none, or several.
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

// dangers are the codes of what there is to know before a permission is given.
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

// late says whether an answer came after another one.
func late(err error) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Code == "request.resolved"
}
