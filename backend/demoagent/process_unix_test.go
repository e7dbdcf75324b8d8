//go:build unix

package demoagent

import (
	"bytes"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// process runs the agent as a process of the test binary.
func process(t *testing.T) (*peer, *exec.Cmd, *bytes.Buffer) {
	t.Helper()
	t.Setenv(stateVariable, t.TempDir())
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), RunVariable+"=agent")
	var stderr bytes.Buffer
	command.Stderr = &stderr
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return connect(t, in, out), command, &stderr
}

func TestCrash(t *testing.T) {
	p, command, stderr := process(t)
	session, cwd := p.session(`{}`)
	p.request("session/prompt", promptParams(session, "crash"))
	var said strings.Builder
	for line := range p.lines {
		if m, ok := p.read(line); ok {
			var params struct{ Update struct{ Content block } }
			p.decode(m.Params, &params)
			said.WriteString(params.Update.Content.Text)
		}
	}
	_ = command.Wait()
	if said.String() != "I am about to finish this senten" || command.ProcessState.ExitCode() != 3 {
		t.Errorf("said %q, exit %v", said.String(), command.ProcessState)
	}
	want := "demo-agent: working on the prompt\ndemo-agent: fatal: the prompt asked for a crash\ndemo-agent: exit status 3\n"
	if stderr.String() != want {
		t.Errorf("stderr %q", stderr.String())
	}

	// The next process knows the session, the unfinished part included.
	next := restart(t)
	replayed := next.turn(next.mustCall("session/load", map[string]any{"sessionId": session, "cwd": cwd, "mcpServers": []any{}}))
	next.commands()
	replayed.wantSaid(t, "I am about to finish this senten")
	if got := replayed.tool(t, 0)["status"]; got != "failed" {
		t.Errorf("the unfinished tool call is %v", got)
	}
}

// TestKilled: a killed process leaves the prompt and every earlier turn.
func TestKilled(t *testing.T) {
	p, command, _ := process(t)
	session, cwd := p.session(`{}`)
	p.prompt(session, "thought")
	p.request("session/prompt", promptParams(session, "slow"))
	p.next()
	_ = command.Process.Kill()
	for line := range p.lines {
		p.read(line)
	}
	_ = command.Wait()
	next := restart(t)
	replayed := next.turn(next.mustCall("session/load", map[string]any{"sessionId": session, "cwd": cwd, "mcpServers": []any{}}))
	next.commands()
	replayed.wantSaid(t, "I have thought about it.")
	if replayed.messages["prompt-2-0"] != "slow" {
		t.Errorf("replayed %v", replayed.messages)
	}
}

func TestStubborn(t *testing.T) {
	p, command, _ := process(t)
	session, _ := p.session(`{}`)
	p.request("session/prompt", promptParams(session, "stubborn"))
	pids := regexp.MustCompile(`My pid is (\d+)\. .* Its pid is (\d+)\.`)
	var said strings.Builder
	for !pids.MatchString(said.String()) {
		var params struct{ Update struct{ Content block } }
		p.decode(p.next().Params, &params)
		said.WriteString(params.Update.Content.Text)
	}
	found := pids.FindStringSubmatch(said.String())
	self, _ := strconv.Atoi(found[1])
	child, _ := strconv.Atoi(found[2])
	kill := func() {
		_ = syscall.Kill(child, syscall.SIGKILL)
		_ = command.Process.Kill()
	}
	t.Cleanup(kill)
	if self != command.Process.Pid {
		t.Errorf("pid %d, want %d", self, command.Process.Pid)
	}
	if group, err := syscall.Getpgid(child); err != nil || group != child {
		t.Errorf("the child is in group %d: %v", group, err)
	}
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT} {
		if err := syscall.Kill(self, signal); err != nil {
			t.Fatal(err)
		}
	}
	p.notify("session/cancel", map[string]any{"sessionId": session})
	p.mustCall("session/list", nil) // the agent has survived the signals and has not answered the prompt
	p.in.Close()
	if err := syscall.Kill(child, 0); err != nil {
		t.Errorf("the child is gone: %v", err)
	}
	kill()
	for line := range p.lines {
		if m, _ := p.read(line); m.ID != nil {
			t.Errorf("answered after all: %s", m.raw)
		}
	}
	_ = command.Wait()
	if status, ok := command.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Errorf("ended by %v", command.ProcessState)
	}
}
