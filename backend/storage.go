package backend

import (
	"context"
	"errors"
	"fmt"

	"deskhand/backend/datadir"
	"deskhand/backend/maintenance"
	"deskhand/backend/salvage"
	"deskhand/backend/settings"
	"deskhand/backend/store"
)

type (
	// Verify selects the scope of a verification.
	Verify = maintenance.Verify
	// Verification is the progress or the result of a verification.
	Verification = maintenance.Verification
	// SalvageReport lists the parts read from a damaged database.
	SalvageReport = salvage.Report
	// Finding is a fault that a verification has found.
	Finding = maintenance.Finding
)

// AcceptData accepts the data directory although its database is not the former database. aside is where AcceptData put the files that lay
// beside a lost database, or empty. AcceptData fails while a program holds the directory.
func AcceptData(places datadir.Paths) (aside string, err error) {
	lock, err := datadir.Acquire(places.Data)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	return store.Accept(places.Data)
}

// Salvage copies the readable parts of the database into a new directory. Salvage fails while a program holds the data.
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

// CatalogueURL is the address of the agents' registry in the settings, or empty.
func CatalogueURL(places datadir.Paths) string { return settings.CatalogueURL(places.Settings()) }
