package search

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/transcript"
	"deskhand/backend/workspace"
)

// Query is a search. An empty filter takes every entry.
type Query struct {
	Text      string    // in the query language
	Agent     string    // id of an agent
	Workspace string    // id of a workspace
	Session   string    // id of a session; then Found.Places lists every place in the session
	From, To  time.Time // when the entry was made; To is not included
	Before    string    // Found.Next of the previous page
	Limit     int
}

// Found is a page of what a search found, the newest first.
type Found struct {
	Items   []Hit  `json:"items"`
	Next    string `json:"next,omitempty" doc:"What to pass as before for more"`
	Pending int    `json:"pending,omitempty" doc:"How many entries are not in the index yet, and may be missing here"`

	Places []int64 `json:"places,omitempty" doc:"Where one conversation is looked through: the seq of every entry that was found, in the conversation's order, and of no more than the last 20,000"`
}

// mostPlaces limits Found.Places; nobody steps through more.
const mostPlaces = 20_000

// Hit is an entry that was found.
type Hit struct {
	Session   string              `json:"session"`
	Title     string              `json:"title"`
	Agent     string              `json:"agent"`
	AgentName string              `json:"agentName"`
	Workspace workspace.Workspace `json:"workspace"`
	Archived  bool                `json:"archived,omitempty"`
	Entry     string              `json:"entry"`
	Seq       int64               `json:"seq" doc:"What …/entries takes as around"`
	Kind      string              `json:"kind" enum:"user,agent,thought,tool,plan,notice,terminal,file,attachment,compaction"`
	At        record.Time         `json:"at"`
	Excerpt   []Part              `json:"excerpt"`
}

// Find searches every conversation. The newest hits come first: people search for what they remember, and a sort by relevance would read every
// hit of a common word.
func (x *Index) Find(ctx context.Context, q Query) (Found, error) {
	terms := parseQuery(q.Text)
	found := Found{Items: []Hit{}}
	words := match(terms)
	if words == "" {
		return found, refusal.Bad("search.empty")
	}
	newest := int64(math.MaxInt64)
	if q.Before != "" {
		n, err := strconv.ParseInt(q.Before, 10, 64)
		if err != nil {
			return found, refusal.Bad("list.before", "before", q.Before)
		}
		newest = max(n, 1) - 1
	}
	db := x.deps.Store.Read()
	// Pending entries are counted before the search: counted afterwards, an entry that gets into the index in between would be neither a hit
	// nor pending.
	if err := pending(ctx, db, q.Session, &found.Pending); err != nil {
		return found, err
	}
	ranges, err := q.ranges(ctx, db, newest)
	if err != nil {
		return found, err
	}
	var rows []foundRow
	for _, part := range ranges {
		text, args := q.hits(words, part, q.Limit+1-len(rows))
		more, err := record.Query(ctx, db, x.scanHit(terms), text, args...)
		if err != nil {
			return found, err
		}
		if rows = append(rows, more...); len(rows) > q.Limit {
			rows = rows[:q.Limit]
			found.Next = strconv.FormatInt(rows[q.Limit-1].rowid, 10)
			break
		}
	}
	for _, r := range rows {
		found.Items = append(found.Items, r.Hit)
	}
	if q.Session != "" && q.Before == "" && len(ranges) > 0 {
		found.Places, err = q.places(ctx, db, words, ranges[0])
	}
	return found, err
}

// rowRange is a range of the rows of all entries, its ends included.
type rowRange struct{ first, last int64 }

// ranges returns the ranges of rows that can have hits, the newest first. The index knows rows and no conversations, and to read every hit of a
// common word is slow where the search is about a seldom used agent, or about days long ago. So ranges first finds the conversations that can
// have hits, and leaves out the rows between them.
func (q Query) ranges(ctx context.Context, db *sql.DB, newest int64) (list []rowRange, err error) {
	if q.Agent == "" && q.Workspace == "" && q.Session == "" && q.From.IsZero() && q.To.IsZero() {
		return []rowRange{{1, newest}}, nil
	}
	text, args := q.conversations()
	all, err := record.Query(ctx, db, func(s record.Scanner) (r rowRange, err error) { return r, s.Scan(&r.first, &r.last) }, text, args...)
	const apart = 1000 // rows of other conversations that are read faster than the index is queried once more
	for _, r := range all {
		r.last = min(r.last, newest)
		last := len(list) - 1
		switch {
		case r.first > r.last: // the conversation is newer, or has no entries
		case last >= 0 && list[last].first-r.last <= apart:
			list[last].first = min(list[last].first, r.first)
		default:
			list = append(list, r)
		}
	}
	return list, err
}

