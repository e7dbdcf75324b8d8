package session

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Search is what is looked for. Empty filters take everything.
type Search struct {
	Query     string
	Agent     string    // its id
	Workspace string    // its id
	Session   string    // its id; then Found.Places tells all that is found in it
	From, To  time.Time // when it was said; To is not included
	Before    string    // the Next of the page above
	Limit     int
}

// Found is a page of what a search found, the newest first.
type Found struct {
	Items   []Hit  `json:"items"`
	Next    string `json:"next,omitempty" doc:"What to pass as before for more"`
	Pending int    `json:"pending,omitempty" doc:"How many entries are not in the index yet, and may be missing here"`

	Places []int64 `json:"places,omitempty" doc:"Where one conversation is looked through: the seq of every entry that was found, in the conversation's order, and of no more than the last 20,000"`
}

// mostPlaces are told of one conversation; nobody steps through more.
const mostPlaces = 20_000

// Hit is an entry that was found.
type Hit struct {
	Session   string    `json:"session"`
	Title     string    `json:"title"`
	Agent     string    `json:"agent"`
	AgentName string    `json:"agentName"`
	Workspace Workspace `json:"workspace"`
	Archived  bool      `json:"archived,omitempty"`
	Entry     string    `json:"entry"`
	Seq       int64     `json:"seq" doc:"What …/entries takes as around"`
	Kind      string    `json:"kind" enum:"user,agent,thought,tool,plan,notice,terminal,file,attachment,compaction"`
	At        Time      `json:"at"`
	Excerpt   []Part    `json:"excerpt"`
}

// Search looks through every conversation. The newest come first: people look for what they remember, and sorting by any measure
// of fit would read every hit of a common word.
func (c *Client) Search(ctx context.Context, s Search) (Found, error) {
	terms := parseQuery(s.Query)
	found := Found{Items: []Hit{}}
	q := match(terms)
	if q == "" {
		return found, bad("search.empty")
	}
	where, args := []string{"words MATCH ?", "s.deleted_at = 0"}, []any{q}
	also := func(condition string, arg any) { where, args = append(where, condition), append(args, arg) }
	if s.Before != "" {
		n, err := strconv.ParseInt(s.Before, 10, 64)
		if err != nil {
			return found, bad("list.before", "before", s.Before)
		}
		also("words.rowid < ?", n)
	}
	if s.Agent != "" {
		also("s.agent = ?", s.Agent)
	}
	if s.Workspace != "" {
		also("s.workspace = ?", s.Workspace)
	}
	if s.Session != "" {
		// The index knows no conversations, only rows: those of this one lie between its first and its last.
		also("e.session = ?", s.Session)
		also("words.rowid >= (SELECT min(rowid) FROM entry WHERE session = ?)", s.Session)
		also("words.rowid <= (SELECT max(rowid) FROM entry WHERE session = ?)", s.Session)
	}
	if !s.From.IsZero() {
		also("json_extract(e.data, '$.at') >= ?", s.From.UTC().Format(timeLayout))
	}
	if !s.To.IsZero() {
		also("json_extract(e.data, '$.at') < ?", s.To.UTC().Format(timeLayout))
	}
	db := c.cfg.Store.Read()
	// What waits is counted first: counted afterwards, an entry that gets into the index in between would be missing from both.
	if err := pending(ctx, db, s.Session, &found.Pending); err != nil {
		return found, err
	}
	rows, err := query(ctx, db, c.scanHit(terms), `SELECT words.rowid, e.data, s.id, s.title, s.agent, s.archived_at, w.id, w.path
		FROM words JOIN entry e ON e.rowid = words.rowid JOIN session s ON s.id = e.session JOIN workspace w ON w.id = s.workspace
		WHERE `+strings.Join(where, " AND ")+` ORDER BY words.rowid DESC LIMIT ?`, append(args, s.Limit+1)...)
	if err != nil {
		return found, err
	}
	if len(rows) > s.Limit {
		rows = rows[:s.Limit]
		found.Next = strconv.FormatInt(rows[s.Limit-1].rowid, 10)
	}
	for _, r := range rows {
		found.Items = append(found.Items, r.Hit)
	}
	if s.Session != "" && s.Before == "" {
		found.Places, err = places(ctx, db, where, args)
	}
	return found, err
}

// pending counts what is not in the index yet: of one conversation, or of all.
func pending(ctx context.Context, db *sql.DB, session string, n *int) error {
	if session == "" {
		return db.QueryRowContext(ctx, `SELECT count(*) FROM unsearched`).Scan(n)
	}
	return db.QueryRowContext(ctx, `SELECT count(*) FROM unsearched u JOIN entry e ON e.rowid = u.entry WHERE e.session = ?`, session).Scan(n)
}

