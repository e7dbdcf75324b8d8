package worktrees

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/google/uuid"

	"deskhand/backend/host"
	"deskhand/backend/refusal"
	"deskhand/backend/workspace"
	"deskhand/backend/worktree"
)

// WorktreePlan describes the worktree that a new session would get.
type WorktreePlan struct {
	Repository string `json:"repository" doc:"Worktree that the directory is in"`
	Path       string `json:"path"`
	Cwd        string `json:"cwd" doc:"Directory in which the session would work: the directory's place in the worktree"`
	Branch     string `json:"branch" doc:"Free name of a branch"`
	Base       string `json:"base" doc:"Commit with which the worktree would begin"`
	BaseBranch string `json:"baseBranch,omitempty" doc:"Branch with which the worktree would begin; absent where it begins with a commit"`
	On         string `json:"on,omitempty" doc:"Branch that is checked out now; absent where none is"`

	Bases []WorktreeBase `json:"bases" doc:"Branches with which it could begin: first the one that is checked out, then the default one, then the newest. At most 500"`

	Changed int `json:"changed" doc:"Number of uncommitted files, which the worktree would not have"`
}

// WorktreeBase is a branch with which a worktree can begin.
type WorktreeBase struct {
	Name   string `json:"name" doc:"Such as main or origin/main"`
	Remote bool   `json:"remote,omitempty" doc:"A remote's branch, as of the last fetch"`
}

// Plan describes the worktree that a session in a directory would get. The branch is named after name, a purpose in a person's words, and
// begins at base; with "", at the commit that is checked out.
func (l *Library) Plan(ctx context.Context, cwd, name, base string) (WorktreePlan, error) {
	cwd, err := workspace.Directory(cwd)
	if err != nil {
		return WorktreePlan{}, err
	}
	place, from, err := l.placeInGit(ctx, cwd, base)
	if err != nil {
		return WorktreePlan{}, err
	}
	bases, err := l.bases(ctx, place)
	if err != nil {
		return WorktreePlan{}, l.refused(err, cwd, row{})
	}
	changed, err := l.git.Changed(ctx, place)
	if err != nil {
		return WorktreePlan{}, l.refused(err, cwd, row{})
	}
	branch, path, err := l.freeBranch(ctx, place, name)
	if err != nil {
		return WorktreePlan{}, l.refused(err, cwd, row{})
	}
	return WorktreePlan{
		Repository: place.Top, Path: path, Cwd: filepath.Join(path, place.Prefix), Branch: branch,
		Base: place.Head, BaseBranch: from, On: place.Branch, Bases: bases, Changed: changed,
	}, nil
}

func (l *Library) bases(ctx context.Context, place worktree.Place) ([]WorktreeBase, error) {
	list, err := l.git.Bases(ctx, place)
	bases := make([]WorktreeBase, 0, len(list))
	for _, b := range list {
		bases = append(bases, WorktreeBase{Name: b.Name, Remote: b.Remote})
	}
	return bases, err
}

// placeInGit finds the repository of a directory, with the commit of base as its head, and refuses a directory that the commit does not have.
// from is the branch that base stands for: the one that is checked out, for "". A base that is a commit has none.
func (l *Library) placeInGit(ctx context.Context, cwd, base string) (place worktree.Place, from string, err error) {
	if place, err = l.git.Look(ctx, cwd); err != nil {
		return place, "", l.refused(err, cwd, row{})
	}
	from = place.Branch
	if base != "" {
		at, err := l.git.At(ctx, place, base)
		if errors.Is(err, worktree.ErrBase) {
			return place, "", refusal.Bad(refusedBase, "base", base)
		}
		if err != nil {
			return place, "", l.refused(err, cwd, row{})
		}
		place.Head, from = at.Commit, ""
		if at.Branch {
			from = at.Name
		}
	}
	has, err := l.git.Holds(ctx, place)
	if err == nil && !has {
		return place, "", refusal.Bad(refusedFolder, "path", cwd)
	}
	return place, from, err
}

const ourBranches = "deskhand/"

// freeBranch returns the free name of a branch, and the path of its worktree, where nothing is.
func (l *Library) freeBranch(ctx context.Context, place worktree.Place, name string) (branch, path string, err error) {
	const tries = 8
	prefix := ourBranches
	for range tries {
		const short = 6
		id := uuid.NewString()[:short]
		branch = prefix + slug(l.deps.Sessions.Clean(name)) + "-" + id
		path = pathOf(place, branch)
		taken, err := l.git.Has(ctx, place, branch)
		switch {
		case err != nil:
			return "", "", err
		case !taken && host.Gone(path):
			return branch, path, nil
		case taken:
			prefix = strings.ReplaceAll(ourBranches, "/", "-") // a branch called deskhand rules out deskhand/…
		}
	}
	return "", "", fmt.Errorf("%w: %s", worktree.ErrTaken, branch)
}

