// Package session is the client: it owns every conversation with an agent, from the first prompt to the last frame.
//
// Each conversation has one goroutine that owns its state; persons (through the methods of Client), the agent and timers hand it
// work, one piece after the other. A piece of work is one step: it is written to SQLite in one transaction (frames of the journal,
// the entries that follow from them, turns, requests, the session), then published to the Feed, and only then sent to the agent.
// So whatever was shown is stored, and whatever was sent is known after a crash. If the write fails the conversation stops there,
// tries again every second, and refuses new work with ErrStorage meanwhile.
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
	"deskhand/backend/host"
	"deskhand/backend/journal"
	"deskhand/backend/launch"
	"deskhand/backend/lifecycle"
	"deskhand/backend/maintenance"
	"deskhand/backend/processes"
	"deskhand/backend/record"
	"deskhand/backend/remotes"
	"deskhand/backend/roster"
	"deskhand/backend/settings"
	"deskhand/backend/startmode"
	"deskhand/backend/store"
	"deskhand/backend/transcript"
	"deskhand/backend/vault"
	"deskhand/backend/workspace"
	"deskhand/backend/worktrees"
)

// Client is all conversations of one data directory.
type Client struct {
	*core

	mu   sync.Mutex // protects live
	live map[string]*conversation

	processes  *processes.Sampler
	maintainer *maintenance.Maintainer
	taking     sync.Mutex // one session of an agent's own at a time
}

// Open takes over a data directory: a turn that was running when the program died is ended as interrupted, a request that waited
// is expired, and both are told in the transcript.
func Open(ctx context.Context, cfg Config) (*Client, error) {
	cfg = cfg.withDefaults()
	c := &Client{live: map[string]*conversation{}, core: &core{
		cfg:     cfg,
		journal: journal.Of(cfg.Store),
		feed:    newFeed(),
		secret:  cfg.Roster.Secrets().Redactor(),
		starts:  startmode.NewLibrary(cfg.Store),
		erasing: newErasing(),
		remotes: cfg.Remotes,
	}}
	c.retire, c.approved = c.erased, c.approvedElsewhere
	c.rules = openRules(c)
	c.hosts.Local = host.Capabilities{
		Agents: cfg.Agents, Directories: host.NewDirectories(cfg.Gone, c.refound), Files: cfg.Files, Snapshots: cfg.Snapshots, Tools: cfg.Tools,
	}
	c.attachments = openAttachments(c)
	c.workspaces = openWorkspaces(c)
	c.undo = openUndo(c)
	c.maintainer = openMaintenance(c)
	publish := func(kind string, data json.RawMessage) { c.feed.publish(Event{Type: kind, Data: data}) }
	c.remotes.Use(remotes.Sessions{Clean: c.secret.Text, InUse: usesOf, EndAgents: remoteSessions{c}.endAgentsAt, Publish: publish})
	var err error
	if c.worktrees, err = openWorktrees(ctx, c); err != nil {
		return nil, err
	}
	if c.launch, err = openLaunch(c); err != nil {
		return nil, errors.Join(err, c.worktrees.Close())
	}
	c.processes = openProcesses(c)
	cfg.Settings.Use(settings.Hooks{Publish: publish, Changed: c.processes.Nudge})
	c.ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	c.shells = openShells(c)
	c.maintainer.Start(c.ctx)                          //nolint:contextcheck // the maintenance lives as long as the client
	cfg.Roster.Secrets().LoadLogged(ctx, vault.InFile) // before anything is written
	work, err := c.takeOver(ctx)
	if err != nil {
		return nil, errors.Join(err, c.Close())
	}
	cfg.Roster.Use(roster.Sessions{Publish: publish, SignedIn: func(agent string) { retryAfterLogin(c, agent) }, Writable: c.writable})
	c.background(func() { cfg.Roster.Secrets().LoadLogged(c.ctx, vault.IfUnlocked) })
	c.background(func() { c.processes.Run(c.ctx) })
	c.background(func() { cfg.Settings.Watch(c.ctx) })
	for _, f := range work {
		c.background(f)
	}
	return c, nil
}

