//go:build desktop && !bindings

package app

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/wailsapp/wails/v2/pkg/runtime"
)

// Alerts of macOS, by Wails. They have never been seen: this system is not tested.
//
// An alert has up to four buttons and a text that does not scroll, and nothing to choose from or to write in; what needs more is only told
// of, and answered in the window. It cannot be taken away again, and the window waits for it: an answer that comes too late is not taken.

const (
	mostAlertText    = 1500
	mostAlertButtons = 4
	openLabel        = "Open in Deskhand"
	laterLabel       = "Later"
)

// openNative is what macOS has.
func openNative(s *shell) native {
	stop := make(chan struct{})
	n := &toaster{shell: s}
	return native{
		focus: watchKeyWindow(stop, func() { s.hidden.Store(false) }), ask: s.alert, notify: n.notify,
		close: func() {
			close(stop)
			n.close()
		},
	}
}

// alert shows a sheet.
func (s *shell) alert(ctx context.Context, from sheet) (reply, error) {
	from = plainer(from)
	var names []string
	for _, b := range from.buttons {
		names = append(names, b.label)
	}
	cancel := laterLabel
	switch {
	case from.plain != "":
		cancel = from.plain
	case len(names)+2 <= mostAlertButtons:
		names = append(names, openLabel)
	}
	names = append(names, cancel)
	var text strings.Builder
	for _, l := range append([]line{{text: from.about}, {}}, from.text...) {
		text.WriteString(l.text + "\n")
	}
	pressed, err := s.press(ctx, runtime.MessageDialogOptions{
		Type: runtime.QuestionDialog, Title: from.heading, Message: strings.TrimSpace(text.String()), Buttons: names, CancelButton: cancel,
	})
	switch i := slices.Index(names, pressed); {
	case err != nil:
		return reply{}, err
	case i >= 0 && i < len(from.buttons):
		return reply{button: i}, ctx.Err()
	case pressed == openLabel:
		return reply{button: pressedOpen}, ctx.Err()
	}
	return reply{button: pressedLater}, ctx.Err()
}

// press shows an alert and answers what stands on the button that was pressed. One that is not needed any more by the time that it could be
// shown is not, and nobody waits for one that stands there: it ends with a press, or with the app.
func (s *shell) press(ctx context.Context, alert runtime.MessageDialogOptions) (string, error) {
	var pressed string
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.dialog.Lock()
		defer s.dialog.Unlock()
		if err = ctx.Err(); err == nil && s.quitting.Load() {
			err = context.Canceled
		}
		if err == nil {
			pressed, err = runtime.MessageDialog(s.wails(), alert)
		}
	}()
	select {
	case <-done:
		return pressed, err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// plainer is a sheet as far as an alert can show it. Its buttons are told apart by what stands on them.
func plainer(s sheet) sheet {
	size := 0
	for _, l := range s.text {
		size += len(l.text) + 1
	}
	labels := []string{openLabel, laterLabel}
	for _, b := range s.buttons {
		if slices.Contains(labels, b.label) {
			size = mostAlertText + 1
		}
		labels = append(labels, b.label)
	}
	if size <= mostAlertText && len(s.choices) == 0 && !s.own && len(s.buttons) < mostAlertButtons {
		return s
	}
	s.text = lines(plainLine, "There is more to this than an alert shows. The window shows all of it.")
	s.choices, s.buttons = nil, nil
	return s
}

// watchKeyWindow tells whether the window has the focus: Wails tells of none. used is called while it has.
func watchKeyWindow(stop <-chan struct{}, used func()) <-chan bool {
	focus := make(chan bool)
	go func() {
		look := time.NewTicker(500 * time.Millisecond)
		defer look.Stop()
		for {
			select {
			case <-stop:
				return
			case <-look.C:
			}
			key := windowIsKey()
			if key {
				used() // somebody may have shown it without us
			}
			select {
			case focus <- key:
			case <-stop:
				return
			}
		}
	}()
	return focus
}
