package session

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"deskhand/backend/transcript"
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
	newest := int64(math.MaxInt64)
	if s.Before != "" {
		n, err := strconv.ParseInt(s.Before, 10, 64)
		if err != nil {
			return found, bad("list.before", "before", s.Before)
		}
		newest = max(n, 1) - 1
	}
	db := c.cfg.Store.Read()
	// What waits is counted first: counted afterwards, an entry that gets into the index in between would be missing from both.
	if err := pending(ctx, db, s.Session, &found.Pending); err != nil {
		return found, err
	}
	parts, err := s.stretches(ctx, db, newest)
	if err != nil {
		return found, err
	}
	var rows []foundRow
	for _, part := range parts {
		text, args := s.hits(q, part, s.Limit+1-len(rows))
		more, err := query(ctx, db, c.scanHit(terms), text, args...)
		if err != nil {
			return found, err
		}
		if rows = append(rows, more...); len(rows) > s.Limit {
			rows = rows[:s.Limit]
			found.Next = strconv.FormatInt(rows[s.Limit-1].rowid, 10)
			break
		}
	}
	for _, r := range rows {
		found.Items = append(found.Items, r.Hit)
	}
	if s.Session != "" && s.Before == "" && len(parts) > 0 {
		found.Places, err = s.places(ctx, db, q, parts[0])
	}
	return found, err
}

// stretch is a part of the rows of all entries, with its first and its last.
type stretch struct{ first, last int64 }

// stretches are the rows to be looked through, the newest first. The index knows no conversations, only rows, and to look at every hit of
// a common word takes long where a search is about an agent that is seldom used, or about days long ago. So it is looked up first which
// conversations can have any, and what lies between those is passed over.
func (s Search) stretches(ctx context.Context, db *sql.DB, newest int64) (list []stretch, err error) {
	if s.Agent == "" && s.Workspace == "" && s.Session == "" && s.From.IsZero() && s.To.IsZero() {
		return []stretch{{1, newest}}, nil
	}
	text, args := s.conversations()
	all, err := query(ctx, db, func(s scanner) (one stretch, err error) { return one, s.Scan(&one.first, &one.last) }, text, args...)
	const apart = 1000 // so many rows of others are read sooner than the index is asked once more
	for _, one := range all {
		one.last = min(one.last, newest)
		last := len(list) - 1
		switch {
		case one.first > one.last: // it is newer, or has no entries
		case last >= 0 && list[last].first-one.last <= apart:
			list[last].first = min(list[last].first, one.first)
		default:
			list = append(list, one)
		}
	}
	return list, err
}

// conversations asks where the rows of each conversation begin and end. Whether anything was said in it in a time, its first entry and its
// last tell: a fork begins with what is older than it, and not all that is said counts as a change.
func (s Search) conversations() (text string, args []any) {
	where, args := s.filters()
	if s.Session != "" {
		where, args = append(where, "s.id = ?"), append(args, s.Session)
	}
	if !s.From.IsZero() {
		where, args = append(where, "(SELECT id FROM entry WHERE session = s.id ORDER BY seq DESC LIMIT 1) >= ?"), append(args, idsFrom(s.From))
	}
	if !s.To.IsZero() {
		where, args = append(where, "(SELECT id FROM entry WHERE session = s.id ORDER BY seq LIMIT 1) < ?"), append(args, idsFrom(s.To))
	}
	return `SELECT coalesce((SELECT min(rowid) FROM entry WHERE session = s.id), 1), coalesce((SELECT max(rowid) FROM entry WHERE session = s.id), 0) AS last
		FROM session s WHERE ` + strings.Join(where, " AND ") + ` ORDER BY last DESC`, args
}

// filters are the conditions on a conversation.
func (s Search) filters() (where []string, args []any) {
	where = []string{"s.deleted_at = 0"}
	if s.Agent != "" {
		where, args = append(where, "s.agent = ?"), append(args, s.Agent)
	}
	if s.Workspace != "" {
		where, args = append(where, "s.workspace = ?"), append(args, s.Workspace)
	}
	return where, args
}

// hits asks for what is found in a part, the newest first.
func (s Search) hits(match string, part stretch, limit int) (text string, args []any) {
	text, args = s.looking(match, part, " CROSS JOIN workspace w ON w.id = s.workspace")
	return `SELECT words.rowid, e.data, s.id, s.title, s.agent, s.archived_at, w.id, w.path` + text + ` ORDER BY words.rowid DESC LIMIT ?`, append(args, limit)
}

// looking is the end of a query that looks through a part. The words come first, whatever else SQLite would think of: they have the order.
// When something was said stands in its id too, which is read sooner than its record.
func (s Search) looking(match string, part stretch, join string) (text string, args []any) {
	where, filters := s.filters()
	args = append([]any{match, part.first, part.last}, filters...)
	if s.Session != "" {
		where, args = append(where, "e.session = ?"), append(args, s.Session)
	}
	if !s.From.IsZero() {
		where, args = append(where, "e.id >= ?"), append(args, idsFrom(s.From))
	}
	if !s.To.IsZero() {
		where, args = append(where, "e.id < ?"), append(args, idsFrom(s.To))
	}
	return ` FROM words CROSS JOIN entry e ON e.rowid = words.rowid CROSS JOIN session s ON s.id = e.session` + join +
		` WHERE words MATCH ? AND words.rowid >= ? AND words.rowid <= ? AND ` + strings.Join(where, " AND "), args
}

// pending counts what is not in the index yet: of one conversation, or of all.
func pending(ctx context.Context, db *sql.DB, session string, n *int) error {
	if session == "" {
		return db.QueryRowContext(ctx, `SELECT count(*) FROM unsearched`).Scan(n)
	}
	return db.QueryRowContext(ctx, `SELECT count(*) FROM unsearched u JOIN entry e ON e.rowid = u.entry WHERE e.session = ?`, session).Scan(n)
}

// places are the seqs of all that is found in a conversation. No entry is read for them.
func (s Search) places(ctx context.Context, db *sql.DB, match string, part stretch) ([]int64, error) {
	text, args := s.looking(match, part, "")
	list, err := query(ctx, db, scanInt, `SELECT e.seq`+text+` ORDER BY e.seq DESC LIMIT ?`, append(args, mostPlaces)...)
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
		var e transcript.Entry
		_ = json.Unmarshal([]byte(data), &e) // of one that was damaged on the disk nothing is shown
		r.Entry, r.Seq, r.Kind, r.At, r.Archived = e.ID, e.Seq, e.Kind, e.At, archived != 0
		r.AgentName = c.cfg.Agents.Name(r.Agent)
		r.Excerpt = excerpt(e.SearchText(), terms)
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
	var e transcript.Entry
	if u.data.Valid {
		_ = json.Unmarshal([]byte(u.data.String), &e) // a damaged one must not keep all the others out
	}
	text := indexed(e.SearchText())
	if text == "" {
		return nil
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO words (rowid, text) VALUES (?, ?)`, u.rowid, text)
	return err
}
