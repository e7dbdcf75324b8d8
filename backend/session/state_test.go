package session

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"deskhand/backend/transcript"
)

func TestDecide(t *testing.T) {
	closed := state{base: Closed}
	starting := state{base: Starting}
	held := state{base: Starting, turn: "t"}
	ready := state{base: Ready}
	working := state{base: Working, turn: "t", sent: true}
	asking := state{base: Working, turn: "t", sent: true, open: []string{"a", "b"}}
	idleAsking := state{base: Ready, open: []string{"a"}}
	cancelling := state{base: Cancelling, turn: "t", sent: true}
	interrupted := state{base: Cancelling, turn: "t", sent: true, step: 1}
	asleep := state{base: Closed, asleep: true}
	dead := state{base: Cancelling, turn: "t", sent: true, step: 2}
	deleted := state{base: Closed, deleted: true}

	for name, tc := range map[string]struct {
		in   state
		do   command
		want []event
	}{
		"start":                             {closed, doStart{}, []event{startBegun{}}},
		"start twice":                       {starting, doStart{}, refuse(refusedStarted)},
		"start while it runs":               {working, doStart{}, refuse(refusedStarted)},
		"replay":                            {starting, doReplay{}, []event{replayBegun{}}},
		"replay late":                       {ready, doReplay{}, refuse(refusedUntimely)},
		"ready":                             {starting, doReady{}, []event{becameReady{}}},
		"ready after replay":                {state{base: Replaying}, doReady{}, []event{becameReady{}}},
		"ready sends what was held":         {held, doReady{}, []event{becameReady{}, promptSent{"t"}}},
		"ready late":                        {working, doReady{}, refuse(refusedUntimely)},
		"prompt":                            {ready, doPrompt{"u"}, []event{turnBegun{"u"}, promptSent{"u"}}},
		"prompt wakes the agent":            {closed, doPrompt{"u"}, []event{turnBegun{"u"}, startBegun{}}},
		"prompt is held while it starts":    {starting, doPrompt{"u"}, []event{turnBegun{"u"}}},
		"prompt beside an idle question":    {idleAsking, doPrompt{"u"}, []event{turnBegun{"u"}, promptSent{"u"}}},
		"prompt while one is held":          {held, doPrompt{"u"}, refuse(refusedRunning)},
		"prompt while one runs":             {working, doPrompt{"u"}, refuse(refusedRunning)},
		"prompt while one is cancelled":     {cancelling, doPrompt{"u"}, refuse(refusedRunning)},
		"stopped":                           {working, doStopped{"t", "end_turn"}, []event{turnEnded{"t", "end_turn"}}},
		"stopped with questions open":       {asking, doStopped{"t", "end_turn"}, []event{requestEnded{"a", statusCancelled}, requestEnded{"b", statusCancelled}, turnEnded{"t", "end_turn"}}},
		"stopped after a cancel":            {cancelling, doStopped{"t", "end_turn"}, []event{turnEnded{"t", stopCancelled}}},
		"stopped as it is killed":           {dead, doStopped{"t", "end_turn"}, refuse(refusedUntimely)},
		"refused after a cancel":            {cancelling, doStopped{"t", "refusal"}, []event{turnEnded{"t", "refusal"}}},
		"stopped another turn":              {working, doStopped{"old", "end_turn"}, refuse(refusedUntimely)},
		"stopped nothing":                   {ready, doStopped{"", "end_turn"}, refuse(refusedUntimely)},
		"asks":                              {working, doOpen{"a"}, []event{requestOpened{"a"}}},
		"asks while idle":                   {ready, doOpen{"a"}, []event{requestOpened{"a"}}},
		"asks while it starts":              {starting, doOpen{"a"}, []event{requestOpened{"a"}}},
		"asks while it should stop":         {cancelling, doOpen{"a"}, []event{requestOpened{"a"}, requestEnded{"a", statusCancelled}}},
		"asks the same again":               {asking, doOpen{"a"}, refuse(refusedUntimely)},
		"asks when gone":                    {closed, doOpen{"a"}, refuse(refusedUntimely)},
		"answer":                            {asking, doResolve{"b", statusAnswered}, []event{requestEnded{"b", statusAnswered}}},
		"second answer":                     {working, doResolve{"a", statusAnswered}, refuse(refusedNotOpen)},
		"cancel":                            {working, doCancel{}, []event{cancelSent{}}},
		"cancel answers what is open":       {asking, doCancel{}, []event{cancelSent{}, requestEnded{"a", statusCancelled}, requestEnded{"b", statusCancelled}}},
		"cancel what is held":               {held, doCancel{}, []event{turnEnded{"t", stopCancelled}}},
		"cancel what waits to start":        {state{base: Starting, turn: "t", open: []string{"a"}}, doCancel{unstarted: true}, []event{requestEnded{"a", statusCancelled}, turnEnded{"t", stopCancelled}, sessionClosed{transcript.ProblemQuit}}},
		"cancel what was started":           {state{base: Starting, turn: "t", open: []string{"a"}}, doCancel{}, []event{turnEnded{"t", stopCancelled}}},
		"cancel no turn before a start":     {state{base: Starting, open: []string{"a"}}, doCancel{unstarted: true}, []event{requestEnded{"a", statusCancelled}, sessionClosed{transcript.ProblemQuit}}},
		"cancel twice":                      {cancelling, doCancel{}, refuse(refusedUntimely)},
		"cancel nothing":                    {ready, doCancel{}, refuse(refusedNoTurn)},
		"escalate to SIGINT":                {cancelling, doEscalate{}, []event{interruptSent{}}},
		"escalate to the tree":              {interrupted, doEscalate{}, []event{killed{}}},
		"escalate no further":               {dead, doEscalate{}, refuse(refusedUntimely)},
		"escalate after the stop":           {ready, doEscalate{}, refuse(refusedUntimely)},
		"exit while idle":                   {ready, doExited{transcript.ProblemExited}, []event{sessionClosed{transcript.ProblemExited}}},
		"exit in a turn":                    {asking, doExited{transcript.ProblemExited}, []event{requestEnded{"a", statusExpired}, requestEnded{"b", statusExpired}, turnEnded{"t", stopAgentExited}, sessionClosed{transcript.ProblemExited}}},
		"exit of a held prompt":             {held, doExited{transcript.ProblemSpawn}, []event{turnEnded{"t", stopAgentExited}, sessionClosed{transcript.ProblemSpawn}}},
		"exit while cancelling is a cancel": {interrupted, doExited{transcript.ProblemExited}, []event{turnEnded{"t", stopCancelled}, sessionClosed{transcript.ProblemExited}}},
		"exit of the app":                   {working, doExited{transcript.ProblemInterrupted}, []event{turnEnded{"t", stopInterrupted}, sessionClosed{transcript.ProblemInterrupted}}},
		"exit by restart":                   {held, doExited{transcript.ProblemRestart}, []event{turnEnded{"t", stopInterrupted}, sessionClosed{transcript.ProblemRestart}}},
		"exit twice":                        {closed, doExited{transcript.ProblemExited}, refuse(refusedUntimely)},
		"sleep":                             {ready, doHibernate{true}, []event{fellAsleep{}}},
		"no sleep without a way back":       {ready, doHibernate{false}, refuse(refusedForgets)},
		"no sleep while it works":           {working, doHibernate{true}, refuse(refusedUntimely)},
		"no sleep while it asks":            {asking, doHibernate{true}, refuse(refusedUntimely)},
		"no sleep while it asks, idle":      {idleAsking, doHibernate{true}, refuse(refusedUntimely)},
		"no sleep while it starts":          {starting, doHibernate{true}, refuse(refusedUntimely)},
		"no sleep before a held prompt":     {held, doHibernate{true}, refuse(refusedUntimely)},
		"no sleep while it replays":         {state{base: Replaying}, doHibernate{true}, refuse(refusedUntimely)},
		"no sleep while it is cancelled":    {cancelling, doHibernate{true}, refuse(refusedUntimely)},
		"no sleep of the closed":            {closed, doHibernate{true}, refuse(refusedUntimely)},
		"no sleep twice":                    {asleep, doHibernate{true}, refuse(refusedUntimely)},
		"prompt wakes the sleeping":         {asleep, doPrompt{"u"}, []event{turnBegun{"u"}, startBegun{}}},
		"start wakes the sleeping":          {asleep, doStart{}, []event{startBegun{}}},
		"the sleeping has no exit":          {asleep, doExited{transcript.ProblemExited}, refuse(refusedUntimely)},
		"cancel of the sleeping":            {asleep, doCancel{}, refuse(refusedNoTurn)},
		"delete":                            {closed, doDelete{}, []event{sessionDeleted{}}},
		"delete what is ready":              {ready, doDelete{}, []event{sessionClosed{transcript.ProblemDeleted}, sessionDeleted{}}},
		"delete what works":                 {asking, doDelete{}, []event{requestEnded{"a", statusCancelled}, requestEnded{"b", statusCancelled}, turnEnded{"t", stopCancelled}, sessionClosed{transcript.ProblemDeleted}, sessionDeleted{}}},
		"delete what starts":                {held, doDelete{}, []event{turnEnded{"t", stopCancelled}, sessionClosed{transcript.ProblemDeleted}, sessionDeleted{}}},
		"delete what is being cancelled":    {interrupted, doDelete{}, []event{turnEnded{"t", stopCancelled}, sessionClosed{transcript.ProblemDeleted}, sessionDeleted{}}},
		"delete the sleeping":               {asleep, doDelete{}, []event{sessionDeleted{}}},
		"delete twice":                      {deleted, doDelete{}, refuse(refusedUntimely)},
		"start of the deleted":              {deleted, doStart{}, refuse(refusedUntimely)},
		"prompt to the deleted":             {deleted, doPrompt{"u"}, refuse(refusedUntimely)},
		"queue of the deleted":              {deleted, doQueue{item: "q"}, refuse(refusedUntimely)},
		"restore":                           {deleted, doUndelete{}, []event{sessionRestored{}}},
		"restore what is there":             {ready, doUndelete{}, refuse(refusedUntimely)},
	} {
		t.Run(name, func(t *testing.T) {
			got := decide(tc.in, tc.do)
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%+v\n got %#v\nwant %#v", tc.in, got, tc.want)
			}
			for _, e := range got {
				tc.in = evolve(tc.in, e)
			}
			check(t, tc.in)
		})
	}
}

