package rulebook_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/permission"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/rulebook"
	"deskhand/backend/rules"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
)

const secret = "sk-0123456789abcdef0123"

// fixture is a Book over a database with two sessions: s1 in the workspace w1 at /one, s2 in w2 at /two.
type fixture struct {
	*rulebook.Book

	t       *testing.T
	db      *store.DB
	past    []rulebook.Permission // the permissions that are stored, the newest first
	told    []string              // the events that the Book has published
	changed int                   // how often the Book has asked to judge again
}

func open(t *testing.T, dir string) *fixture {
	t.Helper()
	db := storetest.Open(t, dir)
	f := &fixture{t: t, db: db}
	f.exec(`INSERT INTO workspace (id, place, path, device, inode, born, created_at) VALUES ('w1', 'local', '/one', 0, 0, 0, 0), ('w2', 'local', '/two', 0, 0, 0, 0)`)
	for i, workspace := range []string{"w1", "w2"} {
		f.exec(fmt.Sprintf(`INSERT INTO session (id, place, workspace, cwd, agent, title, title_by, labels, pinned, unread, draft, acp_session_id, protocol_version,
			generation, facts, exit, created_at, updated_at, archived_at) VALUES ('s%d', 'local', '%s', '', 'nova', '', '', '[]', 0, 0, '', '', 1, 1, '{}', '', 0, 0, 0)`, i+1, workspace))
	}
	f.Book = rulebook.New(rulebook.Config{
		Store: db, Logger: slog.New(slog.DiscardHandler), Hidden: "[hidden]", Cut: "[cut]",
		Writable: func() error { return nil },
		Redact:   func(text string) string { return strings.ReplaceAll(text, secret, "[hidden]") },
		Shorten:  func(text string) string { return text },
		Publish:  func(kind string, _ any) { f.told = append(f.told, kind) },
		Changed:  func() { f.changed++ },
		WorkspaceOf: func(_ context.Context, session string, _ bool) (string, error) {
			if session != "s1" && session != "s2" {
				return "", refusal.ErrNotFound
			}
			return "w" + session[1:], nil
		},
		Newest: func(_ context.Context, limit int) ([]rulebook.Permission, error) {
			return f.past[:min(limit, len(f.past))], nil
		},
		Find: func(_ context.Context, id string) (rulebook.Permission, error) {
			i := slices.IndexFunc(f.past, func(p rulebook.Permission) bool { return p.Request == id })
			if i < 0 {
				return rulebook.Permission{}, refusal.ErrNotFound
			}
			return f.past[i], nil
		},
	})
	return f
}

func opened(t *testing.T) *fixture {
	t.Helper()
	f := open(t, t.TempDir())
	t.Cleanup(f.close)
	return f
}

func (f *fixture) close() {
	if err := f.db.Close(); err != nil {
		f.t.Error(err)
	}
}

func (f *fixture) exec(statement string) {
	f.t.Helper()
	err := f.db.Write(context.Background(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(context.Background(), statement)
		return err
	})
	if err != nil {
		f.t.Fatalf("Exec(%q): got error %v, want none", statement, err)
	}
}

// rule makes a rule for commands; effect and pattern have to be named.
func (f *fixture) rule(n rulebook.NewRule) rulebook.Rule {
	f.t.Helper()
	if n.Scope == "" {
		n.Scope = rulebook.Everywhere
	}
	if n.Kind == "" {
		n.Kind = "execute"
	}
	r, err := f.Add(context.Background(), n)
	if err != nil {
		f.t.Fatalf("Add(%+v): %v", n, err)
	}
	return r
}

// made returns the patterns of the rules that a filter chooses, without the built-in rules.
func (f *fixture) made(filter rulebook.Filter) []string {
	f.t.Helper()
	list, err := f.List(context.Background(), filter)
	if err != nil {
		f.t.Fatalf("List(%+v): %v", filter, err)
	}
	patterns := []string{}
	for _, r := range list {
		if !r.Builtin {
			patterns = append(patterns, r.Pattern)
		}
	}
	return patterns
}

