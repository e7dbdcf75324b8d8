package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/agents"
	"deskhand/backend/host"
	"deskhand/backend/mcp"
	"deskhand/backend/remote"
)

// Places are where agents run: this machine, and runtimes elsewhere that a person has named. The record of one is in the database; its
// token is not.

// Place is where agents can run.
type Place struct {
	ID       string `json:"id" doc:"local is this machine"`
	Name     string `json:"name"`
	URL      string `json:"url" doc:"Of its runtime; empty for local"`
	State    string `json:"state" enum:"unknown,ready,unreachable,refused" doc:"As of the last time that it was used or checked; refused is its token"`
	Detail   string `json:"detail,omitempty" doc:"Why it is not ready, in the words of who said so"`
	Version  string `json:"version,omitempty"`
	Software string `json:"software,omitempty" doc:"What the runtime calls itself"`
	Warning  string `json:"warning,omitempty" doc:"Why its token is not in the keyring; of the answer to its change alone"`
}

// PlaceRemoved is the data of a place.removed event, and what its removal is answered with.
type PlaceRemoved struct {
	ID   string `json:"id"`
	Left int    `json:"left,omitempty" doc:"So many agents could not be ended there, and may go on"`
}

const (
	eventPlace        = "place.upsert"
	eventPlaceRemoved = "place.removed"
)

// The states of a place.
const (
	placeUnknown     = "unknown"
	placeReady       = "ready"
	placeUnreachable = "unreachable"
	placeRefused     = "refused"
)

// Codes of what cannot be done with a place; some are an Exit's too.
const (
	refusedPlace       = "place.unknown"
	refusedPlaceLocal  = "place.local"
	refusedPlaceURL    = "place.url"
	refusedInsecure    = "place.insecure"
	refusedPlaceName   = "place.name"
	refusedPlaceUsed   = "place.used"
	refusedPlaceToken  = "place.token"
	refusedNoAnswer    = "place.unreachable"
	refusedToken       = "place.refused"
	refusedThere       = "place.problem"
	problemPlaceGone   = "place.gone"    // the runtime has lost the agent
	problemPlaceEnding = "place.unended" // the agent could not be ended there
)

// farPlace is one elsewhere.
type farPlace struct {
	Place
	runtime *remote.Runtime
	kept    *atomic.Pointer[string]       // the token of runtime, once the place has another address: lines to the old one keep it
	lines   map[*remoteTransport]struct{} // those that are in use
}

// farPlaces are all that are elsewhere.
type farPlaces struct {
	mu  sync.Mutex // protects what is below
	all map[string]*farPlace
}

// secrets are what must not be written, of agents and of places.
func (cfg Config) secrets() []string {
	list := slices.Clone(cfg.Agents.Secrets())
	for _, v := range []*agents.Vault{cfg.Tokens, cfg.Vault} {
		if v != nil {
			list = append(list, v.Secrets()...)
		}
	}
	return slices.DeleteFunc(list, mcp.Usual)
}

// loadPlaces reads them. Not their tokens: recall knows those in the file by now, and a line that needs another asks for it before anything
// comes over it. Open waited for a keyring to be unlocked here.
func (c *Client) loadPlaces(ctx context.Context) error {
	list, err := query(ctx, c.cfg.Store.Read(), func(s scanner) (Place, error) {
		p := Place{State: placeUnknown}
		return p, s.Scan(&p.ID, &p.Name, &p.URL)
	}, `SELECT id, name, url FROM place`)
	if err != nil {
		return err
	}
	for _, p := range list {
		c.places.all[p.ID] = c.newPlace(p)
	}
	return nil
}

func placeOwner(id string) string { return "place/" + id }

func (c *Client) newPlace(p Place) *farPlace {
	kept := &atomic.Pointer[string]{}
	return &farPlace{Place: p, kept: kept, lines: map[*remoteTransport]struct{}{}, runtime: remote.New(remote.Config{
		URL: p.URL, Logger: c.cfg.Logger, Stall: c.cfg.LineStall,
		Token: func(ctx context.Context) (string, error) {
			if old := kept.Load(); old != nil {
				return *old, nil
			}
			if c.cfg.Tokens == nil {
				return "", nil
			}
			return c.cfg.Tokens.Value(ctx, placeOwner(p.ID))
		},
	})}
}

