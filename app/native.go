package app

import "context"

// native is what this desktop can show beside the window: the one thing that each system has its own of (openNative).
//
// What a call shows lasts as long as the call, which ends when a person has done something or ctx is done; with ctx it is withdrawn
// at once. Calls may run at the same time, but there is one dialog at a time.
type native struct {
	// focus tells whether the window has the focus, first and at each change. A value that is out of date is not kept.
	focus <-chan bool
	// ask shows a dialog. An error means that there is none here, for this sheet or any.
	ask func(ctx context.Context, s sheet) (reply, error)
	// notify shows a notification, and answers the key of the action that was taken; empty when it was put away.
	notify func(ctx context.Context, n notice) (string, error)
	// close ends what the others have opened, after their last call.
	close func()
}

// sheet is a dialog. All its texts can be seen as they are: visible and oneLine have been over them, and no toolkit may take any of
// them for markup, for a format or for a sign of an access key.
type sheet struct {
	title   string // of the dialog's window
	heading string
	about   string // where it comes from
	text    []line // may be long, and is scrolled then
	code    bool   // the text is set in a monospaced font

	choices []choice
	several bool // any number of them, else one
	own     bool // a field for the person's own words; in place of a choice unless there are several

	buttons []button // those that answer, in this order. None of them is the default
	plain   string   // in place of Later and Open in Deskhand: a single button that says this
}

type button struct {
	label string
	needs bool // can be pressed once something is chosen or written
	enter bool // Enter in the field presses it
	give  func(reply) wish
}

type choice struct{ label, about string }

// line is one line of a sheet's text.
type line struct {
	style lineStyle
	text  string
	goes  bool // its end is ours: the next line goes on with it
}

type lineStyle int

const (
	plainLine lineStyle = iota
	headLine
	dimLine
	addedLine
	removedLine
)

// reply is what a person did in a dialog.
type reply struct {
	button int   // the index of one that answers, or one of the two below
	chosen []int // the indexes of choices
	own    string
}

const (
	pressedLater = -1 // or closed it
	pressedOpen  = -2
)

// notice is a notification. Its texts are plain, see sheet.
type notice struct {
	title, body string
	actions     []action // the desktop may show fewer, or none
}

type action struct{ key, label string }

// actionOpen is the action of a click on the notification itself, too.
const actionOpen = "open"
