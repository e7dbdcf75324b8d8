//go:build unix

package proxy

import "os"

// attach gives the process a terminal in place of the pipes, of which the process then has none: closed pipes read as ended.
func (p *osProcess) attach(terminal *os.File) error {
	p.stdout, p.stderr = &outlet{}, &outlet{}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = terminal, terminal, terminal
	p.cmd.SysProcAttr.Setctty = true // uses descriptor 0 of the child
	return nil
}
