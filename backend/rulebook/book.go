// Package rulebook owns the rules of a person: answers that are remembered, so that an agent that asks for the same again is answered
// without the person. The Book stores rules, judges permissions by them, makes rules of answers, and simulates the effect of a rule on the
// permissions of the past. The package hides the table rule, and how a tool call is read for the judgement of package rules. A rule is never
// told to an agent: an agent gets answers for once, so that the agent keeps nothing that a person could not take back here.
package rulebook

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/rules"
	"deskhand/backend/store"
	"deskhand/backend/workspace"
)

// Config is the surroundings of a Book.
type Config struct {
	Store    *store.DB
	Logger   *slog.Logger
	Writable func() error               // returns the reason when the data cannot be changed
	Redact   func(text string) string   // takes secrets out of a text
	Publish  func(kind string, rec any) // tells every surface of a rule

	// Changed runs after a rule was made or changed: permissions that wait are to be judged again.
	Changed func()

	// Newest returns the newest stored permissions. Find returns the permission of a request, with the whole of its tool call.
	Newest func(ctx context.Context, limit int) ([]Permission, error)
	Find   func(ctx context.Context, request string) (Permission, error)

	// WorkspaceOf returns the id of a session's workspace; of a deleted session only with deleted. The error is refusal.ErrNotFound for an
	// unknown session.
	WorkspaceOf func(ctx context.Context, session string, deleted bool) (string, error)

	// Hidden stands in a text where a secret was, Cut at the end of a text that was shortened by Shorten.
	Hidden, Cut string
	Shorten     func(text string) string
}

// Book is the stored rules. The rules are read from the database for each judgement.
type Book struct{ cfg Config }

// New returns the rules of a database.
func New(cfg Config) *Book { return &Book{cfg} }

const (
	maxRules = 1000

	local = "local" // the place of directories on this machine
)

const columns = `r.id, r.effect, r.scope, coalesce(r.session, ''), coalesce(r.workspace, ''), coalesce(w.path, ''), coalesce(w.place, ''), r.kind, r.pattern,
	r.note, r.expires_at, r.created_at, r.hits, r.last_hit_at`

// from leaves out expired rules; its parameter is the present time.
const from = ` FROM rule r LEFT` + workspace.Join + `r.workspace WHERE (r.expires_at = 0 OR r.expires_at > ?) `

// order has the narrowest rule first, which is the rule that is named when several allow.
const order = ` ORDER BY r.scope = 'everywhere', r.scope = 'directory', r.created_at DESC, r.id DESC`

func scan(s record.Scanner) (Rule, error) {
	var r Rule
	var expires, created, last int64
	err := s.Scan(&r.ID, &r.Effect, &r.Scope, &r.Session, &r.workspace, &r.Directory, &r.Place, &r.Kind, &r.Pattern, &r.Note, &expires, &created, &r.Hits, &last)
	if r.Place == local {
		r.Place = ""
	}
	at := record.FromMillis(created)
	r.CreatedAt = &at
	if expires != 0 {
		at := record.FromMillis(expires)
		r.ExpiresAt = &at
	}
	if last != 0 {
		at := record.FromMillis(last)
		r.LastHitAt = &at
	}
	r.Text = textOf(r.Kind, r.Pattern)
	return r, err
}

// query returns the unexpired rules for which a condition holds.
func (b *Book) query(ctx context.Context, condition string, args ...any) ([]Rule, error) {
	return record.Query(ctx, b.cfg.Store.Read(), scan, `SELECT `+columns+from+condition+order, append([]any{time.Now().UnixMilli()}, args...)...)
}

// List returns the rules that a filter chooses, the built-in rules last.
func (b *Book) List(ctx context.Context, f Filter) ([]Rule, error) {
	condition, args := "", []any(nil)
	if f.Session != "" || f.Directory != "" {
		condition = ` AND (r.scope = 'everywhere' OR r.session = ? OR (w.path = ? AND w.place = ?) OR r.workspace = ?)`
		worksIn, err := b.cfg.WorkspaceOf(ctx, f.Session, true)
		if err != nil && !errors.Is(err, refusal.ErrNotFound) {
			return nil, err
		}
		args = []any{f.Session, cleanPath(f.Directory), orLocal(f.Place), worksIn}
	}
	list, err := b.query(ctx, condition, args...)
	return append(list, builtins()...), err
}

func orLocal(place string) string {
	if place == "" {
		return local
	}
	return place
}

