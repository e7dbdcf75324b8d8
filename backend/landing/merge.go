package landing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deskhand/backend/git"
	"deskhand/backend/refusal"
)

// The ways to bring the commits of a branch into a base.
const (
	HowMerge   = "merge"   // a commit with both as parents
	HowSquash  = "squash"  // one commit with all changes
	HowRebase  = "rebase"  // the branch's commits anew, on top of the base
	HowForward = "forward" // the branch's commits as they are
)

// MergeRequest is a merge of a session's branch into a base that a person asks for.
type MergeRequest struct {
	Base       string `json:"base" maxLength:"1000" doc:"A branch of this repository, not of a remote"`
	BaseCommit string `json:"baseCommit" maxLength:"64" doc:"Commit of the base when it was shown"`
	Head       string `json:"head" maxLength:"64" doc:"Commit that was checked out when it was shown"`
	How        string `json:"how" enum:"merge,squash,rebase,forward" doc:"merge makes a commit with both as parents, squash one commit with all changes, rebase puts the branch's commits on top of the base, forward takes the branch's commits as they are and is refused where the base has others"`
	Message    string `json:"message,omitempty" maxLength:"100000" doc:"Message of the commit of merge and squash"`
	NoHooks    bool   `json:"noHooks,omitempty" doc:"Runs no hook of the repository. Without it, a merge is refused while a hook is not approved"`
	Stash      bool   `json:"stash,omitempty" doc:"Stashes what is not committed in the worktree of the base, and puts it back afterwards; without it, a merge is refused where that is in the way"`
}

// Merged is a merge that was made.
type Merged struct {
	Base    string `json:"base"`
	Commit  string `json:"commit" doc:"Commit that the base has now"`
	Stashed string `json:"stashed,omitempty" doc:"Commit of the stash that could not be put back without conflicts; git stash list names it"`
}

// Merge brings the commits of a session's branch into a base that is a branch of the same repository.
//
// The commit is the one that the preview has shown: its tree is that of [BaseStatus]. The base moves to the commit in one step, and, where a
// worktree has the base checked out, by git merge --ff-only there, which changes no file that has uncommitted changes. A Deskhand that ends in
// between leaves the base as it was, or merged; what was stashed is in git's list of stashes until it is back.
func (l *Library) Merge(ctx context.Context, id string, r MergeRequest) (Merged, error) {
	p, now, release, err := l.begin(ctx, id)
	if err != nil {
		return Merged{}, err
	}
	defer release()
	s, err := l.compare(ctx, p, now, r.Base)
	if err != nil {
		return Merged{}, err
	}
	hooks, err := l.unapproved(ctx, p.session.Cwd, s.CheckedOut)
	if err != nil {
		return Merged{}, err
	}
	if err := s.checkMerge(r, now, hooks); err != nil {
		return Merged{}, err
	}
	if r.How == HowRebase && s.Behind > 0 {
		if err := l.rebase(ctx, p, s, r.NoHooks); err != nil {
			return Merged{}, err
		}
		if s.Head, err = l.say(ctx, p, run{}, "rev-parse", "HEAD"); err != nil {
			return Merged{}, err
		}
	}
	commit, err := l.joined(ctx, p, s, r)
	if err != nil {
		return Merged{}, l.refused(err)
	}
	done := Merged{Base: s.Base, Commit: commit}
	done.Stashed, err = l.advance(ctx, p, s, r, commit)
	return done, err
}

// begin finds the repository of a session for a change, of which the caller is the only one until release is called.
func (l *Library) begin(ctx context.Context, id string) (p place, now RepositoryStatus, release func(), err error) {
	if err := l.deps.Writable(); err != nil {
		return p, now, nil, err
	}
	if p, err = l.open(ctx, id); err != nil {
		return p, now, nil, err
	}
	if release, err = l.claim(p); err != nil {
		return p, now, nil, err
	}
	if now, err = l.files(ctx, p); err != nil {
		release()
		return p, now, nil, err
	}
	return p, now, release, nil
}

