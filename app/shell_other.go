//go:build desktop && (!darwin || bindings)

package app

// What follows is macOS' alone (shell_darwin.go).

const sizeHasTitle = false

func takeReopening() {}

func stopNow() {}
