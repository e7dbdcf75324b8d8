package proxy

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// osProcess is an agent as a process of the operating system. This package makes the three pipes rather than os/exec, whose copiers would
// make Wait wait for every descendant that holds a pipe.
type osProcess struct {
	ident  ident
	cmd    *exec.Cmd
	stdin  *os.File
	stdout *outlet
	stderr *outlet
	family *family
	kept   *os.File // open until the family is gone; nil = not used
	merged bool
}

// startProcess starts cmd, whose environment contains mark already.
func startProcess(cmd Command, mark string) (*osProcess, error) {
	if err := checkDir(cmd.Dir); err != nil {
		return nil, err
	}
	p := &osProcess{merged: cmd.Merged, cmd: &exec.Cmd{
		Path: cmd.Path, Args: append([]string{cmd.Path}, cmd.Args...), Env: cmd.Env, Dir: cmd.Dir, SysProcAttr: agentAttributes(),
	}}
	p.kept = keep(cmd.Keeps)
	open := p.openPipes
	if cmd.Terminal != nil {
		open = func() ([]*os.File, error) { return nil, p.attach(cmd.Terminal) }
	}
	theirs, err := open()
	if err == nil {
		Seal()
		err = p.start()
	}
	closeFiles(theirs...)
	if err != nil {
		p.closePipes()
		return nil, err
	}
	p.ident, p.family, err = adopt(p.cmd.Process, mark)
	if err != nil {
		err = errors.Join(err, p.cmd.Process.Kill(), p.cmd.Wait())
		p.closePipes()
		return nil, err
	}
	return p, nil
}

// start starts the program. A program that was just written may still be open for writing in a child that another start has forked and
// that has not reached its exec yet: for a moment, the system refuses to run such a program.
func (p *osProcess) start() error {
	const longest = time.Second
	for pause := time.Millisecond; ; pause *= 2 {
		err := p.cmd.Start()
		if !isBusy(err) || pause > longest {
			return err
		}
		<-time.After(pause)
		c := p.cmd // a Cmd can be started only once
		p.cmd = &exec.Cmd{Path: c.Path, Args: c.Args, Env: c.Env, Dir: c.Dir, SysProcAttr: c.SysProcAttr, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr}
	}
}

// checkDir reports a missing directory, because the system's error for the start does not say whether the directory or the program is
// missing.
func checkDir(dir string) error {
	if dir == "" {
		return nil
	}
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		err = &os.PathError{Op: "chdir", Path: dir, Err: syscall.ENOTDIR}
	}
	if err != nil {
		return fmt.Errorf("its directory cannot be used: %w", err)
	}
	return nil
}

// openPipes makes the three pipes and returns the agent's ends.
func (p *osProcess) openPipes() ([]*os.File, error) {
	childIn, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	p.stdin, p.cmd.Stdin = in, childIn
	out, childOut, err := os.Pipe()
	if err != nil {
		return []*os.File{childIn}, err
	}
	p.stdout, p.cmd.Stdout = &outlet{file: out}, childOut
	errs, childErr, err := os.Pipe()
	if err != nil {
		return []*os.File{childIn, childOut}, err
	}
	p.stderr, p.cmd.Stderr = &outlet{file: errs}, childErr
	if p.merged {
		p.cmd.Stderr = childOut // then nobody has the other end of stderr, which reads as ended
	}
	widen(out)
	return []*os.File{childIn, childOut, childErr}, nil
}

func (p *osProcess) closePipes() {
	closeFiles(p.stdin, p.kept)
	for _, o := range []*outlet{p.stdout, p.stderr} {
		if o != nil {
			closeFiles(o.file)
		}
	}
}

func closeFiles(files ...*os.File) {
	for _, f := range files {
		_ = f.Close() // a nil file returns an error
	}
}

func (p *osProcess) PID() int              { return p.ident.PID }
func (p *osProcess) Stdin() io.WriteCloser { return p.stdin }
func (p *osProcess) Stdout() io.Reader     { return p.stdout }
func (p *osProcess) Stderr() io.Reader     { return p.stderr }

func (p *osProcess) Wait() Exit {
	_ = p.cmd.Wait() // ProcessState says more than the error
	if p.cmd.ProcessState == nil {
		return Exit{Code: -1}
	}
	return Exit{Code: p.cmd.ProcessState.ExitCode(), Signal: signalName(p.cmd.ProcessState)}
}

func (p *osProcess) Interrupt() error { return p.family.interrupt() }
func (p *osProcess) Terminate() error { return p.family.terminate() }
func (p *osProcess) Note()            { p.family.note() }

func (p *osProcess) Kill(patience time.Duration) error {
	defer p.kept.Close() // Close accepts nil, and a second call
	return p.family.kill(patience)
}

func (p *osProcess) Settle() {
	p.stdout.settle()
	p.stderr.settle()
}

// outlet is this process's end of a pipe to which the agent writes. When the process and all its known descendants are gone, the pipe
// should be at its end; if an unknown process holds the other end open, settle makes the pipe end with the bytes in its buffer.
type outlet struct {
	file    *os.File
	settled bool
	left    int // limit of the bytes read after settle
}

// settledBytes is more than a pipe can hold: a process that still writes then has escaped, and is not read for ever.
const settledBytes = 4 << 20

func (o *outlet) Read(p []byte) (int, error) {
	if !o.settled {
		n, err := o.file.Read(p)
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return n, o.end(err)
		}
		o.settled, o.left = true, settledBytes
		if err := o.file.SetReadDeadline(time.Time{}); err != nil {
			return 0, o.end(err)
		}
	}
	if o.left <= 0 {
		return 0, o.end(io.EOF)
	}
	n, err := readNow(o.file, p)
	o.left -= n
	return n, o.end(err)
}

// end closes the pipe at its first error.
func (o *outlet) end(err error) error {
	if err != nil {
		_ = o.file.Close()
	}
	return err
}

// settle interrupts a blocked read. Where the system cannot do that (Windows), the job object has ended all processes that could hold the
// pipe.
func (o *outlet) settle() { _ = o.file.SetReadDeadline(time.Unix(1, 0)) }
