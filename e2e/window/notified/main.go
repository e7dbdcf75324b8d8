//go:build e2e

// Notified is a notification server for tests: it owns org.freedesktop.Notifications on the session's bus, writes each call on stdout, one
// JSON object a line, and changes the notifications by the objects that it reads on stdin: {"act": ID, "key": KEY}, {"close": ID}. Without
// actions in its arguments the server cannot show actions. With forge the server owns no name, and only sends the signals, as a stranger
// would.
package main

import (
	"bufio"
	"encoding/json"
	"log"
	"os"
	"slices"
	"sync"

	"github.com/godbus/dbus/v5"
)

const (
	name = "org.freedesktop.Notifications"
	path = "/org/freedesktop/Notifications"
)

// line is a call on the bus.
type line struct {
	Call    string   `json:"call"`
	ID      uint32   `json:"id,omitempty"`
	Summary string   `json:"summary,omitempty"`
	Body    string   `json:"body,omitempty"`
	Actions []string `json:"actions,omitempty"`
}

type server struct {
	conn *dbus.Conn
	can  []string

	mu   sync.Mutex // protects the fields below
	last uint32
}

func main() {
	conn, err := dbus.ConnectSessionBus()
	if err != nil {
		log.Fatal(err)
	}
	s := &server{conn: conn, can: append([]string{"body", "body-markup"}, os.Args[1:]...)}
	if !slices.Contains(os.Args[1:], "forge") {
		if err := conn.Export(s, path, name); err != nil {
			log.Fatal(err)
		}
		if r, err := conn.RequestName(name, dbus.NameFlagDoNotQueue); err != nil || r != dbus.RequestNameReplyPrimaryOwner {
			log.Fatal("the name is taken: ", err)
		}
	}
	s.say(line{Call: "ready"})
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var do struct {
			Act, Close uint32
			Key        string
		}
		if err := json.Unmarshal(in.Bytes(), &do); err != nil {
			log.Fatal(err)
		}
		if do.Act != 0 {
			s.emit("ActionInvoked", do.Act, do.Key)
		}
		if id := max(do.Act, do.Close); id != 0 {
			s.emit("NotificationClosed", id, uint32(2))
		}
	}
}

func (s *server) emit(signal string, values ...any) {
	if err := s.conn.Emit(path, name+"."+signal, values...); err != nil {
		log.Fatal(err)
	}
}

func (s *server) say(l line) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := json.NewEncoder(os.Stdout).Encode(l); err != nil {
		log.Fatal(err)
	}
}

// GetCapabilities is the server's.
func (s *server) GetCapabilities() ([]string, *dbus.Error) { return s.can, nil } //nolint:unparam // the shape that the library exports

// Notify is the server's.
func (s *server) Notify(_ string, _ uint32, _, summary, body string, actions []string, _ map[string]dbus.Variant, _ int32) (uint32, *dbus.Error) { //nolint:unparam // the shape that the library exports
	s.mu.Lock()
	s.last++
	id := s.last
	s.mu.Unlock()
	s.say(line{Call: "notify", ID: id, Summary: summary, Body: body, Actions: actions})
	return id, nil
}

// CloseNotification is the server's.
func (s *server) CloseNotification(id uint32) *dbus.Error { //nolint:unparam // the shape that the library exports
	s.say(line{Call: "close", ID: id})
	s.emit("NotificationClosed", id, uint32(3))
	return nil
}
