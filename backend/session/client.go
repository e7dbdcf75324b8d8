// Package session is the client: it owns every conversation with an agent, from the first prompt to the last frame.
//
// Each conversation has one goroutine that owns its state. Persons (through the methods of Client), the agent and timers hand functions
// to that goroutine, which runs one after the other. The changes of one function are a step: a step is stored in SQLite in one transaction
// (frames of the journal, the entries that follow from them, turns, requests, the session), then published to the Feed, and only then sent
// to the agent. So everything that was shown is stored, and everything that was sent is known after a crash. If the transaction fails, the
// conversation stops there, tries again every second, and refuses new work with ErrStorage meanwhile.
package session

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/acp"
	"deskhand/backend/attachments"
	"deskhand/backend/background"
	"deskhand/backend/entries"
	"deskhand/backend/feed"
	"deskhand/backend/host"
	"deskhand/backend/journal"
	"deskhand/backend/launch"
	"deskhand/backend/lifecycle"
	"deskhand/backend/maintenance"
	"deskhand/backend/processes"
	"deskhand/backend/remotes"
	"deskhand/backend/requests"
	"deskhand/backend/roster"
	"deskhand/backend/settings"
	"deskhand/backend/startmode"
	"deskhand/backend/store"
	"deskhand/backend/subagents"
	"deskhand/backend/transcript"
	"deskhand/backend/vault"
	"deskhand/backend/workspace"
	"deskhand/backend/worktrees"
)

// Client holds all conversations of one data directory. Any goroutine may call the methods of Client.
type Client struct {
	*core

	mu         sync.Mutex // protects the fields below
	live       map[string]*conversation
	unreadable map[string]error // sessions that could not be taken over, because what is stored of them is damaged

	processes  *processes.Sampler
	maintainer *maintenance.Maintainer
	taking     sync.Mutex // held while a session of an agent's own is imported
}

// Open takes over a data directory. A turn that was running when the program ended is ended as interrupted, and a request that waited is
// expired; the transcript tells both.
func Open(ctx context.Context, cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	c := &Client{live: map[string]*conversation{}, unreadable: map[string]error{}, core: &core{
		cfg:      cfg,
		journal:  journal.Of(cfg.Store),
		feed:     feed.New(),
		secret:   cfg.Roster.Secrets().Redactor(),
		erasing:  newErasing(),
		remotes:  cfg.Remotes,
		entries:  entries.New(cfg.Store),
		requests: requests.New(cfg.Store),
	}}
	c.retire, c.approved = c.erased, c.approvedElsewhere
	c.child = func(process, acpID, teller string) (*subagents.Child, error) { //nolint:contextcheck // a child outlives the call that opens the client
		return childOf(c, process, acpID, teller)
	}
	c.rules = openRules(c)
	c.hosts.Local = host.Capabilities{
		Agents: cfg.Agents, Directories: host.NewDirectories(cfg.Gone, c.refound), Files: cfg.Files, Snapshots: cfg.Snapshots, Tools: cfg.Tools,
	}
	c.attachments = openAttachments(c)
	c.workspaces = openWorkspaces(c)
	c.undo = openUndo(c)
	c.maintainer = openMaintenance(c)
	publish := func(kind string, data json.RawMessage) { c.feed.Publish(feed.Event{Type: kind, Data: data}) }
	c.remotes.Use(remotes.Sessions{Clean: c.secret.Text, InUse: usesOf, EndAgents: remoteSessions{c}.endAgentsAt, Publish: publish})
	var err error
	if c.worktrees, err = openWorktrees(ctx, c); err != nil {
		return nil, err
	}
	c.starts = startmode.NewChoices(startmode.NewLibrary(cfg.Store), c.hosts, cfg.Agents, c.worktrees.StandsFor)
	if c.launch, err = openLaunch(c); err != nil {
		return nil, errors.Join(err, c.worktrees.Close())
	}
	if c.landing, err = openLanding(ctx, c); err != nil {
		return nil, errors.Join(err, c.launch.Close(), c.worktrees.Close())
	}
	c.processes = openProcesses(c)
	cfg.Settings.Use(settings.Hooks{Publish: publish, Changed: c.processes.Nudge, Program: func(name string) error {
		_, find := cfg.Agents.Environment().Programs(c.ctx)
		_, err := find(name)
		return err
	}})
	c.background = background.New()
	c.ctx = c.background.Life()
	c.shells = openShells(c)
	useSetups(c)
	c.maintainer.Start(c.ctx)                          //nolint:contextcheck // the maintenance lives as long as the client
	cfg.Roster.Secrets().LoadLogged(ctx, vault.InFile) // before anything is written
	cfg.Roster.Use(roster.Sessions{Publish: publish, SignedIn: func(agent string) { retryAfterLogin(c, agent) }, Writable: c.writable})
	work, err := recovery{c}.takeOver(ctx) // which reads what agents told before a crash
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.background.Start(func() { cfg.Roster.Secrets().LoadLogged(c.ctx, vault.IfUnlocked) })
	c.background.Start(func() { c.processes.Run(c.ctx) })
	c.background.Start(func() { cfg.Settings.Watch(c.ctx) })
	for _, f := range work {
		c.background.Start(f)
	}
	return c, nil
}

