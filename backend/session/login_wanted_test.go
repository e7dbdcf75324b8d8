package session_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/lifecycle"
	"deskhand/backend/proxy"
	"deskhand/backend/session"
)

// A login starts no agent of an archived session.
func TestLoginDoesNotWakeWhatIsArchived(t *testing.T) {
	t.Parallel()
	d := locked(t)
	s := d.createOf("by-agent")
	d.refused(s.ID)
	d.prompt(s.ID, "echo old words")
	d.refused(s.ID)
	if _, err := d.Change(t.Context(), s.ID, session.Patch{Archived: new(true)}); err != nil {
		t.Fatal(err)
	}
	younger := d.createOf("by-agent") // retried after the older session
	d.refused(younger.ID)
	generation := d.get(s.ID).Generation
	d.ended(d.login("by-agent", "demo", nil))
	d.until("session", func() bool { return d.get(younger.ID).Phase == lifecycle.Ready })
	if now := d.get(s.ID); now.Phase != lifecycle.Closed || now.Generation != generation || now.Turn != nil {
		t.Errorf("archived session after the login: got %+v, want it closed in generation %d without a turn", now, generation)
	}
}

// fickle is an agent that loses its account in the middle of a conversation. fickle refuses a prompt at once, or a prompt that waits for a
// cancel when it is cancelled; after a login it echoes prompts.
const fickle = `while read -r line; do
  id=${line##*'"id":'}; id=${id%%[,\}]*}
  case $line in
  *'"initialize"'*) say='"result":{"protocolVersion":1}' ;;
  *'"session/new"'*) say='"result":{"sessionId":"s"}' ;;
  *'"session/prompt"'*)
    if [ -e signed-in ]; then
      printf '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"sent again"}}}}\n'
      say='"result":{"stopReason":"end_turn"}'
    else
      case $line in *stop*) read -r cancel ;; esac
      say='"error":{"code":-32000,"message":"Sign in first"}'
    fi ;;
  *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$say"
done`

