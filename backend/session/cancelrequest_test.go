package session_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"deskhand/backend/lifecycle"
	"deskhand/backend/proxy"
	"deskhand/backend/session"
)

// wrote counts the frames to the agent that hold a text.
func (d *desk) wrote(id, text string) int {
	n := 0
	for dir, data := range d.journal(id) {
		if dir == "out" && strings.Contains(string(data), text) {
			n++
		}
	}
	return n
}

func TestCancelStopsStartThatHangs(t *testing.T) {
	for name, words := range map[string][]string{
		"and the agent yields":  {"", "session/new", "yields"},
		"and the agent ignores": {"", "session/new"},
	} {
		t.Run(name, func(t *testing.T) {
			d := askingDesk(t, t.TempDir(), words...)
			id := d.asking()
			d.until("session/new", func() bool { return d.wrote(id, `"session/new"`) == 1 })
			if err := d.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			d.until("end", func() bool { return d.get(id).Phase == lifecycle.Closed })
			if s := d.get(id); s.Exit != nil {
				t.Errorf("it is told as a failure: %+v", s.Exit)
			}
			if n := d.wrote(id, `"$/cancel_request"`); n != 1 {
				t.Errorf("%d withdrawals", n)
			}
			refused(t, d.Cancel(t.Context(), id), "turn.none")
			d.sameAsRebuilt(id)
		})
	}
}

// A cancel of a start makes the message that waits for the start the draft again, and keeps the prompts behind it queued. An agent that has
// not answered initialize has no request that could be withdrawn, so it is ended.
func TestCancelStopsStartWithMessage(t *testing.T) {
	for name, hangs := range map[string]string{"before it is initialized": "initialize", "before it has a session": "session/new"} {
		t.Run(name, func(t *testing.T) {
			d := askingDesk(t, t.TempDir(), "", hangs)
			id := d.asking()
			d.until(hangs, func() bool { return d.wrote(id, `"`+hangs+`"`) == 1 })
			d.prompt(id, "say \"hello\"\nto all")
			d.queues(id, "later")
			runs := func() bool { n, _ := d.set.Running(); return n > 0 }
			if !runs() {
				t.Fatal("no agent runs")
			}
			if err := d.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			d.until("end", func() bool { return d.get(id).Phase == lifecycle.Closed })
			s := d.get(id)
			if s.Exit != nil || s.Turn != nil || s.Draft != "say \"hello\"\nto all" {
				t.Errorf("session after Cancel: got %+v, want no exit, no turn, and its message as draft", s)
			}
			wantStop(t, d.transcript(id), "cancelled")
			d.queueIs(id, "later stopped")
			d.until("end of the process", func() bool { return !runs() })
			if n := d.wrote(id, `"session/prompt"`); n != 0 {
				t.Errorf("%d prompts were sent", n)
			}
			d.sameAsRebuilt(id)
		})
	}
}

// A prompt that is sent after the cancel of a start gets a start of its own when the first start has ended.
func TestPromptAfterStoppedStartIsSent(t *testing.T) {
	t.Parallel()
	const message = "hello once more"
	for name, begun := range map[string]string{"": "", "another is begun meanwhile": "something else"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			custom(t, dir, map[string]string{"hangs": `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
				read l; [ -e hung ] || { touch hung; sleep 1000; }
				echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
				read l; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'; cat >/dev/null`})
			d := openAs(t, dir, proxy.Config{}, session.Config{Patience: time.Second})
			id := d.createOf("hangs").ID
			d.until("a start that hangs", func() bool { _, err := os.Stat(filepath.Join(d.work, "hung")); return err == nil })
			if err := d.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			d.prompt(id, message)
			if _, err := d.Change(t.Context(), id, session.Patch{Draft: &begun}); err != nil {
				t.Fatal(err)
			}
			d.until("answer", func() bool { s := d.get(id); return s.Turn == nil && s.Phase != lifecycle.Starting })
			if last := lastTurn(d.transcript(id)); last.StopReason != "end_turn" || d.wrote(id, `"session/prompt"`) != 1 {
				t.Errorf("turn after the stop: got %+v and %d prompts sent, want end_turn and 1", last, d.wrote(id, `"session/prompt"`))
			}
			if s := d.get(id); s.Draft != begun || s.Queue != 0 || s.Exit != nil {
				t.Errorf("session after the stop: got %+v, want draft %q, an empty queue, no exit", s, begun)
			}
			d.sameAsRebuilt(id)
		})
	}
}

