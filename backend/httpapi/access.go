package httpapi

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/google/uuid"

	"deskhand/backend/session"
	"deskhand/backend/store"
)

// Access controls who may call on loopback besides the two tokens of the data directory, and records who did: named tokens that people have
// made, with scopes and an expiry, and the audit of the last calls.
//
// Only the hash of a token is stored. A token is 256 random bits, which nobody can guess: a slow hash would only slow every call down. A
// call ends when its token is revoked or expires.
//
// Calls are recorded in memory and written by one goroutine, many at a time, so that no call waits for the disk. Kill -9 may lose the
// records of the last second; Close writes everything.
type Access struct {
	db   *store.DB
	log  *slog.Logger
	stop context.CancelFunc
	done chan struct{}
	due  chan struct{} // signals unwritten records

	tokensLost, auditLost error // why the stored tokens, or the stored calls, could not be read: they are damaged

	changing sync.Mutex // held while a token is made or revoked

	mu      sync.Mutex // protects the fields below, and is not held during disk writes
	tokens  map[string]*grant
	byHash  map[tokenHash]*grant
	calls   []Call // the last calls that were let in, in order
	strange strangers
	seq     int64 // of the last record
	written int64 // seq of the last call in the database
}

// The scopes of a token.
const (
	ScopeRuntime = "runtime" // /v1 and /acp
	ScopeClient  = "client"  // /client
)

// How a call was let in.
const (
	byOwn     = "own"     // a token of the data directory, or the start's
	byNamed   = "named"   // a named token
	byNothing = "open"    // no token needed
	byNobody  = "refused" // no valid token
)

const (
	keptCalls   = 2000
	writeAfter  = time.Second
	mostTokens  = 100
	longestName = 100
	longestLife = 10 * 365 * 24 * time.Hour
	tokenMark   = "deskhand_" // marks tokens, so that logs can redact them
)

type tokenHash [sha256.Size]byte

// Token is a named key to the API, without its secret, which is returned only once, when the token is made.
type Token struct {
	ID        string        `json:"id"`
	Name      string        `json:"name"`
	Scopes    []string      `json:"scopes" enum:"runtime,client" doc:"Parts of the API that the token opens: runtime opens /v1 and /acp, client opens /client"`
	CreatedAt session.Time  `json:"createdAt"`
	ExpiresAt *session.Time `json:"expiresAt,omitempty" doc:"Absent when the token does not expire"`
	Expired   bool          `json:"expired"`
	UsedAt    *session.Time `json:"usedAt,omitempty" doc:"Time of the last use; absent when the token was never used"`
	UsedFrom  string        `json:"usedFrom,omitempty" doc:"Address of the last use"`
}

// NewToken is the request for a named token.
type NewToken struct {
	Name      string     `json:"name" maxLength:"200" doc:"Purpose of the token, unique among tokens"`
	Scopes    []string   `json:"scopes" minItems:"1" maxItems:"2" enum:"runtime,client"`
	ExpiresAt *time.Time `json:"expiresAt,omitempty" doc:"In the future, at most ten years away; absent = never"`
}

// MadeToken is a new token together with its secret.
type MadeToken struct {
	Token

	Secret string `json:"secret" doc:"The token itself, returned by this call only"`
}

// Call is a line of the audit.
type Call struct {
	Seq    int64        `json:"seq"`
	At     session.Time `json:"at" doc:"Time of the call"`
	Method string       `json:"method"`
	Path   string       `json:"path" doc:"Path of the call, without the query"`
	Status int          `json:"status"`
	Ms     int64        `json:"ms" doc:"Duration of the call in milliseconds"`
	Peer   string       `json:"peer" doc:"Address of the caller"`
	By     string       `json:"by" enum:"own,named,open,refused" doc:"Admission of the call: own = token of the data directory, named = token made by a person, open = no token required, refused = not admitted"`
	Token  string       `json:"token,omitempty" doc:"Name of the token that a person made"`
	Bytes  int64        `json:"bytes" doc:"Bytes of the answer's body"`
	Times  int          `json:"times,omitempty" doc:"Number of refused calls of this address that the line stands for, when more than one since the start of the program; the other calls are not stored"`
}

