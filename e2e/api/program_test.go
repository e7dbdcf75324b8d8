//go:build linux

package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"deskhand/backend/testkit"
)

// program is `deskhand server` as a process of its own.
type program struct {
	cmd    *exec.Cmd
	dir    string // its data
	base   string
	mark   string // stands in its environment, and in that of all that it starts
	client *http.Client
}

// stubborn is an agent that ends neither on EOF nor on SIGTERM, with descendants in a session of their own, in a group of their own
// without their parent, and behind a pipe.
const stubborn = `trap '' TERM INT HUP
setsid sh -c 'trap "" TERM; sleep 600; sleep 600' &
setsid -f sh -c 'trap "" TERM; sleep 600; sleep 600'
(sh -c 'trap "" TERM; sleep 600 | sleep 600' &)
echo '{"method":"ready"}'
while :; do sleep 600; done`

// startProgram starts the server on a data directory with the agents "stubborn" and "fake", which plays the script.
func startProgram(t *testing.T, script string) *program {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &program{dir: t.TempDir(), mark: "API_TEST_OF=" + t.TempDir(), client: &http.Client{Transport: &http.Transport{}}}
	env := map[string]string{scriptVariable: "\n" + script, "GORACE": "atexit_sleep_ms=0"}
	data, _ := json.Marshal(map[string]any{"agents": []map[string]any{
		{"id": "fake", "command": self, "env": env}, {"id": "stubborn", "command": "/bin/sh", "args": []string{"-c", stubborn}},
	}})
	write(t, filepath.Join(p.dir, "config", "agents.json"), string(data))
	t.Cleanup(func() {
		p.client.CloseIdleConnections()
		for _, pid := range p.processes() { // there are none, unless the test has failed
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	p.start(t)
	return p
}

func (p *program) start(t *testing.T) {
	t.Helper()
	self, _ := os.Executable()
	p.cmd = exec.CommandContext(context.Background(), self, "server", "--port", "0", "--data-dir", p.dir, "--token", "the-token-of-these-tests")
	p.cmd.Env = append(os.Environ(), p.mark, "DESKHAND_LOGIN_SHELL=off", "DESKHAND_CATALOGUE_URL=off", "DISPLAY=", "WAYLAND_DISPLAY=")
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	cmd := p.cmd
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	p.base, _, _ = strings.Cut(strings.TrimSpace(line), "/#")
	p.base = strings.TrimSuffix(p.base, "/")
}

// processes are those that carry the mark.
func (p *program) processes() []int {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	var found []int
	for _, file := range files {
		env, err := os.ReadFile(file)
		pid, _ := strconv.Atoi(strings.Split(file, "/")[2])
		stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && bytes.Contains(append(env, 0), []byte(p.mark+"\x00")) && !bytes.Contains(stat, []byte(") Z ")) {
			found = append(found, pid)
		}
	}
	return found
}

// until waits for a condition.
func until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(testkit.Limit); !is(); {
		if time.Now().After(deadline) {
			t.Fatal("not within 20 s: ", what)
		}
		<-time.After(10 * time.Millisecond)
	}
}

// stream reads the messages of a stream, from after on, until it ends or want have come. It waits for the instance, whose first message may
// still be on its way.
func (p *program) stream(t *testing.T, id string, after, want int) []string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", p.base+"/v1/acp/"+id, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer the-token-of-these-tests")
	r.Header.Set("Last-Event-ID", strconv.Itoa(after))
	var res *http.Response
	until(t, "the instance "+id, func() bool {
		if res, err = p.client.Do(r); err != nil { //nolint:bodyclose // the last one is, below
			t.Fatal(err)
		}
		there := res.StatusCode != http.StatusNotFound
		if !there {
			_ = res.Body.Close()
		}
		return there
	})
	defer res.Body.Close()
	var got []string
	for lines := bufio.NewScanner(res.Body); len(got) < want && lines.Scan(); {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			got = append(got, data)
		}
	}
	return got
}

