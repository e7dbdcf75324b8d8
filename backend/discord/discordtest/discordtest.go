// Package discordtest is a Discord on loopback for tests, as far as a bot meets Discord. Its gateway, its API and its
// files speak JSON of their own and refuse what Discord refuses, so that a mistake which the bot's library shares with us is found.
// People are its methods: Say, Press, Slash. Faults are methods too. Only tests import it.
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

// Options of a stand-in. The zero value is a Discord in good health.
type Options struct {
	Token     string        // of the bot; "" = one of its own
	Heartbeat time.Duration // how often a client is to beat; 0 = 41.25 s, as Discord says
	Patience  time.Duration // how long a beat is waited for; 0 = half as long again
	Answer    time.Duration // how long an interaction waits for its first answer; 0 = 3 s, as Discord does
	NoContent bool          // the privileged intent for the content of messages is off
	Clock     time.Duration // how far Discord's clock is from ours, from the beginning
	RealHosts bool          // addresses of files name cdn.discordapp.com, which CDNClient takes to this machine
}

// Discord is the stand-in. It begins with one guild, one text channel in it and two people.
type Discord struct {
	Token       string
	Bot         snowflake.ID // the bot's user
	Application snowflake.ID
	Guild       snowflake.ID
	Channel     snowflake.ID // "general"
	Owner       snowflake.ID // a person whom tests let in
	Stranger    snowflake.ID // one whom they do not

	options Options
	serving sync.WaitGroup
	servers []*http.Server
	rest    string
	gateway string
	files   cdn

	mu           sync.Mutex
	closed       bool
	changed      chan struct{} // closed at each change
	skew         time.Duration
	lastID       snowflake.ID
	users        map[snowflake.ID]*user
	guilds       []*guild
	channels     map[snowflake.ID]*channel
	messages     map[snowflake.ID]*message // those that were deleted too
	nonces       map[string]snowflake.ID
	interactions map[snowflake.ID]*Interaction
	commands     map[snowflake.ID][]command // by guild; 0 = everywhere
	typing       map[snowflake.ID]int
	sessions     map[string]*session
	lines        map[*line]struct{}
	beats        int // heartbeats that were answered
	connects     []Connect
	calls        []Call
	buckets      map[string]*bucket
	faults       faults
}

// New begins a stand-in. It panics when this machine lends it no port.
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
	d := &Discord{
		options: o, Token: o.Token, skew: o.Clock, changed: make(chan struct{}),
		users: map[snowflake.ID]*user{}, channels: map[snowflake.ID]*channel{}, messages: map[snowflake.ID]*message{},
		nonces: map[string]snowflake.ID{}, interactions: map[snowflake.ID]*Interaction{}, commands: map[snowflake.ID][]command{},
		typing: map[snowflake.ID]int{}, sessions: map[string]*session{}, lines: map[*line]struct{}{}, buckets: map[string]*bucket{},
	}
	d.faults.dropAfter, d.faults.startsLeft = -1, -1
	d.populate()
	if d.Token == "" {
		d.Token = madeToken(d.Application)
	}
	d.rest = "http://" + d.serve(d.api(), nil) + apiPath
	d.gateway = "ws://" + d.serve(http.HandlerFunc(d.upgrade), nil)
	d.openCDN()
	return d
}

// serve opens a server on loopback and tells where it is.
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

// enter counts a request in, unless the stand-in is closed: no request begins while Close waits for those that are under way.
func (d *Discord) enter() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return false
	}
	d.serving.Add(1)
	return true
}

// Close hangs up on everybody and waits until nothing of the stand-in runs.
func (d *Discord) Close() {
	d.mu.Lock()
	d.closed = true
	for l := range d.lines {
		l.drop()
	}
	for _, h := range d.faults.holds {
		h.open()
	}
	d.mu.Unlock()
	for _, s := range d.servers {
		_ = s.Close()
	}
	d.files.client.CloseIdleConnections()
	d.serving.Wait()
}

