package entries

import (
	"context"
	"database/sql"
	"encoding/json"

	"deskhand/backend/record"
	"deskhand/backend/transcript"
	"deskhand/backend/undo"
)

// Turn is one prompt, until the agent stops.
type Turn struct {
	ID         string                `json:"id"`
	Session    string                `json:"session"`
	State      string                `json:"state" enum:"running,requires_action,done"`
	StopReason string                `json:"stopReason,omitempty" doc:"ACP's end_turn, max_tokens, max_turn_requests, refusal, cancelled; ours: error, agent_exited, interrupted"`
	Error      *transcript.TurnError `json:"error,omitempty"`
	StartedAt  record.Time           `json:"startedAt"`
	EndedAt    *record.Time          `json:"endedAt,omitempty"`
	Usage      json.RawMessage       `json:"usage,omitempty" doc:"As the agent reported it"`
	Changes    *undo.TurnChanges     `json:"changes,omitempty" doc:"What became of the directory's files; absent while it runs, and of turns of before there were snapshots"`
}

// The states of a turn that are stored. While a request waits, a running turn is shown as requires_action.
const (
	TurnRunning = "running"
	TurnDone    = "done"
)

const turnColumns = `id, session, state, stop_reason, error, usage, started_at, ended_at,
	` + undo.ColumnOfTurn

// scanTurn scans the columns of a turn. A JSON column that was damaged on the disk counts as empty: one damaged row must not keep a list from
// being shown.
func scanTurn(s record.Scanner) (Turn, error) {
	var t Turn
	var failure, usage, changes string
	var started, ended int64
	if err := s.Scan(&t.ID, &t.Session, &t.State, &t.StopReason, &failure, &usage, &started, &ended, &changes); err != nil {
		return t, err
	}
	if t.State == TurnDone {
		t.Changes = record.Sound[*undo.TurnChanges](changes)
	}
	t.Error, t.Usage = record.Sound[*transcript.TurnError](failure), record.Sound[json.RawMessage](usage)
	t.StartedAt = record.FromMillis(started)
	if ended != 0 {
		at := record.FromMillis(ended)
		t.EndedAt = &at
	}
	return t, nil
}

// turns returns the turns that a WHERE clause selects.
func (l *Library) turns(ctx context.Context, where string, args ...any) ([]Turn, error) {
	return record.Query(ctx, l.db.Read(), scanTurn, `SELECT `+turnColumns+` FROM turn `+where, args...)
}

// RunningTurns returns the turns of a session that are not done, the oldest first.
func (l *Library) RunningTurns(ctx context.Context, session string) ([]Turn, error) {
	return l.turns(ctx, `WHERE session = ? AND state <> 'done' ORDER BY started_at`, session)
}

// DoneTurns returns the turns of a session that are done, in no order.
func (l *Library) DoneTurns(ctx context.Context, session string) ([]Turn, error) {
	return l.turns(ctx, `WHERE session = ? AND state = 'done'`, session)
}

// NewestTurn returns the newest turn of a session, or nil.
func (l *Library) NewestTurn(ctx context.Context, session string) (*Turn, error) {
	return first(l.turns(ctx, `WHERE session = ? ORDER BY started_at DESC, id DESC LIMIT 1`, session))
}

// DoneTurn returns a turn by its id, or nil when the turn is not done.
func (l *Library) DoneTurn(ctx context.Context, id string) (*Turn, error) {
	return first(l.turns(ctx, `WHERE id = ? AND state = 'done'`, id))
}

// namedOrRunning selects turns by a JSON list of ids, and those of a session that are not done.
//
// The turns are looked up by their ids: a range of time would have to be found among all turns of the session. The plus keeps SQLite from the
// index by session for the same reason: few turns run in all sessions together. UNION without ALL would have SQLite go through all turns of
// all sessions, in the order of their ids, to leave out what comes twice.
const namedOrRunning = `WHERE id IN (SELECT value FROM json_each(?)
	UNION ALL SELECT id FROM turn WHERE state <> 'done' AND +session = ?) ORDER BY started_at, id`

