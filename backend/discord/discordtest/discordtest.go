// Package discordtest is a stand-in for Discord on loopback, for tests of everything that a bot meets of Discord. Its gateway, its API
// and its file server encode and decode JSON with their own code and refuse calls that Discord refuses, so that tests find a mistake
// which the bot shares with its library. Methods such as Say, Press and Slash act as people; other methods cause faults. Only tests
// import the package.
package discordtest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/disgoorg/snowflake/v2"
)

// Options configures a stand-in. The zero value is a Discord without faults.
type Options struct {
	Token     string        // of the bot; "" = a generated token
	Heartbeat time.Duration // how often a client must send a heartbeat; 0 = 41.25 s, as Discord asks
	Patience  time.Duration // how long the gateway waits for a heartbeat; 0 = one and a half times Heartbeat
	Answer    time.Duration // how long an interaction waits for its first answer; 0 = 3 s, as Discord does
	NoContent bool          // the privileged intent for the content of messages is off
	Clock     time.Duration // how far Discord's clock is from ours, from the start
	RealHosts bool          // addresses of files name cdn.discordapp.com, which CDN.Client takes to this machine
}

// Discord is the stand-in. A new stand-in has one guild with one text channel and two people. Tests change its content with the methods of
// World, and cause faults with the methods of Gateway, API and CDN. One lock, which World has, protects all parts.
type Discord struct {
	*World
	Gateway *Gateway
	API     *API
	CDN     *CDN

	interactions *interactions
	serving      sync.WaitGroup
	servers      []*http.Server
	closed       bool
}

// New starts a stand-in. New panics when no port on loopback is free.
func New(o Options) *Discord {
	const beat, answer = 41250 * time.Millisecond, 3 * time.Second
	if o.Heartbeat == 0 {
		o.Heartbeat = beat
	}
	if o.Patience == 0 {
		o.Patience = o.Heartbeat * 3 / 2
	}
	if o.Answer == 0 {
		o.Answer = answer
	}
	d := &Discord{World: newWorld(o)}
	d.Gateway = &Gateway{
		d: d, heartbeat: o.Heartbeat, patience: o.Patience, sessions: map[string]*session{}, lines: map[*line]struct{}{}, dropAfter: -1, startsLeft: -1,
	}
	d.API = &API{d: d, buckets: map[string]*bucket{}, nonces: map[string]snowflake.ID{}}
	d.CDN = &CDN{d: d, key: []byte(d.Token), files: map[snowflake.ID]*file{}}
	d.gateway, d.cdn = d.Gateway, d.CDN
	d.interactions = &interactions{d: d, patience: o.Answer, byID: map[snowflake.ID]*Interaction{}, commands: map[snowflake.ID][]command{}}
	d.API.URL = "http://" + d.serve(d.API.handler(), nil) + apiPath
	d.Gateway.URL = "ws://" + d.serve(http.HandlerFunc(d.Gateway.upgrade), nil)
	d.CDN.open(o.RealHosts)
	return d
}

// serve starts a server on loopback and returns its address.
func (d *Discord) serve(handler http.Handler, wrap func(net.Listener) net.Listener) string {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		panic(fmt.Sprintf("standin: %v", err))
	}
	where := listener.Addr().String()
	if wrap != nil {
		listener = wrap(listener)
	}
	const header = 10 * time.Second
	counted := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !d.enter() {
			return
		}
		defer d.serving.Done()
		handler.ServeHTTP(w, r)
	})
	server := &http.Server{Handler: counted, ReadHeaderTimeout: header, ErrorLog: quiet()}
	d.servers = append(d.servers, server)
	d.serving.Go(func() { _ = server.Serve(listener) })
	return where
}

// enter counts a request as running and reports whether the stand-in is still open. After Close has begun no request starts, so Close can
// wait for the running requests.
func (d *Discord) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.serving.Add(1)
	return true
}

// Close closes all connections and waits until nothing of the stand-in runs.
func (d *Discord) Close() {
	d.mu.Lock()
	d.closed = true
	for l := range d.Gateway.lines {
		l.drop()
	}
	for _, h := range d.API.holds {
		h.open()
	}
	d.mu.Unlock()
	for _, s := range d.servers {
		_ = s.Close()
	}
	d.CDN.Client.CloseIdleConnections()
	d.serving.Wait()
}

// Down makes the API, the gateway or both answer 503. Open connections stay open.
func (d *Discord) Down(api, gateway bool) {
	d.do(func() { d.API.down, d.Gateway.down = api, gateway })
}

// Seen is a view of the stand-in at one moment. A Seen is valid only inside the function that received the Seen.
type Seen struct{ d *Discord }