// grant is a token in use.
type grant struct {
	token Token
	hash  tokenHash
	ctx   context.Context //nolint:containedctx // ends with the token, and with it every call that uses the token
	end   context.CancelFunc
	fresh bool // used since the last write
}

// Codes of requests for tokens that are refused.
const (
	refusedTokenName   = "token.name"     // empty, too long, or with invisible characters
	refusedTokenTaken  = "token.taken"    // params name
	refusedTokenExpiry = "token.expiry"   // in the past, or too far away
	refusedTokenScope  = "token.scope"    // no scope, or an unknown scope
	refusedTokenMany   = "token.too_many" // params max
	refusedNotOwn      = "access.not_own" // not allowed to a caller with a named token
)

// OpenAccess reads tokens and audit from the database. Damaged tokens open nothing, and a damaged audit is not continued in the database.
func OpenAccess(ctx context.Context, db *store.DB, log *slog.Logger) (*Access, error) {
	a := &Access{
		db: db, log: log, done: make(chan struct{}), due: make(chan struct{}, 1),
		tokens: map[string]*grant{}, byHash: map[tokenHash]*grant{},
	}
	var err error
	if a.tokensLost, err = a.without("the tokens that people have made", a.load(ctx)); err != nil {
		return nil, err
	}
	if a.auditLost, err = a.without("the audit", a.loadCalls(ctx)); err != nil {
		return nil, err
	}
	if a.tokensLost != nil {
		a.closeAll()
	}
	ctx, a.stop = context.WithCancel(context.WithoutCancel(ctx))
	go a.write(ctx)
	return a, nil
}

// without logs that a part of the stored data is damaged, and returns its error as lost; every other error is returned as err, but for
// tables that a newer version has changed: these open nothing, and other data can still be read.
func (a *Access) without(part string, failed error) (lost, err error) {
	switch {
	case store.Corrupt(failed):
		a.log.Error("a part of the stored data is damaged, and is left out: see deskhand verify", "part", part, "error", failed)
		return failed, nil
	case a.db.Newer() != nil:
		return nil, nil
	}
	return nil, failed
}

// closeAll puts all tokens out of use.
func (a *Access) closeAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, g := range a.tokens {
		g.end()
	}
	a.tokens, a.byHash = map[string]*grant{}, map[tokenHash]*grant{}
}

// Close writes all records and ends the calls that use named tokens.
func (a *Access) Close() error {
	a.stop()
	<-a.done
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, g := range a.tokens {
		g.end()
	}
	return nil
}

func (a *Access) load(ctx context.Context) error {
	rows, err := a.db.Read().QueryContext(ctx, `SELECT id, name, hash, scopes, created_at, expires_at, used_at, used_from FROM token`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var t Token
		var hash []byte
		var scopes string
		var created, expires, used int64
		if err := rows.Scan(&t.ID, &t.Name, &hash, &scopes, &created, &expires, &used, &t.UsedFrom); err != nil {
			return err
		}
		if len(hash) != sha256.Size {
			continue // an unreadable token opens nothing
		}
		t.Scopes, t.CreatedAt, t.ExpiresAt, t.UsedAt = strings.Fields(scopes), session.Time{Time: time.UnixMilli(created)}, at(expires), at(used)
		a.addLocked(t, tokenHash(hash)) // no other goroutine has a yet
	}
	return rows.Err()
}

// at returns a time of the database, or nil for 0.
func at(ms int64) *session.Time {
	if ms == 0 {
		return nil
	}
	return &session.Time{Time: time.UnixMilli(ms)}
}

func millis(t *session.Time) int64 {
	if t == nil {
		return 0
	}
	return t.UnixMilli()
}

