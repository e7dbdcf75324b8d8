package session

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/rules"
)

// Rules are ours and not the agent's: one is stored here, and what goes to the agent is an answer for once, so that it keeps nothing that
// could not be taken back. They are read from the database for each request. What a rule is about is decided by package rules; here is
// where they are kept, and what a person does with them. rulesjudge.go applies them.

// Rule is an answer that is remembered.
type Rule struct {
	ID        string `json:"id"`
	Effect    string `json:"effect" enum:"allow,ask,deny" doc:"Deny goes before ask, and ask before allow, whatever their scopes"`
	Scope     string `json:"scope" enum:"session,directory,everywhere"`
	Session   string `json:"session,omitempty" doc:"Of scope session"`
	Directory string `json:"directory,omitempty" doc:"Of scope directory; the rule follows it when it is moved"`
	Place     string `json:"place,omitempty" doc:"Of scope directory: where that is, unless it is local"`
	Kind      string `json:"kind" enum:"execute,edit,read,delete,move,search,fetch,other,any"`
	Pattern   string `json:"pattern" doc:"What it is about; its form depends on the kind. Empty of built-in ones: their pattern is code"`
	ExpiresAt *Time  `json:"expiresAt,omitempty"`
	CreatedAt *Time  `json:"createdAt,omitempty" doc:"Absent of built-in ones"`
	Note      string `json:"note,omitempty" doc:"A person's own words"`
	Hits      int64  `json:"hits" doc:"How many requests it has answered; of built-in ones this is not counted"`
	LastHitAt *Time  `json:"lastHitAt,omitempty"`
	Builtin   bool   `json:"builtin,omitempty" doc:"It is always there, and cannot be changed"`
	Text      string `json:"text" doc:"What it is about, in words"`

	workspace string
}

// NewRule is what a rule is made from.
type NewRule struct {
	Effect    string `json:"effect" enum:"allow,ask,deny"`
	Scope     string `json:"scope" enum:"session,directory,everywhere"`
	Session   string `json:"session,omitempty" maxLength:"64" doc:"With scope session"`
	Directory string `json:"directory,omitempty" maxLength:"4096" doc:"With scope directory: an absolute path that a session works in, or has"`
	Place     string `json:"place,omitempty" maxLength:"64" doc:"With scope directory; local when it is left out"`
	Kind      string `json:"kind" enum:"execute,edit,read,delete,move,search,fetch,other,any"`
	Pattern   string `json:"pattern" minLength:"1" maxLength:"4096"`
	ExpiresAt *Time  `json:"expiresAt,omitempty"`
	Note      string `json:"note,omitempty" maxLength:"1000"`
}

// RulePatch is what is changed about a rule; nil stays.
type RulePatch struct {
	Effect    *string `json:"effect,omitempty" enum:"allow,ask,deny"`
	Scope     *string `json:"scope,omitempty" enum:"session,directory,everywhere"`
	Session   *string `json:"session,omitempty" maxLength:"64"`
	Directory *string `json:"directory,omitempty" maxLength:"4096"`
	Place     *string `json:"place,omitempty" maxLength:"64"`
	Kind      *string `json:"kind,omitempty" enum:"execute,edit,read,delete,move,search,fetch,other,any"`
	Pattern   *string `json:"pattern,omitempty" minLength:"1" maxLength:"4096"`
	ExpiresAt *string `json:"expiresAt,omitempty" maxLength:"40" doc:"RFC 3339; empty = never"`
	Note      *string `json:"note,omitempty" maxLength:"1000"`
}

// RuleRemoved is the data of an event that tells that a rule is there no more.
type RuleRemoved struct {
	ID string `json:"id"`
}

const (
	scopeSession    = "session"
	scopeDirectory  = "directory"
	scopeEverywhere = "everywhere"

	eventRule        = "rule.upsert"
	eventRuleRemoved = "rule.removed"

	maxRules = 1000
)

const ruleColumns = `r.id, r.effect, r.scope, coalesce(r.session, ''), coalesce(r.workspace, ''), coalesce(w.path, ''), coalesce(w.place, ''), r.kind, r.pattern,
	r.note, r.expires_at, r.created_at, r.hits, r.last_hit_at`

// ruleFrom leaves out what has expired; its parameter is the time.
const ruleFrom = ` FROM rule r LEFT JOIN workspace w ON w.id = r.workspace WHERE (r.expires_at = 0 OR r.expires_at > ?) `

// ruleOrder has the narrowest first: of two that allow, it is named.
const ruleOrder = ` ORDER BY r.scope = 'everywhere', r.scope = 'directory', r.created_at DESC, r.id DESC`

