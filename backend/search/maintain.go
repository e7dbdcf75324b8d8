package search

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"

	"deskhand/backend/record"
	"deskhand/backend/transcript"
)

// Pending counts the entries that wait for the index.
func (x *Index) Pending(ctx context.Context) (n int64, err error) {
	return n, x.deps.Store.Read().QueryRowContext(ctx, `SELECT count(*) FROM unsearched`).Scan(&n)
}

// Merge makes the index compact and removes the words of deleted entries from the pages of the index, where a deletion only marks them.
//
// The merge runs twice: when an earlier merge was half done, the first run finishes the earlier merge, whose pages keep the words of entries
// that were deleted since. A second run without work costs nothing.
func (x *Index) Merge(ctx context.Context) error {
	return x.write(ctx, `INSERT INTO words (words) VALUES ('optimize'); INSERT INTO words (words) VALUES ('optimize')`)
}

// Rebuild empties the index, also a damaged index, and has every entry indexed again in the background. The index knows entries by the
// numbers of their rows, so Rebuild is needed after the rows got other numbers.
func (x *Index) Rebuild(ctx context.Context) error {
	defer x.Wake()
	return x.write(ctx, `INSERT INTO words (words) VALUES ('delete-all'); DELETE FROM unsearched; INSERT INTO unsearched SELECT rowid FROM entry`)
}

func (x *Index) write(ctx context.Context, statements string) error {
	return x.deps.Store.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, statements)
		return err
	})
}

// Faults are differences between the index and the entries, as numbers of rows.
type Faults struct {
	Missing []int64 // entries that no search finds, and that do not wait for the index
	Extra   []int64 // indexed entries that are gone
}

// Check compares the index with the entries.
func (x *Index) Check(ctx context.Context) (f Faults, err error) {
	if f.Missing, err = x.missing(ctx); err != nil {
		return f, err
	}
	f.Extra, err = record.Query(ctx, x.deps.Store.Read(), scanInt, `SELECT d.id FROM words_docsize d WHERE NOT EXISTS (SELECT 1 FROM entry e WHERE e.rowid = d.id)`)
	return f, err
}

// missing returns the entries that are neither in the index nor wait for the index. An entry without a word is not missing.
func (x *Index) missing(ctx context.Context) (list []int64, err error) {
	rows, err := x.deps.Store.Read().QueryContext(ctx, `SELECT e.rowid, e.data FROM entry e
		WHERE NOT EXISTS (SELECT 1 FROM words_docsize d WHERE d.id = e.rowid) AND NOT EXISTS (SELECT 1 FROM unsearched u WHERE u.entry = e.rowid)`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var rowid int64
		var data string
		if err := rows.Scan(&rowid, &data); err != nil {
			return nil, err
		}
		var e transcript.Entry
		if json.Unmarshal([]byte(data), &e) == nil && indexed(e.SearchText()) != "" {
			list = append(list, rowid)
		}
	}
	return list, rows.Err()
}

// Repair removes faults: missing entries are indexed in the background, extra ones leave the index at once.
func (x *Index) Repair(ctx context.Context, f Faults) error {
	defer x.Wake()
	return x.deps.Store.Write(ctx, func(tx *sql.Tx) error {
		return errors.Join(each(ctx, tx, `INSERT INTO unsearched (entry) VALUES (?) ON CONFLICT DO NOTHING`, f.Missing),
			each(ctx, tx, `DELETE FROM words WHERE rowid = ?`, f.Extra))
	})
}

// each executes a statement for each row.
func each(ctx context.Context, tx *sql.Tx, statement string, rows []int64) error {
	for _, row := range rows {
		if _, err := tx.ExecContext(ctx, statement, row); err != nil {
			return err
		}
	}
	return nil
}

func scanInt(s record.Scanner) (n int64, err error) { return n, s.Scan(&n) }
