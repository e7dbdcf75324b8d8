package lifecycle

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"deskhand/backend/transcript"
)

func TestDecide(t *testing.T) {
	closed := State{Base: Closed}
	starting := State{Base: Starting}
	held := State{Base: Starting, Turn: "t"}
	ready := State{Base: Ready}
	working := State{Base: Working, Turn: "t", Sent: true}
	asking := State{Base: Working, Turn: "t", Sent: true, Open: []string{"a", "b"}}
	idleAsking := State{Base: Ready, Open: []string{"a"}}
	cancelling := State{Base: Cancelling, Turn: "t", Sent: true}
	interrupted := State{Base: Cancelling, Turn: "t", Sent: true, step: 1}
	asleep := State{Base: Closed, Asleep: true}
	dead := State{Base: Cancelling, Turn: "t", Sent: true, step: 2}
	deleted := State{Base: Closed, Deleted: true}

	for name, tc := range map[string]struct {
		in   State
		do   Command
		want []Event
	}{
		"start":                             {closed, Start{}, []Event{StartBegun{}}},
		"start twice":                       {starting, Start{}, refuse(refusedStarted)},
		"start while it runs":               {working, Start{}, refuse(refusedStarted)},
		"replay":                            {starting, Replay{}, []Event{ReplayBegun{}}},
		"replay late":                       {ready, Replay{}, refuse(RefusedUntimely)},
		"ready":                             {starting, AgentReady{}, []Event{BecameReady{}}},
		"ready after replay":                {State{Base: Replaying}, AgentReady{}, []Event{BecameReady{}}},
		"ready sends what was held":         {held, AgentReady{}, []Event{BecameReady{}, PromptSent{"t"}}},
		"ready late":                        {working, AgentReady{}, refuse(RefusedUntimely)},
		"prompt":                            {ready, Prompt{"u"}, []Event{TurnBegun{"u"}, PromptSent{"u"}}},
		"prompt wakes the agent":            {closed, Prompt{"u"}, []Event{TurnBegun{"u"}, StartBegun{}}},
		"prompt is held while it starts":    {starting, Prompt{"u"}, []Event{TurnBegun{"u"}}},
		"prompt beside an idle question":    {idleAsking, Prompt{"u"}, []Event{TurnBegun{"u"}, PromptSent{"u"}}},
		"prompt while one is held":          {held, Prompt{"u"}, refuse(RefusedRunning)},
		"prompt while one runs":             {working, Prompt{"u"}, refuse(RefusedRunning)},
		"prompt while one is cancelled":     {cancelling, Prompt{"u"}, refuse(RefusedRunning)},
		"stopped":                           {working, Stopped{"t", "end_turn"}, []Event{TurnEnded{"t", "end_turn"}}},
		"stopped with questions open":       {asking, Stopped{"t", "end_turn"}, []Event{RequestEnded{"a", StatusCancelled}, RequestEnded{"b", StatusCancelled}, TurnEnded{"t", "end_turn"}}},
		"stopped after a cancel":            {cancelling, Stopped{"t", "end_turn"}, []Event{TurnEnded{"t", StopCancelled}}},
		"stopped as it is killed":           {dead, Stopped{"t", "end_turn"}, refuse(RefusedUntimely)},
		"refused after a cancel":            {cancelling, Stopped{"t", "refusal"}, []Event{TurnEnded{"t", "refusal"}}},
		"stopped another turn":              {working, Stopped{"old", "end_turn"}, refuse(RefusedUntimely)},
		"stopped nothing":                   {ready, Stopped{"", "end_turn"}, refuse(RefusedUntimely)},
		"asks":                              {working, Open{"a"}, []Event{RequestOpened{"a"}}},
		"asks while idle":                   {ready, Open{"a"}, []Event{RequestOpened{"a"}}},
		"asks while it starts":              {starting, Open{"a"}, []Event{RequestOpened{"a"}}},
		"asks while it should stop":         {cancelling, Open{"a"}, []Event{RequestOpened{"a"}, RequestEnded{"a", StatusCancelled}}},
		"asks the same again":               {asking, Open{"a"}, refuse(RefusedUntimely)},
		"asks when gone":                    {closed, Open{"a"}, refuse(RefusedUntimely)},
		"answer":                            {asking, Resolve{"b", StatusAnswered}, []Event{RequestEnded{"b", StatusAnswered}}},
		"second answer":                     {working, Resolve{"a", StatusAnswered}, refuse(RefusedNotOpen)},
		"cancel":                            {working, Cancel{}, []Event{CancelSent{}}},
		"cancel answers what is open":       {asking, Cancel{}, []Event{CancelSent{}, RequestEnded{"a", StatusCancelled}, RequestEnded{"b", StatusCancelled}}},
		"cancel what is held":               {held, Cancel{}, []Event{TurnEnded{"t", StopCancelled}}},
		"cancel what waits to start":        {State{Base: Starting, Turn: "t", Open: []string{"a"}}, Cancel{Unstarted: true}, []Event{RequestEnded{"a", StatusCancelled}, TurnEnded{"t", StopCancelled}, SessionClosed{transcript.ProblemQuit}}},
		"cancel what was started":           {State{Base: Starting, Turn: "t", Open: []string{"a"}}, Cancel{}, []Event{TurnEnded{"t", StopCancelled}}},
		"cancel no turn before a start":     {State{Base: Starting, Open: []string{"a"}}, Cancel{Unstarted: true}, []Event{RequestEnded{"a", StatusCancelled}, SessionClosed{transcript.ProblemQuit}}},
		"cancel twice":                      {cancelling, Cancel{}, refuse(RefusedUntimely)},
		"cancel nothing":                    {ready, Cancel{}, refuse(refusedNoTurn)},
		"escalate to SIGINT":                {cancelling, Escalate{}, []Event{InterruptSent{}}},
		"escalate to the tree":              {interrupted, Escalate{}, []Event{Killed{}}},
		"escalate no further":               {dead, Escalate{}, refuse(RefusedUntimely)},
		"escalate after the stop":           {ready, Escalate{}, refuse(RefusedUntimely)},
		"exit while idle":                   {ready, Exited{transcript.ProblemExited}, []Event{SessionClosed{transcript.ProblemExited}}},
		"exit in a turn":                    {asking, Exited{transcript.ProblemExited}, []Event{RequestEnded{"a", StatusExpired}, RequestEnded{"b", StatusExpired}, TurnEnded{"t", StopAgentExited}, SessionClosed{transcript.ProblemExited}}},
		"exit of a held prompt":             {held, Exited{transcript.ProblemSpawn}, []Event{TurnEnded{"t", StopAgentExited}, SessionClosed{transcript.ProblemSpawn}}},
		"exit while cancelling is a cancel": {interrupted, Exited{transcript.ProblemExited}, []Event{TurnEnded{"t", StopCancelled}, SessionClosed{transcript.ProblemExited}}},
		"exit of the app":                   {working, Exited{transcript.ProblemInterrupted}, []Event{TurnEnded{"t", StopInterrupted}, SessionClosed{transcript.ProblemInterrupted}}},
		"exit by restart":                   {held, Exited{transcript.ProblemRestart}, []Event{TurnEnded{"t", StopInterrupted}, SessionClosed{transcript.ProblemRestart}}},
		"exit twice":                        {closed, Exited{transcript.ProblemExited}, refuse(RefusedUntimely)},
		"sleep":                             {ready, Hibernate{true}, []Event{FellAsleep{}}},
		"no sleep without a way back":       {ready, Hibernate{false}, refuse(refusedForgets)},
		"no sleep while it works":           {working, Hibernate{true}, refuse(RefusedUntimely)},
		"no sleep while it asks":            {asking, Hibernate{true}, refuse(RefusedUntimely)},
		"no sleep while it asks, idle":      {idleAsking, Hibernate{true}, refuse(RefusedUntimely)},
		"no sleep while it starts":          {starting, Hibernate{true}, refuse(RefusedUntimely)},
		"no sleep before a held prompt":     {held, Hibernate{true}, refuse(RefusedUntimely)},
		"no sleep while it replays":         {State{Base: Replaying}, Hibernate{true}, refuse(RefusedUntimely)},
		"no sleep while it is cancelled":    {cancelling, Hibernate{true}, refuse(RefusedUntimely)},
		"no sleep of the closed":            {closed, Hibernate{true}, refuse(RefusedUntimely)},
		"no sleep twice":                    {asleep, Hibernate{true}, refuse(RefusedUntimely)},
		"prompt wakes the sleeping":         {asleep, Prompt{"u"}, []Event{TurnBegun{"u"}, StartBegun{}}},
		"start wakes the sleeping":          {asleep, Start{}, []Event{StartBegun{}}},
		"the sleeping has no exit":          {asleep, Exited{transcript.ProblemExited}, refuse(RefusedUntimely)},
		"cancel of the sleeping":            {asleep, Cancel{}, refuse(refusedNoTurn)},
		"delete":                            {closed, Delete{}, []Event{SessionDeleted{}}},
		"delete what is ready":              {ready, Delete{}, []Event{SessionClosed{transcript.ProblemDeleted}, SessionDeleted{}}},
		"delete what works":                 {asking, Delete{}, []Event{RequestEnded{"a", StatusCancelled}, RequestEnded{"b", StatusCancelled}, TurnEnded{"t", StopCancelled}, SessionClosed{transcript.ProblemDeleted}, SessionDeleted{}}},
		"delete what starts":                {held, Delete{}, []Event{TurnEnded{"t", StopCancelled}, SessionClosed{transcript.ProblemDeleted}, SessionDeleted{}}},
		"delete what is being cancelled":    {interrupted, Delete{}, []Event{TurnEnded{"t", StopCancelled}, SessionClosed{transcript.ProblemDeleted}, SessionDeleted{}}},
		"delete the sleeping":               {asleep, Delete{}, []Event{SessionDeleted{}}},
		"delete twice":                      {deleted, Delete{}, refuse(RefusedUntimely)},
		"start of the deleted":              {deleted, Start{}, refuse(RefusedUntimely)},
		"prompt to the deleted":             {deleted, Prompt{"u"}, refuse(RefusedUntimely)},
		"queue of the deleted":              {deleted, Queue{Item: "q"}, refuse(RefusedUntimely)},
		"restore":                           {deleted, Undelete{}, []Event{SessionRestored{}}},
		"restore what is there":             {ready, Undelete{}, refuse(RefusedUntimely)},
	} {
		t.Run(name, func(t *testing.T) {
			got := tc.in.Decide(tc.do)
			if !reflect.DeepEqual(got, tc.want) {
				t.Errorf("%+v\n got %#v\nwant %#v", tc.in, got, tc.want)
			}
			for _, e := range got {
				tc.in = tc.in.Evolve(e)
			}
			check(t, tc.in)
		})
	}
}

