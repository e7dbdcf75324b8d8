package worktree

import (
	"context"
	"regexp"
	"slices"
	"strings"
)

// Base is a branch, or a commit, at which the branch of a new worktree can begin.
type Base struct {
	Name   string // as a person says it, such as main or origin/main; of a commit, what the person has said
	Commit string
	Branch bool // Name is a branch, and no commit
	Remote bool // Name is a remote's branch, as of the last fetch
}

// mostBases are the branches that Bases returns at most.
const mostBases = "500"

// Bases returns the branches of a repository at which a worktree can begin: first the branch that is checked out, then the default one, then
// the newest.
func (l *Library) Bases(ctx context.Context, p Place) ([]Base, error) {
	said, err := l.lines(ctx, plan(p.Top), "for-each-ref", "--sort=-committerdate", "--count="+mostBases, "--format=%(refname) %(objectname) %(symref)", "refs/heads", "refs/remotes")
	var list []Base
	var usual string // the branch that a clone checks out, as a remote's branch
	for _, line := range said {
		const fields = 3
		f := strings.SplitN(line, " ", fields)
		if len(f) != fields {
			continue
		}
		if f[2] != "" {
			if of, is := strings.CutPrefix(f[2], "refs/remotes/"); is && (usual == "" || strings.HasPrefix(f[0], "refs/remotes/origin/")) {
				usual = of
			}
			continue
		}
		b := Base{Commit: f[1], Branch: true}
		if b.Name, b.Remote = strings.CutPrefix(f[0], "refs/remotes/"); !b.Remote {
			b.Name = strings.TrimPrefix(f[0], "refs/heads/")
		}
		list = append(list, b)
	}
	slices.SortStableFunc(list, func(a, b Base) int { return a.rank(p.Branch, usual) - b.rank(p.Branch, usual) })
	return list, err
}

// rank returns the place of a branch among the bases; usual is the default branch of a remote, or "".
func (b Base) rank(current, usual string) int {
	_, local, _ := strings.Cut(usual, "/")
	names := []string{"main", "master", "trunk", "develop"}
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
	for _, from := range []string{"refs/heads/", "refs/remotes/", "refs/tags/"} {
		_, err := l.say(ctx, plan(p.Top), "show-ref", "--verify", "--quiet", "--", from+name)
		if ended(err) {
			continue
		}
		if err != nil {
			return Base{}, err
		}
		b, err := l.based(ctx, p, name, from+name)
		b.Branch, b.Remote = from != "refs/tags/", from == "refs/remotes/"
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
