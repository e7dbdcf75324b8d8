package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"deskhand/backend/acp"
	"deskhand/backend/journal"
	"deskhand/backend/mcp"
	"deskhand/backend/proxy"
	"deskhand/backend/refusal"
	"deskhand/backend/transcript"
)

// Given is what the agent of a session was given when its session was last opened.
type Given struct {
	Generation   int64              `json:"generation" doc:"Which life of the agent's process that was; 0 when there was none"`
	Servers      []GivenServer      `json:"servers" doc:"The MCP servers that it was given, in the order in which it was told of them"`
	SystemPrompt *GivenSystemPrompt `json:"systemPrompt,omitempty" doc:"The instructions of a person that it was given"`
	Skills       bool               `json:"skills" doc:"The agent is known to read skills"`
	Turns        int                `json:"turns" doc:"How many prompts it has been given"`
	WorkedMs     int64              `json:"workedMs" doc:"How long the turns took that have ended, all together"`
	Plan         *transcript.Entry  `json:"plan,omitempty" doc:"The newest plan"`
}

// GivenServer is an MCP server as an agent was told of it.
type GivenServer struct {
	Name      string `json:"name"`
	Transport string `json:"transport" enum:"stdio,http,sse"`
	Own       bool   `json:"own,omitempty" doc:"Deskhand's own tools"`
}

// GivenSystemPrompt is instructions as an agent was told of them.
type GivenSystemPrompt struct {
	Mode string `json:"mode" enum:"append,override" doc:"Override: in place of its own instructions"`
	Text string `json:"text"`
}

// Given returns what the agent of a session was given.
func (i *Inspector) Given(ctx context.Context, id string) (Given, error) {
	s, err := i.deps.Find(ctx, id)
	if err != nil {
		return Given{}, err
	}
	g := Given{Servers: []GivenServer{}, Skills: s.Skills}
	if g.Turns, g.WorkedMs, err = i.entries.Worked(ctx, id); err != nil {
		return g, err
	}
	if g.Plan, err = i.entries.NewestPlan(ctx, id); err != nil {
		return g, err
	}
	opening, err := i.opening(ctx, id)
	if err != nil || opening == nil {
		return g, err
	}
	g.Generation = opening.Generation
	servers, prompt := parseOpening(opening.Data)
	g.Servers, g.SystemPrompt = append(g.Servers, servers...), prompt
	if len(g.Servers) > 0 { // our own server comes first, and no other server has its name
		g.Servers[0].Own = s.Tools && g.Servers[0].Name == toolsServer
	}
	return g, nil
}

// toolsServer is the name of our own tools among an agent's MCP servers.
const toolsServer = "deskhand"

// opening returns the newest message by which an agent was given its session, or nil. The message is among the first of its generation.
func (i *Inspector) opening(ctx context.Context, id string) (*journal.Frame, error) {
	const first = 64 // messages to the agent in a generation; the message that opens the session is among them
	list, err := i.journal.Sent(ctx, id, first)
	if err != nil {
		return nil, err
	}
	for _, f := range slices.Backward(list) {
		var m struct{ Method string }
		if json.Unmarshal(f.Data, &m) == nil && slices.Contains([]string{"session/new", "session/load", "session/resume", "session/fork"}, m.Method) {
			return &f, nil
		}
	}
	return nil, nil //nolint:nilnil // an agent that was given no session is no failure
}

// parseOpening returns the MCP servers and the instructions of a message that opens a session.
func parseOpening(data []byte) (list []GivenServer, prompt *GivenSystemPrompt) {
	var m struct {
		Params struct {
			Servers []struct{ Name, Type string } `json:"mcpServers"`
			Prompt  *acp.SystemPrompt             `json:"systemPrompt"`
		} `json:"params"`
	}
	_ = json.Unmarshal(data, &m) // we wrote the message
	for _, s := range m.Params.Servers {
		if s.Type == "" { // the protocol leaves the type of stdio out
			s.Type = mcp.Stdio
		}
		list = append(list, GivenServer{Name: s.Name, Transport: s.Type})
	}
	if p := m.Params.Prompt; p != nil {
		prompt = &GivenSystemPrompt{Mode: p.Mode, Text: p.Text()}
	}
	return list, prompt
}

// Stderr is the end of what an agent wrote beside its protocol.
type Stderr struct {
	Text       string `json:"text" doc:"The last lines, at most 8 KiB"`
	Generation int64  `json:"generation" doc:"Which life of the agent's process"`
	Running    bool   `json:"running"`
	PID        int    `json:"pid,omitempty"`
	Elsewhere  bool   `json:"elsewhere,omitempty" doc:"It runs at another place, which tells of this only when it has ended"`
}

// Stderr returns the end of the stderr of a session's newest agent: as of now while the agent runs, else as the journal has it.
func (i *Inspector) Stderr(ctx context.Context, id string) (Stderr, error) {
	s, err := i.deps.Find(ctx, id)
	if err != nil {
		return Stderr{}, err
	}
	out := Stderr{Generation: s.Generation, Elsewhere: s.Remote}
	if !s.Remote {
		list := i.deps.Processes()
		if at := slices.IndexFunc(list, func(p proxy.Status) bool { return p.ServerID == s.ServerID }); at >= 0 && list[at].Phase != proxy.Starting {
			out.Text, out.Running, out.PID = i.deps.Redactor.Text(list[at].StderrTail), list[at].Phase == proxy.Running, list[at].PID
			return out, nil
		}
	}
	out.Text, err = i.storedStderr(ctx, id)
	return out, err
}

// storedStderr returns the stderr that the journal has of the newest agent, or "" when that agent has not ended.
func (i *Inspector) storedStderr(ctx context.Context, id string) (text string, err error) {
	over := false
	err = i.journal.Notes(ctx, id, math.MaxInt64, func(f journal.Frame, damaged error) {
		var n transcript.Note
		if over || damaged != nil || json.Unmarshal(f.Data, &n) != nil {
			return
		}
		switch {
		case n.Note == transcript.NoteStarting:
			over = true
		case n.Note == transcript.NoteClosed && n.Exit != nil:
			text, over = n.Exit.StderrTail, true
		}
	})
	if err != nil {
		return "", fmt.Errorf("%w: %w", refusal.ErrStorage, err)
	}
	return text, nil
}
