package worktrees

import (
	"errors"
	"slices"

	"deskhand/backend/refusal"
	"deskhand/backend/worktree"
)

// The codes of refusals about worktrees.
const (
	Elsewhere = "worktree.elsewhere" // the session runs on another machine
	Busy      = "worktree.busy"      // a turn runs; params title

	refusedNone       = "worktree.none"          // the session works in no worktree
	refusedGit        = "worktree.no_git"        // git is not installed
	refusedRepository = "worktree.no_repository" // params path
	refusedBare       = "worktree.bare"
	refusedCommit     = "worktree.no_commit"
	refusedSubmodule  = "worktree.submodule"    // the directory is in a submodule
	refusedFolder     = "worktree.subdirectory" // no commit has the directory; params path
	refusedBase       = "worktree.base"         // params base
	refusedName       = "worktree.branch_name"  // params branch
	refusedTaken      = "worktree.branch_taken" // params branch
	refusedExists     = "worktree.exists"       // params path
	refusedUnwritable = "worktree.unwritable"   // params path
	refusedFull       = "worktree.disk_full"
	refusedLocked     = "worktree.locked"
	refusedUnfinished = "worktree.unfinished"
	refusedNested     = "worktree.nested"       // params path
	refusedSubmodules = "worktree.submodules"   // params path
	refusedChanging   = "worktree.changing"     // another program writes there; params path
	refusedInUse      = "worktree.in_use"       // params branch
	refusedMoved      = "worktree.branch_moved" // params branch, ref
	refusedWorking    = "worktree.working"      // the worktree is being removed or restored
	refusedRemoved    = "worktree.removed"
	refusedThere      = "worktree.there"
	refusedGone       = "worktree.gone"           // the path has no worktree; params path
	refusedUnreadable = "worktree.unreadable"     // nothing in a folder could be kept; params path
	refusedFilter     = "worktree.filter"         // a filter changes the file in git; params path
	refusedPrograms   = "worktree.programs"       // the repository's own configuration would run a program; params setting
	refusedMissing    = "worktree.filter_missing" // the program of a filter is not installed; params setting, program
	refusedAside      = "worktree.aside"          // an earlier removal is unfinished; params path, aside
	refusedFailed     = "worktree.failed"
)

// refusedFor returns the refusal for an error about one file or setting; nil for any other error.
func refusedFor(err error, path string) error {
	of := func(code, name, value string) error {
		return &refusal.Error{Code: code, Params: map[string]string{name: value}}
	}
	if nested, is := errors.AsType[*worktree.NestedError](err); is {
		if nested.Submodule {
			return of(refusedSubmodules, "path", nested.Path)
		}
		return of(refusedNested, "path", nested.Path)
	}
	if filtered, is := errors.AsType[*worktree.FilterError](err); is {
		return of(refusedFilter, "path", filtered.Path)
	}
	if closed, is := errors.AsType[*worktree.UnreadableError](err); is {
		return of(refusedUnreadable, "path", closed.Path)
	}
	if named, is := errors.AsType[*worktree.ProgramError](err); is {
		return of(refusedPrograms, "setting", named.Setting)
	}
	if missing, is := errors.AsType[*worktree.MissingFilterError](err); is {
		return &refusal.Error{Code: refusedMissing, Params: map[string]string{"setting": missing.Setting, "program": missing.Program}}
	}
	if away, is := errors.AsType[*worktree.AsideError](err); is {
		return &refusal.Error{Code: refusedAside, Params: map[string]string{"path": path, "aside": away.Path}}
	}
	return nil
}

// refused returns the refusal for an error of git, with a code that the surfaces have a text for. Other errors are returned as they are.
func (l *Library) refused(err error, path string, r row) error {
	if refused := refusedFor(err, path); refused != nil {
		return refused
	}
	params := map[string]string{"path": path, "branch": r.branch, "ref": keptRef(r.id)}
	type code struct {
		err  error
		code string
	}
	list := []code{
		{worktree.ErrNoGit, refusedGit},
		{worktree.ErrNoRepository, refusedRepository},
		{worktree.ErrBare, refusedBare},
		{worktree.ErrNoCommit, refusedCommit},
		{worktree.ErrSubmodule, refusedSubmodule},
		{worktree.ErrName, refusedName},
		{worktree.ErrTaken, refusedTaken},
		{worktree.ErrExists, refusedExists},
		{worktree.ErrFull, refusedFull},
		{worktree.ErrLocked, refusedLocked},
		{worktree.ErrUnfinished, refusedUnfinished},
		{worktree.ErrBusy, refusedChanging},
		{worktree.ErrInUse, refusedInUse},
		{worktree.ErrMoved, refusedMoved},
		{worktree.ErrMissing, refusedGone},
		{worktree.ErrUnwritable, refusedUnwritable},
		{worktree.ErrGit, refusedFailed},
	}
	i := slices.IndexFunc(list, func(c code) bool { return errors.Is(err, c.err) })
	switch {
	case errors.Is(err, worktree.ErrClosed):
		return refusal.ErrClosed
	case i < 0:
		return err
	}
	if r.path != "" && list[i].code != refusedRepository {
		params["path"] = r.path
	}
	if list[i].code == refusedFailed {
		params["detail"] = l.deps.Sessions.Clean(err.Error())
	}
	return &refusal.Error{Code: list[i].code, Params: params, Bad: list[i].code == refusedName}
}