// check holds what is true in every state that can be reached.
func check(t *testing.T, s state) {
	t.Helper()
	bad := func(rule string) { t.Fatalf("%s is broken in %+v", rule, s) }
	switch s.base {
	case Ready:
		if s.turn != "" {
			bad("ready has no turn")
		}
	case Working, Cancelling:
		if s.turn == "" || !s.sent {
			bad("a working session has a turn that the agent knows")
		}
	case Closed:
		if s.turn != "" || len(s.open) > 0 {
			bad("a closed session has nothing open")
		}
	case Starting, Replaying:
		if s.sent {
			bad("nothing is sent before ready")
		}
	case Waiting:
		bad("waiting is never stored")
	}
	if s.deleted && s.base != Closed {
		bad("nothing goes on in what is deleted")
	}
	if s.asleep && s.base != Closed {
		bad("who sleeps has no agent")
	}
	if s.base != Cancelling && s.step != 0 {
		bad("only a cancel escalates")
	}
	if s.turn == "" && s.sent {
		bad("sent means a turn")
	}
	if s.base == Cancelling && len(s.open) > 0 {
		bad("a cancelled turn asks nobody")
	}
	for _, q := range s.queue {
		if s.turn == "" && q.held == "" {
			bad("what is queued waits for a turn or for a person")
		}
		if q.item != "" && q.item == s.turn {
			bad("a turn is in the queue no more")
		}
	}
	if s.next != "" && (s.base != Cancelling || s.find(s.next) < 0) {
		bad("what is chosen waits for a cancel")
	}
	sorted := slices.Clone(s.open)
	slices.Sort(sorted)
	if len(slices.Compact(sorted)) != len(s.open) {
		bad("a request is open once")
	}
}

