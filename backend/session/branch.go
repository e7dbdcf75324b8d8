package session

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/attachments"
	"deskhand/backend/entries"
	"deskhand/backend/journal"
	"deskhand/backend/lifecycle"
	"deskhand/backend/requests"
	"deskhand/backend/summary"
	"deskhand/backend/transcript"
)

// forkable refuses a journal that cannot be read whole, before the agent makes a fork that no session could take.
func (c *core) forkable(ctx context.Context, id string) error {
	return c.readWhole(ctx, id, func(journal.Frame) {})
}

// readWhole calls each for every frame of a journal, and refuses a journal that cannot be read whole.
func (c *core) readWhole(ctx context.Context, id string, each func(journal.Frame)) error {
	err := c.journal.Each(ctx, id, each)
	if d, is := errors.AsType[*journal.DamagedError](err); is {
		return &RefusedError{Code: refusedDamaged, Params: map[string]string{"detail": d.Error()}}
	}
	return err
}

// copyJournal stores the session r of a fork with the parent's journal up to the fork, and the rows that follow from the journal. Turns and
// requests get ids of their own, like entries, since the parent may be deleted.
func (c *core) copyJournal(ctx context.Context, f fork, r *row, last int64) error {
	h, err := c.refolded(ctx, f, r, last)
	if err != nil {
		return err
	}
	if f.before != nil {
		if err := c.attachTalk(ctx, f, r, h.entries); err != nil {
			return err
		}
	}
	if err := c.copied(ctx, f, r.ID, &h); err != nil {
		return err
	}
	// The rows are stored in pieces, since conversations wait for the same database: one transaction with the frames of a journal of 100 MB
	// takes 3 s, for which every other writer waits. Until the last piece the fork is marked as half erased, so that a fork that fails, or
	// is cut off by the program's end, is erased.
	err = c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		return errors.Join(r.save(ctx, tx), markErased(ctx, tx, r.ID), attachments.Use(ctx, tx, r.ID, attachedIn(h.notes)))
	})
	if err != nil {
		return err
	}
	err = c.copyPieces(ctx, f, r.ID, h)
	if err != nil {
		c.erasing.add(r.ID)
	}
	return err
}

// copyPieces stores the frames, turns, requests and entries of a fork in pieces, and then makes the fork visible.
func (c *core) copyPieces(ctx context.Context, f fork, id string, h inherited) error {
	db := c.cfg.Store
	if err := c.copyFrames(ctx, f, id, h.frames); err != nil {
		return err
	}
	for part := range slices.Chunk(h.notes, savedAtOnce) {
		// Blobs are kept for each piece alone, since a wait to remove a blob holds up everyone who stores blobs.
		err := db.Blobs.Keep(func() error {
			stored, err := journal.Of(db).Encode(part)
			if err != nil {
				return err
			}
			return db.Write(ctx, func(tx *sql.Tx) error { return journal.Append(ctx, tx, id, stored) })
		})
		if err != nil {
			return err
		}
	}
	err := inPieces(ctx, db, h.turns, func(tx *sql.Tx, part []*Turn) error { return saveTurns(ctx, tx, slices.Values(part)) })
	if err == nil {
		err = inPieces(ctx, db, h.requests, func(tx *sql.Tx, part []*requests.Request) error { return requests.Save(ctx, tx, slices.Values(part)) })
	}
	if err == nil {
		err = inPieces(ctx, db, h.entries, func(tx *sql.Tx, part []transcript.Change) error { return entries.Save(ctx, tx, id, part) })
	}
	if err != nil {
		return err
	}
	return db.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `UPDATE session SET deleted_at = 0 WHERE id = ?`, id)
		return err
	})
}

// copyFrames copies the frames between Deskhand and the agent. copyFrames fails when the parent is erased meanwhile, since a part of a
// journal is no fork.
func (c *core) copyFrames(ctx context.Context, f fork, id string, want int) error {
	have, err := c.journal.Copy(ctx, f.parent.ID, id, f.until)
	if err == nil && have != want {
		err = notFound(f.parent.ID)
	}
	return err
}

// attachedIn returns the attachments that notes name.
func attachedIn(notes []journal.Frame) (list []transcript.Attachment) {
	for _, f := range notes {
		var n transcript.Note
		if json.Unmarshal(f.Data, &n) == nil {
			list = append(list, n.Attachments...)
		}
	}
	return list
}

// inherited holds the rows that a fork takes over from its parent's journal.
type inherited struct {
	notes   []journal.Frame     // notes, with the fork's ids, and a note of the fork at the end
	frames  int                 // how many other frames the fork has
	entries []transcript.Change // entries folded from all frames

	turns    []*Turn
	requests []*requests.Request
}

// refolded folds the parent's journal up to the fork as the journal of the session r.
func (c *core) refolded(ctx context.Context, f fork, r *row, last int64) (h inherited, err error) {
	t := transcript.New(r.ID, transcript.Facts{})
	err = c.journal.Each(ctx, f.parent.ID, func(fr journal.Frame) {
		switch {
		case fr.N > f.until:
			return
		case fr.Dir == journal.Note:
			fr.Data = transcript.ForkNote(r.ID, fr.Data)
			h.notes = append(h.notes, fr)
		default:
			h.frames++
		}
		t.Apply(fr)
	})
	note := transcript.Note{Note: transcript.NoteForked, Session: f.parent.ID, Text: f.parent.Title}
	if f.before != nil {
		note.Reason = transcript.ReasonBranch
	}
	forked := journal.Frame{N: last, Generation: r.Generation, At: time.UnixMilli(r.CreatedAt.UnixMilli()), Dir: journal.Note, Data: mustJSON(note)}
	t.Apply(forked)
	h.entries, _ = t.Take()
	h.notes = append(h.notes, forked)
	return h, err
}