// takeOver makes of the data what it is without a program that runs, and gives what is done to it from then on.
func (c *Client) takeOver(ctx context.Context) (work []func(), err error) {
	err = errors.Join(c.remotes.Load(ctx), c.worktrees.Load(ctx))
	if c.ReadOnly() != nil {
		return nil, c.openNewer(err)
	}
	snapshots, unseen := c.undo.Recover(ctx)
	if err := errors.Join(err, unseen, c.recover(ctx)); err != nil {
		return nil, fmt.Errorf("recovering: %w", err)
	}
	left, err := remoteSessions{c}.outlived(ctx)
	return []func(){func() { snapshots(c.ctx) }, c.maintainer.Run, eraser{c}.run, func() { remoteSessions{c}.endOutlived(left) }, func() { c.worktrees.SettleAll(c.ctx) }}, err
}

func (c *Client) recover(ctx context.Context) error {
	ids, err := query(ctx, c.cfg.Store.Read(), scanText,
		`SELECT id FROM session WHERE deleted_at = 0 AND id IN (SELECT session FROM turn WHERE state <> 'done'
		UNION SELECT session FROM request WHERE status = 'requested' UNION SELECT session FROM queue_item WHERE held = ''
		UNION SELECT id FROM session WHERE CASE WHEN json_valid(facts) THEN json_extract(facts, '$.terminals') > 0 OR json_extract(facts, '$.goingOn') > 0 END)`)
	if err != nil {
		return err
	}
	for _, id := range ids {
		v, err := c.conversation(ctx, id)
		if err != nil {
			return err
		}
		switch err := v.call(ctx, func() error { return v.recover(ctx) }); {
		case errors.Is(err, ErrStorage): // on a full disk what there is can be shown. The step is held until it is written, and with it the conversation
			c.cfg.Logger.Error("what ran when the program ended is told when the disk takes it", "session", id)
		case err != nil:
			return fmt.Errorf("session %s: %w", id, err)
		}
	}
	return errors.Join(eraser{c}.recover(ctx), c.dropHalfImported(ctx))
}

// Close ends every conversation and its agent, and waits for them. What does not return from a look at a disk it leaves to the end of the
// process, see presence.
func (c *Client) Close() error {
	c.tasks.close()
	c.stop()
	c.maintainer.Close()
	c.shells.Close()
	c.cfg.Roster.Close() // the last, since a login may wait for a disk
	c.tasks.wait()
	return errors.Join(c.worktrees.Close(), c.launch.Close())
}

// conversation finds the live one, or makes it from what is stored. One that is deleted is not there.
func (c *Client) conversation(ctx context.Context, id string) (*conversation, error) {
	v, err := c.any(ctx, id)
	if err == nil && v.deleted.Load() {
		return nil, notFound(id)
	}
	return v, err
}

