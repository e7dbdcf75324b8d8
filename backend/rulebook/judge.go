package rulebook

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"time"

	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/rules"
)

// Subject is the session in which something is judged.
type Subject struct {
	Session   string
	Title     string
	Workspace string // the id of its directory
	Path      string // of the workspace
	Place     string
	Where     rules.Where
}

// applying returns the rules that apply to a subject now, the narrowest first.
func (b *Book) applying(ctx context.Context, s Subject) ([]Rule, error) {
	return b.query(ctx, ` AND (r.scope = 'everywhere' OR r.session = ? OR r.workspace = ?)`, s.Session, s.Workspace)
}

// Decision is the answer of the rules to a permission.
type Decision struct {
	Rule   Rule
	Allows bool     // otherwise the permission is denied
	used   []string // the ids of the rules that count as hit
}

// Decide judges a permission by the rules. The answer is nil when a person is to be asked.
func (b *Book) Decide(ctx context.Context, s Subject, a Asked) *Decision {
	list, err := b.applying(ctx, s)
	if err != nil {
		b.cfg.Logger.Error("rules cannot be read", "session", s.Session, "error", err)
		return nil
	}
	compiled, broken := parsed(list)
	verdict := rules.Judge(b.read(a), s.Where, compiled)
	if verdict.Why != rules.ByRule || verdict.Effect == rules.Ask || verdict.Effect == rules.Allow && broken {
		return nil
	}
	rule, ok := named(list, verdict.Rule)
	if !ok {
		return nil
	}
	d := &Decision{Rule: rule, Allows: verdict.Effect == rules.Allow, used: verdict.Used}
	if !d.Allows {
		d.used = append([]string{verdict.Rule}, verdict.Used...)
	}
	return d
}

// named returns the rule with an id, which may be a built-in rule.
func named(list []Rule, id string) (Rule, bool) {
	all := append(slices.Clone(list), builtins()...)
	i := slices.IndexFunc(all, func(r Rule) bool { return r.ID == id })
	if i < 0 {
		return Rule{}, false
	}
	return all[i], true
}

// Denies returns the decision that denies a program, or nil when no rule denies the program. Nobody is asked about such a program: the agent
// has asked before. Whether a command without arguments is a program or a line for a shell is decided only when the command starts, so the
// command is judged as both.
func (b *Book) Denies(ctx context.Context, s Subject, command string, args []string, dir *string) *Decision {
	list, err := b.applying(ctx, s)
	if err != nil {
		b.cfg.Logger.Error("rules cannot be read", "session", s.Session, "error", err)
	}
	call := rules.Call{Kind: rules.Execute, Commands: []rules.Command{{Argv: append([]string{command}, args...)}}}
	if len(args) == 0 {
		call.Commands = append(call.Commands, rules.Command{Line: command})
	}
	if dir != nil {
		call.Dir = *dir
	}
	verdict := verdictOf(call, s.Where, list)
	rule, ok := named(list, verdict.Rule)
	if verdict.Effect != rules.Deny || !ok {
		return nil
	}
	return &Decision{Rule: rule, used: []string{rule.ID}}
}

func verdictOf(call rules.Call, where rules.Where, list []Rule) rules.Verdict {
	compiled, _ := parsed(list)
	return rules.Judge(call, where, compiled)
}

// Make returns the rule that an answer to a permission makes, without storing the rule. The rule has to cover the permission. rejects is
// true when the answer rejects the permission.
func (b *Book) Make(ctx context.Context, s Subject, a Asked, wish Remember, rejects bool) (Rule, error) {
	call := b.read(a)
	if call.Choice {
		return Rule{}, refusal.Bad("rule.choice")
	}
	effect := rules.Allow
	if rejects {
		effect = rules.Deny
	}
	list, err := b.applying(ctx, s)
	if err != nil {
		return Rule{}, err
	}
	compiled, _ := parsed(list)
	suggested := rules.Suggest(call, s.Where, effect, compiled)
	kind := mainKind(call)
	if wish.Pattern == "" {
		if len(suggested) == 0 || !suggested[0].Exact {
			return Rule{}, refusal.Bad("rule.no_pattern")
		}
		wish.Pattern, kind = suggested[0].Pattern, suggested[0].Kind
	} else if i := slices.IndexFunc(suggested, func(s rules.Suggestion) bool { return s.Pattern == wish.Pattern }); i >= 0 {
		kind = suggested[i].Kind
	}
	if dangers := rules.Dangers(call, s.Where); len(dangers) > 0 && effect == rules.Allow && wish.Scope == Everywhere {
		return Rule{}, refusal.Bad("rule.danger", "danger", strings.Join(dangers, " "))
	}
	pattern, err := rules.ParsePattern(kind, wish.Pattern)
	if err == nil && !rules.Matches(call, s.Where, effect, pattern) {
		return Rule{}, refusal.Bad("rule.not_covering", "pattern", wish.Pattern)
	}
	n := NewRule{Effect: string(effect), Scope: wish.Scope, Kind: string(kind), Pattern: wish.Pattern, ExpiresAt: wish.ExpiresAt}
	switch wish.Scope {
	case Session:
		n.Session = s.Session
	case Directory:
		n.Directory, n.Place = s.Path, s.Place
	}
	made, err := b.check(ctx, n)
	if err == nil {
		err = b.checkRoom(ctx)
	}
	return made, err
}

// mainKind returns the kind of a pattern for the call.
func mainKind(call rules.Call) rules.Kind {
	switch {
	case len(call.Commands) > 0:
		return rules.Execute
	case len(call.Hosts) > 0:
		return rules.Fetch
	}
	return call.Kind
}

// Uses collects the rules that a step of a session makes and uses, so that they are stored with the step. Write runs in the transaction of
// the step, Publish after the step is stored.
type Uses struct {
	book *Book
	made []Rule
	hits []string
}

// Uses returns an empty collection.
func (b *Book) Uses() *Uses { return &Uses{book: b} }

// Add has Write store a rule.
func (u *Uses) Add(r Rule) { u.made = append(u.made, r) }

// Hit has Write count the rules of a decision as used.
func (u *Uses) Hit(d *Decision) { u.hits = append(u.hits, d.used...) }

// Write stores the new rules and counts the used rules.
func (u *Uses) Write(ctx context.Context, tx *sql.Tx) error {
	for _, r := range u.made {
		if err := save(ctx, tx, r); err != nil {
			return err
		}
	}
	now := time.Now().UnixMilli()
	for _, id := range u.hits {
		if _, err := tx.ExecContext(ctx, `UPDATE rule SET hits = hits + 1, last_hit_at = ? WHERE id = ?`, now, id); err != nil {
			return err
		}
	}
	return nil
}

// Publish tells of the rules as they are stored now.
func (u *Uses) Publish(ctx context.Context) {
	ids := slices.Clone(u.hits)
	for _, r := range u.made {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	list, err := record.Query(ctx, u.book.cfg.Store.Read(), scan, `SELECT `+columns+from+` AND r.id IN (SELECT value FROM json_each(?))`,
		time.Now().UnixMilli(), string(record.JSON(slices.Compact(ids))))
	if err != nil && ctx.Err() == nil {
		u.book.cfg.Logger.Error("rules cannot be read", "error", err)
	}
	for _, r := range list {
		u.book.cfg.Publish(EventUpsert, r)
	}
	if len(u.made) > 0 {
		u.book.cfg.Changed()
	}
}
