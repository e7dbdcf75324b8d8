package setup

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"deskhand/backend/project"
	"deskhand/backend/refusal"
)

// free reports whether nothing listens on a port of this machine.
func free(port int) bool {
	var config net.ListenConfig
	for _, host := range []string{"127.0.0.1", ""} { // on some systems a port of all addresses can be taken beside one of a single address
		ln, err := config.Listen(context.Background(), "tcp", net.JoinHostPort(host, strconv.Itoa(port)))
		if err != nil {
			return false
		}
		_ = ln.Close()
	}
	return true
}

// reserveLocked gives a worktree ports that no other worktree has, and that are free now. The first ports of the range are those of the
// repository itself. A worktree that has ports keeps them.
func (l *Library) reserveLocked(w *work, p project.Ports) error {
	if w.setup.Port != 0 && w.setup.Ports == p.Each && w.setup.Port >= p.From && w.setup.Port+p.Each-1 <= p.To {
		return nil
	}
	w.setup.Port, w.setup.Ports = 0, 0
	for first := p.From + p.Each; first+p.Each-1 <= p.To; first += p.Each {
		if l.takenLocked(first, p.Each) {
			continue
		}
		w.setup.Port, w.setup.Ports = first, p.Each
		return nil
	}
	return &refusal.Error{Code: refusedPorts, Params: map[string]string{"from": strconv.Itoa(p.From), "to": strconv.Itoa(p.To)}}
}

func (l *Library) takenLocked(first, each int) bool {
	for _, other := range l.all {
		s := other.setup
		if s.Port != 0 && first < s.Port+s.Ports && s.Port < first+each {
			return true
		}
	}
	for port := first; port < first+each; port++ {
		if !l.deps.Free(port) {
			return true
		}
	}
	return false
}

// environ returns the variables for what runs in a worktree, or in a repository.
func environ(top, repository string, port, ports int) []string {
	list := []string{"DESKHAND_WORKTREE=" + top, "DESKHAND_REPOSITORY=" + repository}
	if port != 0 {
		list = append(list, fmt.Sprintf("DESKHAND_PORT=%d", port), fmt.Sprintf("DESKHAND_PORTS=%d", ports))
	}
	return list
}

// Environ returns the variables for what runs in a directory, when it lies in a worktree.
func (l *Library) Environ(dir string) []string {
	at, is := l.sessions.Worktrees.At(dir)
	if !is {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.ofLocked(at.ID).setup
	return environ(at.Path, at.Repository, s.Port, s.Ports)
}
