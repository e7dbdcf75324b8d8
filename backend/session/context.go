package session

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"deskhand/backend/journal"
	"deskhand/backend/mcp"
	"deskhand/backend/proxy"
	"deskhand/backend/transcript"
)

// What an agent has been given beside what was said to it, and what it says beside its protocol.

// Given is what the agent of a session was given when its session was last opened.
type Given struct {
	Generation int64             `json:"generation" doc:"Which life of the agent's process that was; 0 when there was none"`
	Servers    []GivenServer     `json:"servers" doc:"The MCP servers that it was given, in the order in which it was told of them"`
	Skills     bool              `json:"skills" doc:"The agent is known to read skills"`
	Turns      int               `json:"turns" doc:"How many prompts it has been given"`
	WorkedMs   int64             `json:"workedMs" doc:"How long the turns took that have ended, all together"`
	Plan       *transcript.Entry `json:"plan,omitempty" doc:"The newest plan"`
}

// GivenServer is an MCP server as an agent was told of it.
type GivenServer struct {
	Name      string `json:"name"`
	Transport string `json:"transport" enum:"stdio,http,sse"`
	Own       bool   `json:"own,omitempty" doc:"Deskhand's own tools"`
}

// Given tells what the agent of a session was given.
func (c *Client) Given(ctx context.Context, id string) (Given, error) {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return Given{}, err
	}
	s := v.look()
	g := Given{Servers: []GivenServer{}, Skills: len(c.cfg.Agents.Quirks(s.Agent).SkillDirs) > 0}
	if err := c.cfg.Store.Read().QueryRowContext(ctx, `SELECT count(*), coalesce(sum(CASE WHEN ended_at > 0 THEN ended_at - started_at END), 0) FROM turn WHERE session = ?`, id).
		Scan(&g.Turns, &g.WorkedMs); err != nil {
		return g, err
	}
	plans, err := readableOnly[transcript.Entry](ctx, c.cfg.Store.Read(), `SELECT data FROM entry WHERE session = ? AND `+storedKind+` = 'plan' ORDER BY seq DESC LIMIT 1`, id)
	if err != nil {
		return g, err
	}
	if len(plans) > 0 {
		g.Plan = &plans[0]
	}
	opening, err := c.opening(ctx, id)
	if err != nil || opening == nil {
		return g, err
	}
	g.Generation = opening.Generation
	g.Servers = append(g.Servers, serversIn(opening.Data)...)
	for i := range g.Servers { // ours comes first, and its name is nobody else's
		g.Servers[i].Own = i == 0 && c.hosts.At(s.Place).Tools != nil && g.Servers[i].Name == ToolsServer
	}
	return g, nil
}

// ToolsServer is what our own tools are called among an agent's MCP servers.
const ToolsServer = "deskhand"

// opening is the newest message by which an agent was given its session: one of the first of its generation, which is looked for from
// there on. It is nil when none was.
func (c *Client) opening(ctx context.Context, id string) (*journal.Frame, error) {
	const first = 64 // of ours in a generation; the message that opens the session is among them
	list, err := c.journal.Sent(ctx, id, first)
	if err != nil {
		return nil, err
	}
	for _, f := range slices.Backward(list) {
		var m struct{ Method string }
		if json.Unmarshal(f.Data, &m) == nil && slices.Contains([]string{"session/new", "session/load", "session/resume", "session/fork"}, m.Method) {
			return &f, nil
		}
	}
	return nil, nil //nolint:nilnil // there is none, which is no failure
}

// serversIn are the MCP servers that a message tells an agent of.
func serversIn(data []byte) (list []GivenServer) {
	var m struct {
		Params struct {
			Servers []struct{ Name, Type string } `json:"mcpServers"`
		} `json:"params"`
	}
	_ = json.Unmarshal(data, &m) // ours
	for _, s := range m.Params.Servers {
		if s.Type == "" { // as the protocol has it
			s.Type = mcp.Stdio
		}
		list = append(list, GivenServer{Name: s.Name, Transport: s.Type})
	}
	return list
}

// Stderr is the end of what an agent wrote beside its protocol.
type Stderr struct {
	Text       string `json:"text" doc:"The last lines, at most 8 KiB"`
	Generation int64  `json:"generation" doc:"Which life of the agent's process"`
	Running    bool   `json:"running"`
	PID        int    `json:"pid,omitempty"`
	Elsewhere  bool   `json:"elsewhere,omitempty" doc:"It runs at another place, which tells of this only when it has ended"`
}

// Stderr gives what the newest agent of a session has written there: as it runs, else at its end.
func (c *Client) Stderr(ctx context.Context, id string) (Stderr, error) {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return Stderr{}, err
	}
	s := v.look()
	out := Stderr{Generation: s.Generation, Elsewhere: v.host().Agents == nil}
	if !out.Elsewhere {
		list := c.cfg.Proxy.List()
		if i := slices.IndexFunc(list, func(p proxy.Status) bool { return p.ServerID == serverIDOf(s) }); i >= 0 && list[i].Phase != proxy.Starting {
			out.Text, out.Running, out.PID = c.secret.Text(list[i].StderrTail), list[i].Phase == proxy.Running, list[i].PID
			return out, nil
		}
	}
	out.Text, err = c.lastWords(ctx, id)
	return out, err
}

// lastWords is what the journal has of the stderr of an agent that has ended.
func (c *Client) lastWords(ctx context.Context, id string) (string, error) {
	notes, _, err := attachmentSessions{c}.notes(ctx, id, lastSeq)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrStorage, err)
	}
	for _, n := range notes {
		switch {
		case n.Note == transcript.NoteStarting:
			return "", nil // it has not ended
		case n.Note == transcript.NoteClosed && n.Exit != nil:
			return n.Exit.StderrTail, nil
		}
	}
	return "", nil
}