// unapproved returns the programs that git would run in some directories and that nobody has approved.
func (l *Library) unapproved(ctx context.Context, dirs ...string) (names []string, err error) {
	for _, dir := range dirs {
		if dir == "" {
			continue
		}
		found, err := l.deps.Unapproved(ctx, dir)
		if err != nil {
			return nil, err
		}
		for _, name := range found {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, nil
}

// checkMerge returns why there can be no such merge.
func (s *BaseStatus) checkMerge(r MergeRequest, now RepositoryStatus, hooks []string) error {
	base := map[string]string{"base": s.Base}
	switch {
	case s.Remote:
		return &refusal.Error{Code: refusedRemoteBase, Params: base}
	case now.Unfinished != "" && now.Unfinished != "bisect":
		return &refusal.Error{Code: refusedUnfinished, Params: map[string]string{"what": now.Unfinished}}
	case s.Head != r.Head, s.BaseCommit != r.BaseCommit:
		return &refusal.Error{Code: refusedMoved}
	case s.Ahead == 0:
		return &refusal.Error{Code: refusedEven, Params: base}
	case r.How == HowForward && s.Behind > 0:
		return &refusal.Error{Code: refusedBehind, Params: base}
	case len(s.Conflicts) > 0:
		return &refusal.Error{Code: refusedConflicts, Params: map[string]string{"base": s.Base, "paths": named(s.Conflicts)}}
	case (r.How == HowMerge || r.How == HowSquash) && strings.TrimSpace(r.Message) == "":
		return refusal.Bad(refusedMessage)
	case len(hooks) > 0 && !r.NoHooks:
		return &refusal.Error{Code: refusedHooks, Params: map[string]string{"names": strings.Join(hooks, ", ")}}
	}
	return nil
}

// named lists paths in a sentence.
func named(paths []string) string {
	const most = 10
	if len(paths) > most {
		return strings.Join(paths[:most], ", ") + " …"
	}
	return strings.Join(paths, ", ")
}

// joined returns the commit that the base is to have.
func (l *Library) joined(ctx context.Context, p place, s BaseStatus, r MergeRequest) (string, error) {
	if r.How == HowForward || r.How == HowRebase {
		return s.Head, nil
	}
	tree, conflicts, err := l.merged(ctx, p, s)
	if err != nil {
		return "", err
	}
	if len(conflicts) > 0 { // of the commit of a rebase
		return "", &refusal.Error{Code: refusedMoved}
	}
	args := []string{"commit-tree", "-p", s.BaseCommit}
	if r.How == HowMerge {
		args = append(args, "-p", s.Head)
	}
	signs, err := l.say(ctx, p, run{}, "config", "--type=bool", "--get", "commit.gpgSign")
	if err != nil {
		return "", err
	}
	if signs == "true" {
		args = append(args, "-S")
	}
	said, err := l.lines(ctx, p, run{person: true, in: []byte(strings.TrimSpace(r.Message) + "\n")}, append(args, tree)...)
	if err != nil || len(said) == 0 {
		return "", err
	}
	return said[0], nil
}

// advance moves the base to a commit that contains the base, and returns a stash that could not be put back.
func (l *Library) advance(ctx context.Context, p place, s BaseStatus, r MergeRequest, commit string) (stashed string, err error) {
	said := "merge: " + cmp.Or(p.session.Title, s.Head)
	if s.CheckedOut == "" {
		err := l.git(ctx, p, run{}, "update-ref", "-m", said, "refs/heads/"+s.Base, commit, s.BaseCommit)
		if failedWith(err, "but expected") {
			return "", &refusal.Error{Code: refusedMoved}
		}
		return "", l.refused(err)
	}
	there := place{session: p.session, top: s.CheckedOut}
	where, err := l.say(ctx, there, run{}, "rev-parse", "--path-format=absolute", "--git-dir")
	if err != nil {
		return "", err
	}
	there.gitDir = filepath.FromSlash(where)
	release, err := l.claim(there)
	if err != nil {
		return "", err
	}
	defer release()
	now, err := l.files(ctx, there)
	switch {
	case err != nil:
		return "", err
	case now.Branch != s.Base || now.Head != s.BaseCommit:
		return "", &refusal.Error{Code: refusedMoved}
	case now.Unfinished != "" && now.Unfinished != "bisect":
		return "", &refusal.Error{Code: refusedUnfinishedThere, Params: map[string]string{"what": now.Unfinished, "path": s.CheckedOut}}
	}
	forward := func() error {
		return l.git(ctx, there, run{person: true, hooks: !r.NoHooks}, "merge", "--quiet", "--ff-only", "--no-stat", "--end-of-options", commit)
	}
	err = forward()
	if !failedWith(err, inTheWay) {
		return "", l.refused(err)
	}
	if !r.Stash {
		status, _ := errors.AsType[*git.StatusError](err)
		return "", &refusal.Error{Code: refusedInTheWay, Params: map[string]string{"path": s.CheckedOut, "paths": named(listed(status.Stderr))}}
	}
	return l.aside(ctx, there, p.session.Title, forward)
}

// inTheWay is in what git says when a merge would overwrite files.
const inTheWay = "would be overwritten by"

// listed returns the paths that git lists, one a line after a tab.
func listed(text string) (paths []string) {
	for line := range strings.Lines(text) {
		if path, is := strings.CutPrefix(line, "\t"); is {
			paths = append(paths, strings.TrimSpace(path))
		}
	}
	return paths
}

// aside stashes what is not committed in a worktree, runs act, and puts the stash back. A stash that cannot be put back without conflicts stays in
// git's list, leaves the conflicts in the files as git does, and is returned.
func (l *Library) aside(ctx context.Context, p place, title string, act func() error) (stashed string, err error) {
	ctx = context.WithoutCancel(ctx) // the stash comes back, whoever has stopped waiting
	said := "Deskhand: before " + cmp.Or(title, "a merge")
	if err := l.git(ctx, p, run{person: true}, "stash", "push", "--quiet", "--include-untracked", "-m", said); err != nil {
		return "", l.refused(err)
	}
	commit, err := l.say(ctx, p, run{}, "rev-parse", "--verify", "--quiet", "refs/stash")
	if err != nil {
		return "", err
	}
	acted := act()
	back := l.git(ctx, p, run{person: true}, "stash", "pop", "--quiet", "--index")
	switch {
	case back == nil:
		return "", l.refused(acted)
	case acted != nil:
		return "", errors.Join(l.refused(acted), fmt.Errorf("the stash %s is kept: %w", commit, back))
	case ended(back):
		return commit, nil
	}
	return commit, back
}

// rebase puts the commits of a branch on top of a base. A rebase that meets conflicts is taken back.
func (l *Library) rebase(ctx context.Context, p place, s BaseStatus, noHooks bool) error {
	r := run{person: true, hooks: !noHooks}
	err := l.git(ctx, p, r, rebase(s.BaseCommit)...)
	if err == nil {
		return nil
	}
	conflicts, asked := l.conflicts(context.WithoutCancel(ctx), p)
	return l.back(ctx, p, errors.Join(err, asked), s.Base, conflicts)
}

func rebase(onto string) []string {
	return []string{"rebase", "--quiet", "--merge", "--no-autosquash", "--no-autostash", "--no-update-refs", "--no-stat", onto}
}

// notJoined returns the refusal for a merge or a rebase in a session's worktree that failed.
func (l *Library) notJoined(err error, p place, base string, conflicts []string) error {
	status, is := errors.AsType[*git.StatusError](err)
	switch {
	case len(conflicts) > 0:
		return &refusal.Error{Code: refusedConflicts, Params: map[string]string{"base": base, "paths": named(conflicts)}}
	case is && strings.Contains(status.Stderr, inTheWay):
		return &refusal.Error{Code: refusedInTheWay, Params: map[string]string{"path": p.top, "paths": named(listed(status.Stderr))}}
	case is && (strings.Contains(status.Stderr, "You have unstaged changes") || strings.Contains(status.Stderr, "contains uncommitted changes")):
		return &refusal.Error{Code: refusedInTheWay, Params: map[string]string{"path": p.top, "paths": ""}}
	}
	return l.refused(err)
}

// conflicts returns the files of a worktree that have conflicts.
func (l *Library) conflicts(ctx context.Context, p place) (paths []string, err error) {
	now, err := l.files(ctx, p)
	for _, f := range now.Files {
		if f.Kind == "conflict" {
			paths = append(paths, f.Path)
		}
	}
	return paths, err
}

// UpdateRequest asks for the commits of a base in a session's branch.
type UpdateRequest struct {
	Base    string `json:"base" maxLength:"1000"`
	Head    string `json:"head" maxLength:"64" doc:"Commit that was checked out when it was shown"`
	How     string `json:"how" enum:"merge,rebase" doc:"merge makes a commit with both as parents, rebase puts the branch's commits on top of the base"`
	Leave   bool   `json:"leave,omitempty" doc:"Leaves conflicts in the files, for an agent or a person to resolve; without it, an update with conflicts changes nothing"`
	NoHooks bool   `json:"noHooks,omitempty" doc:"Runs no hook of the repository. Without it, an update is refused while a hook is not approved"`
}

// Updated is an update of a session's branch.
type Updated struct {
	Commit    string   `json:"commit" doc:"Commit that is checked out now"`
	Conflicts []string `json:"conflicts" doc:"Files with conflicts, when the update waits for their resolution"`
}

// Update brings the commits of a base into a session's branch. What is not committed stays as it is; an update that would change such a file is
// refused.
func (l *Library) Update(ctx context.Context, id string, r UpdateRequest) (Updated, error) {
	p, now, release, err := l.begin(ctx, id)
	if err != nil {
		return Updated{}, err
	}
	defer release()
	s, err := l.compare(ctx, p, now, r.Base)
	if err != nil {
		return Updated{}, err
	}
	hooks, err := l.unapproved(ctx, p.session.Cwd)
	if err != nil {
		return Updated{}, err
	}
	if err := s.checkUpdate(r, now, hooks); err != nil {
		return Updated{}, err
	}
	args := []string{"merge", "--quiet", "--no-edit", "--no-autostash", "--no-stat", "-m", fmt.Sprintf("Merge %s into %s", s.Base, now.Branch), s.BaseCommit}
	if r.How == HowRebase {
		args = rebase(s.BaseCommit)
	}
	err = l.git(ctx, p, run{person: true, hooks: !r.NoHooks}, args...)
	done := Updated{Conflicts: []string{}}
	if err != nil {
		conflicts, asked := l.conflicts(context.WithoutCancel(ctx), p)
		if asked != nil {
			return done, asked
		}
		if !r.Leave || len(conflicts) == 0 || unfinished(p.gitDir) == "" {
			return done, l.back(ctx, p, err, s.Base, conflicts)
		}
		done.Conflicts = conflicts
	}
	done.Commit, err = l.say(ctx, p, run{}, "rev-parse", "HEAD")
	return done, err
}

// checkUpdate returns why there can be no such update.
func (s *BaseStatus) checkUpdate(r UpdateRequest, now RepositoryStatus, hooks []string) error {
	switch {
	case now.Unfinished != "" && now.Unfinished != "bisect":
		return &refusal.Error{Code: refusedUnfinished, Params: map[string]string{"what": now.Unfinished}}
	case s.Head != r.Head:
		return &refusal.Error{Code: refusedMoved}
	case now.Branch == "":
		return &refusal.Error{Code: refusedBranch}
	case s.Behind == 0:
		return &refusal.Error{Code: refusedUpToDate, Params: map[string]string{"base": s.Base}}
	case len(hooks) > 0 && !r.NoHooks:
		return &refusal.Error{Code: refusedHooks, Params: map[string]string{"names": strings.Join(hooks, ", ")}}
	}
	return nil
}

// back takes a merge or a rebase back that has failed with an error, and returns the refusal for the error.
func (l *Library) back(ctx context.Context, p place, err error, base string, conflicts []string) error {
	if began := unfinished(p.gitDir); began == "merge" || began == "rebase" {
		if back := l.git(context.WithoutCancel(ctx), p, run{person: true}, began, "--abort"); back != nil {
			return errors.Join(l.refused(err), back)
		}
	}
	return l.notJoined(err, p, base, conflicts)
}

// ResolveRequest ends a merge or a rebase that waits.
type ResolveRequest struct {
	Abort   bool `json:"abort,omitempty" doc:"Takes the merge or the rebase back. The files as they are then are kept as a commit"`
	NoHooks bool `json:"noHooks,omitempty" doc:"Runs no hook of the repository. Without it, the end is refused while a hook is not approved"`
}

// Resolved is the end of a merge or a rebase.
type Resolved struct {
	Commit    string   `json:"commit" doc:"Commit that is checked out now"`
	Kept      string   `json:"kept,omitempty" doc:"Ref with the files as they were before the merge was taken back"`
	Conflicts []string `json:"conflicts" doc:"Files of a later commit of a rebase that have conflicts now"`
}

// keptRefs is where the files of merges are that were taken back.
const keptRefs = "refs/deskhand/aborted/"

// Resolve ends a merge or a rebase in a session's worktree with the files as they are, or takes it back.
func (l *Library) Resolve(ctx context.Context, id string, r ResolveRequest) (Resolved, error) {
	p, now, release, err := l.begin(ctx, id)
	if err != nil {
		return Resolved{}, err
	}
	defer release()
	done := Resolved{Conflicts: []string{}}
	if now.Unfinished != "merge" && now.Unfinished != "rebase" {
		return done, &refusal.Error{Code: refusedNoMerge}
	}
	hooks, err := l.unapproved(ctx, p.session.Cwd)
	if err != nil {
		return done, err
	}
	if len(hooks) > 0 && !r.NoHooks {
		return done, &refusal.Error{Code: refusedHooks, Params: map[string]string{"names": strings.Join(hooks, ", ")}}
	}
	if r.Abort {
		if done.Kept, err = l.keep(ctx, p); err != nil {
			return done, l.refused(err)
		}
		err = l.git(context.WithoutCancel(ctx), p, run{person: true, hooks: !r.NoHooks}, now.Unfinished, "--abort")
	} else {
		err = l.conclude(ctx, p, now, r.NoHooks)
	}
	if err != nil {
		now, asked := l.conflicts(ctx, p)
		if !ended(err) || asked != nil || len(now) == 0 || r.Abort {
			return done, l.refused(err)
		}
		done.Conflicts = now // of the next commit of a rebase
	}
	done.Commit, err = l.say(ctx, p, run{}, "rev-parse", "HEAD")
	return done, err
}

// conclude adds the files with conflicts as they are on disk, and goes on. A file that still has the marks of a conflict is refused.
func (l *Library) conclude(ctx context.Context, p place, now RepositoryStatus, noHooks bool) error {
	var paths []string
	for _, f := range now.Files {
		if f.Kind != "conflict" {
			continue
		}
		if text, _, err := onDisk(p.top, f.Path); err != nil {
			return err
		} else if text != nil && marked(*text) {
			return &refusal.Error{Code: refusedConflict, Params: map[string]string{"path": f.Path}}
		}
		paths = append(paths, f.Path)
	}
	if len(paths) > 0 {
		in := []byte(strings.Join(paths, "\x00") + "\x00")
		if err := l.git(ctx, p, run{in: in}, "update-index", "--add", "--remove", "--replace", "-z", "--stdin"); err != nil {
			return err
		}
	}
	args := []string{"commit", "--quiet", "--no-edit"}
	if now.Unfinished == "rebase" {
		args = []string{"rebase", "--continue"}
	}
	return l.git(ctx, p, run{person: true, hooks: !noHooks}, args...)
}

// marked reports whether a text has all marks of a conflict, in their order.
func marked(text string) bool {
	at := 0
	marks := []string{"<<<<<<< ", "=======", ">>>>>>> "}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, marks[at]) {
			if at++; at == len(marks) {
				return true
			}
		}
	}
	return false
}