func (a *Access) loadCalls(ctx context.Context) error {
	rows, err := a.db.Read().QueryContext(ctx, `SELECT seq, at, method, path, status, ms, peer, how, token, bytes FROM audit ORDER BY seq`)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var c Call
		var came int64
		if err := rows.Scan(&c.Seq, &came, &c.Method, &c.Path, &c.Status, &c.Ms, &c.Peer, &c.By, &c.Token, &c.Bytes); err != nil {
			return err
		}
		c.At = session.Time{Time: time.UnixMilli(came)}
		a.seq, a.written = c.Seq, c.Seq
		if strange(c) {
			a.strange.lines = append(a.strange.lines, c)
		} else {
			a.calls = append(a.calls, c)
		}
	}
	a.calls, a.strange.lines = lastOf(a.calls, keptCalls), lastOf(a.strange.lines, keptStrangers)
	return rows.Err()
}

func lastOf(list []Call, n int) []Call { return list[max(0, len(list)-n):] }

// addLocked puts a token into use. The caller holds a.mu.
func (a *Access) addLocked(t Token, hash tokenHash) {
	g := &grant{token: t, hash: hash}
	if t.ExpiresAt == nil {
		g.ctx, g.end = context.WithCancel(context.Background())
	} else {
		g.ctx, g.end = context.WithDeadline(context.Background(), t.ExpiresAt.Time)
	}
	a.tokens[t.ID], a.byHash[hash] = g, g
}

// Tokens returns all tokens, the newest first, including expired tokens until somebody removes them.
func (a *Access) Tokens() []Token {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := []Token{}
	for _, g := range a.tokens {
		t := g.token
		t.Expired = expired(t, time.Now())
		list = append(list, t)
	}
	slices.SortFunc(list, func(x, y Token) int {
		if order := y.CreatedAt.Compare(x.CreatedAt.Time); order != 0 {
			return order
		}
		return strings.Compare(x.ID, y.ID)
	})
	return list
}

func expired(t Token, now time.Time) bool { return t.ExpiresAt != nil && !now.Before(t.ExpiresAt.Time) }

// Make makes a named token.
func (a *Access) Make(ctx context.Context, n NewToken) (MadeToken, error) {
	t, err := n.check(time.Now())
	if err = cmp.Or(err, a.tokensLost); err != nil {
		return MadeToken{}, err
	}
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // documented never to fail
	secret := tokenMark + base64.RawURLEncoding.EncodeToString(raw[:])
	hash := tokenHash(sha256.Sum256([]byte(secret)))
	a.changing.Lock()
	defer a.changing.Unlock()
	if err := a.roomFor(t); err != nil {
		return MadeToken{}, err
	}
	err = a.db.WriteSync(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `INSERT INTO token (id, name, hash, scopes, created_at, expires_at) VALUES (?, ?, ?, ?, ?, ?)`,
			t.ID, t.Name, hash[:], strings.Join(t.Scopes, " "), t.CreatedAt.UnixMilli(), millis(t.ExpiresAt))
		return err
	})
	if err != nil {
		return MadeToken{}, errors.Join(session.ErrStorage, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.addLocked(t, hash)
	return MadeToken{Token: t, Secret: secret}, nil
}

// roomFor returns why a token cannot be added.
func (a *Access) roomFor(t Token) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.tokens) >= mostTokens {
		return &session.RefusedError{Code: refusedTokenMany, Params: map[string]string{"max": strconv.Itoa(mostTokens)}}
	}
	for _, g := range a.tokens {
		if strings.EqualFold(g.token.Name, t.Name) {
			return &session.RefusedError{Code: refusedTokenTaken, Params: map[string]string{"name": t.Name}}
		}
	}
	return nil
}

