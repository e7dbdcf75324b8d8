//go:build !desktop

package app

import "context"

// Available says whether this build can open a window.
const Available = false

// Run answers ErrUnavailable: see Available.
func Run(context.Context, Config) error { return ErrUnavailable }