// FuzzState runs random lives: the rules of check hold after every command, a turn that began ends exactly once, an item of the queue
// becomes a turn at most once, what is held goes out only by a person, nothing happens in what is deleted, and cancel, ticked twice and followed by the exit, always leaves
// nothing running.
func FuzzState(f *testing.F) {
	f.Add([]byte{0, 2, 3, 4})
	f.Add([]byte{3, 0, 2, 5, 6, 7, 8, 8, 9, 3})
	f.Add([]byte{0, 1, 2, 3, 5, 14, 6, 7, 5, 4, 9})
	f.Add([]byte{0, 2, 3, 4, 10, 3, 2, 10, 5, 10, 4, 23, 10, 0, 9})
	f.Add([]byte{0, 2, 3, 11, 11, 4, 11, 12, 4, 7, 4, 14, 20, 4, 9})
	f.Add([]byte{0, 2, 3, 11, 31, 8, 8, 9, 11, 2, 15, 16, 7, 13, 17, 4})
	f.Add([]byte{0, 2, 3, 11, 5, 18, 3, 0, 11, 18, 19, 12, 2, 4, 18, 9, 19})
	f.Fuzz(func(t *testing.T, script []byte) {
		s := state{base: Closed}
		began, ended := map[string]int{}, map[string]int{}
		var queue []string // of all that ever stood in it
		apply := func(c command) {
			before := s
			for _, e := range decide(s, c) {
				if taken, ok := e.(itemTaken); ok {
					surprise(t, before, c, taken.item)
				}
				s = evolve(s, e)
				switch e := e.(type) {
				case itemQueued:
					queue = append(queue, e.item)
				case turnBegun:
					began[e.turn]++
				case turnEnded:
					ended[e.turn]++
				}
			}
			check(t, s)
		}
		for i, b := range script {
			const commands = 20
			id, item := fmt.Sprintf("%d", b/commands), ""
			if len(queue) > 0 {
				item = queue[int(b/commands)%len(queue)]
			}
			before := s
			apply([]command{
				doStart{},
				doReplay{},
				doReady{},
				doPrompt{fmt.Sprintf("t%d", i)},
				doStopped{s.turn, stopEnd},
				doOpen{id},
				doResolve{id, statusAnswered},
				doCancel{unstarted: b >= 200},
				doEscalate{},
				doExited{transcript.ProblemExited},
				doHibernate{b/commands%2 == 0},
				doQueue{fmt.Sprintf("q%d", i), b/commands%4 == 3},
				doSend{item},
				doRelease{item},
				doHold{item},
				doMove{item, int(b / commands)},
				doRemove{item},
				doStopped{s.turn, stopError},
				doDelete{},
				doUndelete{},
			}[b%commands])
			if before.deleted && (s.deleted || len(s.open) > 0 || s.turn != "") && !reflect.DeepEqual(before, s) {
				t.Fatalf("%+v was deleted, and is %+v", before, s)
			}
			if s.deleted != before.deleted && len(s.queue) != len(before.queue) {
				t.Fatalf("%+v became %+v: something is missing in the queue", before, s)
			}
			if s.asleep && !before.asleep && (before.turn != "" || len(before.open) > 0 || before.base != Ready) {
				t.Fatalf("%+v was put to sleep", before)
			}
		}
		apply(doUndelete{})
		if s.next != "" {
			apply(doCancel{}) // of what follows an interruption
		}
		apply(doCancel{})
		apply(doEscalate{})
		apply(doEscalate{})
		apply(doExited{transcript.ProblemExited})
		if s.turn != "" || len(s.open) > 0 {
			t.Fatalf("something still runs: %+v", s)
		}
		for turn, n := range began {
			if n != 1 || ended[turn] != 1 {
				t.Fatalf("turn %s began %d times and ended %d times", turn, n, ended[turn])
			}
		}
	})
}

// surprise fails where an item goes out that nobody has sent: one that is held, or any after a turn that did not end well.
func surprise(t *testing.T, before state, c command, item string) {
	t.Helper()
	switch c := c.(type) {
	case doQueue:
		if c.item == item {
			return
		}
	case doSend:
		if c.item == item {
			return
		}
	case doRelease:
		if c.item == item {
			return
		}
	}
	if before.next == item {
		return // by an interruption
	}
	stopped, ok := c.(doStopped)
	if i := before.find(item); !ok || stopped.reason != stopEnd || before.base == Cancelling || before.queue[i].held != "" {
		t.Fatalf("%s goes out by %#v in %+v", item, c, before)
	}
}