// subject returns the session s1 or s2 as the Book sees the session.
func subject(session string) rulebook.Subject {
	directory := map[string]string{"s1": "/one", "s2": "/two"}[session]
	return rulebook.Subject{Session: session, Workspace: "w" + session[1:], Path: directory, Place: "local", Where: rules.Where{Directory: directory, Home: "/home/nova"}}
}

func running(command string) rulebook.Asked {
	return rulebook.Asked{Told: true, Call: permission.Call{Kind: "execute", RawInput: record.JSON(map[string]string{"command": command})}}
}

func refusedAs(t *testing.T, what string, err error, code string) {
	t.Helper()
	if r, ok := errors.AsType[*refusal.Error](err); !ok || r.Code != code {
		t.Errorf("%s: got error %v, want the refusal %s", what, err, code)
	}
}

func TestRuleExpires(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := open(t, dir)
		f.rule(rulebook.NewRule{Effect: "allow", Pattern: "git diff"})
		f.rule(rulebook.NewRule{Effect: "allow", Pattern: "git status", ExpiresAt: &record.Time{Time: time.Now().Add(time.Hour)}})
		allowed := func(after time.Duration, want bool) {
			t.Helper()
			time.Sleep(after)
			if d := f.Decide(context.Background(), subject("s1"), running("git status")); (d != nil) != want {
				t.Errorf("Decide(git status): got %+v, want an answer = %v", d, want)
			}
		}
		allowed(0, true)
		allowed(time.Hour-time.Millisecond, true)
		allowed(time.Millisecond, false)
		f.rule(rulebook.NewRule{Effect: "allow", Pattern: "git log"})
		var stored int
		if err := f.db.Read().QueryRowContext(t.Context(), `SELECT count(*) FROM rule`).Scan(&stored); err != nil || stored != 2 {
			t.Errorf("got %d stored rules, %v, want 2: a write deletes the expired rule", stored, err)
		}
		f.close()
	})
}

func TestAddRefusesContentThatIsNoRule(t *testing.T) {
	f := opened(t)
	past := record.Time{Time: time.Now().Add(-time.Second)}
	for _, tc := range []struct {
		rule rulebook.NewRule
		code string
	}{
		{rulebook.NewRule{Effect: "allow", Scope: "everywhere", Kind: "execute", Pattern: "a; b"}, "rule.pattern"},
		{rulebook.NewRule{Effect: "allow", Scope: "everywhere", Kind: "nosuch", Pattern: "a"}, "rule.kind"},
		{rulebook.NewRule{Effect: "nosuch", Scope: "everywhere", Kind: "execute", Pattern: "a"}, "rule.effect"},
		{rulebook.NewRule{Effect: "allow", Scope: "nosuch", Kind: "execute", Pattern: "a"}, "rule.scope"},
		{rulebook.NewRule{Effect: "allow", Scope: "everywhere", Kind: "execute", Pattern: "*"}, "rule.too_wide"},
		{rulebook.NewRule{Effect: "allow", Scope: "everywhere", Kind: "any", Pattern: "*"}, "rule.any_allows"},
		{rulebook.NewRule{Effect: "allow", Scope: "session", Session: "nosuch", Kind: "execute", Pattern: "a"}, "rule.unknown_session"},
		{rulebook.NewRule{Effect: "allow", Scope: "directory", Directory: "/nosuch", Kind: "execute", Pattern: "a"}, "rule.unknown_directory"},
		{rulebook.NewRule{Effect: "allow", Scope: "directory", Kind: "execute", Pattern: "a"}, "rule.unknown_directory"},
		{rulebook.NewRule{Effect: "allow", Scope: "directory", Directory: "/one", Place: "nosuch", Kind: "execute", Pattern: "a"}, "rule.unknown_directory"},
		{rulebook.NewRule{Effect: "allow", Scope: "everywhere", Kind: "execute", Pattern: "a", ExpiresAt: &past}, "rule.expiry"},
		{rulebook.NewRule{Effect: "allow", Scope: "everywhere", Kind: "execute", Pattern: "curl " + secret}, "rule.secret"},
	} {
		_, err := f.Add(t.Context(), tc.rule)
		refusedAs(t, fmt.Sprintf("Add(%+v)", tc.rule), err, tc.code)
	}
	if got := f.made(rulebook.Filter{}); len(got) != 0 || len(f.told) != 0 {
		t.Errorf("got the rules %q and the events %q after refusals, want none", got, f.told)
	}
}

