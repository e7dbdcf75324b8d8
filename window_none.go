//go:build !desktop

package main

import (
	"context"

	"deskhand/backend/cli"
)

// window is nil: this program has none.
func window() func(context.Context, cli.Window) error { return nil }
