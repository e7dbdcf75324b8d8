// Package app is the window: one call, Run, hides Wails, GTK and every other part of the desktop.
//
// The page in the window talks to the same http.Handler as a browser does. The handler is mounted as asset-server middleware, so that the
// page has no port, no token and no other origin. Beside the handler there are a few bound methods (Window, Files), each of which touches
// the desktop: behaviour that a test could run without a window belongs to HTTP. A bound method never panics into the page, which would
// leave the page's promise pending for ever: the method returns an *Error.
//
// Run keeps the page in the window. WebKitGTK would leave the app for a dropped file or a link; every navigation of the window away from
// our own origin is refused, and clicked links open outside.
//
// While nobody looks at the window, waiting requests are also shown beside the window (asking, native): as dialogs of the system and as
// notifications. This package and not the page decides when.
//
// Only builds with the tag desktop have a window (see Available). Other builds have the same API, whose Run returns ErrUnavailable, so that
// neither tests nor the headless program need GTK.
package app

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
)

// ErrUnavailable says that this build has no window.
var ErrUnavailable = errors.New("this program was built without a window")

// ErrNoDisplay says that there is no screen to show the window on.
var ErrNoDisplay = errors.New("no display to show a window on")

// The smallest window with a good layout of the page, and the size of the first start.
const (
	minWidth, minHeight     = 720, 480
	firstWidth, firstHeight = 1180, 780
)

// Config is the window's configuration. Assets and Handler must be given.
type Config struct {
	Title  string       // empty: "Deskhand"
	Logger *slog.Logger // nil: slog.Default

	Assets  fs.FS        // the built frontend, index.html at the root
	Handler http.Handler // answers /v1/ and /client/; only the window's page reaches the handler, so the handler needs no guard

	// Seal keeps the file descriptors that are open at the call from the processes that the program starts. The window calls Seal for every
	// response (see sealed). Nil for a program that starts no processes.
	Seal func()

	Geometry     Geometry             // the saved place of the window; zero at a first start
	SaveGeometry func(Geometry) error // called before the window closes; nil: forgotten

	// Programs returns the environment of the person's shell and a search for programs by name. An app started from a desktop lacks the
	// variables that the person's shell sets. Nil: the process's own environment is used.
	Programs func(context.Context) (env func(string) string, find func(string) (string, error))

	// Editor returns the words that open a file at a line in the editor that the person has set; none when the person has set none. Nil: there is
	// no such setting.
	Editor func(file, line string) []string

	// Activate brings the window to the front, once per value: a second start of the program sends a value. May be nil.
	Activate <-chan struct{}
	// RunningTurns is called when a person closes the window. When turns run, the person is asked whether to stop them or to go on without
	// a window. May be nil.
	RunningTurns func() int
}

// Geometry is a window's size and place in points. A desktop that keeps windows' places to itself (Wayland) reports 0, 0.
type Geometry struct {
	Width     int  `json:"width"`
	Height    int  `json:"height"`
	X         int  `json:"x"`
	Y         int  `json:"y"`
	Maximised bool `json:"maximised"`
}

// size returns the size of the window to open: the saved size, unless no person could have left the window in that size.
func (g Geometry) size() (width, height int) {
	if g.Width < minWidth || g.Height < minHeight {
		return firstWidth, firstHeight
	}
	return g.Width, g.Height
}

// known says whether g was ever saved.
func (g Geometry) known() bool { return g.Width > 0 && g.Height > 0 }

// Error is the error that bound methods return to the page: a code of the catalogue of texts and the code's parameters, like the problems
// of the HTTP API.
type Error struct {
	Code   string            `json:"code"`
	Params map[string]string `json:"params,omitempty"`
	cause  error
}

func (e *Error) Error() string {
	if e.cause == nil {
		return e.Code
	}
	return e.Code + ": " + e.cause.Error()
}

func (e *Error) Unwrap() error { return e.cause }
