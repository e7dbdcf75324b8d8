package session

import (
	"cmp"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/acp"
	"deskhand/backend/lifecycle"
	"deskhand/backend/proxy"
	"deskhand/backend/transcript"
)

// An agent may hand a part of its work to a subagent, which it announces as a child session (ACP, Subagents). A child session is a session of
// Deskhand with a journal, a transcript, requests and turns of its own: its agent is a part of the process of its parent's agent. The
// conversation that reads the process hands each message to the conversation of the child that the message names. Nobody but the agent
// prompts a child; a person reads the child, answers its requests, and stops its work where the agent allows that.

// Subagent is what a session is that the agent of another session has begun.
type Subagent struct {
	Parent      string `json:"parent" doc:"Id of the session whose agent has begun this one"`
	Description string `json:"description,omitempty" doc:"What the subagent is for, as the agent says"`
	Cwd         string `json:"cwd,omitempty" doc:"Where the agent says that the subagent works; absent where that is the parent's directory"`
	State       string `json:"state,omitempty" doc:"What the agent last said of the subagent: running, idle, requires_action, unknown or a word of the agent's own"`
	Stoppable   bool   `json:"stoppable,omitempty" doc:"The work of the subagent alone can be stopped"`
}

const (
	refusedDelegated = "subagent.delegated" // only the agent of its parent begins something in the session of a subagent
	refusedUnstopped = "subagent.unstopped" // the agent stops the subagent only together with its parent
)

// family is the child sessions of one agent process, and their children, by their ACP session ids.
type family struct {
	mu      sync.Mutex // protects members
	members map[string]*within
}

func (f *family) member(id string) *within {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.members[id]
}

func (f *family) list() (list []*within) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.members {
		list = append(list, w)
	}
	return list
}

// atWork reports whether a turn of a child session runs.
func (f *family) atWork() bool {
	for _, w := range f.list() {
		if w.child.look().Turn != nil {
			return true
		}
	}
	return false
}

// within is the transport of a child session: the messages that the process of its parent's agent sends for the child, and the way back.
// Any goroutine may call its methods.
type within struct {
	a     *agentProcess // reads the process
	inst  transport     // the process
	child *conversation
	fresh chan struct{} // holds a token when there are messages

	// These two belong to the goroutine of the conversation that reads the process.
	known bool            // the child was stored before the process, so that its replayed history is stored already
	last  []proxy.Message // what was last told of a known child while the history was replayed

	mu    sync.Mutex // protects the fields below
	noted bool       // the parent's transcript shows the child
	queue []proxy.Message
}

func (w *within) push(m proxy.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = append(w.queue, m)
	select {
	case w.fresh <- struct{}{}:
	default:
	}
}

func (w *within) take() (batch []proxy.Message) {
	w.mu.Lock()
	defer w.mu.Unlock()
	batch, w.queue = w.queue, nil
	return batch
}

// note reports whether the child is to be shown in its parent's transcript now, and counts it as shown.
func (w *within) note() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	was := w.noted
	w.noted = true
	return !was
}

// withinReader reads the messages of a child session.
type withinReader struct{ *within }

