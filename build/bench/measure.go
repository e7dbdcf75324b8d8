package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	block      = 100 // consecutive round trips with a server, before the next server's turn
	blocks     = 10
	clients    = 32
	burst      = time.Second // how long the clients go on
	starts     = 8
	largeBytes = 8 << 20
	slowPause  = 10 * time.Millisecond
	slowShare  = 4  // a slow reader gets 1 of this many messages
	peerShare  = 12 // and the existing server 1 of this many
)

// bench is a run.
type bench struct {
	options
	dir     string
	self    string
	report  *report
	floor   *server
	servers []*server // ours, and the peer when installed
	number  int       // of the newest instance
}

// measure is a measurement of every round.
type measure struct {
	name string
	run  func(context.Context) error
}

func (b *bench) measures() []measure {
	return []measure{
		{"round trips", b.roundTrips("")},
		{"round trips on cores kept awake", b.awake(b.roundTrips("awake_"))},
		{"requests of many clients", b.requests},
		{"a bare stream", b.bareStream},
		{"a stream with one reader", b.each(b.stream("stream_1", 1, 0))},
		{"a stream with four readers", b.each(b.stream("stream_4", 4, 0))},
		{"a stream with a slow reader", b.each(b.stream("stream_slow", 2, slowPause))},
		{"a bare large message", b.bareLarge},
		{"a large message", b.each(b.large)},
		{"bare starts and ends", b.bareStarts},
		{"starts and ends", b.each(b.starts)},
	}
}

// start starts the servers.
func (b *bench) start(name string) (err error) {
	if b.self, err = os.Executable(); err != nil {
		return err
	}
	if b.floor, err = startFloor(b.self); err != nil {
		return err
	}
	s, err := startOurs(b.program, b.self, filepath.Join(b.dir, name+"-ours"))
	if err != nil {
		return err
	}
	b.servers = []*server{s}
	s, err = startPeer(b.peer, b.self, filepath.Join(b.dir, name+"-peer"))
	switch {
	case err == nil:
		b.servers = append(b.servers, s)
	case errors.Is(err, os.ErrNotExist):
		b.report.absent = "not installed"
	default:
		b.report.absent = err.Error()
	}
	return nil
}

// rounds measures everything but memory.
func (b *bench) rounds(ctx context.Context, progress io.Writer) error {
	if err := b.start("rounds"); err != nil {
		return err
	}
	for round := range b.times {
		for _, m := range b.measures() {
			if !b.only.MatchString(m.name) {
				continue
			}
			fmt.Fprintf(progress, "\rround %d of %d: %-40s", round+1, b.times, m.name)
			if err := b.forgive(m.run(ctx)); err != nil {
				return fmt.Errorf("%s: %w", m.name, err)
			}
		}
		slices.Reverse(b.servers)
	}
	fmt.Fprintf(progress, "\r%-60s\r", "")
	b.stop()
	return nil
}

// peerError is a failure of the existing server.
type peerError struct{ error }

func (e peerError) Unwrap() error { return e.error }

// blame says whose failure an error is.
func (s *server) blame(err error) error {
	if err != nil && s.column == peer {
		return peerError{err}
	}
	return err
}

// forgive continues without the existing server when that server has failed.
func (b *bench) forgive(err error) error {
	failed, ok := errors.AsType[peerError](err)
	if !ok {
		return err
	}
	first, _, _ := strings.Cut(failed.Error(), "\n") // of 32 clients
	b.report.absent = "failed: " + first
	b.servers = slices.DeleteFunc(b.servers, func(s *server) bool {
		if s.column == peer {
			s.stop()
		}
		return s.column == peer
	})
	return nil
}

func (b *bench) stop() {
	for _, s := range append(b.servers, b.floor) {
		if s != nil {
			s.stop()
		}
	}
	b.servers, b.floor = nil, nil
}

// each measures all servers, one after the other.
func (b *bench) each(f func(*server) error) func(context.Context) error {
	return func(ctx context.Context) error {
		for _, s := range b.servers {
			if err := ctx.Err(); err != nil {
				return err
			}
			if err := f(s); err != nil {
				return s.blame(err)
			}
		}
		return nil
	}
}

