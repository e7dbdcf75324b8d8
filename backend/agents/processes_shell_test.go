//go:build !windows

package agents_test

import (
	"testing"
	"time"

	"deskhand/backend/agents"
)

func TestTheLoginShellIsListed(t *testing.T) {
	t.Parallel()
	set, began := census(t), time.Now()
	p := newPerson(t, "bash")
	p.write(map[string]string{".profile": "while [ ! -e ~/go ]; do sleep 0.01; done\n"})
	p.cfg.Beside = set
	c := p.open()
	c.Environment().Look()
	shows(t, listed(t, set, agents.ForShell, "bash", true), began)
	p.write(map[string]string{"go": ""})
	c.Environment().Settle(t.Context(), false)
	if s := c.Environment().Surroundings(); s.Problem != "" {
		t.Errorf("Problem: got %q, want none", s.Problem)
	}
	listed(t, set, agents.ForShell, "bash", false)
}