// The server is killed with SIGKILL while twenty agents run, half of them deaf to everything, with descendants that have left their
// group and their parents: nothing of it is left, the watchdog last, and the next start finds nothing to do.
func TestKilledWithTwentyAgents(t *testing.T) {
	t.Parallel()
	p := startProgram(t, "< \"m\"\n> {\"method\":\"waiting\"}\nhang\n")
	var waiting sync.WaitGroup
	for n := range 20 {
		agent := []string{"stubborn", "fake"}[n%2]
		url := fmt.Sprintf("%s/v1/acp/a%d?agent=%s", p.base, n, agent)
		waiting.Go(func() {
			r, _ := http.NewRequestWithContext(t.Context(), "POST", url, strings.NewReader(`{"id":1,"method":"m"}`))
			r.Header.Set("Authorization", "Bearer the-token-of-these-tests")
			r.Header.Set("Content-Type", "application/json")
			if res, err := p.client.Do(r); err == nil {
				body, _ := io.ReadAll(res.Body)
				_ = res.Body.Close()
				t.Errorf("%s: answered: %d %s", url, res.StatusCode, body)
			}
		})
	}
	for n := range 20 {
		if got := p.stream(t, fmt.Sprintf("a%d", n), 0, 1); len(got) != 1 {
			t.Fatalf("agent %d: %v", n, got)
		}
	}
	until(t, "all descendants", func() bool { return len(p.processes()) >= 2+10+10*8 })
	if err := p.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	waiting.Wait()
	_ = p.cmd.Wait()
	until(t, "the end of all processes", func() bool { return len(p.processes()) == 0 })
	t.Logf("all gone after %v", time.Since(begin))
	p.start(t)
	if body, err := io.ReadAll(ask(t, p.client, "GET", p.base+"/v1/acp", nil).body); err != nil || strings.TrimSpace(string(body)) != `{"servers":[]}` {
		t.Errorf("ReadAll: got body %s, error %v, want no error and strings.TrimSpace(string(body)) \"{\\\"servers\\\":[]}\"", body, err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = p.cmd.Wait()
	until(t, "the end of the second server", func() bool { return len(p.processes()) == 0 })
}

// The server is stopped for a while, as by a debugger or a machine that sleeps, and with it or without it the agent: streams are open
// and a request waits. Nothing is lost, nothing comes twice, and the request is answered.
func TestStoppedAndContinued(t *testing.T) {
	t.Parallel()
	for name, all := range map[string]bool{"the server": false, "the server and the agent": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const messages = 2000
			p := startProgram(t, fmt.Sprintf("< \"m\"\ntick %d\n> {\"id\":1,\"result\":\"done\"}\n", messages))
			answered := make(chan string, 1)
			go func() {
				body, _ := io.ReadAll(ask(t, p.client, "POST", p.base+"/v1/acp/a?agent=fake", []byte(`{"id":1,"method":"m"}`)).body)
				answered <- string(body)
			}()
			first := p.stream(t, "a", 0, 50)
			var streams sync.WaitGroup
			for range 3 {
				streams.Go(func() {
					got := append(first, p.stream(t, "a", 50, messages+1-50)...)
					for n := range messages {
						if len(got) <= n || got[n] != fmt.Sprintf(`{"n":%d}`, n+1) {
							t.Errorf("of %d messages, number %d is wrong: %s", len(got), n+1, got[min(n, len(got)-1)])
							return
						}
					}
				})
			}
			pids := []int{p.cmd.Process.Pid}
			if all {
				pids = p.processes()
			}
			for range 2 {
				signalAll(t, pids, syscall.SIGSTOP)
				<-time.After(time.Second) // it is the time that passes which is tried
				signalAll(t, pids, syscall.SIGCONT)
				<-time.After(200 * time.Millisecond)
			}
			streams.Wait()
			if got := <-answered; got != `{"id":1,"result":"done"}` {
				t.Errorf("the request that waited: %s", got)
			}
			if res := ask(t, p.client, "DELETE", p.base+"/v1/acp/a", nil); res.status != http.StatusNoContent {
				t.Error(res.status)
			}
		})
	}
}

func signalAll(t *testing.T, pids []int, signal syscall.Signal) {
	t.Helper()
	for _, pid := range pids {
		if err := syscall.Kill(pid, signal); err != nil {
			t.Fatal(err)
		}
	}
}