func scanRule(s scanner) (Rule, error) {
	var r Rule
	var expires, created, last int64
	err := s.Scan(&r.ID, &r.Effect, &r.Scope, &r.Session, &r.workspace, &r.Directory, &r.Place, &r.Kind, &r.Pattern, &r.Note, &expires, &created, &r.Hits, &last)
	if r.Place == LocalPlace {
		r.Place = ""
	}
	at := fromMillis(created)
	r.CreatedAt = &at
	if expires != 0 {
		at := fromMillis(expires)
		r.ExpiresAt = &at
	}
	if last != 0 {
		at := fromMillis(last)
		r.LastHitAt = &at
	}
	r.Text = ruleText(r.Kind, r.Pattern)
	return r, err
}

// ruleText is what a rule is about, in words.
func ruleText(kind, pattern string) string {
	verb := map[string]string{
		"execute": "Run", "edit": "Edit", "read": "Read", "delete": "Delete", "move": "Move", "search": "Search", "fetch": "Fetch from", "other": "Use", "any": "Anything by",
	}[kind]
	if pattern == "*" && (kind == "other" || kind == "any") {
		pattern = "any tool"
	}
	return verb + " " + pattern
}

func builtinRules() []Rule {
	var list []Rule
	for _, b := range rules.Builtins() {
		list = append(list, Rule{ID: b.ID, Effect: string(b.Effect), Scope: scopeEverywhere, Kind: string(b.Kind), Builtin: true, Text: b.Text})
	}
	return list
}

// RuleFilter chooses rules; empty = all of them.
type RuleFilter struct{ Session, Directory, Place string }

// Rules gives the rules that apply in a session or in a directory, the built-in ones last.
func (c *Client) Rules(ctx context.Context, f RuleFilter) ([]Rule, error) {
	where, args := "", []any{millis(time.Now())}
	if f.Session != "" || f.Directory != "" {
		where = ` AND (r.scope = 'everywhere' OR r.session = ? OR (w.path = ? AND w.place = ?) OR r.workspace = (SELECT workspace FROM session WHERE id = ?))`
		args = append(args, f.Session, cleanPath(f.Directory), orLocal(f.Place), f.Session)
	}
	list, err := query(ctx, c.cfg.Store.Read(), scanRule, `SELECT `+ruleColumns+ruleFrom+where+ruleOrder, args...)
	return append(list, builtinRules()...), err
}

func orLocal(place string) string {
	if place == "" {
		return LocalPlace
	}
	return place
}

func cleanPath(path string) string {
	if path == "" {
		return ""
	}
	return filepath.Clean(path)
}

// rule finds one that a person has made.
func (c *Client) rule(ctx context.Context, id string) (Rule, error) {
	if slices.ContainsFunc(builtinRules(), func(r Rule) bool { return r.ID == id }) {
		return Rule{}, &RefusedError{Code: "rule.builtin", Params: map[string]string{"id": id}}
	}
	list, err := query(ctx, c.cfg.Store.Read(), scanRule, `SELECT `+ruleColumns+ruleFrom+` AND r.id = ?`, millis(time.Now()), id)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("rule %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return Rule{}, err
	}
	return list[0], nil
}

// AddRule stores a rule, and answers by it what waits already.
func (c *Client) AddRule(ctx context.Context, n NewRule) (Rule, error) {
	r, err := c.newRule(ctx, n)
	if err == nil {
		err = c.roomForRule(ctx)
	}
	if err != nil {
		return Rule{}, err
	}
	if err := c.writeRules(ctx, func(tx *sql.Tx) error { return saveRule(ctx, tx, r) }); err != nil {
		return Rule{}, err
	}
	c.ruleIs(r)
	return r, nil
}

// ChangeRule applies a patch. What the rule has answered stays answered.
func (c *Client) ChangeRule(ctx context.Context, id string, p RulePatch) (Rule, error) {
	was, err := c.rule(ctx, id)
	if err != nil {
		return Rule{}, err
	}
	n, err := p.over(was)
	if err != nil {
		return Rule{}, err
	}
	r, err := c.newRule(ctx, n)
	if err != nil {
		return Rule{}, err
	}
	r.ID, r.CreatedAt, r.Hits, r.LastHitAt = was.ID, was.CreatedAt, was.Hits, was.LastHitAt
	gone := false // somebody has taken it back since it was looked at
	err = c.writeRules(ctx, func(tx *sql.Tx) error {
		if err := tx.QueryRowContext(ctx, `SELECT NOT EXISTS (SELECT 1 FROM rule WHERE id = ?)`, r.ID).Scan(&gone); err != nil || gone {
			return err
		}
		return saveRule(ctx, tx, r)
	})
	if err == nil && gone {
		err = fmt.Errorf("rule %s: %w", id, ErrNotFound)
	}
	if err != nil {
		return Rule{}, err
	}
	c.ruleIs(r)
	return r, nil
}

// over is the rule as it is to be.
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
				return n, bad("rule.expiry", "expiresAt", *p.ExpiresAt)
			}
			n.ExpiresAt = &Time{at}
		}
	}
	return n, nil
}

