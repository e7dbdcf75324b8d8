//go:build desktop && !bindings

package app

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/wailsapp/wails/v2/pkg/runtime"
)

// Alerts of macOS, by Wails. The alerts have never been seen: this system is not tested.
//
// An alert has up to four buttons and a text that does not scroll, but no choices and no field. A request that needs more is only
// announced, and answered in the window. An alert cannot be withdrawn, and the window waits for the alert: a late answer is ignored.

const (
	mostAlertText    = 1500
	mostAlertButtons = 4
	openLabel        = "Open in Deskhand"
	laterLabel       = "Later"
)

// openNative returns the dialogs and notifications of macOS.
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

// press shows an alert and returns the label of the pressed button. An alert that is no longer needed before it is shown is not shown.
// Nobody waits for an alert on the screen: the alert ends with a press, or with the app.
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

// plainer reduces a sheet to the parts that an alert can show. The labels tell the buttons apart.
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

// watchKeyWindow reports changes of the window's focus, which Wails does not report. used is called while the window has the focus.
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
				used() // the person may have shown the window by other means
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
