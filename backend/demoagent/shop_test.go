package demoagent

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/sample"
)

// inShop runs an agent in the sample project. It runs programs, so it is in no bubble.
func inShop(t *testing.T) (p *peer, session, cwd string) {
	t.Helper()
	cwd, err := sample.Make(t.Context(), filepath.Join(t.TempDir(), "corner-shop"), func(context.Context, string, []byte, ...string) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	p = start(t)
	return p, p.sessionIn(allCapabilities, cwd, `[]`), cwd
}

func code(t *testing.T, cwd string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(cwd, sample.Code))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func (s turnSeen) calls() (list []string) {
	for _, id := range s.order {
		call := s.tools[id]
		list = append(list, fmt.Sprint(call["title"], " ", call["status"]))
	}
	return list
}

func TestShopIsRepaired(t *testing.T) {
	p, session, cwd := inShop(t)
	before := code(t, cwd)
	p.onRequest = p.selects(allowOnce)
	turn := p.prompt(session, "Fix the failing test")
	turn.wantStop(t, "end_turn")
	turn.wantSaid(t, "**Fixed.** All tests pass.")
	if got, want := turn.calls(), []string{"sh test.sh failed", "Read total.sh completed", "Edit total.sh completed", "sh test.sh completed"}; !slices.Equal(got, want) {
		t.Errorf("the tool calls: got %q, want %q", got, want)
	}
	if got, want := code(t, cwd), strings.Replace(before, sample.Bug, sample.Fix, 1); got != want {
		t.Errorf("%s: got\n%s\nwant\n%s", sample.Code, got, want)
	}
	turn = p.prompt(session, "Fix the failing test")
	turn.wantSaid(t, "The bug is fixed already")
}

func TestShopEditIsRejected(t *testing.T) {
	p, session, cwd := inShop(t)
	before := code(t, cwd)
	p.onRequest = p.selects(rejectOnce)
	turn := p.prompt(session, "Fix the failing test")
	turn.wantSaid(t, "**Nothing was changed.** The edit was rejected.")
	if got := code(t, cwd); got != before {
		t.Errorf("%s: got\n%s\nwant it as it was", sample.Code, got)
	}
}

// TestShopRunsOnlyItsOwnTests: tests that somebody has changed are not run, and the project is like any other directory.
func TestShopRunsOnlyItsOwnTests(t *testing.T) {
	p, session, cwd := inShop(t)
	mark := filepath.Join(cwd, "ran")
	if err := os.WriteFile(filepath.Join(cwd, sample.Tests), []byte("touch "+mark+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p.onRequest = p.selects(allowOnce)
	turn := p.prompt(session, "Fix the failing test")
	turn.wantSaid(t, "> Fix the failing test")
	if _, err := os.Lstat(mark); err == nil {
		t.Error("changed tests were run")
	}
}

func TestShopPlansAsksAndDraws(t *testing.T) {
	p, session, cwd := inShop(t)
	before := code(t, cwd)
	turn := p.prompt(session, "Plan how to print a receipt")
	turn.wantSaid(t, "This is how I would go about it:")
	if len(turn.plan) != 5 {
		t.Errorf("the plan: got %+v, want 5 steps", turn.plan)
	}
	p.onRequest = func(m received) {
		if m.Method != questionMethod {
			t.Errorf("the request: got %s, want a question", m.raw)
		}
		p.reply(m, `{"status":"answered","answers":[["£"]]}`)
	}
	turn = p.prompt(session, "Ask me which currency to use")
	turn.wantSaid(t, "`45 £`")
	turn = p.prompt(session, "Show the prices as a picture")
	turn.wantSaid(t, "What a basket costs")
	if got := code(t, cwd); got != before {
		t.Errorf("%s: got\n%s\nwant it as it was", sample.Code, got)
	}
}
