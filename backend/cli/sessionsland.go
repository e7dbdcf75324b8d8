package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"deskhand/backend"
)

type sessionsLand struct {
	common
	ID      string `arg:"" help:"The conversation: its id, the beginning of it, or last."`
	Base    string `help:"The branch to compare with and to merge into; the most likely one without it."`
	Commit  bool   `help:"Commit every file that is not committed."`
	Message string `short:"m" help:"Message of the commit, and of a merge; what the conversation is about without it."`
	Update  bool   `help:"Bring the commits of the base into the branch first."`
	Merge   bool   `help:"Merge the branch into the base."`
	How     string `enum:"merge,squash,rebase,forward" default:"merge" help:"How to merge: merge, squash, rebase or forward."`
	Stash   bool   `help:"Put aside what is not committed where the base is checked out, if it is in the way, and bring it back."`
	Push    bool   `help:"Push the branch to its remote."`
	NoHooks bool   `help:"Run no hook of the repository."`
	JSON    bool   `name:"json" help:"Print what was done as JSON; without a step, the comparison."`

	pullRequestFlags
}

// compared decodes the comparison of a branch with its base.
type compared struct {
	Base       string   `json:"base"`
	BaseCommit string   `json:"baseCommit"`
	Head       string   `json:"head"`
	Ahead      int      `json:"ahead"`
	Behind     int      `json:"behind"`
	CheckedOut string   `json:"checkedOut,omitempty"`
	Conflicts  []string `json:"conflicts"`
	Message    string   `json:"message"`
	Files      []struct {
		Path        string `json:"path"`
		Kind        string `json:"kind"`
		Added       int    `json:"added"`
		Removed     int    `json:"removed"`
		Uncommitted bool   `json:"uncommitted,omitempty"`
	} `json:"files"`
}

// landed is what the steps of sessions land have done.
type landed struct {
	Commit  string `json:"commit,omitempty"`
	Updated string `json:"updated,omitempty"`
	Base    string `json:"base,omitempty"`
	Merged  string `json:"merged,omitempty"`
	Stashed string `json:"stashed,omitempty"`
	Pushed  string `json:"pushed,omitempty"`

	PullRequest string `json:"pullRequest,omitempty"` // its address
	Page        string `json:"page,omitempty"`        // of the forge, on which a person makes it
}

// Run shows what the branch of a conversation would bring into its base, or takes the steps that are asked for, in the order of their flags. A
// step that is refused ends the command; the steps before stay done.
func (c *sessionsLand) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		id, err := api.find(ctx, c.ID)
		if err != nil {
			return err
		}
		path := "sessions/" + url.PathEscape(id) + "/repository"
		if !c.Commit && !c.Update && !c.Merge && !c.Push && !c.PR {
			return c.tell(ctx, p, api, path)
		}
		done, err := c.land(ctx, api, path)
		if err == nil && c.PR {
			err = c.pull(ctx, api, id, &done)
		}
		if c.JSON && (err == nil || done != landed{}) {
			err = errors.Join(err, printJSON(p.Stdout, done))
		} else if text := done.words(); text != "" {
			err = errors.Join(err, p.print("%s", text))
		}
		return err
	})
}

// tell prints the comparison with the base.
func (c *sessionsLand) tell(ctx context.Context, p *Program, api *api, path string) error {
	s, err := c.compare(ctx, api, path)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(p.Stdout, s)
	}
	var text strings.Builder
	fmt.Fprintf(&text, "base       %s\nahead      %d commits\nbehind     %d commits\n", printable(s.Base), s.Ahead, s.Behind)
	if len(s.Conflicts) > 0 {
		fmt.Fprintf(&text, "conflicts  %s\n", printable(strings.Join(s.Conflicts, ", ")))
	}
	for _, f := range s.Files {
		state := ""
		if f.Uncommitted {
			state = "  (not committed)"
		}
		fmt.Fprintf(&text, "%-10s %s  +%d -%d%s\n", f.Kind, printable(f.Path), f.Added, f.Removed, state)
	}
	return p.print("%s", text.String())
}

func (c *sessionsLand) compare(ctx context.Context, api *api, path string) (s compared, err error) {
	query := ""
	if c.Base != "" {
		query = "?" + url.Values{"base": {c.Base}}.Encode()
	}
	return s, notLanded(ctx, api.call(ctx, "GET", path+"/base"+query, nil, &s))
}

// land takes the steps that are asked for.
func (c *sessionsLand) land(ctx context.Context, api *api, path string) (done landed, err error) {
	if c.Commit {
		if done.Commit, err = c.commit(ctx, api, path); err != nil {
			return done, err
		}
	}
	if c.Update || c.Merge {
		if err := c.join(ctx, api, path, &done); err != nil {
			return done, err
		}
	}
	if c.Push {
		var pushed struct{ Upstream string }
		if err := notLanded(ctx, api.call(ctx, "POST", path+"/push", map[string]any{"noHooks": c.NoHooks}, &pushed)); err != nil {
			return done, err
		}
		done.Pushed = pushed.Upstream
	}
	return done, nil
}

// pull makes a pull request.
func (c *sessionsLand) pull(ctx context.Context, api *api, id string, done *landed) error {
	address, page, err := c.make(ctx, api, id, c.Base, c.NoHooks)
	if page {
		done.Page = address
	} else {
		done.PullRequest = address
	}
	if _, refused := errors.AsType[*problem](err); refused { // by git, and not by the forge
		err = notLanded(ctx, err)
	}
	return err
}