// places are the seqs of all that is found in a conversation. No entry is read for them.
func places(ctx context.Context, db *sql.DB, where []string, args []any) ([]int64, error) {
	seq := func(s scanner) (n int64, err error) { return n, s.Scan(&n) }
	list, err := query(ctx, db, seq, `SELECT e.seq FROM words JOIN entry e ON e.rowid = words.rowid JOIN session s ON s.id = e.session
		WHERE `+strings.Join(where, " AND ")+` ORDER BY e.seq DESC LIMIT ?`, append(args, mostPlaces)...)
	slices.Reverse(list)
	return list, err
}

type foundRow struct {
	Hit
	rowid int64
}

func (c *Client) scanHit(terms []term) func(scanner) (foundRow, error) {
	return func(s scanner) (foundRow, error) {
		var r foundRow
		var data string
		var archived int64
		if err := s.Scan(&r.rowid, &data, &r.Session, &r.Title, &r.Agent, &archived, &r.Workspace.ID, &r.Workspace.Path); err != nil {
			return r, err
		}
		var e Entry
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			return r, err
		}
		r.Entry, r.Seq, r.Kind, r.At, r.Archived = e.ID, e.Seq, e.Kind, e.At, archived != 0
		r.AgentName = c.cfg.Agents.Name(r.Agent)
		r.Excerpt = excerpt(e.searchText(), terms)
		return r, nil
	}
}

// The index follows what is written within a moment. It takes few entries at a time, since conversations wait to be written meanwhile.
const (
	indexAfter = time.Second
	indexBatch = 100
	indexBytes = 256 << 10
)

// changedEntries has the index brought up to date, soon.
func (c *Client) changedEntries() {
	select {
	case c.unsearched <- struct{}{}:
	default:
	}
}

// index brings the index up to date, until the client is closed.
func (c *Client) index() {
	for {
		more, err := c.indexSome(c.ctx)
		if c.ctx.Err() != nil {
			return
		}
		if err != nil {
			c.cfg.Logger.Error("what was said cannot be made searchable", "error", err)
		}
		if more && err == nil {
			continue
		}
		select {
		case <-c.unsearched:
		case <-c.ctx.Done():
			return
		}
		select {
		case <-time.After(indexAfter): // what streams has got further by then
		case <-c.ctx.Done():
			return
		}
	}
}

// indexSome indexes a batch and tells whether there is more. What was said may change while it is read: so both are one transaction.
func (c *Client) indexSome(ctx context.Context) (more bool, err error) {
	var waiting bool
	err = c.cfg.Store.Read().QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM unsearched)`).Scan(&waiting)
	if err != nil || !waiting {
		return false, err
	}
	err = c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		list, err := unsearched(ctx, tx)
		if err != nil {
			return err
		}
		more = len(list) > 0
		for _, u := range list {
			if err := u.index(ctx, tx); err != nil {
				return err
			}
		}
		return nil
	})
	return more && err == nil, err
}

type unsearchedEntry struct {
	rowid int64
	data  sql.NullString
}

func unsearched(ctx context.Context, tx *sql.Tx) (list []unsearchedEntry, err error) {
	rows, err := tx.QueryContext(ctx, `SELECT u.entry, e.data FROM unsearched u LEFT JOIN entry e ON e.rowid = u.entry ORDER BY u.entry DESC LIMIT ?`, indexBatch)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for size := 0; size < indexBytes && rows.Next(); {
		var u unsearchedEntry
		if err := rows.Scan(&u.rowid, &u.data); err != nil {
			return nil, err
		}
		size += len(u.data.String)
		list = append(list, u)
	}
	return list, rows.Err()
}

func (u unsearchedEntry) index(ctx context.Context, tx *sql.Tx) error {
	_, removed := tx.ExecContext(ctx, `DELETE FROM words WHERE rowid = ?`, u.rowid)
	_, done := tx.ExecContext(ctx, `DELETE FROM unsearched WHERE entry = ?`, u.rowid)
	if err := errors.Join(removed, done); err != nil {
		return err
	}
	var e Entry
	if u.data.Valid {
		_ = json.Unmarshal([]byte(u.data.String), &e) // a damaged one must not keep all the others out
	}
	text := indexed(e.searchText())
	if text == "" {
		return nil
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO words (rowid, text) VALUES (?, ?)`, u.rowid, text)
	return err
}