// Close ends every conversation and its agent, and waits for their goroutines. A read of a directory that never returns is not waited for,
// see [host.Directories].
func (c *Client) Close() error {
	c.background.Stop()
	c.maintainer.Close()
	c.cfg.Setups.Close()
	c.shells.Close()
	c.cfg.Roster.Close() // last, since a login may wait for a disk
	c.background.Wait()
	return errors.Join(c.landing.Close(), c.worktrees.Close(), c.launch.Close())
}

// conversation returns the loaded conversation, or loads it. A deleted session is ErrNotFound.
func (c *Client) conversation(ctx context.Context, id string) (*conversation, error) {
	v, err := c.any(ctx, id)
	if err == nil && v.deleted.Load() {
		return nil, notFound(id)
	}
	return v, err
}

// any is conversation for sessions that are deleted too, as long as the deletion can be undone.
func (c *Client) any(ctx context.Context, id string) (*conversation, error) {
	c.mu.Lock()
	v, lost := c.live[id], c.unreadable[id]
	c.mu.Unlock()
	if v != nil || lost != nil {
		return v, lost
	}
	if err := c.maintainer.Update(ctx, id); err != nil { // the stored entries can be shown all the same
		c.cfg.Logger.Error("a transcript cannot be made anew", "error", err)
	}
	r, last, err := c.load(ctx, id, false)
	if err != nil {
		return nil, damaged(err)
	}
	return c.enliven(r, last)
}

// load reads a session, and the number of its last frame.
func (c *Client) load(ctx context.Context, id string, deleted bool) (row, int64, error) {
	rows, err := query(ctx, c.cfg.Store.Read(), scanSession, "SELECT "+sessionColumns+sessionFrom+"WHERE s.id = ? AND (s.deleted_at <> 0) = ?", id, deleted)
	if err != nil {
		return row{}, 0, err
	}
	if len(rows) == 0 {
		return row{}, 0, notFound(id)
	}
	rows[0].queue, err = query(ctx, c.cfg.Store.Read(), scanQueueItem, `SELECT `+queueColumns+` FROM queue_item WHERE session = ? ORDER BY position`, id)
	if err != nil {
		return row{}, 0, err
	}
	last, err := c.journal.Last(ctx, id)
	return rows[0], last, err
}

// erased hands a session to the eraser. From then on no call finds the session.
func (c *Client) erased(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erasing.add(id)
	delete(c.live, id)
}

// enliven makes the conversation of a row and starts its goroutine, or returns the conversation that is loaded already.
func (c *Client) enliven(r row, lastFrame int64) (*conversation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.live[r.ID]; v != nil {
		return v, nil
	}
	if c.erasing.knows(r.ID) { // the session may have been erased since the row was read
		return nil, notFound(r.ID)
	}
	v := newConversation(c.core, r, lastFrame)
	if !c.background.Start(v.live) {
		return nil, ErrClosed
	}
	c.live[r.ID] = v
	if r.Subagent == nil {
		c.background.Start(func() { c.undo.Prepare(c.ctx, undoSession(&r.Session)) })
	}
	return v, nil
}