// local is this machine as a place.
func (c *Client) local() Place {
	return Place{ID: host.Local, Name: "This computer", State: placeReady, Version: c.cfg.Version, Software: "Deskhand"}
}

// Places lists them: this machine, then the others by name.
func (c *Client) Places() []Place {
	c.places.mu.Lock()
	defer c.places.mu.Unlock()
	list := make([]Place, 0, len(c.places.all)+1)
	for _, p := range c.places.all {
		list = append(list, p.Place)
	}
	slices.SortFunc(list, func(a, b Place) int {
		return strings.Compare(strings.ToLower(a.Name)+a.ID, strings.ToLower(b.Name)+b.ID)
	})
	return slices.Insert(list, 0, c.local())
}

// place finds one elsewhere.
func (c *Client) place(id string) (*farPlace, error) {
	if id == host.Local {
		return nil, bad(refusedPlaceLocal)
	}
	c.places.mu.Lock()
	defer c.places.mu.Unlock()
	p := c.places.all[id]
	if p == nil {
		return nil, bad(refusedPlace, "place", id)
	}
	return p, nil
}

// NewPlace is what a place is made from.
type NewPlace struct {
	Name     string `json:"name" minLength:"1" maxLength:"80"`
	URL      string `json:"url" minLength:"1" maxLength:"2000"`
	Token    string `json:"token,omitempty" maxLength:"4096"`
	Insecure bool   `json:"insecure,omitempty" doc:"http to another machine is wanted, although the token and all that is said can be read on the way"`
}

// PlacePatch is what a person changes about a place; nil stays.
type PlacePatch struct {
	Name     *string `json:"name,omitempty" minLength:"1" maxLength:"80"`
	URL      *string `json:"url,omitempty" minLength:"1" maxLength:"2000"`
	Token    *string `json:"token,omitempty" maxLength:"4096" doc:"Empty: without one"`
	Insecure bool    `json:"insecure,omitempty"`
}

// placeURL checks a URL that a person has entered.
func placeURL(text string, insecure bool) (string, error) {
	clean, err := remote.CheckURL(text, insecure)
	switch {
	case errors.Is(err, remote.ErrInsecure):
		return "", bad(refusedInsecure, "url", text)
	case err != nil:
		return "", bad(refusedPlaceURL, "detail", err.Error())
	}
	return clean, nil
}

// placeName checks a name, which tells places apart.
func (c *Client) placeName(name, id string) (string, error) {
	name = strings.Join(strings.Fields(name), " ")
	if name == "" {
		return "", bad(refusedPlaceName, "name", name)
	}
	for _, p := range c.Places() {
		if p.ID != id && strings.EqualFold(p.Name, name) || strings.EqualFold(name, host.Local) {
			return "", &RefusedError{Code: refusedPlaceName, Params: map[string]string{"name": name}}
		}
	}
	return name, nil
}

// keepToken keeps the token of a place, or forgets it.
func (c *Client) keepToken(ctx context.Context, id, token string) (warning string, err error) {
	token = strings.TrimSpace(token)
	switch {
	case c.cfg.Tokens == nil && token == "":
		return "", nil
	case c.cfg.Tokens == nil:
		return "", bad(refusedPlaceToken, "detail", "there is nowhere to keep it")
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", bad(refusedPlaceToken, "detail", "it holds a space or a letter that no header can carry")
	case token == "":
		err = c.cfg.Tokens.Forget(ctx, placeOwner(id))
	default:
		warning, err = c.cfg.Tokens.Keep(ctx, placeOwner(id), token)
	}
	if err != nil {
		return "", &RefusedError{Code: refusedPlaceToken, Params: map[string]string{"detail": err.Error()}}
	}
	return warning, nil
}

