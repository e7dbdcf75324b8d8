// Package refusal holds the errors that a person is told of: a refused command with its code and the parameters of its text, a record that
// does not exist, and a data directory that cannot be written. The surfaces make their answers of these errors.
package refusal

import "errors"

// The errors without a code of their own.
var (
	ErrNotFound = errors.New("there is no such thing")
	ErrStorage  = errors.New("the data directory cannot be written at the moment")
	ErrClosed   = errors.New("the client is closed")
)

// Error is a command that cannot be carried out as things stand. A refused command has changed nothing.
type Error struct {
	Code   string            // stable and dotted, such as turn.running
	Params map[string]string // the values in the text of the code
	Bad    bool              // the command itself is wrong, rather than its time
}

func (e *Error) Error() string {
	text := "refused: " + e.Code
	if detail := e.Params["detail"]; detail != "" {
		text += ": " + detail
	}
	return text
}

// Bad returns the refusal of a command that is wrong at any time. params are pairs of a name and a value.
func Bad(code string, params ...string) *Error {
	e := &Error{Code: code, Params: map[string]string{}, Bad: true}
	for i := 0; i+1 < len(params); i += 2 {
		e.Params[params[i]] = params[i+1]
	}
	return e
}
