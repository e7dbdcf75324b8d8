package landing

import (
	"context"
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
	args := []string{"push", "--porcelain", "--set-upstream"}
	if r.NoHooks {
		args = append(args, "--no-verify")
	}
	ref := "refs/heads/" + now.Branch
	said, err := l.lines(ctx, p, run{fetch: true, hooks: !r.NoHooks}, append(args, "--end-of-options", remote, ref+":"+ref)...)
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
	known := false
	for _, name := range s.Remotes {
		known = known || name == remote
	}
	switch {
	case s.Branch == "":
		return "", &refusal.Error{Code: refusedBranch}
	case s.Head == "":
		return "", &refusal.Error{Code: refusedFirst}
	case !known:
		return "", &refusal.Error{Code: refusedRemote}
	case len(s.Hooks) > 0 && !r.NoHooks:
		return "", &refusal.Error{Code: refusedHooks, Params: map[string]string{"names": strings.Join(s.Hooks, ", ")}}
	}
	return remote, nil
}

// notPushed returns the refusal for a push that failed, by what git said on both of its outputs.
func (l *Library) notPushed(err error, said []string, branch, remote string) error {
	for _, line := range said {
		if strings.HasPrefix(line, "!") && (strings.Contains(line, "(fetch first)") || strings.Contains(line, "(non-fast-forward)")) {
			return &refusal.Error{Code: refusedRejected, Params: map[string]string{"branch": branch, "remote": remote}}
		}
	}
	for _, words := range []string{
		"could not read Username", "could not read Password", "Authentication failed", "Permission denied (", "terminal prompts disabled",
		"Host key verification failed",
	} {
		if failedWith(err, words) {
			status := l.refused(err)
			if refused, is := status.(*refusal.Error); is { //nolint:errorlint // refused wraps nothing
				return &refusal.Error{Code: refusedLogin, Params: map[string]string{"remote": remote, "detail": refused.Params["detail"]}}
			}
		}
	}
	for _, line := range said { // a hook of the remote, for example, says why here
		if strings.HasPrefix(line, "!") {
			_, why, _ := strings.Cut(line, "\t")
			err = joinStderr(err, why)
		}
	}
	return l.refused(err)
}

// joinStderr adds a line to what a failed git said.
func joinStderr(err error, line string) error {
	status, is := err.(*git.StatusError) //nolint:errorlint // git.Run wraps no such error
	if !is {
		return err
	}
	return &git.StatusError{Code: status.Code, Stderr: strings.TrimSpace(status.Stderr + "\n" + line)}
}
