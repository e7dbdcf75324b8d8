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

	"deskhand/backend/session"
)

func TestACommandOutlastsTheTurnsOfOthers(t *testing.T) {
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
			t.Fatalf("%v %s", err, p.stderr)
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
		t.Errorf("%q", out)
	}
	open("b")
	for id, p := range map[string]*program{"a": a, "b": b} {
		if _, code := p.end(); code != 0 {
			t.Errorf("%s: exit %d\n%s", id, code, p.stderr)
		}
	}
}

// Deskhand and its watchdog are killed, and an agent does not mind: ps names it, and the next start ends it.
func TestPsNamesWhatACrashLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	ownAgents(t, dir, map[string]string{"stays": "trap '' HUP TERM; while :; do /bin/sleep 1; done"})
	srv, _ := server(t, dir)
	onSocket(t, dir).post("/client/sessions", session.New{Agent: "stays", Cwd: dir}, nil)
	pid := 0
	for end := time.Now().Add(20 * time.Second); pid == 0; {
		for _, item := range listRunning(t, dir).Items {
			if item.Owner == "session" { // the watchdog may be there before the agent
				pid = item.PID
			}
		}
		if time.Now().After(end) {
			t.Fatal("the agent does not start")
		}
	}
	t.Cleanup(func() { // should the test fail, nobody else ends it
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
		t.Errorf("exit %d, %q, %q", code, out, stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "agents.ledger")); err != nil {
		t.Error("the ledger is needed for the next start: ", err)
	}
	server(t, dir)
	gone(t, pid)
}

// What a person types while nothing is asked answers nothing that is asked later.
func TestALineTypedBeforeIsNoAnswer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server(t, dir)
	c := onSocket(t, dir)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "prompt", "--agent", "mock", "--dir", t.TempDir(), "permission")
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
				t.Errorf("%+v", page.Items)
			}
			seen = now
			_, _ = io.WriteString(tty, "1\n") // until it has stood there for a moment
		}
	}
	if err := cmd.Wait(); err != nil || seen == 0 {
		t.Errorf("%v\n%s", err, &screen)
	}
}

// told is a line for the shell that tells an update of the session.
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

// Nobody reads what is printed while more happens than is kept for those who are behind.
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
		t.Fatalf("%v %s", err, p.stderr)
	}
	c := onSocket(t, dir)
	var begun, now session.Batch
	c.get("/client/events", &begun)
	waitFor(t, func() bool {
		var list struct{ Items []session.Session }
		c.get("/client/sessions", &list)
		return len(list.Items) == 1 && list.Items[0].Turn == nil && list.Items[0].Phase == session.Ready
	})
	if c.get(fmt.Sprintf("/client/events?gen=%s&after=%d", begun.Gen, begun.Seq), &now); !now.Reset {
		t.Fatal("it was not too much: this shows nothing")
	}
	out, code := p.end()
	if code != 0 || strings.Count(out, "\n") < lines || !strings.Contains(out, fmt.Sprintf("line %d,", lines)) || strings.Count(out, "the end") != 1 {
		t.Errorf("exit %d, %d lines, %q\n%s", code, strings.Count(out, "\n"), out[max(0, len(out)-200):], p.stderr)
	}
}

// Ctrl-C reaches the turn, and a second one the command, though nobody reads what it prints.
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
		return slices.ContainsFunc(page.Items, func(e session.Entry) bool { return strings.Contains(e.Text, "line 3000,") })
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
	case <-time.After(time.Minute):
		t.Fatal("it does not end")
	}
	if code := p.ProcessState.ExitCode(); code != 4 {
		t.Errorf("exit %d: %s", code, p.stderr)
	}
}

// A command that is given up does not take with it the turn of another that came to its process.
func TestACommandThatFailsOutlastsTheTurnsOfOthers(t *testing.T) {
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
		t.Fatalf("%v %s", err, turn.stderr)
	}
	if err := login.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	login.says("A turn still runs here")
	if err := os.WriteFile(gate, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := turn.end(); code != 0 || out != "egun\n" {
		t.Errorf("exit %d, %q\n%s", code, out, turn.stderr)
	}
	if _, code := login.end(); code != 4 {
		t.Errorf("exit %d, want 4\n%s", code, login.stderr)
	}
}

