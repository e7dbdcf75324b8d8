package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// metric is a row. Its key and unit do not change: other programs read them.
type metric struct {
	key, what, unit string
	goal            *goal
	floor           string // the figure to compare with
}

// goal is a goal of section 5 of design.md.
type goal struct {
	Op    string  `json:"op"` // "<=" or ">="
	Value float64 `json:"value"`
}

func atMost(v float64) *goal  { return &goal{"<=", v} }
func atLeast(v float64) *goal { return &goal{">=", v} }

// verdict returns the goal, and whether a figure reaches the goal.
func (g *goal) verdict(f *figure) string {
	if g == nil || f == nil {
		return ""
	}
	met := f.Median <= g.Value
	if g.Op == ">=" {
		met = f.Median >= g.Value
	}
	if met {
		return fmt.Sprintf("%s %v, met", g.Op, g.Value)
	}
	return fmt.Sprintf("%s %v, MISSED", g.Op, g.Value)
}

// metrics are the rows in their order.
func metrics(instances int) []metric {
	rows := []metric{
		{"awake_round_trip_p50", "round trip through the proxy, p50, cores awake", "us", atMost(120), "least relay"},
		{"awake_round_trip_p99", "round trip through the proxy, p99, cores awake", "us", nil, "least relay"},
		{"round_trip_p50", "round trip through the proxy, p50, cores as they are", "us", nil, "least relay"},
		{"round_trip_p99", "round trip through the proxy, p99, cores as they are", "us", nil, "least relay"},
		{"http_p50", "HTTP without an agent, p50", "us", nil, "net/http"},
		{"http_p99", "HTTP without an agent, p99", "us", nil, "net/http"},
		{"pipe_p50", "an agent without a proxy, p50", "us", nil, "pipe"},
		{"pipe_p99", "an agent without a proxy, p99", "us", nil, "pipe"},
		{"requests", "requests of 32 clients", "1/s", atLeast(20_000), "least relay"},
		{"requests_cpu", "server CPU for each of them", "us", nil, "least relay"},
		{"stream_1", "streamed messages, one reader", "1/s", atLeast(250_000), "pipe"},
		{"stream_1_cpu", "server CPU for each message", "us", atMost(3), ""},
		{"stream_1_lost", "lost", "%", atMost(0), ""},
		{"stream_4", "streamed messages, four readers", "1/s", nil, ""},
		{"stream_4_cpu", "server CPU for each message", "us", nil, ""},
		{"stream_4_lost", "lost", "%", atMost(0), ""},
		{"stream_slow", "streamed messages, one of two readers slow", "1/s", nil, ""},
		{"stream_slow_lost", "lost", "%", atMost(0), ""},
		{"large", "a message of 8 MiB, there and back", "ms", nil, "pipe"},
		{"bootstrap", "first POST of an agent to its answer, p50", "ms", nil, "exec and pipe"},
		{"delete", "DELETE of an agent that ends on EOF, p50", "ms", atMost(50), "close and wait"},
		{"delete_max", "the slowest", "ms", atMost(50), ""},
		{"memory_0", "resident server without an instance", "MiB", nil, ""},
	}
	for _, n := range []int{1, 24, instances} {
		key := fmt.Sprintf("memory_%d", n)
		rows = append(rows,
			metric{key, fmt.Sprintf("resident server, idle instances: %d", n), "MiB", nil, ""},
			metric{key + "_pss", "its share of that (PSS)", "MiB", nil, ""},
			metric{key + "_each", "for each instance after the first", "KiB", nil, ""})
	}
	return rows
}

// report collects the figures of a run.
type report struct {
	begin  time.Time
	load   string
	absent string // why there is no peer
	asleep string // why the cores were not kept awake
	values map[string]map[column][]float64
	notes  map[string]string // why the peer has no figure
}

func newReport() *report {
	return &report{begin: time.Now(), load: load(), values: map[string]map[column][]float64{}, notes: map[string]string{}}
}

func (r *report) add(key string, c column, value float64) {
	if r.values[key] == nil {
		r.values[key] = make(map[column][]float64)
	}
	r.values[key][c] = append(r.values[key][c], value)
}

// note says why the peer has no figure.
func (r *report) note(key, text string) { r.notes[key] = text }

