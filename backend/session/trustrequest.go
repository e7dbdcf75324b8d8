package session

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/launch"
	"deskhand/backend/lifecycle"
	"deskhand/backend/mcp"
	"deskhand/backend/requests"
	"deskhand/backend/setup"
	"deskhand/backend/transcript"
)

// problemDeclined ends a generation because a person declined to start the agent with the files that the agent reads by itself.
const problemDeclined = "trust.declined"

// setUp waits until the worktree of a directory is ready. setUp reports false when the generation has ended meanwhile, and ends it otherwise
// than by a person when the set-up cannot be stored.
func (a *agentProcess) setUp(cwd string) bool {
	tell := func(notices []transcript.Notice) bool { return a.post(func() { a.tell(notices) }) }
	err := a.v.c.cfg.Setups.Ready(a.ctx, setup.Start{Directory: cwd, Ask: a.askTrust, Tell: tell})
	if err != nil && a.ctx.Err() == nil {
		a.post(func() { a.fail(transcript.ProblemFile, "detail", err.Error(), "agent", a.v.agentName, "path", cwd) })
	}
	return err == nil
}

// prepare returns the plan of the start. prepare ends the generation when a person declines the start, and reports false then, and when the
// generation has ended meanwhile.
func (a *agentProcess) prepare(agent, cwd, serverID string) bool {
	plan, err := a.v.c.launch.Prepare(a.ctx, launch.Start{
		Agent: agent, Directory: cwd, Further: a.further, User: serverID, Ask: a.askTrust,
		Tell: func(notices []transcript.Notice) bool { return a.post(func() { a.tell(notices) }) },
	})
	if errors.Is(err, launch.ErrDeclined) {
		a.post(func() { a.fail(problemDeclined, "agent", a.v.agentName, "path", filepath.Clean(cwd)) })
	}
	if err != nil {
		return false
	}
	a.plan = plan
	return true
}

// tell adds notices to the transcript.
func (a *agentProcess) tell(notices []transcript.Notice) {
	for _, n := range notices {
		a.v.note(transcript.Note{Note: transcript.NoteNotice, Notice: &n})
	}
}

// give prepares the system prompt and the MCP servers of the plan, since it is known now what the agent takes, and then opens the
// agent's session. Another goroutine prepares the servers, whose programs are looked for on the disk.
func (a *agentProcess) give() {
	a.servers = []any{}
	prompt, notices := a.plan.SystemPrompt(a.can)
	a.systemPrompt = prompt
	a.tell(notices)
	if !a.plan.HasServers() {
		a.open()
		return
	}
	transports := a.transports()
	a.v.links.Go(func() {
		servers, notices := a.plan.Servers(a.ctx, transports)
		a.post(func() { a.servers = servers; a.tell(notices); a.open() })
	})
}

// transports returns the transports of MCP servers that the agent takes: the measured ones, or else those that the agent declares. By ACP,
// every agent takes stdio.
func (a *agentProcess) transports() []string {
	if measured := a.v.c.cfg.Agents.Quirks(a.v.row.Agent).MCP; measured != nil {
		return measured
	}
	list := []string{mcp.Stdio}
	if a.can.MCPHTTP {
		list = append(list, mcp.HTTP)
	}
	if a.can.MCPSSE {
		list = append(list, mcp.SSE)
	}
	return list
}

// approval is a request of kind trust while the request waits.
type approval struct {
	about     []launch.Executable
	elsewhere []launch.Executable // approved by other answers since the request was made
	verdict   chan string         // takes one answer
}

// trustOptions returns the options of a trust request; otherwise is the choice beside the approvals: launch.Without or launch.Decline.
func trustOptions(otherwise string) []requests.Option {
	options := []requests.Option{
		{ID: launch.Approve, Name: "Approve and start", Kind: "allow_always"},
		{ID: launch.Once, Name: "Start with these once", Kind: "allow_once"},
		{ID: launch.Without, Name: "Start without these", Kind: "reject_once"},
	}
	if otherwise == launch.Decline {
		options[2] = requests.Option{ID: launch.Decline, Name: "Do not start", Kind: "reject_once"}
	}
	return options
}

// askTrust asks a person about executables and waits for the answer. The goroutine of run calls askTrust. ok is false when the generation has
// ended meanwhile.
func (a *agentProcess) askTrust(list []launch.Executable, otherwise string) (answer string, ok bool) {
	waits := &approval{about: list, verdict: make(chan string, 1)}
	if !a.post(func() { a.approval = waits; a.openTrust(list, otherwise) }) {
		return "", false
	}
	select {
	case answer = <-waits.verdict:
		return answer, true
	case <-a.ctx.Done():
		return "", false
	}
}

// openTrust opens the trust request of a start.
func (a *agentProcess) openTrust(list []launch.Executable, otherwise string) {
	v := a.v
	r := &requests.Pending{Request: requests.Request{
		ID: uuid.Must(uuid.NewV7()).String(), Session: v.id, Generation: v.row.Generation, Agent: v.agentName, Kind: requests.KindTrust,
		Title: "Start what is in this directory?", Detail: v.row.Cwd, Options: trustOptions(otherwise), Executables: list,
		Status: lifecycle.StatusRequested, CreatedAt: Time{Time: time.Now()},
	}}
	if v.turn != nil {
		r.Turn = v.turn.ID
	}
	v.inbox.open[r.ID] = r
	v.saveRequest(&r.Request)
	v.do(lifecycle.Open{Request: r.ID})
}

// answerTrust handles a person's answer to a request of kind trust. The start goes on in a later step, so that an approval is stored before
// anything starts by it.
func (b *inbox) answerTrust(r *requests.Pending, answer requests.Answer, surface string) error {
	i := slices.IndexFunc(r.Options, func(o requests.Option) bool { return o.ID == answer.OptionID })
	if i < 0 {
		return bad("answer.unknown_option", "optionId", answer.OptionID)
	}
	status := lifecycle.StatusAnswered
	if strings.HasPrefix(r.Options[i].Kind, "reject") {
		status = lifecycle.StatusRejected
	}
	r.Answer, r.AnsweredBy = mustJSON(answer), surface
	if err := b.v.wish(lifecycle.Resolve{Request: r.ID, Status: status}); err != nil {
		return err
	}
	a := b.v.agent
	if answer.OptionID == launch.Approve {
		directory, about := filepath.Clean(b.v.row.Cwd), a.approval.about
		b.v.step.writes = append(b.v.step.writes, func(ctx context.Context, tx *sql.Tx) error { return launch.SaveApprovals(ctx, tx, directory, about) })
		b.v.c.approved(directory, about, surface)
	}
	b.v.links.Go(func() { a.post(func() { a.approval.verdict <- answer.OptionID }) })
	return nil
}

// reconsider approves a waiting trust request once all its executables were approved in other sessions.
func (b *inbox) reconsider(approved []launch.Executable, surface string) {
	for _, r := range b.waiting() {
		if r.Kind != requests.KindTrust {
			continue
		}
		a := b.v.agent.approval
		a.elsewhere = append(a.elsewhere, approved...)
		if slices.ContainsFunc(r.Executables, func(e launch.Executable) bool { return !slices.ContainsFunc(a.elsewhere, e.Same) }) {
			continue
		}
		if err := b.answerTrust(r, requests.Answer{OptionID: launch.Approve}, surface); err != nil {
			b.v.c.cfg.Logger.Warn("an approval does not fit", "session", b.v.id, "error", err)
		}
	}
}