// pathOf returns the path of the worktree of a branch.
func pathOf(place worktree.Place, branch string) string {
	return filepath.Join(place.Beside(), strings.ReplaceAll(strings.TrimPrefix(branch, ourBranches), "/", "-"))
}

// slug returns a text as a part of the name of a branch and of a directory.
func slug(text string) string {
	const most, otherwise = 32, "work"
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if b.Len()+len(word) > most {
			break
		}
		if b.Len() > 0 {
			b.WriteByte('-')
		}
		b.WriteString(word)
	}
	if b.Len() == 0 {
		return otherwise
	}
	return b.String()
}

// Start is what a worktree is made from.
type Start struct {
	Session string // the id of the session, which is the id of the worktree too
	Cwd     string // the directory of the repository that the session's directory will stand for
	Branch  string // "" = a free name after Title
	Base    string // the branch or commit with which the branch begins; "" = the commit that is checked out
	Commit  string // with which the branch begins in place of the newest commit of Base; "" = that one
	Title   string
}

// Pending is a claimed worktree whose session is not stored yet. Its owner calls Store or Discard, and then Release.
type Pending struct {
	Cwd string // the directory of the session

	l   *Library
	row row
}

// Make makes the worktree in which a session is to begin.
func (l *Library) Make(ctx context.Context, n Start) (*Pending, error) {
	place, from, err := l.placeInGit(ctx, n.Cwd, cmp.Or(n.Commit, n.Base))
	if err != nil {
		return nil, err
	}
	if n.Commit != "" {
		from = n.Base
	}
	branch, path := n.Branch, pathOf(place, n.Branch)
	if branch == "" {
		branch, path, err = l.freeBranch(ctx, place, n.Title)
	} else {
		// A path with something at it must not be stored: after a kill it would be taken for a half made worktree.
		err = l.git.Takes(ctx, place, path, branch)
	}
	r := row{id: n.Session, main: place.Main, repository: place.Top, path: path, branch: branch, base: place.Head, baseBranch: from, state: stateMaking}
	cwd := filepath.Join(path, place.Prefix)
	if err == nil {
		// A row in a directory that still has the record of a renamed directory would follow the renamed directory, to a repository that has
		// nothing of the worktree. Once the row is reserved, its path cannot be left any more: a move waits for the claim.
		if err := l.deps.Sessions.Record(ctx, cwd, place.Main, place.Top); err != nil {
			return nil, err
		}
	}
	if err == nil && !l.reserve(r) {
		err = worktree.ErrExists
	}
	if err != nil {
		return nil, l.refused(err, n.Cwd, r)
	}
	if err := l.makeReserved(ctx, place, n.Cwd, r); err != nil {
		l.release(r.id)
		return nil, err
	}
	return &Pending{Cwd: cwd, l: l, row: r}, nil
}

func (l *Library) makeReserved(ctx context.Context, place worktree.Place, cwd string, r row) error {
	if err := l.store(ctx, r, nil); err != nil {
		l.forget(r.id)
		return err
	}
	if err := l.git.Make(ctx, place, r.path, r.branch); err != nil {
		return errors.Join(l.refused(err, cwd, r), l.drop(ctx, r.id))
	}
	return nil
}

// Store stores the worktree as ready, in one transaction with the session, which session writes.
func (p *Pending) Store(ctx context.Context, session func(*sql.Tx) error) error {
	ready := p.row
	ready.state = stateReady
	return p.l.store(ctx, ready, session)
}

// Discard removes a worktree whose session was not stored. After a Store, Discard does nothing.
func (p *Pending) Discard(ctx context.Context) error {
	l, r := p.l, p.row
	if l.get(r.id).state != stateMaking {
		return nil
	}
	_, err := l.git.Abandon(context.WithoutCancel(ctx), r.main, r.path, r.branch, worktree.Kept{Head: r.base})
	if err = l.rests(&r, err); err != nil {
		return err
	}
	return l.drop(ctx, r.id)
}

// Release ends the claim.
func (p *Pending) Release() { p.l.release(p.row.id) }
