//go:build desktop && (!linux || bindings)

package app

const programName = "deskhand"

func openDisplay() error { return nil }

func prefersDark() bool { return false }

// guardPage does nothing: WebView2 and WKWebView offer a dropped file to the page first, which refuses the file
// (frontend/src/shell/drops.ts).
func guardPage(func(int)) {}

// calm does nothing: the caret behaves as in the system's own text fields.
func calm() {}

// dismissDialogs does nothing: on these systems a dialog ends with its window.
func dismissDialogs() {}

// presentQuestion does nothing: on these systems an open dialog stays in front of its window.
func presentQuestion() {}

// moveWindow does nothing: Wails' call counts from the current screen, but Wails reports positions from the first screen.
func moveWindow(int, int) {}
