package undo

import (
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"deskhand/backend/record"
	"deskhand/backend/snapshot"
)

// turnRow is a row of the table turn_change: the recorded changes of a turn.
type turnRow struct {
	turn, session, workspace string
	at, ended                time.Time // when the turn began, and when its last snapshot was compared; ended is zero until then
	was, became              string    // the trees before and after the turn; "" = there is none
	left                     leftOut
	data                     *TurnChanges // nil until the last snapshot was compared
}

// leftOut is the files of a directory that the two trees of a turn do not contain.
type leftOut struct {
	Was    []snapshot.Left `json:"was,omitempty"`
	Became []snapshot.Left `json:"became,omitempty"`
	Hidden []string        `json:"hidden,omitempty"` // names that .gitignore rules left out before the turn; folders end with a slash
	More   bool            `json:"more,omitempty"`   // Hidden is not complete

	MoreLeft bool `json:"moreLeft,omitempty"` // Was is not complete
}

// MarshalJSON packs names that are no valid text, which JSON would change: a file that was left out must be found again by its exact name.
func (l leftOut) MarshalJSON() ([]byte, error) {
	type plain leftOut
	return json.Marshal(plain(l.renamed(pack)))
}

// UnmarshalJSON reads the JSON of MarshalJSON.
func (l *leftOut) UnmarshalJSON(data []byte) error {
	type plain leftOut
	err := json.Unmarshal(data, (*plain)(l))
	*l = l.renamed(unpack)
	l.MoreLeft = l.MoreLeft || len(l.Was) == maxLeft // rows of older versions have no moreLeft
	return err
}

// renamed returns a copy in which every name went through a function.
func (l leftOut) renamed(as func(string) string) leftOut {
	l.Was, l.Became, l.Hidden = slices.Clone(l.Was), slices.Clone(l.Became), slices.Clone(l.Hidden)
	for _, list := range [][]snapshot.Left{l.Was, l.Became} {
		for i := range list {
			list[i].Path = as(list[i].Path)
		}
	}
	for i, name := range l.Hidden {
		l.Hidden[i] = as(name)
	}
	return l
}

const packedMark = "\x00" // which no file name contains

func pack(name string) string {
	if utf8.ValidString(name) {
		return name
	}
	return packedMark + base64.StdEncoding.EncodeToString([]byte(name))
}

func unpack(text string) string {
	if code, packed := strings.CutPrefix(text, packedMark); packed {
		if name, err := base64.StdEncoding.DecodeString(code); err == nil {
			return string(name)
		}
	}
	return text
}

// The most names that a row remembers.
const (
	maxLeft   = 500
	maxHidden = 1000
)

// firstLeft returns the files of a list that a row remembers, and whether the list has more.
func firstLeft(list []snapshot.Left) (first []snapshot.Left, more bool) {
	return list[:min(len(list), maxLeft)], len(list) > maxLeft
}

const turnColumns = `turn, session, workspace, at, ended, was, became, left_out, data`

// ColumnOfTurn is an SQL expression for a query of the table turn: the stored changes of the turn as JSON of TurnChanges, "" where there are none.
const ColumnOfTurn = `coalesce((SELECT data FROM turn_change WHERE turn_change.turn = turn.id), '')`

// turns returns the rows that a WHERE clause selects.
func (l *Library) turns(ctx context.Context, where string, args ...any) ([]turnRow, error) {
	return record.Query(ctx, l.Store.Read(), func(s record.Scanner) (r turnRow, err error) {
		var at, ended int64
		var left, data string
		if err := s.Scan(&r.turn, &r.session, &r.workspace, &at, &ended, &r.was, &r.became, &left, &data); err != nil {
			return r, err
		}
		r.at = record.FromMillis(at).Time
		if ended != 0 {
			r.ended = record.FromMillis(ended).Time
		}
		err = json.Unmarshal([]byte(left), &r.left)
		if data != "" {
			err = errors.Join(err, json.Unmarshal([]byte(data), &r.data))
		}
		return r, err
	}, `SELECT `+turnColumns+` FROM turn_change `+where, args...)
}

func (r *turnRow) values() []any {
	ended, data := int64(0), ""
	if !r.ended.IsZero() {
		ended = r.ended.UnixMilli()
	}
	if r.data != nil {
		data = string(record.JSON(r.data))
	}
	return []any{r.turn, r.session, r.workspace, r.at.UnixMilli(), ended, r.was, r.became, string(record.JSON(r.left)), data}
}

// insert stores a new row, unless its session was erased meanwhile.
func (l *Library) insert(ctx context.Context, r *turnRow) error {
	return l.exec(ctx, `INSERT INTO turn_change (`+turnColumns+`) SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9
		WHERE EXISTS (SELECT 1 FROM session WHERE id = ?2)`, r.values()...)
}

// update stores what became known of a row.
func (l *Library) update(ctx context.Context, r *turnRow) error {
	return l.exec(ctx, `UPDATE turn_change SET workspace = ?3, ended = ?5, was = ?6, became = ?7, left_out = ?8, data = ?9
		WHERE turn = ?1 AND session = ?2 AND at = ?4`, r.values()...)
}

// exec runs a statement in a transaction of its own.
func (l *Library) exec(ctx context.Context, text string, args ...any) error {
	return l.Store.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, text, args...)
		return err
	})
}
