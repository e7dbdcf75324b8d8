//go:build desktop && (bindings || (!linux && !windows && !darwin))

package app

import (
	"context"
	"errors"
)

// errNoNative says that this system has no dialogs of ours: requests are answered in the window.
var errNoNative = errors.New("this system has no dialogs and notifications for requests")

func openNative(*shell) native {
	return native{
		ask:    func(context.Context, sheet) (reply, error) { return reply{}, errNoNative },
		notify: func(context.Context, notice) (string, error) { return "", errNoNative },
		close:  func() {},
	}
}
