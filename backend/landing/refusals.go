package landing

import (
	"errors"
	"strings"

	"deskhand/backend/git"
	"deskhand/backend/refusal"
)

// The codes of refusals.
const (
	refusedElsewhere       = "landing.elsewhere"     // the session runs on another machine
	refusedRepository      = "landing.no_repository" // params path
	refusedGit             = "landing.no_git"
	refusedWorking         = "landing.working"    // another commit or push runs in the worktree
	refusedTooMuch         = "landing.too_much"   // git lists more than can be shown
	refusedLocked          = "landing.locked"     // another git works in the worktree
	refusedUnfinished      = "landing.unfinished" // a merge, rebase or the like waits for its end; params what
	refusedMoved           = "landing.moved"      // the branch has another commit than the one that was shown
	refusedNothing         = "landing.nothing"    // no file was chosen
	refusedMessage         = "landing.no_message"
	refusedFile            = "landing.file"             // a chosen file has no change any more; params path
	refusedWhole           = "landing.whole"            // a file that cannot be committed in part; params path
	refusedChanged         = "landing.changed"          // a file was written since a part of the file was chosen; params path
	refusedConflict        = "landing.conflict"         // a chosen file has conflicts; params path
	refusedIndex           = "landing.index"            // the commit is made, and another git has the index; params commit
	refusedAuthor          = "landing.no_author"        // git does not know the person's name; params detail
	refusedHooks           = "landing.hooks"            // hooks that nobody has approved; params names
	refusedPublished       = "landing.published"        // the commit to amend was pushed
	refusedFirst           = "landing.no_commit"        // there is no commit to amend, or to push
	refusedFailed          = "landing.failed"           // git or a hook of the repository refused; params detail
	refusedBranch          = "landing.no_branch"        // no branch is checked out
	refusedRemote          = "landing.no_remote"        // the repository has no remote, or several and no upstream
	refusedRejected        = "landing.rejected"         // the remote has commits that are not here; params branch, remote
	refusedPrograms        = "landing.programs"         // the repository's own configuration names a program for the way to the remote
	refusedNoBase          = "landing.no_base"          // there is no other branch
	refusedBase            = "landing.base"             // no such branch; params base
	refusedRemoteBase      = "landing.remote_base"      // the branch is a remote's; params base
	refusedUnrelated       = "landing.unrelated"        // the branches have no commit in common; params base
	refusedOldGit          = "landing.old_git"          // git is older than 2.38
	refusedEven            = "landing.even"             // the base has all commits; params base
	refusedUpToDate        = "landing.up_to_date"       // the branch has all commits of the base; params base
	refusedBehind          = "landing.behind"           // the base has commits that the branch does not have; params base
	refusedConflicts       = "landing.conflicts"        // params base, paths
	refusedInTheWay        = "landing.in_the_way"       // files that are not committed would be overwritten; params path, paths
	refusedUnfinishedThere = "landing.unfinished_there" // a merge, rebase or the like waits in the base's worktree; params what, path
	refusedNoMerge         = "landing.no_merge"         // no merge or rebase waits
	refusedLogin           = "landing.login"            // the remote asks for a login that git does not have; params remote, detail
)

// indexLocked is what git says while another git has the index.
const indexLocked = "index.lock': File exists"

func failedWith(err error, words string) bool {
	status, is := errors.AsType[*git.StatusError](err)
	return is && strings.Contains(status.Stderr, words)
}

// refused returns the refusal for an error of git. Other errors are returned as they are.
func (l *Library) refused(err error) error {
	status, is := errors.AsType[*git.StatusError](err)
	switch {
	case errors.Is(err, git.ErrAbsent):
		return &refusal.Error{Code: refusedGit}
	case !is:
		return err
	case strings.Contains(status.Stderr, ".lock': File exists"):
		return &refusal.Error{Code: refusedLocked}
	case strings.Contains(status.Stderr, "Please tell me who you are"), strings.Contains(status.Stderr, "unable to auto-detect email"),
		strings.Contains(status.Stderr, "empty ident name"):
		return &refusal.Error{Code: refusedAuthor}
	}
	if strings.Contains(status.Stderr, "transport '") && strings.Contains(status.Stderr, "not allowed") {
		return &refusal.Error{Code: refusedPrograms}
	}
	return &refusal.Error{Code: refusedFailed, Params: map[string]string{"detail": l.deps.Clean(strings.TrimSpace(status.Stderr))}}
}
