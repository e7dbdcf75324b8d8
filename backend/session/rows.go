package session

import (
	"context"
	"database/sql"
	"encoding/json"
	"iter"
	"time"

	"deskhand/backend/lifecycle"
	"deskhand/backend/record"
	"deskhand/backend/transcript"
	"deskhand/backend/undo"
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
	(SELECT count(*) FROM queue_item q WHERE q.session = s.id), s.directories, s.origin, s.draft_attachments`

const sessionFrom = ` FROM session s` + workspace.Join + `s.workspace `

type scanner = record.Scanner

func scanSession(s scanner) (row, error) {
	var r row
	var labels, known, exit, directories, origin, attachments string
	var created, updated, archived int64
	err := s.Scan(&r.ID, &r.Place, &r.Cwd, &r.Agent, &r.Title, &r.titleBy, &labels, &r.Pinned, &r.Unread, &r.Draft, &r.ACPSessionID,
		&r.ProtocolVersion, &r.Generation, &known, &exit, &created, &updated, &archived, &r.Workspace.ID, &r.Workspace.Path, &r.Queue, &directories, &origin, &attachments)
	if err != nil {
		return row{}, err
	}
	r.Labels, r.facts, r.Directories = stored[[]string](labels), stored[transcript.Facts](known), stored[[]string](directories)
	r.Attachments, r.Exit, r.Origin = stored[[]transcript.Attachment](attachments), stored[*transcript.Exit](exit), stored[*Origin](origin)
	r.CreatedAt, r.UpdatedAt = fromMillis(created), fromMillis(updated)
	if archived != 0 {
		at := fromMillis(archived)
		r.ArchivedAt = &at
	}
	r.Phase = lifecycle.Closed
	r.showFacts()
	return r, nil
}

// stored decodes a JSON column of a row. A column that was damaged on the disk decodes as the zero value: a conversation can do without it,
// and one damaged row must not keep a list from being shown. A verification reports the damage.
func stored[T any](text string) (value T) {
	if text == "" || json.Unmarshal([]byte(text), &value) != nil {
		return *new(T)
	}
	return value
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

func millis(t time.Time) int64     { return t.UnixMilli() }
func fromMillis(ms int64) Time     { return record.FromMillis(ms) }
func optionalMillis(t *Time) int64 { return record.OptionalMillis(t) }

func (r *row) save(ctx context.Context, tx *sql.Tx) error {
	exit := ""
	if r.Exit != nil {
		exit = string(mustJSON(r.Exit))
	}
	origin := ""
	if r.Origin != nil {
		origin = string(mustJSON(r.Origin))
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO session (id, place, workspace, cwd, agent, title, title_by, labels, pinned, unread, draft,
		acp_session_id, protocol_version, generation, facts, exit, created_at, updated_at, archived_at, directories, origin, draft_attachments, projection)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET title = excluded.title, title_by = excluded.title_by, labels = excluded.labels,
		pinned = excluded.pinned, unread = excluded.unread, draft = excluded.draft, acp_session_id = excluded.acp_session_id,
		protocol_version = excluded.protocol_version, generation = excluded.generation, facts = excluded.facts, exit = excluded.exit,
		updated_at = excluded.updated_at, archived_at = excluded.archived_at, directories = excluded.directories, origin = excluded.origin,
		draft_attachments = excluded.draft_attachments`,
		r.ID, r.Place, r.Workspace.ID, r.Cwd, r.Agent, r.Title, r.titleBy, string(mustJSON(r.Labels)), r.Pinned, r.Unread, r.Draft,
		r.ACPSessionID, r.ProtocolVersion, r.Generation, string(mustJSON(r.facts)), exit,
		millis(r.CreatedAt.Time), millis(r.UpdatedAt.Time), optionalMillis(r.ArchivedAt), string(mustJSON(r.Directories)), origin, attachmentsText(r.Attachments), transcript.Projection)
	return err
}

