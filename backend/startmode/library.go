package startmode

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"deskhand/backend/store"
)

// Library stores the choices of people, and the last offers of agents.
type Library struct{ db *store.DB }

// NewLibrary is on a database, which stays that of the caller.
func NewLibrary(db *store.DB) *Library { return &Library{db} }

// Chosen has the choices for an agent at a place: for all directories, and for one directory.
type Chosen struct {
	Agent     Choice `json:"agent"`
	Directory Choice `json:"directory"`
}

// Chosen reads them. An empty directory asks for those of the agent alone.
func (l *Library) Chosen(ctx context.Context, agent, place, directory string) (c Chosen, err error) {
	rows, err := l.db.Read().QueryContext(ctx, `SELECT directory, mode, model FROM start_mode WHERE agent = ? AND place = ? AND directory IN ('', ?)`, agent, place, directory)
	if err != nil {
		return Chosen{}, err
	}
	defer rows.Close()
	for rows.Next() {
		var of string
		var one Choice
		if err := rows.Scan(&of, &one.Mode, &one.Model); err != nil {
			return Chosen{}, err
		}
		if of == "" {
			c.Agent = one
		} else {
			c.Directory = one
		}
	}
	return c, rows.Err()
}

// Choose stores a choice for an agent in a directory, or in all directories when directory is empty. An empty choice is deleted.
func (l *Library) Choose(ctx context.Context, agent, place, directory string, c Choice) error {
	return l.db.Write(ctx, func(tx *sql.Tx) error {
		if c == (Choice{}) {
			_, err := tx.ExecContext(ctx, `DELETE FROM start_mode WHERE agent = ? AND place = ? AND directory = ?`, agent, place, directory)
			return err
		}
		_, err := tx.ExecContext(ctx, `INSERT INTO start_mode (agent, place, directory, mode, model) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET mode = excluded.mode, model = excluded.model`, agent, place, directory, c.Mode, c.Model)
		return err
	})
}

// Offered returns an agent's last offer, and the version of the agent that made the offer.
func (l *Library) Offered(ctx context.Context, agent, place string) (o Offer, version string, err error) {
	var text string
	err = l.db.Read().QueryRowContext(ctx, `SELECT version, offer FROM start_offer WHERE agent = ? AND place = ?`, agent, place).Scan(&version, &text)
	if errors.Is(err, sql.ErrNoRows) {
		return Offer{}, "", nil
	}
	if err != nil || !json.Valid([]byte(text)) { // damaged on the disk: the next conversation stores the offer again
		return Offer{}, "", err
	}
	return o, version, json.Unmarshal([]byte(text), &o)
}

// Note stores an agent's offer, unless the same offer is stored.
func (l *Library) Note(ctx context.Context, agent, place, version string, o Offer) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	var known bool
	err = l.db.Read().QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM start_offer WHERE agent = ? AND place = ? AND version = ? AND offer = ?)`, agent, place, version, string(text)).Scan(&known)
	if err != nil || known {
		return err
	}
	return l.db.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO start_offer (agent, place, version, offer, noted_at) VALUES (?, ?, ?, ?, ?)
			ON CONFLICT DO UPDATE SET version = excluded.version, offer = excluded.offer, noted_at = excluded.noted_at`, agent, place, version, string(text), time.Now().UnixMilli())
		return err
	})
}
