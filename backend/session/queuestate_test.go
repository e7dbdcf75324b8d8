package session

import (
	"reflect"
	"testing"

	"deskhand/backend/transcript"
)

func TestDecideQueue(t *testing.T) {
	a, b := queued{item: "a"}, queued{item: "b"}
	heldA, heldB := queued{"a", heldStopped}, queued{"b", heldFailed}
	both := []queued{a, b}
	working := state{base: Working, turn: "t", sent: true, queue: both}
	cancelling := state{base: Cancelling, turn: "t", sent: true, queue: both}
	asking := state{base: Working, turn: "t", sent: true, queue: both, open: []string{"q"}}
	chosen := state{base: Cancelling, turn: "t", sent: true, queue: both, next: "b"}
	starting := state{base: Starting, turn: "t", queue: both}
	ready := state{base: Ready, queue: []queued{heldA, heldB}}
	closed := state{base: Closed, queue: []queued{heldA, heldB}}
	full := state{base: Working, turn: "t", sent: true, queue: make([]queued, maxQueue)}
	holdBoth := func(why string) []event { return []event{itemHeld{"a", why}, itemHeld{"b", why}} }
	cat := func(lists ...[]event) (all []event) {
		for _, l := range lists {
			all = append(all, l...)
		}
		return all
	}
	next := func(item string) []event { return []event{itemTaken{item}, turnBegun{item}, promptSent{item}} }

	for name, tc := range map[string]struct {
		in   state
		do   command
		want []event
	}{
		"queued behind a turn":                  {working, doQueue{"c", false}, []event{itemQueued{queued{item: "c"}, 2}}},
		"queued while it starts":                {starting, doQueue{"c", false}, []event{itemQueued{queued{item: "c"}, 2}}},
		"queued while nothing runs":             {ready, doQueue{"c", false}, next("c")},
		"queued while it sleeps":                {closed, doQueue{"c", false}, []event{itemTaken{"c"}, turnBegun{"c"}, startBegun{}}},
		"queued twice":                          {working, doQueue{"a", false}, refuse(refusedUntimely)},
		"queued without an id":                  {working, doQueue{"", false}, refuse(refusedUntimely)},
		"queued too many":                       {full, doQueue{"c", false}, refuse(refusedFull)},
		"interrupts too many":                   {full, doQueue{"c", true}, refuse(refusedFull)},
		"queued after a stop goes out after it": {cancelling, doQueue{"c", false}, []event{itemQueued{queued{item: "c"}, 2}, itemMoved{"c", 0}, itemHeld{item: "c"}, nextChosen{"c"}}},
		"queued after an interruption waits":    {chosen, doQueue{"c", false}, []event{itemQueued{queued{item: "c"}, 2}}},
		"interrupts":                            {working, doQueue{"c", true}, []event{itemQueued{queued{item: "c"}, 2}, itemMoved{"c", 0}, itemHeld{item: "c"}, nextChosen{"c"}, cancelSent{}}},
		"interrupts an interruption":            {chosen, doQueue{"c", true}, []event{itemQueued{queued{item: "c"}, 2}, itemMoved{"c", 0}, itemHeld{item: "c"}, nextChosen{"c"}}},
		"interrupts what was not sent": {starting, doQueue{"c", true}, cat(
			[]event{itemQueued{queued{item: "c"}, 2}, itemMoved{"c", 0}, itemHeld{item: "c"}, nextChosen{"c"}, turnEnded{"t", stopCancelled}},
			holdBoth(heldStopped), []event{itemTaken{"c"}, turnBegun{"c"}})},
		"interrupts nothing": {ready, doQueue{"c", true}, next("c")},

		"the next goes out":                {working, doStopped{"t", stopEnd}, append([]event{turnEnded{"t", stopEnd}}, next("a")...)},
		"after max_tokens too":             {working, doStopped{"t", "max_tokens"}, append([]event{turnEnded{"t", "max_tokens"}}, next("a")...)},
		"after max_turn_requests too":      {working, doStopped{"t", "max_turn_requests"}, append([]event{turnEnded{"t", "max_turn_requests"}}, next("a")...)},
		"what is held is passed over":      {state{base: Working, turn: "t", sent: true, queue: []queued{heldA, b}}, doStopped{"t", stopEnd}, append([]event{turnEnded{"t", stopEnd}}, next("b")...)},
		"only what is held":                {state{base: Working, turn: "t", sent: true, queue: []queued{heldA}}, doStopped{"t", stopEnd}, []event{turnEnded{"t", stopEnd}}},
		"held after an error":              {working, doStopped{"t", stopError}, append([]event{turnEnded{"t", stopError}}, holdBoth(heldFailed)...)},
		"held after a refusal":             {working, doStopped{"t", "refusal"}, append([]event{turnEnded{"t", "refusal"}}, holdBoth(heldRefused)...)},
		"held after an unknown reason":     {working, doStopped{"t", "bored"}, append([]event{turnEnded{"t", "bored"}}, holdBoth(heldFailed)...)},
		"held after the agent's cancel":    {working, doStopped{"t", stopCancelled}, append([]event{turnEnded{"t", stopCancelled}}, holdBoth(heldStopped)...)},
		"held after a stop":                {cancelling, doStopped{"t", stopCancelled}, append([]event{turnEnded{"t", stopCancelled}}, holdBoth(heldStopped)...)},
		"held after a stop called an end":  {cancelling, doStopped{"t", stopEnd}, append([]event{turnEnded{"t", stopCancelled}}, holdBoth(heldStopped)...)},
		"held after a stop that came late": {cancelling, doStopped{"t", "max_tokens"}, append([]event{turnEnded{"t", "max_tokens"}}, holdBoth(heldStopped)...)},
		"held earlier for another reason":  {state{base: Working, turn: "t", sent: true, queue: []queued{a, heldB}}, doStopped{"t", stopCancelled}, []event{turnEnded{"t", stopCancelled}, itemHeld{"a", heldStopped}}},
		"after an interruption the chosen": {chosen, doStopped{"t", stopCancelled}, append([]event{turnEnded{"t", stopCancelled}, itemHeld{"a", heldStopped}}, next("b")...)},
		"stop of what was not sent":        {starting, doCancel{}, append([]event{turnEnded{"t", stopCancelled}}, holdBoth(heldStopped)...)},
		"stop before a start":              {starting, doCancel{unstarted: true}, cat([]event{turnEnded{"t", stopCancelled}}, holdBoth(heldStopped), []event{sessionClosed{transcript.ProblemQuit}})},
		"stop of an interruption":          {chosen, doCancel{}, []event{nextChosen{""}}},
		"held when the agent ends":         {working, doExited{transcript.ProblemExited}, cat([]event{turnEnded{"t", stopAgentExited}}, holdBoth(heldExited), []event{sessionClosed{transcript.ProblemExited}})},
		"held when no agent came":          {starting, doExited{transcript.ProblemSpawn}, cat([]event{turnEnded{"t", stopAgentExited}}, holdBoth(heldExited), []event{sessionClosed{transcript.ProblemSpawn}})},
		"held when the program ends":       {working, doExited{transcript.ProblemInterrupted}, cat([]event{turnEnded{"t", stopInterrupted}}, holdBoth(heldInterrupted), []event{sessionClosed{transcript.ProblemInterrupted}})},
		"held when the agent is restarted": {working, doExited{transcript.ProblemRestart}, cat([]event{turnEnded{"t", stopInterrupted}}, holdBoth(heldInterrupted), []event{sessionClosed{transcript.ProblemRestart}})},
		"the chosen goes on without the agent that had to be killed": {chosen, doExited{transcript.ProblemExited}, []event{
			turnEnded{"t", stopCancelled}, itemHeld{"a", heldStopped}, sessionClosed{transcript.ProblemExited}, itemTaken{"b"}, turnBegun{"b"}, startBegun{},
		}},
		"the chosen is held when the program ends": {chosen, doExited{transcript.ProblemInterrupted}, cat([]event{turnEnded{"t", stopCancelled}}, holdBoth(heldStopped), []event{sessionClosed{transcript.ProblemInterrupted}})},
		"the held stay held":                       {ready, doExited{transcript.ProblemExited}, []event{sessionClosed{transcript.ProblemExited}}},
		"the held may sleep":                       {ready, doHibernate{true}, []event{fellAsleep{}}},

		"send":                         {ready, doSend{"b"}, next("b")},
		"send to a closed session":     {closed, doSend{"b"}, []event{itemTaken{"b"}, turnBegun{"b"}, startBegun{}}},
		"send while a turn runs":       {working, doSend{"b"}, []event{itemMoved{"b", 0}, itemHeld{item: "b"}, nextChosen{"b"}, cancelSent{}}},
		"send while the turn asks":     {asking, doSend{"b"}, []event{itemMoved{"b", 0}, itemHeld{item: "b"}, nextChosen{"b"}, cancelSent{}, requestEnded{"q", statusCancelled}}},
		"send what is gone":            {working, doSend{"c"}, refuse(refusedGone)},
		"release":                      {ready, doRelease{"a"}, next("a")},
		"release while a turn runs":    {state{base: Working, turn: "t", sent: true, queue: []queued{heldA}}, doRelease{"a"}, []event{itemHeld{item: "a"}}},
		"release what is not held":     {working, doRelease{"a"}, nil},
		"release what is gone":         {working, doRelease{"c"}, refuse(refusedGone)},
		"hold":                         {working, doHold{"a"}, []event{itemHeld{"a", heldPerson}}},
		"hold what is held":            {ready, doHold{"a"}, nil},
		"hold what is gone":            {working, doHold{"c"}, refuse(refusedGone)},
		"hold all":                     {working, doHoldAll{heldArchived}, holdBoth(heldArchived)},
		"move":                         {working, doMove{"b", 0}, []event{itemMoved{"b", 0}}},
		"move too far":                 {working, doMove{"a", 7}, []event{itemMoved{"a", 1}}},
		"move what is gone":            {working, doMove{"c", 0}, refuse(refusedGone)},
		"remove":                       {working, doRemove{"a"}, []event{itemRemoved{"a"}}},
		"remove what is gone":          {working, doRemove{"c"}, refuse(refusedGone)},
		"restore":                      {working, doRestore{queued{item: "c"}, 1}, []event{itemQueued{queued{item: "c"}, 1}}},
		"restore sends nothing":        {ready, doRestore{queued{item: "c"}, 9}, []event{itemQueued{queued{"c", heldPerson}, 2}}},
		"restore what was held before": {ready, doRestore{queued{"c", heldFailed}, 0}, []event{itemQueued{queued{"c", heldFailed}, 0}}},
		"restore what is there":        {working, doRestore{queued{item: "a"}, 0}, refuse(refusedUntimely)},
		"restore too many":             {full, doRestore{queued{item: "a"}, 0}, refuse(refusedFull)},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(tc.in, tc.do)
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
	s := state{base: Working, turn: "t", sent: true, queue: []queued{{item: "a"}, {item: "b"}, {item: "c"}}}
	want := []queued{{item: "a"}, {item: "b"}, {item: "c"}}
	for _, c := range []command{doMove{"c", 0}, doHold{"b"}, doRemove{"a"}, doQueue{"d", true}, doSend{"c"}, doHoldAll{heldArchived}, doStopped{"t", stopEnd}} {
		_ = s.after(decide(s, c))
		if !reflect.DeepEqual(s.queue, want) {
			t.Fatalf("%#v changed the queue to %+v", c, s.queue)
		}
	}
}
