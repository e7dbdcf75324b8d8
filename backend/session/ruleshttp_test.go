package session_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"deskhand/backend/httpapi"
	"deskhand/backend/rulebook"
	"deskhand/backend/session"
)

// By HTTP and with the demo agent, an approval is remembered as a rule, the rule answers the next request, and the rule is removed.
func TestRulesOverHTTP(t *testing.T) {
	d := open(t, t.TempDir())
	server := httptest.NewServer(httpapi.NewClient(httpapi.ClientConfig{Sessions: d.Client}))
	client := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(func() {
		client.CloseIdleConnections()
		server.Close()
	})
	call := func(method, path, body string, status int, out any) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+"/client/"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if body != "" {
			r.Header.Set("Content-Type", "application/json")
		}
		resp, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != status {
			t.Fatalf("%s %s: %d %s, want %d", method, path, resp.StatusCode, data, status)
		}
		if out != nil {
			if err := json.Unmarshal(data, out); err != nil {
				t.Fatal(err)
			}
		}
	}
	turnedDown := func(method, path, body string, status int, code string) {
		t.Helper()
		var problem struct{ Code string }
		call(method, path, body, status, &problem)
		if problem.Code != code {
			t.Errorf("%s %s: %s, want %s", method, path, problem.Code, code)
		}
	}
	s := d.create()
	ask := func(command string) {
		t.Helper()
		call("POST", "sessions/"+s.ID+"/prompt", string(mustJSON(t, map[string]string{"message": "/ask-to-run " + command})), http.StatusAccepted, nil)
	}

	ask("git status && ls src")
	r := d.request(s.ID)
	var offered rulebook.RuleSuggestions
	call("GET", "requests/"+r.ID+"/rules", "", http.StatusOK, &offered)
	if len(offered.Suggestions) != 0 || len(offered.Danger) != 0 {
		t.Errorf("one rule is not enough for two commands: %+v", offered)
	}
	turnedDown("POST", "requests/"+r.ID+"/answer", `{"optionId":"allow-once","remember":{"scope":"directory"}}`, http.StatusBadRequest, "rule.no_pattern")
	turnedDown("POST", "requests/"+r.ID+"/answer", `{"optionId":"allow-once","remember":{"scope":"nosuch"}}`, http.StatusBadRequest, "request.invalid")
	call("POST", "requests/"+r.ID+"/answer", `{"optionId":"allow-always","remember":{"scope":"directory","pattern":"git status"}}`, http.StatusNoContent, nil)
	tr := d.idle(s.ID)
	if !strings.Contains(textOf(tr, "agent"), "You chose `allow-once`") {
		t.Errorf("the agent was told something for ever: %s", textOf(tr, "agent"))
	}

	ask("git status && ls src")
	r = d.request(s.ID)
	call("GET", "requests/"+r.ID+"/rules", "", http.StatusOK, &offered)
	if len(offered.Suggestions) == 0 || offered.Suggestions[0].Pattern != "ls src" {
		t.Errorf("GET rules of request %s: got %+v, want ls src first", r.ID, offered)
	}
	var made rulebook.Rule
	call("POST", "rules", `{"effect":"allow","scope":"session","session":"`+s.ID+`","kind":"execute","pattern":"ls *"}`, http.StatusCreated, &made)
	d.idle(s.ID) // the new rule has answered the request
	ask("git status; ls")
	tr = d.idle(s.ID)
	if n := len(ruleEntries(tr)); n != 2 {
		t.Errorf("answers by rules: got %d, want 2", n)
	}
	var list session.Page[rulebook.Rule]
	call("GET", "rules?session="+s.ID, "", http.StatusOK, &list)
	if len(list.Items) < 5 || list.Items[0].ID != made.ID || list.Items[0].Hits != 2 || list.Items[1].Scope != "directory" || !list.Items[len(list.Items)-1].Builtin {
		t.Errorf("GET rules of the session: got %+v, want %s with 2 hits first, then one of the directory, built-in ones last", list.Items, made.ID)
	}

	var simulated rulebook.Simulated
	call("POST", "rules/simulate", `{"rule":{"effect":"deny","scope":"everywhere","kind":"execute","pattern":"ls"}}`, http.StatusOK, &simulated)
	if simulated.Looked != 3 || simulated.Counts.Deny != 3 || simulated.Items[0].Command != "git status; ls" || simulated.Items[0].Was != "allow" {
		t.Errorf("POST rules/simulate: got %+v, want 3 looked at and denied, the first of them allowed before", simulated)
	}
	turnedDown("POST", "rules/simulate", `{"rule":{"effect":"deny","scope":"everywhere","kind":"execute","pattern":"ls"},"limit":1001}`, http.StatusBadRequest, "request.invalid")
	turnedDown("POST", "rules/simulate", `{"rule":{"effect":"deny","scope":"everywhere","kind":"execute","pattern":"a|b"}}`, http.StatusBadRequest, "rule.pattern")

	var changed rulebook.Rule
	call("PATCH", "rules/"+made.ID, `{"effect":"deny","note":"not here"}`, http.StatusOK, &changed)
	if changed.Effect != "deny" || changed.Note != "not here" || changed.Hits != 2 {
		t.Errorf("PATCH rules/%s: got %+v, want it to deny, with its note and 2 hits", made.ID, changed)
	}
	ask("git status; ls")
	if tr = d.idle(s.ID); tr.Requests[len(tr.Requests)-1].Status != "rejected" {
		t.Errorf("last request: got %+v, want it rejected", tr.Requests[len(tr.Requests)-1])
	}
	call("DELETE", "rules/"+made.ID, "", http.StatusNoContent, nil)
	turnedDown("DELETE", "rules/"+made.ID, "", http.StatusNotFound, "not_found")
	turnedDown("PATCH", "rules/builtin:shutdown", `{"effect":"allow"}`, http.StatusConflict, "rule.builtin")
	turnedDown("POST", "rules", `{"effect":"allow","scope":"everywhere","kind":"execute","pattern":"* x"}`, http.StatusBadRequest, "rule.too_wide")
	turnedDown("POST", "rules", `{"effect":"allow","scope":"directory","directory":"/nosuch","kind":"execute","pattern":"x"}`, http.StatusBadRequest, "rule.unknown_directory")
	turnedDown("POST", "rules", `{"effect":"allow","scope":"everywhere","kind":"nosuch","pattern":"x"}`, http.StatusBadRequest, "request.invalid")
	turnedDown("GET", "requests/nosuch/rules", "", http.StatusNotFound, "not_found")
	ask("git status; ls")
	call("POST", "requests/"+d.request(s.ID).ID+"/answer", `{"optionId":"reject-once","note":"echo I want to see it first"}`, http.StatusNoContent, nil)
	d.until("the words", func() bool { return strings.Contains(textOf(d.transcript(s.ID), "user"), "I want to see it first") })
	d.idle(s.ID)
	d.sameAsRebuilt(s.ID)
}
