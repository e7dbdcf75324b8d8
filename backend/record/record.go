// Package record holds the forms that the records of the client API share: times in milliseconds, JSON texts, and the rows of a query.
// A feature that stores records of its own builds on this package instead of on the sessions.
package record

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"time"
)

// Time is a moment with the precision of the database: milliseconds, in UTC.
type Time struct{ time.Time }

// TimeLayout is the layout of a Time in JSON.
const TimeLayout = "2006-01-02T15:04:05.000Z"

// Now returns the present moment as the database would give it back.
func Now() Time { return FromMillis(time.Now().UnixMilli()) }

// FromMillis returns the moment that a column holds.
func FromMillis(ms int64) Time { return Time{time.UnixMilli(ms).UTC()} }

// OptionalMillis returns the value of a column for a moment that may be absent, which the column holds as 0.
func OptionalMillis(t *Time) int64 {
	if t == nil {
		return 0
	}
	return t.UnixMilli()
}

// MarshalJSON always writes milliseconds, so that the texts of two times compare like the times.
func (t Time) MarshalJSON() ([]byte, error) {
	return []byte(`"` + t.UTC().Format(TimeLayout) + `"`), nil
}

// JSON returns a record as JSON. A record that has no JSON is a fault of the program, so JSON panics.
func JSON(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic("a record that is no JSON: " + err.Error())
	}
	return data
}

// AsJSON returns data as a JSON value. Data that is no JSON becomes a JSON text.
func AsJSON(data []byte) json.RawMessage {
	if json.Valid(data) {
		return data
	}
	return JSON(string(data))
}

// Sound decodes a JSON column of a row. An empty column, or one that was damaged on the disk, decodes as the zero value: one damaged row must not
// keep a list from being shown, and a verification reports the damage.
func Sound[T any](text string) (value T) {
	if text == "" || json.Unmarshal([]byte(text), &value) != nil {
		return *new(T)
	}
	return value
}

// Scanner is a row of a query.
type Scanner interface{ Scan(dest ...any) error }

// Query runs a query and scans each row. Without rows, the list is empty and not nil, so that the list is [] in JSON.
func Query[T any](ctx context.Context, db *sql.DB, scan func(Scanner) (T, error), text string, args ...any) ([]T, error) {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	list := []T{}
	for rows.Next() {
		item, err := scan(rows)
		if err != nil {
			return nil, err
		}
		list = append(list, item)
	}
	return list, rows.Err()
}

// ScanJSON scans a row that is a single record as JSON.
func ScanJSON[T any](s Scanner) (T, error) {
	var data string
	var v T
	if err := s.Scan(&data); err != nil {
		return v, err
	}
	return v, json.Unmarshal([]byte(data), &v)
}

// ScanText scans a row that is a single text.
func ScanText(s Scanner) (string, error) {
	var text string
	return text, s.Scan(&text)
}

// Readable runs a query of single records as JSON, and leaves out the records that are damaged.
func Readable[T any](ctx context.Context, db *sql.DB, text string, args ...any) ([]T, error) {
	sound := []T{}
	_, err := Query(ctx, db, func(s Scanner) (struct{}, error) {
		v, err := ScanJSON[T](s)
		if Damaged(err) {
			return struct{}{}, nil
		}
		sound = append(sound, v)
		return struct{}{}, err
	}, text, args...)
	return sound, err
}

// Damaged reports whether err says that a record is not the JSON that was stored.
func Damaged(err error) bool {
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, kind := errors.AsType[*json.UnmarshalTypeError](err)
	return syntax || kind
}
