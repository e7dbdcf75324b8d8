package subagents_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"deskhand/backend/acp"
	"deskhand/backend/proxy"
	"deskhand/backend/subagents"
	"deskhand/backend/transport"
)

// process is what a family needs of a process: the way back.
type process struct {
	transport.Transport
	sent []string
}

func (p *process) Send(_ context.Context, msg []byte) error {
	p.sent = append(p.sent, string(msg))
	return nil
}

type fixture struct {
	t       *testing.T
	family  *subagents.Family
	process process
	end     chan struct{}
	stored  map[string]bool
	asked   []string // the children that were looked for, with who was told of them
	members map[string]*subagents.Member
}

func open(t *testing.T, stored ...string) *fixture {
	t.Helper()
	f := &fixture{t: t, end: make(chan struct{}), stored: map[string]bool{}, members: map[string]*subagents.Member{}}
	for _, id := range stored {
		f.stored[id] = true
	}
	f.family = subagents.NewFamily(&f.process, f.end, func(id, teller string) (*subagents.Child, error) {
		f.asked = append(f.asked, teller+">"+id)
		if teller == "" && !f.stored[id] {
			return nil, nil //nolint:nilnil // there is none
		}
		return &subagents.Child{Session: "of-" + id, Known: f.stored[id], AtWork: func() bool { return id == "busy" }, Join: func(m *subagents.Member) { f.members[id] = m }}, nil
	})
	return f
}

// divert gives the family a message, and reports whether the message was a child's alone.
func (f *fixture) divert(message string, replays bool) bool {
	f.t.Helper()
	env, err := acp.Peek([]byte(message))
	if err != nil {
		f.t.Fatal(err)
	}
	theirs, err := f.family.Divert(env, proxy.Message{Data: []byte(message)}, "own", "root", replays)
	if err != nil {
		f.t.Fatalf("Divert of %s: %v", message, err)
	}
	return theirs
}

func update(session, kind, more string) string {
	return fmt.Sprintf(`{"method":"session/update","params":{"sessionId":%q,"update":{"sessionUpdate":%q%s}}}`, session, kind, more)
}

func tells(session, child, state string) string {
	return update(session, "subagent_update", fmt.Sprintf(`,"sessionId":%q,"state":{"state":%q}`, child, state))
}

// read returns what a child has got, after the process has ended: the kind of each update, or the state that the child was told.
func (f *fixture) read(id string) string {
	f.t.Helper()
	m := f.members[id]
	if m == nil {
		return "no member"
	}
	var got []string
	for r := m.After(0); ; {
		batch, err := r.Next(f.t.Context())
		if err != nil {
			return strings.Join(got, " ")
		}
		for _, message := range batch {
			if u, ok := acp.SubagentUpdateOf(message.Data); ok {
				got = append(got, u.SessionID+":"+u.State.Value.State)
				continue
			}
			env, _ := acp.Peek(message.Data)
			got = append(got, env.Method())
		}
	}
}

func (f *fixture) want(what, got, want string) {
	f.t.Helper()
	if got != want {
		f.t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestMessagesGoToTheirChild(t *testing.T) {
	t.Parallel()
	f := open(t)
	for message, theirs := range map[string]bool{
		update("own", "plan", ""): false, update("stranger", "plan", ""): false, `{"id":1,"result":{}}`: false,
	} {
		if got := f.divert(message, false); got != theirs {
			t.Errorf("Divert of %s: got %v, want %v", message, got, theirs)
		}
	}
	f.divert(update("stranger", "plan", ""), false)
	f.want("what was looked for", strings.Join(f.asked, " "), ">stranger")

	if f.divert(tells("own", "a", "running"), false) {
		t.Error("Divert of an announcement on the session itself: got true, want that the session has it too")
	}
	f.want("Show of the child", f.family.Show("a"), "of-a")
	f.want("Show once more", f.family.Show("a"), "")
	if !f.divert(update("a", "plan", ""), false) || !f.divert(`{"id":"r","method":"session/request_permission","params":{"sessionId":"a"}}`, false) {
		t.Error("Divert of an update and a request of a child: got false, want them to be the child's alone")
	}
	if !f.divert(tells("a", "deep", "running"), false) || !f.divert(tells("a", "deep", "idle"), false) {
		t.Error("Divert of an announcement on a child: got false, want it to be the child's alone")
	}
	f.divert(`{"method":"$/cancel_request","params":{"requestId":"r"}}`, false)
	close(f.end)
	f.want("the child", f.read("a"), "a:running session/update session/request_permission deep:running deep:idle $/cancel_request")
	f.want("the child of the child", f.read("deep"), "deep:running deep:idle $/cancel_request")
	f.want("who was told of the children", strings.Join(f.asked[1:], " "), "root>a of-a>deep")
	if err := f.members["deep"].Send(t.Context(), []byte("{}")); err != nil || len(f.process.sent) != 1 {
		t.Errorf("Send of a child: got %q, error %v, want it sent to the process", f.process.sent, err)
	}
}

func TestReplayOfAStoredChildIsDropped(t *testing.T) {
	t.Parallel()
	f := open(t, "old")
	f.divert(tells("own", "old", "running"), true)
	f.divert(update("old", "plan", ""), true)
	f.divert(tells("own", "old", "idle"), true)
	f.divert(tells("own", "new", "running"), true)
	f.divert(update("new", "plan", ""), true)
	f.want("Show of a stored child", f.family.Show("old"), "")
	f.family.Replayed()
	f.divert(update("old", "plan", ""), false)
	close(f.end)
	f.want("the stored child", f.read("old"), "old:idle session/update")
	f.want("the new child", f.read("new"), "new:running session/update")
}

func TestStoredChildNeedsNoAnnouncement(t *testing.T) {
	t.Parallel()
	f := open(t, "busy")
	if f.family.AtWork() {
		t.Error("AtWork without children: got true, want false")
	}
	if !f.divert(update("busy", "plan", ""), false) || !f.family.AtWork() {
		t.Error("Divert of an update of a stored child: got false or nobody at work, want it to be the child's, who works")
	}
	close(f.end)
	f.want("the child", f.read("busy"), "session/update")
}
