package demoagent

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// TestFork: a fork starts from its parent's history, and then the two diverge.
func TestFork(t *testing.T) {
	inBubble(t, func(p *peer, session, cwd string) {
		t := p.t
		p.prompt(session, "echo")
		fork := func(id string) exchange {
			return p.call("session/fork", map[string]any{"sessionId": id, "cwd": cwd, "mcpServers": []any{}})
		}
		e := fork(session)
		p.commands()
		var made sessionState
		p.decode(e.result, &made)
		if made.SessionID == "" || made.SessionID == session || len(made.ConfigOptions) == 0 {
			t.Fatalf("forked %s", e.result)
		}
		p.prompt(made.SessionID, "plan").wantStop(t, "end_turn")
		p.mustCall("session/close", map[string]any{"sessionId": made.SessionID})

		load := func(id string) turnSeen {
			e := p.turn(p.mustCall("session/load", map[string]any{"sessionId": id, "cwd": cwd, "mcpServers": []any{}}))
			p.commands()
			return e
		}
		if seen := load(made.SessionID); seen.messages["prompt-1-0"] != "echo" || seen.messages["prompt-2-0"] != "plan" {
			t.Errorf("the fork knows %v", seen.messages)
		}
		if seen := load(session); seen.messages["prompt-1-0"] != "echo" || seen.messages["prompt-2-0"] != "" {
			t.Errorf("the parent knows %v", seen.messages)
		}
		if e := fork("01890a5d-ac96-774b-bcce-b302099a8057"); e.err == nil || e.err.Code != -32002 {
			t.Errorf("a fork of nothing: %v", e.err)
		}
	})
}

func TestDelete(t *testing.T) {
	inBubble(t, func(p *peer, session, cwd string) {
		t := p.t
		p.prompt(session, "echo")
		for range 2 { // deleting an unknown session succeeds
			p.mustCall("session/delete", map[string]any{"sessionId": session})
		}
		if e := p.mustCall("session/list", map[string]any{}); bytes.Contains(e.result, []byte(session)) {
			t.Errorf("listed still: %s", e.result)
		}
		if e := p.call("session/load", map[string]any{"sessionId": session, "cwd": cwd, "mcpServers": []any{}}); e.err == nil || e.err.Code != -32002 {
			t.Errorf("loaded all the same: %v", e.err)
		}
	})
}

func TestSteering(t *testing.T) {
	inBubble(t, func(p *peer, session, cwd string) {
		t := p.t
		outcome := func(text string) string {
			id := p.request(steeringMethod, promptParams(session, text))
			for {
				m := p.next()
				if string(m.ID) != id || m.Method != "" {
					continue
				}
				if m.Error != nil {
					return "error"
				}
				var r steeringResponse
				p.decode(m.Result, &r)
				return r.Outcome
			}
		}
		if got := outcome("too early"); got != "promptRequired" {
			t.Errorf("with no turn: %s", got)
		}
		turn := p.request("session/prompt", promptParams(session, "slow"))
		p.next()
		for text, want := range map[string]string{"please use *tabs*": "injected", "refuse this": "failed", "Error!": "error"} {
			if got := outcome(text); got != want {
				t.Errorf("%q: %s, want %s", text, got, want)
			}
		}
		silent := p.request(steeringMethod, promptParams(session, "silent"))
		for !strings.Contains(string(p.next().raw), "please use *tabs*") {
			continue
		}
		p.notify("session/cancel", map[string]any{"sessionId": session})
		p.turn(p.until(turn)).wantStop(t, "cancelled")
		seen := p.turn(p.mustCall("session/load", map[string]any{"sessionId": session, "cwd": cwd, "mcpServers": []any{}}))
		p.commands()
		if all := seen.said; !strings.Contains(all, "You add") || !strings.Contains(fmt.Sprint(seen.messages), "please use *tabs*") {
			t.Errorf("the history holds %v", seen.messages)
		}
		delete(p.asked, silent)
	})
}
