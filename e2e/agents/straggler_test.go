//go:build e2e

package agents

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"deskhand/backend/requests"
	"deskhand/backend/transcript"
	"deskhand/e2e/agents/llm"
)

// TestStopTellsWhatRunsOn: a command that an agent leaves running when its turn is stopped is reported, and can be ended. Not reported are
// commands that the agent itself ends in time, MCP servers, and commands that a turn left on purpose before it ended. leavers lists the
// agents that leave their commands: the test notices a new version with another behaviour.
func TestStopTellsWhatRunsOn(t *testing.T) {
	leavers := []string{"codex"}
	const command = "sleep 1; echo x > begun.txt; sleep 302; echo end > end.txt" // Codex ends a command that has just begun
	for _, agent := range pinned(t) {
		t.Run(agent.ID, func(t *testing.T) {
			model := openScripted(t, []llm.Turn{
				{When: "leave a job", Steps: []llm.Step{{Text: "I leave one. ", Shell: "nohup sleep 303 >/dev/null 2>&1 & echo left > left.txt"}, {Text: "It is left."}}},
				{When: "run for long", Steps: []llm.Step{{Text: "This takes a while. ", Shell: command}, {Text: "It ended."}}},
				{When: "go on", Steps: []llm.Step{{Text: "Gone on."}}},
			})
			p := newPlace(t, model)
			onPath(t, &p, agent, model)
			s := startServer(t, p)
			s.call("PUT", "/client/config/mcp?directory="+p.work+"&name=lamp", map[string]any{
				"type": "local", "command": os.Args[0], "env": map[string]string{probeVariable: stdioWord},
			}, nil)
			f := follow(s)
			f.open(agent.ID, p)
			f.done(f.allowing("Please leave a job.", "left.txt"))
			f.ready()
			turn := f.allowing("Please run for long.", "begun.txt")
			f.s.call("POST", "/client/sessions/"+f.session.ID+"/cancel", nil, nil)
			if end := f.done(turn); end.StopReason != "cancelled" {
				t.Errorf("the turn ended with %s, want cancelled", end.StopReason)
			}
			f.ready()
			if slices.Contains(leavers, agent.ID) {
				f.until("the row of the command", func() bool { return len(f.stragglers(true)) > 0 })
				rows := f.stragglers(true)
				if got := rows[0].Straggler; len(rows) != 1 || got.Command != command || got.Title == "" || rows[0].Turn != turn {
					t.Errorf("told is\n%s\nwant one row of %q in turn %s", readable(rows), command, turn)
				}
				cmd := exec.CommandContext(t.Context(), deskhand(), "sessions", "end", f.session.ID, strconv.Itoa(rows[0].Straggler.PID))
				cmd.Env = p.env
				if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), command) {
					t.Errorf("sessions end: %v\n%s", err, out)
				}
				f.until("the end of the command", func() bool { return len(f.stragglers(true)) == 0 })
				if got := f.stragglers(false)[0].Straggler; got.EndedBy != "person" || got.EndedAt == nil {
					t.Errorf("ended is %+v", got)
				}
			}
			// An unreported command has ended, by whatever cause; the job of the previous turn runs, or the agent ended the job with its
			// turn.
			eventually(t, 10*time.Second, "the end of the command", func() error {
				for _, q := range p.marked() {
					if strings.HasPrefix(q.command, "sleep 302") {
						return fmt.Errorf("it runs: %v", q)
					}
				}
				return nil
			})
			if rows := f.stragglers(true); len(rows) > 0 {
				t.Errorf("still told as running is\n%s", readable(rows))
			}
			if n := len(f.stragglers(false)); n > 0 && !slices.Contains(leavers, agent.ID) {
				t.Errorf("%s leaves its commands now, for a moment at least:\n%s", agent.ID, readable(f.stragglers(false)))
			}
			if _, err := os.Stat(filepath.Join(p.work, "end.txt")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the command went on to its end: %v", err)
			}
			turn = f.prompt("Please go on.")
			if end := f.done(turn); end.StopReason != "end_turn" { // Claude is first told of its job, and says something else
				t.Errorf("after that a turn ends with %s %+v", end.StopReason, end.Error)
			}
			s.stop()
			p.mustBeGone(t, 5*time.Second)
		})
	}
}

// stragglers are the rows of commands that run on, or that have ended.
func (f *follower) stragglers(running bool) []transcript.Entry {
	return slices.DeleteFunc(f.sorted(), func(e transcript.Entry) bool { return e.Straggler == nil || e.Straggler.Running != running })
}

// allowing sends a prompt, allows the agent's requests, and returns the turn when a file of its command exists.
func (f *follower) allowing(text, file string) string {
	f.s.t.Helper()
	turn := f.prompt(text)
	path := filepath.Join(f.session.Cwd, file)
	f.until(file, func() bool {
		if r, waits := f.waiting(); waits {
			for _, o := range r.Options {
				if o.Kind == "allow_once" { // the request may have been answered a moment ago
					f.s.try("POST", "/client/requests/"+r.ID+"/answer", requests.Answer{OptionID: o.ID})
					break
				}
			}
		}
		_, err := os.Stat(path)
		return err == nil || f.turns[turn].State == "done"
	})
	if _, err := os.Stat(path); err != nil {
		f.s.t.Fatalf("no command ran for %q:\n%s", text, f.transcript())
	}
	return turn
}