// check validates a request and returns the token.
func (n NewToken) check(now time.Time) (Token, error) {
	wrong := func(code string) (Token, error) { return Token{}, &session.RefusedError{Code: code, Bad: true} }
	name := strings.TrimSpace(n.Name)
	if name == "" || len(name) > longestName || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return wrong(refusedTokenName)
	}
	scopes := slices.Compact(slices.Sorted(slices.Values(n.Scopes)))
	if len(scopes) == 0 || slices.ContainsFunc(scopes, func(s string) bool { return s != ScopeRuntime && s != ScopeClient }) {
		return wrong(refusedTokenScope)
	}
	id, err := uuid.NewV7()
	t := Token{ID: id.String(), Name: name, Scopes: scopes, CreatedAt: session.Time{Time: now}}
	if n.ExpiresAt != nil {
		if !n.ExpiresAt.After(now) || n.ExpiresAt.After(now.Add(longestLife)) {
			return wrong(refusedTokenExpiry)
		}
		t.ExpiresAt = &session.Time{Time: n.ExpiresAt.UTC().Truncate(time.Millisecond)}
	}
	return t, err
}

// Revoke ends a token, and the calls that use the token.
func (a *Access) Revoke(ctx context.Context, id string) error {
	a.changing.Lock()
	defer a.changing.Unlock()
	a.mu.Lock()
	g := a.tokens[id]
	if g != nil { // opens nothing from now on, even if the delete fails and a restart brings the token back: the error says so
		delete(a.byHash, g.hash)
		g.end()
	}
	a.mu.Unlock()
	if g == nil {
		return cmp.Or(a.tokensLost, session.ErrNotFound)
	}
	err := a.db.WriteSync(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM token WHERE id = ?`, id)
		return err
	})
	if err != nil {
		return errors.Join(session.ErrStorage, err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.tokens, id)
	return nil
}

// find returns the grant of a presented token, or nil. The lookup by hash need not take constant time: knowledge about hashes does not help
// to find a token.
func (a *Access) find(token, peer string) *grant {
	if a == nil || !strings.HasPrefix(token, tokenMark) {
		return nil
	}
	hash := tokenHash(sha256.Sum256([]byte(token)))
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	g := a.byHash[hash]
	if g == nil || expired(g.token, now) {
		return nil
	}
	g.token.UsedAt, g.token.UsedFrom, g.fresh = &session.Time{Time: now}, peer, true
	return g
}

func (g *grant) opens(scope string) bool { return slices.Contains(g.token.Scopes, scope) }

// note adds a call to the audit. peer is the caller as guesses are counted.
func (a *Access) note(c Call, peer string) {
	a.mu.Lock()
	stranger := strange(c)
	if stranger && a.strange.counted(peer, c.At.Time) {
		a.mu.Unlock()
		return
	}
	a.seq++
	c.Seq, c.Times = a.seq, 1
	switch {
	case stranger:
		a.strange.add(c, peer)
	case len(a.calls) >= 2*keptCalls:
		a.calls = append(append(a.calls[:0], lastOf(a.calls, keptCalls-1)...), c)
	default:
		a.calls = append(a.calls, c)
	}
	a.mu.Unlock()
	select {
	case a.due <- struct{}{}:
	default:
	}
}

// Calls returns the calls after a seq, the oldest first, or the last calls for 0; more reports whether there are further ones.
func (a *Access) Calls(after int64, limit int) (list []Call, more bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	kept := a.linesLocked()
	for i := range kept {
		if kept[i].Times == 1 {
			kept[i].Times = 0
		}
	}
	if after <= 0 {
		return lastOf(kept, limit), len(kept) > limit
	}
	rest := linesAfter(kept, after)
	return rest[:min(limit, len(rest))], len(rest) > limit
}

// linesLocked returns all kept lines in order. The caller holds a.mu.
func (a *Access) linesLocked() []Call {
	lines := slices.Concat(lastOf(a.calls, keptCalls), a.strange.lines)
	slices.SortFunc(lines, func(x, y Call) int { return cmp.Compare(x.Seq, y.Seq) })
	return lines
}

func linesAfter(lines []Call, seq int64) []Call {
	from, _ := slices.BinarySearchFunc(lines, seq+1, func(c Call, seq int64) int { return cmp.Compare(c.Seq, seq) })
	return lines[from:]
}

// write writes the audit to the database until ctx ends.
func (a *Access) write(ctx context.Context) {
	defer close(a.done)
	last := context.WithoutCancel(ctx)
	for {
		select {
		case <-a.due:
		case <-ctx.Done():
			a.flush(last)
			return
		}
		select { // later records are written together
		case <-time.After(writeAfter):
		case <-ctx.Done():
		}
		a.flush(last)
	}
}

// flush writes new records. Records that cannot be written are tried again with the next call; if the disk is too slow, only the last ones
// count.
func (a *Access) flush(ctx context.Context) {
	a.mu.Lock()
	calls, last := linesAfter(a.linesLocked(), a.written), a.seq
	gone := a.goneLocked()
	var used []Token
	for _, g := range a.tokens {
		if g.fresh {
			used, g.fresh = append(used, g.token), false
		}
	}
	a.mu.Unlock()
	if a.auditLost != nil {
		calls = nil
	}
	if len(calls) == 0 && len(used) == 0 || a.db.Newer() != nil {
		return
	}
	err := a.db.Write(ctx, func(tx *sql.Tx) error { return writeAccess(ctx, tx, calls, gone, used) })
	if err != nil {
		a.log.Error("the audit cannot be written", "error", err)
		return
	}
	a.mu.Lock()
	a.written = last
	a.mu.Unlock()
}

// goneLocked returns, for each kind of line, the first seq that is kept: earlier lines must go from the database. The caller holds a.mu.
func (a *Access) goneLocked() (before struct{ calls, strange int64 }) {
	before.calls, before.strange = a.seq+1, a.seq+1
	if kept := lastOf(a.calls, keptCalls); len(kept) > 0 {
		before.calls = kept[0].Seq
	}
	if len(a.strange.lines) > 0 {
		before.strange = a.strange.lines[0].Seq
	}
	return before
}

func writeAccess(ctx context.Context, tx *sql.Tx, calls []Call, gone struct{ calls, strange int64 }, used []Token) error {
	if len(calls) > 0 {
		if err := writeCalls(ctx, tx, calls, gone); err != nil {
			return err
		}
	}
	for _, t := range used {
		if _, err := tx.ExecContext(ctx, `UPDATE token SET used_at = ?, used_from = ? WHERE id = ?`, millis(t.UsedAt), t.UsedFrom, t.ID); err != nil {
			return err
		}
	}
	return nil
}

// writeCalls writes calls, and deletes those that are no longer kept.
func writeCalls(ctx context.Context, tx *sql.Tx, calls []Call, gone struct{ calls, strange int64 }) error {
	insert, err := tx.PrepareContext(ctx, `INSERT INTO audit (seq, at, method, path, status, ms, peer, how, token, bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`)
	if err != nil {
		return err
	}
	defer insert.Close()
	for _, c := range calls {
		if _, err := insert.ExecContext(ctx, c.Seq, c.At.UnixMilli(), c.Method, c.Path, c.Status, c.Ms, c.Peer, c.By, c.Token, c.Bytes); err != nil {
			return err
		}
	}
	// The condition mirrors the function strange.
	const strangers = `(how = 'refused' OR how = 'open' AND (method = 'OPTIONS' OR path IN (SELECT value FROM json_each(?))))`
	open, _ := json.Marshal(openPaths) // strings always encode
	for condition, before := range map[string]int64{strangers: gone.strange, "NOT " + strangers: gone.calls} {
		if _, err := tx.ExecContext(ctx, `DELETE FROM audit WHERE seq < ? AND `+condition, before, string(open)); err != nil {
			return err
		}
	}
	return nil
}