// New holds the parameters of Create.
type New struct {
	Agent  string   `json:"agent" minLength:"1" maxLength:"64"`
	Cwd    string   `json:"cwd" minLength:"1" maxLength:"4096" doc:"An absolute path of a directory that is there"`
	Place  string   `json:"place,omitempty" maxLength:"64" doc:"Where: local when it is left out"`
	Title  string   `json:"title,omitempty" maxLength:"200"`
	Labels []string `json:"labels,omitempty" maxItems:"20"`

	Directories []string `json:"directories,omitempty" maxItems:"20" doc:"Directories that it works in beside cwd, as absolute paths"`

	Mode  string `json:"mode,omitempty" maxLength:"1024" doc:"The mode that it begins in, as the agent calls it; when it is left out, as was chosen for the agent in this directory, else a mode that asks"`
	Model string `json:"model,omitempty" maxLength:"1024" doc:"The model that it begins with; the same, else the agent's own"`

	Worktree bool   `json:"worktree,omitempty" doc:"In a worktree of its own: a new one, of the git repository that cwd is in"`
	Branch   string `json:"branch,omitempty" maxLength:"200" doc:"The new branch of that, as worktrees/plan gives one; made from the title or the message when it is left out"`
	Base     string `json:"base,omitempty" maxLength:"1000" doc:"What that begins with: a branch, a remote's branch or a commit; the commit that is checked out when it is left out"`

	Message     string                         `json:"message,omitempty" doc:"The first prompt. A session that cannot take it is not made"`
	Attachments []attachments.PromptAttachment `json:"attachments,omitempty" maxItems:"100" doc:"What goes with the first prompt"`

	ID      string `json:"-"` // "" = a new one
	Commit  string `json:"-"` // with which the worktree begins in place of the newest of Base
	Purpose string `json:"-"` // what the branch is named after; "" = the title or the message
}

// speaks reports whether a first prompt comes with the session.
func (n *New) speaks() bool { return n.Message != "" || len(n.Attachments) > 0 }

// Create makes a session and begins to start its agent; events report the rest of the start. A first prompt is looked at before anything is
// stored, so that a prompt that is refused leaves no empty session.
func (c *Client) Create(ctx context.Context, n New) (Session, error) {
	if n.speaks() && strings.TrimSpace(n.Message) == "" && len(n.Attachments) == 0 {
		return Session{}, bad("prompt.empty")
	}
	id := cmp.Or(n.ID, uuid.Must(uuid.NewV7()).String())
	start, err := c.starts.Decide(ctx, n.Agent, n.Place, n.Cwd, startmode.Choice{Mode: n.Mode, Model: n.Model})
	if err != nil {
		return Session{}, err
	}
	if !n.Worktree {
		return c.create(ctx, id, n, start, nil)
	}
	tree, err := c.makeWorktree(ctx, id, &n)
	if err != nil {
		return Session{}, err
	}
	defer tree.Release()
	s, err := c.create(context.WithoutCancel(ctx), id, n, start, tree)
	if err != nil {
		return Session{}, errors.Join(err, tree.Discard(ctx))
	}
	return s, nil
}

// create stores the session of Create, makes its conversation and starts its agent. tree is the session's new worktree, or nil.
func (c *Client) create(ctx context.Context, id string, n New, start *transcript.Start, tree *worktrees.Pending) (Session, error) {
	place, w, further, err := c.whereabouts(ctx, n)
	if err != nil {
		return Session{}, err
	}
	now := Time{Time: time.Now()}
	r := row{Session: Session{
		ID: id, Title: strings.TrimSpace(c.secret.Text(n.Title)), Labels: n.Labels, Place: place, Workspace: w, Cwd: w.Path,
		Directories: further, Agent: n.Agent, Phase: lifecycle.Closed, CreatedAt: now, UpdatedAt: now,
	}}
	if r.Title != "" {
		r.titleBy = titleByPerson
	}
	r.facts.Start = start
	r.showFacts()
	m := said{text: n.Message, elsewhere: true}
	if m.files, err = c.attachments.Accept(ctx, c.where(&r.Session), n.Attachments); err != nil {
		return Session{}, err
	}
	save := func(tx *sql.Tx) error { return r.save(ctx, tx) }
	if tree != nil {
		err = tree.Store(ctx, save)
	} else if err = c.cfg.Store.Write(ctx, save); err != nil {
		err = fmt.Errorf("%w: %w", ErrStorage, err)
	}
	if err != nil {
		return Session{}, err
	}
	v, err := c.enliven(r, 0)
	if err != nil {
		return Session{}, err
	}
	err = v.call(ctx, func() error {
		if !n.speaks() {
			return v.wish(lifecycle.Start{})
		}
		_, err := v.prompt(m) // which starts the agent
		return err
	})
	if err != nil {
		return Session{}, err
	}
	return c.show(v.look()), nil
}

