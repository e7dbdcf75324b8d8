//go:build !windows

package cli_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"deskhand/backend/feed"
	"deskhand/backend/lifecycle"
	"deskhand/backend/session"
	"deskhand/backend/testkit"
	"deskhand/backend/transcript"
)

func TestCommandOutlastsTurnsOfOthers(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	scripts := map[string]string{}
	for _, id := range []string{"a", "b"} {
		gate := filepath.Join(dir, id)
		if err := syscall.Mkfifo(gate, 0o600); err != nil {
			t.Fatal(err)
		}
		scripts[id] = gated(gate)
	}
	ownAgents(t, dir, scripts)
	begin := func(id string) *program {
		p := start(t, dir, "prompt", "--dir", work, "--agent", id, "go")
		if _, err := p.stdout.ReadByte(); err != nil {
			t.Fatalf("ReadByte: got error %v, stderr %s, want no error", err, p.stderr)
		}
		return p
	}
	open := func(id string) {
		if err := os.WriteFile(filepath.Join(dir, id), []byte("\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	a := begin("a")
	b := begin("b")
	open("a")
	if out, _ := a.stdout.ReadString('\n'); out != "egun\n" {
		t.Errorf("ReadString: got %q, want \"egun\\n\"", out)
	}
	open("b")
	for id, p := range map[string]*program{"a": a, "b": b} {
		if _, code := p.end(); code != 0 {
			t.Errorf("command %s: got exit %d\n%s\nwant 0", id, code, p.stderr)
		}
	}
}

// TestPsNamesProcessesThatCrashLeft: after a kill of Deskhand and its watchdog, ps lists the agent that survived, and the next start ends the agent.
func TestPsNamesProcessesThatCrashLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ownAgents(t, dir, map[string]string{"stays": "trap '' HUP TERM; while :; do /bin/sleep 1; done"})
	srv, _ := server(t, dir)
	onSocket(t, dir).post("/client/sessions", session.New{Agent: "stays", Cwd: dir}, nil)
	pid := 0
	for end := time.Now().Add(testkit.Limit); pid == 0; {
		for _, item := range listRunning(t, dir).Items {
			if item.Owner == "session" { // the watchdog may be listed before the agent
				pid = item.PID
			}
		}
		if time.Now().After(end) {
			t.Fatal("the agent does not start")
		}
	}
	t.Cleanup(func() { // ends the agent when the test fails
		if t.Failed() {
			_ = syscall.Kill(-pid, syscall.SIGKILL)
		}
	})
	for _, dog := range processes(t, srv.Process.Pid, "watchdog") {
		if err := syscall.Kill(dog, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	if err := srv.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = srv.end()
	out, stderr, code := run(t, dir, "ps")
	if code != 1 || out != "" || !strings.HasPrefix(stderr, "deskhand: no Deskhand runs on "+dir+". The last one has left these processes") ||
		!strings.Contains(stderr, "\n  "+strconv.Itoa(pid)+" sh, for ") {
		t.Errorf("deskhand ps after a crash: got exit %d, stdout %q, stderr %q; want 1 and process %d named", code, out, stderr, pid)
	}
	if _, err := os.Stat(filepath.Join(dir, "agents.ledger")); err != nil {
		t.Error("the ledger is needed for the next start: ", err)
	}
	server(t, dir)
	gone(t, pid)
}

// TestLineTypedBeforeIsNoAnswer: a line typed before a request is shown does not answer the request.
func TestLineTypedBeforeIsNoAnswer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server(t, dir)
	c := onSocket(t, dir)
	cmd := exec.CommandContext(t.Context(), testkit.Deskhand(t), "prompt", "--agent", "mock", "--dir", t.TempDir(), "permission")
	cmd.Env = append(os.Environ(), "DESKHAND_LOGIN_SHELL=off", "DESKHAND_CATALOGUE_URL=off", "DESKHAND_DATA_DIR="+dir, "PATH=/none")
	tty, err := pty.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	defer tty.Close()
	if _, err := io.WriteString(tty, "1\n"); err != nil {
		t.Fatal(err)
	}
	const dropped = "does not count"
	var screen strings.Builder
	buf, seen := make([]byte, 4096), 0
	for {
		n, err := tty.Read(buf)
		screen.Write(buf[:n])
		if err != nil {
			break
		}
		if now := strings.Count(screen.String(), dropped); now > seen {
			var page inbox
			if c.get("/client/inbox", &page); seen == 0 && len(page.Items) != 1 {
				t.Errorf(`get("/client/inbox"): got page.Items %+v, want not (seen == 0 && len(page.Items) != 1)`, page.Items)
			}
			seen = now
			_, _ = io.WriteString(tty, "1\n") // until the request has stood there for a moment
		}
	}
	if err := cmd.Wait(); err != nil || seen == 0 {
		t.Errorf("Wait: want no error and seen other than 0, got error %v\nscreen %s", err, &screen)
	}
}

// told is a shell command that sends a session/update.
func told(update string) string {
	return `echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":` + update + "}}'\n"
}

// floods is the beginning of an agent that says more than a pipe holds.
func floods(lines int) string {
	return `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
		read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
		read l; n=0; while [ $n -lt ` + strconv.Itoa(lines) + ` ]; do n=$((n+1))
		` + told(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"line '$n', which is one of many that fill a pipe\\n"}}`) + "done\n"
}

// TestPromptThatIsReadLate: nobody reads the output while more events happen than the feed keeps for slow readers.
func TestPromptThatIsReadLate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const lines, calls = 3_000, 700
	ownAgents(t, dir, map[string]string{"long": floods(lines) + `
		long=$(printf %016000d 0); n=0; while [ $n -lt ` + strconv.Itoa(calls) + ` ]; do n=$((n+1))
		` + told(`{"sessionUpdate":"tool_call","toolCallId":"t'$n'","title":"T","content":[{"type":"content","content":{"type":"text","text":"'$long'"}}]}`) + `done
		` + told(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"the end"}}`) + `
		echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'; read l`})
	p := start(t, dir, "prompt", "--dir", t.TempDir(), "--agent", "long", "go")
	if _, err := p.stdout.ReadByte(); err != nil {
		t.Fatalf("ReadByte: got error %v, stderr %s, want no error", err, p.stderr)
	}
	c := onSocket(t, dir)
	var begun, now feed.Batch
	c.get("/client/events", &begun)
	waitFor(t, func() bool {
		var list struct{ Items []session.Session }
		c.get("/client/sessions", &list)
		return len(list.Items) == 1 && list.Items[0].Turn == nil && list.Items[0].Phase == lifecycle.Ready
	})
	if c.get(fmt.Sprintf("/client/events?gen=%s&after=%d", begun.Gen, begun.Seq), &now); !now.Reset {
		t.Fatal("it was not too much: this shows nothing")
	}
	out, code := p.end()
	if code != 0 || strings.Count(out, "\n") < lines || !strings.Contains(out, fmt.Sprintf("line %d,", lines)) || strings.Count(out, "the end") != 1 {
		t.Errorf("deskhand prompt that is read late: got exit %d, %d lines, …%q\n%s\nwant 0 and all %d lines, the end once", code, strings.Count(out, "\n"), out[max(0, len(out)-200):], p.stderr, lines)
	}
}

