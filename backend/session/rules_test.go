package session_test

import (
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"deskhand/backend/feed"
	"deskhand/backend/requests"
	"deskhand/backend/rulebook"
	"deskhand/backend/session"
	"deskhand/backend/storetest"
	"deskhand/backend/transcript"
)

// permit returns a step that asks for permission; change may add to the tool call, or replace its options.
func permit(tool map[string]any, options ...string) step {
	call := map[string]any{"toolCallId": "t", "title": "Something", "kind": "execute"}
	maps.Copy(call, tool)
	if len(options) == 0 {
		options = []string{"allow_always", "allow_once", "reject_once"}
	}
	var list []map[string]any
	for i, kind := range options {
		list = append(list, map[string]any{"optionId": fmt.Sprintf("%s-%d", kind, i), "name": kind, "kind": kind})
	}
	return step{Ask: "session/request_permission", Params: map[string]any{"toolCall": call, "options": list}}
}

func commanding(command string) map[string]any {
	return map[string]any{"title": "`" + command + "`", "rawInput": map[string]any{"command": command}}
}

func (d *desk) rule(n rulebook.NewRule) rulebook.Rule {
	d.t.Helper()
	if n.Scope == "" {
		n.Scope = "everywhere"
	}
	if n.Kind == "" {
		n.Kind = "execute"
	}
	r, err := d.Rules().Add(d.t.Context(), n)
	if err != nil {
		d.t.Fatal(err)
	}
	return r
}

func (d *desk) rules(f rulebook.Filter) []rulebook.Rule {
	d.t.Helper()
	list, err := d.Rules().List(d.t.Context(), f)
	if err != nil {
		d.t.Fatal(err)
	}
	return slices.DeleteFunc(list, func(r rulebook.Rule) bool { return r.Builtin })
}

func (d *desk) waiting() []requests.Request {
	d.t.Helper()
	list, err := d.Requests().Waiting(d.t.Context())
	if err != nil {
		d.t.Fatal(err)
	}
	return list
}

// chosen returns the option in the agent's answer.
func chosen(a answer) string {
	var m struct {
		Outcome struct{ Outcome, OptionID string } `json:"outcome"`
	}
	_ = json.Unmarshal(a.Result, &m)
	return m.Outcome.OptionID
}

func ruleEntries(tr session.Transcript) (list []transcript.RuleAnswer) {
	for _, e := range tr.Items {
		if e.Kind == "rule" {
			list = append(list, *e.Rule)
		}
	}
	return list
}

func TestRuleAnswersBeforeAnybodySeesRequest(t *testing.T) {
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	allow := d.rule(rulebook.NewRule{Effect: "allow", Pattern: "git status"})
	deny := d.rule(rulebook.NewRule{Effect: "deny", Pattern: "git push --force*", Note: "never"})
	d.ready(id)
	unread := false
	if _, err := d.Change(t.Context(), id, session.Patch{Unread: &unread}); err != nil {
		t.Fatal(err)
	}
	after := d.lastSeq()
	got := d.steps(id, permit(commanding("git status")), permit(commanding("git push --force origin")), permit(commanding("rm -rf ~")))
	if chosen(got[0]) != "allow_once-1" || chosen(got[1]) != "reject_once-2" || chosen(got[2]) != "reject_once-2" {
		t.Fatalf("answers of the rules: got %+v, want git status allowed, the push and rm -rf rejected", got)
	}
	tr := d.transcript(id)
	told := ruleEntries(tr)
	if len(told) != 3 || told[0].ID != allow.ID || told[0].Effect != "allow" || told[0].OptionID != "allow_once-1" || told[0].Scope != "everywhere" || told[0].Title != "`git status`" ||
		told[1].ID != deny.ID || told[1].Effect != "deny" || told[2].ID != "builtin:remove_all" || !told[2].Builtin {
		t.Errorf("answers in the transcript: got %+v, want the rules %s, %s and builtin:remove_all", told, allow.ID, deny.ID)
	}
	for i, status := range []string{"answered", "rejected", "rejected"} {
		r := tr.Requests[i]
		if r.Status != status || r.AnsweredBy != "rule" || r.Rule == nil || r.Rule.ID != told[i].ID || r.ResolvedAt == nil || r.ID != told[i].Request {
			t.Errorf("request %d: got %+v, want it %s by rule %s", i, r, status, told[i].ID)
		}
	}
	for _, e := range d.since(after) {
		var s session.Session
		if e.Type == "session.upsert" && json.Unmarshal(e.Data, &s) == nil && s.Waiting > 0 {
			t.Errorf("somebody is asked: %+v", s)
		}
		var r requests.Request
		if e.Type == "request.upsert" && json.Unmarshal(e.Data, &r) == nil && r.Status == "requested" {
			t.Errorf("somebody sees it wait: %+v", r)
		}
	}
	hits := map[string]int64{}
	for _, r := range d.rules(rulebook.Filter{}) {
		hits[r.ID] = r.Hits
		if r.LastHitAt == nil {
			t.Errorf("rule %s: got %+v, want a time of its last hit", r.ID, r)
		}
	}
	if hits[allow.ID] != 1 || hits[deny.ID] != 1 {
		t.Errorf("hits: got %v, want one of %s and one of %s", hits, allow.ID, deny.ID)
	}
	d.sameAsRebuilt(id)

	// After the rule is removed its answers stay told, and the next permission waits for a person.
	if err := d.Rules().Remove(t.Context(), allow.ID); err != nil {
		t.Fatal(err)
	}
	if err := d.Rules().Remove(t.Context(), allow.ID); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("Remove(%s) a second time = %v, want ErrNotFound", allow.ID, err)
	}
	refused(t, d.Rules().Remove(t.Context(), "builtin:remove_all"), "rule.builtin")
	d.begin(id, permit(commanding("git status")))
	d.answer(d.request(id), requests.Answer{OptionID: "reject_once-2"})
	if tr := d.idle(id); len(ruleEntries(tr)) != 3 {
		t.Errorf("answers after the rule was removed: got %+v, want the 3 of before", ruleEntries(tr))
	}
	d.sameAsRebuilt(id)
}

