package session_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/lifecycle"
	"deskhand/backend/session"
	"deskhand/backend/testkit"
)

// elsewhere has conversations with the demo agent in another desk, so that the agent of this desk has conversations without a session here.
func (d *desk) elsewhere(prompts ...string) (acpID, cwd string) {
	d.t.Helper()
	other := open(d.t, d.t.TempDir())
	s := other.create()
	for _, p := range prompts {
		other.prompt(s.ID, p)
		other.idle(s.ID)
	}
	s = other.get(s.ID)
	other.close()
	if err := os.CopyFS(filepath.Join(d.dir, "demo"), os.DirFS(filepath.Join(other.dir, "demo"))); err != nil {
		d.t.Fatal(err)
	}
	return s.ACPSessionID, s.Cwd
}

func (d *desk) importOf(agent, id, cwd string) session.Session {
	d.t.Helper()
	s, err := d.Imports().Take(d.t.Context(), session.Import{Agent: agent, ACPSessionID: id, Cwd: cwd, Title: "From elsewhere"})
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

func (d *desk) sessionsOf(agent, directory string) session.AgentSessions {
	d.t.Helper()
	page, err := d.Imports().Sessions(d.t.Context(), agent, directory, "")
	if err != nil {
		d.t.Fatal(err)
	}
	return page
}

func dividerCodes(t session.Transcript) (codes []string) {
	for _, e := range t.Items {
		if e.Kind == "divider" {
			codes = append(codes, e.Divider.Code)
		}
	}
	return codes
}

func TestImportTakesTheHistoryIn(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	id, cwd := d.elsewhere("plan", "please *echo* this", "terminal")
	page := d.sessionsOf("mock", "")
	if !page.Supported || len(page.Items) != 1 || page.Items[0].ACPSessionID != id || page.Items[0].Session != "" || page.Items[0].Cwd != cwd || page.Items[0].UpdatedAt == nil {
		t.Fatalf("listed %+v", page)
	}
	s := d.importOf("mock", id, cwd)
	if s.Origin == nil || *s.Origin != (session.Origin{Kind: "import", Agent: "mock"}) || s.ACPSessionID != id || s.Title != "From elsewhere" {
		t.Fatalf("imported as %+v", s)
	}
	tr := d.idle(s.ID)
	if got := asked(tr); got != "plan, please *echo* this, terminal" {
		t.Fatalf("asked %q", got)
	}
	if find(tr, "plan") == nil || find(tr, "tool") == nil {
		t.Fatal("plan or tools are missing")
	}
	last := tr.Items[len(tr.Items)-1]
	if last.Kind != "divider" || last.Divider.Code != "session.imported" || last.Divider.Params["messages"] != "6" {
		t.Fatalf("it ends in %+v", last)
	}
	d.sameAsRebuilt(s.ID)

	if page := d.sessionsOf("mock", cwd); len(page.Items) != 1 || page.Items[0].Session != s.ID {
		t.Fatalf("listed %+v", page)
	}
	if page := d.sessionsOf("mock", filepath.Join(cwd, "other")); len(page.Items) != 0 || !page.Supported {
		t.Fatalf("listed %+v", page)
	}
	if again := d.importOf("mock", id, cwd); again.ID != s.ID {
		t.Fatalf("it is here twice, as %s and %s", again.ID, s.ID)
	}

	// From now on the session is like any other: a start resumes it, and no history is replayed into it.
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	d.prompt(s.ID, "echo once more")
	after := d.idle(s.ID)
	if got := asked(after); got != "plan, please *echo* this, terminal, echo once more" {
		t.Fatalf("asked %q", got)
	}
	if got := dividerCodes(after); !slices.Equal(got, []string{"session.imported", "session.resumed"}) {
		t.Fatalf("dividers %v", got)
	}
	d.sameAsRebuilt(s.ID)
}

// forgetfulOf writes agents.json with an agent "forgetful" that behaves by the words.
func (d *desk) forgetfulOf(words string) {
	d.t.Helper()
	forgetfulAgent(d.t, d.dir, words)
}

func TestImportDependsOnCapabilities(t *testing.T) {
	t.Parallel()
	for words, want := range map[string]struct{ dividers, problem string }{
		"resume":       {"session.imported_unseen", ""},
		"load":         {"session.imported", ""},
		"load resume":  {"session.imported", ""},
		"load refuses": {"agent.start_failed", "session.import_failed"},
		"":             {"agent.start_failed", "session.import_unsupported"},
	} {
		t.Run("offers "+words, func(t *testing.T) {
			t.Parallel()
			d := open(t, t.TempDir())
			d.forgetfulOf(words)
			if page := d.sessionsOf("forgetful", ""); page.Supported || len(page.Items) > 0 {
				t.Fatalf("lists %+v", page)
			}
			s := d.importOf("forgetful", "s1", d.work)
			tr := d.idle(s.ID)
			if got := strings.Join(dividerCodes(tr), " "); got != want.dividers {
				t.Fatalf("dividers %s", got)
			}
			history := textOf(tr, "agent") != ""
			if history != (want.dividers == "session.imported") {
				t.Fatalf("history: %v", history)
			}
			problem := ""
			if e := d.get(s.ID).Exit; e != nil {
				problem = e.Problem
			}
			if problem != want.problem {
				t.Fatalf("problem %q", problem)
			}
			d.sameAsRebuilt(s.ID)
		})
	}
}

// A history that breaks off leaves no entry, and the next start takes in all of it.
func TestImportThatBreaksOffLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	d.forgetfulOf("load breaks")
	s := d.importOf("forgetful", "s1", d.work)
	tr := d.idle(s.ID)
	if got := dividerCodes(tr); !slices.Equal(got, []string{"agent.start_failed"}) || textOf(tr, "agent") != "" {
		t.Fatalf("left: %+v", tr.Items)
	}
	d.sameAsRebuilt(s.ID)
	d.close()

	d = open(t, dir)
	d.forgetfulOf("load")
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	d.until("import", func() bool { return d.get(s.ID).Phase == lifecycle.Ready })
	tr = d.transcript(s.ID)
	if got := dividerCodes(tr); !slices.Equal(got, []string{"agent.start_failed", "session.imported"}) || textOf(tr, "agent") != "history that is held already\n" {
		t.Fatalf("taken in: %+v", tr.Items)
	}
	d.sameAsRebuilt(s.ID)
}

