package app

import (
	"encoding/json"
	"errors"
	"runtime"
	"strconv"
	"strings"
)

// closeQuestion is asked when a person closes the window while agents work. The desktop's own question has Yes and No alone.
func closeQuestion(turns int) string {
	if turns == 1 {
		return "An agent is still working.\n\nStop the agent and quit?"
	}
	return strconv.Itoa(turns) + " agents are still working.\n\nStop the agents and quit?"
}

// dialogText makes a text safe for a native dialog: on Linux Wails hands it to GTK as a printf format, and a lone %s in it
// ends the process.
func dialogText(text string) string {
	if runtime.GOOS != "linux" {
		return text
	}
	return strings.ReplaceAll(text, "%", "%%")
}

// coded makes any error one that the page has a text for.
func coded(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: "shell.failed", cause: err}
}

// page is the error as the page reads it: {"code", "params"}, without the cause, which is for the log.
func (e *Error) page() string {
	text, err := json.Marshal(e)
	if err != nil { // two strings and a map of strings always have a form
		return `{"code":"shell.failed"}`
	}
	return string(text)
}
