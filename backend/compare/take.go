package compare

import (
	"context"
	"errors"
	"time"

	"deskhand/backend/feed"
	"deskhand/backend/refusal"
	"deskhand/backend/session"
	"deskhand/backend/undo"
)

// Take takes a member: the others are stopped, their worktrees are removed with what is uncommitted kept, and their sessions are archived. Whom the
// person has taken is stored first, and whatever could not be removed is told in the member's problem; another Take of the same member goes on
// with the rest, also after a crash.
func (l *Library) Take(ctx context.Context, id, member string) (Comparison, error) {
	r, release, err := l.claim(id)
	if err != nil {
		return Comparison{}, err
	}
	defer release()
	switch m := r.member(member); {
	case m == nil:
		return Comparison{}, refusal.Bad(refusedMember, "session", member)
	case r.Taken != "" && r.Taken != member:
		return Comparison{}, &refusal.Error{Code: refusedTaken}
	case !l.begun(ctx, m):
		return Comparison{}, &refusal.Error{Code: refusedNotBegun, Params: map[string]string{"name": l.deps.Agents.Name(m.Agent)}}
	}
	r.Taken = member
	if err := l.save(ctx, &r); err != nil {
		return Comparison{}, err
	}
	ctx = context.WithoutCancel(ctx)
	for i := range r.Members {
		m := &r.Members[i]
		if m.Session == member {
			continue
		}
		m.Problem, m.Refused = "", nil
		if err := l.leave(ctx, m.Session); err != nil {
			m.Problem, m.Refused = l.problem(err)
			l.deps.Logger.Warn("what is left of a member of a comparison could not be removed", "session", m.Session, "error", err)
		}
	}
	if err := l.save(ctx, &r); err != nil {
		return Comparison{}, err
	}
	return l.show(ctx, r), nil
}

// leave stops a session, removes its worktree and archives the session. A session that is gone, and a worktree that was removed, are left as they are.
func (l *Library) leave(ctx context.Context, id string) error {
	s, err := l.stop(ctx, id)
	if errors.Is(err, refusal.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	if s.Worktree != nil && s.Worktree.State == stateReady {
		if _, err := l.deps.Sessions.Worktrees().Remove(ctx, id); err != nil {
			return err
		}
	}
	if s.ArchivedAt != nil {
		return nil
	}
	archived := true
	_, err = l.deps.Sessions.Change(ctx, id, session.Patch{Archived: &archived})
	return err
}

// stateReady is the state of a worktree that is there.
const stateReady = "ready"

// untilStopped is how long an agent has to end its turn. A Stop by the client ends an agent that does not obey earlier.
const untilStopped = time.Minute

// stop ends the turn of a session, and waits for its end.
func (l *Library) stop(ctx context.Context, id string) (session.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, untilStopped)
	defer cancel()
	at, err := l.deps.Sessions.Feed().After(ctx, feed.Query{}) // tells only where the feed is now
	if err != nil {
		return session.Session{}, err
	}
	s, err := l.deps.Sessions.Get(ctx, id)
	if err != nil || s.Turn == nil {
		return s, err
	}
	if refused := l.deps.Sessions.Cancel(ctx, id); refused != nil {
		if s, err = l.deps.Sessions.Get(ctx, id); err == nil && s.Turn != nil {
			err = refused
		}
		return s, err
	}
	q := feed.Query{Gen: at.Gen, After: at.Seq, Session: id, Wait: untilStopped}
	for {
		if s, err = l.deps.Sessions.Get(ctx, id); err != nil || s.Turn == nil {
			return s, err
		}
		batch, err := l.deps.Sessions.Feed().After(ctx, q)
		if err = errors.Join(err, ctx.Err()); err != nil {
			return s, err
		}
		q.After = batch.Seq
	}
}

// TakeFiles gives files of a member the content that they have in another one. What the files were before is kept, and comes back when the
// restoration is undone.
func (l *Library) TakeFiles(ctx context.Context, id string, t TakeFiles) (undo.Restored, error) {
	r, err := l.get(id)
	if err != nil {
		return undo.Restored{}, err
	}
	for _, member := range []string{t.From, t.To} {
		if r.member(member) == nil {
			return undo.Restored{}, refusal.Bad(refusedMember, "session", member)
		}
	}
	if t.From == t.To {
		return undo.Restored{}, refusal.Bad(refusedSame)
	}
	to, err := l.deps.Sessions.Get(ctx, t.To)
	if err != nil {
		return undo.Restored{}, err
	}
	paths := make([]string, 0, len(t.Paths))
	for _, path := range t.Paths {
		name, err := within(to, path)
		if err != nil {
			return undo.Restored{}, err
		}
		paths = append(paths, name)
	}
	done, err := l.deps.Sessions.Undo().Bring(ctx, t.To, t.From, paths, t.Preview)
	if err == nil && !t.Preview {
		l.publish(ctx, id)
	}
	return done, err
}

// Test begins to run the project's tests in the worktrees of all members that have one and in which they do not run. hash is the command that was
// shown, which is approved by the call; a command that is approved needs none.
func (l *Library) Test(ctx context.Context, id, hash string) (ComparisonResults, error) {
	r, err := l.get(id)
	if err != nil {
		return ComparisonResults{}, err
	}
	var first error
	begun := false
	for _, m := range l.show(ctx, r).Members {
		if !m.Begun {
			continue
		}
		err := l.deps.Setups.Test(ctx, m.Session, hash, func() { l.publish(ctx, id) })
		begun = begun || err == nil
		if first == nil {
			first = err
		}
	}
	if !begun && first != nil {
		return ComparisonResults{}, first
	}
	l.publish(ctx, id)
	return l.Results(ctx, id)
}

// StopTests ends the running tests of all members.
func (l *Library) StopTests(ctx context.Context, id string) (ComparisonResults, error) {
	r, err := l.get(id)
	if err != nil {
		return ComparisonResults{}, err
	}
	for _, m := range r.Members {
		if err := l.deps.Setups.StopTest(ctx, m.Session); err != nil && !refused(err) && !errors.Is(err, refusal.ErrNotFound) {
			return ComparisonResults{}, err
		}
	}
	return l.Results(ctx, id)
}
