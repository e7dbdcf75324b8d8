package compare

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"deskhand/backend/landing"
	"deskhand/backend/launch"
	"deskhand/backend/refusal"
	"deskhand/backend/session"
)

// show returns a comparison as surfaces see it: without the members whose sessions were deleted.
func (l *Library) show(ctx context.Context, r row) Comparison {
	titles := map[string]string{}
	for _, m := range r.Members {
		s, err := l.deps.Sessions.Stored(ctx, m.Session)
		if !errors.Is(err, refusal.ErrNotFound) {
			titles[m.Session] = s.Title
		}
	}
	return l.shown(r, titles)
}

// shown is show with the titles of the sessions that are there, by their ids.
func (l *Library) shown(r row, titles map[string]string) Comparison {
	c := r.Comparison
	c.Members = []Member{}
	for _, m := range r.Members {
		title, there := titles[m.Session]
		if m.Begun && !there {
			continue
		}
		m.Begun = there
		c.Members = append(c.Members, m)
		c.Title = cmp.Or(c.Title, title)
	}
	if c.Title == "" {
		c.Title, _, _ = strings.Cut(strings.TrimSpace(r.Message), "\n")
	}
	l.name(c.Members)
	return c
}

// name gives each member a name of its own: that of the agent, with the model where the same agent is there with several models, and with a
// number where that is not enough.
func (l *Library) name(list []Member) {
	models, seen := map[string]map[string]bool{}, map[string]int{}
	for _, m := range list {
		if models[m.Agent] == nil {
			models[m.Agent] = map[string]bool{}
		}
		models[m.Agent][m.Model] = true
	}
	for i, m := range list {
		name := l.deps.Agents.Name(m.Agent)
		if m.Model != "" && len(models[m.Agent]) > 1 {
			name += " · " + m.Model
		}
		if seen[name]++; seen[name] > 1 {
			name += " " + strconv.Itoa(seen[name])
		}
		list[i].Name = name
	}
}

// publish tells all surfaces of a comparison.
func (l *Library) publish(ctx context.Context, id string) {
	if r, err := l.get(id); err == nil {
		l.deps.Sessions.Publish(eventComparison, l.show(context.WithoutCancel(ctx), r))
	}
}

// List returns the comparisons that have members, the newest first.
func (l *Library) List(ctx context.Context) ([]Comparison, error) {
	list := []Comparison{}
	l.mu.Lock()
	rows := make([]row, 0, len(l.all))
	for _, r := range l.all {
		rows = append(rows, r.clone())
	}
	l.mu.Unlock()
	if len(rows) == 0 {
		return list, nil
	}
	sessions, err := session.Titles(ctx, l.deps.Store)
	titles := make(map[string]string, len(sessions))
	for _, s := range sessions {
		titles[s.ID] = s.Title
	}
	for _, r := range rows {
		if c := l.shown(r, titles); len(c.Members) > 0 {
			list = append(list, c)
		}
	}
	slices.SortFunc(list, func(a, b Comparison) int { return strings.Compare(b.ID, a.ID) })
	return list, err
}

// Get returns a comparison.
func (l *Library) Get(ctx context.Context, id string) (Comparison, error) {
	r, err := l.get(id)
	if err != nil {
		return Comparison{}, err
	}
	return l.show(ctx, r), nil
}

// Results returns what the members of a comparison have made of the prompt.
func (l *Library) Results(ctx context.Context, id string) (ComparisonResults, error) {
	r, err := l.get(id)
	if err != nil {
		return ComparisonResults{}, err
	}
	all := ComparisonResults{Comparison: l.show(ctx, r), Message: r.Message}
	begun := slices.DeleteFunc(slices.Clone(all.Members), func(m Member) bool { return !m.Begun })
	all.Results = make([]MemberResult, len(begun))
	problems := make([]error, len(begun))
	var looks sync.WaitGroup
	for i, m := range begun {
		looks.Go(func() { all.Results[i], problems[i] = l.result(ctx, &r, m) })
	}
	looks.Wait()
	if err := errors.Join(problems...); err != nil {
		return ComparisonResults{}, err
	}
	all.Test, err = l.command(ctx, all.Results)
	return all, err
}