// commit commits every file that is not committed, and returns the commit; "" where there is none.
func (c *sessionsLand) commit(ctx context.Context, api *api, path string) (string, error) {
	var now struct {
		Head, Message string
		Files         []struct{ Path string }
	}
	if err := notLanded(ctx, api.call(ctx, "GET", path, nil, &now)); err != nil || len(now.Files) == 0 {
		return "", err
	}
	paths := make([]string, 0, len(now.Files))
	for _, f := range now.Files {
		paths = append(paths, f.Path)
	}
	var made struct{ Commit string }
	request := map[string]any{"head": now.Head, "paths": paths, "message": cmp.Or(c.Message, now.Message), "noHooks": c.NoHooks}
	return made.Commit, notLanded(ctx, api.call(ctx, "POST", path+"/commit", request, &made))
}

// join brings the branch and the base together.
func (c *sessionsLand) join(ctx context.Context, api *api, path string, done *landed) error {
	s, err := c.compare(ctx, api, path)
	if err != nil {
		return err
	}
	if c.Update && s.Behind > 0 {
		how := "merge"
		if c.How == "rebase" {
			how = c.How
		}
		var updated struct{ Commit string }
		if err := notLanded(ctx, api.call(ctx, "POST", path+"/update", map[string]any{"base": s.Base, "head": s.Head, "how": how, "noHooks": c.NoHooks}, &updated)); err != nil {
			return err
		}
		done.Base, done.Updated = s.Base, updated.Commit
		if s, err = c.compare(ctx, api, path); err != nil {
			return err
		}
	}
	if !c.Merge {
		return nil
	}
	var merged struct{ Base, Commit, Stashed string }
	err = notLanded(ctx, api.call(ctx, "POST", path+"/merge", map[string]any{
		"base": s.Base, "baseCommit": s.BaseCommit, "head": s.Head, "how": c.How, "message": cmp.Or(c.Message, s.Message), "stash": c.Stash, "noHooks": c.NoHooks,
	}, &merged))
	if err == nil {
		done.Base, done.Merged, done.Stashed = merged.Base, merged.Commit, merged.Stashed
	}
	return err
}

// words tells the steps, a line each.
func (d landed) words() string {
	text := ""
	add := func(done, format string, args ...any) {
		if done != "" {
			text += fmt.Sprintf(format+"\n", args...)
		}
	}
	add(d.Commit, "committed %s", d.Commit)
	add(d.Updated, "updated from %s, now %s", printable(d.Base), d.Updated)
	add(d.Merged, "merged into %s, now %s", printable(d.Base), d.Merged)
	add(d.Stashed, "uncommitted changes there conflict with it; they are in the stash %s", d.Stashed)
	add(d.Pushed, "pushed to %s", printable(d.Pushed))
	add(d.PullRequest, "pull request %s", printable(d.PullRequest))
	add(d.Page, "make the pull request at %s", printable(d.Page))
	return text
}

// notLanded explains why a step was refused.
func notLanded(ctx context.Context, err error) error {
	p, ok := errors.AsType[*problem](err)
	if !ok {
		return unanswered(ctx, err)
	}
	said := func(name string) string { return printable(p.Params[name]) }
	text := map[string]string{
		"landing.base":             "there is no branch " + said("base"),
		"landing.behind":           said("base") + " has other commits: --update brings them in, or choose another --how",
		"landing.conflict":         said("path") + " has conflicts",
		"landing.conflicts":        "both sides have changed the same lines of " + said("paths") + "; nothing was done",
		"landing.elsewhere":        "the repository is on another computer",
		"landing.even":             said("base") + " has every commit of the branch already",
		"landing.failed":           "git refused: " + said("detail"),
		"landing.hooks":            "nobody has approved what git would run: " + said("names") + "; deskhand trust shows it, and --no-hooks runs none",
		"landing.in_the_way":       "uncommitted changes in " + said("path") + " are in the way (" + said("paths") + "): --stash puts them aside and back",
		"landing.index":            "the commit " + said("commit") + " is made, but another git kept the directory busy: run git reset there",
		"landing.locked":           "another git works in the directory",
		"landing.login":            said("remote") + " asks for a login that git does not have",
		"landing.moved":            "there are new commits since; try again",
		"landing.no_author":        "git does not know your name: git config --global user.name and user.email",
		"landing.no_base":          "the repository has no other branch",
		"landing.no_branch":        "no branch is checked out",
		"landing.no_commit":        "there is no commit yet",
		"landing.no_git":           "git was not found on this computer",
		"landing.no_message":       "the commit needs a message: --message",
		"landing.no_remote":        "the repository has no remote",
		"landing.no_repository":    said("path") + " is in no git repository",
		"landing.old_git":          "comparing branches needs git 2.38 or newer",
		"landing.programs":         "the repository's own settings name a program for the way to the remote",
		"landing.rejected":         said("remote") + " has commits on " + said("branch") + " that are not here",
		"landing.remote_base":      said("base") + " is a remote's branch: --push, or name another --base",
		"landing.unfinished":       "a " + said("what") + " waits for its end",
		"landing.unfinished_there": "a " + said("what") + " waits for its end in " + said("path"),
		"landing.unrelated":        said("base") + " and the branch have no commit in common",
		"landing.working":          "git is at work here already",
	}[p.Code]
	if text == "" {
		return unanswered(ctx, err)
	}
	return errors.New(text)
}