// TestSignalsReachAPromptThatIsNotRead: Ctrl-C stops the turn and a second Ctrl-C ends the command, though nobody reads the output.
func TestSignalsReachAPromptThatIsNotRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ownAgents(t, dir, map[string]string{"long": floods(3_000) + `
		read l; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}'; read l`})
	server(t, dir)
	c := onSocket(t, dir)
	p := start(t, dir, "prompt", "--dir", t.TempDir(), "--agent", "long", "go")
	var s session.Session
	waitFor(t, func() bool {
		var list struct{ Items []session.Session }
		if c.get("/client/sessions", &list); len(list.Items) != 1 {
			return false
		}
		s = list.Items[0]
		var page session.Transcript
		c.get("/client/sessions/"+s.ID+"/entries", &page)
		return slices.ContainsFunc(page.Items, func(e transcript.Entry) bool { return strings.Contains(e.Text, "line 3000,") })
	})
	interrupt := func() {
		t.Helper()
		if err := p.Process.Signal(os.Interrupt); err != nil {
			t.Fatal(err)
		}
	}
	interrupt()
	waitFor(t, func() bool {
		var now session.Session
		c.get("/client/sessions/"+s.ID, &now)
		return now.Turn == nil
	})
	interrupt()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = p.Wait()
	}()
	select {
	case <-ended:
	case <-time.After(testkit.Limit):
		t.Fatal("it does not end")
	}
	if code := p.ProcessState.ExitCode(); code != 4 {
		t.Errorf("deskhand prompt that is not read, after a signal: got exit %d, stderr %s; want 4", code, p.stderr)
	}
}

