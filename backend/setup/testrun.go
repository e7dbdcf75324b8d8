package setup

import (
	"context"
	"time"

	"deskhand/backend/launch"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/worktrees"
)

// Passed is the state of a run of tests that has ended well. The others are Running, Failed and Stopped.
const Passed = "passed"

// TestRun is a run of a project's tests in a worktree, the newest.
type TestRun struct {
	State    string       `json:"state" enum:"running,passed,failed,stopped" doc:"stopped: by a person, or with Deskhand"`
	Command  string       `json:"command"`
	ExitCode *int         `json:"exitCode,omitempty" doc:"Of tests that have failed; absent when a signal ended them"`
	Signal   string       `json:"signal,omitempty"`
	Problem  string       `json:"problem,omitempty" doc:"Why they have failed other than by the command"`
	Head     string       `json:"head,omitempty" doc:"What they have written, or the beginning of it"`
	Tail     string       `json:"tail,omitempty" doc:"The end of what they have written, where something is cut out"`
	Cut      int64        `json:"cut,omitempty" doc:"Number of bytes between head and tail"`
	Started  record.Time  `json:"startedAt"`
	Ended    *record.Time `json:"endedAt,omitempty"`
}

// testRun is the newest run of tests in a worktree.
type testRun struct {
	run    TestRun // without its output
	output *output
	cancel func()        // ends the tests; nil when they do not run
	ended  chan struct{} // closed when nothing of the run is left
}

// shown returns the run with what it has written so far.
func (t *testRun) shown(clean func(string) string) *TestRun {
	if t == nil {
		return nil
	}
	run, k := t.run, t.output.keep(clean)
	run.Head, run.Tail, run.Cut = k.Head, k.Tail, k.Cut
	return &run
}

// TestRun returns the newest run of tests in the worktree of a session; nil when there was none.
func (l *Library) TestRun(ctx context.Context, session string) (*TestRun, error) {
	at, err := l.find(ctx, session)
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.ofLocked(at.ID).tests.shown(l.sessions.Clean), nil
}

// Test begins to run the tests of a project in the worktree of a session. hash is the command that was shown, which is approved by the call; a
// command that is approved needs none. done is called when the run has ended and is stored.
//
//nolint:contextcheck // a run outlives the call that begins it
func (l *Library) Test(ctx context.Context, session, hash string, done func()) error {
	if err := l.sessions.Writable(); err != nil {
		return err
	}
	tree, err := l.find(ctx, session)
	if err != nil {
		return err
	}
	at, p, err := l.project(ctx, Session{Cwd: tree.Path, Local: true})
	if err != nil {
		return refusedFor(err)
	}
	if p.Test == "" {
		return &refusal.Error{Code: refusedCommand, Params: map[string]string{"name": launch.Test}}
	}
	if err := l.approved(ctx, at.ProjectIn, p, launch.Test, hash); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	w := l.ofLocked(tree.ID)
	switch {
	case l.closed:
		return refusal.ErrClosed
	case w.tests != nil && w.tests.cancel != nil:
		return &refusal.Error{Code: refusedTesting}
	case w.cancel != nil:
		return &refusal.Error{Code: refusedRunning}
	}
	life, cancel := context.WithCancel(l.life)
	t := &testRun{
		run: TestRun{State: Running, Command: p.Test, Started: record.Time{Time: time.Now()}}, output: &output{},
		cancel: cancel, ended: make(chan struct{}),
	}
	w.tests = t
	l.wg.Go(func() {
		defer close(t.ended)
		defer cancel()
		l.logged(life, tree.ID)
		env := append(l.deps.Environ(life), environ(at.Top, at.Repository, at.port, at.ports)...)
		l.tested(life, tree, t, l.command(life, tree, t.output, append(env, "NO_COLOR=1", "TERM=dumb"), p.Test))
		done()
	})
	return nil
}

// tested stores how a run of tests has ended.
func (l *Library) tested(life context.Context, at worktrees.Place, t *testRun, fault error) {
	l.mu.Lock()
	t.run.Ended, t.cancel = &record.Time{Time: time.Now()}, nil
	switch exit, exited := exitOf(fault); {
	case fault == nil:
		t.run.State = Passed
	case life.Err() != nil:
		t.run.State = Stopped
	case exited:
		t.run.State, t.run.Signal = Failed, exit.Signal
		if exit.Signal == "" {
			t.run.ExitCode = &exit.Code
		}
	default:
		t.run.State, t.run.Problem = Failed, l.sessions.Clean(problem(fault))
	}
	l.mu.Unlock()
	if l.life.Err() == nil { // otherwise the row says that the tests ran, and the next Load that they were cut off
		l.logged(life, at.ID)
	}
}

// StopTest ends a run of tests in the worktree of a session, and waits for its end.
func (l *Library) StopTest(ctx context.Context, session string) error {
	at, err := l.find(ctx, session)
	if err != nil {
		return err
	}
	l.mu.Lock()
	t := l.ofLocked(at.ID).tests
	if t == nil || t.cancel == nil {
		l.mu.Unlock()
		return nil
	}
	t.cancel()
	l.mu.Unlock()
	<-t.ended
	return nil
}