func saveEntries(ctx context.Context, tx *sql.Tx, session string, entries []transcript.Change) error {
	if len(entries) == 0 {
		return nil
	}
	upsert, err := tx.PrepareContext(ctx, `INSERT INTO entry (id, session, seq, data, attachments) VALUES (?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET data = excluded.data, attachments = excluded.attachments`)
	if err != nil {
		return err
	}
	defer upsert.Close()
	for _, c := range entries {
		if _, err := upsert.ExecContext(ctx, c.Entry.ID, session, c.Entry.Seq, string(mustJSON(c.Entry)), len(c.Entry.Attachments)); err != nil {
			return err
		}
	}
	return nil
}

func saveTurns(ctx context.Context, tx *sql.Tx, turns iter.Seq[*Turn]) error {
	for t := range turns {
		failure := ""
		if t.Error != nil {
			failure = string(mustJSON(t.Error))
		}
		if _, err := tx.ExecContext(ctx, `INSERT INTO turn (id, session, generation, state, stop_reason, error, usage, started_at, ended_at)
			VALUES (?, ?, (SELECT generation FROM session WHERE id = ?), ?, ?, ?, ?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET state = excluded.state, stop_reason = excluded.stop_reason, error = excluded.error,
			usage = excluded.usage, ended_at = excluded.ended_at`,
			t.ID, t.Session, t.Session, t.State, t.StopReason, failure, string(t.Usage), millis(t.StartedAt.Time), optionalMillis(t.EndedAt)); err != nil {
			return err
		}
	}
	return nil
}

// query runs a query and scans each row.
func query[T any](ctx context.Context, db *sql.DB, scan func(scanner) (T, error), text string, args ...any) ([]T, error) {
	return record.Query(ctx, db, scan, text, args...)
}

func scanJSON[T any](s scanner) (T, error) { return record.ScanJSON[T](s) }

// scanEntry scans the id, the seq and the record of an entry. A notice takes the place of a record that was damaged on the disk.
func scanEntry(s scanner) (e transcript.Entry, err error) {
	var id, data string
	var seq int64
	if err := s.Scan(&id, &seq, &data); err != nil {
		return e, err
	}
	if json.Unmarshal([]byte(data), &e) == nil && e.Complete() {
		return e, nil
	}
	return transcript.Entry{ID: id, Seq: seq, Kind: "notice", Notice: &transcript.Notice{
		Severity: "error", Title: "This part of the conversation was damaged on the disk",
		Description: "deskhand verify tells whether the journal still has it.",
	}}, nil
}

func scanText(s scanner) (string, error) { return record.ScanText(s) }

func scanTurn(s scanner) (Turn, error) {
	var t Turn
	var failure, usage, changes string
	var started, ended int64
	if err := s.Scan(&t.ID, &t.Session, &t.State, &t.StopReason, &failure, &usage, &started, &ended, &changes); err != nil {
		return t, err
	}
	if t.State == "done" {
		t.Changes = stored[*undo.TurnChanges](changes)
	}
	t.Error, t.Usage = stored[*transcript.TurnError](failure), stored[json.RawMessage](usage)
	t.StartedAt = fromMillis(started)
	if ended != 0 {
		at := fromMillis(ended)
		t.EndedAt = &at
	}
	return t, nil
}

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

const turnColumns = `id, session, state, stop_reason, error, usage, started_at, ended_at,
	` + undo.ColumnOfTurn

func scanQueueItem(s scanner) (QueueItem, error) {
	var q QueueItem
	var created int64
	var attachments string
	if err := s.Scan(&q.ID, &q.Session, &q.Position, &q.Held, &q.Message, &created, &attachments); err != nil {
		return q, err
	}
	q.CreatedAt = fromMillis(created)
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
			q.ID, q.Session, q.Position, q.Held, q.Message, millis(q.CreatedAt.Time), attachmentsText(q.Attachments)); err != nil {
			return err
		}
	}
	return nil
}

const queueColumns = `id, session, position, held, message, created_at, attachments`

// storedKind is the kind of the record in column data, in SQL. storedKind is null for records of older versions that are nested deeper than
// SQLite reads (tooDeep): without json_valid such a record would end the whole query with an error.
const storedKind = `CASE WHEN json_valid(data) THEN json_extract(data, '$.kind') END`