// RemoveRule takes a rule back. What it has answered stays answered, and stays told.
func (c *Client) RemoveRule(ctx context.Context, id string) error {
	if _, err := c.rule(ctx, id); err != nil {
		return err
	}
	err := c.writeRules(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM rule WHERE id = ?`, id)
		return err
	})
	if err == nil {
		c.feed.publish(Event{Type: eventRuleRemoved, Data: mustJSON(RuleRemoved{id})})
	}
	return err
}

func (c *Client) writeRules(ctx context.Context, f func(*sql.Tx) error) error {
	if err := c.ReadOnly(); err != nil {
		return err
	}
	err := c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM rule WHERE expires_at <> 0 AND expires_at <= ?`, millis(time.Now()))
		return errors.Join(err, f(tx))
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	return nil
}

// ruleIs tells of a rule that was written, and has every conversation that waits look again.
func (c *Client) ruleIs(r Rule) {
	c.feed.publish(Event{Type: eventRule, Data: mustJSON(r)})
	c.judgeAgain()
}

func saveRule(ctx context.Context, tx *sql.Tx, r Rule) error {
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
		r.ID, r.Effect, r.Scope, null(r.Session), null(r.workspace), r.Kind, r.Pattern, r.Note, optionalMillis(r.ExpiresAt), optionalMillis(r.CreatedAt), r.Hits, optionalMillis(r.LastHitAt))
	return err
}

// newRule checks what is to be a rule.
func (c *Client) newRule(ctx context.Context, n NewRule) (Rule, error) {
	pattern, err := rules.ParsePattern(rules.Kind(n.Kind), n.Pattern)
	var broken *rules.PatternError
	switch {
	case errors.As(err, &broken):
		return Rule{}, bad(broken.Code, "detail", broken.Detail, "pattern", n.Pattern)
	case n.Effect == "allow" && n.Kind == "any":
		return Rule{}, bad("rule.any_allows")
	case n.Effect == "allow" && pattern.Wide():
		return Rule{}, bad("rule.too_wide", "pattern", n.Pattern)
	case !slices.Contains([]string{"allow", "ask", "deny"}, n.Effect):
		return Rule{}, bad("rule.effect", "effect", n.Effect)
	case n.ExpiresAt != nil && !n.ExpiresAt.After(time.Now()):
		return Rule{}, bad("rule.expiry", "expiresAt", n.ExpiresAt.UTC().Format(timeLayout))
	case c.secret.text(n.Pattern) != n.Pattern:
		return Rule{}, bad("rule.secret")
	}
	now := Time{time.UnixMilli(time.Now().UnixMilli()).UTC()}
	r := Rule{
		ID: uuid.Must(uuid.NewV7()).String(), Effect: n.Effect, Scope: n.Scope, Kind: n.Kind, Pattern: pattern.Text, ExpiresAt: n.ExpiresAt,
		CreatedAt: &now, Note: strings.TrimSpace(c.secret.text(n.Note)), Text: ruleText(n.Kind, pattern.Text),
	}
	return r, c.scopeOf(ctx, n, &r)
}

// roomForRule refuses one more rule than anybody could look through.
func (c *Client) roomForRule(ctx context.Context) error {
	var count int
	err := c.cfg.Store.Read().QueryRowContext(ctx, `SELECT count(*) FROM rule WHERE expires_at = 0 OR expires_at > ?`, millis(time.Now())).Scan(&count)
	if err == nil && count >= maxRules {
		err = &RefusedError{Code: "rule.too_many", Params: map[string]string{"limit": strconv.Itoa(maxRules)}}
	}
	return err
}

// scopeOf finds what the rule is to apply to.
func (c *Client) scopeOf(ctx context.Context, n NewRule, r *Rule) error {
	db := c.cfg.Store.Read()
	switch n.Scope {
	case scopeEverywhere:
		return nil
	case scopeSession:
		err := db.QueryRowContext(ctx, `SELECT id FROM session WHERE id = ? AND deleted_at = 0`, n.Session).Scan(&r.Session)
		if errors.Is(err, sql.ErrNoRows) {
			return bad("rule.unknown_session", "session", n.Session)
		}
		return err
	case scopeDirectory:
		if n.Directory == "" {
			return bad("rule.unknown_directory", "directory", "")
		}
		err := db.QueryRowContext(ctx, `SELECT id, path, place FROM workspace WHERE path = ? AND place = ?`, cleanPath(n.Directory), orLocal(n.Place)).
			Scan(&r.workspace, &r.Directory, &r.Place)
		if errors.Is(err, sql.ErrNoRows) {
			return bad("rule.unknown_directory", "directory", n.Directory)
		}
		if r.Place == LocalPlace {
			r.Place = ""
		}
		return err
	}
	return bad("rule.scope", "scope", n.Scope)
}
