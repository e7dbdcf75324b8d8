package lifecycle

import (
	"reflect"
	"testing"

	"deskhand/backend/transcript"
)

func TestDecideQueue(t *testing.T) {
	a, b := Queued{Item: "a"}, Queued{Item: "b"}
	heldA, heldB := Queued{"a", HeldStopped}, Queued{"b", heldFailed}
	both := []Queued{a, b}
	working := State{Base: Working, Turn: "t", Sent: true, Queue: both}
	cancelling := State{Base: Cancelling, Turn: "t", Sent: true, Queue: both}
	asking := State{Base: Working, Turn: "t", Sent: true, Queue: both, Open: []string{"q"}}
	chosen := State{Base: Cancelling, Turn: "t", Sent: true, Queue: both, next: "b"}
	starting := State{Base: Starting, Turn: "t", Queue: both}
	ready := State{Base: Ready, Queue: []Queued{heldA, heldB}}
	closed := State{Base: Closed, Queue: []Queued{heldA, heldB}}
	full := State{Base: Working, Turn: "t", Sent: true, Queue: make([]Queued, MaxQueue)}
	holdBoth := func(why string) []Event { return []Event{ItemHeld{"a", why}, ItemHeld{"b", why}} }
	cat := func(lists ...[]Event) (all []Event) {
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	next := func(item string) []Event { return []Event{ItemTaken{item}, TurnBegun{item}, PromptSent{item}} }

	for name, tc := range map[string]struct {
		in   State
		do   Command
		want []Event
	}{
		"queued behind a turn":                  {working, Queue{"c", false}, []Event{ItemQueued{Queued{Item: "c"}, 2}}},
		"queued while it starts":                {starting, Queue{"c", false}, []Event{ItemQueued{Queued{Item: "c"}, 2}}},
		"queued while nothing runs":             {ready, Queue{"c", false}, next("c")},
		"queued while it sleeps":                {closed, Queue{"c", false}, []Event{ItemTaken{"c"}, TurnBegun{"c"}, StartBegun{}}},
		"queued twice":                          {working, Queue{"a", false}, refuse(RefusedUntimely)},
		"queued without an id":                  {working, Queue{"", false}, refuse(RefusedUntimely)},
		"queued too many":                       {full, Queue{"c", false}, refuse(RefusedFull)},
		"interrupts too many":                   {full, Queue{"c", true}, refuse(RefusedFull)},
		"queued after a stop goes out after it": {cancelling, Queue{"c", false}, []Event{ItemQueued{Queued{Item: "c"}, 2}, ItemMoved{"c", 0}, ItemHeld{Item: "c"}, NextChosen{"c"}}},
		"queued after an interruption waits":    {chosen, Queue{"c", false}, []Event{ItemQueued{Queued{Item: "c"}, 2}}},
		"interrupts":                            {working, Queue{"c", true}, []Event{ItemQueued{Queued{Item: "c"}, 2}, ItemMoved{"c", 0}, ItemHeld{Item: "c"}, NextChosen{"c"}, CancelSent{}}},
		"interrupts an interruption":            {chosen, Queue{"c", true}, []Event{ItemQueued{Queued{Item: "c"}, 2}, ItemMoved{"c", 0}, ItemHeld{Item: "c"}, NextChosen{"c"}}},
		"interrupts what was not sent": {starting, Queue{"c", true}, cat(
			[]Event{ItemQueued{Queued{Item: "c"}, 2}, ItemMoved{"c", 0}, ItemHeld{Item: "c"}, NextChosen{"c"}, TurnEnded{"t", StopCancelled}},
			holdBoth(HeldStopped), []Event{ItemTaken{"c"}, TurnBegun{"c"}})},
		"interrupts nothing": {ready, Queue{"c", true}, next("c")},

		"the next goes out":                {working, Stopped{"t", StopEnd}, append([]Event{TurnEnded{"t", StopEnd}}, next("a")...)},
		"after max_tokens too":             {working, Stopped{"t", "max_tokens"}, append([]Event{TurnEnded{"t", "max_tokens"}}, next("a")...)},
		"after max_turn_requests too":      {working, Stopped{"t", "max_turn_requests"}, append([]Event{TurnEnded{"t", "max_turn_requests"}}, next("a")...)},
		"what is held is passed over":      {State{Base: Working, Turn: "t", Sent: true, Queue: []Queued{heldA, b}}, Stopped{"t", StopEnd}, append([]Event{TurnEnded{"t", StopEnd}}, next("b")...)},
		"only what is held":                {State{Base: Working, Turn: "t", Sent: true, Queue: []Queued{heldA}}, Stopped{"t", StopEnd}, []Event{TurnEnded{"t", StopEnd}}},
		"held after an error":              {working, Stopped{"t", StopError}, append([]Event{TurnEnded{"t", StopError}}, holdBoth(heldFailed)...)},
		"held after a refusal":             {working, Stopped{"t", "refusal"}, append([]Event{TurnEnded{"t", "refusal"}}, holdBoth(heldRefused)...)},
		"held after an unknown reason":     {working, Stopped{"t", "bored"}, append([]Event{TurnEnded{"t", "bored"}}, holdBoth(heldFailed)...)},
		"held after the agent's cancel":    {working, Stopped{"t", StopCancelled}, append([]Event{TurnEnded{"t", StopCancelled}}, holdBoth(HeldStopped)...)},
		"held after a stop":                {cancelling, Stopped{"t", StopCancelled}, append([]Event{TurnEnded{"t", StopCancelled}}, holdBoth(HeldStopped)...)},
		"held after a stop called an end":  {cancelling, Stopped{"t", StopEnd}, append([]Event{TurnEnded{"t", StopCancelled}}, holdBoth(HeldStopped)...)},
		"held after a stop that came late": {cancelling, Stopped{"t", "max_tokens"}, append([]Event{TurnEnded{"t", "max_tokens"}}, holdBoth(HeldStopped)...)},
		"held earlier for another reason":  {State{Base: Working, Turn: "t", Sent: true, Queue: []Queued{a, heldB}}, Stopped{"t", StopCancelled}, []Event{TurnEnded{"t", StopCancelled}, ItemHeld{"a", HeldStopped}}},
		"after an interruption the chosen": {chosen, Stopped{"t", StopCancelled}, append([]Event{TurnEnded{"t", StopCancelled}, ItemHeld{"a", HeldStopped}}, next("b")...)},
		"stop of what was not sent":        {starting, Cancel{}, append([]Event{TurnEnded{"t", StopCancelled}}, holdBoth(HeldStopped)...)},
		"stop before a start":              {starting, Cancel{Unstarted: true}, cat([]Event{TurnEnded{"t", StopCancelled}}, holdBoth(HeldStopped), []Event{SessionClosed{transcript.ProblemQuit}})},
		"stop of an interruption":          {chosen, Cancel{}, []Event{NextChosen{""}}},
		"held when the agent ends":         {working, Exited{transcript.ProblemExited}, cat([]Event{TurnEnded{"t", StopAgentExited}}, holdBoth(heldExited), []Event{SessionClosed{transcript.ProblemExited}})},
		"held when no agent came":          {starting, Exited{transcript.ProblemSpawn}, cat([]Event{TurnEnded{"t", StopAgentExited}}, holdBoth(heldExited), []Event{SessionClosed{transcript.ProblemSpawn}})},
		"held when the program ends":       {working, Exited{transcript.ProblemInterrupted}, cat([]Event{TurnEnded{"t", StopInterrupted}}, holdBoth(HeldInterrupted), []Event{SessionClosed{transcript.ProblemInterrupted}})},
		"held when the agent is restarted": {working, Exited{transcript.ProblemRestart}, cat([]Event{TurnEnded{"t", StopInterrupted}}, holdBoth(HeldInterrupted), []Event{SessionClosed{transcript.ProblemRestart}})},
		"the chosen goes on without the agent that had to be killed": {chosen, Exited{transcript.ProblemExited}, []Event{
			TurnEnded{"t", StopCancelled}, ItemHeld{"a", HeldStopped}, SessionClosed{transcript.ProblemExited}, ItemTaken{"b"}, TurnBegun{"b"}, StartBegun{},
		}},
		"the chosen is held when the program ends": {chosen, Exited{transcript.ProblemInterrupted}, cat([]Event{TurnEnded{"t", StopCancelled}}, holdBoth(HeldStopped), []Event{SessionClosed{transcript.ProblemInterrupted}})},
		"the held stay held":                       {ready, Exited{transcript.ProblemExited}, []Event{SessionClosed{transcript.ProblemExited}}},
		"the held may sleep":                       {ready, Hibernate{true}, []Event{FellAsleep{}}},

		"send":                         {ready, Send{"b"}, next("b")},
		"send to a closed session":     {closed, Send{"b"}, []Event{ItemTaken{"b"}, TurnBegun{"b"}, StartBegun{}}},
		"send while a turn runs":       {working, Send{"b"}, []Event{ItemMoved{"b", 0}, ItemHeld{Item: "b"}, NextChosen{"b"}, CancelSent{}}},
		"send while the turn asks":     {asking, Send{"b"}, []Event{ItemMoved{"b", 0}, ItemHeld{Item: "b"}, NextChosen{"b"}, CancelSent{}, RequestEnded{"q", StatusCancelled}}},
		"send what is gone":            {working, Send{"c"}, refuse(RefusedGone)},
		"release":                      {ready, Release{"a"}, next("a")},
		"release while a turn runs":    {State{Base: Working, Turn: "t", Sent: true, Queue: []Queued{heldA}}, Release{"a"}, []Event{ItemHeld{Item: "a"}}},
		"release what is not held":     {working, Release{"a"}, nil},
		"release what is gone":         {working, Release{"c"}, refuse(RefusedGone)},
		"hold":                         {working, Hold{"a"}, []Event{ItemHeld{"a", heldPerson}}},
		"hold what is held":            {ready, Hold{"a"}, nil},
		"hold what is gone":            {working, Hold{"c"}, refuse(RefusedGone)},
		"hold all":                     {working, HoldAll{HeldArchived}, holdBoth(HeldArchived)},
		"move":                         {working, Move{"b", 0}, []Event{ItemMoved{"b", 0}}},
		"move too far":                 {working, Move{"a", 7}, []Event{ItemMoved{"a", 1}}},
		"move what is gone":            {working, Move{"c", 0}, refuse(RefusedGone)},
		"remove":                       {working, Remove{"a"}, []Event{ItemRemoved{"a"}}},
		"remove what is gone":          {working, Remove{"c"}, refuse(RefusedGone)},
		"restore":                      {working, Restore{Queued{Item: "c"}, 1}, []Event{ItemQueued{Queued{Item: "c"}, 1}}},
		"restore sends nothing":        {ready, Restore{Queued{Item: "c"}, 9}, []Event{ItemQueued{Queued{"c", heldPerson}, 2}}},
		"restore what was held before": {ready, Restore{Queued{"c", heldFailed}, 0}, []Event{ItemQueued{Queued{"c", heldFailed}, 0}}},
		"restore what is there":        {working, Restore{Queued{Item: "a"}, 0}, refuse(RefusedUntimely)},
		"restore too many":             {full, Restore{Queued{Item: "a"}, 0}, refuse(RefusedFull)},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.in.Decide(tc.do)
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%+v\n got %#v\nwant %#v", tc.in, got, tc.want)
			}
			check(t, tc.in.after(got))
		})
	}
}

// TestQueueIsPlainData holds that evolve leaves the state before as it was, which decide relies on.
func TestQueueIsPlainData(t *testing.T) {
	t.Parallel()
	s := State{Base: Working, Turn: "t", Sent: true, Queue: []Queued{{Item: "a"}, {Item: "b"}, {Item: "c"}}}
	want := []Queued{{Item: "a"}, {Item: "b"}, {Item: "c"}}
	for _, c := range []Command{Move{"c", 0}, Hold{"b"}, Remove{"a"}, Queue{"d", true}, Send{"c"}, HoldAll{HeldArchived}, Stopped{"t", StopEnd}} {
		_ = s.after(s.Decide(c))
		if !reflect.DeepEqual(s.Queue, want) {
			t.Fatalf("%#v changed the queue to %+v", c, s.Queue)
		}
	}
}