// instance starts an instance and returns its id, with a connection to its server.
func (b *bench) instance(s *server) (string, *client, error) {
	c, err := s.dial()
	if err != nil {
		return "", nil, err
	}
	b.number++
	id := fmt.Sprintf("bench-%d", b.number)
	if err := c.spawn(id); err != nil {
		c.close()
		return "", nil, err
	}
	return id, c, nil
}

// end removes an instance. The existing server would hang in that call: its instance stays.
func (b *bench) end(id string, c *client) error {
	defer c.close()
	if c.server.column != ours {
		return nil
	}
	return c.remove(id)
}

// lap is a repeated call to a server.
type lap struct {
	key    string
	server *server
	call   func(n int) error
	took   []time.Duration
}

// awake keeps the cores awake during f. Without the permission, nothing is measured, and the report says so.
func (b *bench) awake(f func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		sleep, err := keepAwake()
		if err != nil {
			b.report.asleep = err.Error()
			return nil
		}
		defer sleep()
		return f(ctx)
	}
}

// roundTrips measures one call at a time, in blocks that take turns. The keys of its figures begin with prefix.
func (b *bench) roundTrips(prefix string) func(context.Context) error {
	return func(ctx context.Context) error { return b.trips(ctx, prefix) }
}

func (b *bench) trips(ctx context.Context, prefix string) (err error) {
	p, err := startPipe(ctx, b.self)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.stop()) }()
	relay, err := b.floor.dial()
	if err != nil {
		return err
	}
	defer relay.close()
	laps := []*lap{
		{key: "pipe", server: b.floor, call: func(n int) error { return p.call(request(n)) }},
		{key: "http", server: b.floor, call: relay.health},
		{key: "round_trip", server: b.floor, call: relay.posts("acp/floor")},
	}
	for _, s := range b.servers {
		id, c, failed := b.instance(s)
		if failed != nil {
			return s.blame(failed)
		}
		defer func() { err = errors.Join(err, s.blame(b.end(id, c))) }()
		laps = append(laps, &lap{key: "http", server: s, call: c.health}, &lap{key: "round_trip", server: s, call: c.posts("acp/" + id)})
	}
	if err := runLaps(laps); err != nil {
		return err
	}
	for _, l := range laps {
		b.report.add(prefix+l.key+"_p50", l.server.column, micros(percentile(l.took, 50)))
		b.report.add(prefix+l.key+"_p99", l.server.column, micros(percentile(l.took, 99)))
	}
	return nil
}

// health is a call that asks no agent.
func (c *client) health(int) error {
	_, err := c.do(http.MethodGet, "health", "")
	return err
}

// posts is a call that sends small requests.
func (c *client) posts(path string) func(int) error {
	return func(n int) error {
		_, err := c.do(http.MethodPost, path, request(n))
		return err
	}
}

func runLaps(laps []*lap) error {
	for range blocks {
		for _, l := range laps {
			for n := range block {
				begin := time.Now()
				if err := l.call(n); err != nil {
					return l.server.blame(err)
				}
				l.took = append(l.took, time.Since(begin))
			}
		}
	}
	return nil
}

