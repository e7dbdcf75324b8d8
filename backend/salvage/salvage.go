package salvage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"deskhand/backend/store"
)

// Report says which rows were read, and which were lost.
type Report struct {
	Tables    []Table  `json:"tables"`
	Sessions  int      `json:"sessions"`  // conversations in the new database
	Recovered int      `json:"recovered"` // conversations among them whose own row was lost, so that only their messages remain
	Gaps      []string `json:"gaps"`      // the ids of conversations whose journal lacks messages
	Blobs     string   `json:"blobs,omitempty"`
}

// Table is the result for a table.
type Table struct {
	Name  string `json:"name"`
	Saved int    `json:"saved"`
	Lost  int    `json:"lost"` // pages and rows that could not be read, or that refer to lost rows
}

// Lost reports whether anything could not be read.
func (r Report) Lost() bool {
	for _, t := range r.Tables {
		if t.Lost > 0 {
			return true
		}
	}
	return r.Blobs != ""
}

// Run reads the database of the directory from, and writes its rows into a new database in to, which must be empty or missing. Run
// changes nothing in from, and copies the files of messages, too. The caller must own from.
func Run(ctx context.Context, from, to string) (r Report, err error) {
	if list, err := os.ReadDir(to); err == nil && len(list) > 0 {
		return r, fmt.Errorf("%s is not empty. Name a new directory", to)
	}
	m, err := openImage(filepath.Join(from, "deskhand.db"))
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	if err := os.MkdirAll(to, 0o700); err != nil {
		return r, err
	}
	db, err := store.Open(ctx, to)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	tables, err := ordered(ctx, db)
	if err != nil {
		return r, err
	}
	w := &writer{ctx: ctx, db: db, saved: map[string]int{}, lost: map[string]int{}, made: map[string]bool{}}
	if err := read(m, tables, w); err != nil {
		return r, err
	}
	if err := w.settle(); err != nil {
		return r, err
	}
	if r, err = w.report(); err != nil {
		return r, err
	}
	if err := os.CopyFS(filepath.Join(to, "blobs"), os.DirFS(filepath.Join(from, "blobs"))); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.Blobs = err.Error()
	}
	return r, nil
}

// read passes the rows of every table to the writer, the tables first to which other rows refer. All trees are walked once before that,
// so that the pages that no walk reaches can be examined one by one.
func read(m *image, tables []*table, w *writer) error {
	all := &tree{m: m, seen: map[uint32]bool{}}
	roots, others := schema(all)
	w.guess = all.free()
	for _, root := range others { // mark these pages as seen
		if err := all.walk(root, &found{}); err != nil {
			return err
		}
	}
	broken, err := w.survey(all, tables, roots)
	if err != nil {
		return err
	}
	once := &tree{m: m, seen: map[uint32]bool{}}
	for _, f := range w.found {
		f.each = w.of(f.table)
		if root, known := roots[f.table.name]; known {
			if err := once.walk(root, &found{table: f.table, each: f.each}); err != nil {
				return err
			}
		}
		if err := all.strays(broken, f); err != nil {
			return err
		}
		if err := w.flush(); err != nil {
			return err
		}
	}
	return nil
}

// survey walks the trees of the tables without reading rows, and returns the tables that have unreadable pages.
func (w *writer) survey(all *tree, tables []*table, roots map[string]uint32) (broken []*found, err error) {
	for _, of := range tables {
		f := &found{table: of}
		if root, known := roots[of.name]; !known {
			f.lost++
		} else if err := all.walk(root, f); err != nil {
			return nil, err
		}
		if f.lost > 0 {
			broken = append(broken, f)
		}
		w.found = append(w.found, f)
	}
	return broken, nil
}

// schema returns the roots of the tables' trees, and the roots of all other trees.
func schema(t *tree) (roots map[string]uint32, others []uint32) {
	roots = map[string]uint32{}
	master := &table{columns: []column{{kind: "TEXT", whole: true}, {kind: "TEXT", whole: true}, {kind: "TEXT"}, {kind: "INTEGER"}, {kind: "TEXT"}}}
	_ = t.walk(1, &found{table: master, each: func(_ int64, row []any) error { // each returns no error
		kind, _ := row[0].(string)
		name, _ := row[1].(string)
		root, _ := row[3].(int64)
		switch {
		case root <= 0 || root > int64(t.m.count):
		case kind == "table" && !strings.HasPrefix(name, "words") && name != "unsearched":
			roots[name] = uint32(root)
		default:
			others = append(others, uint32(root))
		}
		return nil
	}})
	return roots, others
}

// writer puts rows into the new database.
type writer struct {
	ctx   context.Context //nolint:containedctx // of a single Run
	db    *store.DB
	found []*found
	saved map[string]int // rows, by table
	lost  map[string]int
	made  map[string]bool // sessions whose row was lost
	guess bool            // the free pages are known, so a frame without a session was not deleted but lost its session
	batch []row
}

type row struct {
	of     *table
	id     int64
	values []any
}

const batchRows = 500

// of returns a function that takes the rows of a table.
func (w *writer) of(t *table) func(int64, []any) error {
	return func(id int64, values []any) error {
		if !t.readable(values) {
			w.lost[t.name]++
			return nil
		}
		w.batch = append(w.batch, row{t, id, values})
		if len(w.batch) < batchRows {
			return nil
		}
		return w.flush()
	}
}

