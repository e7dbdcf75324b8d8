package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"deskhand/backend/lifecycle"
	"deskhand/backend/proxy"
	"deskhand/backend/straggler"
	"deskhand/backend/transcript"
	"deskhand/backend/transport"
)

// Stragglers are commands of a stopped turn that still run. Package straggler finds their processes; this file looks for them after a turn,
// tells them in the transcript, watches them, and ends them when a person asks for that.

const (
	// stragglerGrace is how long an agent has to end the commands of a stopped turn by itself: Claude answers the cancel before they have
	// ended.
	stragglerGrace = 2 * time.Second

	stragglerPace     = time.Second // between two checks of what runs
	stragglerPatience = 3 * time.Second

	longestCommand = 4 << 10 // bytes shown of a command
)

// leftRunning is a straggler while it runs. leftRunning belongs to the conversation's goroutine.
type leftRunning struct {
	part *proxy.Part
	by   string // who asked to end it
}

// lookForStragglers looks for commands of a stopped turn that still run. The processes of a remote agent cannot be read.
func (v *conversation) lookForStragglers(t *Turn, reason string) {
	stopped := reason == lifecycle.StopCancelled || v.stopping.stopBy.Add(-stopLimit).After(t.StartedAt.Time)
	a := v.agent
	if !stopped || a == nil {
		return
	}
	inst, is := a.inst.(transport.Local)
	turn := straggler.Turn{Began: t.StartedAt.Time, Ended: time.Now(), Calls: commandsOf(v.fold.Calls(t.ID)), Own: a.serverCommands()}
	if !is || len(turn.Calls) == 0 {
		return
	}
	a.work.Go(func() { a.findStragglers(inst.Instance, t.ID, turn) })
}

// serverCommands returns the command lines of the MCP servers that the agent was given.
func (a *agentProcess) serverCommands() [][]string {
	var list [][]string
	for _, server := range a.servers {
		var s struct {
			Command string   `json:"command"`
			Args    []string `json:"args"`
		}
		if json.Unmarshal(mustJSON(server), &s) == nil && s.Command != "" {
			list = append(list, append([]string{s.Command}, s.Args...))
		}
	}
	return list
}

// findStragglers reads the agent's processes at once, since a shell that is about to end still shows which commands it has started; after
// the agent's grace it tells those that still run, and follows them to their end.
func (a *agentProcess) findStragglers(inst *proxy.Instance, turn string, stopped straggler.Turn) {
	kin, err := inst.Kin()
	if err != nil {
		a.unseen(err)
		return
	}
	running := map[string]*proxy.Part{}
	var found []transcript.Straggler
	for _, c := range straggler.Find(stopped, kin) {
		part, err := inst.Part(c.Processes)
		if err != nil {
			a.unseen(err)
			continue
		}
		s := transcript.Straggler{
			ID: fmt.Sprintf("%d.%d", c.PID, c.StartedAt.UnixMilli()), Command: transcript.Clip(c.Text, longestCommand), ToolCallID: c.Call.ID, Title: transcript.Clip(c.Call.Title, longestCommand),
			PID: c.PID, Processes: len(c.Processes), Running: true, StartedAt: Time{Time: c.StartedAt},
		}
		found, running[s.ID] = append(found, s), part
	}
	if len(found) == 0 || !a.wait(min(stragglerGrace, a.v.c.cfg.Patience)) {
		return
	}
	for _, s := range found {
		part := running[s.ID]
		n, err := part.Running()
		if n == 0 || err != nil {
			delete(running, s.ID)
			continue
		}
		s.Processes = n
		a.post(func() {
			a.stragglers[s.ID] = &leftRunning{part: part}
			a.v.note(transcript.Note{Note: transcript.NoteStraggler, Turn: turn, Straggler: &s})
		})
	}
	a.followStragglers(running)
}

// followStragglers notes the end of each straggler.
func (a *agentProcess) followStragglers(running map[string]*proxy.Part) {
	for len(running) > 0 && a.wait(stragglerPace) {
		for id, part := range running {
			if n, err := part.Running(); n == 0 && err == nil {
				delete(running, id)
				a.post(func() { a.stragglerEnded(id) })
			}
		}
	}
}

// stragglerEnded notes the end of a straggler, unless the end was noted before.
func (a *agentProcess) stragglerEnded(id string) {
	if s := a.stragglers[id]; s != nil {
		delete(a.stragglers, id)
		a.v.note(transcript.Note{Note: transcript.NoteStraggler, Straggler: &transcript.Straggler{ID: id, EndedBy: s.by}})
	}
}

func (a *agentProcess) unseen(err error) {
	if !errors.Is(err, errors.ErrUnsupported) {
		a.v.c.cfg.Logger.Warn("the agent's processes cannot be looked at", "session", a.v.id, "error", err)
	}
}

// wait waits for d. wait returns false when the agent has ended before.
func (a *agentProcess) wait(d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-a.ctx.Done():
		return false
	}
}

// commandsOf returns the tool calls that run commands.
func commandsOf(calls []*transcript.ToolCall) (list []straggler.Call) {
	for _, t := range calls {
		if command, ok := straggler.CommandOf(t.Kind, t.Title, t.RawInput); ok {
			list = append(list, straggler.Call{ID: t.ToolCallID, Title: t.Title, Command: command, At: t.StartedAt.Time})
		}
	}
	return list
}
