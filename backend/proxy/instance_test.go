package proxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/testkit"
)

// agentCommand starts this test binary as the fake agent.
func agentCommand() Command {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	env := []string{roleVariable + "=agent", "GORACE=atexit_sleep_ms=0"} // without the option, a race build sleeps a second at exit
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, roleVariable+"=") {
			env = append(env, kv)
		}
	}
	return Command{Path: self, Env: env}
}

func openSet(t *testing.T, c Config) *Set {
	t.Helper()
	s, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error("close:", err)
		}
	})
	return s
}

// startAgent starts a fake agent in a Set of its own.
func startAgent(t *testing.T, c Config) *Instance {
	t.Helper()
	i, err := openSet(t, c).Start(t.Context(), "a", "fake", agentCommand())
	if err != nil {
		t.Fatal(err)
	}
	return i
}

func send(t *testing.T, i *Instance, method string) {
	t.Helper()
	if err := i.Send(t.Context(), fmt.Appendf(nil, `{"method":%q}`, method)); err != nil {
		t.Fatalf("Send(%s): got error %v, want none", method, err)
	}
}

func call(t *testing.T, i *Instance, msg string) *Call {
	t.Helper()
	e, err := acp.Peek([]byte(msg))
	if err != nil {
		t.Fatal(err)
	}
	c, err := i.Call(e)
	if err != nil {
		t.Fatalf("Call(%s): got error %v, want none", msg, err)
	}
	return c
}

// outcome returns the outcome of a call, which must come soon.
func outcome(t *testing.T, c *Call) (string, error) {
	t.Helper()
	if !await(c.Done(), 20*time.Second) {
		t.Fatal("no outcome")
	}
	answer, err := c.Outcome()
	return string(answer), err
}

// trace reads a log message by message.
type trace struct {
	*Reader
	held []Message
}

func traceOf(t *testing.T, i *Instance) *trace {
	t.Helper()
	r := &trace{Reader: i.After(0)}
	t.Cleanup(r.Close)
	return r
}

// follow reads until a message has the method.
func follow(t *testing.T, r *trace, method string) json.RawMessage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit)
	defer cancel()
	for {
		var err error
		if len(r.held) == 0 {
			if r.held, err = r.Next(ctx); err != nil {
				t.Fatalf("waiting for %s: got error %v, want the message", method, err)
			}
		}
		var msg struct {
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		err = json.Unmarshal(r.held[0].Data, &msg)
		r.held = r.held[1:]
		if err == nil && msg.Method == method {
			return msg.Params
		}
	}
}

func exited(t *testing.T, i *Instance) Status {
	t.Helper()
	if !await(i.Exited(), 20*time.Second) {
		t.Fatal("the instance has not exited")
	}
	return i.Status()
}

func killHard(pid int) error {
	p, err := os.FindProcess(pid)
	if err != nil {
		return err
	}
	return errors.Join(p.Kill(), p.Release())
}

func TestMessagesPassUnchanged(t *testing.T) {
	i := startAgent(t, Config{})
	r := i.After(0)
	defer r.Close()
	answer, err := outcome(t, call(t, i, "{ \"id\" : 1.0 ,\r\n \"method\":\"m\", \"params\":[1.00, 1E5,\t\"\\u0041  \\/\"] }"))
	if err != nil || answer != `{"jsonrpc":"2.0","id":1.0,"result":{"id":1.0,"method":"m","params":[1.00,1E5,"\u0041  \/"]}}` {
		t.Errorf("answer: got %s, error %v, want the request unchanged", answer, err)
	}
	batch, err := r.Next(t.Context())
	if err != nil || len(batch) != 1 || string(batch[0].Data) != answer || batch[0].Seq != 1 {
		t.Errorf("log: got %v, error %v, want the answer as number 1", batch, err)
	}
}