// TestCommandThatFailsOutlastsTurnsOfOthers: a cancelled command waits for the turn of another command in its process.
func TestCommandThatFailsOutlastsTurnsOfOthers(t *testing.T) {
	dir, _ := wantLogin(t, "agent")
	gate := filepath.Join(dir, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	ownAgents(t, dir, map[string]string{"a": gated(gate)})
	login := start(t, dir, "login", "mock", "--method", "demo-never")
	login.says("Waiting for mock")
	turn := start(t, dir, "prompt", "--dir", t.TempDir(), "--agent", "a", "go")
	if _, err := turn.stdout.ReadByte(); err != nil {
		t.Fatalf("ReadByte: got error %v, turn.stderr %s, want no error", err, turn.stderr)
	}
	if err := login.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	login.says("A turn still runs here")
	if err := os.WriteFile(gate, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := turn.end(); code != 0 || out != "egun\n" {
		t.Errorf("turn of another: got exit %d, %q\n%s\nwant 0 and its text", code, out, turn.stderr)
	}
	if _, code := login.end(); code != 4 {
		t.Errorf("exit %d, want 4\n%s", code, login.stderr)
	}
}

// unread closes the pipe of a program that has begun to print, as a pager does when the person quits.
func (p *program) unread() {
	p.t.Helper()
	if _, err := p.stdout.ReadByte(); err != nil {
		p.t.Fatalf("ReadByte: got error %v, stderr %s, want no error", err, p.stderr)
	}
	if err := p.pipe.Close(); err != nil {
		p.t.Fatal(err)
	}
}

// TestCommandThatIsNotReadOutlastsTurnsOfOthers: quitting a pager ends the command that fills the pager, and no turn of another command in
// the same process.
func TestCommandThatIsNotReadOutlastsTurnsOfOthers(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	gate := filepath.Join(dir, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	ownAgents(t, dir, map[string]string{"a": gated(gate), "long": floods(2_500) + `echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'; read l`})
	if _, stderr, code := run(t, dir, "prompt", "--dir", work, "--agent", "long", "go"); code != 0 {
		t.Fatal(code, stderr)
	}
	pager := start(t, dir, "sessions", "show", "last")
	if _, err := pager.stdout.Peek(1); err != nil {
		t.Fatalf("Peek: got error %v, pager.stderr %s, want no error", err, pager.stderr)
	}
	turn := start(t, dir, "prompt", "--dir", work, "--agent", "a", "go")
	if _, err := turn.stdout.ReadByte(); err != nil {
		t.Fatalf("ReadByte: got error %v, turn.stderr %s, want no error", err, turn.stderr)
	}
	pager.unread()
	pager.says("A turn still runs here")
	if err := os.WriteFile(gate, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := turn.end(); code != 0 || out != "egun\n" {
		t.Errorf("turn of another: got exit %d, %q\n%s\nwant 0 and its text", code, out, turn.stderr)
	}
	if _, code := pager.end(); code != 141 || strings.Contains(pager.stderr.String(), "pipe") {
		t.Errorf("command that is not read: got exit %d\n%s\nwant 141, and no word of a pipe", code, pager.stderr)
	}
}

// TestPromptThatIsNotReadToItsEnd: a turn whose output nobody reads is cancelled, and the agent is told and not killed. A child of the agent
// still dies of a closed pipe, as programs do.
func TestPromptThatIsNotReadToItsEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	heard := filepath.Join(dir, "heard")
	gate := filepath.Join(dir, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	// The agent says one word after the pipe is closed: an agent that floods the pipe would read the cancel too late, and be ended meanwhile.
	ownAgents(t, dir, map[string]string{"long": floods(1) + "read open <" + gate + "\n" + told(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"more\\n"}}`) + `
		read l; echo "$l" >` + heard + `
		if /bin/sh -c 'kill -PIPE $$'; then echo "it is ignored" >>` + heard + `; fi
		echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}'; read l`})
	p := start(t, dir, "prompt", "--dir", t.TempDir(), "--agent", "long", "go")
	p.unread()
	if err := os.WriteFile(gate, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, code := p.end(); code != 141 || strings.Contains(p.stderr.String(), "deskhand: ") {
		t.Errorf("deskhand prompt that is not read to its end: got exit %d\n%s\nwant 141, and no error told", code, p.stderr)
	}
	if text, err := os.ReadFile(heard); err != nil || !strings.Contains(string(text), "session/cancel") || strings.Contains(string(text), "ignored") {
		t.Errorf("ReadFile: want no error, text with \"session/cancel\" and text without \"ignored\", got error %v\ntext %s", err, text)
	}
}

// TestHelpThatIsNotRead: people often cut the help off with head.
func TestHelpThatIsNotRead(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	defer w.Close()
	var said strings.Builder
	cmd := exec.CommandContext(t.Context(), testkit.Deskhand(t), "--help")
	cmd.Stdout, cmd.Stderr = w, &said
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 141 || said.Len() > 0 {
		t.Errorf("deskhand --help that is not read: got exit %d, %q; want 141 and nothing said", code, said.String())
	}
}

// TestTextOfAgentDoesNotActOnTerminal: no command passes an agent's control characters on to a terminal. A pipe gets an export unchanged.
func TestTextOfAgentDoesNotActOnTerminal(t *testing.T) {
	t.Parallel()
	dir, work := t.TempDir(), t.TempDir()
	const clipboard = `\u001b]52;c;eA==\u0007 \u009b2J \u202e`
	ownAgents(t, dir, map[string]string{
		"rude": `say() { printf '%s\n' "$1"; }
			read l; say '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"authMethods":[{"id":"a","name":"A ` + clipboard + `"},{"id":"b","name":"B"}]}}'
			read l; say '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
			read l; say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"said ` + clipboard + `"}}}}'
			say '{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"why ` + clipboard + `"}}'; read l`,
		"dies": `printf 'dead \033]52;c;eA==\007\r\nof it\n' >&2; exit 7`,
	})
	for _, tc := range []struct{ has, args string }{ // the first command begins the conversation
		{"Agent rude needs a login: why", "prompt --agent rude --dir " + work + " go"},
		{"said [U+001B]]52", "sessions show last"},
		{"said [U+001B]]52", "sessions export last -o -"},
		{`\u009b2J`, "sessions export last -o - --format json"},
		{"[U+009B]2J", "login rude --method c"},
		{"dead [U+001B]]52;c;eA==[U+0007]\r\n", "doctor dies"}, // the terminal's own line end
		{"[U+001B]]52", "prompt --agent dies --dir " + work + " go"},
	} {
		screen, _ := atTerminal(t, dir, "> ", "", strings.Fields(tc.args)...)
		if strings.ContainsAny(screen, "\x1b\a\u009b\u202e") || !strings.Contains(screen, tc.has) {
			t.Errorf("%s: atTerminal(\"> \", \"\"): got screen %q, want not strings.ContainsAny(screen, \"\\x1b\\a\\u009b\\u202e\") and screen with %v", tc.args, screen, tc.has)
		}
	}
	if _, stderr, code := run(t, dir, "prompt", "--agent", "rude", "--dir", work, "go"); code != 6 || !strings.Contains(stderr, "Agent rude needs a login: why") || strings.ContainsAny(stderr, "\x1b\a\u009b\u202e") {
		t.Errorf("deskhand prompt: got exit %d, stderr %q; want 6 and the reason, harmless", code, stderr)
	}
	if out, _, _ := run(t, dir, "sessions", "export", "last", "-o", "-"); !strings.Contains(out, "said \x1b]52;c;eA==\a \u009b2J") {
		t.Errorf("deskhand sessions export last -o -: got %q, want with \"said \\x1b]52;c;eA==\\a \\u009b2J\"", out)
	}
}

// gated is an agent that says "begun", and goes on when its gate is opened.
func gated(gate string) string {
	return `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
		read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
		read l; echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"begun"}}}}'
		read open <` + gate + `; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'; cat >/dev/null`
}