// A second cancel ends the start at once, without waiting for the answer to the first.
func TestSecondCancelEndsStartAtOnce(t *testing.T) {
	d := askingDeskWith(t, t.TempDir(), time.Minute, "", "session/new")
	id := d.asking()
	d.until("session/new", func() bool { return d.wrote(id, `"session/new"`) == 1 })
	for range 2 {
		if err := d.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	if s := d.get(id); s.Phase != lifecycle.Closed || s.Exit != nil {
		t.Errorf("session after two cancels: got %+v, want it closed without an exit", s)
	}
}

// A cancel of a start does not overwrite a draft that was begun meanwhile.
func TestCancelLeavesNewerDraft(t *testing.T) {
	d := askingDesk(t, t.TempDir(), "", "initialize")
	id := d.asking()
	d.prompt(id, "hello")
	draft := "another"
	if _, err := d.Change(t.Context(), id, session.Patch{Draft: &draft}); err != nil {
		t.Fatal(err)
	}
	if err := d.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if s := d.get(id); s.Phase != lifecycle.Closed || s.Draft != draft {
		t.Errorf("session after Cancel: got %+v, want it closed with draft %q", s, draft)
	}
}

func TestCancelStopsConfigChangeThatHangs(t *testing.T) {
	for name, words := range map[string][]string{
		"and the agent yields":  {"", "session/set_config_option", "yields"},
		"and the agent ignores": {"", "session/set_config_option"},
	} {
		t.Run(name, func(t *testing.T) {
			d := askingDesk(t, t.TempDir(), words...)
			id := d.asking()
			d.until("ready", func() bool { return d.get(id).Phase == lifecycle.Ready })
			if err := d.SetConfig(t.Context(), id, "fast", json.RawMessage("true")); err != nil {
				t.Fatal(err)
			}
			if err := d.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			d.until("notice", func() bool { return find(d.transcript(id), "notice") != nil })
			if s := d.get(id); s.Phase != lifecycle.Ready || s.ConfigOptions[0].Checked {
				t.Errorf("session after a cancelled change: got %+v, want it ready, the option unchecked", s)
			}
			d.steps(id) // the agent goes on
		})
	}
}

// A withdrawn request is named in $/cancel_request by the id with which it was sent.
func TestCancelRequestFitsSchema(t *testing.T) {
	d := askingDesk(t, t.TempDir(), "", "session/set_config_option")
	id := d.asking()
	d.until("ready", func() bool { return d.get(id).Phase == lifecycle.Ready })
	if err := d.SetConfig(t.Context(), id, "fast", json.RawMessage("true")); err != nil {
		t.Fatal(err)
	}
	if err := d.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	var asked, withdrawn wire
	for dir, data := range d.journal(id) {
		var m wire
		if dir != "out" || json.Unmarshal(data, &m) != nil {
			continue
		}
		switch m.Method {
		case "session/set_config_option":
			asked = m
		case "$/cancel_request":
			withdrawn = m
		}
	}
	if err := acpSchema(t)("$/cancel_request", "Notification").Validate(withdrawn.Params); err != nil {
		t.Error(err)
	}
	named, _ := json.Marshal(withdrawn.Params)
	if string(named) != `{"requestId":`+string(asked.ID)+`}` {
		t.Errorf("%s for the request %s", named, asked.ID)
	}
}

// A prompt whose agent does not start becomes the draft again, since it was not sent.
func TestPromptIsDraftAgainWhenStartFails(t *testing.T) {
	t.Parallel()
	const message = "say \"hello\"\nto all"
	for name, end := range map[string]func(d *desk, id string){
		"the agent ends": func(d *desk, _ string) { d.write("end", "") },
		"it is started again": func(d *desk, id string) {
			d.t.Helper()
			if err := d.Restart(d.t.Context(), id); err != nil {
				d.t.Fatal(err)
			}
		},
		"it is stopped, and then written to": func(d *desk, id string) {
			d.t.Helper()
			if err := d.Cancel(d.t.Context(), id); err != nil {
				d.t.Fatal(err)
			}
			if draft := d.get(id).Draft; draft != message {
				d.t.Errorf("draft after Cancel: got %q, want %q", draft, message)
			}
			d.sendFiles(id, message, session.Now, byID(d.get(id).Attachments[0])...)
			d.until("the next start", func() bool { return d.wrote(id, `"session/new"`) == 2 })
			d.write("end", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			custom(t, dir, map[string]string{"waits": `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
				read l; until [ -e end ]; do sleep 0.02; done`})
			d := openAs(t, dir, proxy.Config{}, session.Config{Patience: 3 * time.Second}) // long enough for the prompt before the start fails
			id := d.createOf("waits").ID
			d.until("session/new", func() bool { return d.wrote(id, `"session/new"`) == 1 })
			shot := d.upload("shot.png", picture(t, 7, 7))
			d.sendFiles(id, message, session.Now, byID(shot)...)
			end(d, id)
			d.until("end of the turn", func() bool { s := d.get(id); return s.Turn == nil && s.Draft == message })
			if s := d.get(id); len(s.Attachments) != 1 || s.Attachments[0].ID != shot.ID {
				t.Errorf("attachments of the draft: got %+v, want %s", s.Attachments, shot.ID)
			}
			if n := d.wrote(id, `"session/prompt"`); n != 0 {
				t.Errorf("%d prompts were sent", n)
			}
			d.sameAsRebuilt(id)
		})
	}
}

// waiting is a desk with an agent that makes no session before a file exists, and that takes images.
func waiting(t *testing.T, dir string) *desk {
	t.Helper()
	custom(t, dir, map[string]string{"waits": `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentCapabilities":{"promptCapabilities":{"image":true}}}}'
		read l; until [ -e go ]; do sleep 0.02; done; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
		read l; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'; cat >/dev/null`})
	return open(t, dir)
}

// A prompt that interrupts one that waits for a start puts the waiting one into the queue, since the agent does not know it.
func TestInterruptedPromptOfStartIsQueued(t *testing.T) {
	t.Parallel()
	d := waiting(t, t.TempDir())
	id := d.createOf("waits").ID
	d.until("session/new", func() bool { return d.wrote(id, `"session/new"`) == 1 })
	shot := d.upload("shot.png", picture(t, 7, 7))
	d.sendFiles(id, "one", session.Now, byID(shot)...)
	if sent := d.send(id, "two", session.Interrupt); sent.Turn == nil {
		t.Fatalf("Send(two, interrupt): got %+v, want a turn", sent)
	}
	d.queueIs(id, "one stopped")
	items, err := d.Queue(t.Context(), id)
	if err != nil || len(items[0].Attachments) != 1 || items[0].Attachments[0].ID != shot.ID {
		t.Errorf("Queue: got %+v, %v; want one with attachment %s", items, err, shot.ID)
	}
	three := d.queues(id, "three")
	if sent := d.change(id, three, session.QueuePatch{Send: true}); sent.Turn == nil {
		t.Fatalf("ChangeQueued(three, send): got %+v, want a turn", sent)
	}
	d.queueIs(id, "two stopped, one stopped")
	if s := d.get(id); s.Draft != "" {
		t.Errorf("draft: got %q, want none", s.Draft)
	}
	d.write("go", "")
	d.idle(id)
	if n := d.wrote(id, `"session/prompt"`); n != 1 || d.wrote(id, `"three"`) != 1 {
		t.Errorf("%d prompts were sent", n)
	}
	d.queueIs(id, "two stopped, one stopped")
	d.sameAsRebuilt(id)
}

// A message that is too long for a draft waits in the queue; a full queue is told in a notice.
func TestPromptTooLongForDraftIsQueued(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 1<<20/5+1)
	for name, tc := range map[string]struct {
		message, draft string
		queued         int
		kept           bool
	}{
		"too long":                                {long, "", 0, true},
		"too long, and another is begun":          {long, "another", 1, true},
		"too long, and the queue is full":         {long, "", 100, false},
		"another is begun, and the queue is full": {"one", "another", 100, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := waiting(t, t.TempDir())
			id := d.createOf("waits").ID
			d.until("session/new", func() bool { return d.wrote(id, `"session/new"`) == 1 })
			shot := d.upload("shot.png", picture(t, 7, 7))
			d.sendFiles(id, tc.message, session.Now, byID(shot)...)
			for range tc.queued {
				d.queues(id, "later")
			}
			if _, err := d.Change(t.Context(), id, session.Patch{Draft: &tc.draft}); err != nil {
				t.Fatal(err)
			}
			for d.get(id).Turn != nil {
				if err := d.Cancel(t.Context(), id); err != nil {
					t.Fatal(err)
				}
			}
			items, err := d.Queue(t.Context(), id)
			if err != nil || d.get(id).Draft != tc.draft {
				t.Fatalf("draft: got %q, Queue %v; want %q", d.get(id).Draft, err, tc.draft)
			}
			kept := len(items) == tc.queued+1 && items[0].Message == tc.message && items[0].Held == "stopped" && len(items[0].Attachments) == 1
			if kept != tc.kept || len(items) < tc.queued {
				t.Errorf("Queue: got %d items, message kept %v; want at least %d, kept %v", len(items), kept, tc.queued, tc.kept)
			}
			if told := strings.Contains(notices(d.transcript(id)), "Your message was not sent"); told == tc.kept {
				t.Errorf("notices: got %q, message kept %v; want it told where it is lost, and only there", notices(d.transcript(id)), tc.kept)
			}
			d.sameAsRebuilt(id)
		})
	}
}

