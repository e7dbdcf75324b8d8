package worktree

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"deskhand/backend/git"
)

// Base is a branch, or a commit, at which the branch of a new worktree can begin.
type Base struct {
	Name   string // as a person says it, such as main or origin/main; of a commit, what the person has said
	Commit string
	Branch bool // Name is a branch, and no commit
	Remote bool // Name is a remote's branch, as of the last fetch
}

// Bases returns the branches of a repository at which a worktree can begin, 500 at most: first the branch that is checked out, then the
// default one, then the newest.
func (l *Library) Bases(ctx context.Context, p Place) (list []Base, err error) {
	said, err := l.lines(ctx, plan(p.Top), git.AskBranches()...)
	branches, usual := git.ReadBranches(said)
	for _, b := range branches {
		list = append(list, Base{Name: b.Name, Commit: b.Commit, Branch: true, Remote: b.Remote})
	}
	slices.SortStableFunc(list, func(a, b Base) int { return a.rank(p.Branch, usual) - b.rank(p.Branch, usual) })
	return list, err
}

// rank returns the place of a branch among the bases; usual is the default branch of a remote, or "".
func (b Base) rank(current, usual string) int {
	_, local, _ := strings.Cut(usual, "/")
	names := git.MainBranches()
	switch {
	case !b.Remote && b.Name == current:
		return 0
	case !b.Remote && usual != "" && b.Name == local:
		return 1
	case b.Remote && b.Name == usual:
		return 2
	case usual == "" && !b.Remote && slices.Contains(names, b.Name):
		return 1 + slices.Index(names, b.Name)
	}
	return 1 + len(names)
}

var hex = regexp.MustCompile(`^[0-9a-fA-F]{4,64}$`)

// At returns the base that a person has named: a branch, a remote's branch, a tag or a commit. A name that git would read as more than a name,
// such as main~2, is [ErrBase].
func (l *Library) At(ctx context.Context, p Place, name string) (Base, error) {
	kinds := []string{"refs/heads/", "refs/remotes/", "refs/tags/"}
	args := []string{"for-each-ref", "--format=%(objecttype) %(objectname) %(refname)"}
	for _, kind := range kinds {
		args = append(args, kind+name)
	}
	said, err := l.lines(ctx, plan(p.Top), args...)
	if err != nil {
		return Base{}, err
	}
	for _, kind := range kinds {
		i := slices.IndexFunc(said, func(line string) bool { return strings.HasSuffix(line, " "+kind+name) })
		if i < 0 {
			continue
		}
		b := Base{Name: name, Branch: kind != "refs/tags/", Remote: kind == "refs/remotes/"}
		if commit, is := strings.CutPrefix(said[i], "commit "); is {
			b.Commit, _, _ = strings.Cut(commit, " ")
			return b, nil
		}
		at, err := l.based(ctx, p, name, kind+name)
		b.Commit = at.Commit
		return b, err
	}
	if !hex.MatchString(name) {
		return Base{}, ErrBase
	}
	return l.based(ctx, p, name, name)
}

// based returns the base of a revision.
func (l *Library) based(ctx context.Context, p Place, name, revision string) (Base, error) {
	commit, err := l.say(ctx, plan(p.Top), "rev-parse", "--verify", "--quiet", revision+"^{commit}")
	if ended(err) {
		err = ErrBase
	}
	return Base{Name: name, Commit: commit}, err
}
