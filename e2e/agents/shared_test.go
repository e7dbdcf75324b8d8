//go:build e2e

package agents

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"deskhand/e2e/agents/llm"
)

// TestSharedProcess measures the figures of decision 47: the memory of several sessions within one process of an agent, and in processes of
// their own, each after a turn; and whether a turn of a session goes on while another session hangs, and is stopped.
func TestSharedProcess(t *testing.T) {
	const most = 3
	for _, agent := range pinned(t) {
		t.Run(agent.ID, func(t *testing.T) {
			script := []llm.Turn{
				{When: "echo the lighthouse", Steps: []llm.Step{{Text: "The lighthouse says hello."}}},
				{When: "start and never end", Steps: []llm.Step{{Text: "The beginning of a long answer.", Hold: true}}},
			}
			for _, shared := range []bool{true, false} {
				model := openScripted(t, script)
				p := newPlace(t, model)
				var all []*stdioAgent
				var sessions []string
				var sizes []string
				var before int64
				for n := range most {
					if !shared || n == 0 {
						a := startStdio(t, p, agent, model)
						a.call("initialize", map[string]any{"protocolVersion": 1, "clientInfo": map[string]string{"name": "deskhand-e2e", "version": "1"}, "clientCapabilities": map[string]any{}})
						all = append(all, a)
					}
					dir := filepath.Join(p.work, fmt.Sprint(n))
					if err := os.MkdirAll(dir, 0o700); err != nil {
						t.Fatal(err)
					}
					a := all[len(all)-1]
					var session struct{ SessionID string }
					decode(t, a.call("session/new", map[string]any{"cwd": dir, "mcpServers": []any{}}), &session)
					sessions = append(sessions, session.SessionID)
					if got := a.prompt(session.SessionID, "Please echo the lighthouse."); got != "end_turn" {
						t.Errorf("stop reason %q, want end_turn", got)
					}
					size := settled(p)
					sizes = append(sizes, fmt.Sprintf("%d (+%d) MiB in %d processes", size>>20, (size-before)>>20, len(p.marked())))
					before = size
				}
				t.Logf("shared %v: %v", shared, sizes)
				if shared {
					t.Logf("while one session stands still: %s", all[0].beside(sessions[0], sessions[1]))
				}
				for _, a := range all {
					a.stdin.Close()
				}
				p.mustBeGone(t, 10*time.Second)
				if !shared && agent.ID != "gemini" { // Gemini loses a session that it loads within the minute in which the session began
					t.Logf("a new process has the first session again after %v", wake(t, p, agent, model, sessions[0]).Round(10*time.Millisecond))
				}
			}
		})
	}
}

// wake starts an agent again and has it load a session, as a sleeping session is woken.
func wake(t *testing.T, p place, agent realAgent, model *llm.Model, session string) time.Duration {
	t.Helper()
	began := time.Now()
	a := startStdio(t, p, agent, model)
	var can struct {
		AgentCapabilities struct {
			SessionCapabilities struct{ Resume json.RawMessage }
		}
	}
	decode(t, a.call("initialize", map[string]any{"protocolVersion": 1, "clientInfo": map[string]string{"name": "deskhand-e2e", "version": "1"}, "clientCapabilities": map[string]any{}}), &can)
	method := "session/load"
	if can.AgentCapabilities.SessionCapabilities.Resume != nil {
		method = "session/resume"
	}
	a.call(method, map[string]any{"sessionId": session, "cwd": filepath.Join(p.work, "0"), "mcpServers": []any{}})
	took := time.Since(began)
	a.stdin.Close()
	p.mustBeGone(t, 10*time.Second)
	return took
}

// settled returns the memory of a place's processes once it hardly changes.
func settled(p place) int64 {
	sum := func() (n int64) {
		for _, q := range p.marked() {
			n += q.pss
		}
		return n
	}
	last := sum()
	for range 20 {
		time.Sleep(500 * time.Millisecond)
		now := sum()
		if diff := now - last; diff < 2<<20 && diff > -2<<20 {
			return now
		}
		last = now
	}
	return last
}

// beside lets a session hang within a turn, runs a turn of another session meanwhile, and stops the first. beside returns the result of
// both.
func (a *stdioAgent) beside(one, other string) string {
	a.t.Helper()
	a.lastID++
	held := a.lastID
	text := func(words string) []any { return []any{map[string]string{"type": "text", "text": words}} }
	a.send(map[string]any{"id": held, "method": "session/prompt", "params": map[string]any{"sessionId": one, "prompt": text("Please start and never end.")}})
	a.lastID++
	asked := a.lastID
	a.send(map[string]any{"id": asked, "method": "session/prompt", "params": map[string]any{"sessionId": other, "prompt": text("Please echo the lighthouse.")}})
	found := map[int]string{}
	stopped := time.Time{}
	for limit := time.After(20 * time.Second); ; {
		select {
		case m, ok := <-a.messages:
			if !ok {
				return "the process ended"
			}
			if m.Method != "" {
				a.serve(m)
				continue
			}
			var id int
			_ = json.Unmarshal(m.ID, &id)
			found[id] = fmt.Sprintf("%s%s", m.Result, m.Error)
			if id == asked {
				stopped = time.Now()
				a.send(map[string]any{"method": "session/cancel", "params": map[string]any{"sessionId": one}})
			}
			if id == held {
				return fmt.Sprintf("the other turn: %.80s; the stop after %v: %.80s", found[asked], time.Since(stopped).Round(time.Millisecond), found[held])
			}
		case <-limit:
			return fmt.Sprintf("no end within 20 s; the other turn: %.200s", found[asked])
		}
	}
}