// REST is where the API is, with its version, as a bot's library takes it.
func (d *Discord) REST() string { return d.rest }

// Gateway is where the gateway is, without a path and a query, as the API tells it.
func (d *Discord) Gateway() string { return d.gateway }

// change tells those that wait that something changed. The lock is held.
func (d *Discord) change() {
	close(d.changed)
	d.changed = make(chan struct{})
}

// do changes the stand-in.
func (d *Discord) do(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f()
	d.change()
}

// Seen is what can be seen of the stand-in at one moment. It is only good in the function that it is given to.
type Seen struct{ d *Discord }

// Wait waits until something is seen. There is no polling: it looks at each change. What it returns when ctx ends tells what there was.
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

// told is what is shown everywhere, for errors.
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
	fmt.Fprintf(&b, "  %d lines are open, %d calls were made", len(d.lines), len(d.calls))
	return b.String()
}

// Messages are those that a channel shows now, oldest first.
func (s Seen) Messages(channel snowflake.ID) []Message { return s.d.list(channel, false) }

// Everything is Messages with those that were deleted.
func (s Seen) Everything(channel snowflake.ID) []Message { return s.d.list(channel, true) }

// Says tells whether a message of the bot that is shown in a channel has a text in it.
func (s Seen) Says(channel snowflake.ID, text string) bool {
	for _, m := range s.d.list(channel, false) {
		if m.Author.ID == s.d.Bot && strings.Contains(m.Text, text) {
			return true
		}
	}
	return false
}

// Private are the messages of an interaction that its person alone sees.
func (s Seen) Private(i *Interaction) []Message { return i.private() }

// Beats is how many heartbeats were answered.
func (s Seen) Beats() int { return s.d.beats }

// Answer is the first answer to an interaction.
func (s Seen) Answer(i *Interaction) (Answer, bool) { return i.first, i.first.Kind != "" }

// Lines is how many clients are at the gateway and have said who they are.
func (s Seen) Lines() int {
	n := 0
	for l := range s.d.lines {
		if l.session != nil {
			n++
		}
	}
	return n
}

// Connects are the hellos that clients answered, oldest first.
func (s Seen) Connects() []Connect { return append([]Connect(nil), s.d.connects...) }

// Calls are those of a route, of a method ("PATCH") or, with "", all.
func (s Seen) Calls(route string) []Call {
	var found []Call
	for _, c := range s.d.calls {
		if matches(c.Route, route) {
			found = append(found, c)
		}
	}
	return found
}

// Typing is how often the bot has said that it types in a channel.
func (s Seen) Typing(channel snowflake.ID) int { return s.d.typing[channel] }

// Commands are the names of the slash commands of a guild, with those of everywhere.
func (s Seen) Commands(guild snowflake.ID) []string {
	var names []string
	for _, list := range [][]command{s.d.commands[0], s.d.commands[guild]} {
		for _, c := range list {
			names = append(names, c.Name)
		}
	}
	return names
}

// Messages are those that a channel shows now, oldest first.
func (d *Discord) Messages(channel snowflake.ID) (list []Message) {
	d.look(func(s Seen) { list = s.Messages(channel) })
	return list
}

// Everything is Messages with those that were deleted.
func (d *Discord) Everything(channel snowflake.ID) (list []Message) {
	d.look(func(s Seen) { list = s.Everything(channel) })
	return list
}

// Calls are those of a route, of a method ("PATCH") or, with "", all.
func (d *Discord) Calls(route string) (list []Call) {
	d.look(func(s Seen) { list = s.Calls(route) })
	return list
}

// Connects are the hellos that clients answered, oldest first.
func (d *Discord) Connects() (list []Connect) {
	d.look(func(s Seen) { list = s.Connects() })
	return list
}

func (d *Discord) look(f func(Seen)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(Seen{d})
}
