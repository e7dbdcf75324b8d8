package session_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"deskhand/backend/export"
	"deskhand/backend/lifecycle"
	"deskhand/backend/session"
)

// TestTurnErrorTellsItsData: agents answer "Internal error" at each step, with the cause in data. The cause is shown wherever the error is:
// of the turn, of the session, in an export and in a notice, with secrets hidden.
func TestTurnErrorTellsItsData(t *testing.T) {
	t.Parallel()
	const key = "sk-ant-api03-abcdefghijklmnopqrstuvwxyz"
	const data = `{"code":-32603,"message":"Internal error","data":{"details":"{\"error\":{\"message\":\"the quota of ` + key + ` is used up\"}}"}}`
	const want = "Internal error: the quota of [redacted] is used up"
	const initialized = `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}';`
	const opened = initialized + `read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s","modes":{"currentModeId":"a","availableModes":[{"id":"a","name":"A"},{"id":"b","name":"B"}]}}}';`
	const rest = `; cat >/dev/null`
	refuses := func(id string) string {
		return `read l; printf '%s\n' '{"jsonrpc":"2.0","id":` + id + `,"error":` + data + `}'`
	}
	dir := t.TempDir()
	custom(t, dir, map[string]string{
		"initialize": refuses("1") + rest,
		"new":        initialized + refuses("2") + rest,
		"mode":       opened + refuses("3") + rest,
		"prompt":     opened + refuses("3") + rest,
	})
	d := open(t, dir)
	create := func(agent string) session.Session {
		t.Helper()
		s, err := d.Create(t.Context(), session.New{Agent: agent, Cwd: d.work})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	exported := func(id string) string {
		t.Helper()
		x, err := d.exporter().File(t.Context(), id, export.Markdown)
		var b bytes.Buffer
		if err == nil {
			_, err = x.WriteTo(&b)
		}
		if err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	for _, agent := range []string{"initialize", "new"} {
		s := create(agent)
		d.until("failure of "+agent, func() bool { return d.get(s.ID).Exit != nil })
		if got := d.get(s.ID).Exit.Params["detail"]; got != want {
			t.Errorf("%s: the exit tells %q, want %q", agent, got, want)
		}
		d.prompt(s.ID, "hello")
		tr := d.idle(s.ID)
		if e := lastTurn(tr).Error; e == nil || e.Message != want || e.Code != -32603 {
			t.Errorf("%s: the turn has the error %+v, want %q", agent, e, want)
		}
		if out := exported(s.ID); strings.Count(out, want) < 2 { // once for each start
			t.Errorf("%s: the export has it %d times:\n%s", agent, strings.Count(out, want), out)
		}
		d.sameAsRebuilt(s.ID)
	}
	s := create("prompt")
	d.prompt(s.ID, "hello")
	if last := lastTurn(d.idle(s.ID)); last.StopReason != "error" || last.Error == nil || last.Error.Message != want {
		t.Errorf("the turn has ended with %s, %+v, want %q", last.StopReason, last.Error, want)
	}
	if out := exported(s.ID); strings.Count(out, want) != 1 {
		t.Errorf("the export does not have it once:\n%s", out)
	}
	d.sameAsRebuilt(s.ID)
	s = create("mode")
	d.until("ready", func() bool { return d.get(s.ID).Phase == lifecycle.Ready })
	_, err := d.Configure(t.Context(), s.ID, "mode", mustJSON(t, "b"))
	refused(t, err, "config.refused")
	if why, _ := errors.AsType[*session.RefusedError](err); why == nil || why.Params["detail"] != want {
		t.Errorf("got %+v for a mode that the agent refuses, want its words %q", why, want)
	}
	d.until("notice", func() bool { return find(d.transcript(s.ID), "notice") != nil })
	if n := find(d.transcript(s.ID), "notice").Notice; n.Description != want {
		t.Errorf("the notice of the mode says %q, want %q", n.Description, want)
	}
}

// An agent that closes a pipe and runs on is ended, with its turn and the reason, since none of its requests would ever be answered.
func TestAgentThatClosesPipeIsEnded(t *testing.T) {
	t.Parallel()
	const begun = `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'; read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}';`
	const lives = ` while :; do sleep 1; done`
	dir := t.TempDir()
	custom(t, dir, map[string]string{
		"mute-at-once": `exec >&-;` + lives,
		"mute":         begun + `read l; exec >&-;` + lives,
		"mute-heeding": begun + `read l; exec >&-; trap '' TERM;` + lives,
		"deaf":         begun + `exec <&-;` + lives,
	})
	d := open(t, dir)
	for agent, want := range map[string]string{"mute-at-once": "closed its output", "mute": "closed its output", "mute-heeding": "closed its output", "deaf": "closed its input"} {
		s, err := d.Create(t.Context(), session.New{Agent: agent, Cwd: d.work})
		if err != nil {
			t.Fatal(err)
		}
		d.prompt(s.ID, "hello")
		tr := d.idle(s.ID)
		wantStop(t, tr, "agent_exited")
		exit := d.get(s.ID).Exit
		if exit == nil || !strings.Contains(exit.Params["detail"], want) {
			t.Errorf("%s: the exit tells %+v, want that it has %s", agent, exit, want)
		}
		if e := find(tr, "divider"); e == nil || !strings.Contains(e.Divider.Words(agent), want) {
			t.Errorf("%s: the transcript does not say why: %+v", agent, e)
		}
		d.sameAsRebuilt(s.ID)
	}
}