// figure is the values of the rounds.
type figure struct {
	Median float64   `json:"median"`
	Min    float64   `json:"min"`
	Max    float64   `json:"max"`
	Rounds []float64 `json:"rounds"`
}

func (r *report) figure(key string, c column) *figure {
	values := r.values[key][c]
	if len(values) == 0 {
		return nil
	}
	sorted := slices.Sorted(slices.Values(values))
	return &figure{sorted[len(sorted)/2], sorted[0], sorted[len(sorted)-1], values}
}

func (f *figure) String() string {
	if f == nil {
		return "–"
	}
	if len(f.Rounds) == 1 || f.Min == f.Max {
		return number(f.Median)
	}
	return fmt.Sprintf("%s (%s–%s)", number(f.Median), number(f.Min), number(f.Max))
}

// number has three figures that count.
func number(x float64) string {
	switch {
	case x == 0:
		return "0"
	case x < 10:
		return fmt.Sprintf("%.2f", x)
	case x < 100:
		return fmt.Sprintf("%.1f", x)
	default:
		return fmt.Sprintf("%.0f", x)
	}
}

func (r *report) peer(key string) string {
	f, note := r.figure(key, peer), r.notes[key]
	switch {
	case f == nil && note != "":
		return note
	case f == nil && r.absent != "":
		return r.absent
	default:
		return f.String()
	}
}

// table prints the figures.
func (r *report) table(out io.Writer, rows []metric) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "what\tunit\tours\tfloor\t\texisting server\tgoal")
	for _, m := range rows {
		if r.values[m.key] == nil {
			continue // not measured
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", m.what, m.unit, r.figure(m.key, ours), r.figure(m.key, floor), m.floor, r.peer(m.key), m.goal.verdict(r.figure(m.key, ours)))
	}
	_ = w.Flush()
	if r.asleep != "" {
		fmt.Fprintf(out, "Round trips on cores that are awake were not measured: %s\n", r.asleep)
	}
}

// document is the run in JSON. Schema rises when a name or a meaning in the document changes.
type document struct {
	Schema  int       `json:"schema"`
	Date    time.Time `json:"date"`
	Machine machine   `json:"machine"`
	Rounds  int       `json:"rounds"`
	Metrics []row     `json:"metrics"`
}

type machine struct {
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	CPU        string `json:"cpu,omitempty"`
	Cores      int    `json:"cores"`
	Go         string `json:"go"`
	LoadBefore string `json:"load_before,omitempty"` // as in /proc/loadavg
	LoadAfter  string `json:"load_after,omitempty"`
}

type row struct {
	Key      string  `json:"key"`
	What     string  `json:"what"`
	Unit     string  `json:"unit"`
	Goal     *goal   `json:"goal,omitempty"`
	Ours     *figure `json:"ours,omitempty"`
	Floor    *figure `json:"floor,omitempty"`
	FloorIs  string  `json:"floor_is,omitempty"`
	Peer     *figure `json:"peer,omitempty"`
	PeerNote string  `json:"peer_note,omitempty"`
}

func (r *report) write(path string, o options, rows []metric) error {
	d := document{Schema: 1, Date: r.begin.UTC().Truncate(time.Second), Rounds: o.times, Machine: machine{
		OS: runtime.GOOS, Arch: runtime.GOARCH, CPU: cpuName(), Cores: runtime.NumCPU(), Go: runtime.Version(), LoadBefore: r.load, LoadAfter: load(),
	}}
	for _, m := range rows {
		if r.values[m.key] == nil {
			continue
		}
		note := ""
		if r.figure(m.key, peer) == nil {
			note = r.peer(m.key)
		}
		d.Metrics = append(d.Metrics, row{
			Key: m.key, What: m.what, Unit: m.unit, Goal: m.goal, Ours: r.figure(m.key, ours), Floor: r.figure(m.key, floor), FloorIs: m.floor,
			Peer: r.figure(m.key, peer), PeerNote: note,
		})
	}
	data, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

// load returns the load of the machine; empty when the system does not report a load.
func load() string {
	data, _ := os.ReadFile("/proc/loadavg")
	return strings.TrimSpace(string(data))
}

func cpuName() string {
	data, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(data)) {
		if name, value, _ := strings.Cut(line, ":"); strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
