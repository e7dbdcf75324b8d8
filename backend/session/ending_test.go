package session_test

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"deskhand/backend/lifecycle"
	"deskhand/backend/proxy"
	"deskhand/backend/proxy/proxytest"
	"deskhand/backend/session"
)

// inMemory is an agent in memory that opens a session; it calls prompted at a prompt, and last at the end of its input.
func inMemory(prompted func(id json.RawMessage, lines *bufio.Scanner, out io.Writer), last func(out io.Writer)) proxytest.Agent {
	return func(in io.Reader, out, _ io.Writer) int {
		lines := bufio.NewScanner(in)
		for lines.Scan() {
			var m struct {
				ID     json.RawMessage
				Method string
			}
			_ = json.Unmarshal(lines.Bytes(), &m)
			switch m.Method {
			case "initialize":
				_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":1}}`+"\n", m.ID)
			case "session/new":
				_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"sessionId":"s"}}`+"\n", m.ID)
			case "session/prompt":
				prompted(m.ID, lines, out)
			}
		}
		last(out)
		return 0
	}
}

const wording = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}}}` + "\n"

func says(out io.Writer, text string) { _, _ = fmt.Fprintf(out, wording, text) }

const parts, logOfParts = 2000, 16 << 10

// deafAndLong ignores a cancel, and writes more at its end than its log holds.
func deafAndLong() proxytest.Agent {
	return inMemory(func(json.RawMessage, *bufio.Scanner, io.Writer) {}, func(out io.Writer) {
		for n := range parts {
			says(out, strconv.Itoa(n)+" ")
		}
	})
}

// working begins a turn, and returns its session.
func (d *desk) working() string {
	d.t.Helper()
	s := d.create()
	d.until("ready", func() bool { return d.get(s.ID).Phase == lifecycle.Ready })
	d.prompt(s.ID, "go")
	d.until("work", func() bool { return d.get(s.ID).Phase == lifecycle.Working })
	return s.ID
}

// The end of an agent that ignores a cancel loses none of the agent's messages.
func TestEndedAgentLosesNoFrames(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := openWith(t, dir, proxy.Config{LogBytes: logOfParts, Spawn: proxytest.Spawn(deafAndLong())})
		id := d.working()
		if err := d.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		tr := d.idle(id)
		var want strings.Builder
		for n := range parts {
			want.WriteString(strconv.Itoa(n) + " ")
		}
		if got := textOf(tr, "agent"); got != want.String()+"\n" {
			t.Errorf("of %d bytes %d came: %.60s", want.Len(), len(got), got)
		}
		for _, e := range tr.Items {
			if e.Kind == "divider" && e.Divider.Code == "messages.missing" {
				t.Error("something is said to be missing")
			}
		}
		d.sameAsRebuilt(id)
		d.close()
	})
}

// endless ignores a cancel, and writes from the end of its input until it is killed. The log of endless is full then, and holds up the
// agent; written counts the words that it could write.
func endless(written *atomic.Int64) proxytest.Agent {
	return inMemory(func(json.RawMessage, *bufio.Scanner, io.Writer) {}, func(out io.Writer) {
		for n := 0; ; n++ {
			if _, err := fmt.Fprintf(out, wording, strconv.Itoa(n)+" "); err != nil {
				return
			}
			written.Store(int64(n + 1))
			time.Sleep(100 * time.Microsecond)
		}
	})
}

// allSaid reports whether the transcript holds all words that the agent could write.
func (d *desk) allSaid(tr session.Transcript, written int64) {
	d.t.Helper()
	words := strings.Fields(textOf(tr, "agent"))
	if int64(len(words)) < written || written < 10 {
		d.t.Errorf("of %d words %d came", written, len(words))
	}
	for n, word := range words {
		if word != strconv.Itoa(n) {
			d.t.Fatalf("word %d is %q", n, word)
		}
	}
}

// The messages of an agent that only SIGKILL ends are read to the end, with the agent's exit, and in time.
func TestKilledAgentLosesNoFrames(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var written atomic.Int64
		d := openAs(t, dir, proxy.Config{LogBytes: 1 << 10, Spawn: proxytest.Spawn(endless(&written))}, session.Config{Patience: session.Patience})
		id := d.working()
		begun := time.Now()
		if err := d.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		tr := d.idle(id)
		if took := time.Since(begun); took >= 10*time.Second {
			t.Errorf("cancel took %v, want less than 10s", took)
		}
		d.allSaid(tr, written.Load())
		if exit := d.get(id).Exit; exit == nil || exit.Signal != "SIGKILL" {
			t.Errorf("exit: got %+v, want SIGKILL", exit)
		}
		if got := dividers(tr); got != "turn.interrupt_sent turn.killed agent.exited" {
			t.Error(got)
		}
		d.sameAsRebuilt(id)
		d.close()
	})
}

// undying is a process that SIGKILL does not end for a while, like one that waits for a broken device: for longer than a turn may take to end,
// but no longer, because an agent that writes all the while is read all the while.
type undying struct{ proxy.Process }

func (p undying) Kill(patience time.Duration) error {
	time.AfterFunc(15*time.Second, func() { _ = p.Process.Kill(patience) })
	time.Sleep(patience)
	return errors.New("it is still there")
}