// AddPlace makes a place, and asks its runtime what it is. One that cannot be reached is made all the same: it may be off.
func (c *Client) AddPlace(ctx context.Context, n NewPlace) (Place, error) {
	address, err := placeURL(n.URL, n.Insecure)
	if err != nil {
		return Place{}, err
	}
	name, err := c.placeName(n.Name, "")
	if err != nil {
		return Place{}, err
	}
	p := Place{ID: uuid.Must(uuid.NewV7()).String(), Name: name, URL: address, State: placeUnknown}
	warning, err := c.keepToken(ctx, p.ID, n.Token)
	if err != nil {
		return Place{}, err
	}
	err = c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO place (id, name, url, created_at) VALUES (?, ?, ?, ?)`, p.ID, p.Name, p.URL, millis(time.Now()))
		return err
	})
	if err != nil {
		return Place{}, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	c.places.mu.Lock()
	c.places.all[p.ID] = c.newPlace(p)
	c.places.mu.Unlock()
	p, err = c.CheckPlace(ctx, p.ID)
	p.Warning = warning
	return p, err
}

// ChangePlace applies a patch. Sessions that run there go on as they do; a new token is tried at once. A token goes nowhere but where it was
// entered for: with the address of another host it has to be given anew, and what runs at the old one keeps the old.
func (c *Client) ChangePlace(ctx context.Context, id string, change PlacePatch) (Place, error) {
	old, err := c.place(id)
	if err != nil {
		return Place{}, err
	}
	p := c.placeNow(old)
	before := p.URL
	if change.Name != nil {
		if p.Name, err = c.placeName(*change.Name, id); err != nil {
			return Place{}, err
		}
	}
	if change.URL != nil {
		if p.URL, err = placeURL(*change.URL, change.Insecure); err != nil {
			return Place{}, err
		}
	}
	kept, err := c.tokenBefore(ctx, id, before, p.URL, change.Token)
	if err != nil {
		return Place{}, err
	}
	warning, err := c.storePlace(ctx, old, p, kept, change.Token)
	if err != nil {
		return Place{}, err
	}
	c.places.mu.Lock()
	if p.URL != before {
		fresh := c.newPlace(p)
		old.runtime, old.kept = fresh.runtime, fresh.kept
	}
	old.Name, old.URL, old.State, old.Detail = p.Name, p.URL, placeUnknown, ""
	c.places.mu.Unlock()
	p, err = c.CheckPlace(ctx, id)
	p.Warning = warning
	c.retryLines(old)
	return p, err
}

// storePlace writes a place down, with its token. From before that on its lines to another host have the one that is kept for them.
func (c *Client) storePlace(ctx context.Context, old *farPlace, p Place, kept, token *string) (warning string, err error) {
	c.places.mu.Lock()
	of := old.kept
	c.places.mu.Unlock()
	of.Store(kept)
	defer func() {
		if err != nil {
			of.Store(nil)
		}
	}()
	if token != nil {
		if warning, err = c.keepToken(ctx, p.ID, *token); err != nil {
			return "", err
		}
	}
	err = c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE place SET name = ?, url = ? WHERE id = ?`, p.Name, p.URL, p.ID)
		return err
	})
	if err != nil && kept != nil { // it stays where it is, with the token of there
		_, failed := c.keepToken(context.WithoutCancel(ctx), p.ID, *kept)
		err = errors.Join(err, failed)
	}
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrStorage, err)
	}
	return warning, nil
}

// tokenBefore gives the token that a place has while it is at an address, when it is to be at another; nil where that is the same host, whose
// token it stays. One that was entered for another host is refused.
func (c *Client) tokenBefore(ctx context.Context, id, before, now string, given *string) (*string, error) {
	if c.cfg.Tokens == nil || hostOf(before) == hostOf(now) {
		return nil, nil //nolint:nilnil // there is none to keep
	}
	kept, err := c.cfg.Tokens.Value(ctx, placeOwner(id))
	if err != nil && given == nil {
		return nil, &RefusedError{Code: refusedPlaceToken, Params: map[string]string{"detail": err.Error()}}
	}
	if kept != "" && given == nil {
		return nil, bad(refusedPlaceToken, "detail", "it was entered for another address; enter it again")
	}
	return &kept, nil
}

