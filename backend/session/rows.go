package session

import (
	"context"
	"database/sql"
	"encoding/json"
	"iter"
	"time"

	"deskhand/backend/entries"
	"deskhand/backend/lifecycle"
	"deskhand/backend/maintenance"
	"deskhand/backend/record"
	"deskhand/backend/transcript"
	"deskhand/backend/workspace"
)

// row is a session as stored: the record, and fields that are not part of the API.
type row struct {
	Session
	titleBy string // "", prompt, agent or person: a later value may replace an earlier one
	facts   transcript.Facts
	queue   []QueueItem // set only when the whole conversation is loaded

	deletedAt time.Time // zero while the session is not deleted; set for a loaded session only
}

const (
	titleByPrompt = "prompt"
	titleByAgent  = "agent"
	titleByPerson = "person"
)

const sessionColumns = `s.id, s.place, s.cwd, s.agent, s.title, s.title_by, s.labels, s.pinned, s.unread, s.draft, s.acp_session_id,
	s.protocol_version, s.generation, s.facts, s.exit, s.created_at, s.updated_at, s.archived_at, w.id, w.path,
	(SELECT count(*) FROM queue_item q WHERE q.session = s.id), s.directories, s.origin, s.draft_attachments,
	s.parent, s.subagent, (SELECT count(*) FROM session c WHERE c.parent = s.id AND c.parent <> '' AND c.deleted_at = 0)`

const sessionFrom = ` FROM session s` + workspace.Join + `s.workspace `

type scanner = record.Scanner

func scanSession(s scanner) (row, error) {
	var r row
	var labels, known, exit, directories, origin, attachments, parent, subagent string
	var created, updated, archived int64
	err := s.Scan(&r.ID, &r.Place, &r.Cwd, &r.Agent, &r.Title, &r.titleBy, &labels, &r.Pinned, &r.Unread, &r.Draft, &r.ACPSessionID,
		&r.ProtocolVersion, &r.Generation, &known, &exit, &created, &updated, &archived, &r.Workspace.ID, &r.Workspace.Path, &r.Queue, &directories, &origin, &attachments,
		&parent, &subagent, &r.Subagents)
	if err != nil {
		return row{}, err
	}
	r.Labels, r.facts, r.Directories = record.Sound[[]string](labels), record.Sound[transcript.Facts](known), record.Sound[[]string](directories)
	r.Attachments, r.Exit, r.Origin = record.Sound[[]transcript.Attachment](attachments), record.Sound[*transcript.Exit](exit), record.Sound[*Origin](origin)
	if parent != "" {
		told := record.Sound[Subagent](subagent)
		told.Parent, r.Subagent = parent, &told
	}
	r.CreatedAt, r.UpdatedAt = record.FromMillis(created), record.FromMillis(updated)
	if archived != 0 {
		at := record.FromMillis(archived)
		r.ArchivedAt = &at
	}
	r.Phase = lifecycle.Closed
	r.showFacts()
	return r, nil
}

// showFacts copies the agent's facts into the record; lists become empty instead of null.
func (r *row) showFacts() {
	r.ConfigOptions, r.Commands, r.Usage, r.Offers = r.facts.Shown(), r.facts.Commands, r.facts.Usage, r.facts.Offers
	if r.Offers == nil {
		r.Offers = []string{}
	}
	if r.ConfigOptions == nil {
		r.ConfigOptions = []transcript.ConfigOption{}
	}
	if r.Commands == nil {
		r.Commands = []transcript.Command{}
	}
	if r.Labels == nil {
		r.Labels = []string{}
	}
	if r.Directories == nil {
		r.Directories = []string{}
	}
	if r.Attachments == nil {
		r.Attachments = []transcript.Attachment{}
	}
}

