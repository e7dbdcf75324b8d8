package session_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/agenttest"
	"deskhand/backend/lifecycle"
	"deskhand/backend/session"
)

// forgetfulAgent writes agents.json with an agent "forgetful" that behaves by the given words.
func forgetfulAgent(t testing.TB, dir, words string) {
	t.Helper()
	agent := agenttest.Program(t)
	args, _ := json.Marshal(append([]string{"forgetful-agent"}, strings.Fields(words)...))
	file := fmt.Sprintf(`{"agents":[{"id":"forgetful","command":%q,"args":%s}]}`, agent, args)
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestResumeByResumeLoadOrNew(t *testing.T) {
	for words, want := range map[string]struct{ divider, calls, notice string }{
		"resume load": {"session.resumed", "initialize session/resume session/prompt", ""},
		"load":        {"session.loaded", "initialize session/load session/prompt", ""},
		"":            {"session.fresh", "initialize session/new session/prompt", ""},
		"resume load refuses": {
			"session.fresh", "initialize session/resume session/load session/new session/prompt", "session/resume: no such session: its file is gone\nsession/load: no such session: its file is gone",
		},
		"load refuses": {"session.fresh", "initialize session/load session/new session/prompt", "session/load: no such session: its file is gone"},
	} {
		t.Run("offers "+words, func(t *testing.T) {
			dir := t.TempDir()
			forgetfulAgent(t, dir, words)
			d := open(t, dir)
			s, err := d.Create(t.Context(), session.New{Agent: "forgetful", Cwd: d.work})
			if err != nil {
				t.Fatal(err)
			}
			d.prompt(s.ID, "one")
			d.idle(s.ID)
			d.close()

			d = open(t, dir)
			d.prompt(s.ID, "two")
			tr := d.idle(s.ID)
			if e := find(tr, "divider"); e == nil || e.Divider.Code != want.divider {
				t.Errorf("the transcript tells %+v, want %s", e, want.divider)
			}
			if text := textOf(tr, "agent"); text != "initialize session/new session/prompt\n"+want.calls+"\n" {
				t.Errorf("the agent said %q, want the earlier answer and then %q", text, want.calls)
			}
			var notice string
			if e := find(tr, "notice"); e != nil {
				notice = e.Notice.Description
			}
			if notice != want.notice {
				t.Errorf("a start of an agent that offers %q: got the notice %q, want %q", words, notice, want.notice)
			}
			if users := textOf(tr, "user"); users != "one\ntwo\n" {
				t.Errorf("the earlier transcript is lost: %q", users)
			}
			d.sameAsRebuilt(s.ID)
		})
	}
}

// After a crash only the entries of the turn that ran are written, published and indexed again, however long the conversation is.
func TestResumeAfterCrashWritesLastTurnOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const update = `echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":`
	custom(t, dir, map[string]string{"works": `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
		read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
		read l; ` + update + `{"sessionUpdate":"tool_call","toolCallId":"1","title":"Look","status":"completed"}}}'
		` + update + `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"First this."}}}}'
		echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'
		until [ -e go ]; do sleep 0.02; done
		` + update + `{"sessionUpdate":"tool_call","toolCallId":"2","title":"In the background","status":"in_progress"}}}'
		read l; ` + update + `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Then that."}}}}'
		until [ -e end ]; do sleep 0.02; done; cat >/dev/null`})
	d := open(t, dir)
	id := d.createOf("works").ID
	d.prompt(id, "one")
	d.idle(id)
	d.write("go", "")
	d.until("work in the background", func() bool { return len(kinds(d.transcript(id), "tool")) == 2 })
	d.prompt(id, "two")
	d.until("an answer", func() bool { return strings.Contains(textOf(d.transcript(id), "agent"), "Then that.") })
	before := d.transcript(id).Items
	d.alter(`CREATE TABLE told (id TEXT)`)
	d.alter(`CREATE TRIGGER updated AFTER UPDATE OF data ON entry BEGIN INSERT INTO told VALUES (NEW.id); END`)
	d.alter(`DELETE FROM told`)
	later := t.TempDir()
	if err := os.CopyFS(later, os.DirFS(dir)); err != nil { // the directory as after a crash
		t.Fatal(err)
	}
	after := open(t, later)
	tr := after.transcript(id)
	if lastTurn(tr).StopReason != "interrupted" || len(tr.Items) < len(before) {
		t.Fatalf("%d entries of %d, %+v", len(tr.Items), len(before), lastTurn(tr))
	}
	rows, err := after.db.Read().Query(`SELECT DISTINCT seq FROM entry JOIN told USING (id) ORDER BY seq`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	written := map[int64]bool{}
	for rows.Next() {
		var seq int64
		if err := rows.Scan(&seq); err != nil {
			t.Fatal(err)
		}
		written[seq] = true
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for _, e := range tr.Items {
		background := e.Tool != nil && e.Tool.ToolCallID == "2"
		if background && e.Tool.Status != "cancelled" {
			t.Errorf("it goes on: %+v", e.Tool)
		}
		if old := e.Seq < before[len(before)-2].Seq; old && !background && written[e.Seq] {
			t.Errorf("it was written again: %.200s", asJSON(t, e))
		}
	}
	after.sameAsRebuilt(id)
}

// When an agent ends each time that it restores its session by a method, the next start tries another method, and at last makes a new
// session, which the transcript tells. After a session was opened, the usual method is tried again.
func TestResumeThatKillsAgentStartsFresh(t *testing.T) {
	t.Parallel()
	for can, want := range map[string][]string{
		`"loadSession":true,"sessionCapabilities":{"resume":{}}`: {"session/resume", "session/load"},
		`"loadSession":true`:                  {"session/load", "session/load"}, // the first failure may have been the machine's
		`"sessionCapabilities":{"resume":{}}`: {"session/resume", "session/resume"},
	} {
		t.Run(can, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			custom(t, dir, map[string]string{"dies": `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{` + can + `}}}'
				read l; case $l in *'"session/new"'*) ;; *) [ -e whole ] || exit 1 ;; esac
				echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'; cat >/dev/null`})
			d := open(t, dir)
			id := d.createOf("dies").ID
			d.isReady(id)
			asked := map[string]int{}
			for _, method := range want {
				if err := d.Restart(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				d.until("end", func() bool { s := d.get(id); return s.Phase == lifecycle.Closed && s.Exit != nil })
				asked[method]++
				for name := range map[string]int{"session/resume": 0, "session/load": 0} {
					if n := d.wrote(id, `"`+name+`"`); n != asked[name] {
						t.Errorf("%s was asked %d times, want %v", name, n, asked)
					}
				}
			}
			if err := d.Restart(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			d.isReady(id)
			if told := dividers(d.transcript(id)); !strings.HasSuffix(told, "session.fresh") {
				t.Errorf("dividers: got %q, want session.fresh at the end", told)
			}
			d.write("whole", "")
			if err := d.Restart(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			d.isReady(id)
			if n := d.wrote(id, `"`+want[0]+`"`); n != asked[want[0]]+1 {
				t.Errorf("%s was asked %d times", want[0], n)
			}
			d.sameAsRebuilt(id)
		})
	}
}