// hostOf is what a token is for: tunnels have another machine behind each port.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return u.Scheme + "://" + strings.ToLower(u.Host)
}

// retryLines has the lines to a place tried now.
func (c *Client) retryLines(p *farPlace) {
	c.places.mu.Lock()
	defer c.places.mu.Unlock()
	for l := range p.lines {
		l.inst.Retry()
	}
}

// endsThere is how long the removal of a place waits for the ends of what runs there.
const endsThere = 8 * time.Second

// RemovePlace forgets a place. One that sessions are at which are not archived stays; those that are keep what was said, and what still runs for
// them there is ended, as long as there is a token for that. What cannot be ended keeps nobody from the removal, and is told.
func (c *Client) RemovePlace(ctx context.Context, id string) (PlaceRemoved, error) {
	p, err := c.place(id)
	if err != nil {
		return PlaceRemoved{}, err
	}
	if err := c.unused(ctx, c.cfg.Store.Read(), p); err != nil {
		return PlaceRemoved{}, err
	}
	gone := PlaceRemoved{ID: id}
	if gone.Left, err = c.endAllThere(ctx, p); err != nil {
		return PlaceRemoved{}, err
	}
	err = c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		if err := c.unused(ctx, tx, p); err != nil { // since it was asked first
			return err
		}
		_, err := tx.ExecContext(ctx, `DELETE FROM place WHERE id = ?`, id)
		return err
	})
	if _, refused := errors.AsType[*RefusedError](err); err != nil && !refused {
		err = fmt.Errorf("%w: %w", ErrStorage, err)
	}
	if err != nil {
		return PlaceRemoved{}, err
	}
	c.places.mu.Lock()
	delete(c.places.all, id)
	c.places.mu.Unlock()
	c.runtimeOf(p).Close()
	c.feed.publish(Event{Type: eventPlaceRemoved, Data: mustJSON(gone)})
	if c.cfg.Tokens != nil {
		if err := c.cfg.Tokens.Forget(ctx, placeOwner(id)); err != nil {
			c.cfg.Logger.Warn("the token of a place that is gone is left", "place", id, "error", err)
		}
	}
	return gone, nil
}

// unused refuses where sessions are at a place that are not archived.
func (c *Client) unused(ctx context.Context, q rowQuerier, p *farPlace) error {
	used := 0
	err := q.QueryRowContext(ctx, `SELECT count(*) FROM session WHERE place = ? AND archived_at = 0 AND deleted_at = 0`, p.ID).Scan(&used)
	if err != nil || used == 0 {
		return err
	}
	return &RefusedError{Code: refusedPlaceUsed, Params: map[string]string{"name": c.placeNow(p).Name, "sessions": strconv.Itoa(used)}}
}

// endAllThere ends every agent that runs at a place for a session, and tells of how many it is not known that they have ended.
func (c *Client) endAllThere(ctx context.Context, p *farPlace) (unended int, err error) {
	limited, cancel := context.WithTimeout(ctx, endsThere)
	defer cancel()
	ends, err := c.leaveAllAt(ctx, p.ID)
	if err != nil {
		return 0, err
	}
	for _, end := range ends {
		select {
		case <-end:
		case <-limited.Done():
		}
	}
	list, err := c.leftAt(ctx, p.ID)
	for i, l := range list {
		if err := c.endLeft(limited, l); err != nil {
			unended++
			if !errors.Is(err, remote.ErrProblem) {
				return unended + len(list) - i - 1, nil // nor can the others be reached
			}
		}
	}
	return unended, err
}

// leaveAllAt begins to end the agents that are known to run at a place, and gives what is closed when they have ended.
func (c *Client) leaveAllAt(ctx context.Context, place string) (ends []<-chan struct{}, err error) {
	for _, v := range c.liveAt(place) {
		err := v.reach(ctx, func() error {
			v.leavePlace()
			if v.gone != nil {
				ends = append(ends, v.gone)
			}
			return nil
		})
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
	}
	return ends, nil
}