func TestImportIsRefused(t *testing.T) {
	d := open(t, t.TempDir())
	_, err := d.Imports().Sessions(t.Context(), "nobody", "", "")
	refused(t, err, "agent.unknown")
	_, err = d.Imports().Sessions(t.Context(), "mock", "here", "")
	refused(t, err, "directory.relative")
	_, err = d.Imports().Sessions(t.Context(), "claude", "", "")
	refused(t, err, "agent.not_installed")
	_, err = d.Imports().Take(t.Context(), session.Import{Agent: "nobody", ACPSessionID: "x", Cwd: d.work})
	refused(t, err, "agent.unknown")
	_, err = d.Imports().Take(t.Context(), session.Import{Agent: "mock", ACPSessionID: "x", Cwd: filepath.Join(d.work, "gone")})
	refused(t, err, "directory.missing")
	d.close()
	t.Setenv("DESKHAND_DEMO_LOGIN", "agent")
	d = open(t, d.dir)
	_, err = d.Imports().Sessions(t.Context(), "mock", "", "")
	refused(t, err, "agent.auth_required")
	if page, err := d.List(t.Context(), session.Which{}, "", 10); err != nil || len(page.Items) > 0 {
		t.Fatalf("List after refused imports: got %+v, %v; want none", page, err)
	}
}

// lists is an agent in a shell that has one conversation, in the directories that are filled in.
const lists = `while read -r line; do
  id=${line#*'"id":'}; id=${id%%%%[,\}]*}
  case $line in
  *'"initialize"'*) say='{"protocolVersion":1,"agentCapabilities":{"loadSession":true,"sessionCapabilities":{"list":{},"additionalDirectories":{}}}}' ;;
  *'"session/list"'*) say='{"sessions":[{"sessionId":"s1","cwd":"/","additionalDirectories":%s}]}' ;;
  *'"session/load"'*) say='{}' ;;
  *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%%s,"result":%%s}\n' "$id" "$say"
done`

