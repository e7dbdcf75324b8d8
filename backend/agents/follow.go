package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	"deskhand/backend/background"
	"deskhand/backend/environ"
)

const (
	followOff     = "off"
	registryName  = "registry.json" // in Config.Dir, beside the agents' directories; no id contains a dot
	registryMax   = 8 << 20
	registryLimit = 30 * time.Second // per request
	notBefore     = time.Minute      // after the start, which has other work
	followEvery   = 24 * time.Hour
	againAfter    = time.Hour // after a failed request
	etagMax       = 1 << 10
)

var (
	errNoAnswer  = errors.New("the registry gave no answer")
	errUnchanged = errors.New("the catalogue is the same")
)

// registryCopy is the last good document, and the time of the last answered request. The copy counts only for its own URL.
type registryCopy struct {
	URL      string           `json:"url"` // without a password
	ETag     string           `json:"etag,omitempty"`
	Asked    time.Time        `json:"asked"` // time of the last answer
	Document registryDocument `json:"document"`
}

// Registry merges the public registry of agents into the table, with the last good document in the store. Its methods may be called
// concurrently.
type Registry struct {
	address     string // Config.CatalogueURL
	table       *table
	store       *store
	environment *environ.Environment
	background  *background.Group
	changing    func(change func()) // calls change, and announces the agents that it changed
	logger      *slog.Logger

	asking sync.Mutex // held while the registry is asked
}

// load makes the table that of the bundled catalogue and of the stored document.
func (r *Registry) load() {
	rows := r.table.bundled
	if u := r.url(); u != nil {
		rows = withRegistry(rows, r.readCopy(u).Document)
	}
	r.table.catalogue.Store(&rows)
}

// Follow asks the registry of Config.CatalogueURL in the background, first after a minute and then once a day. For each agent that the
// answer changes, the callback of Watch is called.
func (r *Registry) Follow() {
	if u := r.url(); u != nil {
		r.background.Start(func() { r.follow(u) })
	}
}

// url returns the registry's URL, or nil when none is to be asked.
func (r *Registry) url() *url.URL {
	if r.address == "" || r.address == followOff || r.store.dir == "" || r.store.write == nil {
		return nil
	}
	u, err := url.Parse(r.address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		r.logger.Warn("the registry of agents is not asked: its URL is none of http or https")
		return nil
	}
	return u
}

func (r *Registry) follow(u *url.URL) {
	for wait := notBefore; ; {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			r.asking.Lock()
			wait, _ = r.refresh(r.background.Life(), u) // refresh has logged the error
			r.asking.Unlock()
		case <-r.background.Life().Done():
			timer.Stop()
			return
		}
	}
}

// Ask asks the registry of Config.CatalogueURL now, unless this or another Deskhand has done so within the day: a terminal command ends
// before Follow would ask. The error says why the registry gave no answer; the table is unchanged then. Without a registry Ask does nothing.
func (r *Registry) Ask(ctx context.Context) error {
	u := r.url()
	if u == nil || !r.asking.TryLock() { // another goroutine is asking, and Watch announces the answer
		return nil
	}
	defer r.asking.Unlock()
	ctx, release := r.background.Call(ctx)
	defer release()
	_, err := r.refresh(ctx, u)
	return err
}

// refresh asks the registry, unless this or another Deskhand has done so within the day, and returns the time until the next request, and
// why there was no answer.
func (r *Registry) refresh(ctx context.Context, u *url.URL) (time.Duration, error) {
	last := r.readCopy(u)
	if left := followEvery - time.Since(last.Asked); left > 0 && left <= followEvery {
		r.adopt(last.Document)
		return left, nil
	}
	ctx, cancel := context.WithTimeout(ctx, registryLimit)
	defer cancel()
	next, err := r.fetch(ctx, u, last)
	switch {
	case r.background.Stopped():
		return followEvery, ErrClosed
	case errors.Is(err, errNoAnswer):
		r.logger.Info("the registry of agents cannot be reached", "error", err)
		return againAfter, err
	case err == nil:
		next.Document = r.keepInstalled(last.Document, next.Document)
	case errors.Is(err, errUnchanged):
		next = last
	default:
		r.logger.Warn("the registry's catalogue of agents is refused; the one before stays", "error", err)
		if len(last.Document.Agents) == 0 {
			return followEvery, err // the stored copy may belong to another URL, to which a person may return
		}
		next = last
	}
	next.URL, next.Asked = u.Redacted(), time.Now().UTC()
	if err := r.writeCopy(next); err != nil {
		r.logger.Warn("the registry's catalogue of agents cannot be kept", "error", err)
	}
	r.adopt(next.Document)
	return followEvery, nil
}

