package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"deskhand/backend"
)

type sessionsWorktree struct {
	common
	ID      string `arg:"" help:"The conversation: its id, the beginning of it, or last."`
	Remove  bool   `xor:"do" help:"Remove it. What nobody has committed is kept in the repository first."`
	Restore bool   `xor:"do" help:"Bring a removed one back as it was."`
	Yes     bool   `short:"y" help:"Do not ask."`
	JSON    bool   `name:"json" help:"Print the worktree, or what was removed and kept, as JSON."`
}

// treeRemoval decodes the printed part of a worktree's removal.
type treeRemoval struct {
	Branch       string
	BranchStays  bool
	Commits      int
	ChangedTotal int
	Ignored      []struct {
		Path  string
		Files int
		Bytes int64
	}
	IgnoredTotal int
	IgnoredBytes int64
	Others       []string
	Running      string
	Kept         *struct{ Ref string }
	Left         string
}

// Run describes the worktree of a conversation, removes the worktree or restores the worktree.
func (c *sessionsWorktree) Run(p *Program) error {
	return p.withAPI(c.common, func(ctx context.Context, _ *backend.Backend, api *api) error {
		list, err := api.sessions(ctx, []string{c.ID})
		if err != nil {
			return err
		}
		s := list[0]
		if s.Worktree == nil {
			return &failure{exitUsage, errors.New("this conversation has no worktree of its own")}
		}
		path := "sessions/" + url.PathEscape(s.ID) + "/worktree"
		switch {
		case c.Remove:
			return c.remove(ctx, p, api, s, path)
		case c.Restore:
			return c.restore(ctx, p, api, s, path)
		case c.JSON:
			return printJSON(p.Stdout, s.Worktree)
		}
		return tellTree(p, s)
	})
}

func (c *sessionsWorktree) restore(ctx context.Context, p *Program, api *api, s backend.Session, path string) error {
	if err := api.call(ctx, "POST", path+"/restore", nil, nil); err != nil {
		return refusedTree(ctx, err)
	}
	if !c.JSON {
		return p.print("%s is back, on %s\n", printable(s.Worktree.Path), printable(s.Worktree.Branch))
	}
	if err := api.call(ctx, "GET", "sessions/"+url.PathEscape(s.ID), nil, &s); err != nil {
		return unanswered(ctx, err)
	}
	return printJSON(p.Stdout, s.Worktree)
}

func tellTree(p *Program, s backend.Session) error {
	w := s.Worktree
	text := fmt.Sprintf("%s\nbranch      %s\nrepository  %s\nstate       %s\n", printable(w.Path), printable(w.Branch), printable(w.Repository), w.State)
	if w.Kept != nil {
		text += fmt.Sprintf("kept        %s in %s\n", files(w.Kept.Files), w.Kept.Ref)
	}
	if w.Left != "" {
		text += fmt.Sprintf("left        %s, which could not be deleted\n", printable(w.Left))
	}
	return p.print("%s", text)
}

// directoryOf is a conversation's working directory as a list shows the directory.
func directoryOf(s backend.Session) string {
	switch {
	case s.Worktree == nil:
		return printable(s.Cwd)
	case s.Worktree.State == "ready":
		return printable(s.Cwd) + " (worktree)"
	}
	return printable(s.Cwd) + " (worktree, " + s.Worktree.State + ")"
}

// freeBranch asks the API for an unused branch name for a new worktree in cwd.
func (a *api) freeBranch(ctx context.Context, cwd, base, name string) (string, error) {
	const most = 300 // runes of name that matter for the branch's name
	if runes := []rune(name); len(runes) > most {
		name = string(runes[:most])
	}
	var plan struct{ Branch string }
	if err := a.call(ctx, "GET", "worktrees/plan?"+url.Values{"cwd": {cwd}, "base": {base}, "name": {name}}.Encode(), nil, &plan); err != nil {
		return "", &failure{exitUsage, refusedTree(ctx, err)}
	}
	return plan.Branch, nil
}

func files(n int) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}

// remove shows the effect of a removal, asks, and removes the worktree.
func (c *sessionsWorktree) remove(ctx context.Context, p *Program, api *api, s backend.Session, path string) error {
	var would, done treeRemoval
	if err := api.call(ctx, "DELETE", path+"?preview=true", nil, &would); err != nil {
		return refusedTree(ctx, err)
	}
	if !c.Yes {
		if !isTerminal(p.Stdin) {
			return &failure{exitUsage, errors.New("this is no terminal to ask at; --yes removes it without asking")}
		}
		p.say("%s%sRemove it? Type yes to do it: ", printable(s.Worktree.Path)+"\n", would.words())
		if err := p.yes(ctx, "nothing was removed"); err != nil {
			return err
		}
	}
	var raw json.RawMessage
	if err := api.call(ctx, "DELETE", path, nil, &raw); err != nil {
		return refusedTree(ctx, err)
	}
	if err := json.Unmarshal(raw, &done); err != nil || c.JSON {
		return errors.Join(err, printJSON(p.Stdout, raw))
	}
	if done.Left != "" {
		p.say("not all of it could be deleted: what is left lies in %s, and nothing in it is needed\n", printable(done.Left))
	}
	if done.Kept != nil {
		return p.print("removed %s\n%s kept in %s; --restore brings them back, and so does git stash apply\n", printable(s.Worktree.Path), files(would.ChangedTotal), done.Kept.Ref)
	}
	return p.print("removed %s\n", printable(s.Worktree.Path))
}

