package export

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"deskhand/backend/acp"
	"deskhand/backend/prose"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/transcript"
)

// writeMarkdown writes everything readable of the conversation as Markdown, and returns what is lost.
func (c conversation) writeMarkdown(ctx context.Context, w io.Writer) (lost, err error) {
	s := c.session
	t, damaged, err := c.transcript(ctx)
	m := &markdown{w: cleaner{w, c.secret}, agent: s.AgentName, acpSession: s.ACPSessionID, requests: map[string]requests.Request{}}
	for _, r := range t.Requests {
		m.requests[r.ID] = r
	}
	title := s.Title
	if title == "" {
		title = "Conversation"
	}
	m.print("# %s\n\n%s in `%s`, %s\n", prose.OneLine(title), s.AgentName, prose.OneLine(s.Cwd), s.CreatedAt.UTC().Format("2 January 2006, 15:04 MST"))
	if damaged != nil {
		m.print("\n> Not all of this conversation could be read, because what is kept of it is damaged: %s\n", prose.OneLine(damaged.Error()))
	}
	if c.unknown != nil {
		m.print("\n> Secrets that could not be read are not hidden here, should anything have them: %s\n", prose.OneLine(c.unknown.Error()))
	}
	words, last := endings(s.AgentName, t)
	for i, e := range t.Items {
		m.entry(e)
		if e.Turn != "" && last[e.Turn] == i {
			m.ended(words[e.Turn])
		}
	}
	return damaged, errors.Join(err, m.err)
}

// markdown writes a conversation for people. The output of programs stands in fences, so that the output changes nothing around it, and
// Markdown that a message leaves open ends with the message. After an error, nothing more is written.
type markdown struct {
	w        io.Writer
	agent    string
	speaker  string
	requests map[string]requests.Request
	err      error

	acpSession string
}

func (m *markdown) print(format string, args ...any) {
	if m.err == nil {
		_, m.err = fmt.Fprintf(m.w, format, args...)
	}
}

// ended writes the words for the end of a turn; a turn without words has ended by itself.
func (m *markdown) ended(words string) {
	if words == "" {
		return
	}
	m.speaker = ""
	if words == session.TurnStopped {
		m.print("\n> **The turn was %s.**\n", words)
		return
	}
	m.print("\n> **The turn failed:** %s\n", prose.OneLine(words))
}

// says writes a heading with the speaker, unless the same speaker goes on.
func (m *markdown) says(who string) {
	if m.speaker != who {
		m.speaker = who
		m.print("\n## %s\n", who)
	}
}

func (m *markdown) entry(e transcript.Entry) {
	switch e.Kind {
	case "user":
		m.speaker = "" // each message of a person has a heading
		m.says("You")
		m.print("\n%s\n", prose.Closed(e.Text))
		m.blocks(e.Blocks)
		m.files(e.Attachments)
	case "attachment":
		m.says(m.agent)
		m.files(e.Attachments)
	case "agent":
		m.says(m.agent)
		m.print("\n%s\n", prose.Closed(e.Text))
		m.blocks(e.Blocks)
	case "thought":
		m.says(m.agent)
		m.print("\n<details><summary>Thought</summary>\n\n%s\n\n</details>\n", acp.Fenced("", e.Text))
	case "tool":
		m.says(m.agent)
		tool := e.Tool.Marked()
		m.tool(&tool)
	case "plan":
		m.plan(&e)
	case "request":
		m.request(e.Request)
	case "rule":
		m.print("\n*%s by rule: %s*\n", map[string]string{"allow": "Allowed", "deny": "Denied"}[e.Rule.Effect], prose.OneLine(e.Rule.Text))
	case "notice":
		m.print("\n> %s: %s\n", prose.OneLine(e.Notice.Title), prose.OneLine(e.Notice.Description))
	case "divider":
		m.divider(e.Divider)
	case "terminal", "file", "compaction":
		m.says(m.agent)
		m.served(e)
	case "straggler":
		m.print("\n*%s*\n", prose.OneLine(e.Straggler.Words()))
	case "subagent", "message":
		m.delegated(&e)
	case "raw":
		m.print("\n%s\n", acp.Fenced("json", string(e.Raw)))
	}
}

// delegated writes where a subagent began, or a message between two sessions.
func (m *markdown) delegated(e *transcript.Entry) {
	if e.Kind == "subagent" {
		m.says(m.agent)
		m.print("\n*Subagent: %s*\n", prose.OneLine(e.Subagent.Words()))
		return
	}
	m.says(e.Message.Words(m.acpSession))
	m.print("\n%s\n", prose.Closed(e.Text))
	m.blocks(e.Blocks)
}

func (m *markdown) plan(e *transcript.Entry) {
	m.says(m.agent)
	m.print("\n")
	if e.Removed {
		m.print("*The agent has dismissed this plan:*\n\n")
	}
	if e.Text != "" {
		m.print("%s\n", prose.Closed(e.Text))
	}
	for _, p := range e.Plan {
		m.print("- [%s] %s\n", map[bool]string{true: "x", false: " "}[p.Status == "completed"], prose.OneLine(p.Content))
	}
}

