package remotes

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/host"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/remote"
)

// NewPlace has the fields of a new place.
type NewPlace struct {
	Name     string `json:"name" minLength:"1" maxLength:"80"`
	URL      string `json:"url" minLength:"1" maxLength:"2000"`
	Token    string `json:"token,omitempty" maxLength:"4096"`
	Insecure bool   `json:"insecure,omitempty" doc:"Allow http to another machine, although the token and all messages can be read on the way"`
}

// PlacePatch is a person's change of a place; a nil field stays as it is.
type PlacePatch struct {
	Name     *string `json:"name,omitempty" minLength:"1" maxLength:"80"`
	URL      *string `json:"url,omitempty" minLength:"1" maxLength:"2000"`
	Token    *string `json:"token,omitempty" maxLength:"4096" doc:"Token of the runtime; empty = no token"`
	Insecure bool    `json:"insecure,omitempty"`
}

// checkURL cleans a URL that a person has entered.
func checkURL(text string, insecure bool) (string, error) {
	clean, err := remote.CheckURL(text, insecure)
	switch {
	case errors.Is(err, remote.ErrInsecure):
		return "", refusal.Bad(insecureURL, "url", text)
	case err != nil:
		return "", refusal.Bad(badURL, "detail", err.Error())
	}
	return clean, nil
}

// checkName cleans the name for the place with an id, and refuses the name of another place.
func (l *Library) checkName(name, id string) (string, error) {
	name = strings.Join(strings.Fields(name), " ")
	if name == "" {
		return "", refusal.Bad(badName, "name", name)
	}
	for _, p := range l.List() {
		if p.ID != id && strings.EqualFold(p.Name, name) || strings.EqualFold(name, host.Local) {
			return "", &refusal.Error{Code: badName, Params: map[string]string{"name": name}}
		}
	}
	return name, nil
}

// keepToken stores the token of a place, or forgets the token where the new one is empty.
func (l *Library) keepToken(ctx context.Context, id, token string) (warning string, err error) {
	token = strings.TrimSpace(token)
	switch {
	case l.deps.Tokens == nil && token == "":
		return "", nil
	case l.deps.Tokens == nil:
		return "", refusal.Bad(badToken, "detail", "there is nowhere to keep it")
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", refusal.Bad(badToken, "detail", "it holds a space or a letter that no header can carry")
	case token == "":
		err = l.deps.Tokens.Forget(ctx, owner(id))
	default:
		warning, err = l.deps.Tokens.KeepToken(ctx, owner(id), token)
	}
	if err != nil {
		return "", &refusal.Error{Code: badToken, Params: map[string]string{"detail": err.Error()}}
	}
	return warning, nil
}

// Add stores a place, and asks the runtime for its software. A place whose runtime cannot be reached is stored too: the machine may be off.
func (l *Library) Add(ctx context.Context, n NewPlace) (Place, error) {
	address, err := checkURL(n.URL, n.Insecure)
	if err != nil {
		return Place{}, err
	}
	name, err := l.checkName(n.Name, "")
	if err != nil {
		return Place{}, err
	}
	p := Place{ID: uuid.Must(uuid.NewV7()).String(), Name: name, URL: address, State: stateUnknown}
	warning, err := l.keepToken(ctx, p.ID, n.Token)
	if err != nil {
		return Place{}, err
	}
	err = l.deps.Store.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO place (id, name, url, created_at) VALUES (?, ?, ?, ?)`, p.ID, p.Name, p.URL, time.Now().UnixMilli())
		return err
	})
	if err != nil {
		return Place{}, notStored(err)
	}
	l.mu.Lock()
	l.all[p.ID] = l.remote(p)
	l.mu.Unlock()
	p, err = l.Check(ctx, p.ID)
	p.Warning = warning
	return p, err
}

// Change applies a patch. Sessions of the place go on; a new token is tried at once. A token is sent only to the host that a person entered the
// token for: a new host needs its token entered again, and the connections to the old host keep the old token.
func (l *Library) Change(ctx context.Context, id string, change PlacePatch) (Place, error) {
	old, err := l.Get(id)
	if err != nil {
		return Place{}, err
	}
	p := old.Place()
	before := p.URL
	if change.Name != nil {
		if p.Name, err = l.checkName(*change.Name, id); err != nil {
			return Place{}, err
		}
	}
	if change.URL != nil {
		if p.URL, err = checkURL(*change.URL, change.Insecure); err != nil {
			return Place{}, err
		}
	}
	kept, err := l.tokenBefore(ctx, id, before, p.URL, change.Token)
	if err != nil {
		return Place{}, err
	}
	warning, err := old.store(ctx, p, kept, change.Token)
	if err != nil {
		return Place{}, err
	}
	l.mu.Lock()
	if p.URL != before {
		fresh := l.remote(p)
		old.runtime, old.kept = fresh.runtime, fresh.kept
	}
	old.place.Name, old.place.URL, old.place.State, old.place.Detail = p.Name, p.URL, stateUnknown, ""
	l.mu.Unlock()
	p, err = l.Check(ctx, id)
	p.Warning = warning
	old.retry()
	return p, err
}

// store writes the changed record p and the token of a place. kept is the token that the connections to the old host use from here on.
func (r *Remote) store(ctx context.Context, p Place, kept, token *string) (warning string, err error) {
	l := r.l
	l.mu.Lock()
	of := r.kept
	l.mu.Unlock()
	of.Store(kept)
	defer func() {
		if err != nil {
			of.Store(nil)
		}
	}()
	if token != nil {
		if warning, err = l.keepToken(ctx, p.ID, *token); err != nil {
			return "", err
		}
	}
	err = l.deps.Store.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE place SET name = ?, url = ? WHERE id = ?`, p.Name, p.URL, p.ID)
		return err
	})
	if err != nil && kept != nil { // the place stays at the old host, with that host's token
		_, failed := l.keepToken(context.WithoutCancel(ctx), p.ID, *kept)
		err = errors.Join(err, failed)
	}
	if err != nil {
		return "", notStored(err)
	}
	return warning, nil
}