// After a kill of the program, a prompt that waited for a start is the draft again; a prompt that the agent has is not.
func TestPromptOfStartOutlivesKill(t *testing.T) {
	t.Parallel()
	for message, draft := range map[string]string{"say \"hello\"\nto all": "say \"hello\"\nto all", "say our-own-token": "say [redacted]"} {
		d := waiting(t, t.TempDir())
		id := d.createOf("waits").ID
		d.until("session/new", func() bool { return d.wrote(id, `"session/new"`) == 1 })
		shot := d.upload("shot.png", picture(t, 7, 7))
		d.sendFiles(id, message, session.Now, byID(shot)...)
		later := t.TempDir()
		if err := os.CopyFS(later, os.DirFS(d.dir)); err != nil { // the directory as after a crash
			t.Fatal(err)
		}
		after := open(t, later)
		s := after.get(id)
		if s.Draft != draft || s.Turn != nil || len(s.Attachments) != 1 || s.Attachments[0].ID != shot.ID {
			t.Errorf("session after a kill: got draft %q in %+v; want %q with %s, no turn", s.Draft, s, draft, shot.ID)
		}
		tr := after.transcript(id)
		if said := strings.Contains(notices(tr), "Your message was not sent"); said != (draft != message) || lastTurn(tr).StopReason != "interrupted" {
			t.Errorf("after a kill: got notices %q, turn %+v; want interrupted, and the message told where it is not the draft", notices(tr), lastTurn(tr))
		}
		after.sameAsRebuilt(id)
	}
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "slow")
	d.works(s.ID)
	later := t.TempDir()
	if err := os.CopyFS(later, os.DirFS(d.dir)); err != nil {
		t.Fatal(err)
	}
	if now := open(t, later).get(s.ID); now.Draft != "" || now.Turn != nil {
		t.Errorf("session after a kill in a turn: got draft %q, turn %+v; want neither", now.Draft, now.Turn)
	}
}

