package lifecycle

import (
	"fmt"
	"reflect"
	"testing"

	"deskhand/backend/transcript"
)

func TestDecideSteering(t *testing.T) {
	a, way := Queued{Item: "a"}, Queued{"s", HeldSteering}
	working := State{Base: Working, Turn: "t", Sent: true, Queue: []Queued{a}}
	steering := State{Base: Working, Turn: "t", Sent: true, Queue: []Queued{way, a}}
	over := State{Base: Ready, Queue: []Queued{way}}
	stopped := State{Base: Ready, Queue: []Queued{{"s", HeldStopped}}}
	full := State{Base: Working, Turn: "t", Sent: true, Queue: make([]Queued, MaxQueue)}
	for name, tc := range map[string]struct {
		in   State
		do   Command
		want []Event
	}{
		"on its way":             {working, Steer{"s"}, []Event{ItemQueued{way, 0}, SteerSent{"s"}}},
		"twice":                  {steering, Steer{"s"}, refuse(RefusedUntimely)},
		"too many":               {full, Steer{"s"}, refuse(RefusedFull)},
		"without a turn":         {State{Base: Ready}, Steer{"s"}, []Event{ItemTaken{"s"}, TurnBegun{"s"}, PromptSent{"s"}}},
		"before the agent knows": {State{Base: Starting, Turn: "t"}, Steer{"s"}, []Event{ItemQueued{Queued{Item: "s"}, 0}}},
		"while it is stopped": {State{Base: Cancelling, Turn: "t", Sent: true}, Steer{"s"}, []Event{
			ItemQueued{Queued{Item: "s"}, 0}, ItemMoved{"s", 0}, ItemHeld{Item: "s"}, NextChosen{"s"},
		}},

		"delivered":                         {steering, Steered{"s", true}, []Event{ItemSteered{"s"}}},
		"delivered at the end":              {over, Steered{"s", true}, []Event{ItemSteered{"s"}}},
		"delivered after a stop":            {stopped, Steered{"s", true}, []Event{ItemSteered{"s"}}},
		"not delivered":                     {steering, Steered{"s", false}, []Event{ItemHeld{Item: "s"}}},
		"not delivered, and the turn over":  {over, Steered{"s", false}, []Event{ItemTaken{"s"}, TurnBegun{"s"}, PromptSent{"s"}}},
		"not delivered after a stop":        {stopped, Steered{"s", false}, nil},
		"what is gone":                      {working, Steered{"s", true}, refuse(RefusedUntimely)},
		"is passed over when the turn ends": {steering, Stopped{"t", StopEnd}, []Event{TurnEnded{"t", StopEnd}, ItemTaken{"a"}, TurnBegun{"a"}, PromptSent{"a"}}},
		"is held when the turn fails":       {steering, Stopped{"t", StopError}, []Event{TurnEnded{"t", StopError}, ItemHeld{"s", heldFailed}, ItemHeld{"a", heldFailed}}},
		"is held when the agent ends":       {over, Exited{transcript.ProblemExited}, []Event{ItemHeld{"s", heldExited}, SessionClosed{transcript.ProblemExited}}},
		"keeps the agent awake":             {over, Hibernate{true}, refuse(RefusedUntimely)},
		"is not sent by hand":               {steering, Send{"s"}, refuse(RefusedSteering)},
		"is not released by hand":           {over, Release{"s"}, refuse(RefusedSteering)},
		"is not held by hand":               {steering, Hold{"s"}, nil},
		"is not removed":                    {steering, Remove{"s"}, refuse(RefusedSteering)},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.in.Decide(tc.do)
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%+v\n got %#v\nwant %#v", tc.in, got, tc.want)
			}
			checkSteering(t, tc.in.after(got))
		})
	}
}

func checkSteering(t *testing.T, s State) {
	t.Helper()
	check(t, s)
	if s.steers() && (s.Base == Closed || s.Base == Starting || s.Base == Replaying) {
		t.Fatalf("something is on its way to no agent: %+v", s)
	}
}

// FuzzSteering runs lives in which turns are steered: a message reaches the agent within a turn or becomes a turn, once at most, and
// none is lost: what has done neither is in the queue.
func FuzzSteering(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 6})
	f.Add([]byte{0, 1, 2, 3, 6, 5, 8})
	f.Add([]byte{0, 1, 2, 3, 7, 5, 9, 0, 1, 11, 4})
	f.Add([]byte{0, 1, 2, 3, 3, 10, 4, 20, 6, 12, 5})
	f.Fuzz(func(t *testing.T, script []byte) {
		s := State{Base: Closed}
		sent, reached := []string{}, map[string]int{}
		for i, b := range script {
			const commands = 14
			item := ""
			if len(sent) > 0 {
				item = sent[int(b/commands)%len(sent)]
			}
			steered := fmt.Sprintf("s%d", i)
			c := []Command{
				Start{},
				AgentReady{},
				Prompt{fmt.Sprintf("t%d", i)},
				Steer{steered},
				Steered{item, true},
				Steered{item, false},
				Stopped{s.Turn, StopEnd},
				Cancel{},
				Stopped{s.Turn, StopError},
				Exited{transcript.ProblemExited},
				Queue{fmt.Sprintf("q%d", i), false},
				Send{item},
				Release{item},
				Hibernate{true},
			}[b%commands]
			if answer, ok := c.(Steered); ok && !s.Steering(answer.Item) {
				continue // it answers what it was asked, and once
			}
			events := s.Decide(c)
			for _, e := range events {
				s = s.Evolve(e)
				switch e := e.(type) {
				case ItemSteered:
					reached[e.Item]++
				case TurnBegun:
					reached[e.Turn]++
				case CommandRefused, StartBegun, ReplayBegun, BecameReady, PromptSent, TurnEnded, RequestOpened, RequestEnded, CancelSent, InterruptSent,
					Killed, SessionClosed, FellAsleep, QueueEvent:
				}
			}
			if c == Command(Steer{steered}) && !refusedIn(events) {
				sent = append(sent, steered)
			}
			checkSteering(t, s)
			for _, item := range sent {
				in := 0
				if s.Find(item) >= 0 {
					in = 1
				}
				if reached[item]+in != 1 {
					t.Fatalf("%s reached the agent %d times, and is in the queue %d times", item, reached[item], in)
				}
			}
		}
	})
}

func refusedIn(events []Event) bool {
	for _, e := range events {
		if _, no := e.(CommandRefused); no {
			return true
		}
	}
	return false
}