func TestListChoosesRulesByScope(t *testing.T) {
	f := opened(t)
	f.rule(rulebook.NewRule{Effect: "allow", Scope: "session", Session: "s1", Pattern: "make one"})
	f.rule(rulebook.NewRule{Effect: "allow", Scope: "directory", Directory: "/two/", Pattern: "make two"})
	f.rule(rulebook.NewRule{Effect: "deny", Pattern: "make all"})
	for filter, want := range map[rulebook.Filter][]string{
		{}:                                      {"make one", "make two", "make all"},
		{Session: "s1"}:                         {"make one", "make all"},
		{Session: "s2"}:                         {"make two", "make all"},
		{Directory: "/two"}:                     {"make two", "make all"},
		{Directory: "/one"}:                     {"make all"},
		{Directory: "/two", Place: "elsewhere"}: {"make all"},
	} {
		if got := f.made(filter); !slices.Equal(got, want) {
			t.Errorf("List(%+v): got %q, want %q", filter, got, want)
		}
	}
	if f.changed != 3 {
		t.Errorf("got %d times that what waits is judged again, want 3", f.changed)
	}
	if err := f.db.Write(t.Context(), func(tx *sql.Tx) error { return rulebook.MoveWorkspace(t.Context(), tx, "w2", "w1") }); err != nil {
		t.Fatal(err)
	}
	if got, want := f.made(rulebook.Filter{Directory: "/one"}), []string{"make two", "make all"}; !slices.Equal(got, want) {
		t.Errorf("after MoveWorkspace: got %q, want %q", got, want)
	}
}

func TestDecideAnswersInScope(t *testing.T) {
	f := opened(t)
	ctx := t.Context()
	f.rule(rulebook.NewRule{Effect: "allow", Scope: "session", Session: "s1", Pattern: "make one"})
	f.rule(rulebook.NewRule{Effect: "allow", Scope: "directory", Directory: "/two", Pattern: "make two"})
	f.rule(rulebook.NewRule{Effect: "deny", Pattern: "make all"})
	f.rule(rulebook.NewRule{Effect: "ask", Pattern: "make ask"})
	f.rule(rulebook.NewRule{Effect: "allow", Pattern: "make ask"})
	with := func(a rulebook.Asked, change func(*rulebook.Asked)) rulebook.Asked {
		change(&a)
		return a
	}
	for _, tc := range []struct {
		name    string
		subject rulebook.Subject
		asked   rulebook.Asked
		want    string // "" = a person is asked
	}{
		{"the session of a rule", subject("s1"), running("make one"), "allow"},
		{"another session", subject("s2"), running("make one"), ""},
		{"the directory of a rule", subject("s2"), running("make two"), "allow"},
		{"another directory", subject("s1"), running("make two"), ""},
		{"a rule for everywhere", subject("s2"), running("make all"), "deny"},
		{"a rule that asks goes before one that allows", subject("s1"), running("make ask"), ""},
		{"a built-in rule", subject("s1"), running("rm -rf ~"), "deny"},
		{"no tool call", subject("s1"), rulebook.Asked{}, ""},
		{"a choice", subject("s1"), with(running("make one"), func(a *rulebook.Asked) { a.Choice = true }), ""},
		{"a call that was cut off", subject("s1"), with(running("make one"), func(a *rulebook.Asked) { a.Clipped = true }), ""},
		{"a secret in the command", subject("s1"), running("make one [hidden]"), ""},
		{"a title that lies", subject("s1"), with(running("make one"), func(a *rulebook.Asked) { a.Title = "`make two`" }), ""},
	} {
		got := ""
		if d := f.Decide(ctx, tc.subject, tc.asked); d != nil {
			got = d.Rule.Effect
		}
		if got != tc.want {
			t.Errorf("%s: got %q, want %q", tc.name, got, tc.want)
		}
	}
}