// A prompt that was cancelled is not sent again after a login, whatever the agent has answered to the prompt.
func TestLoginDoesNotSendWhatWasStopped(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("a shell is needed")
	}
	dir := t.TempDir()
	data, err := json.Marshal(map[string]any{"agents": []any{map[string]any{"id": "fickle", "command": "/bin/sh", "args": []string{"-c", fickle}, "cwd": dir}}})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "agents.json"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	d := openAs(t, dir, proxy.Config{}, session.Config{Patience: time.Minute})
	stopped, younger := d.createOf("fickle"), d.createOf("fickle") // retried after each other
	for _, id := range []string{stopped.ID, younger.ID} {
		d.until("session", func() bool { return d.get(id).Phase == lifecycle.Ready })
	}
	d.prompt(stopped.ID, "stop this")
	d.until("work", func() bool { return d.get(stopped.ID).Phase == lifecycle.Working })
	if err := d.Cancel(t.Context(), stopped.ID); err != nil {
		t.Fatal(err)
	}
	d.idle(stopped.ID)
	d.prompt(younger.ID, "go on")
	d.idle(younger.ID)
	if err := os.WriteFile(filepath.Join(dir, "signed-in"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	d.ended(d.signedIn("fickle"))
	d.until("answer", func() bool { return strings.Contains(textOf(d.transcript(younger.ID), "agent"), "sent again") })
	d.until("agent", func() bool { return d.get(stopped.ID).Generation == 2 && d.get(stopped.ID).Phase == lifecycle.Ready })
	if now := d.transcript(stopped.ID); d.get(stopped.ID).Turn != nil || len(now.Turns) != 1 || textOf(now, "agent") != "" {
		t.Errorf("stopped session after the login: got turns %+v, text %q; want 1 turn, no text, nothing running", now.Turns, textOf(now, "agent"))
	}
}

// A message whose start was refused for a missing login becomes the draft or a queued prompt at once, since the login may come late or
// never. After the login it is sent once from there, unless the person has changed it.
func TestLoginKeepsPromptThatWantedIt(t *testing.T) {
	t.Parallel()
	const message, other = "echo some words", "something else"
	change := func(p session.Patch) func(*desk, string) {
		return func(d *desk, id string) {
			if _, err := d.Change(d.t.Context(), id, p); err != nil {
				d.t.Fatal(err)
			}
		}
	}
	remove := func(d *desk, id string) {
		if items, err := d.Queue(d.t.Context(), id); err != nil || len(items) != 1 || d.RemoveQueued(d.t.Context(), id, items[0].ID) != nil {
			d.t.Fatalf("Queue: got %+v, %v; want one item that can be removed", items, err)
		}
	}
	restart := func(d *desk, id string) { // signs in outside of Deskhand, and restarts the agent
		if err := os.WriteFile(filepath.Join(d.dir, "signed-in"), nil, 0o600); err != nil {
			d.t.Fatal(err)
		}
		if err := d.Restart(d.t.Context(), id); err != nil {
			d.t.Fatal(err)
		}
	}
	for name, tc := range map[string]struct {
		begun     string // a draft, before the refusal
		file      bool   // the draft has a file by then
		meanwhile func(*desk, string)
		sent      int
		draft     string
		files     int
		queue     string
	}{
		"it is sent after the login":                {sent: 1},
		"it is changed":                             {meanwhile: change(session.Patch{Draft: new(message + " and more")}), draft: message + " and more", files: 1},
		"it is thrown away":                         {meanwhile: change(session.Patch{Draft: new(""), Attachments: new([]string{})})},
		"its file is taken out":                     {meanwhile: change(session.Patch{Attachments: new([]string{})}), draft: message},
		"it is signed in elsewhere":                 {meanwhile: restart, draft: message, files: 1},
		"another is begun":                          {begun: other, sent: 1, draft: other},
		"another is begun with a file":              {file: true, sent: 1, files: 1},
		"another is begun, and it is thrown away":   {begun: other, meanwhile: remove, draft: other},
		"another is begun, and signed in elsewhere": {begun: other, meanwhile: restart, draft: other, queue: message + " stopped"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := locked(t)
			id := d.createOf("by-agent").ID
			d.refused(id)
			if tc.begun != "" {
				change(session.Patch{Draft: &tc.begun})(d, id)
			}
			if tc.file {
				change(session.Patch{Attachments: new([]string{d.upload("another.png", picture(t, 8, 8)).ID})})(d, id)
			}
			shot := d.upload("shot.png", picture(t, 7, 7))
			d.sendFiles(id, message, session.Now, byID(shot)...)
			d.refused(id)
			items, err := d.Queue(t.Context(), id)
			s := d.get(id)
			inDraft := s.Draft == message && len(s.Attachments) == 1 && s.Attachments[0].ID == shot.ID && len(items) == 0
			inQueue := s.Draft == tc.begun && len(items) == 1 && items[0].Message == message && items[0].Held != "" && len(items[0].Attachments) == 1
			if begun := tc.begun != "" || tc.file; err != nil || !begun && !inDraft || begun && !inQueue {
				t.Fatalf("it is not given back: %q, %+v, %+v, %v", s.Draft, s.Attachments, items, err)
			}
			younger := d.createOf("by-agent") // retried after the older session, which nothing else starts again
			d.refused(younger.ID)
			if tc.meanwhile != nil {
				tc.meanwhile(d, id)
			}
			d.ended(d.login("by-agent", "demo", nil))
			for _, s := range []string{id, younger.ID} {
				d.isReady(s)
			}
			d.idle(id)
			if n := d.wrote(id, `"session/prompt"`); n != tc.sent {
				t.Errorf("prompts sent: got %d, want %d", n, tc.sent)
			}
			if s := d.get(id); s.Draft != tc.draft || len(s.Attachments) != tc.files {
				t.Errorf("session after the login: got draft %q, attachments %+v; want %q, %d", s.Draft, s.Attachments, tc.draft, tc.files)
			}
			d.queueIs(id, tc.queue)
			d.sameAsRebuilt(id)
		})
	}
}

func (d *desk) wantsLogin(agent string) bool {
	d.t.Helper()
	list, err := d.roster.List(d.t.Context(), false, false)
	if err != nil {
		d.t.Fatal(err)
	}
	return slices.ContainsFunc(list, func(a agents.Agent) bool { return a.ID == agent && a.State == agents.NeedsLogin })
}