// An agent that numbers its calls anew in each turn asks for a call that it has not reported: no rule answers by the call with that id in
// an earlier turn, and a person is not shown that call.
func TestRuleIgnoresToolCallOfAnotherTurn(t *testing.T) {
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	d.rule(rulebook.NewRule{Effect: "allow", Pattern: "npm test"})
	d.ready(id)
	begun := step{Update: json.RawMessage(`{"sessionUpdate":"tool_call","toolCallId":"1","title":"Test","kind":"execute","status":"in_progress","rawInput":{"command":"npm test"}}`)}
	goesOn := step{Update: json.RawMessage(`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"in_progress"}`)}
	asked := permit(nil)
	asked.Params["toolCall"] = map[string]any{"toolCallId": "1"}
	if got := d.steps(id, begun, asked); chosen(got[0]) != "allow_once-1" { // within a turn the reported call counts
		t.Errorf("call of the same turn: got %+v, want it allowed", got)
	}
	for name, steps := range map[string][]step{"cut off": {asked}, "going on": {goesOn, asked}} {
		d.steps(id, begun)
		d.begin(id, steps...)
		r := d.request(id)
		if r.Tool == nil || r.Tool.RawInput != nil || r.Title == "Test" || r.ToolCallID != "1" {
			t.Errorf("%s: got request %+v, want call 1 without the command of the turn before", name, r)
		}
		d.answer(r, requests.Answer{OptionID: "reject_once-2"})
		d.idle(id)
	}
	d.sameAsRebuilt(id)
}