func (r *row) save(ctx context.Context, tx *sql.Tx) error {
	exit := ""
	if r.Exit != nil {
		exit = string(mustJSON(r.Exit))
	}
	origin := ""
	if r.Origin != nil {
		origin = string(mustJSON(r.Origin))
	}
	parent, subagent := "", ""
	if r.Subagent != nil {
		parent, subagent = r.Subagent.Parent, string(mustJSON(r.Subagent))
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO session (id, place, workspace, cwd, agent, title, title_by, labels, pinned, unread, draft,
		acp_session_id, protocol_version, generation, facts, exit, created_at, updated_at, archived_at, directories, origin, draft_attachments, projection, parent, subagent)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET title = excluded.title, title_by = excluded.title_by, labels = excluded.labels,
		pinned = excluded.pinned, unread = excluded.unread, draft = excluded.draft, acp_session_id = excluded.acp_session_id,
		protocol_version = excluded.protocol_version, generation = excluded.generation, facts = excluded.facts, exit = excluded.exit,
		updated_at = excluded.updated_at, archived_at = excluded.archived_at, directories = excluded.directories, origin = excluded.origin,
		draft_attachments = excluded.draft_attachments, subagent = excluded.subagent`,
		r.ID, r.Place, r.Workspace.ID, r.Cwd, r.Agent, r.Title, r.titleBy, string(mustJSON(r.Labels)), r.Pinned, r.Unread, r.Draft,
		r.ACPSessionID, r.ProtocolVersion, r.Generation, string(mustJSON(r.facts)), exit,
		r.CreatedAt.UnixMilli(), r.UpdatedAt.UnixMilli(), record.OptionalMillis(r.ArchivedAt), string(mustJSON(r.Directories)), origin, attachmentsText(r.Attachments), transcript.Projection, parent, subagent)
	return err
}

// saveOutcome stores what became of the transcript of a session.
func saveOutcome(ctx context.Context, tx *sql.Tx, session string, o maintenance.Outcome) (err error) {
	switch o {
	case maintenance.Rebuilt:
		_, err = tx.ExecContext(ctx, `UPDATE session SET projection = ?, kept = 0 WHERE id = ?`, transcript.Projection, session)
	case maintenance.Unreadable:
		_, err = tx.ExecContext(ctx, `UPDATE session SET projection = ? WHERE id = ?`, -transcript.Projection, session)
	case maintenance.Kept:
		_, err = tx.ExecContext(ctx, `UPDATE session SET kept = 1 WHERE id = ?`, session)
	}
	return err
}

// turnsOf returns stored turns as turns of a conversation.
func turnsOf(list []entries.Turn) []Turn {
	turns := make([]Turn, len(list))
	for i, t := range list {
		turns[i].Turn = t
	}
	return turns
}

func saveTurns(ctx context.Context, tx *sql.Tx, turns iter.Seq[*Turn]) error {
	for t := range turns {
		if err := entries.SaveTurn(ctx, tx, &t.Turn); err != nil {
			return err
		}
	}
	return nil
}

// query runs a query and scans each row.
func query[T any](ctx context.Context, db *sql.DB, scan func(scanner) (T, error), text string, args ...any) ([]T, error) {
	return record.Query(ctx, db, scan, text, args...)
}

func scanText(s scanner) (string, error) { return record.ScanText(s) }

// attachmentsIn decodes the attachments of a column.
func attachmentsIn(text string) (list []transcript.Attachment, err error) {
	if text == "" || text == "[]" {
		return nil, nil
	}
	return list, json.Unmarshal([]byte(text), &list)
}

// namedAttachments is a query for the ids of the attachments that drafts and queues name.
const namedAttachments = `SELECT j.value ->> 'id' FROM session s, json_each(s.draft_attachments) j WHERE s.draft_attachments <> '[]'
	UNION ALL SELECT j.value ->> 'id' FROM queue_item q, json_each(q.attachments) j WHERE q.attachments <> '[]'`

func attachmentsText(list []transcript.Attachment) string {
	if len(list) == 0 {
		return "[]"
	}
	return string(mustJSON(list))
}

func scanQueueItem(s scanner) (QueueItem, error) {
	var q QueueItem
	var created int64
	var attachments string
	if err := s.Scan(&q.ID, &q.Session, &q.Position, &q.Held, &q.Message, &created, &attachments); err != nil {
		return q, err
	}
	q.CreatedAt = record.FromMillis(created)
	var err error
	q.Attachments, err = attachmentsIn(attachments)
	return q, err
}

func saveQueue(ctx context.Context, tx *sql.Tx, items []QueueItem, gone []string) error {
	for _, id := range gone {
		if _, err := tx.ExecContext(ctx, `DELETE FROM queue_item WHERE id = ?`, id); err != nil {
			return err
		}
	}
	for _, q := range items {
		if _, err := tx.ExecContext(ctx, `INSERT INTO queue_item (`+queueColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET position = excluded.position, held = excluded.held, message = excluded.message, attachments = excluded.attachments`,
			q.ID, q.Session, q.Position, q.Held, q.Message, q.CreatedAt.UnixMilli(), attachmentsText(q.Attachments)); err != nil {
			return err
		}
	}
	return nil
}

const queueColumns = `id, session, position, held, message, created_at, attachments`