// keep makes a commit of all files that git does not ignore, on a ref of ours, and returns the ref.
func (l *Library) keep(ctx context.Context, p place) (ref string, err error) {
	dir, err := os.MkdirTemp(p.gitDir, "deskhand-keep-")
	if err != nil {
		return "", fmt.Errorf("cannot write to %s: %w", p.gitDir, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	index := filepath.Join(dir, "index")
	if err := copyIndex(filepath.Join(p.gitDir, "index"), index); err != nil {
		return "", err
	}
	if err := l.git(ctx, p, run{index: index, config: []string{"advice.addEmbeddedRepo=false"}}, "add", "--all", "--", "."); err != nil {
		return "", err
	}
	tree, err := l.lines(ctx, p, run{index: index}, "write-tree")
	if err != nil {
		return "", err
	}
	commit, err := l.lines(ctx, p, run{person: true, in: []byte("Files before a merge was taken back\n")}, "commit-tree", "-p", "HEAD", tree[0])
	if err != nil {
		return "", err
	}
	ref = keptRefs + time.Now().UTC().Format("20060102T150405.000000000")
	return ref, l.git(ctx, p, run{}, "update-ref", ref, commit[0], "")
}

// FetchRequest asks for the news of a remote.
type FetchRequest struct {
	Remote string `json:"remote,omitempty" maxLength:"200" doc:"Name of a remote; absent for the first of the status"`
}

// Fetch gets the commits of a remote's branches. No branch of the repository's own changes, and no file.
func (l *Library) Fetch(ctx context.Context, id string, r FetchRequest) error {
	p, now, release, err := l.begin(ctx, id)
	if err != nil {
		return err
	}
	defer release()
	remotes, err := l.remotes(ctx, p, now.Branch)
	if err != nil {
		return err
	}
	remote := r.Remote
	if remote == "" && len(remotes) > 0 {
		remote = remotes[0]
	}
	if !slices.Contains(remotes, remote) {
		return &refusal.Error{Code: refusedRemote}
	}
	if err := l.git(ctx, p, run{fetch: true}, "fetch", "--quiet", "--end-of-options", remote); err != nil {
		return l.notPushed(err, nil, now.Branch, remote)
	}
	return nil
}