// Page is a part of a list; Next is the cursor of the next part, empty at the end.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// The WHERE and ORDER BY of the list of sessions, in the form of the index session_updated.
const (
	listed       = "WHERE s.parent = '' AND s.deleted_at = 0 AND (s.archived_at = 0) = ?"
	listedOf     = "WHERE s.parent = ? AND s.deleted_at = 0"
	listedBefore = " AND (s.updated_at, s.id) < (?, ?)"
	listedFirst  = " ORDER BY s.updated_at DESC, s.id DESC LIMIT ?"
)

// Which says which sessions List returns: the sessions of subagents of a session, or else those of persons that are archived, or are not.
type Which struct {
	Archived bool
	Of       string // the id of the session whose subagents are meant
}

// List returns sessions, the most recent first. before is the Next of the page before.
func (c *Client) List(ctx context.Context, which Which, before string, limit int) (Page[Session], error) {
	where, args := listed, []any{!which.Archived}
	if which.Of != "" {
		where, args = listedOf, []any{which.Of}
	}
	if before != "" {
		at, id, _ := strings.Cut(before, "~")
		t, err := time.Parse(timeLayout, at)
		if err != nil {
			return Page[Session]{}, bad("list.before", "before", before)
		}
		where += listedBefore
		args = append(args, t.UnixMilli(), id)
	}
	args = append(args, limit+1)
	rows, err := query(ctx, c.cfg.Store.Read(), scanSession, "SELECT "+sessionColumns+sessionFrom+where+listedFirst, args...)
	if err != nil {
		return Page[Session]{}, err
	}
	page := Page[Session]{Items: make([]Session, 0, len(rows))}
	for _, r := range rows { // all reads of directories begin first, so that several that do not answer are waited for at the same time
		c.hosts.At(r.Place).Directories.Begin(r.Cwd)
	}
	for _, r := range rows {
		page.Items = append(page.Items, c.showRow(r))
	}
	if len(page.Items) > limit {
		last := page.Items[limit-1]
		page.Items = page.Items[:limit]
		page.Next = last.UpdatedAt.UTC().Format(timeLayout) + "~" + last.ID
	}
	return page, nil
}

// showRow is show for a row that was read from the database: a loaded conversation replaces the row.
func (c *Client) showRow(r row) Session {
	c.mu.Lock()
	v := c.live[r.ID]
	c.mu.Unlock()
	if v != nil {
		return c.show(v.look())
	}
	if s := &r.Session; len(s.Attachments) > 0 {
		s.Attachments = c.attachments.Plan(s.Agent, r.facts.Takes, c.where(s), s.Attachments)
	}
	return c.show(r.Session)
}

// Get returns one session.
func (c *Client) Get(ctx context.Context, id string) (Session, error) {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return Session{}, err
	}
	return c.show(v.look()), nil
}

// Look is Get for surfaces that show the session: Look also checks whether the files of the draft exist.
func (c *Client) Look(ctx context.Context, id string) (Session, error) {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return Session{}, err
	}
	c.lookForChips(ctx, v)
	return c.show(v.look()), nil
}

// Change applies a patch.
func (c *Client) Change(ctx context.Context, id string, p Patch) (Session, error) {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return Session{}, err
	}
	if p.Directories != nil {
		further, err := workspace.Directories(*p.Directories)
		if err != nil {
			return Session{}, err
		}
		p.Directories = &further
	}
	if p.Archived != nil {
		if err := v.look().Subagent.refuses(nil); err != nil {
			return Session{}, err
		}
	}
	var chips []transcript.Attachment
	if p.Attachments != nil {
		if chips, err = c.attachments.List(ctx, *p.Attachments); err != nil {
			return Session{}, err
		}
	}
	if err := v.call(ctx, func() error { v.patch(p, chips); return nil }); err != nil {
		return Session{}, err
	}
	return c.show(v.look()), nil
}

// Restart ends the agent, if it runs, and starts it again on the same session.
func (c *Client) Restart(ctx context.Context, id string) error {
	return c.wish(ctx, id, (*conversation).restart)
}