// result returns what a member has made of the prompt.
func (l *Library) result(ctx context.Context, r *row, m Member) (v MemberResult, err error) {
	v.Name, v.Files = m.Name, []landing.BaseFile{}
	if v.Session, err = l.deps.Sessions.Get(ctx, m.Session); err != nil {
		return v, err
	}
	if v.Answer, err = l.entries.LastAnswer(ctx, m.Session); err != nil {
		return v, err
	}
	if v.Turns, v.Worked, err = l.entries.Worked(ctx, m.Session); err != nil {
		return v, err
	}
	newest, err := l.entries.NewestTurn(ctx, m.Session)
	if err != nil {
		return v, err
	}
	if newest != nil {
		v.Stopped, v.Error = newest.StopReason, newest.Error
	}
	if v.Tokens, err = l.tokens(ctx, m.Session); err != nil {
		return v, err
	}
	if v.Session.Usage != nil {
		v.Cost = v.Session.Usage.Cost
	}
	if v.Tests, err = l.deps.Setups.TestRun(ctx, m.Session); refused(err) {
		err = nil // the worktree was removed
	}
	if err != nil {
		return v, err
	}
	files, err := l.deps.Sessions.Landing().Since(ctx, m.Session, r.Commit)
	if refused(err) {
		v.Problem, v.Refused = l.problem(err)
		err = nil
	}
	for _, f := range files {
		v.Added, v.Removed = v.Added+f.Added, v.Removed+f.Removed
	}
	if files != nil {
		v.Files = files
	}
	v.Outdated = outdated(v)
	return v, err
}

// outdated reports whether a file that differs from the commit was written after the tests of a member ended.
func outdated(v MemberResult) bool {
	if v.Tests == nil || v.Tests.Ended == nil || v.Session.Worktree == nil {
		return false
	}
	return slices.ContainsFunc(v.Files, func(f landing.BaseFile) bool {
		info, err := os.Lstat(filepath.Join(v.Session.Worktree.Path, filepath.FromSlash(f.Path)))
		return err == nil && info.ModTime().After(v.Tests.Ended.Time)
	})
}

// problem returns what a record says of an error.
func (l *Library) problem(err error) (string, *Refusal) {
	refused, is := errors.AsType[*refusal.Error](err)
	if !is {
		return l.deps.Clean(err.Error()), nil
	}
	params := make(map[string]string, len(refused.Params))
	for name, value := range refused.Params {
		params[name] = l.deps.Clean(value)
	}
	return l.deps.Clean(err.Error()), &Refusal{Code: refused.Code, Params: params}
}

func refused(err error) bool {
	_, is := errors.AsType[*refusal.Error](err)
	return is
}

// tokens returns how many tokens the turns of a session have taken, as far as the agent tells. Agents count in the form of ACP's usage.
func (l *Library) tokens(ctx context.Context, session string) (sum int64, err error) {
	turns, err := l.entries.DoneTurns(ctx, session)
	for _, t := range turns {
		var usage struct {
			Total int64 `json:"totalTokens"`
		}
		if json.Unmarshal(t.Usage, &usage) == nil { // otherwise the agent tells something else
			sum += usage.Total
		}
	}
	return sum, err
}

// command returns the command of the project's tests, as the first member with a worktree has it.
func (l *Library) command(ctx context.Context, list []MemberResult) (*TestCommand, error) {
	for i := range list {
		if list[i].Problem != "" {
			continue
		}
		report, err := l.deps.Setups.Report(ctx, list[i].Session.ID)
		if err != nil {
			return nil, err
		}
		for _, e := range report.Executables {
			if e.Name == launch.Test {
				return &TestCommand{Line: e.Detail, Hash: e.Hash, Approved: e.Approved}, nil
			}
		}
		return nil, nil //nolint:nilnil // a project without tests
	}
	return nil, nil //nolint:nilnil // no member has a worktree
}

// Versions returns a file of a member as it is in the commit of the comparison, and on disk. was is the path in the commit; "" = the same.
func (l *Library) Versions(ctx context.Context, id, member, path, was string) (landing.FileVersions, error) {
	r, err := l.get(id)
	if err != nil {
		return landing.FileVersions{}, err
	}
	if r.member(member) == nil {
		return landing.FileVersions{}, refusal.Bad(refusedMember, "session", member)
	}
	return l.deps.Sessions.Landing().FileSince(ctx, member, r.Commit, path, was)
}

// within returns the path of a file from the directory of a session in a worktree. path is relative to the worktree, with slashes.
func within(s session.Session, path string) (string, error) {
	if s.Worktree == nil {
		return path, nil
	}
	prefix, err := filepath.Rel(s.Worktree.Path, s.Cwd)
	if err != nil || prefix == "." {
		return path, nil //nolint:nilerr // the directory was moved: the file is looked for in it
	}
	name, is := strings.CutPrefix(path, filepath.ToSlash(prefix)+"/")
	if !is {
		return "", refusal.Bad(refusedOutside, "path", path)
	}
	return name, nil
}
