package forge

import (
	"time"

	"deskhand/backend/refusal"
)

// The codes of refusals.
const (
	refusedAddress    = "forge.address"    // the remote is at no forge; params remote
	refusedUnasked    = "forge.unasked"    // nobody has said how to reach the host; params host
	refusedHost       = "forge.host"       // no name of a host, or no way to reach one; params host
	refusedTool       = "forge.no_tool"    // the program is not installed; params tool, host
	refusedLogin      = "forge.login"      // the program is not logged in; params tool, host
	refusedNetwork    = "forge.network"    // the forge does not answer; params host, detail
	refusedLimit      = "forge.limit"      // the forge answers no more for a while; params host, minutes
	refusedPermission = "forge.permission" // params host, repository, detail
	refusedMissing    = "forge.missing"    // the account does not see the repository; params host, repository
	refusedMoved      = "forge.moved"      // another branch is checked out than the one that was shown
	refusedTitle      = "forge.no_title"
	refusedExists     = "forge.exists" // the branch has an open pull request
	refusedBase       = "forge.base"   // the base is the branch itself, or not there; params base
	refusedEven       = "forge.even"   // the branch has no commit that the base lacks; params base
	refusedFailed     = "forge.failed" // params host, detail
)

// limited is a refusal of a forge that wants no calls for a while.
type limited struct {
	refusal *refusal.Error
	wait    time.Duration
}

func (l *limited) Error() string { return l.refusal.Error() }

func (l *limited) Unwrap() error { return l.refusal }