// divider writes a change in the life of the session, and the end of the error output of an agent that has ended.
func (m *markdown) divider(d *transcript.Divider) {
	words := d.Words(m.agent)
	if d.Exit != nil {
		words += d.Exit.Status()
	}
	m.print("\n---\n\n*%s*\n", prose.OneLine(words))
	if d.Exit != nil && d.Exit.StderrTail != "" {
		m.print("\n%s\n", acp.Fenced("", d.Exit.StderrTail))
	}
}

// blocks writes the kinds and names of content blocks that are no text.
func (m *markdown) blocks(blocks []json.RawMessage) {
	for _, raw := range blocks {
		var b struct{ Type, Name, URI, MimeType string }
		_ = json.Unmarshal(raw, &b) // a field that does not fit stays empty
		m.print("\n*[%s]*\n", prose.OneLine(strings.Join(strings.Fields(b.Type+" "+b.Name+" "+b.URI+" "+b.MimeType), " ")))
	}
}

// files writes the names of attachments.
func (m *markdown) files(list []transcript.Attachment) {
	for i, a := range list {
		if i == 0 {
			m.print("\n")
		}
		where := ""
		if a.Path != "" {
			where = ", " + m.code(a.Path)
		}
		m.print("- **file** %s (%s, %d bytes%s)\n", m.code(a.Filename), prose.OneLine(a.MimeType), a.Size, where)
	}
}

func (m *markdown) tool(t *transcript.ToolCall) {
	m.print("\n**%s** %s (%s)\n", prose.OneLine(t.Kind), m.code(t.Title), t.Status)
	for _, raw := range t.Content {
		var c struct {
			Type             string
			Path             string
			OldText, NewText string
			Content          struct{ Type, Text string }
		}
		if json.Unmarshal(raw, &c) != nil {
			continue
		}
		switch c.Type {
		case "diff":
			m.print("\n%s\n\n%s\n", m.code(c.Path), acp.Fenced("diff", difference(c.OldText, c.NewText)))
		case "content":
			if c.Content.Text != "" {
				m.print("\n%s\n", acp.Fenced("", c.Content.Text))
			}
		}
	}
}

func (m *markdown) request(id string) {
	r, ok := m.requests[id]
	if !ok {
		return
	}
	m.print("\n> **%s asks:** %s  \n> %s", prose.OneLine(r.Agent), prose.OneLine(r.Title), r.Status)
	var a requests.Answer
	if json.Unmarshal(r.Answer, &a) == nil {
		for _, o := range r.Options {
			if o.ID == a.OptionID {
				m.print(": %s", prose.OneLine(o.Name))
			}
		}
	}
	m.print("\n")
}

func (m *markdown) code(s string) string {
	return "`" + strings.ReplaceAll(prose.OneLine(s), "`", "'") + "`"
}

// difference returns a diff of two texts: the lines between the equal beginning and the equal end, and a few lines around them.
func difference(before, after string) string {
	old, now := lines(before), lines(after)
	head := 0
	for head < len(old) && head < len(now) && old[head] == now[head] {
		head++
	}
	tail := 0
	for tail < len(old)-head && tail < len(now)-head && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	const around = 3
	var b strings.Builder
	write := func(sign string, list []string) {
		for _, l := range list {
			b.WriteString(sign + l + "\n")
		}
	}
	write(" ", old[max(0, head-around):head])
	write("-", old[head:len(old)-tail])
	write("+", now[head:len(now)-tail])
	write(" ", old[len(old)-tail:min(len(old), len(old)-tail+around)])
	return b.String()
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}

// served writes a terminal or a file that Deskhand served to the agent, or a compaction.
func (m *markdown) served(e transcript.Entry) {
	switch {
	case e.Terminal != nil:
		how := "running"
		switch t := e.Terminal; {
		case t.Running:
		case t.Signal != "":
			how = "ended by " + t.Signal
		case t.ExitCode != nil && *t.ExitCode == 0:
			how = "completed"
		default:
			how = "failed"
		}
		m.print("\n**terminal** %s (%s)\n", m.code(strings.Join(append([]string{e.Terminal.Command}, e.Terminal.Args...), " ")), how)
		if e.Text != "" {
			m.print("\n%s\n", acp.Fenced("", e.Text))
		}
	case e.File != nil:
		m.print("\n**file** %s\n", m.code(e.File.Path))
		var d struct{ OldText, NewText string }
		if json.Unmarshal(e.File.Diff, &d) == nil {
			m.print("\n%s\n", acp.Fenced("diff", difference(d.OldText, d.NewText)))
		}
	case e.Compaction != nil:
		m.print("\n**compaction** (%s)\n", prose.OneLine(e.Compaction.Status))
		if e.Text != "" {
			m.print("\n%s\n", prose.Closed(e.Text))
		}
	}
}