// An unsent prompt is the draft again after its session was deleted and restored, and when one of its files cannot be read any more.
func TestUnsentPromptIsDraftAgainAfterRestore(t *testing.T) {
	t.Parallel()
	d := waiting(t, t.TempDir())
	id := d.createOf("waits").ID
	d.prompt(id, "one")
	if err := d.Delete(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if s, err := d.Restore(t.Context(), id); err != nil || s.Draft != "one" {
		t.Errorf("Restore: got draft %q, %v; want one", s.Draft, err)
	}
	id = d.createOf("waits").ID
	d.until("session/new", func() bool { return d.wrote(id, `"session/new"`) == 1 })
	shot := d.upload("shot.png", picture(t, 7, 7))
	d.sendFiles(id, "two", session.Now, byID(shot)...)
	if err := os.RemoveAll(filepath.Join(d.dir, "blobs")); err != nil {
		t.Fatal(err)
	}
	d.write("go", "")
	tr := d.idle(id)
	if s := d.get(id); lastTurn(tr).StopReason != "error" || s.Draft != "two" || len(s.Attachments) != 1 {
		t.Errorf("send without blobs: got turn %+v, draft %q, attachments %+v; want error, two, 1", lastTurn(tr), s.Draft, s.Attachments)
	}
}

func TestCancelStopsImportThatHangs(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir(), "", "session/load", "yields")
	id := d.importOf("asking", "s", d.work).ID
	d.until("session/load", func() bool { return d.wrote(id, `"session/load"`) == 1 })
	if err := d.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	d.until("end", func() bool { return d.get(id).Phase == lifecycle.Closed })
	if s := d.get(id); s.Exit != nil {
		t.Errorf("it is told as a failure: %+v", s.Exit)
	}
}

// deafAgent opens a session and closes its input.
const deafAgent = `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
	read l; exec <&-; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'; sleep 1000`

// A turn ends soon when its agent has closed its input.
func TestTurnEndsWhenAgentHasClosedItsInput(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	custom(t, dir, map[string]string{"deaf": deafAgent})
	d := open(t, dir)
	id := d.createOf("deaf").ID
	d.isReady(id)
	d.prompt(id, "hello")
	d.until("end of the turn", func() bool { return d.get(id).Turn == nil })
	wantStop(t, d.transcript(id), "agent_exited")
}
