package app

import "context"

// native is the set of dialogs and notifications that a system shows beside the window; each system has its own implementation
// (openNative).
//
// A dialog or notification lasts as long as its call, which ends when a person has acted or ctx is done; the latter withdraws the dialog or
// notification at once. Calls may run at the same time, but only one dialog is open at a time.
type native struct {
	// focus tells whether the window has the focus, first and at each change. A value that is out of date is not kept.
	focus <-chan bool
	// ask shows a dialog. An error means that there is none here, for this sheet or any.
	ask func(ctx context.Context, s sheet) (reply, error)
	// notify shows a notification, and returns the key of the chosen action; empty when the notification was dismissed.
	notify func(ctx context.Context, n notice) (string, error)
	// close frees the resources of the other functions, after their last call.
	close func()
}

// sheet is the content of a dialog. All texts of a sheet are the results of visible or oneLine, and no toolkit may interpret them as
// markup, as a format or as access keys.
type sheet struct {
	title   string // of the dialog's window
	heading string
	about   string // the session and the directory of the request
	text    []line // may be long, and is scrolled then
	code    bool   // the text is set in a monospaced font

	choices []choice
	several bool // several choices are allowed; otherwise a single choice
	own     bool // a field for the person's own words; in place of a choice unless there are several

	buttons []button // those that answer, in this order. None of them is the default
	plain   string   // in place of Later and Open in Deskhand: a single button that says this
}

type button struct {
	label string
	needs bool // can be pressed once something is chosen or written
	enter bool // Enter in the field presses the button
	give  func(reply) wish
}

type choice struct{ label, about string }

// line is a line of a sheet's text.
type line struct {
	style lineStyle
	text  string
	goes  bool // wrapped: the next line continues this line
}

type lineStyle int

const (
	plainLine lineStyle = iota
	headLine
	dimLine
	addedLine
	removedLine
)

// reply is the person's answer in a dialog.
type reply struct {
	button int   // the index of a button, pressedLater or pressedOpen
	chosen []int // the indexes of choices
	own    string
}

const (
	pressedLater = -1 // or closed the dialog
	pressedOpen  = -2
)

// notice is a notification. Its texts are plain, as those of a sheet.
type notice struct {
	title, body string
	actions     []action // the desktop may show fewer, or none
}

type action struct{ key, label string }

// actionOpen is the action of a click on the notification itself, too.
const actionOpen = "open"
