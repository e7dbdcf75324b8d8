package session

import (
	"fmt"
	"reflect"
	"testing"

	"deskhand/backend/transcript"
)

func TestDecideSteering(t *testing.T) {
	a, way := queued{item: "a"}, queued{"s", heldSteering}
	working := state{base: Working, turn: "t", sent: true, queue: []queued{a}}
	steering := state{base: Working, turn: "t", sent: true, queue: []queued{way, a}}
	over := state{base: Ready, queue: []queued{way}}
	stopped := state{base: Ready, queue: []queued{{"s", heldStopped}}}
	full := state{base: Working, turn: "t", sent: true, queue: make([]queued, maxQueue)}
	for name, tc := range map[string]struct {
		in   state
		do   command
		want []event
	}{
		"on its way":             {working, doSteer{"s"}, []event{itemQueued{way, 0}, steerSent{"s"}}},
		"twice":                  {steering, doSteer{"s"}, refuse(refusedUntimely)},
		"too many":               {full, doSteer{"s"}, refuse(refusedFull)},
		"without a turn":         {state{base: Ready}, doSteer{"s"}, []event{itemTaken{"s"}, turnBegun{"s"}, promptSent{"s"}}},
		"before the agent knows": {state{base: Starting, turn: "t"}, doSteer{"s"}, []event{itemQueued{queued{item: "s"}, 0}}},
		"while it is stopped": {state{base: Cancelling, turn: "t", sent: true}, doSteer{"s"}, []event{
			itemQueued{queued{item: "s"}, 0}, itemMoved{"s", 0}, itemHeld{item: "s"}, nextChosen{"s"},
		}},

		"delivered":                         {steering, doSteered{"s", true}, []event{itemSteered{"s"}}},
		"delivered at the end":              {over, doSteered{"s", true}, []event{itemSteered{"s"}}},
		"delivered after a stop":            {stopped, doSteered{"s", true}, []event{itemSteered{"s"}}},
		"not delivered":                     {steering, doSteered{"s", false}, []event{itemHeld{item: "s"}}},
		"not delivered, and the turn over":  {over, doSteered{"s", false}, []event{itemTaken{"s"}, turnBegun{"s"}, promptSent{"s"}}},
		"not delivered after a stop":        {stopped, doSteered{"s", false}, nil},
		"what is gone":                      {working, doSteered{"s", true}, refuse(refusedUntimely)},
		"is passed over when the turn ends": {steering, doStopped{"t", stopEnd}, []event{turnEnded{"t", stopEnd}, itemTaken{"a"}, turnBegun{"a"}, promptSent{"a"}}},
		"is held when the turn fails":       {steering, doStopped{"t", stopError}, []event{turnEnded{"t", stopError}, itemHeld{"s", heldFailed}, itemHeld{"a", heldFailed}}},
		"is held when the agent ends":       {over, doExited{transcript.ProblemExited}, []event{itemHeld{"s", heldExited}, sessionClosed{transcript.ProblemExited}}},
		"keeps the agent awake":             {over, doHibernate{true}, refuse(refusedUntimely)},
		"is not sent by hand":               {steering, doSend{"s"}, refuse(refusedSteering)},
		"is not released by hand":           {over, doRelease{"s"}, refuse(refusedSteering)},
		"is not held by hand":               {steering, doHold{"s"}, nil},
		"is not removed":                    {steering, doRemove{"s"}, refuse(refusedSteering)},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(tc.in, tc.do)
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%+v\n got %#v\nwant %#v", tc.in, got, tc.want)
			}
			checkSteering(t, tc.in.after(got))
		})
	}
}

func checkSteering(t *testing.T, s state) {
	t.Helper()
	check(t, s)
	if s.steers() && (s.base == Closed || s.base == Starting || s.base == Replaying) {
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
		s := state{base: Closed}
		sent, reached := []string{}, map[string]int{}
		for i, b := range script {
			const commands = 14
			item := ""
			if len(sent) > 0 {
				item = sent[int(b/commands)%len(sent)]
			}
			steered := fmt.Sprintf("s%d", i)
			c := []command{
				doStart{},
				doReady{},
				doPrompt{fmt.Sprintf("t%d", i)},
				doSteer{steered},
				doSteered{item, true},
				doSteered{item, false},
				doStopped{s.turn, stopEnd},
				doCancel{},
				doStopped{s.turn, stopError},
				doExited{transcript.ProblemExited},
				doQueue{fmt.Sprintf("q%d", i), false},
				doSend{item},
				doRelease{item},
				doHibernate{true},
			}[b%commands]
			if answer, ok := c.(doSteered); ok && !s.steering(answer.item) {
				continue // it answers what it was asked, and once
			}
			events := decide(s, c)
			for _, e := range events {
				s = evolve(s, e)
				switch e := e.(type) {
				case itemSteered:
					reached[e.item]++
				case turnBegun:
					reached[e.turn]++
				case commandRefused, startBegun, replayBegun, becameReady, promptSent, turnEnded, requestOpened, requestEnded, cancelSent, interruptSent,
					killed, sessionClosed, fellAsleep, queueEvent:
				}
			}
			if c == command(doSteer{steered}) && !refusedIn(events) {
				sent = append(sent, steered)
			}
			checkSteering(t, s)
			for _, item := range sent {
				in := 0
				if s.find(item) >= 0 {
					in = 1
				}
				if reached[item]+in != 1 {
					t.Fatalf("%s reached the agent %d times, and is in the queue %d times", item, reached[item], in)
				}
			}
		}
	})
}

func refusedIn(events []event) bool {
	for _, e := range events {
		if _, no := e.(commandRefused); no {
			return true
		}
	}
	return false
}