func TestUsesStoreNewRulesAndCountHits(t *testing.T) {
	f := opened(t)
	ctx := t.Context()
	hit := f.rule(rulebook.NewRule{Effect: "deny", Pattern: "make all"})
	rule, err := f.Make(ctx, subject("s1"), running("make test"), rulebook.Remember{Scope: rulebook.Directory}, false)
	if err != nil || rule.Pattern != "make test" || rule.Directory != "/one" || rule.Effect != "allow" {
		t.Fatalf("Make: got %+v, %v, want a rule that allows make test in /one", rule, err)
	}
	uses := f.Uses()
	uses.Add(rule)
	uses.Hit(f.Decide(ctx, subject("s1"), running("make all")))
	uses.Hit(f.Denies(ctx, subject("s1"), "make", []string{"all"}, nil))
	f.told, f.changed = nil, 0
	if err := f.db.Write(ctx, func(tx *sql.Tx) error { return uses.Write(ctx, tx) }); err != nil {
		t.Fatal(err)
	}
	uses.Publish(ctx)
	list, err := f.List(ctx, rulebook.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	hits := map[string]int64{}
	for _, r := range list {
		hits[r.ID] = r.Hits
	}
	if _, stored := hits[rule.ID]; !stored || hits[hit.ID] != 2 {
		t.Errorf("got the rules %+v, want the new one, and 2 hits of %s", list, hit.ID)
	}
	if want := []string{rulebook.EventUpsert, rulebook.EventUpsert}; !slices.Equal(f.told, want) || f.changed != 1 {
		t.Errorf("got the events %q and %d changes, want %q and 1", f.told, f.changed, want)
	}
	if d := f.Denies(ctx, subject("s1"), "make test", nil, nil); d != nil {
		t.Errorf("Denies(make test): got %+v, want nil", d)
	}
}

func TestMakeRefusesRulesBeyondTheRequest(t *testing.T) {
	f := opened(t)
	choice := running("make all")
	choice.Choice = true
	for _, tc := range []struct {
		asked rulebook.Asked
		wish  rulebook.Remember
		code  string
	}{
		{choice, rulebook.Remember{Scope: "session"}, "rule.choice"},
		{running("make all"), rulebook.Remember{Scope: "session", Pattern: "git *"}, "rule.not_covering"},
		{running("sudo make all"), rulebook.Remember{Scope: "everywhere"}, "rule.danger"},
		{running("make all $X"), rulebook.Remember{Scope: "everywhere"}, "rule.no_pattern"},
	} {
		_, err := f.Make(t.Context(), subject("s1"), tc.asked, tc.wish, false)
		refusedAs(t, fmt.Sprintf("Make(%s, %+v)", tc.asked.RawInput, tc.wish), err, tc.code)
	}
}

func TestSimulateCountsPermissionsDecidedOtherwise(t *testing.T) {
	f := opened(t)
	old := f.rule(rulebook.NewRule{Effect: "allow", Pattern: "make lint"})
	for i, command := range []string{"npm publish", "make test", "make all", "make lint"} {
		f.past = append(f.past, rulebook.Permission{Request: fmt.Sprint("r", i), Asked: running(command), Subject: subject("s1")})
	}
	for _, tc := range []struct {
		name     string
		rule     rulebook.NewRule
		replaces string
		limit    int
		counts   rulebook.SimulatedCounts
		open     bool
	}{
		{"a rule that allows more", rulebook.NewRule{Effect: "allow", Scope: "everywhere", Pattern: "make *"}, "", 200, rulebook.SimulatedCounts{Allow: 2, Unchanged: 2}, true},
		{"a rule that denies", rulebook.NewRule{Effect: "deny", Scope: "everywhere", Pattern: "make *"}, "", 200, rulebook.SimulatedCounts{Deny: 3, Unchanged: 1}, false},
		{"a change does not count beside itself", rulebook.NewRule{Effect: "allow", Scope: "everywhere", Pattern: "make all"}, old.ID, 200, rulebook.SimulatedCounts{Allow: 1, Ask: 1, Unchanged: 2}, false},
		{"the newest alone", rulebook.NewRule{Effect: "allow", Scope: "session", Session: "s1", Pattern: "make all"}, "", 1, rulebook.SimulatedCounts{Unchanged: 1}, false},
		{"another session", rulebook.NewRule{Effect: "deny", Scope: "session", Session: "s2", Pattern: "make all"}, "", 200, rulebook.SimulatedCounts{Unchanged: 4}, false},
	} {
		tc.rule.Kind = "execute"
		got, err := f.Simulate(t.Context(), tc.rule, tc.replaces, tc.limit)
		if err != nil || got.Counts != tc.counts || got.Open != tc.open || got.Looked != min(tc.limit, 4) {
			t.Errorf("%s: got %+v, %v, want %+v, open = %v", tc.name, got, err, tc.counts, tc.open)
		}
	}
	rule := rulebook.NewRule{Effect: "allow", Scope: "everywhere", Kind: "execute", Pattern: "make *"}
	got, err := f.Simulate(t.Context(), rule, "", 200)
	if err != nil || len(got.Items) != 2 || got.Items[0].Command != "make test" || got.Items[0].Was != "ask" || got.Items[0].Would != "allow" || got.Items[0].By != "" || got.Items[0].Session != "s1" {
		t.Errorf("got the items %+v, %v, want make test of s1, asked before and allowed now", got.Items, err)
	}
	if _, err := f.Simulate(t.Context(), rule, "nosuch", 1); !errors.Is(err, refusal.ErrNotFound) {
		t.Errorf("a change of no rule: got error %v, want %v", err, refusal.ErrNotFound)
	}
	rule.Pattern = "a;b"
	_, err = f.Simulate(t.Context(), rule, "", 1)
	refusedAs(t, "Simulate(a;b)", err, "rule.pattern")
	if got := f.made(rulebook.Filter{}); len(got) != 1 {
		t.Errorf("got the rules %q after simulations, want the old one alone", got)
	}
}

func TestSuggestOffersNothingDangerousEverywhere(t *testing.T) {
	f := opened(t)
	f.past = []rulebook.Permission{{Request: "sudo", Asked: running("sudo make all"), Subject: subject("s1")}, {Request: "plain", Asked: running("make all"), Subject: subject("s1")}, {Request: "none"}}
	for request, want := range map[string]struct {
		danger     []string
		everywhere bool
		some       bool
	}{"sudo": {[]string{"sudo"}, false, true}, "plain": {nil, true, true}, "none": {nil, false, false}} {
		got, err := f.Suggest(t.Context(), request)
		everywhere := slices.ContainsFunc(got.Suggestions, func(s rulebook.RuleSuggestion) bool { return s.Effect == "allow" && s.Scope == rulebook.Everywhere })
		if err != nil || !slices.Equal(got.Danger, want.danger) || everywhere != want.everywhere || (len(got.Suggestions) > 0) != want.some {
			t.Errorf("Suggest(%s): got %+v, %v, want %+v", request, got, err, want)
		}
	}
	if _, err := f.Suggest(t.Context(), "nosuch"); !errors.Is(err, refusal.ErrNotFound) {
		t.Errorf("Suggest(nosuch): got error %v, want %v", err, refusal.ErrNotFound)
	}
}

func TestChangeAppliesPatchAndKeepsHits(t *testing.T) {
	f := opened(t)
	ctx := t.Context()
	r := f.rule(rulebook.NewRule{Effect: "allow", Pattern: "make lint"})
	f.exec(`UPDATE rule SET hits = 3`)
	pattern, ask, soon, never, wrong := "make all", "ask", time.Now().Add(time.Hour).Format(time.RFC3339), "", "tomorrow"
	got, err := f.Change(ctx, r.ID, rulebook.RulePatch{Pattern: &pattern, Effect: &ask, ExpiresAt: &soon})
	if err != nil || got.Pattern != pattern || got.Effect != ask || got.ExpiresAt == nil || got.Hits != 3 || got.ID != r.ID || got.Scope != r.Scope {
		t.Errorf("Change: got %+v, %v, want %s that asks, with 3 hits", got, err, pattern)
	}
	if got, err = f.Change(ctx, r.ID, rulebook.RulePatch{ExpiresAt: &never}); err != nil || got.ExpiresAt != nil || got.Pattern != pattern {
		t.Errorf("Change to never expire: got %+v, %v", got, err)
	}
	_, err = f.Change(ctx, r.ID, rulebook.RulePatch{ExpiresAt: &wrong})
	refusedAs(t, "Change(tomorrow)", err, "rule.expiry")
	_, err = f.Change(ctx, "builtin:shutdown", rulebook.RulePatch{Effect: &ask})
	refusedAs(t, "Change(builtin:shutdown)", err, "rule.builtin")
	refusedAs(t, "Remove(builtin:shutdown)", f.Remove(ctx, "builtin:shutdown"), "rule.builtin")
}

// A rule that is removed while a change of the rule is under way stays removed.
func TestChangeComesTooLateForRemovedRule(t *testing.T) {
	f := opened(t)
	r := f.rule(rulebook.NewRule{Effect: "allow", Pattern: "make lint"})
	// A change first deletes the expired rules: the trigger removes the rule at that moment.
	f.exec(`INSERT INTO rule VALUES ('expired', 'allow', 'everywhere', NULL, NULL, 'execute', 'make x', '', 1, 0, 0, 0);
		CREATE TRIGGER meanwhile AFTER DELETE ON rule WHEN old.id = 'expired' BEGIN DELETE FROM rule WHERE id <> 'expired'; END`)
	pattern := "make all"
	if _, err := f.Change(t.Context(), r.ID, rulebook.RulePatch{Pattern: &pattern}); !errors.Is(err, refusal.ErrNotFound) {
		t.Errorf("Change: got error %v, want %v", err, refusal.ErrNotFound)
	}
	if got := f.made(rulebook.Filter{}); len(got) != 0 {
		t.Errorf("got the rules %q, want none: the removed rule must not come back", got)
	}
}

func TestBookHoldsAtMostThousandRules(t *testing.T) {
	f := opened(t)
	ctx := t.Context()
	r := f.rule(rulebook.NewRule{Effect: "allow", Pattern: "make lint"})
	f.exec(`WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
		INSERT INTO rule SELECT printf('r%d', i), 'allow', 'everywhere', NULL, NULL, 'execute', 'make x', '', 0, 0, 0, 0 FROM n`)
	one := rulebook.NewRule{Effect: "allow", Scope: "everywhere", Kind: "execute", Pattern: "make all"}
	_, err := f.Add(ctx, one)
	refusedAs(t, "Add of rule 1001", err, "rule.too_many")
	if _, err := f.Simulate(ctx, one, r.ID, 10); err != nil {
		t.Errorf("Simulate of a change: got error %v, want none", err)
	}
	if _, err := f.Change(ctx, r.ID, rulebook.RulePatch{Pattern: &one.Pattern}); err != nil {
		t.Errorf("Change: got error %v, want none", err)
	}
	if err := f.Remove(ctx, r.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Add(ctx, one); err != nil {
		t.Errorf("Add after Remove: got error %v, want none", err)
	}
}
