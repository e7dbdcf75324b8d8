//go:build desktop && (!linux || bindings)

package app

const programName = "deskhand"

func openDisplay() error { return nil }

func prefersDark() bool { return false }

// WebView2 and WKWebView offer a dropped file to the page first, which refuses it (frontend/src/shell/drops.ts).
func guardPage(func(int)) {}

// What the system's own text fields do is done there.
func calm() {}

// Here a dialog ends with its window.
func dismissDialogs() {}

// And one that is open stays in front of it.
func presentQuestion() {}

// Wails has a call for the place, but it counts from the current screen and reports from the first one.
func moveWindow(int, int) {}