// Text that a hostile agent sends beside the command does not count, and a call that is not shown whole is not allowed.
func TestRuleJudgesOnlyTheCommandThatRuns(t *testing.T) {
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	d.rule(rulebook.NewRule{Effect: "allow", Pattern: "git status"})
	d.rule(rulebook.NewRule{Effect: "allow", Kind: "read", Pattern: "**"})
	d.rule(rulebook.NewRule{Effect: "allow", Kind: "edit", Pattern: "src/**"})
	d.rule(rulebook.NewRule{Effect: "allow", Kind: "search", Pattern: "**"})
	d.rule(rulebook.NewRule{Effect: "allow", Kind: "other", Pattern: "*"})
	d.rule(rulebook.NewRule{Effect: "allow", Kind: "fetch", Pattern: "docs.example.com"})
	raw := func(v map[string]any) map[string]any { return v }
	edit := func(paths ...string) map[string]any {
		content := []any{}
		for _, p := range paths[1:] {
			content = append(content, map[string]any{"type": "diff", "path": p, "oldText": "a", "newText": "b"})
		}
		return map[string]any{"kind": "edit", "rawInput": map[string]any{"path": paths[0]}, "content": content}
	}
	deep := strings.Repeat("[", 900) + strings.Repeat("]", 900)
	deepest := strings.Repeat("[", 980) + strings.Repeat("]", 980) // the structure around the value makes it too deep
	tooDeep := strings.Repeat("[", 9980) + strings.Repeat("]", 9980)
	if err := os.MkdirAll(filepath.Join(d.work, "src"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(d.dir, filepath.Join(d.work, "src", "link")); err != nil {
		t.Fatal(err)
	}
	in := func(name string) string { return filepath.Join(d.work, name) }
	patching := func(patch string) map[string]any {
		return map[string]any{"kind": "edit", "rawInput": map[string]any{"input": "*** Begin Patch\n*** Update File: src/a\n" + patch}}
	}
	searching := func(path, pattern string) map[string]any {
		return map[string]any{"kind": "search", "rawInput": map[string]any{"path": path, "pattern": pattern}}
	}
	const allowed, asked, denied = "allow", "ask", "deny"
	for i, tc := range []struct {
		name    string
		tool    map[string]any
		options []string
		want    string
	}{
		{"a command", commanding("git status"), nil, allowed},
		{"arguments", raw(map[string]any{"rawInput": map[string]any{"command": []string{"git", "status"}}}), nil, allowed},
		{"a shell's arguments", raw(map[string]any{"rawInput": map[string]any{"command": []string{"bash", "-lc", "git status"}, "cwd": d.work}}), nil, allowed},
		{"a title that lies", raw(map[string]any{"title": "`git status`", "rawInput": map[string]any{"command": "nosuch"}}), nil, asked},
		{"a title that lies worse", raw(map[string]any{"title": "git status", "rawInput": map[string]any{"command": "rm -rf ~"}}), nil, denied},
		{"another command than the title has", raw(map[string]any{"title": "`git diff`", "rawInput": map[string]any{"command": "git status"}}), nil, asked},
		{"nothing but a title", raw(map[string]any{"title": "git status"}), nil, asked},
		{"nothing but a text", raw(map[string]any{"title": "git status", "content": []any{map[string]any{"type": "content", "content": map[string]any{"type": "text", "text": "git status"}}}}), nil, asked},
		{"two commands", raw(map[string]any{"rawInput": map[string]any{"command": "git status", "script": "nosuch"}}), nil, asked},
		{"two commands, a bad one", raw(map[string]any{"rawInput": map[string]any{"command": "git status", "cmd": "rm -rf /"}}), nil, denied},
		{"in capital letters", raw(map[string]any{"rawInput": map[string]any{"Command": "git status"}}), nil, asked},
		{"a bare text", raw(map[string]any{"rawInput": "git status"}), nil, asked},
		{"a bad bare text", raw(map[string]any{"rawInput": "rm -rf ~"}), nil, denied},
		{"arguments beside it", raw(map[string]any{"rawInput": map[string]any{"command": "git status", "args": []string{"x"}}}), nil, asked},
		{"an environment", raw(map[string]any{"rawInput": map[string]any{"command": "git status", "env": map[string]any{"PATH": "/tmp"}}}), nil, asked},
		{"elsewhere", raw(map[string]any{"rawInput": map[string]any{"command": "git status", "cwd": d.dir}}), nil, asked},
		{"called a read", raw(map[string]any{"kind": "read", "rawInput": map[string]any{"command": "nosuch", "path": in("a")}}), nil, asked},
		{"called a read, and bad", raw(map[string]any{"kind": "read", "rawInput": map[string]any{"command": "rm -rf ~"}}), nil, denied},
		{"called another", raw(map[string]any{"kind": "other", "name": "x", "rawInput": map[string]any{"command": "nosuch"}}), nil, asked},
		{"a secret in it", commanding("git status sk-0123456789abcdef0123"), nil, asked},
		{"deep", raw(map[string]any{"rawInput": json.RawMessage(`{"command":"git status","x":` + deep + `}`)}), nil, allowed},
		{"too deep to be read", raw(map[string]any{"rawInput": json.RawMessage(`{"command":"git status","x":` + deepest + `}`)}), nil, asked},
		{"much too deep to be read", raw(map[string]any{"rawInput": json.RawMessage(`{"command":"git status","x":` + tooDeep + `}`)}), nil, asked},
		{"a mebibyte", commanding("git status " + strings.Repeat("x", 1<<20)), nil, asked},
		{"a read", raw(map[string]any{"kind": "read", "locations": []any{map[string]any{"path": in("a")}}}), nil, allowed},
		{"a read elsewhere", raw(map[string]any{"kind": "read", "rawInput": map[string]any{"path": in("a")}, "locations": []any{map[string]any{"path": "/etc/hostname"}}}), nil, asked},
		{"a read that changes", raw(map[string]any{"kind": "read", "rawInput": map[string]any{"path": in("b")}, "content": []any{map[string]any{"type": "diff", "path": in("b"), "newText": "x"}}}), nil, asked},
		{"an edit", edit(in("src/a"), in("src/a")), nil, allowed},
		{"an edit of two", edit(in("src/a"), in("src/a"), in("b")), nil, asked},
		{"an edit through a link", edit(in("src/link/x")), nil, asked},
		{"an edit with a patch", raw(map[string]any{"kind": "edit", "rawInput": map[string]any{"input": "*** Begin Patch\n*** Update File: src/a\n*** Move to: b\n"}}), nil, asked},
		{"an edit with a patch in src", patching("+x\n"), nil, allowed},
		{"an edit with a patch that is indented", patching("+x\n  *** Update File: b\n"), nil, asked},
		{"an edit with a patch of which not all is kept", patching(strings.Repeat("+x\n", 40_000) + "*** Update File: b\n"), nil, asked},
		{"a search", searching("", "x"), nil, allowed},
		{"a search in a directory", searching(in("src"), "**/*.go"), nil, allowed},
		{"a search elsewhere", searching("", "/etc/*"), nil, asked},
		{"a search in a directory and elsewhere", searching(in("src"), "/etc/*"), nil, asked},
		{"a search at home", searching("", "~/**"), nil, asked},
		{"a search above", searching(in("src"), "../../*"), nil, asked},
		{"a search in one of two", searching("", "{src,/etc}/*"), nil, asked},
		{"an edit of changes", raw(map[string]any{"kind": "edit", "rawInput": map[string]any{"changes": map[string]any{in("src/a"): map[string]any{}}}}), nil, allowed},
		{"an edit of nothing", raw(map[string]any{"kind": "edit", "title": "src/a"}), nil, asked},
		{"an address", raw(map[string]any{"kind": "fetch", "rawInput": map[string]any{"url": "https://docs.example.com/x"}}), nil, allowed},
		{"an address that pretends", raw(map[string]any{"kind": "fetch", "rawInput": map[string]any{"url": "https://docs.example.com@evil.example/x"}}), nil, asked},
		{"a file as an address", raw(map[string]any{"kind": "fetch", "rawInput": map[string]any{"url": "file:///etc/passwd"}}), nil, asked},
		{"a tool", raw(map[string]any{"kind": "other", "name": "mcp__a__b"}), nil, allowed},
		{"a plan", raw(map[string]any{"kind": "switch_mode", "rawInput": map[string]any{"plan": "x"}}), nil, asked},
		{"a plan of another kind", raw(map[string]any{"kind": "other", "rawInput": map[string]any{"plan": "x"}}), nil, asked},
		{"questions", raw(map[string]any{"kind": "other", "rawInput": map[string]any{"questions": []any{}}}), nil, asked},
		{"options of other kinds", commanding("git status"), []string{"allow_once", "reject_once", "other"}, asked},
		{"a choice", commanding("git status"), []string{"allow_once", "allow_once", "reject_once"}, asked},
		{"a choice of a bad one", commanding("rm -rf ~"), []string{"allow_once", "allow_once", "reject_once"}, asked},
		{"only for ever", commanding("git status"), []string{"allow_always", "reject_once"}, asked},
		{"only for ever, and bad", commanding("rm -rf ~"), []string{"allow_once", "reject_always"}, asked},
	} {
		s := permit(tc.tool, tc.options...)
		s.Params["toolCall"].(map[string]any)["toolCallId"] = fmt.Sprint("t", i)
		d.begin(id, s)
		got := ""
		d.until("an answer or a request", func() bool {
			tr := d.transcript(id)
			if n := len(tr.Requests); n == 0 || n <= i {
				return false
			}
			r := tr.Requests[i]
			got = map[string]string{"requested": asked, "answered": allowed, "rejected": denied}[r.Status]
			return true
		})
		if got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
		if got == asked {
			r := d.request(id)
			d.answer(r, requests.Answer{OptionID: r.Options[len(r.Options)-1].ID})
		}
		d.idle(id)
	}
	d.sameAsRebuilt(id)
}

func TestRememberAnswersAllThatWait(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	steps := make([]step, 0, 210)
	for i := range 100 {
		s := permit(commanding(fmt.Sprint("npm run build-", i)))
		s.Params["toolCall"].(map[string]any)["toolCallId"] = fmt.Sprint("t", i)
		s.As = fmt.Sprint("a", i)
		steps = append(steps, s)
	}
	other := permit(commanding("npm publish"))
	other.As = "other"
	steps = append(steps, other)
	for i := range 100 {
		steps = append(steps, step{Await: fmt.Sprint("a", i)})
	}
	d.begin(id, append(steps, step{Await: "other"})...)
	d.until("all of them", func() bool { return len(d.waiting()) == 101 })
	first := d.waiting()[0]
	list, err := d.Rules().Suggest(t.Context(), first.ID)
	if err != nil || len(list.Danger) > 0 || len(list.Suggestions) < 6 || list.Suggestions[0].Pattern != "npm run build-0" || list.Suggestions[0].Scope != "session" ||
		list.Suggestions[3].Pattern != "npm run build-0" || list.Suggestions[3].Effect != "deny" || list.Suggestions[0].Effect != "allow" {
		t.Fatalf("Suggest: got %+v, %v; want 6 or more, no danger, the command itself first, allowed and then denied", list, err)
	}
	refused(t, d.Answer(t.Context(), first.ID, requests.Answer{OptionID: "allow_once-1", Remember: &rulebook.Remember{Scope: "session", Pattern: "git *"}}, "window"), "rule.not_covering")
	refused(t, d.Answer(t.Context(), first.ID, requests.Answer{OptionID: "allow_once-1", Note: "no"}, "window"), "answer.note")
	if len(d.rules(rulebook.Filter{})) != 0 {
		t.Fatal("a refused answer left a rule")
	}
	// The option for always is answered as the option for once, so that the agent keeps no rule.
	d.answer(first, requests.Answer{OptionID: "allow_always-0", Remember: &rulebook.Remember{Scope: "directory", Pattern: "npm run *"}})
	d.until("the rest", func() bool { return len(d.waiting()) == 1 })
	d.answer(d.waiting()[0], requests.Answer{OptionID: "reject_once-2"})
	tr := d.idle(id)
	var answers []answer
	last := slices.IndexFunc(tr.Items, func(e transcript.Entry) bool { return e.Kind == "agent" })
	if err := json.Unmarshal([]byte(tr.Items[last].Text), &answers); err != nil || len(answers) != 101 {
		t.Fatalf("answers of the agent: got %d, %v; want 101", len(answers), err)
	}
	for i, a := range answers[:100] {
		if chosen(a) != "allow_once-1" {
			t.Errorf("answer %d: got %s, want it allowed", i, a.Result)
		}
	}
	list2 := d.rules(rulebook.Filter{Session: id})
	if len(list2) != 1 || list2[0].Hits != 99 || list2[0].Directory != d.work || list2[0].Text != "Run npm run *" {
		t.Errorf("rules of the session: got %+v, want one for npm run * with 99 hits", list2)
	}
	if n := len(ruleEntries(tr)); n != 99 {
		t.Errorf("%d lines", n)
	}
	d.sameAsRebuilt(id)
}

func TestRuleOfDirectoryIsNotInAnother(t *testing.T) {
	d := askingDesk(t, t.TempDir())
	a := d.asking()
	b := filepath.Join(d.dir, "b")
	if err := os.MkdirAll(b, 0o700); err != nil {
		t.Fatal(err)
	}
	elsewhere, err := d.Create(t.Context(), session.New{Agent: "asking", Cwd: b})
	if err != nil {
		t.Fatal(err)
	}
	same, err := d.Create(t.Context(), session.New{Agent: "asking", Cwd: d.work})
	if err != nil {
		t.Fatal(err)
	}
	remember := func(scope, command string) {
		t.Helper()
		d.begin(a, permit(commanding(command)))
		d.answer(d.request(a), requests.Answer{OptionID: "allow_once-1", Remember: &rulebook.Remember{Scope: scope}})
		d.idle(a)
	}
	remember("directory", "make one")
	remember("session", "make two")
	remember("everywhere", "make three")
	for _, tc := range []struct {
		session, command string
		want             bool
	}{
		{a, "make one", true},
		{a, "make two", true},
		{same.ID, "make one", true},
		{same.ID, "make two", false},
		{same.ID, "make three", true},
		{elsewhere.ID, "make one", false},
		{elsewhere.ID, "make two", false},
		{elsewhere.ID, "make three", true},
	} {
		d.begin(tc.session, permit(commanding(tc.command)))
		if !tc.want {
			d.answer(d.request(tc.session), requests.Answer{OptionID: "reject_once-2"})
		}
		tr := d.idle(tc.session)
		if last := tr.Requests[len(tr.Requests)-1]; (last.AnsweredBy == "rule") != tc.want {
			t.Errorf("%s in %s: %+v", tc.command, tc.session, last)
		}
	}
	for f, want := range map[rulebook.Filter]int{{Session: a}: 3, {Session: same.ID}: 2, {Directory: d.work}: 2, {Directory: b}: 1, {}: 3, {Directory: d.work, Place: "other"}: 1} {
		if n := len(d.rules(f)); n != want {
			t.Errorf("%+v: %d, want %d", f, n, want)
		}
	}

	// A moved directory keeps its rules; an erased session loses its own.
	moved := filepath.Join(d.dir, "moved")
	if err := os.Rename(d.work, moved); err != nil {
		t.Fatal(err)
	}
	d.relink(d.get(a).Workspace.ID, moved)
	if n := len(d.rules(rulebook.Filter{Directory: moved})); n != 2 {
		t.Errorf("%d rules", n)
	}
	if err := d.Delete(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	d.until("its rule to go", func() bool { return len(d.rules(rulebook.Filter{})) == 2 })
}

// A rule of a directory does not apply to the directory with the same path on another machine.
func TestRuleOfDirectoryIsForItsPlace(t *testing.T) {
	e := runtimeElsewhere(t, 0)
	d := deskWithPlaces(t, t.TempDir())
	p := d.addPlace(e, placeToken)
	here, there := d.create(), d.createAt(p.ID)
	made := d.rule(rulebook.NewRule{Effect: "allow", Scope: "directory", Directory: d.work, Pattern: "make one"})
	if made.Place != "" || here.Cwd != there.Cwd {
		t.Fatalf("rule: got %+v, want it of this machine; sessions: got directories %s and %s, want one path", made, here.Cwd, there.Cwd)
	}
	d.prompt(there.ID, "/ask-to-run make one")
	r := d.request(there.ID)
	d.answer(r, requests.Answer{OptionID: optionOf(t, r, "allow_once"), Remember: &rulebook.Remember{Scope: "directory"}})
	d.idle(there.ID)
	d.prompt(there.ID, "/ask-to-run make one")
	if tr := d.idle(there.ID); len(ruleEntries(tr)) != 1 {
		t.Errorf("answers at the place: got %+v, want 1 by a rule", ruleEntries(tr))
	}
	list := d.rules(rulebook.Filter{Session: there.ID})
	if len(list) != 1 || list[0].Place != p.ID || list[0].Hits != 1 {
		t.Errorf("rules at the place: got %+v, want one of place %s with 1 hit", list, p.ID)
	}
	if list := d.rules(rulebook.Filter{Session: here.ID}); len(list) != 1 || list[0].ID != made.ID || list[0].Hits != 0 {
		t.Errorf("rules of this machine: got %+v, want %s without a hit", list, made.ID)
	}
}

func TestRememberOfTwoSurfacesMakesOneRule(t *testing.T) {
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	for range 5 {
		d.begin(id, permit(commanding("make all")))
		r := d.request(id)
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for i, a := range []requests.Answer{
			{OptionID: "allow_once-1", Remember: &rulebook.Remember{Scope: "session"}},
			{OptionID: "reject_once-2", Remember: &rulebook.Remember{Scope: "directory"}},
		} {
			wg.Go(func() { errs[i] = d.Answer(t.Context(), r.ID, a, "window") })
		}
		wg.Wait()
		d.idle(id)
		won := slices.IndexFunc(errs, func(err error) bool { return err == nil })
		if won < 0 {
			t.Fatal(errs)
		}
		refused(t, errs[1-won], "request.resolved")
		list := d.rules(rulebook.Filter{})
		if len(list) != 1 || list[0].Effect != []string{"allow", "deny"}[won] || list[0].Scope != []string{"session", "directory"}[won] {
			t.Fatalf("rules: got %+v, want only that of surface %d, whose answer was taken", list, won)
		}
		if err := d.Rules().Remove(t.Context(), list[0].ID); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRejectionNoteIsQueued(t *testing.T) {
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	d.begin(id, permit(commanding("make all")))
	r := d.request(id)
	if _, err := d.Send(t.Context(), id, session.Prompt{Message: `[]`, When: session.Queue}); err != nil {
		t.Fatal(err)
	}
	hold := true
	list, err := d.Queue(t.Context(), id)
	if err == nil {
		_, err = d.ChangeQueued(t.Context(), id, list[0].ID, session.QueuePatch{Held: &hold})
	}
	if err != nil {
		t.Fatal(err)
	}
	draft := "something else"
	if _, err := d.Change(t.Context(), id, session.Patch{Draft: &draft}); err != nil {
		t.Fatal(err)
	}
	refused(t, d.Answer(t.Context(), r.ID, requests.Answer{OptionID: "nosuch", Note: "x"}, "window"), "answer.unknown_option")
	d.answer(r, requests.Answer{OptionID: "reject_once-2", Note: "  use make test  "})
	want := "I rejected “`make all`”: use make test"
	d.until("the words", func() bool { return strings.Contains(textOf(d.transcript(id), "user"), want) })
	if s := d.get(id); s.Draft != draft {
		t.Errorf("draft: got %q, want %q", s.Draft, draft)
	}
	if list, err := d.Queue(t.Context(), id); err != nil || len(list) != 1 || list[0].Message != "[]" {
		t.Errorf("Queue: got %+v, %v; want the one message []", list, err)
	}
}

func TestRejectionNoteIsSteered(t *testing.T) {
	d := askingDesk(t, t.TempDir(), `{"protocolVersion":1,"agentCapabilities":{},"_meta":{"steering":{"supported":true}}}`)
	id := d.asking()
	d.begin(id, permit(commanding("make all")), permit(commanding("make test"))) // the second permission keeps the turn running
	d.answer(d.request(id), requests.Answer{OptionID: "reject_once-2", Note: "use make test", Remember: &rulebook.Remember{Scope: "session"}})
	d.until("the words", func() bool { return strings.Contains(textOf(d.transcript(id), "user"), "use make test") })
	d.answer(d.request(id), requests.Answer{OptionID: "allow_once-1"})
	tr := d.idle(id)
	i := slices.IndexFunc(tr.Items, func(e transcript.Entry) bool { return e.Text == "I rejected “`make all`”: use make test" })
	if i < 0 || len(tr.Turns) != 1 || tr.Items[i].Turn != tr.Turns[0].ID {
		t.Errorf("words in the turn: got %+v, want them in the only turn", tr.Items)
	}
	if list := d.rules(rulebook.Filter{}); len(list) != 1 || list[0].Effect != "deny" || list[0].Pattern != "make all" {
		t.Errorf("rules: got %+v, want make all denied", list)
	}
	d.sameAsRebuilt(id)
}

func TestRememberIsRefusedBeyondTheRequest(t *testing.T) {
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	d.begin(id, permit(commanding("sudo make all")), permit(commanding("make all $X")), step{Ask: "nosuch/method"})
	r := d.request(id)
	everywhere := &rulebook.Remember{Scope: "everywhere"}
	refused(t, d.Answer(t.Context(), r.ID, requests.Answer{OptionID: "allow_once-1", Remember: everywhere}, "window"), "rule.danger")
	if list, err := d.Rules().Suggest(t.Context(), r.ID); err != nil || !slices.Equal(list.Danger, []string{"sudo"}) ||
		slices.ContainsFunc(list.Suggestions, func(s rulebook.RuleSuggestion) bool { return s.Effect == "allow" && s.Scope == "everywhere" }) {
		t.Errorf("Suggest: got %+v, %v; want danger sudo and nothing allowed everywhere", list, err)
	}
	d.answer(r, requests.Answer{OptionID: "allow_once-1"})
	r = d.request(id)
	refused(t, d.Answer(t.Context(), r.ID, requests.Answer{OptionID: "allow_once-1", Remember: everywhere}, "window"), "rule.no_pattern")
	d.answer(r, requests.Answer{OptionID: "allow_once-1"})
	r = d.request(id)
	refused(t, d.Answer(t.Context(), r.ID, requests.Answer{Action: "cancel", Remember: everywhere}, "window"), "answer.only_permission")
	d.answer(r, requests.Answer{Action: "cancel"})
	d.idle(id)
}

// A value that is nested deeper than SQLite reads is stored as a string; a value that an older version stored as it was breaks no query.
func TestDeepRawInputBreaksNoRule(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := askingDesk(t, dir)
	id := d.asking()
	deep := json.RawMessage(`{"x":` + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + `}`)
	call := permit(map[string]any{"kind": "other", "name": "x", "rawInput": deep})
	d.begin(id, step{Update: json.RawMessage(`{"sessionUpdate":"tool_call","toolCallId":"deep","rawInput":` + string(deep) + `,"content":[{"type":"content","content":` + string(deep) + `}]}`)},
		step{Update: json.RawMessage(`{"sessionUpdate":"plan","entries":[{"content":"first","priority":"high","status":"pending"}]}`)}, call)
	d.answer(d.request(id), requests.Answer{OptionID: "allow_once-1"})
	d.idle(id)
	works := func(asked int) {
		t.Helper()
		got, err := d.Rules().Simulate(t.Context(), rulebook.NewRule{Effect: "deny", Scope: "everywhere", Kind: "execute", Pattern: "make"}, "", 200)
		if err != nil || got.Looked != asked {
			t.Errorf("Simulate: got %+v, %v; want %d looked at", got, err, asked)
		}
		if g, err := d.Inspector().Given(t.Context(), id); err != nil || g.Plan == nil || len(g.Plan.Plan) != 1 {
			t.Errorf("Given: got %+v, %v; want the plan of one step", g, err)
		}
	}
	works(1)
	d.sameAsRebuilt(id)
	const stored = `SELECT (SELECT count(*) FROM entry WHERE NOT json_valid(data)) + (SELECT count(*) FROM request WHERE NOT json_valid(data))`
	var bad int
	if err := d.db.Read().QueryRowContext(t.Context(), stored).Scan(&bad); err != nil || bad > 0 {
		t.Errorf("%d are stored as they are: %v", bad, err)
	}

	d.close()
	db := storetest.Open(t, dir)
	err := db.Write(t.Context(), func(tx *sql.Tx) error {
		for _, text := range []string{
			`UPDATE entry SET data = replace(data, '"toolCallId":"deep"', '"toolCallId":"deep","rawOutput":' || ?1)`,
			`UPDATE request SET data = replace(data, '"kind":"permission"', '"kind":"permission","schema":' || ?1)`,
			`UPDATE session SET origin = '{"kind":"import","agent":"asking"}' WHERE ?1 <> ''`,
		} {
			if _, err := tx.ExecContext(t.Context(), text, string(deep)); err != nil {
				return err
			}
		}
		return tx.QueryRowContext(t.Context(), stored).Scan(&bad)
	})
	if err := errors.Join(err, db.Close()); err != nil || bad != 2 {
		t.Fatal(bad, err)
	}
	d = askingDesk(t, dir)
	works(0)
}

// A changed rule answers a permission that waits; once the rule is changed to ask, a person is asked again.
func TestRuleChangeAnswersWhatWaits(t *testing.T) {
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	d.begin(id, permit(commanding("make all")))
	d.request(id)
	r := d.rule(rulebook.NewRule{Effect: "allow", Pattern: "make lint"})
	pattern, note := "make all", "mine"
	changed, err := d.Rules().Change(t.Context(), r.ID, rulebook.RulePatch{Pattern: &pattern, Note: &note})
	if err != nil || changed.Pattern != pattern || changed.Note != note || changed.ID != r.ID || changed.Scope != "everywhere" {
		t.Fatalf("Change(%s): got %+v, %v; want pattern %s, note %s, everywhere", r.ID, changed, err, pattern, note)
	}
	if tr := d.idle(id); len(ruleEntries(tr)) != 1 {
		t.Errorf("answers after the change: got %+v, want 1", ruleEntries(tr))
	}
	ask := "ask"
	if changed, err = d.Rules().Change(t.Context(), r.ID, rulebook.RulePatch{Effect: &ask}); err != nil || changed.Hits != 1 {
		t.Fatalf("got %+v, %v, want the rule with its hit", changed, err)
	}
	d.begin(id, permit(commanding("make all")))
	d.answer(d.request(id), requests.Answer{OptionID: "allow_once-1"})
	d.idle(id)
}

// lastSeq returns the number of the newest event of the feed.
func (d *desk) lastSeq() int64 {
	d.t.Helper()
	b, err := d.Feed().After(d.t.Context(), feed.Query{})
	if err != nil {
		d.t.Fatal(err)
	}
	return b.Seq
}

// since returns the events after seq.
func (d *desk) since(seq int64) (list []feed.Event) {
	d.t.Helper()
	for {
		b, err := d.Feed().After(d.t.Context(), feed.Query{Gen: d.Feed().Gen(), After: seq})
		if err != nil {
			d.t.Fatal(err)
		}
		if len(b.Events) == 0 {
			return list
		}
		list, seq = append(list, b.Events...), b.Seq
	}
}
