package compare

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/host"
	"deskhand/backend/record"
	"deskhand/backend/refusal"
	"deskhand/backend/session"
	"deskhand/backend/startmode"
)

// Create puts a prompt to several agents. Everything that can be refused is looked at before anything is made. A member whose session cannot be
// made all the same is in the comparison with its problem, and the others begin; where none can begin, nothing stays, and the first problem is
// returned.
func (l *Library) Create(ctx context.Context, n NewComparison) (Comparison, error) {
	r, err := l.plan(ctx, n)
	if err != nil {
		return Comparison{}, err
	}
	if err := l.save(ctx, &r); err != nil {
		return Comparison{}, err
	}
	ctx = context.WithoutCancel(ctx)
	var first error
	for i := range r.Members {
		if err := l.begin(ctx, &r, &r.Members[i], n.Message); err != nil {
			first = cmp.Or(first, err)
		}
	}
	if !slices.ContainsFunc(r.Members, func(m Member) bool { return m.Begun }) {
		return Comparison{}, errors.Join(first, l.drop(ctx, r.ID))
	}
	if err := l.save(ctx, &r); err != nil {
		return Comparison{}, err
	}
	return l.show(ctx, r), nil
}

// plan looks at everything that can be refused of a comparison, and returns its row.
func (l *Library) plan(ctx context.Context, n NewComparison) (row, error) {
	switch {
	case l.deps.Sessions.ReadOnly() != nil:
		return row{}, l.deps.Sessions.ReadOnly()
	case strings.TrimSpace(n.Message) == "" && len(n.Attachments) == 0:
		return row{}, refusal.Bad(refusedSpoken)
	case len(n.Members) < Least || len(n.Members) > Most:
		return row{}, refusal.Bad(refusedFull, "most", strconv.Itoa(Most))
	}
	for _, m := range n.Members {
		if err := (host.Capabilities{Agents: l.deps.Agents}).Startable(m.Agent); err != nil {
			return row{}, err
		}
		if _, err := l.deps.Sessions.Starts().Decide(ctx, m.Agent, "", n.Cwd, startmode.Choice{Mode: m.Mode, Model: m.Model}); err != nil {
			return row{}, err
		}
	}
	at, err := l.deps.Sessions.Worktrees().Plan(ctx, n.Cwd, n.Message, n.Base)
	r := row{
		Comparison: Comparison{
			ID: newID(), Cwd: n.Cwd, Repository: at.Repository, Base: at.BaseBranch, Commit: at.Base, CreatedAt: record.Time{Time: time.Now()},
		},
		Message: l.deps.Clean(n.Message), Attachments: n.Attachments, Labels: n.Labels,
	}
	for _, m := range n.Members {
		r.Members = append(r.Members, Member{Session: newID(), Agent: m.Agent, Model: m.Model, Mode: m.Mode})
	}
	return r, err
}

func newID() string { return uuid.Must(uuid.NewV7()).String() }

// begin makes the session of a member.
func (l *Library) begin(ctx context.Context, r *row, m *Member, message string) error {
	_, err := l.deps.Sessions.Create(ctx, session.New{
		ID: m.Session, Agent: m.Agent, Model: m.Model, Mode: m.Mode, Cwd: r.Cwd, Labels: r.Labels, Message: message, Attachments: r.Attachments,
		Worktree: true, Base: r.Base, Commit: r.Commit, Purpose: m.Agent + " " + message,
	})
	m.Begun, m.Problem, m.Refused = err == nil, "", nil
	if err != nil {
		m.Problem, m.Refused = l.problem(err)
		l.deps.Logger.Warn("a member of a comparison could not begin", "agent", m.Agent, "error", err)
	}
	return err
}

// Begin makes the session of a member that has none, because the session could not be made or Deskhand ended meanwhile.
func (l *Library) Begin(ctx context.Context, id, member string) (Comparison, error) {
	r, release, err := l.claim(id)
	if err != nil {
		return Comparison{}, err
	}
	defer release()
	m := r.member(member)
	switch {
	case m == nil:
		return Comparison{}, refusal.Bad(refusedMember, "session", member)
	case r.Taken != "":
		return Comparison{}, &refusal.Error{Code: refusedTaken}
	case l.begun(ctx, m):
		return l.show(ctx, r), nil
	}
	ctx = context.WithoutCancel(ctx)
	m.Session = newID() // the old id may be that of a session that was deleted
	begun := l.begin(ctx, &r, m, r.Message)
	if err := l.save(ctx, &r); err != nil {
		return Comparison{}, err
	}
	return l.show(ctx, r), begun
}

// Add puts the prompt to another agent.
func (l *Library) Add(ctx context.Context, id string, n NewMember) (Comparison, error) {
	r, release, err := l.claim(id)
	if err != nil {
		return Comparison{}, err
	}
	defer release()
	if r.Taken != "" {
		return Comparison{}, &refusal.Error{Code: refusedTaken}
	}
	r.Members = slices.DeleteFunc(r.Members, func(m Member) bool { return m.Begun && !l.begun(ctx, &m) })
	if len(r.Members) >= Most {
		return Comparison{}, &refusal.Error{Code: refusedFull, Params: map[string]string{"most": strconv.Itoa(Most)}}
	}
	m := Member{Session: newID(), Agent: n.Agent, Model: n.Model, Mode: n.Mode}
	ctx = context.WithoutCancel(ctx)
	if err := l.begin(ctx, &r, &m, r.Message); err != nil {
		return Comparison{}, err
	}
	r.Members = append(r.Members, m)
	if err := l.save(ctx, &r); err != nil {
		return Comparison{}, err
	}
	return l.show(ctx, r), nil
}

// begun reports whether a member has a session.
func (l *Library) begun(ctx context.Context, m *Member) bool {
	_, err := l.deps.Sessions.Stored(ctx, m.Session)
	return !errors.Is(err, refusal.ErrNotFound) // a session that cannot be read is there
}

// Dissolve forgets a comparison. The sessions of its members stay as they are.
func (l *Library) Dissolve(ctx context.Context, id string) error {
	if err := l.deps.Sessions.ReadOnly(); err != nil {
		return err
	}
	_, release, err := l.claim(id)
	if err != nil {
		return err
	}
	defer release()
	return l.drop(ctx, id)
}
