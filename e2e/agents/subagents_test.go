//go:build e2e

package agents

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/e2e/agents/llm"
)

// delegating makes a real agent delegate to two subagents at once: the first runs a command that it asks about, and the second does not come to
// its end.
func delegating() []llm.Turn {
	return []llm.Turn{
		{When: "<task-notification>", Steps: []llm.Step{{Text: "One has ended."}}}, // by which Claude is told, with the words of the subagent's prompt
		{When: "share the work", Steps: []llm.Step{{Text: "I share it. ", Delegate: "Look after the lamp"}, {Delegate: "Look after the bell"}, {Text: "Both are at work."}}},
		{When: "Look after the lamp", Steps: []llm.Step{{Text: "To the lamp. ", Shell: "echo lit > lamp.txt"}, {Text: "The lamp is lit."}}},
		{When: "Look after the bell", Steps: []llm.Step{{Text: "To the bell, ", Hold: true}, {Text: "which rings."}}},
		{When: "go on", Steps: []llm.Step{{Text: "Gone on."}}},
	}
}

// children returns the subagents of a session, by the words of their titles or descriptions.
func (s *server) children(of string) map[string]session.Session {
	s.t.Helper()
	var page struct{ Items []session.Session }
	s.call("GET", "/client/sessions?limit=50&of="+of, nil, &page)
	list := map[string]session.Session{}
	for _, one := range page.Items {
		told, _ := json.Marshal(one)
		entries, _ := s.entriesOf(one.ID)
		for _, word := range []string{"lamp", "bell"} {
			if strings.Contains(string(told)+readable(entries), "the "+word) {
				list[word] = one
			}
		}
	}
	return list
}

func (s *server) countOf(session string) int {
	s.t.Helper()
	var page struct{ Items []json.RawMessage }
	s.call("GET", "/client/sessions?limit=50&of="+session, nil, &page)
	return len(page.Items)
}

// requestBut waits for a single request in the inbox, of another session than but.
func (s *server) requestBut(but string) (asks requests.Request) {
	s.t.Helper()
	eventually(s.t, 60*time.Second, "a request of a subagent", func() error {
		var inbox struct{ Items []requests.Request }
		s.call("GET", "/client/inbox", nil, &inbox)
		if len(inbox.Items) != 1 || inbox.Items[0].Session == but {
			return fmt.Errorf("the inbox has %+v", inbox.Items)
		}
		asks = inbox.Items[0]
		return nil
	})
	return asks
}

// TestSubagentsOfRealAgents: two subagents at once are conversations of their own. The request of one names it, Stop of the other leaves the first,
// and after a kill of Deskhand both are where they were.
func TestSubagentsOfRealAgents(t *testing.T) {
	for _, id := range []string{"claude", "codex"} {
		t.Run(id, func(t *testing.T) {
			f, _, p := withAgent(t, id, nil, delegating()...)
			s := f.s
			turn := f.prompt("Please share the work.")
			var both map[string]session.Session
			eventually(t, 60*time.Second, "two subagents at work", func() error {
				if both = s.children(f.session.ID); len(both) != 2 || both["bell"].Turn == nil {
					return fmt.Errorf("there are %+v", both)
				}
				return nil
			})
			lamp, bell := both["lamp"].ID, both["bell"].ID
			asks := s.requestBut("")
			if asks.Session != lamp {
				t.Fatalf("the request is of %s, want it of the lamp's subagent %s", asks.Session, lamp)
			}
			if !strings.Contains(commandOf(asks), "echo lit > lamp.txt") {
				t.Errorf("the request does not show the command: %+v", asks)
			}
			once := slices.IndexFunc(asks.Options, func(o requests.Option) bool { return o.Kind == "allow_once" })
			s.call("POST", "/client/sessions/"+bell+"/cancel", nil, nil)
			s.call("POST", "/client/requests/"+asks.ID+"/answer", requests.Answer{OptionID: asks.Options[once].ID}, nil)
			eventually(t, 60*time.Second, "the end of both", func() error {
				for word, one := range s.children(f.session.ID) {
					if one.Turn != nil {
						return fmt.Errorf("the subagent of the %s works on: %+v", word, one.Turn)
					}
				}
				return nil
			})
			mustHold(t, filepath.Join(p.work, "lamp.txt"), "lit\n")
			f.done(turn)
			before, _ := s.entriesOf(lamp)
			stopped, _ := s.entriesOf(bell)
			if got := said(before); !strings.Contains(got, "The lamp is lit.") {
				t.Errorf("the subagent of the lamp said %q", got)
			}
			if got := said(stopped); strings.Contains(got, "which rings") {
				t.Errorf("the stopped subagent went on: %q", got)
			}
			s.kill()
			s = startServer(t, p)
			again := s.children(f.session.ID)
			if again["lamp"].ID != lamp || again["bell"].ID != bell {
				t.Fatalf("after a kill of Deskhand the subagents are %+v, want %s and %s", again, lamp, bell)
			}
			after, _ := s.entriesOf(lamp)
			if !reflect.DeepEqual(after, before) {
				t.Errorf("after a kill the subagent's transcript is\n%s\nwant\n%s", readable(after), readable(before))
			}
			id := f.session.ID
			f = follow(s)
			f.only = id
			s.call("GET", "/client/sessions/"+id, nil, &f.session)
			if end := f.done(f.prompt("Please go on.")); end.StopReason != "end_turn" {
				t.Errorf("a turn after that ended with %s %+v", end.StopReason, end.Error)
			}
			if n := s.countOf(id); n != 2 {
				t.Errorf("the subagents after the agent came back: got %d, want the two of before", n)
			}

			// Killed in the middle: what was shown of both is kept, and nothing works on.
			f.prompt("Please share the work again.")
			asks = s.requestBut(lamp)
			shown, _ := s.entriesOf(asks.Session)
			s.kill()
			s = startServer(t, p)
			var now session.Session
			s.call("GET", "/client/sessions/"+asks.Session, nil, &now)
			after, _ = s.entriesOf(asks.Session)
			if n := s.countOf(id); n < 3 || now.Subagent == nil || now.Turn != nil || !strings.Contains(said(after), "To the lamp") || len(after) < len(shown) {
				t.Errorf("after a kill in the middle: got %d subagents, and of the lamp %+v with\n%s\nwant 3 or 4, no turn, and all of\n%s", n, now, readable(after), readable(shown))
			}
			s.stop()
			p.mustBeGone(t, 5*time.Second)
		})
	}
}
