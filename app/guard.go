//go:build desktop && !bindings && (linux || windows)

package app

// guardMillis is how long what answers in a new dialog does nothing: a key or a click may have been meant for something else.
const guardMillis = 400
