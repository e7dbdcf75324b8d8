package compare

// The codes of refusals.
const (
	refusedBusy     = "compare.busy"      // another call changes the comparison
	refusedMember   = "compare.no_member" // no member has the session; params session
	refusedSame     = "compare.same"      // files are to be taken from the member itself
	refusedTaken    = "compare.taken"     // another member was taken
	refusedFull     = "compare.full"      // there are as many members as there may be
	refusedOutside  = "compare.outside"   // a file lies outside of the members' directory; params path
	refusedSpoken   = "compare.empty"     // there is no prompt
	refusedNotBegun = "compare.not_begun" // the member has no session; params name
)
