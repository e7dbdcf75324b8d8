package salvage

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"deskhand/backend/store"
)

// table is a table of Deskhand, as the newest migrations make the table.
type table struct {
	name    string
	bare    bool     // WITHOUT ROWID: the rows are in an index
	columns []column // in the order of a stored row
	parents []string // the tables to which its rows refer
}

type column struct {
	name  string
	kind  string // TEXT, INTEGER, BLOB or REAL
	must  bool   // the value is never NULL
	whole bool   // no row lacks the column, which exists since the first migration
	key   int    // the place in the key; 0 = none
	rowid bool   // the value is the number of the row
}

// tablesOf reads the tables of a new database whose rows are worth saving. The index of words is not: Deskhand makes the index again.
func tablesOf(ctx context.Context, db *store.DB) (list []*table, err error) {
	rows, err := db.Read().QueryContext(ctx, `SELECT l.name, l.wr, i.name, i.type, i."notnull", i.dflt_value IS NULL, i.pk FROM pragma_table_list l JOIN pragma_table_info(l.name) i
		WHERE l.schema = 'main' AND l.type = 'table' AND l.name NOT LIKE 'sqlite_%' AND l.name NOT IN ('unsearched', 'high_water') ORDER BY l.name, i.cid`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		var bare, bareDefault bool
		var c column
		if err := rows.Scan(&name, &bare, &c.name, &c.kind, &c.must, &bareDefault, &c.key); err != nil {
			return nil, err
		}
		if len(list) == 0 || list[len(list)-1].name != name {
			list = append(list, &table{name: name, bare: bare})
		}
		t := list[len(list)-1]
		c.whole = c.must && bareDefault || c.key > 0
		c.rowid = c.key == 1 && c.kind == "INTEGER" && !bare
		t.columns = append(t.columns, c)
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	for _, t := range list {
		if t.bare {
			t.keyFirst()
		}
	}
	return list, nil
}

// ordered returns the tables in an order in which rows can be inserted.
func ordered(ctx context.Context, db *store.DB) (list []*table, err error) {
	if list, err = tablesOf(ctx, db); err != nil {
		return nil, err
	}
	for _, t := range list {
		if t.parents, err = parentsOf(ctx, db, t.name); err != nil {
			return nil, err
		}
	}
	return parentsFirst(list), nil
}

// keyFirst puts the columns of the key before the others, as in a stored row of a table WITHOUT ROWID.
func (t *table) keyFirst() {
	slices.SortStableFunc(t.columns, func(a, b column) int {
		if a.key == 0 || b.key == 0 {
			return b.key - a.key
		}
		return a.key - b.key
	})
}

func parentsOf(ctx context.Context, db *store.DB, name string) (list []string, err error) {
	rows, err := db.Read().QueryContext(ctx, `SELECT "table" FROM pragma_foreign_key_list(?)`, name)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var parent string
		if err := rows.Scan(&parent); err != nil {
			return nil, err
		}
		list = append(list, parent)
	}
	return list, rows.Err()
}

// parentsFirst puts tables behind the tables to which their rows refer.
func parentsFirst(list []*table) (sorted []*table) {
	done := map[string]bool{}
	for len(sorted) < len(list) {
		before := len(sorted)
		for _, t := range list {
			ready := !slices.ContainsFunc(t.parents, func(p string) bool { return p != t.name && !done[p] })
			if !done[t.name] && ready {
				done[t.name], sorted = true, append(sorted, t)
			}
		}
		if len(sorted) == before { // a cycle, of which the schema has none
			return append(sorted, list...)
		}
	}
	return sorted
}

// fits reports whether a row can belong to the table. A row that was written before a column was added lacks the column.
func (t *table) fits(row []any) bool {
	if len(row) == 0 || len(row) > len(t.columns) {
		return false
	}
	for i, c := range t.columns {
		if i >= len(row) {
			if c.whole {
				return false
			}
			continue
		}
		if !c.takes(row[i]) {
			return false
		}
	}
	return true
}

func (c column) takes(value any) bool {
	switch value.(type) {
	case nil:
		return !c.must || c.rowid
	case string:
		return c.kind == "TEXT"
	case int64:
		return c.kind == "INTEGER" || c.kind == "REAL"
	case []byte:
		return c.kind == "BLOB"
	case float64:
		return c.kind == "REAL"
	}
	return false
}

// readable repairs a row with damaged JSON: an optional value is emptied. readable returns false for a record whose content cannot be
// read.
func (t *table) readable(row []any) bool {
	for i, value := range row {
		text, is := value.(string)
		name := t.columns[i].name
		if !is || text == "" || json.Valid([]byte(text)) {
			continue
		}
		switch {
		case name == "data" || name == "raw_json":
			return false
		case t.name != "session" && t.name != "turn":
			continue
		case strings.Contains(" labels directories draft_attachments ", " "+name+" "):
			row[i] = "[]"
		case name == "facts":
			row[i] = "{}"
		case strings.Contains(" exit origin usage error line ", " "+name+" "):
			row[i] = ""
		}
	}
	return true
}