// Next returns io.EOF when the process has ended.
func (w withinReader) Next(ctx context.Context) ([]proxy.Message, error) {
	for {
		if batch := w.take(); len(batch) > 0 {
			return batch, nil
		}
		select {
		case <-w.fresh:
		case <-w.a.ctx.Done():
			if batch := w.take(); len(batch) > 0 {
				return batch, nil
			}
			return nil, io.EOF
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Send sends a message of the child to the process.
func (w *within) Send(ctx context.Context, msg []byte) error { return w.a.sendTo(ctx, w.inst, msg) }

func (w *within) After(uint64) reader                { return withinReader{w} }
func (withinReader) Working()                        {}
func (withinReader) Close()                          {}
func (w *within) Status() proxy.Status               { return w.inst.Status() }
func (*within) Problem() (string, map[string]string) { return "", nil }
func (*within) Interrupt() error                     { return proxy.ErrNoSignal }
func (*within) Close() error                         { return nil } // the process belongs to the parent

// divert handles what a message of the agent means for child sessions, and reports whether the message is a child's alone.
func (a *agentProcess) divert(env acp.Envelope, m proxy.Message) bool {
	own := a.v.row.ACPSessionID
	if a.inst == nil || own == "" {
		return false
	}
	session, update := acp.SessionOf(m.Data, own)
	u, err := acp.ParseSubagentUpdate(update)
	announces := update != nil && err == nil // otherwise the transcript shows the update as it came
	switch {
	case a.v.within != nil && announces && u.SessionID == own:
		a.v.hearsOfItself(u)
		return false
	case a.v.within != nil:
		if announces {
			a.shows(u.SessionID)
		}
		return false
	case announces:
		return a.announced(session, u, m)
	case session != own:
		w := a.family.member(session)
		if w == nil {
			w = a.adopt(acp.SubagentUpdate{SessionID: session}, nil)
		}
		if w != nil && !a.repeats(w) {
			w.push(m)
		}
		return w != nil
	case env.Kind == acp.Notification && (env.Method() == "elicitation/complete" || env.Method() == "$/cancel_request"): // these name no session
		for _, w := range a.family.list() {
			w.push(m)
		}
	}
	return false
}

// announced handles what the agent tells a session of a child of that session.
func (a *agentProcess) announced(session string, u acp.SubagentUpdate, m proxy.Message) bool {
	teller, announcer := a.family.member(session), a.v
	if teller != nil {
		announcer = teller.child
	}
	w := a.adopt(u, announcer)
	switch {
	case teller == nil:
		a.shows(u.SessionID)
	case !a.repeats(teller):
		teller.push(m)
	}
	switch {
	case w == nil:
	case a.repeats(w):
		w.last = []proxy.Message{m}
	default:
		w.push(m)
	}
	return teller != nil
}

// repeats reports whether messages for a child are the replay of a history that is stored already.
func (a *agentProcess) repeats(w *within) bool {
	return w.known && a.v.state.Base == lifecycle.Replaying
}

// replayed hands on what was last told of each child while the agent replayed the history: what the child does now.
func (a *agentProcess) replayed() {
	for _, w := range a.family.list() {
		for _, m := range w.last {
			w.push(m)
		}
		w.last = nil
	}
}

// shows puts a new child session into the transcript of the session whose agent has announced it.
func (a *agentProcess) shows(id string) {
	if w := a.family.member(id); w != nil && w.note() {
		a.v.note(transcript.Note{Note: transcript.NoteSubagent, Session: id, To: w.child.id})
		a.v.row.Subagents++
		a.v.saveRow()
	}
}

// adopt returns the transport of a child session, whose conversation reads from then on. Without a parent, only a child that is stored
// already is adopted; nil = there is none, or it cannot be stored.
func (a *agentProcess) adopt(u acp.SubagentUpdate, parent *conversation) *within {
	if w := a.family.member(u.SessionID); w != nil {
		return w
	}
	v := a.v
	child, err := v.c.subagent(v, u, parent)
	if err != nil {
		v.c.cfg.Logger.Error("a subagent cannot be stored", "session", v.id, "error", err)
	}
	if child == nil || err != nil {
		return nil
	}
	w := &within{a: a, inst: a.inst, child: child, known: child.look().Generation > 0, noted: child.look().Generation > 0, fresh: make(chan struct{}, 1)}
	a.family.mu.Lock()
	a.family.members[u.SessionID] = w
	a.family.mu.Unlock()
	child.post(func() {
		if child.state.Base != lifecycle.Closed {
			child.do(lifecycle.Exited{Code: transcript.ProblemQuit})
		}
		child.within = w
		child.do(lifecycle.Start{})
	})
	return w
}

// runWithin is run for a child session: its agent is there already.
func (a *agentProcess) runWithin(w *within) {
	a.v.links.Go(func() { a.write(w) })
	a.post(func() {
		a.inst, a.family = w, w.a.family
		a.v.restored = transcript.RestoredSubagent
		a.v.do(lifecycle.AgentReady{})
	})
	a.read(w)
	a.post(func() { a.v.do(lifecycle.Exited{Code: transcript.ProblemQuit}) })
}

// sendTo sends a message to an agent process, one at a time: also the messages of child sessions.
func (a *agentProcess) sendTo(ctx context.Context, inst transport, msg []byte) error {
	a.sending.Lock()
	defer a.sending.Unlock()
	return inst.Send(ctx, msg)
}

// hearsOfItself takes in what the agent says of the child session: its names, and whether it works.
func (v *conversation) hearsOfItself(u acp.SubagentUpdate) {
	s := *v.row.Subagent
	s.take(u, v.c.secret.Text)
	v.row.Subagent = &s
	if u.Title.Given && v.row.titleBy != titleByPerson {
		v.row.Title, v.row.titleBy = titleOf(v.c.secret.Text(u.Title.Value)), titleByAgent
	}
	v.saveRow()
	switch s.State {
	case acp.SubagentRunning, acp.SubagentBlocked:
		if v.turn == nil {
			v.turn = v.newTurn(uuid.Must(uuid.NewV7()).String())
			v.do(lifecycle.Prompt{Turn: v.turn.ID})
		}
	case acp.SubagentIdle:
		if v.turn == nil {
			return
		}
		state := u.State.Value
		reason := cmp.Or(state.StopReason, lifecycle.StopEnd)
		if v.turn.Usage = state.Usage; reason == lifecycle.StopError {
			v.failure = &transcript.TurnError{Code: acp.CodeInternalError, Message: "the agent did not say why"}
			if state.Error != nil {
				v.failure = v.c.turnError(state.Error)
			} else if state.Message != "" {
				v.failure.Message = v.c.secret.Text(state.Message)
			}
		}
		v.do(lifecycle.Stopped{Turn: v.turn.ID, Reason: reason})
	}
}

func (s *Subagent) take(u acp.SubagentUpdate, clean func(string) string) {
	if u.Description.Given {
		s.Description = transcript.ClipText(clean(u.Description.Value))
	}
	if u.Cwd.Given {
		s.Cwd = u.Cwd.Value
	}
	if u.Cancel.Given {
		s.Stoppable = u.Cancel.Value
	}
	if u.State.Given {
		s.State = u.State.Value.State
	}
}

// belongs refuses what would take the session of a subagent away from its parent. Any goroutine may call belongs.
func (v *conversation) belongs() error {
	if v.look().Subagent != nil {
		return &RefusedError{Code: refusedDelegated}
	}
	return nil
}

// refusesSubagent returns why a person cannot give a command to the session of a subagent; nil = the person can.
func (v *conversation) refusesSubagent(c lifecycle.Command) error {
	switch c.(type) {
	case lifecycle.Resolve:
		return nil
	case lifecycle.Cancel:
		if v.row.Subagent == nil || v.row.Subagent.Stoppable {
			return nil
		}
		return &RefusedError{Code: refusedUnstopped}
	}
	if v.row.Subagent != nil {
		return &RefusedError{Code: refusedDelegated}
	}
	return nil
}

// familyOf defines the table family: the ids of the sessions of all subagents of a session, and of theirs.
const familyOf = `WITH RECURSIVE family (id) AS (SELECT id FROM session WHERE parent = ?1 UNION SELECT s.id FROM session s JOIN family f ON s.parent = f.id) `

// ofFamily calls f with the id of a session and of the sessions of all its subagents.
func ofFamily(ctx context.Context, c *Client, id string, f func(id string) error) error {
	members, err := query(ctx, c.cfg.Store.Read(), scanText, familyOf+`SELECT id FROM family`, id)
	for _, member := range append(members, id) {
		err = errors.Join(err, f(member))
	}
	return err
}

// openSubagent is core.subagent.
func openSubagent(c *Client, v *conversation, u acp.SubagentUpdate, parent *conversation) (*conversation, error) {
	ctx := c.lasting()
	stored, err := query(ctx, c.cfg.Store.Read(), scanText, familyOf+`SELECT s.id FROM family f JOIN session s ON s.id = f.id
		WHERE s.acp_session_id = ?2 AND s.deleted_at = 0 ORDER BY s.created_at DESC LIMIT 1`, v.id, u.SessionID)
	if err != nil {
		return nil, err
	}
	if len(stored) > 0 {
		return c.conversation(ctx, stored[0])
	}
	if parent == nil {
		return nil, nil //nolint:nilnil // there is none
	}
	of := parent.look()
	now := Time{Time: time.Now()}
	r := row{Session: Session{
		ID: uuid.Must(uuid.NewV7()).String(), Place: of.Place, Workspace: of.Workspace, Cwd: of.Cwd, Directories: of.Directories, Agent: of.Agent,
		ACPSessionID: u.SessionID, ProtocolVersion: 1, Phase: lifecycle.Closed, Subagent: &Subagent{Parent: of.ID}, CreatedAt: now, UpdatedAt: now,
	}}
	return c.store(ctx, r)
}