// Wait waits until is returns true. Wait calls is after each change and never polls. When ctx ends first, the error describes the content
// of the channels.
func (d *Discord) Wait(ctx context.Context, is func(Seen) bool) error {
	for {
		d.mu.Lock()
		seen, changed := is(Seen{d}), d.changed
		var shown string
		if !seen && ctx.Err() != nil {
			shown = d.told()
		}
		d.mu.Unlock()
		switch {
		case seen:
			return nil
		case ctx.Err() != nil:
			return fmt.Errorf("it was not seen: %w; there is\n%s", ctx.Err(), shown)
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

// told describes the content of all channels, for errors.
func (d *Discord) told() string {
	var b strings.Builder
	for _, id := range d.channelIDs() {
		list := Seen{d}.Messages(id)
		if len(list) == 0 {
			continue
		}
		fmt.Fprintf(&b, "#%s (%d)\n", d.channels[id].name, id)
		for _, m := range list {
			fmt.Fprintf(&b, "  %d %s: %q", m.ID, m.Author.Name, m.Text)
			for _, f := range m.Files {
				fmt.Fprintf(&b, " [%s, %d bytes]", f.Name, len(f.Data))
			}
			for _, c := range m.Controls {
				fmt.Fprintf(&b, " <%s%s>", c.Label, map[bool]string{true: " (off)"}[c.Disabled])
			}
			b.WriteByte('\n')
		}
	}
	fmt.Fprintf(&b, "  %d lines are open, %d calls were made", len(d.Gateway.lines), len(d.API.calls))
	return b.String()
}

// Messages returns the messages that a channel shows now, oldest first.
func (s Seen) Messages(channel snowflake.ID) []Message { return s.d.list(channel, false) }

// Everything returns the messages of a channel, deleted messages too, oldest first.
func (s Seen) Everything(channel snowflake.ID) []Message { return s.d.list(channel, true) }

// Says reports whether a channel shows a message of the bot that contains text.
func (s Seen) Says(channel snowflake.ID, text string) bool {
	for _, m := range s.d.list(channel, false) {
		if m.Author.ID == s.d.Bot && strings.Contains(m.Text, text) {
			return true
		}
	}
	return false
}

// Private returns the messages of i that only the person of i sees.
func (s Seen) Private(i *Interaction) []Message { return i.private() }

// Beats returns the number of heartbeats that the gateway acknowledged.
func (s Seen) Beats() int { return s.d.Gateway.beats }

// Answer returns the first answer to i, and false when the bot has not answered yet.
func (s Seen) Answer(i *Interaction) (Answer, bool) { return i.first, i.first.Kind != "" }

// Lines returns the number of clients at the gateway that have identified themselves.
func (s Seen) Lines() int {
	n := 0
	for l := range s.d.Gateway.lines {
		if l.session != nil {
			n++
		}
	}
	return n
}

// Connects returns the identify and resume frames of clients, oldest first.
func (s Seen) Connects() []Connect { return append([]Connect(nil), s.d.Gateway.connects...) }

// Calls returns the calls of a route or of a method ("PATCH"); "" means all calls.
func (s Seen) Calls(route string) []Call {
	var found []Call
	for _, c := range s.d.API.calls {
		if matches(c.Route, route) {
			found = append(found, c)
		}
	}
	return found
}

// Typing returns how often the bot has shown itself typing in a channel.
func (s Seen) Typing(channel snowflake.ID) int { return s.d.typing[channel] }

// Commands returns the names of the slash commands of a guild, the global commands included.
func (s Seen) Commands(guild snowflake.ID) []string {
	var names []string
	for _, list := range [][]command{s.d.interactions.commands[0], s.d.interactions.commands[guild]} {
		for _, c := range list {
			names = append(names, c.Name)
		}
	}
	return names
}

// Messages returns the messages that a channel shows now, oldest first.
func (d *Discord) Messages(channel snowflake.ID) (list []Message) {
	d.look(func(s Seen) { list = s.Messages(channel) })
	return list
}

// Everything returns the messages of a channel, deleted messages too, oldest first.
func (d *Discord) Everything(channel snowflake.ID) (list []Message) {
	d.look(func(s Seen) { list = s.Everything(channel) })
	return list
}

// Calls returns the calls of a route or of a method ("PATCH"); "" means all calls.
func (d *Discord) Calls(route string) (list []Call) {
	d.look(func(s Seen) { list = s.Calls(route) })
	return list
}

// Connects returns the identify and resume frames of clients, oldest first.
func (d *Discord) Connects() (list []Connect) {
	d.look(func(s Seen) { list = s.Connects() })
	return list
}

func (d *Discord) look(f func(Seen)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(Seen{d})
}
