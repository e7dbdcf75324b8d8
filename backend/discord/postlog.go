package discord

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/disgoorg/snowflake/v2"
)

// postRecord is the record of a turn that is being shown. With the record, and the stored conversation, the next start continues.
type postRecord struct {
	Messages []snowflake.ID `json:"messages"` // in order; 0 = deleted
	Files    []given        `json:"files,omitempty"`
	Breaks   []mark         `json:"breaks,omitempty"`
	Spoke    bool           `json:"spoke,omitempty"`   // the agent's first words are shown: later files wait for the end
	Sending  *sending       `json:"sending,omitempty"` // the message that is about to be made
	Broken   bool           `json:"broken,omitempty"`  // the turn lost its channel before its end

	channel snowflake.ID
	done    bool
}

// sending is a message that may or may not have been made.
type sending struct {
	At     int       `json:"at"` // its number; -1 = only files
	Text   string    `json:"text"`
	Speaks bool      `json:"speaks,omitempty"`
	Files  []int     `json:"files,omitempty"`
	Nonce  string    `json:"nonce"`
	Since  time.Time `json:"since"` // by Discord's clock
}

// read reads the record of a turn. found is false when there is none.
func (o *output) read(ctx context.Context, session, turn string) (row postRecord, found bool, err error) {
	var channel, data string
	err = o.s.cfg.Store.Read().QueryRowContext(ctx, `SELECT channel, done, data FROM discord_output WHERE session = ? AND turn = ?`, session, turn).
		Scan(&channel, &row.done, &data)
	if errors.Is(err, sql.ErrNoRows) {
		return row, false, nil
	}
	if err == nil {
		err = json.Unmarshal([]byte(data), &row)
	}
	if err != nil {
		return row, false, fmt.Errorf("reading what is shown of a turn: %w", err)
	}
	row.channel = idOf(channel)
	return row, true, nil
}

// write stores the record of a turn.
func (o *output) write(ctx context.Context, session, turn string, row postRecord) error {
	data, err := json.Marshal(row)
	if err != nil {
		return err
	}
	return o.s.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO discord_output (session, turn, channel, done, data) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT (session, turn) DO UPDATE SET channel = excluded.channel, done = excluded.done, data = excluded.data`,
			session, turn, row.channel.String(), row.done, string(data))
		return err
	})
}

// written returns the turns of a conversation with a record, and whether each is shown to its end. A turn that was broken off in the
// present channel of the conversation is not.
func (o *output) written(ctx context.Context, session string) (done map[string]bool, err error) {
	channel, _ := o.s.bindings.channelOf(session)
	rows, err := o.s.cfg.Store.Read().QueryContext(ctx, `SELECT turn, done AND NOT (channel = ? AND coalesce(json_extract(data, '$.broken'), 0))
		FROM discord_output WHERE session = ?`, channel.String(), session)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	done = map[string]bool{}
	for rows.Next() {
		var turn string
		var is bool
		if err := rows.Scan(&turn, &is); err != nil {
			return nil, err
		}
		done[turn] = is
	}
	return done, rows.Err()
}

// taken returns the messages that are known to show turns of a conversation, or in a channel.
func (o *output) taken(ctx context.Context, session string, channel snowflake.ID) (ids map[snowflake.ID]bool, err error) {
	rows, err := o.s.cfg.Store.Read().QueryContext(ctx, `SELECT data FROM discord_output WHERE session = ? OR channel = ?`, session, channel.String())
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	ids = map[snowflake.ID]bool{}
	for rows.Next() {
		var data string
		var row postRecord
		if err := rows.Scan(&data); err != nil {
			return nil, err
		}
		if err := json.Unmarshal([]byte(data), &row); err != nil {
			return nil, err
		}
		for _, id := range row.Messages {
			ids[id] = true
		}
		for _, g := range row.Files {
			ids[idOf(g.Sent)] = true
		}
	}
	return ids, rows.Err()
}
