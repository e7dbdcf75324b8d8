// Package app is the window: it hides Wails, GTK and everything else that is a desktop's and not ours behind one call, Run.
//
// The page in the window talks to the same http.Handler as a browser does; it is mounted as asset-server middleware, so that
// the page has no port, no token and no other origin. Next to it stand a few bound methods (Window, Files), each of which
// touches the desktop: what a test could run without a window belongs to HTTP. A bound method never panics into the page,
// which would leave its promise pending for ever: it answers an *Error.
//
// Run keeps the page where it is. WebKitGTK would leave the app for a dropped file or a link; every navigation of the window
// that is not to our own origin is refused, and clicked links open outside.
//
// While nobody looks at the window, what waits for a person is shown beside it, too (asking, native): as dialogs of the system and as
// notifications. That is led from here and not by the page.
//
// Only builds with the tag desktop have a window (see Available). The others have the same API, whose Run answers
// ErrUnavailable, so that neither tests nor the headless program need GTK.
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

// The smallest window in which the page is laid out well, and the one of a first start.
const (
	minWidth, minHeight     = 720, 480
	firstWidth, firstHeight = 1180, 780
)

// Config is what the window needs of the program. Assets and Handler must be given.
type Config struct {
	Title  string       // empty: "Deskhand"
	Logger *slog.Logger // nil: slog.Default

	Assets  fs.FS        // the built frontend, index.html at its root
	Handler http.Handler // answers /v1/ and /client/; reached by the window's page alone, so it needs no guard

	// Seal keeps the descriptors that are open now from the processes that the program starts; it is called for every response
	// (see sealed). Nil for a program that starts none.
	Seal func()

	Geometry     Geometry             // where the window was; zero: a first start
	SaveGeometry func(Geometry) error // called before the window closes; nil: forgotten

	// Programs tells how programs of the person are found: a variable of their environment, and where one of a name is. Started from a
	// desktop, our own environment lacks what their shell sets up. Nil: it is our own.
	Programs func(context.Context) (env func(string) string, find func(string) (string, error))

	// Activate brings the window to the front, once per value: a second start of the program wants it. May be nil.
	Activate <-chan struct{}
	// RunningTurns is asked when a person closes the window; while it is not 0 they are asked whether to stop, or to go on without a window. May be nil.
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

// size is the size to open with: what was remembered, unless no person could have left it like that.
func (g Geometry) size() (width, height int) {
	if g.Width < minWidth || g.Height < minHeight {
		return firstWidth, firstHeight
	}
	return g.Width, g.Height
}

// known says whether g was ever saved.
func (g Geometry) known() bool { return g.Width > 0 && g.Height > 0 }

// Error is what a bound method answers the page with: a code of the catalogue of texts and its parameters, like the problems
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