// liveAt are the conversations at a place that may have an agent.
func (c *Client) liveAt(place string) []*conversation {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []*conversation
	for _, v := range c.live {
		if v.look().Place == place {
			list = append(list, v)
		}
	}
	return list
}

// leavePlace ends the agent of a conversation whose place is removed, also one that is kept since the session was deleted.
func (v *conversation) leavePlace() {
	v.release(false)
	if v.state.base != Closed {
		v.do(doExited{problemRestart}) // in quiet, as for one that is started anew
	}
}

// CheckPlace asks the runtime of a place what it is. That it cannot be reached is an answer too.
func (c *Client) CheckPlace(ctx context.Context, id string) (Place, error) {
	if id == host.Local {
		return c.local(), nil
	}
	p, err := c.place(id)
	if err != nil {
		return Place{}, err
	}
	info, err := c.runtimeOf(p).Check(ctx)
	if err != nil && ctx.Err() != nil {
		return Place{}, ctx.Err()
	}
	c.sawPlace(p, info, err)
	return c.placeNow(p), nil
}

func (c *Client) placeNow(p *farPlace) Place {
	c.places.mu.Lock()
	defer c.places.mu.Unlock()
	return p.Place
}

func (c *Client) runtimeOf(p *farPlace) *remote.Runtime {
	c.places.mu.Lock()
	defer c.places.mu.Unlock()
	return p.runtime
}

// sawPlace notes how a place is, and tells when that is news.
func (c *Client) sawPlace(p *farPlace, info remote.Info, err error) {
	c.places.mu.Lock()
	defer c.places.mu.Unlock()
	before := p.Place
	switch {
	case err == nil:
		p.State, p.Detail = placeReady, ""
		if info.Software != "" {
			p.Software, p.Version = info.Software, info.Version
		}
	case errors.Is(err, remote.ErrRefused):
		p.State, p.Detail = placeRefused, c.secret.text(err.Error())
	default:
		p.State, p.Detail = placeUnreachable, c.secret.text(err.Error())
	}
	if p.Place == before || c.places.all[p.ID] != p {
		return
	}
	c.feed.publish(Event{Type: eventPlace, Data: mustJSON(p.Place)})
}

// refusedBy gives an error of a runtime its code.
func (c *Client) refusedBy(p *farPlace, err error) *RefusedError {
	code := refusedThere
	switch {
	case errors.Is(err, remote.ErrRefused):
		code = refusedToken
	case errors.Is(err, remote.ErrUnreachable):
		code = refusedNoAnswer
	}
	return &RefusedError{Code: code, Params: map[string]string{"name": c.placeNow(p).Name, "detail": c.secret.text(err.Error())}}
}

// PlaceAgent is an agent that a place can start.
type PlaceAgent struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Installed bool   `json:"installed" doc:"One that is not is installed there by the first message, where the runtime does that"`
	Version   string `json:"version,omitempty"`
}

// PlaceAgents lists the agents of a place elsewhere.
func (c *Client) PlaceAgents(ctx context.Context, id string) ([]PlaceAgent, error) {
	p, err := c.place(id)
	if err != nil {
		return nil, err
	}
	found, err := c.runtimeOf(p).Agents(ctx)
	c.heardOf(ctx, p, err)
	if err != nil {
		return nil, c.refusedBy(p, err)
	}
	list := make([]PlaceAgent, 0, len(found))
	for _, a := range found {
		name := a.Name
		if name == "" {
			name = c.cfg.Agents.Name(a.ID)
		}
		list = append(list, PlaceAgent{a.ID, name, a.Installed, a.Version})
	}
	return list, nil
}

// heardOf notes what a call tells of a place.
func (c *Client) heardOf(ctx context.Context, p *farPlace, err error) {
	if ctx.Err() == nil && !errors.Is(err, remote.ErrProblem) {
		c.sawPlace(p, remote.Info{}, err)
	}
}