// tokenBefore returns the token for the connections to the old address of a place, or nil where the new address has the same host. A change of
// the host is refused when a token is stored and the change gives no token for the new host.
func (l *Library) tokenBefore(ctx context.Context, id, before, now string, given *string) (*string, error) {
	if l.deps.Tokens == nil || originOf(before) == originOf(now) {
		return nil, nil //nolint:nilnil // there is no token to keep
	}
	kept, err := l.deps.Tokens.Token(ctx, owner(id))
	if err != nil && given == nil {
		return nil, &refusal.Error{Code: badToken, Params: map[string]string{"detail": err.Error()}}
	}
	if kept != "" && given == nil {
		return nil, refusal.Bad(badToken, "detail", "it was entered for another address; enter it again")
	}
	return &kept, nil
}

// originOf returns the scheme, host and port of an address: a tunnel has another machine behind each port.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Scheme + "://" + strings.ToLower(u.Host)
}

// Remove forgets a place. A place of sessions that are not archived stays. Archived sessions keep their transcripts, and their agents at the
// place are ended while the token is known. An agent that cannot be ended does not stop the removal, and is counted in the answer.
func (l *Library) Remove(ctx context.Context, id string) (PlaceRemoved, error) {
	r, err := l.Get(id)
	if err != nil {
		return PlaceRemoved{}, err
	}
	if err := r.unused(ctx, l.deps.Store.Read()); err != nil {
		return PlaceRemoved{}, err
	}
	gone := PlaceRemoved{ID: id}
	if gone.Left, err = l.sessions.EndAgents(ctx, id); err != nil {
		return PlaceRemoved{}, err
	}
	err = l.deps.Store.Write(ctx, func(tx *sql.Tx) error {
		if err := r.unused(ctx, tx); err != nil { // a session may have come since the first look
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM place WHERE id = ?`, id)
		return err
	})
	if _, refused := errors.AsType[*refusal.Error](err); err != nil && !refused {
		err = notStored(err)
	}
	if err != nil {
		return PlaceRemoved{}, err
	}
	l.mu.Lock()
	delete(l.all, id)
	l.mu.Unlock()
	r.Runtime().Close()
	l.sessions.Publish(eventPlaceRemoved, record.JSON(gone))
	if l.deps.Tokens != nil {
		if err := l.deps.Tokens.Forget(ctx, owner(id)); err != nil {
			l.deps.Logger.Warn("the token of a place that is gone is left", "place", id, "error", err)
		}
	}
	return gone, nil
}

// unused refuses a place of sessions that are not archived.
func (r *Remote) unused(ctx context.Context, q Querier) error {
	used, err := r.l.sessions.InUse(ctx, q, r.id)
	if err != nil || used == 0 {
		return err
	}
	return &refusal.Error{Code: placeInUse, Params: map[string]string{"name": r.Place().Name, "sessions": strconv.Itoa(used)}}
}
