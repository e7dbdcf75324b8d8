//go:build desktop && !bindings && (windows || darwin)

package app

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"

	"github.com/wailsapp/wails/v2/pkg/runtime"
)

// toaster shows notifications by Wails. Windows withdraws no notification: a late action does nothing.
type toaster struct {
	shell *shell
	begin sync.Once
	ready chan struct{} // closed when that is done
	err   error         // of the beginning; set before ready is closed

	mu   sync.Mutex // protects the fields below
	last int
	open map[string]chan string
}

var errNotAllowed = errors.New("the person does not allow notifications")

// start asks the system for permission once. Nobody waits for the answer beyond ctx, nor for the goroutine at the end: macOS asks the
// person, and Wails waits three minutes for the answer.
func (t *toaster) start(ctx context.Context) error {
	t.begin.Do(func() {
		t.open, t.ready = map[string]chan string{}, make(chan struct{})
		go func() {
			defer close(t.ready)
			t.err = t.permission(t.shell.wails())
		}()
	})
	select {
	case <-t.ready:
		return t.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (t *toaster) permission(ctx context.Context) error {
	if err := runtime.InitializeNotifications(ctx); err != nil {
		return err
	}
	allowed, err := runtime.RequestNotificationAuthorization(ctx)
	switch {
	case err != nil:
		return err
	case !allowed:
		return errNotAllowed
	}
	runtime.OnNotificationResponse(ctx, t.heard)
	return nil
}

// heard handles the person's action.
func (t *toaster) heard(r runtime.NotificationResult) {
	t.mu.Lock()
	defer t.mu.Unlock()
	acted := t.open[r.Response.ID]
	if acted == nil {
		return
	}
	delete(t.open, r.Response.ID)
	key := r.Response.ActionIdentifier
	if key == "DEFAULT_ACTION" {
		key = actionOpen
	}
	acted <- key
}

// notify is native's.
func (t *toaster) notify(ctx context.Context, n notice) (string, error) {
	if err := t.start(ctx); err != nil {
		return "", err
	}
	category := runtime.NotificationCategory{}
	var keys strings.Builder
	for _, a := range n.actions {
		category.Actions = append(category.Actions, runtime.NotificationAction{ID: a.key, Title: a.label})
		keys.WriteString("." + a.key)
	}
	category.ID = "deskhand" + keys.String() // the same actions have the same labels
	if err := runtime.RegisterNotificationCategory(t.shell.wails(), category); err != nil {
		return "", err
	}
	acted := make(chan string, 1)
	t.mu.Lock()
	t.last++
	id := "deskhand-" + strconv.Itoa(t.last)
	t.open[id] = acted
	t.mu.Unlock()
	err := runtime.SendNotificationWithActions(t.shell.wails(), runtime.NotificationOptions{ID: id, Title: n.title, Body: n.body, CategoryID: category.ID})
	if err == nil {
		select {
		case key := <-acted:
			return key, nil
		case <-ctx.Done():
			err = errors.Join(ctx.Err(), runtime.RemoveDeliveredNotification(t.shell.wails(), id))
		}
	}
	t.mu.Lock()
	delete(t.open, id)
	t.mu.Unlock()
	return "", err
}

func (t *toaster) close() {
	select {
	case <-t.ready: // nil when nobody has asked for permission
		if t.err == nil {
			runtime.CleanupNotifications(t.shell.wails())
		}
	default:
	}
}