// Messages that are not read when the turn must be over are told as missing.
func TestUnreadFramesOfEndedAgentAreToldAsMissing(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var written atomic.Int64
		spawn := proxytest.Spawn(endless(&written))
		d := openAs(t, dir, proxy.Config{LogBytes: 1 << 10, Spawn: func(c proxy.Command) (proxy.Process, error) {
			p, err := spawn(c)
			return undying{p}, err
		}}, session.Config{Patience: session.Patience})
		told := false
		for range 6 { // all messages may have been read at the moment of the end
			id := d.working()
			begun := time.Now()
			if err := d.Cancel(t.Context(), id); err != nil {
				t.Fatal(err)
			}
			tr := d.idle(id)
			if took := time.Since(begun); took >= 10*time.Second {
				t.Errorf("it took %v", took)
			}
			told = told || dividers(tr) == "turn.interrupt_sent turn.killed messages.missing agent.exited"
			d.sameAsRebuilt(id)
			if told {
				break
			}
		}
		if !told {
			t.Error("nothing is said to be missing")
		}
		time.Sleep(2 * time.Minute)
		d.close()
	})
}

// An agent that is killed late, after the machine stood still, has lastGrace from the kill on, and loses no message.
func TestAgentEndedLateLosesNoFrames(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := openAs(t, dir, proxy.Config{LogBytes: logOfParts, Spawn: proxytest.Spawn(deafAndLong())}, session.Config{Patience: 6 * time.Second})
		id := d.working()
		if err := d.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		tr := d.idle(id)
		d.allSaid(tr, parts)
		if exit := d.get(id).Exit; exit == nil || exit.Code == nil || *exit.Code != 0 {
			t.Errorf("exit: got %+v, want code 0", exit)
		}
		d.close()
	})
}

// A disk that is full from the kill on loses no message of the agent.
func TestAgentEndedOnFullDiskLosesNoFrames(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var written atomic.Int64
		d := openWith(t, dir, proxy.Config{LogBytes: 1 << 10, Spawn: proxytest.Spawn(endless(&written))})
		id := d.working()
		if err := d.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		time.Sleep(700 * time.Millisecond) // the agent was killed, and has begun to write
		full, works, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
		go func() {
			ended <- d.db.Write(t.Context(), func(*sql.Tx) error {
				close(full)
				<-works
				return nil
			})
		}()
		<-full
		time.Sleep(time.Hour)
		close(works)
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		tr := d.idle(id)
		d.allSaid(tr, written.Load())
		if got := dividers(tr); got != "turn.interrupt_sent turn.killed agent.exited" {
			t.Error(got)
		}
		d.close()
	})
}

// When the instance is removed under the conversation, the loss is told at its position: the texts on both sides are not joined.
func TestLostFramesOfAgentAreTold(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		d := openWith(t, dir, proxy.Config{LogBytes: logOfParts, Spawn: proxytest.Spawn(deafAndLong())})
		id := d.working()
		if err := d.set.Remove(id + ".1"); err != nil {
			t.Fatal(err)
		}
		tr := d.idle(id)
		next, missing, told := 0, 0, false
		for _, e := range tr.Items {
			if e.Kind == "divider" && e.Divider.Code == "messages.missing" {
				missing++
				told = true
			}
			if e.Kind != "agent" {
				continue
			}
			for word := range strings.FieldsSeq(e.Text) {
				n, err := strconv.Atoi(word)
				if err != nil {
					t.Fatal(err)
				}
				if n != next && !told {
					t.Fatalf("%d follows on %d, and nothing is told", n, next-1)
				}
				next, told = n+1, false
			}
		}
		if missing == 0 || next != parts {
			t.Errorf("%d times something is missing, and the last that came is %d", missing, next-1)
		}
		d.sameAsRebuilt(id)
		d.close()
	})
}

// Work of an agent without a turn is one entry over all turns that come and go, and ends with the agent.
func TestBackgroundWorkEndsWithAgent(t *testing.T) {
	t.Parallel()
	tell := func(out io.Writer, update string) {
		_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":%s}}`+"\n", update)
	}
	d := openWith(t, t.TempDir(), proxy.Config{Spawn: func(c proxy.Command) (proxy.Process, error) {
		turns := 0
		return proxytest.Spawn(inMemory(func(id json.RawMessage, _ *bufio.Scanner, out io.Writer) {
			if turns++; turns == 2 {
				tell(out, `{"sessionUpdate":"tool_call_update","toolCallId":"one","status":"completed"}`)
			}
			_, _ = fmt.Fprintf(out, `{"jsonrpc":"2.0","id":%s,"result":{"stopReason":"end_turn"}}`+"\n", id)
			if turns == 1 {
				tell(out, `{"sessionUpdate":"tool_call","toolCallId":"one","title":"Build","status":"in_progress"}`)
				tell(out, `{"sessionUpdate":"tool_call","toolCallId":"two","title":"Watch","status":"in_progress"}`)
			}
		}, func(io.Writer) {}))(c)
	}})
	s := d.create()
	states := func() (list []string) {
		for _, e := range d.transcript(s.ID).Items {
			if e.Tool != nil {
				list = append(list, e.Tool.Title+" "+e.Tool.Status)
			}
		}
		return list
	}
	is := func(want ...string) {
		t.Helper()
		d.until(strings.Join(want, ", "), func() bool { return slices.Equal(states(), want) && d.get(s.ID).Phase == lifecycle.Ready })
		d.sameAsRebuilt(s.ID)
	}
	d.prompt(s.ID, "go")
	is("Build in_progress", "Watch in_progress")
	d.prompt(s.ID, "go on")
	d.idle(s.ID)
	is("Build completed", "Watch in_progress")
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	is("Build completed", "Watch cancelled")
}
