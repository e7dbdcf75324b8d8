package backend

import (
	"errors"

	"deskhand/backend/session"
	"deskhand/backend/store"
)

type (
	// Verify is what a verification is to look at.
	Verify = session.Verify
	// Verification is how far one is, or what it found.
	Verification = session.Verification
	// Finding is something that is not as it should be.
	Finding = session.Finding
)

// AcceptData takes the data directory as it is, although its database is not the one that was there. aside is where it puts what was beside a
// lost one; "" = nothing was. It is refused while a program has the directory.
func AcceptData(places Places) (aside string, err error) {
	lock, err := takeLock(places.Data)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.release()) }()
	return store.Accept(places.Data)
}
