package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"time"
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

// Follow asks the registry of Config.CatalogueURL in the background, first after a minute and then once a day. For each agent that the
// answer changes, the callback of Watch is called.
func (c *Catalogue) Follow() {
	if u := c.registryURL(); u != nil {
		c.background(func() { c.follow(u) })
	}
}

// registryURL returns the registry's URL, or nil when none is to be asked.
func (c *Catalogue) registryURL() *url.URL {
	if c.cfg.CatalogueURL == "" || c.cfg.CatalogueURL == followOff || c.cfg.Dir == "" || c.cfg.WriteFile == nil {
		return nil
	}
	u, err := url.Parse(c.cfg.CatalogueURL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		c.cfg.Logger.Warn("the registry of agents is not asked: its URL is none of http or https")
		return nil
	}
	return u
}

func (c *Catalogue) follow(u *url.URL) {
	for wait := notBefore; ; {
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
			c.registry.Lock()
			wait, _ = c.refresh(c.life, u) // refresh has logged the error
			c.registry.Unlock()
		case <-c.life.Done():
			timer.Stop()
			return
		}
	}
}

// AskRegistry asks the registry of Config.CatalogueURL now, unless this or another Deskhand has done so within the day: a terminal command
// ends before Follow would ask. The error says why the registry gave no answer; the table is unchanged then. Without a registry AskRegistry
// does nothing.
func (c *Catalogue) AskRegistry(ctx context.Context) error {
	u := c.registryURL()
	if u == nil || !c.registry.TryLock() { // another goroutine is asking, and Watch announces the answer
		return nil
	}
	defer c.registry.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.life, cancel)() //nolint:contextcheck // both Close and the caller end it
	_, err := c.refresh(ctx, u)
	return err
}

// refresh asks the registry, unless this or another Deskhand has done so within the day, and returns the time until the next request, and
// why there was no answer.
func (c *Catalogue) refresh(ctx context.Context, u *url.URL) (time.Duration, error) {
	last := c.readCopy(u)
	if left := followEvery - time.Since(last.Asked); left > 0 && left <= followEvery {
		c.adopt(last.Document)
		return left, nil
	}
	ctx, cancel := context.WithTimeout(ctx, registryLimit)
	defer cancel()
	next, err := c.fetch(ctx, u, last)
	switch {
	case c.life.Err() != nil:
		return followEvery, ErrClosed
	case errors.Is(err, errNoAnswer):
		c.cfg.Logger.Info("the registry of agents cannot be reached", "error", err)
		return againAfter, err
	case err == nil:
		next.Document = c.keepInstalled(last.Document, next.Document)
	case errors.Is(err, errUnchanged):
		next = last
	default:
		c.cfg.Logger.Warn("the registry's catalogue of agents is refused; the one before stays", "error", err)
		if len(last.Document.Agents) == 0 {
			return followEvery, err // the stored copy may belong to another URL, to which a person may return
		}
		next = last
	}
	next.URL, next.Asked = u.Redacted(), time.Now().UTC()
	if err := c.writeCopy(next); err != nil {
		c.cfg.Logger.Warn("the registry's catalogue of agents cannot be kept", "error", err)
	}
	c.adopt(next.Document)
	return followEvery, nil
}

// fetch downloads the document if it differs from the last.
func (c *Catalogue) fetch(ctx context.Context, u *url.URL, last registryCopy) (registryCopy, error) {
	client := &http.Client{
		// No kept connections: the next request comes in a day.
		Transport: &http.Transport{Proxy: c.environment.Proxy(), DisableKeepAlives: true},
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
func (c *Catalogue) keepInstalled(before, now registryDocument) registryDocument {
	there := map[string]bool{}
	for _, r := range now.entries() {
		there[r.ID] = true
	}
	for _, raw := range before.Agents {
		var r struct {
			ID string `json:"id"`
		}
		if json.Unmarshal(raw, &r) != nil || !validID.MatchString(r.ID) || there[r.ID] {
			continue
		}
		if _, err := c.store.current(r.ID); err == nil {
			now.Agents = append(now.Agents, raw)
		}
	}
	return now
}

// adopt merges a document into the table.
func (c *Catalogue) adopt(d registryDocument) {
	c.changing(func() {
		rows := withRegistry(c.bundled, d)
		c.table.Store(&rows)
	})
}

func (c *Catalogue) copyFile() string { return filepath.Join(c.cfg.Dir, registryName) }

// readCopy returns the stored copy for u, which may be empty.
func (c *Catalogue) readCopy(u *url.URL) registryCopy {
	data, err := os.ReadFile(c.copyFile())
	if errors.Is(err, fs.ErrNotExist) {
		return registryCopy{}
	}
	var last registryCopy
	if err == nil {
		err = json.Unmarshal(data, &last)
	}
	if err != nil {
		c.cfg.Logger.Warn("the kept catalogue of the registry cannot be read", "path", c.copyFile(), "error", err)
		return registryCopy{}
	}
	if last.URL != u.Redacted() {
		return registryCopy{}
	}
	return last
}

func (c *Catalogue) writeCopy(next registryCopy) error {
	data, err := json.Marshal(next)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(c.cfg.Dir, 0o700); err != nil {
		return err
	}
	return c.cfg.WriteFile(c.copyFile(), append(data, '\n'), 0o600)
}
