package backend

import (
	"context"
	"errors"
	"fmt"

	"deskhand/backend/datadir"
	"deskhand/backend/salvage"
	"deskhand/backend/session"
	"deskhand/backend/store"
)

type (
	// Verify is what a verification is to look at.
	Verify = session.Verify
	// Verification is how far one is, or what it found.
	Verification = session.Verification
	// SalvageReport says what was read of a damaged database.
	SalvageReport = salvage.Report
	// Finding is something that is not as it should be.
	Finding = session.Finding
)

// AcceptData takes the data directory as it is, although its database is not the one that was there. aside is where it puts what was beside a
// lost one; "" = nothing was. It is refused while a program has the directory.
func AcceptData(places datadir.Paths) (aside string, err error) {
	lock, err := datadir.Acquire(places.Data)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	return store.Accept(places.Data)
}

// Salvage reads all that can be read of the database into a new directory. It is refused while a program has the data.
func Salvage(ctx context.Context, places datadir.Paths, to string) (r SalvageReport, err error) {
	if err := places.Check(); err != nil {
		return r, err
	}
	lock, err := datadir.Acquire(places.Data)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if r, err = salvage.Run(ctx, places.Data, to); err != nil {
		return r, fmt.Errorf("salvaging the data of %s: %w", places.Data, err)
	}
	return r, nil
}

// CatalogueURL returns where the settings say that the registry of agents is; empty when they do not.
func CatalogueURL(places datadir.Paths) string { return session.StoredCatalogueURL(places.Settings()) }