func cleanPath(path string) string {
	if path == "" {
		return ""
	}
	return filepath.Clean(path)
}

// find returns a rule that a person has made.
func (b *Book) find(ctx context.Context, id string) (Rule, error) {
	if slices.ContainsFunc(builtins(), func(r Rule) bool { return r.ID == id }) {
		return Rule{}, &refusal.Error{Code: "rule.builtin", Params: map[string]string{"id": id}}
	}
	list, err := b.query(ctx, ` AND r.id = ?`, id)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("rule %s: %w", id, refusal.ErrNotFound)
	}
	if err != nil {
		return Rule{}, err
	}
	return list[0], nil
}

// Add stores a rule. Permissions that wait are judged by the rule at once.
func (b *Book) Add(ctx context.Context, n NewRule) (Rule, error) {
	r, err := b.check(ctx, n)
	if err == nil {
		err = b.checkRoom(ctx)
	}
	if err != nil {
		return Rule{}, err
	}
	if err := b.write(ctx, func(tx *sql.Tx) error { return save(ctx, tx, r) }); err != nil {
		return Rule{}, err
	}
	b.publish(r)
	return r, nil
}

// Change applies a patch. Requests that the rule has answered stay answered.
func (b *Book) Change(ctx context.Context, id string, p RulePatch) (Rule, error) {
	was, err := b.find(ctx, id)
	if err != nil {
		return Rule{}, err
	}
	n, err := p.over(was)
	if err != nil {
		return Rule{}, err
	}
	r, err := b.check(ctx, n)
	if err != nil {
		return Rule{}, err
	}
	r.ID, r.CreatedAt, r.Hits, r.LastHitAt = was.ID, was.CreatedAt, was.Hits, was.LastHitAt
	gone := false // a person has removed the rule since it was found
	err = b.write(ctx, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, `SELECT NOT EXISTS (SELECT 1 FROM rule WHERE id = ?)`, r.ID).Scan(&gone); err != nil || gone {
			return err
		}
		return save(ctx, tx, r)
	})
	if err == nil && gone {
		err = fmt.Errorf("rule %s: %w", id, refusal.ErrNotFound)
	}
	if err != nil {
		return Rule{}, err
	}
	b.publish(r)
	return r, nil
}

// over returns the content of a rule with the patch applied.
func (p RulePatch) over(r Rule) (NewRule, error) {
	n := NewRule{r.Effect, r.Scope, r.Session, r.Directory, r.Place, r.Kind, r.Pattern, r.ExpiresAt, r.Note}
	for to, from := range map[*string]*string{
		&n.Effect: p.Effect, &n.Scope: p.Scope, &n.Session: p.Session, &n.Directory: p.Directory, &n.Place: p.Place, &n.Kind: p.Kind, &n.Pattern: p.Pattern, &n.Note: p.Note,
	} {
		if from != nil {
			*to = *from
		}
	}
	if p.ExpiresAt != nil {
		n.ExpiresAt = nil
		if *p.ExpiresAt != "" {
			at, err := time.Parse(time.RFC3339, *p.ExpiresAt)
			if err != nil {
				return n, refusal.Bad("rule.expiry", "expiresAt", *p.ExpiresAt)
			}
			n.ExpiresAt = &record.Time{Time: at}
		}
	}
	return n, nil
}

// Remove deletes a rule. Requests that the rule has answered stay answered, and the transcripts go on telling of the rule.
func (b *Book) Remove(ctx context.Context, id string) error {
	if _, err := b.find(ctx, id); err != nil {
		return err
	}
	err := b.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM rule WHERE id = ?`, id)
		return err
	})
	if err == nil {
		b.cfg.Publish(EventRemoved, RuleRemoved{id})
	}
	return err
}

// write runs f in a transaction that also deletes the expired rules.
func (b *Book) write(ctx context.Context, f func(*sql.Tx) error) error {
	if err := b.cfg.Writable(); err != nil {
		return err
	}
	err := b.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM rule WHERE expires_at <> 0 AND expires_at <= ?`, time.Now().UnixMilli())
		return errors.Join(err, f(tx))
	})
	if err != nil {
		return fmt.Errorf("%w: %w", refusal.ErrStorage, err)
	}
	return nil
}

// publish tells of a rule that was written, and has permissions that wait judged again.
func (b *Book) publish(r Rule) {
	b.cfg.Publish(EventUpsert, r)
	b.cfg.Changed()
}