// An import takes the conversation's further directories, since the agent would lose access to them otherwise. Directories that cannot be
// chosen for a session are left out.
func TestImportTakesTheFurtherDirectories(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the agent is a script of a shell")
	}
	d := open(t, t.TempDir())
	one, file := filepath.Join(d.dir, "one"), filepath.Join(d.dir, "file")
	if err := errors.Join(os.Mkdir(one, 0o700), os.WriteFile(file, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	theirs := []string{filepath.Join(d.dir, "gone"), one, file, "relative", one + "/"}
	text, _ := json.Marshal(theirs)
	agent, err := json.Marshal(map[string]any{"agents": []any{map[string]any{"id": "lists", "command": "/bin/sh", "args": []string{"-c", fmt.Sprintf(lists, text)}}}})
	if err == nil {
		err = os.WriteFile(filepath.Join(d.dir, "agents.json"), agent, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	page := d.sessionsOf("lists", "")
	if len(page.Items) != 1 || !slices.Equal(page.Items[0].Directories, theirs) {
		t.Fatalf("AgentSessions: got %+v, want one with the directories %q", page, theirs)
	}
	s, err := d.Imports().Take(t.Context(), session.Import{Agent: "lists", ACPSessionID: "s1", Cwd: d.work, Directories: page.Items[0].Directories})
	if err != nil || !slices.Equal(s.Directories, []string{one}) {
		t.Fatalf("Import: got directories %q, %v; want only %q", s.Directories, err, one)
	}
	d.idle(s.ID)
	var told []string
	for dir, data := range d.journal(s.ID) {
		var m struct {
			Method string
			Params struct{ AdditionalDirectories []string }
		}
		if dir == "out" && json.Unmarshal(data, &m) == nil && m.Method == "session/load" {
			told = m.Params.AdditionalDirectories
		}
	}
	if !slices.Equal(told, []string{one}) {
		t.Errorf("the agent was told of %q", told)
	}
}

// An import of 100,000 updates completes while another conversation goes on.
func TestImportOfALongHistory(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it takes seconds")
	}
	d := open(t, t.TempDir())
	id, cwd := d.elsewhere("echo")
	turns, each := 250, 20
	if long() {
		turns = 5_000
	}
	longHistory(t, filepath.Join(d.dir, "demo", id+".jsonl"), turns, each)
	began := time.Now()
	s := d.importOf("mock", id, cwd)
	longest := d.waitElsewhere(func() bool { return d.get(s.ID).Phase == lifecycle.Ready })
	t.Logf("%d updates in %v; another conversation waited %v at most", turns*each, time.Since(began), longest)
	if n := d.rows(s.ID)["entry"]; n != turns*each+1 {
		t.Fatalf("%d entries", n)
	}
}

// waitElsewhere has another conversation write until over returns true, and returns its longest wait.
func (d *desk) waitElsewhere(over func() bool) (longest time.Duration) {
	d.t.Helper()
	other := d.create().ID
	d.idle(other)
	for began := time.Now(); !over(); {
		if time.Since(began) > testkit.Limit {
			d.t.Fatalf("wait: got no end within %v, want it", testkit.Limit)
		}
		asked := time.Now()
		if _, err := d.Change(d.t.Context(), other, session.Patch{Draft: new("x")}); err != nil {
			d.t.Fatal(err)
		}
		longest = max(longest, time.Since(asked))
		select {
		case <-time.After(5 * time.Millisecond):
		case <-d.t.Context().Done():
		}
	}
	if longest > 15*time.Second {
		d.t.Errorf("another conversation waited %v", longest)
	}
	return longest
}

// longHistory writes a history of the demo agent to a file.
func longHistory(t testing.TB, path string, turns, each int) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := strings.Cut(string(data), "\n")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	fmt.Fprintln(w, head)
	enc := json.NewEncoder(w)
	for turn := range turns {
		for i := range each {
			kind := "agent_message_chunk"
			if i == 0 {
				kind = "user_message_chunk"
			}
			update := map[string]any{"sessionUpdate": kind, "messageId": fmt.Sprintf("m-%d-%d", turn, i), "content": map[string]any{"type": "text", "text": fmt.Sprintf("words %d of turn %d", i, turn)}}
			if i%2 == 1 {
				update = map[string]any{"sessionUpdate": "tool_call", "toolCallId": fmt.Sprintf("c-%d-%d", turn, i), "title": "Read a file", "kind": "read", "status": "completed"}
			}
			if err := enc.Encode(map[string]any{"turn": turn + 1, "update": update}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
}
