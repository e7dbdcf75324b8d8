//go:build unix

package proxy

import "os"

// attach gives the process a terminal in place of the pipes, of which it has none then: closed ones read as ended.
func (p *osProcess) attach(terminal *os.File) error {
	p.stdout, p.stderr = &outlet{}, &outlet{}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = terminal, terminal, terminal
	p.cmd.SysProcAttr.Setctty = true // the descriptor it is called by is 0
	return nil
}