// copied adds the parent's turns and requests that the fork's notes name, with ids of the fork. The parent may have gone on since the fork.
func (c *core) copied(ctx context.Context, f fork, session string, h *inherited) error {
	told := map[string]bool{}
	for _, fr := range h.notes {
		var n transcript.Note
		if json.Unmarshal(fr.Data, &n) == nil {
			told[n.Turn], told[n.Request] = true, true
		}
	}
	turns, err := c.entries.DoneTurns(ctx, f.parent.ID)
	if err != nil {
		return err
	}
	requests, err := c.requests.Of(ctx, f.parent.ID)
	if err != nil {
		return err
	}
	for _, t := range turns {
		t.ID, t.Session = transcript.ForkID(session, t.ID), session
		if told[t.ID] {
			h.turns = append(h.turns, &Turn{Turn: t})
		}
	}
	for _, q := range requests {
		q.ID, q.Session, q.Turn = transcript.ForkID(session, q.ID), session, transcript.ForkID(session, q.Turn)
		if q.Status == lifecycle.StatusRequested {
			q.Status = lifecycle.StatusExpired // the request waits in the parent
		}
		if told[q.ID] {
			h.requests = append(h.requests, &q)
		}
	}
	return nil
}

// Fork makes a second session that goes on from the current end of a session. Fork starts the agent if needed, and waits for the fork.
func (c *Client) Fork(ctx context.Context, id string) (Session, error) {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return Session{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, forkLimit)
	defer cancel()
	if err := c.forkable(ctx, id); err != nil {
		return Session{}, err
	}
	made := make(chan fork, 1)
	if err := v.call(ctx, func() error { return v.forking.ask(made) }); err != nil {
		return Session{}, err
	}
	select {
	case f := <-made:
		if f.err != nil {
			return Session{}, f.err
		}
		return c.branch(ctx, f)
	case <-v.ended:
		return Session{}, ErrClosed
	case <-ctx.Done():
		return Session{}, &RefusedError{Code: refusedTooSlow, Params: map[string]string{"agent": v.agentName}}
	}
}

// branch makes the session of a fork that the agent has made, and starts the session's agent.
func (c *Client) branch(ctx context.Context, f fork) (Session, error) {
	v, err := c.copySession(ctx, f)
	if err != nil {
		return Session{}, err
	}
	// The agent starts at once: a fork that the agent cannot open can still be made again, see afresh.
	if err := v.call(ctx, func() error { return v.wish(lifecycle.Start{}) }); err != nil {
		return Session{}, err
	}
	return c.show(v.look()), nil
}

// copySession stores the session of a fork.
func (c *Client) copySession(ctx context.Context, f fork) (*conversation, error) {
	now := Time{Time: time.Now()}
	r := f.parent
	r.Session = Session{
		ID: uuid.Must(uuid.NewV7()).String(), Labels: slices.Clone(r.Labels), Place: r.Place, Workspace: r.Workspace, Cwd: r.Cwd, Directories: r.Directories,
		Agent: r.Agent, ACPSessionID: f.peer, ProtocolVersion: r.ProtocolVersion, Generation: r.Generation, Phase: lifecycle.Closed, CreatedAt: now, UpdatedAt: now,
		Origin: &Origin{Kind: originFork, Session: f.parent.ID, Title: f.parent.Title, Agent: r.Agent}, Title: f.parent.Title,
	}
	mark := " (fork)"
	r.queue, r.facts.Terminals, r.facts.GoingOn, r.deletedAt = nil, 0, 0, time.Time{}
	if f.before != nil {
		mark = " (branch)"
		r.Origin.Kind, r.Origin.Turn = originBranch, f.before.turn
		if f.before.again {
			r.Origin = f.parent.Origin
		}
		r.facts.Usage, r.facts.Unopened = nil, nil // of the parent's ACP session
		r.Draft, r.Attachments = f.before.message, f.before.files
	}
	if r.Title != "" {
		r.Title, r.titleBy = r.Title+mark, titleByPerson // otherwise the agent's title would give both sessions the same name
	}
	r.showFacts()
	last := f.until + 1
	if err := c.copyJournal(ctx, f, &r, last); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrStorage, err)
	}
	v, err := c.enliven(r, last)
	if err == nil {
		c.cfg.Search.Wake()
	}
	return v, err
}

// forkLimit is how long a fork may take, including a start of the agent, so that a directory that nobody approves does not block Fork
// forever.
const forkLimit = 5 * time.Minute

// attachTalk adds what was said before a branch to the files of its draft.
func (c *core) attachTalk(ctx context.Context, f fork, r *row, list []transcript.Change) error {
	talk := summary.NewTalk(f.before.agent, f.parent.Title, f.parent.Cwd)
	for _, change := range list {
		talk.Add(change.Entry)
	}
	text := talk.Markdown()
	if text == "" {
		return nil
	}
	a, err := c.attachments.Upload(ctx, talkName, "text/markdown", strings.NewReader(f.before.secret.Text(text)))
	if err != nil {
		return err
	}
	r.Attachments = append(slices.Clone(r.Attachments), a.Plain())
	return nil
}
