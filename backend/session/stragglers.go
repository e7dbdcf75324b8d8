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
)

// What a stopped turn has left running. Package straggler tells which processes that are; here they are looked for, told in the transcript,
// watched, and ended when a person asks for that.

const (
	// stragglerGrace is how long an agent has to end the commands of a stopped turn by itself: Claude answers before they have ended.
	stragglerGrace = 2 * time.Second

	stragglerPace     = time.Second // between two looks at what runs on
	stragglerPatience = 3 * time.Second

	longestCommand = 4 << 10 // of what is told of a command
)

// leftRunning is a straggler as long as it runs; of the conversation's goroutine.
type leftRunning struct {
	part *proxy.Part
	by   string // who was asked to end it
}

// lookForStragglers looks for what a turn that was stopped has left running. An agent elsewhere cannot be asked for its processes.
func (v *conversation) lookForStragglers(t *Turn, reason string) {
	stopped := reason == lifecycle.StopCancelled || v.stopping.stopBy.Add(-stopLimit).After(t.StartedAt.Time)
	a := v.agent
	if !stopped || a == nil {
		return
	}
	inst, is := a.inst.(localTransport)
	turn := straggler.Turn{Began: t.StartedAt.Time, Ended: time.Now(), Calls: commandsOf(v.fold.Calls(t.ID)), Own: a.serverCommands()}
	if !is || len(turn.Calls) == 0 {
		return
	}
	a.work.Go(func() { a.findStragglers(inst.Instance, t.ID, turn) })
}

// serverCommands are the command lines of the MCP servers that the agent was told of.
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

// findStragglers tells of what runs on when the agent has had its time, and follows that to its end. It looks at once too: a shell that is
// about to be ended tells what it has left running.
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

// followStragglers notes the end of each.
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

// stragglerEnded notes the end of one, unless that was noted.
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

// wait lasts d; it is false when the agent is gone before.
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