// NamedOrRunningTurns returns the turns that ids, a JSON list, names, and the turns of a session that are not done.
func (l *Library) NamedOrRunningTurns(ctx context.Context, ids, session string) ([]Turn, error) {
	return l.turns(ctx, namedOrRunning, ids, session)
}

// SessionsWithRunningTurn is a query for the ids of the sessions with a turn that is not done.
const SessionsWithRunningTurn = `SELECT session FROM turn WHERE state <> 'done'`

// Unfinished returns the ids of the turns of all sessions that are not done.
func (l *Library) Unfinished(ctx context.Context) ([]string, error) {
	return record.Query(ctx, l.db.Read(), record.ScanText, `SELECT id FROM turn WHERE state <> 'done'`)
}

// HasTurn reports whether a session has a turn.
func (l *Library) HasTurn(ctx context.Context, session string) (has bool, err error) {
	err = l.db.Read().QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM turn WHERE session = ?)`, session).Scan(&has)
	return has, err
}

// HasSpoken reports whether a turn has ended in a fork since the fork was made at a time, in Unix milliseconds, or has begun in the parent
// since the last turn that the fork has of the parent.
func (l *Library) HasSpoken(ctx context.Context, fork, parent string, at int64) (has bool, err error) {
	err = l.db.Read().QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM turn WHERE session = ?2 AND started_at >= ?3 AND state = 'done' OR session = ?1
		AND started_at > (SELECT coalesce(max(started_at), 0) FROM turn WHERE session = ?2 AND started_at < ?3))`, parent, fork, at).Scan(&has)
	return has, err
}

// Worked returns how many turns a session has, and how long the turns took that have ended, in milliseconds.
func (l *Library) Worked(ctx context.Context, session string) (turns int, ms int64, err error) {
	err = l.db.Read().QueryRowContext(ctx, `SELECT count(*), coalesce(sum(CASE WHEN ended_at > 0 THEN ended_at - started_at END), 0) FROM turn WHERE session = ?`, session).
		Scan(&turns, &ms)
	return turns, ms, err
}

// Ends returns the turns of a session by their ids, with the state, the reason of the end and the error alone.
func Ends(ctx context.Context, q Queryer, session string) (map[string]Turn, error) {
	rows, err := q.QueryContext(ctx, `SELECT id, state, stop_reason, error FROM turn WHERE session = ?`, session)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	have := map[string]Turn{}
	for rows.Next() {
		var t Turn
		var failure string
		if err := rows.Scan(&t.ID, &t.State, &t.StopReason, &failure); err != nil {
			return nil, err
		}
		t.Error = record.Sound[*transcript.TurnError](failure)
		have[t.ID] = t
	}
	return have, rows.Err()
}

// SaveTurn stores a turn, new or changed. A new turn belongs to the generation that the session has now.
func SaveTurn(ctx context.Context, tx *sql.Tx, t *Turn) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO turn (id, session, generation, state, stop_reason, error, usage, started_at, ended_at)
		VALUES (?, ?, (SELECT generation FROM session WHERE id = ?), ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET state = excluded.state, stop_reason = excluded.stop_reason, error = excluded.error,
		usage = excluded.usage, ended_at = excluded.ended_at`,
		t.ID, t.Session, t.Session, t.State, t.StopReason, t.failure(), string(t.Usage), t.StartedAt.UnixMilli(), record.OptionalMillis(t.EndedAt))
	return err
}

// RestoreTurn stores a turn as the journal tells of the turn. The usage and the times of a stored turn stay, since the times are exacter,
// except a time of the end that is missing.
func RestoreTurn(ctx context.Context, tx *sql.Tx, t *Turn, generation int64) error {
	_, err := tx.ExecContext(ctx, `INSERT INTO turn (id, session, generation, state, stop_reason, error, usage, started_at, ended_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET state = excluded.state, stop_reason = excluded.stop_reason,
		error = excluded.error, ended_at = max(ended_at, excluded.ended_at)`,
		t.ID, t.Session, generation, t.State, t.StopReason, t.failure(), string(t.Usage), t.StartedAt.UnixMilli(), record.OptionalMillis(t.EndedAt))
	return err
}

// failure returns the column of the turn's error.
func (t *Turn) failure() string {
	if t.Error == nil {
		return ""
	}
	return string(record.JSON(t.Error))
}
