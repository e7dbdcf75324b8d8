package session_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/agenttest"
	"deskhand/backend/remotes"
	"deskhand/backend/requests"
)

// peer starts the existing sandbox-agent server, as build/setup.sh peer installs it, with Deskhand's demo agent in place of its own. The
// server confirms no message, gives up on answers that take long, and numbers its broadcasts, which include its answers.
func peer(t *testing.T) *line {
	t.Helper()
	system := map[string]string{"amd64": "x64", "arm64": "arm64"}[runtime.GOARCH]
	program, err := filepath.Abs(filepath.Join("../../build/bench/peer/node_modules/@sandbox-agent", "cli-"+runtime.GOOS+"-"+system, "bin/sandbox-agent"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(program); err != nil {
		t.Skip("build/setup.sh peer installs the server that this is about")
	}
	dir := t.TempDir()
	launchers := filepath.Join(dir, "sandbox-agent", "bin", "agent_processes")
	agent := agenttest.Program(t)
	if err := os.MkdirAll(launchers, 0o700); err != nil {
		t.Fatal(err)
	}
	script := fmt.Sprintf("#!/bin/sh\nexec '%s' demo-agent\n", agent)
	if err := os.WriteFile(filepath.Join(launchers, "mock-acp"), []byte(script), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()
	_, port, _ := net.SplitHostPort(address)
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "server", "--port", port, "--token", placeToken, "--no-telemetry")
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+dir, "SANDBOX_AGENT_ACP_REQUEST_TIMEOUT_MS=1500", "DESKHAND_DEMO_STATE="+filepath.Join(dir, "demo"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	for range 3000 {
		if c, err := net.Dial("tcp", address); err == nil {
			_ = c.Close()
			return newLine(t, address)
		}
		<-time.After(20 * time.Millisecond)
	}
	t.Fatal("the server does not listen")
	return nil
}

func TestExistingServerAsAPlace(t *testing.T) {
	t.Parallel()
	l := peer(t)
	d := deskWithPlaces(t, t.TempDir())
	p, err := d.remotes.Add(t.Context(), remotes.NewPlace{Name: "Peer", URL: l.url(), Token: placeToken})
	if err != nil || p.State != "ready" || p.Software != "Sandbox Agent" {
		t.Fatalf("Add: got %+v, %v; want the place ready, Sandbox Agent", p, err)
	}
	list, err := d.remotes.Agents(t.Context(), p.ID)
	if err != nil || !slices.ContainsFunc(list, func(a remotes.PlaceAgent) bool { return a.ID == "mock" }) {
		t.Errorf("Agents: got %+v, %v; want mock among them", list, err)
	}
	if at, err := d.remotes.Directories(t.Context(), p.ID, ""); err != nil || at.Path == "" {
		t.Errorf("Directories: got %+v, %v; want a path", at, err)
	}
	s := d.createAt(p.ID)
	d.prompt(s.ID, "echo Hello")
	if tr := d.idle(s.ID); lastTurn(tr).StopReason != "end_turn" || !strings.Contains(textOf(tr, "agent"), "Hello") {
		t.Fatalf("prompt to the peer: got turn %+v, text %q, exit %+v; want end_turn and Hello", lastTurn(tr), textOf(tr, "agent"), d.get(s.ID).Exit)
	}

	// A turn waits for a person longer than the server waits, over a connection that breaks meanwhile.
	d.prompt(s.ID, "permission")
	r := d.request(s.ID)
	l.set(true)
	d.lineIs(s.ID, "broken")
	<-time.After(2 * time.Second) // the server gives up on the answer
	l.set(false)
	d.lineIs(s.ID, "")
	d.answer(r, requests.Answer{OptionID: optionOf(t, r, "allow_once")})
	tr := d.idle(s.ID)
	if lastTurn(tr).StopReason != "end_turn" || slices.Contains(dividersOf(tr), "messages.missing") {
		t.Fatalf("after the line was back: got turn %+v, dividers %v; want end_turn and no messages.missing", lastTurn(tr), dividersOf(tr))
	}
	frames := 0
	for dir, data := range d.journal(s.ID) {
		if dir == "in" && strings.Contains(string(data), `"stopReason"`) {
			frames++
		}
	}
	if frames != 2 {
		t.Errorf("%d answers to two prompts came", frames)
	}

	// The server skips messages for slow readers, and drops old ones soon: each gap is told.
	d.prompt(s.ID, "burst")
	tr = d.idle(s.ID)
	if have := d.numbered(s.ID); len(have) < 10_000 && !slices.Contains(dividersOf(tr), "messages.missing") {
		t.Errorf("of the burst %d came, and nothing is said to be missing", len(have))
	} else {
		t.Logf("of the burst %d came; %v", len(have), dividersOf(tr))
	}
	wantStop(t, tr, "end_turn")
	_, err = d.remotes.Remove(t.Context(), p.ID)
	refused(t, err, "place.used")
}
