package session_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"deskhand/backend/agenttest"
	"deskhand/backend/lifecycle"
	"deskhand/backend/proxy"
	"deskhand/backend/session"
	"deskhand/backend/transcript"
)

func openLeaving(t *testing.T, dir string) *desk {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("what runs is read from /proc")
	}
	agent := agenttest.Program(t)
	file := fmt.Sprintf(`{"agents":[{"id":"leaver","name":"Leaver","command":%q,"args":["leaving-agent"]}]}`, agent)
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	return openWith(t, dir, proxy.Config{})
}

// stopped runs a command in a turn, cancels the turn when the command has begun, and returns the transcript.
func (d *desk) stopped(id, how, command string) session.Transcript {
	d.t.Helper()
	begun := filepath.Join(d.t.TempDir(), "begun")
	d.prompt(id, how+" echo $$ > "+begun+"; "+command)
	d.until("the command", func() bool { data, err := os.ReadFile(begun); return err == nil && len(data) > 0 })
	if err := d.Cancel(d.t.Context(), id); err != nil {
		d.t.Fatal(err)
	}
	return d.idle(id)
}

// straggler waits for the entry of a command that still runs, or has ended.
func (d *desk) straggler(id, command string, running bool) transcript.Entry {
	d.t.Helper()
	var found transcript.Entry
	d.until("the row of "+command, func() bool {
		for _, e := range d.transcript(id).Items {
			if e.Straggler != nil && strings.Contains(e.Straggler.Command, command) && e.Straggler.Running == running {
				found = e
			}
		}
		return found.Straggler != nil
	})
	return found
}

func isAlive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !strings.Contains(string(stat), ") Z ")
}

func TestStragglersAreToldAndEnded(t *testing.T) {
	t.Parallel()
	d := openLeaving(t, t.TempDir())
	s, err := d.Create(t.Context(), session.New{Agent: "leaver", Cwd: d.work})
	if err != nil {
		t.Fatal(err)
	}
	turn := lastTurn(d.stopped(s.ID, "leave", "sleep 306; true"))
	e := d.straggler(s.ID, "sleep 306", true)
	if e.Turn != turn.ID || e.Straggler.Title != "Run it" || e.Straggler.Processes != 2 || !isAlive(e.Straggler.PID) {
		t.Errorf("got %+v of turn %s, want a row of turn %s with two processes", *e.Straggler, e.Turn, turn.ID)
	}
	if got := e.Straggler.Words(); !strings.HasPrefix(got, "Still running: echo $$") || !strings.HasSuffix(got, "sleep 306; true, started by Run it") {
		t.Errorf("words: %q", got)
	}
	d.sameAsRebuilt(s.ID)

	// Another command, which ends by itself; the first one runs on over the turn.
	d.stopped(s.ID, "leave", "exec sleep 307")
	other := d.straggler(s.ID, "sleep 307", true)
	if p, err := os.FindProcess(other.Straggler.PID); err != nil || p.Kill() != nil {
		t.Fatal("process ", other.Straggler.PID, " cannot be killed: ", err)
	}
	if ended := d.straggler(s.ID, "sleep 307", false).Straggler; ended.EndedBy != "" || ended.EndedAt == nil || !strings.HasPrefix(ended.Words(), "Has ended meanwhile: ") {
		t.Errorf("ended by itself: got %+v %q", ended, ended.Words())
	}
	if !isAlive(e.Straggler.PID) {
		t.Error("the first has ended with the second")
	}

	if err := d.Stragglers().End(t.Context(), s.ID, e.ID); err != nil {
		t.Fatal(err)
	}
	ended := d.straggler(s.ID, "sleep 306", false).Straggler
	if isAlive(ended.PID) || ended.EndedBy != "person" || ended.EndedAt == nil {
		t.Errorf("ended by a person: got %+v", ended)
	}
	for name, id := range map[string]string{"a second time": e.ID, "one that ended by itself": other.ID} {
		if err := d.Stragglers().End(t.Context(), s.ID, id); err != nil {
			t.Errorf("EndStraggler of %s = %v, want nil", name, err)
		}
	}
	if err := d.Stragglers().End(t.Context(), s.ID, find(d.transcript(s.ID), "user").ID); err == nil {
		t.Error("a message was ended")
	}
	if s := d.get(s.ID); s.Phase != lifecycle.Ready {
		t.Errorf("the agent is %s", s.Phase)
	}
	d.sameAsRebuilt(s.ID)
}

// Commands that the agent ends itself are not told, nor those that it has not reported, nor its helpers.
func TestStragglersLeaveOutWhatAgentEndsOrKeeps(t *testing.T) {
	t.Parallel()
	d := openLeaving(t, t.TempDir())
	s, err := d.Create(t.Context(), session.New{Agent: "leaver", Cwd: d.work})
	if err != nil {
		t.Fatal(err)
	}
	d.stopped(s.ID, "own", "sleep 308; true")
	d.stopped(s.ID, "end", "exec sleep 309")
	d.stopped(s.ID, "leave", "exec sleep 310")
	d.straggler(s.ID, "sleep 310", true)
	for _, e := range d.transcript(s.ID).Items {
		if e.Straggler != nil && !strings.Contains(e.Straggler.Command, "sleep 310") {
			t.Errorf("told of %+v", e.Straggler)
		}
	}
}

// Stragglers end with the agent, and after a restart no process with one of their pids is asked about.
func TestStragglersEndWithTheAgent(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := openLeaving(t, dir)
	s, err := d.Create(t.Context(), session.New{Agent: "leaver", Cwd: d.work})
	if err != nil {
		t.Fatal(err)
	}
	d.stopped(s.ID, "leave", "sleep 311; true")
	e := d.straggler(s.ID, "sleep 311", true)
	d.close()
	if isAlive(e.Straggler.PID) {
		t.Error("the command has outlived Deskhand")
	}
	d = openLeaving(t, dir)
	if now := d.straggler(s.ID, "sleep 311", false).Straggler; now.EndedBy != "agent" || !strings.HasPrefix(now.Words(), "Ended with the agent: ") {
		t.Errorf("after the restart: got %+v", now)
	}
	if err := d.Stragglers().End(t.Context(), s.ID, e.ID); err != nil {
		t.Error(err)
	}
	d.sameAsRebuilt(s.ID)
}