// unread closes the pipe of a program that has begun to print, as a pager does that is quit.
func (p *program) unread() {
	p.t.Helper()
	if _, err := p.stdout.ReadByte(); err != nil {
		p.t.Fatalf("%v %s", err, p.stderr)
	}
	if err := p.pipe.Close(); err != nil {
		p.t.Fatal(err)
	}
}

// A pager that is quit ends what fills it, and no turn of another command that came to the same process.
func TestACommandThatIsNotReadOutlastsTheTurnsOfOthers(t *testing.T) {
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
		t.Fatalf("%v %s", err, pager.stderr)
	}
	turn := start(t, dir, "prompt", "--dir", work, "--agent", "a", "go")
	if _, err := turn.stdout.ReadByte(); err != nil {
		t.Fatalf("%v %s", err, turn.stderr)
	}
	pager.unread()
	pager.says("A turn still runs here")
	if err := os.WriteFile(gate, []byte("\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, code := turn.end(); code != 0 || out != "egun\n" {
		t.Errorf("exit %d, %q\n%s", code, out, turn.stderr)
	}
	if _, code := pager.end(); code != 141 || strings.Contains(pager.stderr.String(), "pipe") {
		t.Errorf("exit %d\n%s", code, pager.stderr)
	}
}

// A turn whose words nobody reads any more is stopped, and the agent is told so; it is not killed. What it starts dies of a closed pipe as
// programs do.
func TestPromptThatIsNotReadToItsEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	heard := filepath.Join(dir, "heard")
	gate := filepath.Join(dir, "gate")
	if err := syscall.Mkfifo(gate, 0o600); err != nil {
		t.Fatal(err)
	}
	// One word after the pipe is closed: an agent that floods it hears of that late, and is ended in between.
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
		t.Errorf("exit %d\n%s", code, p.stderr)
	}
	if text, err := os.ReadFile(heard); err != nil || !strings.Contains(string(text), "session/cancel") || strings.Contains(string(text), "ignored") {
		t.Errorf("%v\n%s", err, text)
	}
}

// The help is cut off by head as often as anything.
func TestHelpThatIsNotRead(t *testing.T) {
	t.Parallel()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	_ = r.Close()
	defer w.Close()
	var said strings.Builder
	cmd := exec.CommandContext(t.Context(), os.Args[0], "--help")
	cmd.Stdout, cmd.Stderr = w, &said
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != 141 || said.Len() > 0 {
		t.Errorf("exit %d, %q", code, said.String())
	}
}

// What an agent says acts on no terminal, wherever a command repeats it; a pipe gets what was exported as it is.
func TestNothingOfAnAgentsActsOnTheTerminal(t *testing.T) {
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
	for _, tc := range []struct{ has, args string }{ // the first begins the conversation
		{"Agent rude needs a login: why", "prompt --agent rude --dir " + work + " go"},
		{"said [U+001B]]52", "sessions show last"},
		{"said [U+001B]]52", "sessions export last -o -"},
		{`\u009b2J`, "sessions export last -o - --format json"},
		{"[U+009B]2J", "login rude --method c"},
		{"dead [U+001B]]52;c;eA==[U+0007]\r\n", "doctor dies"}, // the terminal's own end of a line
		{"[U+001B]]52", "prompt --agent dies --dir " + work + " go"},
	} {
		screen, _ := atTerminal(t, dir, "> ", "", strings.Fields(tc.args)...)
		if strings.ContainsAny(screen, "\x1b\a\u009b\u202e") || !strings.Contains(screen, tc.has) {
			t.Errorf("%s: %q", tc.args, screen)
		}
	}
	if _, stderr, code := run(t, dir, "prompt", "--agent", "rude", "--dir", work, "go"); code != 6 || !strings.Contains(stderr, "Agent rude needs a login: why") || strings.ContainsAny(stderr, "\x1b\a\u009b\u202e") {
		t.Errorf("exit %d, %q", code, stderr)
	}
	if out, _, _ := run(t, dir, "sessions", "export", "last", "-o", "-"); !strings.Contains(out, "said \x1b]52;c;eA==\a \u009b2J") {
		t.Errorf("%q", out)
	}
}

// gated is an agent that says "begun", and no more until its gate is opened.
func gated(gate string) string {
	return `read l; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1}}'
		read l; echo '{"jsonrpc":"2.0","id":2,"result":{"sessionId":"s"}}'
		read l; echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"begun"}}}}'
		read open <` + gate + `; echo '{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn"}}'; cat >/dev/null`
}