// words describes the effect of a removal.
func (r treeRemoval) words() string {
	var text strings.Builder
	switch {
	case !r.BranchStays:
		fmt.Fprintf(&text, "  the branch %s has no work, and goes\n", printable(r.Branch))
	case r.Branch != "":
		fmt.Fprintf(&text, "  the branch %s stays, with %d commits of its own\n", printable(r.Branch), r.Commits)
	}
	if r.ChangedTotal > 0 {
		fmt.Fprintf(&text, "  kept: %s that nobody has committed\n", files(r.ChangedTotal))
	}
	if r.IgnoredTotal > 0 {
		fmt.Fprintf(&text, "  gone: %s that the repository ignores (%s)\n", files(r.IgnoredTotal), bytesOf(r.IgnoredBytes))
		const most = 10
		for i, f := range r.Ignored {
			if i == most {
				fmt.Fprintf(&text, "    and %d more\n", len(r.Ignored)-most)
				break
			}
			fmt.Fprintf(&text, "    %s  %s\n", printable(f.Path), bytesOf(f.Bytes))
		}
	}
	for _, title := range r.Others {
		fmt.Fprintf(&text, "  another conversation works there: %s\n", printable(title))
	}
	return text.String()
}

func bytesOf(n int64) string {
	const kibi = 1 << 10
	units := []string{"B", "KiB", "MiB", "GiB"}
	size, unit := float64(n), 0
	for size >= kibi && unit < len(units)-1 {
		size, unit = size/kibi, unit+1
	}
	if unit == 0 {
		return fmt.Sprintf("%d B", n)
	}
	return fmt.Sprintf("%.1f %s", size, units[unit])
}

// refusedTree explains why a worktree is absent or stays.
func refusedTree(ctx context.Context, err error) error {
	p, ok := errors.AsType[*problem](err)
	if !ok {
		return unanswered(ctx, err)
	}
	path, branch := printable(p.Params["path"]), printable(p.Params["branch"])
	text := map[string]string{
		"worktree.none":          "this conversation has no worktree of its own",
		"worktree.elsewhere":     "worktrees are made on this computer only",
		"worktree.no_git":        "git was not found on this computer",
		"worktree.no_repository": path + " is in no git repository",
		"worktree.bare":          "the repository is bare: there are no files here",
		"worktree.no_commit":     "the repository has no commit yet",
		"worktree.submodule":     "the directory belongs to a submodule",
		"worktree.subdirectory":  path + " is in no commit, so that a worktree would not have it",
		"worktree.base":          "there is no branch or commit called " + printable(p.Params["base"]),
		"worktree.branch_name":   "git takes no branch called " + branch,
		"worktree.branch_taken":  "there is a branch called " + branch + ", or one that leaves no room for it",
		"worktree.exists":        path + " is there already",
		"worktree.unwritable":    path + " cannot be written",
		"worktree.disk_full":     "the disk is full",
		"worktree.locked":        "another git is at work in it, or somebody has locked it",
		"worktree.unfinished":    "a merge, a rebase or the like is not finished in it: finish it, or give it up",
		"worktree.unreadable":    path + " cannot be read, so that what is in it could not be kept: allow it, or delete it yourself",
		"worktree.nested":        path + " is a git repository of its own, which could not be kept: move it away",
		"worktree.submodules":    "the submodule " + path + " is checked out in it, and could not be kept: git submodule deinit removes it",
		"worktree.busy":          "an agent is working there (" + printable(p.Params["title"]) + "); wait until it is done, or stop it",
		"worktree.changing":      "another program is writing there",
		"worktree.in_use":        "the branch " + branch + " is checked out elsewhere",
		"worktree.branch_moved":  "the branch " + branch + " has other commits by now; git stash apply " + p.Params["ref"] + " brings back what was kept",
		"worktree.programs":      "the repository has git run a program, by " + printable(p.Params["setting"]) + "; git config --global allows it, if it is yours",
		"worktree.filter_missing": printable(p.Params["program"]) + " is not installed, and git is to run it for files of the repository, by " + printable(p.Params["setting"]) +
			": install it, or take the setting out with git config --global --unset",
		"worktree.filter":  "git would keep something else of " + path + " than what stands in it (a filter, or line ends): commit it or move it away first",
		"worktree.aside":   "a removal was cut off: what was there is in " + printable(p.Params["aside"]) + ", and something new in " + path + ": move the new one away, and start deskhand again",
		"worktree.working": "it is being removed, or brought back",
		"worktree.removed": "it is removed; --restore brings it back",
		"worktree.there":   "it is there",
		"worktree.gone":    path + " is no worktree any more",
		"worktree.failed":  "git failed: " + printable(p.Params["detail"]),
	}[p.Code]
	if text == "" {
		return unanswered(ctx, err)
	}
	return errors.New(text)
}