// FarDirectory is one that a picker shows.
type FarDirectory struct {
	Name string `json:"name"`
	Path string `json:"path"`
}

// FarDirectories is what a picker shows of a directory elsewhere.
type FarDirectories struct {
	Path   string         `json:"path" doc:"Empty where the runtime does not tell which one it has listed"`
	Parent string         `json:"parent,omitempty"`
	Items  []FarDirectory `json:"items"`
}

// PlaceDirectories lists the directories in one at a place elsewhere; "" is where its paths begin.
func (c *Client) PlaceDirectories(ctx context.Context, id, directory string) (FarDirectories, error) {
	p, err := c.place(id)
	if err != nil {
		return FarDirectories{}, err
	}
	found, err := c.runtimeOf(p).Directories(ctx, directory)
	c.heardOf(ctx, p, err)
	if err != nil {
		return FarDirectories{}, c.refusedBy(p, err)
	}
	list := FarDirectories{Path: directory, Items: []FarDirectory{}}
	for _, e := range found {
		list.Items = append(list.Items, FarDirectory{e.Name, e.Path})
		if list.Path == "" {
			list.Path = parentOf(e.Path)
		}
	}
	list.Parent = parentOf(list.Path)
	slices.SortStableFunc(list.Items, func(a, b FarDirectory) int {
		return hiddenLast(a.Name) - hiddenLast(b.Name)
	})
	return list, nil
}

func hiddenLast(name string) int {
	if strings.HasPrefix(name, ".") {
		return 1
	}
	return 0
}

// parentOf is the directory above one, by the separators of the place that it is at; "" when it has none.
func parentOf(directory string) string {
	i := strings.LastIndexAny(directory, `/\`)
	switch {
	case i < 0 || i == len(directory)-1:
		return ""
	case i == 0, windowsPath(directory) && i == 2:
		return directory[:i+1]
	}
	return directory[:i]
}

func windowsPath(directory string) bool {
	return regexp.MustCompile(`^[A-Za-z]:[\\/]`).MatchString(directory)
}

// workspaceAt finds or makes the record of a directory elsewhere, by its path: what else it is cannot be seen from here.
func (c *Client) workspaceAt(ctx context.Context, p *farPlace, directory string) (Workspace, error) {
	switch {
	case strings.HasPrefix(directory, "/"):
		directory = path.Clean(directory)
	case !windowsPath(directory):
		return Workspace{}, bad("directory.relative", "path", directory)
	}
	if strings.ContainsRune(directory, 0) {
		return Workspace{}, bad("directory.unreadable", "path", directory, "detail", "NUL")
	}
	w := Workspace{ID: uuid.Must(uuid.NewV7()).String(), Path: directory}
	err := c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		return tx.QueryRowContext(ctx, `INSERT INTO workspace (id, place, path, device, inode, born, created_at) VALUES (?, ?, ?, 0, 0, 0, ?)
			ON CONFLICT (place, path) DO UPDATE SET path = excluded.path RETURNING id`, w.ID, p.ID, directory, millis(time.Now())).Scan(&w.ID)
	})
	if err != nil {
		return Workspace{}, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	return w, nil
}

// whereabouts finds where a new session is to be.
func (c *Client) whereabouts(ctx context.Context, n New) (place string, w Workspace, further []string, err error) {
	if c.hosts.At(n.Place).Directories == nil {
		p, err := c.place(n.Place)
		if err == nil {
			w, err = c.workspaceAt(ctx, p, n.Cwd)
		}
		return n.Place, w, slices.Compact(n.Directories), err
	}
	if err := c.startable(n.Place, n.Agent); err != nil {
		return "", w, nil, err
	}
	if w, err = c.workspace(ctx, n.Cwd); err == nil {
		further, err = directories(n.Directories)
	}
	return host.Local, w, further, err
}

// PlaceIDs are the ids of all places.
func (c *Client) PlaceIDs() []string {
	c.places.mu.Lock()
	defer c.places.mu.Unlock()
	return append([]string{host.Local}, slices.Sorted(maps.Keys(c.places.all))...)
}