// check holds what is true in every state that can be reached.
func check(t *testing.T, s State) {
	t.Helper()
	bad := func(rule string) { t.Fatalf("%s is broken in %+v", rule, s) }
	switch s.Base {
	case Ready:
		if s.Turn != "" {
			bad("ready has no turn")
		}
	case Working, Cancelling:
		if s.Turn == "" || !s.Sent {
			bad("a working session has a turn that the agent knows")
		}
	case Closed:
		if s.Turn != "" || len(s.Open) > 0 {
			bad("a closed session has nothing open")
		}
	case Starting, Replaying:
		if s.Sent {
			bad("nothing is sent before ready")
		}
	case Waiting:
		bad("waiting is never stored")
	}
	if s.Deleted && s.Base != Closed {
		bad("nothing goes on in what is deleted")
	}
	if s.Asleep && s.Base != Closed {
		bad("who sleeps has no agent")
	}
	if s.Base != Cancelling && s.step != 0 {
		bad("only a cancel escalates")
	}
	if s.Turn == "" && s.Sent {
		bad("sent means a turn")
	}
	if s.Base == Cancelling && len(s.Open) > 0 {
		bad("a cancelled turn asks nobody")
	}
	for _, q := range s.Queue {
		if s.Turn == "" && q.Held == "" {
			bad("what is queued waits for a turn or for a person")
		}
		if q.Item != "" && q.Item == s.Turn {
			bad("a turn is in the queue no more")
		}
	}
	if s.next != "" && (s.Base != Cancelling || s.Find(s.next) < 0) {
		bad("what is chosen waits for a cancel")
	}
	sorted := slices.Clone(s.Open)
	slices.Sort(sorted)
	if len(slices.Compact(sorted)) != len(s.Open) {
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
		s := State{Base: Closed}
		began, ended := map[string]int{}, map[string]int{}
		var queue []string // of all that ever stood in it
		apply := func(c Command) {
			before := s
			for _, e := range s.Decide(c) {
				if taken, ok := e.(ItemTaken); ok {
					surprise(t, before, c, taken.Item)
				}
				s = s.Evolve(e)
				switch e := e.(type) {
				case ItemQueued:
					queue = append(queue, e.Item)
				case TurnBegun:
					began[e.Turn]++
				case TurnEnded:
					ended[e.Turn]++
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
			apply([]Command{
				Start{},
				Replay{},
				AgentReady{},
				Prompt{fmt.Sprintf("t%d", i)},
				Stopped{s.Turn, StopEnd},
				Open{id},
				Resolve{id, StatusAnswered},
				Cancel{Unstarted: b >= 200},
				Escalate{},
				Exited{transcript.ProblemExited},
				Hibernate{b/commands%2 == 0},
				Queue{fmt.Sprintf("q%d", i), b/commands%4 == 3},
				Send{item},
				Release{item},
				Hold{item},
				Move{item, int(b / commands)},
				Remove{item},
				Stopped{s.Turn, StopError},
				Delete{},
				Undelete{},
			}[b%commands])
			if before.Deleted && (s.Deleted || len(s.Open) > 0 || s.Turn != "") && !reflect.DeepEqual(before, s) {
				t.Fatalf("%+v was deleted, and is %+v", before, s)
			}
			if s.Deleted != before.Deleted && len(s.Queue) != len(before.Queue) {
				t.Fatalf("%+v became %+v: something is missing in the queue", before, s)
			}
			if s.Asleep && !before.Asleep && (before.Turn != "" || len(before.Open) > 0 || before.Base != Ready) {
				t.Fatalf("%+v was put to sleep", before)
			}
		}
		apply(Undelete{})
		if s.next != "" {
			apply(Cancel{}) // of what follows an interruption
		}
		apply(Cancel{})
		apply(Escalate{})
		apply(Escalate{})
		apply(Exited{transcript.ProblemExited})
		if s.Turn != "" || len(s.Open) > 0 {
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
func surprise(t *testing.T, before State, c Command, item string) {
	t.Helper()
	switch c := c.(type) {
	case Queue:
		if c.Item == item {
			return
		}
	case Send:
		if c.Item == item {
			return
		}
	case Release:
		if c.Item == item {
			return
		}
	}
	if before.next == item {
		return // by an interruption
	}
	stopped, ok := c.(Stopped)
	if i := before.Find(item); !ok || stopped.Reason != StopEnd || before.Base == Cancelling || before.Queue[i].Held != "" {
		t.Fatalf("%s goes out by %#v in %+v", item, c, before)
	}
}
