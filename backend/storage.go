package backend

import "deskhand/backend/session"

type (
	// Verify is what a verification is to look at.
	Verify = session.Verify
	// Verification is how far one is, or what it found.
	Verification = session.Verification
	// Finding is something that is not as it should be.
	Finding = session.Finding
)
