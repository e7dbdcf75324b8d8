package landing

import (
	"context"
	"errors"
	"slices"
	"strings"

	"deskhand/backend/git"
	"deskhand/backend/refusal"
)

// PushRequest is a push that a person asks for.
type PushRequest struct {
	Remote  string `json:"remote,omitempty" maxLength:"200" doc:"Name of a remote; absent for the first of the status"`
	NoHooks bool   `json:"noHooks,omitempty" doc:"Runs no hook of the repository. Without it, a push is refused while a hook is not approved"`
}

// Pushed is a push that succeeded.
type Pushed struct {
	Remote   string `json:"remote"`
	Branch   string `json:"branch"`
	Upstream string `json:"upstream"`
}

// Push sends the branch that is checked out to a remote, and has the branch follow the one there. Push replaces nothing on the remote: where
// the remote has commits that are not here, the push is refused.
func (l *Library) Push(ctx context.Context, id string, r PushRequest) (Pushed, error) {
	if err := l.deps.Writable(); err != nil {
		return Pushed{}, err
	}
	p, err := l.open(ctx, id)
	if err != nil {
		return Pushed{}, err
	}
	release, err := l.claim(p)
	if err != nil {
		return Pushed{}, err
	}
	defer release()
	now, err := l.status(ctx, p)
	if err != nil {
		return Pushed{}, err
	}
	remote, err := now.target(r)
	if err != nil {
		return Pushed{}, err
	}
	ref := "refs/heads/" + now.Branch
	said, err := l.lines(ctx, p, run{fetch: true, hooks: !r.NoHooks}, "push", "--porcelain", "--set-upstream", "--end-of-options", remote, ref+":"+ref)
	if err != nil {
		return Pushed{}, l.notPushed(err, said, now.Branch, remote)
	}
	return Pushed{remote, now.Branch, remote + "/" + now.Branch}, nil
}

// target returns the remote to push to, or why there can be no push.
func (s *RepositoryStatus) target(r PushRequest) (string, error) {
	remote := r.Remote
	if remote == "" && len(s.Remotes) > 0 {
		remote = s.Remotes[0]
	}
	switch {
	case s.Branch == "":
		return "", &refusal.Error{Code: refusedBranch}
	case s.Head == "":
		return "", &refusal.Error{Code: refusedFirst}
	case !slices.Contains(s.Remotes, remote):
		return "", &refusal.Error{Code: refusedRemote}
	case len(s.Hooks) > 0 && !r.NoHooks:
		return "", &refusal.Error{Code: refusedHooks, Params: map[string]string{"names": strings.Join(s.Hooks, ", ")}}
	}
	return remote, nil
}

// notPushed returns the refusal for a push that failed, by what git said on both of its outputs.
func (l *Library) notPushed(err error, said []string, branch, remote string) error {
	status, is := errors.AsType[*git.StatusError](err)
	if !is {
		return l.refused(err)
	}
	lines := []string{status.Stderr}
	for _, line := range said {
		if rest, refused := strings.CutPrefix(line, "!\t"); refused { // a ref, and why the remote did not take it
			lines = append(lines, rest)
		}
	}
	words := strings.TrimSpace(strings.Join(lines, "\n"))
	has := func(text string) bool { return strings.Contains(words, text) }
	switch {
	case has("(fetch first)"), has("(non-fast-forward)"):
		return &refusal.Error{Code: refusedRejected, Params: map[string]string{"branch": branch, "remote": remote}}
	case has("could not read Username"), has("could not read Password"), has("Authentication failed"), has("Permission denied ("), has("Host key verification failed"):
		return &refusal.Error{Code: refusedLogin, Params: map[string]string{"remote": remote, "detail": l.deps.Clean(words)}}
	}
	return l.refused(&git.StatusError{Code: status.Code, Stderr: words})
}
