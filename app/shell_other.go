//go:build desktop && (!darwin || bindings)

package app

// Only macOS needs the functions below (shell_darwin.go).

const sizeHasTitle = false

func takeReopening() {}

func stopNow() {}