func percentile(took []time.Duration, at int) time.Duration {
	slices.Sort(took)
	return took[len(took)*at/100]
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
func millis(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e6 }

// requests measures many clients at once on one instance.
func (b *bench) requests(context.Context) error {
	rate, cpu, err := hammer(b.floor, "acp/floor")
	if err != nil {
		return err
	}
	b.report.add("requests", floor, rate)
	b.report.add("requests_cpu", floor, cpu)
	for _, s := range b.servers {
		id, c, err := b.instance(s)
		if err != nil {
			return s.blame(err)
		}
		rate, cpu, err := hammer(s, "acp/"+id)
		if err := errors.Join(err, b.end(id, c)); err != nil {
			return s.blame(err)
		}
		b.report.add("requests", s.column, rate)
		b.report.add("requests_cpu", s.column, cpu)
	}
	return nil
}

// hammer returns the number of requests a second that a server answers, and the processor time of each in microseconds.
func hammer(s *server, path string) (rate, cpu float64, err error) {
	var answered, number atomic.Int64
	var done sync.WaitGroup
	failed := make([]error, clients)
	before, begin := s.cpuTime(), time.Now()
	for n := range clients {
		done.Go(func() {
			c, err := s.dial()
			if err != nil {
				failed[n] = err
				return
			}
			defer c.close()
			call := c.posts(path)
			for time.Since(begin) < burst && failed[n] == nil {
				failed[n] = call(int(number.Add(1)))
				answered.Add(1)
			}
		})
	}
	done.Wait()
	took, used := time.Since(begin), s.cpuTime()-before
	return float64(answered.Load()) / took.Seconds(), micros(used) / float64(answered.Load()), errors.Join(failed...)
}

// bareStream measures a stream over the pipe.
func (b *bench) bareStream(ctx context.Context) error {
	p, err := startPipe(ctx, b.self)
	if err != nil {
		return err
	}
	begin := time.Now()
	err = p.send(flood(b.messages))
	for n := 0; n < b.messages && err == nil; n++ {
		err = p.line()
	}
	b.report.add("stream_1", floor, float64(b.messages)/time.Since(begin).Seconds())
	return errors.Join(err, p.stop())
}

func flood(messages int) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"flood:%d"}`, messages)
}

// stream measures a stream with so many readers, of whom the first may be slow.
func (b *bench) stream(key string, readers int, pause time.Duration) func(*server) error {
	return func(s *server) error {
		messages := b.messages
		if pause > 0 {
			messages /= slowShare
		}
		if s.column == peer {
			messages /= peerShare
		}
		id, c, err := b.instance(s)
		if err != nil {
			return err
		}
		before := s.cpuTime()
		took, seen, err := streamTo(c, id, messages, readers, pause)
		used := s.cpuTime() - before
		if err := errors.Join(err, b.end(id, c)); err != nil {
			return err
		}
		if seen == 0 {
			return errors.New("no message came")
		}
		lost := readers*messages - seen
		b.report.add(key, s.column, float64(messages)/took.Seconds())
		b.report.add(key+"_cpu", s.column, micros(used)/float64(messages))
		b.report.add(key+"_lost", s.column, 100*float64(lost)/float64(readers*messages))
		if s.column == ours && lost != 0 {
			return fmt.Errorf("%d of %d messages were lost", lost, readers*messages)
		}
		return nil
	}
}

// streamTo makes an agent flood readers. streamTo returns the duration, and the number of messages that all readers together received.
func streamTo(c *client, id string, messages, readers int, pause time.Duration) (took time.Duration, seen int, err error) {
	var reading sync.WaitGroup
	results := make([]received, readers)
	failed := make([]error, readers)
	for n := range readers {
		r, err := c.server.dial()
		if err != nil {
			return 0, 0, err
		}
		defer r.close()
		r.hurry()
		in, err := r.events("acp/" + id)
		if err != nil {
			return 0, 0, err
		}
		wait := time.Duration(0)
		if n == 0 {
			wait = pause
		}
		reading.Go(func() { results[n], failed[n] = in.read(messages, wait) })
	}
	begin := time.Now()
	_, err = c.do(http.MethodPost, "acp/"+id, flood(messages))
	reading.Wait()
	for _, r := range results {
		seen += r.messages
		took = max(took, r.last.Sub(begin))
	}
	return took, seen, errors.Join(append(failed, err)...)
}

// echo is a large request that is answered with itself.
func echo() string {
	return `{"jsonrpc":"2.0","id":1,"method":"echo","params":"` + strings.Repeat("0123456789abcdef", largeBytes/16) + `"}`
}

func (b *bench) bareLarge(ctx context.Context) error {
	p, err := startPipe(ctx, b.self)
	if err != nil {
		return err
	}
	begin := time.Now()
	err = p.call(echo())
	b.report.add("large", floor, millis(time.Since(begin)))
	return errors.Join(err, p.stop())
}

// large measures a large message there and back.
func (b *bench) large(s *server) error {
	id, c, err := b.instance(s)
	if err != nil {
		return err
	}
	begin := time.Now()
	size, err := c.do(http.MethodPost, "acp/"+id, echo())
	took := time.Since(begin)
	var refused *statusError
	switch {
	case s.column == peer && errors.As(err, &refused):
		b.report.note("large", fmt.Sprintf("refused: %d", refused.code))
		err = nil
	case s.column == peer && err != nil:
		b.report.note("large", "refused")
		err = nil
	case err == nil && size < largeBytes:
		err = fmt.Errorf("an answer of %d bytes", size)
	case err == nil:
		b.report.add("large", s.column, millis(took))
	}
	return errors.Join(err, b.end(id, c))
}
