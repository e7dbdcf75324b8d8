package maintenance

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"time"

	"deskhand/backend/attachments"
	"deskhand/backend/record"
	"deskhand/backend/store"
)

// database has SQLite check its file, and the references between tables.
func (x *examination) database(ctx context.Context) error {
	db := x.deps.Store
	faults, err := db.Check(ctx)
	if err != nil {
		return err
	}
	var file, index []string
	for _, line := range faults {
		if strings.Contains(line, "words") { // the index of the search, which can be made of the entries
			index = append(index, line)
		} else {
			file = append(file, line)
		}
	}
	if len(file) > 0 {
		x.find(foundDatabase, "", false, "detail", strings.Join(file, "; "))
	}
	if len(index) > 0 {
		x.find(foundIndex, "", x.wish.Repair && x.deps.Search.Rebuild(ctx) == nil, "detail", strings.Join(index, "; "))
	}
	lost, err := record.Query(ctx, db.Read(), func(s record.Scanner) (string, error) {
		var table, parent string
		var row, key sql.NullInt64
		return table, s.Scan(&table, &row, &parent, &key)
	}, `PRAGMA foreign_key_check`)
	count := map[string]int{}
	for _, table := range lost {
		count[table]++
	}
	for table, n := range count {
		x.find(foundForeign, "", false, "table", table, "rows", strconv.Itoa(n))
	}
	return err
}

// records finds rows of conversations with a damaged JSON column: the content of that column is not shown.
func (x *examination) records(ctx context.Context) error {
	for _, q := range []struct{ of, text string }{
		{"session", `SELECT id FROM session WHERE deleted_at = 0 AND NOT (json_valid(labels) AND json_valid(facts) AND json_valid(directories) AND json_valid(draft_attachments)
			AND (exit = '' OR json_valid(exit)) AND (origin = '' OR json_valid(origin)))`},
		{"turn", `SELECT DISTINCT session FROM turn WHERE NOT ((error = '' OR json_valid(error)) AND (usage = '' OR json_valid(usage)))`},
		{"request", `SELECT DISTINCT session FROM request WHERE NOT json_valid(data)`},
	} {
		ids, err := record.Query(ctx, x.deps.Store.Read(), record.ScanText, q.text)
		if err != nil {
			return err
		}
		for _, id := range ids {
			x.find(foundRecord, id, false, "table", q.of)
		}
	}
	return nil
}

// blobs finds blobs that nothing names. A new blob may be named in a moment, and does not count.
func (x *examination) blobs(ctx context.Context) error {
	const settled = time.Minute
	count, bytes := 0, int64(0)
	err := x.deps.Store.Blobs.Each(ctx, func(sha string, info fs.FileInfo) error {
		if time.Since(info.ModTime()) < settled {
			return nil
		}
		named, err := x.named(ctx, sha)
		if err == nil && !named {
			count++
			bytes += info.Size()
		}
		return err
	})
	if err != nil || count == 0 {
		return err
	}
	repaired := false
	if x.wish.Repair {
		_, err = x.sweep(ctx)
		repaired = err == nil
	}
	x.find(foundOrphans, "", repaired, "count", strconv.Itoa(count), "bytes", strconv.FormatInt(bytes, 10))
	return err
}

// attachments reads the bytes of every attachment.
func (x *examination) attachments(ctx context.Context) error {
	list, err := attachments.Stored(ctx, x.deps.Store)
	for _, a := range list {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		_, err := x.deps.Store.Blobs.Get(a.SHA256)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			x.find(foundNoFile, "", false, "attachment", a.ID, "name", a.Filename, "sha256", a.SHA256)
		case errors.Is(err, store.ErrDamaged):
			x.find(foundBadFile, "", false, "attachment", a.ID, "name", a.Filename, "sha256", a.SHA256, "detail", err.Error())
		case err != nil: // perhaps only for now
			x.find(foundFailed, "", false, "detail", a.Filename+": "+err.Error())
		}
	}
	return err
}

// index finds entries that no search finds, and indexed entries that are gone.
func (x *examination) index(ctx context.Context) error {
	faults, err := x.deps.Search.Check(ctx)
	if err != nil {
		return err
	}
	missing, extra, repaired := len(faults.Missing), len(faults.Extra), false
	if x.wish.Repair && missing+extra > 0 {
		err = x.deps.Search.Repair(ctx, faults)
		repaired = err == nil
	}
	if missing > 0 {
		x.find(foundUnindexed, "", repaired, "count", strconv.Itoa(missing))
	}
	if extra > 0 {
		x.find(foundOverindexed, "", repaired, "count", strconv.Itoa(extra))
	}
	return err
}