// fetch downloads the document if it differs from the last.
func (r *Registry) fetch(ctx context.Context, u *url.URL, last registryCopy) (registryCopy, error) {
	client := &http.Client{
		// No kept connections: the next request comes in a day.
		Transport: &http.Transport{Proxy: r.environment.Proxy(), DisableKeepAlives: true},
		CheckRedirect: func(to *http.Request, via []*http.Request) error {
			if len(via) > mostRedirects || via[0].URL.Scheme == "https" && to.URL.Scheme != "https" {
				return errors.New("it leads elsewhere than we go")
			}
			return nil
		},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return registryCopy{}, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "deskhand")
	conditional := last.ETag != "" && len(last.Document.Agents) > 0
	if conditional {
		req.Header.Set("If-None-Match", last.ETag)
	}
	resp, err := client.Do(req)
	if err != nil {
		return registryCopy{}, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNotModified && conditional:
		return registryCopy{}, errUnchanged
	case resp.StatusCode >= http.StatusInternalServerError || resp.StatusCode == http.StatusTooManyRequests:
		return registryCopy{}, fmt.Errorf("%w: status %d", errNoAnswer, resp.StatusCode)
	case resp.StatusCode != http.StatusOK:
		return registryCopy{}, fmt.Errorf("%w: status %d", errDocument, resp.StatusCode)
	}
	data, err := io.ReadAll(io.LimitReader(resp.Body, registryMax+1))
	if err != nil {
		return registryCopy{}, fmt.Errorf("%w: %w", errNoAnswer, err)
	}
	if len(data) > registryMax {
		return registryCopy{}, fmt.Errorf("%w: it is longer than %d bytes", errDocument, registryMax)
	}
	next := registryCopy{ETag: resp.Header.Get("ETag")}
	if len(next.ETag) > etagMax {
		next.ETag = ""
	}
	next.Document, err = parseRegistry(data)
	return next, err
}

// keepInstalled adds to a new document the entries of the earlier document that are installed here and that the new document lacks.
func (r *Registry) keepInstalled(before, now registryDocument) registryDocument {
	there := map[string]bool{}
	for _, e := range now.entries() {
		there[e.ID] = true
	}
	for _, raw := range before.Agents {
		var e struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(raw, &e) != nil || !validID.MatchString(e.ID) || there[e.ID] {
			continue
		}
		if _, err := r.store.current(e.ID); err == nil {
			now.Agents = append(now.Agents, raw)
		}
	}
	return now
}

// adopt merges a document into the table.
func (r *Registry) adopt(d registryDocument) {
	r.changing(func() {
		rows := withRegistry(r.table.bundled, d)
		r.table.catalogue.Store(&rows)
	})
}

func (r *Registry) copyFile() string { return filepath.Join(r.store.dir, registryName) }

// readCopy returns the stored copy for u, which may be empty.
func (r *Registry) readCopy(u *url.URL) registryCopy {
	data, err := os.ReadFile(r.copyFile())
	if errors.Is(err, fs.ErrNotExist) {
		return registryCopy{}
	}
	var last registryCopy
	if err == nil {
		err = json.Unmarshal(data, &last)
	}
	if err != nil {
		r.logger.Warn("the kept catalogue of the registry cannot be read", "path", r.copyFile(), "error", err)
		return registryCopy{}
	}
	if last.URL != u.Redacted() {
		return registryCopy{}
	}
	return last
}

func (r *Registry) writeCopy(next registryCopy) error {
	data, err := json.Marshal(next)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(r.store.dir, 0o700); err != nil {
		return err
	}
	return r.store.write(r.copyFile(), append(data, '\n'), 0o600)
}
