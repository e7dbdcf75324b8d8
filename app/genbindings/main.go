//go:build desktop && bindings

// Command genbindings writes frontend/wailsjs. make generate runs genbindings in the repository's root.
package main

import (
	"log/slog"
	"os"

	"deskhand/app"
)

func main() {
	if err := app.WriteBindings(); err != nil {
		slog.Error("frontend/wailsjs was not written", "err", err)
		os.Exit(1)
	}
}
