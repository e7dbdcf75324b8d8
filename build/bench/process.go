package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// column identifies the owner of a figure.
type column string

const (
	ours  column = "ours"
	floor column = "floor"
	peer  column = "peer"
)

// server is a running HTTP server.
type server struct {
	column
	cmd   *exec.Cmd
	stdin io.Closer
	addr  string
	agent string // id of our agent on this server
}

const token = "a-token-for-the-benchmark" // both servers check a token, as in production

// launch starts a program; stop ends it.
func launch(s *server, path string, env []string, args ...string) (*bufio.Reader, error) {
	s.cmd = exec.Command(path, args...) //nolint:noctx // ended by stop
	s.cmd.Env = append(append(os.Environ(), "DESKHAND_LOGIN_SHELL=off", "DESKHAND_CATALOGUE_URL=off"), env...)
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.stdin = in
	return bufio.NewReader(out), s.cmd.Start()
}

// stop ends a server. Its agents end with their stdin.
func (s *server) stop() {
	_ = s.stdin.Close()
	_ = s.cmd.Process.Signal(os.Interrupt) // Windows has none, and waits for the other
	ended := time.AfterFunc(5*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer ended.Stop()
	_ = s.cmd.Wait()
}

// startFloor starts the floor of a server.
func startFloor(self string) (*server, error) {
	s := &server{column: floor}
	out, err := launch(s, self, []string{roleVariable + "=floor"})
	if err != nil {
		return nil, err
	}
	return s, s.readURL(out)
}

// readURL takes the address from the line that a server prints.
func (s *server) readURL(out *bufio.Reader) error {
	line, err := out.ReadString('\n')
	if err != nil {
		return fmt.Errorf("%s did not start: %w", s.cmd.Path, err)
	}
	u, err := url.Parse(strings.TrimSpace(line))
	if err != nil {
		return err
	}
	s.addr = u.Host
	go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
	return nil
}

// startOurs starts the program under test, which knows this program as an agent of the user's own.
func startOurs(program, self, dir string) (*server, error) {
	s := &server{column: ours, agent: "bench"}
	config := filepath.Join(dir, "config")
	if err := os.MkdirAll(config, 0o700); err != nil {
		return nil, err
	}
	data, err := json.Marshal(map[string]any{"agents": []any{
		map[string]any{"id": s.agent, "name": "Bench", "command": self, "env": map[string]string{roleVariable: "agent"}},
	}})
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(config, "agents.json"), data, 0o600); err != nil {
		return nil, err
	}
	out, err := launch(s, program, nil, "server", "--port", "0", "--token", token, "--data-dir", dir)
	if err != nil {
		return nil, err
	}
	return s, s.readURL(out)
}

// startPeer starts the existing server, which runs the program in its store under the name of the launcher of its `mock`.
func startPeer(program, self, dir string) (*server, error) {
	s := &server{column: peer, agent: "mock"}
	launchers := filepath.Join(dir, "sandbox-agent", "bin", "agent_processes")
	if err := os.MkdirAll(launchers, 0o700); err != nil {
		return nil, err
	}
	if err := os.Symlink(self, filepath.Join(launchers, "mock-acp")); err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // closed at once: the server does not report the free port that it takes
	if err != nil {
		return nil, err
	}
	s.addr = listener.Addr().String()
	_, port, _ := net.SplitHostPort(s.addr)
	_ = listener.Close()
	env := []string{"XDG_DATA_HOME=" + dir, roleVariable + "=agent"}
	out, err := launch(s, program, env, "server", "--port", port, "--token", token, "--no-telemetry")
	if err != nil {
		return nil, err
	}
	go func() { _, _ = io.Copy(io.Discard, out) }() // ends with the process
	for range 100 {
		c, err := s.dial()
		if err == nil {
			c.close()
			return s, nil
		}
		<-time.After(50 * time.Millisecond)
	}
	s.stop()
	return nil, fmt.Errorf("%s did not listen", program)
}

// pipe is our agent with nothing between.
type pipe struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startPipe(ctx context.Context, self string) (*pipe, error) {
	p := &pipe{cmd: exec.CommandContext(ctx, self)}
	p.cmd.Env = append(os.Environ(), roleVariable+"=agent")
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewReaderSize(out, 256<<10)
	return p, p.cmd.Start()
}

// call sends a message and reads a line.
func (p *pipe) call(message string) error {
	if err := p.send(message); err != nil {
		return err
	}
	return p.line()
}

func (p *pipe) send(message string) error {
	_, err := io.WriteString(p.in, message+"\n")
	return err
}

// line reads a line of any length.
func (p *pipe) line() error {
	for {
		if _, err := p.out.ReadSlice('\n'); !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// stop ends the agent as a server would, and waits for it.
func (p *pipe) stop() error {
	_ = p.in.Close()
	return p.cmd.Wait()
}

// cpuTime returns the processor time that a process has used, without its children; 0 on systems without /proc.
func (s *server) cpuTime() time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

// resident returns the memory of a process in KiB: all resident memory, and its proportional share (PSS).
func (s *server) resident() (rss, pss float64, err error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", s.cmd.Process.Pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		switch name {
		case "Rss":
			rss = kib
		case "Pss":
			pss = kib
		}
	}
	return rss, pss, nil
}