func (w *writer) flush() error {
	if len(w.batch) == 0 {
		return nil
	}
	err := w.db.Write(w.ctx, func(tx *sql.Tx) error {
		for _, r := range w.batch {
			if err := w.put(tx, r); err != nil {
				w.lost[r.of.name]++ // the row refers to a lost row, or breaks a rule of its table
				if w.ctx.Err() != nil {
					return err
				}
			}
		}
		return nil
	})
	w.batch = w.batch[:0]
	return err
}

// put inserts a row. A row that exists already comes from a page that SQLite had abandoned.
func (w *writer) put(tx *sql.Tx, r row) error {
	names := make([]string, len(r.values))
	for i, c := range r.of.columns[:len(r.values)] {
		names[i] = `"` + c.name + `"`
		if c.rowid {
			r.values[i] = r.id
		}
	}
	if err := w.prepare(tx, r); err != nil {
		return err
	}
	text := `INSERT OR IGNORE INTO "` + r.of.name + `" (` + strings.Join(names, ", ") + `) VALUES (?` + strings.Repeat(", ?", len(names)-1) + `)`
	result, err := tx.ExecContext(w.ctx, text, r.values...)
	if err != nil {
		return err
	}
	n, err := result.RowsAffected()
	w.saved[r.of.name] += int(n)
	return err
}

// prepare makes the missing rows to which a row refers: the directory of a conversation, and the conversation of its messages.
func (w *writer) prepare(tx *sql.Tx, r row) error {
	switch r.of.name {
	case "session":
		return w.workspace(tx, r)
	case "frame", "entry":
		return w.session(tx, r.text("session"))
	}
	return nil
}

func (r row) text(name string) string {
	for i, c := range r.of.columns[:len(r.values)] {
		if c.name == name {
			text, _ := r.values[i].(string)
			return text
		}
	}
	return ""
}

func (w *writer) workspace(tx *sql.Tx, r row) error {
	id, place, path := r.text("workspace"), r.text("place"), r.text("cwd")
	_, err := tx.ExecContext(w.ctx, `INSERT OR IGNORE INTO workspace (id, place, path, device, inode, born, created_at) VALUES (?, ?, ?, 0, 0, 0, 0)`, id, place, path)
	if err != nil {
		return err
	}
	if err := tx.QueryRowContext(w.ctx, `SELECT id FROM workspace WHERE id = ?1 OR place = ?2 AND path = ?3 ORDER BY id <> ?1`, id, place, path).Scan(&id); err != nil {
		return err
	}
	for i, c := range r.of.columns[:len(r.values)] {
		if c.name == "workspace" {
			r.values[i] = id
		}
	}
	return nil
}

// session makes the row of a conversation of which only messages remain.
func (w *writer) session(tx *sql.Tx, id string) error {
	if id == "" || w.made[id] || !w.guess {
		return nil
	}
	var there bool
	if err := tx.QueryRowContext(w.ctx, `SELECT EXISTS (SELECT 1 FROM session WHERE id = ?)`, id).Scan(&there); err != nil || there {
		return err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return err
	}
	const lost = "recovered"
	_, err = tx.ExecContext(w.ctx, `INSERT OR IGNORE INTO workspace (id, place, path, device, inode, born, created_at) VALUES (?, 'local', ?, 0, 0, 0, 0)`, lost, home)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(w.ctx, `INSERT INTO session (id, place, workspace, cwd, agent, title, title_by, labels, pinned, unread, draft, acp_session_id, protocol_version,
		generation, facts, exit, created_at, updated_at, archived_at)
		VALUES (?1, 'local', (SELECT id FROM workspace WHERE place = 'local' AND path = ?2), ?2, 'unknown', 'Recovered conversation', 'person', '[]', 0, 0, '', '', 1, 0, '{}', '', 0, 0, 0)`, id, home)
	w.made[id] = err == nil
	return err
}

// settle corrects values that the lost rows would contradict.
func (w *writer) settle() error {
	again := false // transcripts are made again from their journals
	for _, f := range w.found {
		if f.lost+w.lost[f.table.name] > 0 && (f.table.name == "entry" || f.table.name == "turn" || f.table.name == "attachment_use") {
			again = true
		}
	}
	return w.db.Write(w.ctx, func(tx *sql.Tx) error {
		if again {
			if _, err := tx.ExecContext(w.ctx, `UPDATE session SET projection = 1 WHERE kept = 0`); err != nil {
				return err
			}
		}
		_, err := tx.ExecContext(w.ctx, `UPDATE session SET generation = max(generation, coalesce((SELECT max(generation) FROM frame WHERE session = session.id), 0)),
			created_at = coalesce(nullif(created_at, 0), (SELECT min(at) FROM frame WHERE session = session.id), 0),
			updated_at = coalesce(nullif(updated_at, 0), (SELECT max(at) FROM frame WHERE session = session.id), 0) WHERE created_at = 0`)
		return err
	})
}

func (w *writer) report() (r Report, err error) {
	for _, f := range w.found {
		r.Tables = append(r.Tables, Table{f.table.name, w.saved[f.table.name], f.lost + w.lost[f.table.name]})
	}
	r.Recovered, r.Gaps = len(w.made), []string{}
	db := w.db.Read()
	if err := db.QueryRowContext(w.ctx, `SELECT count(*) FROM session WHERE deleted_at = 0`).Scan(&r.Sessions); err != nil {
		return r, err
	}
	rows, err := db.QueryContext(w.ctx, `SELECT session FROM frame GROUP BY session HAVING count(*) <> max(n) ORDER BY session`)
	if err != nil {
		return r, err
	}
	defer rows.Close()
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return r, err
		}
		r.Gaps = append(r.Gaps, id)
	}
	return r, rows.Err()
}