func TestInvalidLinesAreOnLog(t *testing.T) {
	i := startAgent(t, Config{})
	for _, text := range []string{"junk\\u0001", "{\\u00ff", "[1,2]", " ", "{\"a\":\r1}\r"} {
		body, _ := json.Marshal("print:" + strings.NewReplacer("\\u0001", "\x01", "\\u00ff", "\u00ff").Replace(text) + "\n")
		if err := i.Send(t.Context(), fmt.Appendf(nil, `{"method":%s}`, body)); err != nil {
			t.Fatal(err)
		}
	}
	send(t, i, "print:"+`{"method":"end"}`+"\n")
	r := traceOf(t, i)
	follow(t, r, "end")
	r2 := i.After(0)
	defer r2.Close()
	batch, _ := r2.Next(t.Context())
	want := []string{
		`{"jsonrpc":"2.0","method":"_adapter/invalid_stdout","params":{"error":"not JSON: no value at byte 0","raw":"junk\u0001"}}`,
		`{"jsonrpc":"2.0","method":"_adapter/invalid_stdout","params":{"error":"not JSON: no key at byte 1","raw":"{ÿ"}}`,
		`[1,2]`, "{\"a\":\r1}", `{"method":"end"}`,
	}
	for n, m := range batch {
		if string(m.Data) != want[n] {
			t.Errorf("message %d is %s, want %s", n, m.Data, want[n])
		}
	}
}

func TestHalfLineBeforeExitIsRead(t *testing.T) {
	for last, want := range map[string]string{
		`{"method":"whole"}`: "whole",
		`{"method":"ha`:      "_adapter/invalid_stdout",
	} {
		i := startAgent(t, Config{})
		send(t, i, "print:"+last)
		send(t, i, "exit:3")
		r := traceOf(t, i)
		follow(t, r, want)
		var end struct {
			Success    bool
			Code       *int
			StderrTail string
		}
		if err := json.Unmarshal(follow(t, r, "_adapter/agent_exited"), &end); err != nil || end.Success || *end.Code != 3 || end.StderrTail != "leaving\n" {
			t.Errorf("exit message: got %+v, error %v, want code 3 and the tail", end, err)
		}
	}
}

func TestCallRefusesDuplicateID(t *testing.T) {
	i := startAgent(t, Config{})
	waiting := call(t, i, `{"id":1,"method":"mute"}`)
	for _, id := range []string{"1", "1.0", "1e0"} {
		e, _ := acp.Peek([]byte(`{"method":"m","id":` + id + `}`))
		if _, err := i.Call(e); !errors.Is(err, ErrDuplicateID) {
			t.Errorf("Call with the id %s in flight: got error %v, want ErrDuplicateID", id, err)
		}
	}
	if _, err := outcome(t, call(t, i, `{"id":"1","method":"m"}`)); err != nil {
		t.Error(err)
	}
	send(t, i, "print:"+`{"id":1.0,"result":true}`+"\n")
	if answer, err := outcome(t, waiting); err != nil || answer != `{"id":1.0,"result":true}` {
		t.Errorf("answer: got %s, error %v, want the printed response", answer, err)
	}
	if _, err := outcome(t, call(t, i, `{"id":1,"method":"m"}`)); err != nil { // the id is free again
		t.Error(err)
	}
}