// conversations returns the query for the first and the last row of each conversation. The ids of the first and the last entry say whether a
// conversation has entries of a time: the times of the session do not, because a fork begins with older entries, and not every entry counts as
// a change.
func (q Query) conversations() (text string, args []any) {
	where, args := q.filters()
	if q.Session != "" {
		where, args = append(where, "s.id = ?"), append(args, q.Session)
	}
	if !q.From.IsZero() {
		where, args = append(where, "(SELECT id FROM entry WHERE session = s.id ORDER BY seq DESC LIMIT 1) >= ?"), append(args, firstID(q.From))
	}
	if !q.To.IsZero() {
		where, args = append(where, "(SELECT id FROM entry WHERE session = s.id ORDER BY seq LIMIT 1) < ?"), append(args, firstID(q.To))
	}
	return `SELECT coalesce((SELECT min(rowid) FROM entry WHERE session = s.id), 1), coalesce((SELECT max(rowid) FROM entry WHERE session = s.id), 0) AS last
		FROM session s WHERE ` + strings.Join(where, " AND ") + ` ORDER BY last DESC`, args
}

// firstID returns the least id that an entry of a time can have. Ids begin with their millisecond, so that the ids of earlier entries are less.
func firstID(at time.Time) string {
	ms := max(at.UnixMilli(), 0)
	return fmt.Sprintf("%08x-%04x", ms>>16, ms&0xffff)
}

// filters returns the conditions on a conversation.
func (q Query) filters() (where []string, args []any) {
	where = []string{"s.deleted_at = 0"}
	if q.Agent != "" {
		where, args = append(where, "s.agent = ?"), append(args, q.Agent)
	}
	if q.Workspace != "" {
		where, args = append(where, "s.workspace = ?"), append(args, q.Workspace)
	}
	return where, args
}

// hits returns the query for the hits in a range, the newest first.
func (q Query) hits(words string, part rowRange, limit int) (text string, args []any) {
	text, args = q.within(words, part, " CROSS"+workspace.Join+"s.workspace")
	return `SELECT words.rowid, e.data, s.id, s.title, s.agent, s.archived_at, w.id, w.path` + text + ` ORDER BY words.rowid DESC LIMIT ?`, append(args, limit)
}

// within returns the end of a query for hits in a range. The table words comes first, whatever SQLite would choose, because its rows have the
// order of the hits. The time of an entry is taken from the id, which is read faster than the record.
func (q Query) within(words string, part rowRange, join string) (text string, args []any) {
	where, filters := q.filters()
	args = append([]any{words, part.first, part.last}, filters...)
	if q.Session != "" {
		where, args = append(where, "e.session = ?"), append(args, q.Session)
	}
	if !q.From.IsZero() {
		where, args = append(where, "e.id >= ?"), append(args, firstID(q.From))
	}
	if !q.To.IsZero() {
		where, args = append(where, "e.id < ?"), append(args, firstID(q.To))
	}
	return ` FROM words CROSS JOIN entry e ON e.rowid = words.rowid CROSS JOIN session s ON s.id = e.session` + join +
		` WHERE words MATCH ? AND words.rowid >= ? AND words.rowid <= ? AND ` + strings.Join(where, " AND "), args
}

// pending counts the entries that wait for the index: of one conversation, or of all.
func pending(ctx context.Context, db *sql.DB, session string, n *int) error {
	if session == "" {
		return db.QueryRowContext(ctx, `SELECT count(*) FROM unsearched`).Scan(n)
	}
	return db.QueryRowContext(ctx, `SELECT count(*) FROM unsearched u JOIN entry e ON e.rowid = u.entry WHERE e.session = ?`, session).Scan(n)
}

// places returns the seqs of all hits in a conversation, in order. No entry is read for them.
func (q Query) places(ctx context.Context, db *sql.DB, words string, part rowRange) ([]int64, error) {
	text, args := q.within(words, part, "")
	list, err := record.Query(ctx, db, scanInt, `SELECT e.seq`+text+` ORDER BY e.seq DESC LIMIT ?`, append(args, mostPlaces)...)
	slices.Reverse(list)
	return list, err
}

type foundRow struct {
	Hit
	rowid int64
}

func (x *Index) scanHit(terms []term) func(record.Scanner) (foundRow, error) {
	return func(s record.Scanner) (foundRow, error) {
		var r foundRow
		var data string
		var archived int64
		if err := s.Scan(&r.rowid, &data, &r.Session, &r.Title, &r.Agent, &archived, &r.Workspace.ID, &r.Workspace.Path); err != nil {
			return r, err
		}
		var e transcript.Entry
		_ = json.Unmarshal([]byte(data), &e) // a damaged entry is a hit without an excerpt
		r.Entry, r.Seq, r.Kind, r.At, r.Archived = e.ID, e.Seq, e.Kind, e.At, archived != 0
		r.AgentName = x.deps.AgentName(r.Agent)
		r.Excerpt = excerpt(e.SearchText(), terms)
		return r, nil
	}
}
