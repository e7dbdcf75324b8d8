package app

import (
	"encoding/json"
	"errors"
	"runtime"
	"strconv"
	"strings"
)

// The buttons of closeSheet.
const (
	closeHides = iota
	closeStops
)

// closeSheet is shown to a person who closes the window while agents work.
func closeSheet(title string, turns int) sheet {
	heading, they, stop := "An agent is still working", "it", "Stop the agent and quit"
	if turns != 1 {
		heading, they, stop = strconv.Itoa(turns)+" agents are still working", "they", "Stop the agents and quit"
	}
	return sheet{
		title: title, heading: heading,
		text:    lines(plainLine, "Deskhand can keep running without its window, so that "+they+" can finish. What an agent asks waits for you. To see the window again, start Deskhand again."),
		buttons: []button{{label: "Keep running"}, {label: stop}}, plain: "Cancel",
	}
}

// closeQuestion is the question on systems without a dialog of ours. The desktop's own question has only Yes and No.
func closeQuestion(turns int) string {
	s := closeSheet("", turns)
	return s.heading + ".\n\n" + s.buttons[closeStops].label + "?"
}

// dialogText makes a text safe for a native dialog: on Linux Wails passes the text to GTK as a printf format, and a lone %s ends the
// process.
func dialogText(text string) string {
	if runtime.GOOS != "linux" {
		return text
	}
	return strings.ReplaceAll(text, "%", "%%")
}

// coded makes any error an error that the page has a text for.
func coded(err error) *Error {
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	return &Error{Code: "shell.failed", cause: err}
}

// page returns the error as the page reads it: {"code", "params"}, without the cause, which goes to the log.
func (e *Error) page() string {
	text, err := json.Marshal(e)
	if err != nil { // two strings and a map of strings always have a form
		return `{"code":"shell.failed"}`
	}
	return string(text)
}