func save(ctx context.Context, tx *sql.Tx, r Rule) error {
	null := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO rule (id, effect, scope, session, workspace, kind, pattern, note, expires_at, created_at, hits, last_hit_at)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET effect = excluded.effect, scope = excluded.scope, session = excluded.session, workspace = excluded.workspace,
		kind = excluded.kind, pattern = excluded.pattern, note = excluded.note, expires_at = excluded.expires_at`,
		r.ID, r.Effect, r.Scope, null(r.Session), null(r.workspace), r.Kind, r.Pattern, r.Note,
		record.OptionalMillis(r.ExpiresAt), record.OptionalMillis(r.CreatedAt), r.Hits, record.OptionalMillis(r.LastHitAt))
	return err
}

// MoveWorkspace has the rules of a workspace follow its directory to another workspace, in the caller's transaction.
func MoveWorkspace(ctx context.Context, tx *sql.Tx, from, to string) error {
	_, err := tx.ExecContext(ctx, `UPDATE rule SET workspace = ? WHERE workspace = ?`, to, from)
	return err
}

// check returns the rule with the given content, or the reason why no rule may have that content.
func (b *Book) check(ctx context.Context, n NewRule) (Rule, error) {
	pattern, err := rules.ParsePattern(rules.Kind(n.Kind), n.Pattern)
	var broken *rules.PatternError
	switch {
	case errors.As(err, &broken):
		return Rule{}, refusal.Bad(broken.Code, "detail", broken.Detail, "pattern", n.Pattern)
	case n.Effect == "allow" && n.Kind == "any":
		return Rule{}, refusal.Bad("rule.any_allows")
	case n.Effect == "allow" && pattern.Wide():
		return Rule{}, refusal.Bad("rule.too_wide", "pattern", n.Pattern)
	case !slices.Contains([]string{"allow", "ask", "deny"}, n.Effect):
		return Rule{}, refusal.Bad("rule.effect", "effect", n.Effect)
	case n.ExpiresAt != nil && !n.ExpiresAt.After(time.Now()):
		return Rule{}, refusal.Bad("rule.expiry", "expiresAt", n.ExpiresAt.UTC().Format(record.TimeLayout))
	case b.cfg.Redact(n.Pattern) != n.Pattern:
		return Rule{}, refusal.Bad("rule.secret")
	}
	now := record.Now()
	r := Rule{
		ID: uuid.Must(uuid.NewV7()).String(), Effect: n.Effect, Scope: n.Scope, Kind: n.Kind, Pattern: pattern.Text, ExpiresAt: n.ExpiresAt,
		CreatedAt: &now, Note: strings.TrimSpace(b.cfg.Redact(n.Note)), Text: textOf(n.Kind, pattern.Text),
	}
	return r, b.resolve(ctx, n, &r)
}

// checkRoom refuses a rule beyond the number that a person could look through.
func (b *Book) checkRoom(ctx context.Context) error {
	var count int
	err := b.cfg.Store.Read().QueryRowContext(ctx, `SELECT count(*) FROM rule WHERE expires_at = 0 OR expires_at > ?`, time.Now().UnixMilli()).Scan(&count)
	if err == nil && count >= maxRules {
		err = &refusal.Error{Code: "rule.too_many", Params: map[string]string{"limit": strconv.Itoa(maxRules)}}
	}
	return err
}

// resolve finds the session or the workspace in the scope of a rule.
func (b *Book) resolve(ctx context.Context, n NewRule, r *Rule) error {
	switch n.Scope {
	case Everywhere:
		return nil
	case Session:
		_, err := b.cfg.WorkspaceOf(ctx, n.Session, false)
		if errors.Is(err, refusal.ErrNotFound) {
			return refusal.Bad("rule.unknown_session", "session", n.Session)
		}
		r.Session = n.Session
		return err
	case Directory:
		if n.Directory == "" {
			return refusal.Bad("rule.unknown_directory", "directory", "")
		}
		place := orLocal(n.Place)
		w, err := workspace.At(ctx, b.cfg.Store, place, cleanPath(n.Directory))
		if errors.Is(err, refusal.ErrNotFound) {
			return refusal.Bad("rule.unknown_directory", "directory", n.Directory)
		}
		r.workspace, r.Directory = w.ID, w.Path
		if place != local {
			r.Place = place
		}
		return err
	}
	return refusal.Bad("rule.scope", "scope", n.Scope)
}
