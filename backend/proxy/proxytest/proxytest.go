// Package proxytest hides that an agent need not be a process: the package runs an agent in memory, where a test's fake clock reaches the
// agent.
package proxytest

import (
	"io"
	"sync"
	"time"

	"deskhand/backend/proxy"
)

// An Agent reads its stdin and writes its stdout until it returns its exit code.
type Agent func(stdin io.Reader, stdout, stderr io.Writer) int

// Spawn returns a proxy.Config.Spawn that starts the agent. Kill ends the agent by breaking its pipes, and counts as SIGKILL.
func Spawn(agent Agent) func(proxy.Command) (proxy.Process, error) {
	return func(proxy.Command) (proxy.Process, error) {
		p := &process{exit: make(chan proxy.Exit, 1)}
		p.in, p.stdin = io.Pipe()
		p.stdout, p.out = io.Pipe()
		p.stderr, p.err = io.Pipe()
		go func() { p.end(proxy.Exit{Code: agent(p.in, p.out, p.err)}) }()
		return p, nil
	}
}

// process is three pipes with both their ends.
type process struct {
	in             *io.PipeReader
	stdin          *io.PipeWriter
	stdout, stderr *io.PipeReader
	out, err       *io.PipeWriter

	exit chan proxy.Exit
	once sync.Once
}

// end ends the process. Only the first call counts.
func (p *process) end(exit proxy.Exit) {
	p.once.Do(func() {
		_ = p.in.Close()
		_ = p.out.Close()
		_ = p.err.Close()
		p.exit <- exit
	})
}

func (p *process) PID() int              { return 1 }
func (p *process) Stdin() io.WriteCloser { return p.stdin }
func (p *process) Stdout() io.Reader     { return p.stdout }
func (p *process) Stderr() io.Reader     { return p.stderr }
func (p *process) Wait() proxy.Exit      { return <-p.exit }
func (p *process) Interrupt() error      { return nil }
func (p *process) Terminate() error      { return nil }
func (p *process) Note()                 {}
func (p *process) Settle()               {}

func (p *process) Kill(time.Duration) error {
	p.end(proxy.Exit{Signal: "SIGKILL"})
	return nil
}
