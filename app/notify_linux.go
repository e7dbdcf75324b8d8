//go:build desktop && !bindings

package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
)

// notifier shows notifications by org.freedesktop.Notifications. Wails' own notifications interpret text as markup, count dismissing as a
// click, accept reports of actions from every program on the bus, and leave a file in the configuration directory.
type notifier struct {
	// mu protects the fields below. mu is held while a notification is sent: a signal about the notification may arrive before its number.
	mu     sync.Mutex
	conn   *dbus.Conn
	server string   // the unique name of who shows them
	can    []string // the server's capabilities
	open   map[uint32]chan string

	listeners sync.WaitGroup // close waits for them
}

const (
	notifyName = "org.freedesktop.Notifications"
	notifyPath = "/org/freedesktop/Notifications"

	callTimeout = 5 * time.Second // the server may have to be started
	never       = int32(0)        // when a notification goes by itself
)

var errBusGone = errors.New("the D-Bus session has ended")

// notify is native's.
func (n *notifier) notify(ctx context.Context, no notice) (string, error) {
	id, acted, err := n.send(ctx, no)
	if err != nil {
		return "", err
	}
	select {
	case key, ok := <-acted:
		if !ok {
			return "", errBusGone
		}
		return key, nil
	case <-ctx.Done():
		n.withdraw(id)
		return "", ctx.Err()
	}
}

func (n *notifier) send(ctx context.Context, no notice) (uint32, <-chan string, error) {
	ctx, end := context.WithTimeout(ctx, callTimeout)
	defer end()
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.connectLocked(ctx); err != nil {
		return 0, nil, err
	}
	body := no.body
	if slices.Contains(n.can, "body-markup") { // without the capability the server shows the text unchanged
		body = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(body)
	}
	actions := []string{}
	if slices.Contains(n.can, "actions") {
		actions = append(actions, "default", "Open")
		for _, a := range no.actions {
			actions = append(actions, a.key, a.label)
		}
	}
	hints := map[string]dbus.Variant{"desktop-entry": dbus.MakeVariant(programName), "category": dbus.MakeVariant("im.received")}
	var id uint32
	err := n.conn.Object(notifyName, notifyPath).CallWithContext(ctx, notifyName+".Notify", 0,
		"Deskhand", uint32(0), "dialog-question", no.title, body, actions, hints, never).Store(&id)
	if err != nil {
		return 0, nil, fmt.Errorf("no notification can be shown: %w", err)
	}
	acted := make(chan string, 1)
	n.open[id] = acted
	return id, acted, nil
}

// connectLocked connects to the bus, and asks for the notification server and its capabilities; the server may have changed since the last
// connection.
func (n *notifier) connectLocked(ctx context.Context) error {
	if n.conn != nil && !n.conn.Connected() {
		n.conn = nil
	}
	if n.conn == nil {
		conn, err := sessionBus()
		if err != nil {
			return fmt.Errorf("there is no D-Bus session: %w", err)
		}
		signals := make(chan *dbus.Signal, 16)
		conn.Signal(signals)
		if err := conn.AddMatchSignalContext(ctx, dbus.WithMatchSender(notifyName), dbus.WithMatchInterface(notifyName)); err != nil {
			return errors.Join(err, conn.Close())
		}
		n.conn, n.open = conn, map[uint32]chan string{}
		n.listeners.Go(func() { n.listen(conn, signals) }) // ends with the connection
	}
	server := n.conn.Object(notifyName, notifyPath)
	if err := server.CallWithContext(ctx, notifyName+".GetCapabilities", 0).Store(&n.can); err != nil {
		return fmt.Errorf("nothing shows notifications: %w", err)
	}
	return n.conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.GetNameOwner", 0, notifyName).Store(&n.server)
}

// sessionBus connects to the session's bus; unlike the library's own function, sessionBus starts no bus.
func sessionBus() (*dbus.Conn, error) {
	conn, err := dbus.SessionBusPrivateNoAutoStartup(dbus.WithSignalHandler(dbus.NewSequentialSignalHandler()))
	if err != nil {
		return nil, err
	}
	if err := conn.Auth(nil); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if err := conn.Hello(); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}

// listen handles the server's signals. Signals of other programs on the bus, such as an agent, are ignored.
func (n *notifier) listen(conn *dbus.Conn, signals <-chan *dbus.Signal) {
	for s := range signals {
		n.heard(s)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.conn == conn {
		n.conn = nil
	}
	for id, acted := range n.open {
		delete(n.open, id)
		close(acted)
	}
}

func (n *notifier) heard(s *dbus.Signal) {
	n.mu.Lock()
	defer n.mu.Unlock()
	var id uint32
	var key string
	switch {
	case s.Sender != n.server || len(s.Body) < 2:
		return
	case s.Name == notifyName+".ActionInvoked":
		if dbus.Store(s.Body[:2], &id, &key) != nil {
			return
		}
	case s.Name == notifyName+".NotificationClosed":
		if dbus.Store(s.Body[:1], &id) != nil {
			return
		}
	default:
		return
	}
	if acted := n.open[id]; acted != nil {
		delete(n.open, id)
		if key == "default" {
			key = actionOpen
		}
		acted <- key
	}
}

// withdraw closes a notification, and waits for the server's answer, so that no notification outlives the program.
func (n *notifier) withdraw(id uint32) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open[id] == nil {
		return // the notification has closed by itself
	}
	delete(n.open, id)
	if n.conn == nil {
		return
	}
	ctx, end := context.WithTimeout(context.Background(), time.Second)
	defer end()
	_ = n.conn.Object(notifyName, notifyPath).CallWithContext(ctx, notifyName+".CloseNotification", 0, id).Err // the notification may have closed meanwhile
}

func (n *notifier) close() {
	n.mu.Lock()
	if n.conn != nil {
		_ = n.conn.Close() // no call is left to be sent
		n.conn = nil
	}
	n.mu.Unlock()
	n.listeners.Wait()
}
