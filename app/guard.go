//go:build desktop && !bindings && (linux || windows)

package app

// guardMillis is the time in milliseconds during which the buttons of a new dialog do nothing: a key or a click may have been meant for
// another window.
const guardMillis = 400