// any is conversation for what is done to a deleted one too, as long as that can be undone.
func (c *Client) any(ctx context.Context, id string) (*conversation, error) {
	c.mu.Lock()
	v := c.live[id]
	c.mu.Unlock()
	if v != nil {
		return v, nil
	}
	if err := c.maintainer.Update(ctx, id); err != nil { // what there is can be shown all the same
		c.cfg.Logger.Error("a transcript cannot be made anew", "error", err)
	}
	r, last, err := c.load(ctx, id, false)
	if err != nil {
		return nil, err
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

// erased hands a conversation over to the eraser: nobody finds it any more.
func (c *Client) erased(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erasing.add(id)
	delete(c.live, id)
}

// enliven starts the goroutine of a conversation, once.
func (c *Client) enliven(r row, lastFrame int64) (*conversation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if v := c.live[r.ID]; v != nil {
		return v, nil
	}
	if c.erasing.knows(r.ID) { // since it was read
		return nil, notFound(r.ID)
	}
	v := newConversation(c.core, r, lastFrame)
	if !c.background(v.live) {
		return nil, ErrClosed
	}
	c.live[r.ID] = v
	c.background(func() { c.undo.Prepare(c.ctx, undoSession(&r.Session)) })
	return v, nil
}

// New is what a session is made from.
type New struct {
	Agent  string   `json:"agent" minLength:"1" maxLength:"64"`
	Cwd    string   `json:"cwd" minLength:"1" maxLength:"4096" doc:"An absolute path of a directory that is there"`
	Place  string   `json:"place,omitempty" maxLength:"64" doc:"Where: local when it is left out"`
	Title  string   `json:"title,omitempty" maxLength:"200"`
	Labels []string `json:"labels,omitempty" maxItems:"20"`

	Directories []string `json:"directories,omitempty" maxItems:"20" doc:"Directories that it works in beside cwd, as absolute paths"`

	Mode  string `json:"mode,omitempty" maxLength:"1024" doc:"The mode that it begins in, as the agent calls it; when it is left out, as was chosen for the agent in this directory, else a mode that asks"`
	Model string `json:"model,omitempty" maxLength:"1024" doc:"The model that it begins with; the same, else the agent's own"`

	Worktree bool   `json:"worktree,omitempty" doc:"In a work tree of its own: a new one, of the git repository that cwd is in"`
	Branch   string `json:"branch,omitempty" maxLength:"200" doc:"The new branch of that, as worktrees/plan gives one; made from the title when it is left out"`
}

// Create makes a session and begins to start its agent; the rest of the start is told by events.
func (c *Client) Create(ctx context.Context, n New) (Session, error) {
	id := uuid.Must(uuid.NewV7()).String()
	start, err := c.startWish(ctx, n.Agent, n.Place, n.Cwd, startmode.Choice{Mode: n.Mode, Model: n.Model})
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
	if err := v.call(ctx, func() error { return v.wish(lifecycle.Start{}) }); err != nil {
		return Session{}, err
	}
	return c.show(v.look()), nil
}

// Page is a part of a list; Next is what to pass as before for the next part, absent at the end.
type Page[T any] struct {
	Items []T    `json:"items"`
	Next  string `json:"next,omitempty"`
}

// What is listed, as the index session_updated has it: its expression and its order.
const (
	listed       = "WHERE s.deleted_at = 0 AND (s.archived_at = 0) = ?"
	listedBefore = " AND (s.updated_at, s.id) < (?, ?)"
	listedFirst  = " ORDER BY s.updated_at DESC, s.id DESC LIMIT ?"
)

// List gives sessions, the most recent first. before is the Next of the page above.
func (c *Client) List(ctx context.Context, archived bool, before string, limit int) (Page[Session], error) {
	where, args := listed, []any{!archived}
	if before != "" {
		at, id, _ := strings.Cut(before, "~")
		t, err := time.Parse(timeLayout, at)
		if err != nil {
			return Page[Session]{}, bad("list.before", "before", before)
		}
		where += listedBefore
		args = append(args, millis(t), id)
	}
	args = append(args, limit+1)
	rows, err := query(ctx, c.cfg.Store.Read(), scanSession, "SELECT "+sessionColumns+sessionFrom+where+listedFirst, args...)
	if err != nil {
		return Page[Session]{}, err
	}
	page := Page[Session]{Items: make([]Session, 0, len(rows))}
	for _, r := range rows { // so that many directories that do not answer are waited for at the same time
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

// showRow is show for a row that was read: where the conversation is loaded, its own record counts.
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

// Get gives one session.
func (c *Client) Get(ctx context.Context, id string) (Session, error) {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return Session{}, err
	}
	return c.show(v.look()), nil
}

// Look is Get for who shows the session: the files of its draft are looked for.
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

// Transcript is a part of a session's transcript, with the turns and requests that its entries name.
type Transcript struct {
	Items    []transcript.Entry `json:"items" doc:"Ascending by seq"`
	Next     int64              `json:"next,omitempty" doc:"What to pass as before for what is older"`
	Newer    int64              `json:"newer,omitempty" doc:"What to pass as after for what is newer"`
	Turns    []Turn             `json:"turns"`
	Requests []Request          `json:"requests"`
}

const lastSeq = 1 << 62

// Entries gives the newest entries before seq before (0 = the tail).
func (c *Client) Entries(ctx context.Context, id string, before int64, limit int) (Transcript, error) {
	if before <= 0 {
		before = lastSeq
	}
	items, more, err := c.older(ctx, id, before, limit)
	if err != nil {
		return Transcript{}, err
	}
	t := Transcript{Items: items}
	if more {
		t.Next = items[0].Seq
	}
	return Complete(ctx, c.cfg.Store, id, t)
}

// After gives the entries that follow seq after.
func (c *Client) After(ctx context.Context, id string, after int64, limit int) (Transcript, error) {
	items, more, err := c.newer(ctx, id, after, limit)
	if err != nil {
		return Transcript{}, err
	}
	t := Transcript{Items: items}
	if more {
		t.Newer = items[len(items)-1].Seq
	}
	return Complete(ctx, c.cfg.Store, id, t)
}

// Around gives the entries around seq around, as many on both sides, where there are as many.
func (c *Client) Around(ctx context.Context, id string, around int64, limit int) (Transcript, error) {
	older, moreOlder, err := c.older(ctx, id, around, limit/2)
	if err != nil {
		return Transcript{}, err
	}
	newer, moreNewer, err := c.newer(ctx, id, around-1, limit-limit/2)
	if err != nil {
		return Transcript{}, err
	}
	t := Transcript{Items: append(older, newer...)}
	if moreOlder && len(t.Items) > 0 {
		t.Next = t.Items[0].Seq
	}
	if moreNewer {
		t.Newer = newer[len(newer)-1].Seq
	}
	return Complete(ctx, c.cfg.Store, id, t)
}

// older are at most limit entries before seq, ascending, and whether there are more.
func (c *Client) older(ctx context.Context, id string, before int64, limit int) (items []transcript.Entry, more bool, err error) {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return nil, false, err
	}
	late := *v.late.Load()
	items, err = query(ctx, c.cfg.Store.Read(), scanEntry, `SELECT id, seq, data FROM
		(SELECT id, seq, data FROM entry WHERE session = ? AND seq < ? ORDER BY seq DESC LIMIT ?) ORDER BY seq`, id, before, limit+1)
	items = late.over(items)
	if len(items) > limit {
		return items[1:], true, err
	}
	return items, false, err
}

// newer are at most limit entries after seq, and whether there are more.
func (c *Client) newer(ctx context.Context, id string, after int64, limit int) (items []transcript.Entry, more bool, err error) {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return nil, false, err
	}
	late := *v.late.Load()
	items, err = query(ctx, c.cfg.Store.Read(), scanEntry, `SELECT id, seq, data FROM entry WHERE session = ? AND seq > ? ORDER BY seq LIMIT ?`, id, after, limit+1)
	items = late.over(items)
	if len(items) > limit {
		return items[:limit], true, err
	}
	return items, false, err
}

// Text gives the whole text of an entry, also of one that is clipped in the transcript: it is folded anew from the journal, or from what is left
// of that.
func (c *Client) Text(ctx context.Context, id, entry string) (string, error) {
	if _, err := c.conversation(ctx, id); err != nil {
		return "", err
	}
	t := transcript.New(id, transcript.Facts{})
	found := false
	var text strings.Builder
	t.Limit, t.Said = 0, func(e *transcript.Entry, more string) {
		if e.ID == entry {
			text.WriteString(more)
		}
	}
	lost, err := c.journal.Readable(ctx, id, func(f journal.Frame) {
		t.Apply(f)
		changes, _ := t.Take()
		for _, ch := range changes {
			found = found || ch.Entry.ID == entry
		}
	})
	if err == nil && !found {
		err = cmp.Or(lost, fmt.Errorf("entry %s: %w", entry, ErrNotFound))
	}
	return text.String(), err
}

// Rebuild computes the entries of a session anew from its journal.
func (c *Client) Rebuild(ctx context.Context, id string) ([]transcript.Entry, error) {
	t := transcript.New(id, transcript.Facts{})
	if err := c.journal.Each(ctx, id, t.Apply); err != nil {
		return nil, err
	}
	changes, _ := t.Take()
	list := make([]transcript.Entry, len(changes))
	for i, ch := range changes {
		list[i] = *ch.Entry
	}
	return list, nil
}

// Inbox gives every request that waits, oldest first.
func (c *Client) Inbox(ctx context.Context) ([]Request, error) {
	return record.Readable[Request](ctx, c.cfg.Store.Read(), `SELECT data FROM request WHERE status = 'requested' ORDER BY created_at, id`)
}

// Restart ends the agent, if it runs, and starts it again on the same conversation.
func (c *Client) Restart(ctx context.Context, id string) error {
	return c.wish(ctx, id, (*conversation).restart)
}

// SetConfig changes a config option of the agent; value is a text or a boolean as JSON. The new state comes from the agent, as an event;
// Configure waits for it.
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

// Answer answers a request. The first answer wins; a later one is RefusedError with code request.resolved, the status and who it was.
func (c *Client) Answer(ctx context.Context, request string, a Answer, surface string) error {
	found, err := query(ctx, c.cfg.Store.Read(), scanJSON[Request], `SELECT data FROM request WHERE id = ?`, request)
	if err != nil {
		return err
	}
	if len(found) == 0 {
		return fmt.Errorf("request %s: %w", request, ErrNotFound)
	}
	return c.first(ctx, found[0], c.wish(ctx, found[0].Session, func(v *conversation) error { return v.inbox.answer(found[0], a, surface) }))
}

// Running counts the turns that run now.
func (c *Client) Running() int {
	return c.count(func(s Session) bool { return s.Turn != nil })
}

// Working counts those that wait for no person.
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

// openNewer is the rest of Open for data of a newer version.
func (c *Client) openNewer(loaded error) error {
	if loaded != nil {
		return fmt.Errorf("%w, and it cannot be read: %w", store.ErrNewer, loaded)
	}
	n := c.cfg.Store.Newer()
	c.cfg.Logger.Warn("the data is of a newer version: it can be read, and nothing of it is changed", "schema", n.Schema, "known", n.Known, "by", n.By)
	return nil
}

// Leaving is a batch as it leaves the process: with the bytes of files.
func (c *Client) Leaving(b Batch) Batch {
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
			continue // it says which they would be
		}
		text := base64.StdEncoding.EncodeToString(data)
		e.DataBase64, e.Blob = &text, nil
		b.Events[i].Data = mustJSON(e)
	}
	return b
}

// lookForChips looks whether the files of the draft are where they were.
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
	_ = v.call(ctx, func() error { v.composer.lost = lost; v.saveRow(); return nil }) // at worst it is told at the next look
}

// approvedElsewhere tells the sessions that wait in a directory which executables were approved, so that a person need not approve them again in
// each session.
func (c *Client) approvedElsewhere(directory string, list []launch.Executable, surface string) {
	c.mu.Lock()
	live := slices.Collect(maps.Values(c.live))
	c.mu.Unlock()
	for _, v := range live {
		if filepath.Clean(v.look().Cwd) == directory { // look may show an older state than the goroutine has, so each conversation checks by itself
			c.background(func() { v.post(func() { v.inbox.reconsider(list, surface) }) })
		}
	}
}

// retryAfterLogin has the conversations with an agent try again what the agent has refused for want of a login, the oldest first.
func retryAfterLogin(c *Client, agent string) {
	c.mu.Lock()
	live := slices.SortedFunc(maps.Values(c.live), func(a, b *conversation) int { return cmp.Compare(a.id, b.id) })
	c.mu.Unlock()
	c.background(func() {
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