// SetConfig changes a config option of the agent; value is a string or a boolean as JSON. SetConfig does not wait for the agent, whose new
// state comes as an event; Configure waits.
func (c *Client) SetConfig(ctx context.Context, id, option string, value json.RawMessage) error {
	return c.wish(ctx, id, func(v *conversation) error {
		_, err := v.setConfig(option, value, func(*acp.Error) {})
		return err
	})
}

func (c *Client) wish(ctx context.Context, id string, f func(*conversation) error) error {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return err
	}
	return v.call(ctx, func() error { return f(v) })
}

// Answer answers a request. The first answer wins; a later answer returns a RefusedError with code request.resolved, the status and who has
// answered.
func (c *Client) Answer(ctx context.Context, request string, a requests.Answer, surface string) error {
	found, err := c.requests.Get(ctx, request)
	if err != nil {
		return err
	}
	return c.first(ctx, found, c.wish(ctx, found.Session, func(v *conversation) error { return v.inbox.answer(ctx, found, a, surface) }))
}

// Running returns how many turns run now.
func (c *Client) Running() int {
	return c.count(func(s Session) bool { return s.Turn != nil })
}

// Working returns how many turns run and wait for no person.
func (c *Client) Working() int {
	return c.count(func(s Session) bool { return s.Turn != nil && s.Waiting == 0 })
}

func (c *Client) count(is func(Session) bool) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, v := range c.live {
		if is(v.look()) {
			n++
		}
	}
	return n
}

// openNewer is the rest of Open for data of a newer version of Deskhand.
func (c *Client) openNewer(loaded error) error {
	if loaded != nil {
		return fmt.Errorf("%w, and it cannot be read: %w", store.ErrNewer, loaded)
	}
	n := c.cfg.Store.Newer()
	c.cfg.Logger.Warn("the data is of a newer version: it can be read, and nothing of it is changed", "schema", n.Schema, "known", n.Known, "by", n.By)
	return nil
}

// Leaving returns a batch as it leaves the process: events of binary data carry the bytes instead of the name of a blob.
func (c *Client) Leaving(b feed.Batch) feed.Batch {
	for i := range b.Events {
		if b.Events[i].Type != busBinary {
			continue
		}
		var e BusEvent
		if json.Unmarshal(b.Events[i].Data, &e) != nil || e.Blob == nil {
			continue
		}
		data, err := c.attachments.Blob(e.Blob.SHA256)
		if err != nil {
			continue // the event still names the blob
		}
		text := base64.StdEncoding.EncodeToString(data)
		e.DataBase64, e.Blob = &text, nil
		b.Events[i].Data = mustJSON(e)
	}
	return b
}

// lookForChips checks whether the files of the draft exist.
func (c *Client) lookForChips(ctx context.Context, v *conversation) {
	s := v.look()
	lost := c.attachments.Missing(s.Attachments)
	shown := map[string]bool{}
	for _, a := range s.Attachments {
		if a.Missing {
			shown[a.ID] = true
		}
	}
	if maps.Equal(lost, shown) || c.ReadOnly() != nil {
		return
	}
	_ = v.call(ctx, func() error { v.composer.lost = lost; v.saveRow(); return nil }) // after an error, the next Look tries again
}

// approvedElsewhere tells the sessions that wait where an approval counts which executables were approved, so that a person need not approve
// the same executables in each session.
func (c *Client) approvedElsewhere(directory string, list []launch.Executable, surface string) {
	c.mu.Lock()
	live := slices.Collect(maps.Values(c.live))
	c.mu.Unlock()
	for _, v := range live {
		cwd := filepath.Clean(v.look().Cwd) // look may return an older state, so each conversation checks again in its goroutine
		count := slices.DeleteFunc(slices.Clone(list), func(e launch.Executable) bool { return !e.CountsIn(directory, cwd) })
		if len(count) > 0 {
			c.background.Start(func() { v.post(func() { v.inbox.reconsider(count, surface) }) })
		}
	}
}

// retryAfterLogin has each conversation with an agent retry the prompt or start that the agent refused for a missing login, the oldest
// conversation first.
func retryAfterLogin(c *Client, agent string) {
	c.mu.Lock()
	live := slices.SortedFunc(maps.Values(c.live), func(a, b *conversation) int { return cmp.Compare(a.id, b.id) })
	c.mu.Unlock()
	c.background.Start(func() {
		for _, v := range live {
			if v.look().Agent != agent {
				continue
			}
			v.post(func() {
				if !v.state.Deleted {
					v.retry()
				}
			})
		}
	})
}
