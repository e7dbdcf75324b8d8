package agents

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The registry offers newer versions, and agents that the catalogue does not know. Its answer changes the table and nothing else: nothing
// is installed because of the registry, and nothing is started differently. Of a known agent the registry therefore gives only the version,
// and only of the known package, started in the known way. An agent that only the registry knows is never looked up on PATH, where its
// name, chosen by somebody else, could be that of any program. Such an agent can be installed, and is then started as the registry said on
// that day.

const (
	followOff     = "off"
	registryName  = "registry.json" // in Config.Dir, beside the agents' directories; no id contains a dot
	registryMax   = 8 << 20
	registryLimit = 30 * time.Second // per request
	notBefore     = time.Minute      // after the start, which has other work
	followEvery   = 24 * time.Hour
	againAfter    = time.Hour // after a failed request
	mostRedirects = 5
	etagMax       = 1 << 10
	longestName   = 100
)

var (
	errDocument  = errors.New("it is no catalogue of agents")
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

// registryDocument is the part of the registry's document that is kept.
type registryDocument struct {
	Version string            `json:"version"`
	Agents  []json.RawMessage `json:"agents"`
}

// parseRegistry refuses any other document. Entries that do not fit are skipped: a new kind must not hide all others.
func parseRegistry(data []byte) (registryDocument, error) {
	var d registryDocument
	if err := json.Unmarshal(data, &d); err != nil {
		return registryDocument{}, fmt.Errorf("%w: %w", errDocument, err)
	}
	switch {
	case !strings.HasPrefix(d.Version, "1."):
		return registryDocument{}, fmt.Errorf("%w of a version that we know: %.20q", errDocument, d.Version)
	case len(d.entries()) == 0:
		return registryDocument{}, fmt.Errorf("%w: there is none in it", errDocument)
	}
	return d, nil
}

// entries returns the entries that fit, without the fields that only the bundled catalogue may set.
func (d registryDocument) entries() []registryEntry {
	list := make([]registryEntry, 0, len(d.Agents))
	seen := map[string]bool{}
	for _, raw := range d.Agents {
		var r registryEntry
		if json.Unmarshal(raw, &r) != nil || !validID.MatchString(r.ID) || r.Name == "" || seen[r.ID] {
			continue
		}
		seen[r.ID] = true
		r.Deskhand = known{}
		list = append(list, r)
	}
	return list
}

// withRegistry returns the bundled table merged with the registry's document.
func withRegistry(own []entry, d registryDocument) []entry {
	rows := slices.Clone(own)
	for _, r := range d.entries() {
		i := slices.IndexFunc(own, func(e entry) bool { return e.known.registryID == r.ID })
		switch {
		case i >= 0:
			rows[i] = own[i].pinned(r)
		case r.ID == Demo || slices.ContainsFunc(own, func(e entry) bool { return e.id == r.ID }):
			// the registry uses a known id for another agent
		default:
			if e, ok := r.foreign(); ok {
				rows = append(rows, e)
			}
		}
	}
	return rows
}

// pinned returns a known agent in the registry's version, if that is the same package from the same publisher, started in the same way, and
// not older than the bundled version: the stored document may be older than the program.
func (e entry) pinned(r registryEntry) entry {
	d := r.Distribution
	switch {
	case e.known.via == viaNPM && d.NPX != nil:
		name, version := splitSpec(d.NPX.Package)
		if name == e.known.npm && exactVersion.MatchString(version) && !older(version, e.known.version) && e.startsAs(d.NPX.Args, d.NPX.Env) {
			e.known.version, e.known.Size = version, e.measuredOf(version)
		}
	case e.known.via == viaBinary:
		b, here := d.here()
		if here && b.sound() == nil && archiveVersion.MatchString(r.Version) && !older(r.Version, e.known.version) && samePublisher(b.Archive, e.known.binary.Archive) && e.startsAs(b.Args, b.Env) {
			e.known.version, e.known.binary, e.known.Size = r.Version, b, e.measuredOf(r.Version)
		}
	}
	return e
}

// older reports whether a comes before b, both in semver.
func older(a, b string) bool {
	x, y := exactVersion.FindStringSubmatch(a), exactVersion.FindStringSubmatch(b)
	if x == nil || y == nil {
		return false
	}
	for n := 1; n <= 3; n++ {
		if x[n] != y[n] {
			return cmp.Or(cmp.Compare(len(x[n]), len(y[n])), cmp.Compare(x[n], y[n])) < 0 // no leading zeros
		}
	}
	return x[4] != "" && y[4] == "" // the order of two pre-releases does not matter
}

// startsAs reports whether the agent is started with these arguments and variables.
func (e entry) startsAs(args []string, env map[string]string) bool {
	return slices.Equal(args, e.args) && maps.Equal(env, e.env)
}

// measuredOf returns the measured size, which holds only for the measured version.
func (e entry) measuredOf(version string) *measured {
	if version != e.known.version {
		return nil
	}
	return e.known.Size
}

// sameOrigin is samePublisher for archives whose addresses a person has written down: any archive of the host will do, unless the host
// serves many accounts.
func sameOrigin(a, b string) bool {
	x, errX := url.Parse(a)
	y, errY := url.Parse(b)
	if errX != nil || errY != nil || x.Host == "" || x.Host != y.Host {
		return false
	}
	return !manyAccounts(x.Host) || samePublisher(a, b)
}

func manyAccounts(host string) bool { return host == "github.com" || host == "gitlab.com" }

// samePublisher reports whether two archives come from the same host and, on a host with many accounts, from the same account and project.
func samePublisher(a, b string) bool { return publisher(a) != "" && publisher(a) == publisher(b) }

func publisher(archive string) string {
	u, err := url.Parse(archive)
	if err != nil || u.Host == "" {
		return ""
	}
	parts := strings.Split(strings.TrimPrefix(path.Clean(u.Path), "/"), "/")
	many := 1
	if manyAccounts(u.Host) {
		many = 2
	}
	if len(parts) <= many {
		return ""
	}
	return u.Scheme + "://" + u.Host + "/" + strings.Join(parts[:many], "/")
}

// validPackage matches the name of a package in npm's registry, and no path, URL or flag.
var validPackage = regexp.MustCompile(`^(@[a-z0-9][a-z0-9._-]{0,100}/)?[a-z0-9][a-z0-9._-]{0,100}$`)

// foreign returns an agent that only the registry knows, or agents.json in the registry's format; false when the agent cannot be installed.
func (r registryEntry) foreign() (entry, bool) {
	d := &r.Distribution
	if n := d.NPX; n != nil {
		d.NPX = nil
		if name, version := splitSpec(n.Package); validPackage.MatchString(name) && exactVersion.MatchString(version) {
			d.NPX = &npmPackage{Package: n.Package, Args: n.Args, Env: n.Env}
		}
	}
	if u := d.UVX; u != nil {
		d.UVX = nil
		name, version := splitPython(u.Package)
		if validPython.MatchString(name) && pythonVersion.MatchString(cmp.Or(version, r.Version)) {
			d.UVX = &npmPackage{Package: u.Package, Args: u.Args, Env: u.Env}
		}
	}
	if b, here := d.here(); here && (b.sound() != nil || !archiveVersion.MatchString(r.Version)) {
		d.Binary = nil
	}
	if d.NPX == nil && d.UVX == nil && len(d.Binary) == 0 {
		return entry{}, false
	}
	e := r.entry()
	e.known.remote = true
	if !strings.HasPrefix(e.known.home, "https://") {
		e.known.home = ""
	}
	if name := []rune(e.name); len(name) > longestName {
		e.name = string(name[:longestName])
	}
	sound := customAgent{Command: e.command, Args: e.args, Env: e.env}
	return e, sound.fault() == ""
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
		if _, err := c.readCurrent(r.ID); err == nil {
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

// changing runs f, and announces the agents that f changed to the callback of Watch.
func (c *Catalogue) changing(f func()) {
	before, _ := c.List() // other callers of List get the error of agents.json
	f()
	after, _ := c.List()
	for _, a := range after {
		if !slices.ContainsFunc(before, func(b Agent) bool { return reflect.DeepEqual(a, b) }) {
			c.announce(News{Agent: a.ID, Ended: true, Aside: true})
		}
	}
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