// JavaScript's JSON drops an undefined result. The rest still names the request, and is its answer; an error without an id names none.
func TestAnswerWithoutResultEndsCall(t *testing.T) {
	i := startAgent(t, Config{})
	waiting := call(t, i, `{"id":"a","method":"mute"}`)
	r := traceOf(t, i)
	for _, line := range []string{
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}`, `{"id":"a","method":"asks"}`, `{"id":"b"}`, `["a"]`, `{"id":["a"]}`, `{"method":"said"}`,
	} {
		send(t, i, "print:"+line+"\n")
	}
	follow(t, r, "said")
	if isClosed(waiting.Done()) {
		t.Error("answered by something else")
	}
	send(t, i, `print:{"jsonrpc":"2.0","id":"a"}`+"\n")
	if answer, err := outcome(t, waiting); err != nil || answer != `{"jsonrpc":"2.0","id":"a"}` {
		t.Errorf("answer without a result: got %s, error %v, want the printed message", answer, err)
	}
}

func TestExitFailsWaitingCalls(t *testing.T) {
	i := startAgent(t, Config{})
	r := traceOf(t, i)
	var calls []*Call
	for n := range 50 {
		calls = append(calls, call(t, i, fmt.Sprintf(`{"id":%d,"method":"mute"}`, n)))
	}
	answered := call(t, i, `{"id":"last","method":"m"}`) // its answer is in the pipe when the process ends
	send(t, i, "stderr:"+strings.Repeat("é", 5000)+"\nlast words\n")
	send(t, i, "exit:7")
	for n, c := range calls {
		_, err := outcome(t, c)
		if n == 0 { // the stream delivers a message before its call is done
			reader := i.After(i.log.last() - 1)
			if batch, _, _ := reader.Poll(); len(batch) != 1 || !bytes.Contains(batch[0].Data, []byte("_adapter/agent_exited")) {
				t.Errorf("end of the log: got %d messages, want the exit message", len(batch))
			}
			reader.Close()
		}
		exit, ok := errors.AsType[*ExitError](err)
		if !ok || exit.Status.ExitCode == nil || *exit.Status.ExitCode != 7 {
			t.Fatalf("outcome: got error %v, want an ExitError with code 7", err)
		}
		if tail := exit.Status.StderrTail; tail != "last words\nleaving\n" {
			t.Fatalf("tail: got %d bytes, %.80q, want the last words", len(tail), tail)
		}
	}
	if _, err := outcome(t, answered); err != nil {
		t.Errorf("outcome of the answered call: got error %v, want the answer", err)
	}
	exited(t, i)
	follow(t, r, "_adapter/agent_exited")
	if err := i.Send(t.Context(), []byte(`{"method":"m"}`)); !errors.Is(err, ErrExited) {
		t.Errorf("Send after the end: got error %v, want ErrExited", err)
	}
	e, _ := acp.Peek([]byte(`{"id":1,"method":"m"}`))
	if _, err := i.Call(e); !errors.Is(err, ErrExited) {
		t.Errorf("Call after the end: got error %v, want ErrExited", err)
	}
	if err := i.Interrupt(); !errors.Is(err, ErrExited) {
		t.Errorf("Interrupt after the end: got error %v, want ErrExited", err)
	}
}

func TestKillIsNoticedAtOnce(t *testing.T) {
	i := startAgent(t, Config{})
	r := traceOf(t, i)
	send(t, i, "spawn:session") // the process keeps stdout open
	follow(t, r, "spawned")
	waiting := call(t, i, `{"id":1,"method":"mute"}`)
	if err := killHard(i.Status().PID); err != nil {
		t.Fatal(err)
	}
	_, err := outcome(t, waiting) // within 20 s; the process that holds its stdout lives for an hour
	if exit, ok := errors.AsType[*ExitError](err); !ok || exit.Status.Signal != "SIGKILL" || exit.Status.ExitCode != nil {
		t.Errorf("outcome: got error %v, want an ExitError with SIGKILL", err)
	}
	if s := exited(t, i); s.Phase != Exited || s.Signal != "SIGKILL" {
		t.Errorf("status: got %+v, want exited by SIGKILL", s)
	}
}

// A reader that is slower than the agent gets everything, and so does a reader that leaves and returns.
func TestFloodLosesNothing(t *testing.T) {
	const messages = 60_000
	i := startAgent(t, Config{LogBytes: 256 << 10})
	var readers sync.WaitGroup
	for n := range 3 {
		r := i.After(0)
		readers.Go(func() {
			defer func() { r.Close() }()
			next := uint64(1)
			for next <= messages {
				batch, err := r.Next(context.Background())
				if err != nil {
					t.Errorf("reader %d at %d: got error %v, want the next messages", n, next, err)
					return
				}
				for _, m := range batch {
					if m.Seq != next || !bytes.Contains(m.Data, fmt.Appendf(nil, `{"n":%d,`, next)) {
						t.Errorf("reader %d got %d: %.80s; want %d", n, m.Seq, m.Data, next)
						return
					}
					next++
				}
				if n == 1 { // the slow reader
					await(nil, time.Millisecond)
				}
				if n == 2 {
					again := i.After(next - 1)
					r.Close()
					r = again
				}
			}
		})
	}
	send(t, i, fmt.Sprintf("flood:%d", messages))
	readers.Wait()
}

func TestExitIsNoticedWhileReaderLags(t *testing.T) {
	i := startAgent(t, Config{LogBytes: 64 << 10})
	r := i.After(0)
	defer r.Close()
	send(t, i, "flood:1000000")
	waiting := call(t, i, `{"id":1,"method":"m"}`)
	first, err := r.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := killHard(i.Status().PID); err != nil {
		t.Fatal(err)
	}
	if _, err := outcome(t, waiting); !errors.Is(err, ErrExited) {
		t.Errorf("outcome: got error %v, want ErrExited", err)
	}
	next := first[0].Seq + uint64(len(first))
	for {
		batch, err := r.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if batch[0].Seq != next {
			t.Fatalf("got %d, want %d", batch[0].Seq, next)
		}
		next += uint64(len(batch))
		if bytes.Contains(batch[len(batch)-1].Data, []byte("_adapter/agent_exited")) {
			return
		}
	}
}

// An agent that is ended in the middle of a flood still waits for its reader: no number is missing up to the end.
func TestEndLosesNothing(t *testing.T) {
	i := startAgent(t, Config{LogBytes: 64 << 10})
	r := i.After(0)
	defer r.Close()
	send(t, i, "flood:100000000")
	next := uint64(1)
	ended := make(chan error, 1)
	for over := false; !over; {
		batch, err := r.Next(t.Context())
		if err != nil {
			t.Fatalf("Next at %d: got error %v, want the next messages", next, err)
		}
		if next == 1 {
			go func() { ended <- i.End() }()
		}
		if batch[0].Seq != next {
			t.Fatalf("got %d, want %d", batch[0].Seq, next)
		}
		next += uint64(len(batch))
		over = bytes.Contains(batch[len(batch)-1].Data, []byte("_adapter/agent_exited"))
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestLargeMessagesArriveWhole(t *testing.T) {
	i := startAgent(t, Config{LogBytes: 1 << 20})
	r := i.After(0)
	defer r.Close()
	large := `{"id":1,"method":"m","params":"` + strings.Repeat("x", 20<<20) + `"}`
	answer, err := outcome(t, call(t, i, large))
	if err != nil || !strings.Contains(answer, large) {
		t.Fatalf("large answer: got %d bytes, error %v, want the request of %d bytes in it", len(answer), err, len(large))
	}
	batch, err := r.Next(t.Context())
	if err != nil || len(batch[0].Data) != len(answer) {
		t.Fatal(err)
	}
}

func TestBacklogOfAgentThatDoesNotRead(t *testing.T) {
	i := startAgent(t, Config{})
	i.stdin.limit = 1 << 20
	send(t, i, "wait")
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := i.Send(ctx, []byte(`{"method":"`+strings.Repeat("x", 2<<20)+`"}`)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("first Send: got error %v, want context.DeadlineExceeded", err) // a single message of any size is accepted
	}
	if _, err := outcome(t, call(t, i, `{"id":1,"method":"m"}`)); !errors.Is(err, ErrBacklog) {
		t.Errorf("second Call: got error %v, want ErrBacklog", err)
	}
	if err := i.Close(); err != nil {
		t.Error(err)
	}
}

// An agent that closes its stdin and lives on answers no request, and its callers do not wait for an answer.
func TestSendReportsClosedStdin(t *testing.T) {
	i := startAgent(t, Config{})
	r := traceOf(t, i)
	send(t, i, "deaf")
	follow(t, r, "ready")
	if err := i.Send(t.Context(), []byte(`{"method":"m"}`)); !errors.Is(err, ErrInput) || errors.Is(err, ErrExited) {
		t.Errorf("Send: got error %v, want ErrInput", err)
	}
	if _, err := outcome(t, call(t, i, `{"id":1,"method":"m"}`)); !errors.Is(err, ErrInput) {
		t.Errorf("Call: got error %v, want ErrInput", err)
	}
}

func TestStartReportsSpawnFailures(t *testing.T) {
	s := openSet(t, Config{})
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		cmd  Command
		want string
	}{
		"missing program":   {Command{Path: filepath.Join(t.TempDir(), "none")}, "no such file"},
		"no permission":     {Command{Path: file}, "permission denied"},
		"missing directory": {Command{Path: agentCommand().Path, Dir: filepath.Join(t.TempDir(), "none")}, "directory cannot be used"},
		"file as directory": {Command{Path: agentCommand().Path, Dir: file}, "not a directory"},
	} {
		_, err := s.Start(t.Context(), "a", "fake", c.cmd)
		if !errors.Is(err, ErrSpawn) || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("Start with %s: got error %v, want ErrSpawn with %q", name, err, c.want)
		}
	}
	if list := s.List(); len(list) != 0 {
		t.Errorf("List after the failures: got %+v, want none", list)
	}
}

func TestSendRefusesInvalidJSON(t *testing.T) {
	i := startAgent(t, Config{})
	for _, msg := range []string{"", "{", "{\"a\":\"\n\"}", "{} {}"} {
		if err := i.Send(t.Context(), []byte(msg)); !errors.Is(err, ErrMessage) {
			t.Errorf("Send(%q): got error %v, want ErrMessage", msg, err)
		}
	}
}
