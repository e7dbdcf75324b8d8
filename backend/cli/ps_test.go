package cli_test

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"deskhand/backend/feed"
	"deskhand/backend/lifecycle"
	"deskhand/backend/session"
)

// running decodes the fields of deskhand ps --json that scripts rely on.
type running struct {
	Items []struct {
		Owner, Session, Title, ServerID, Agent string
		PID                                    int
		StartedAt                              time.Time
		CPUSeconds                             *float64
		RSSBytes, PSSBytes                     *int64
		Processes                              []struct {
			PID        int
			Name       string
			StartedAt  time.Time
			CPUSeconds *float64
			RSSBytes   *int64
		}
	}
	Self struct {
		PID        int
		StartedAt  time.Time
		CPUSeconds *float64
		RSSBytes   *int64
	}
}

func listRunning(t *testing.T, dir string, args ...string) running {
	t.Helper()
	out, stderr, code := run(t, dir, append([]string{"ps", "--json"}, args...)...)
	var r running
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != 0 || stderr != "" {
		t.Fatalf("deskhand ps --json %v: got exit %d, %v, stderr %q: %s; want 0 and JSON alone", args, code, err, stderr, out)
	}
	return r
}

func TestPsListsProcesses(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("no /proc here")
	}
	dir := t.TempDir()
	begun := time.Now()
	srv, _ := server(t, dir)
	if r := listRunning(t, dir); len(r.Items) != 0 || r.Items == nil || r.Self.PID != srv.Process.Pid || *r.Self.RSSBytes < 1<<20 || *r.Self.CPUSeconds <= 0 {
		t.Errorf("listRunning: got r %+v, want no Items, Items not nil, r.Self.PID %v, r.Self.RSSBytes at least 1<<20 and r.Self.CPUSeconds more than 0", r, srv.Process.Pid)
	}
	c := onSocket(t, dir)
	before := time.Now()
	var s session.Session
	c.post("/client/sessions", session.New{Agent: "mock", Cwd: dir, Title: "Light\x1b[2J\thouse (one)"}, &s)
	c.watch("ready session", func(e feed.Event) bool {
		return e.Type == "session.upsert" && decode[session.Session](e).Phase == lifecycle.Ready
	})
	c.post("/v1/acp/nightly?agent=mock", json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}`), nil)

	r := listRunning(t, dir, "--pss")
	if len(r.Items) != 3 {
		t.Fatalf(`listRunning("--pss"): got r %+v, want 3 in Items`, r)
	}
	if at := r.Self.StartedAt; at.Before(begun.Add(-time.Second)) || at.After(before) {
		t.Errorf("start of Deskhand: got %v, want %v or a little later", at, begun)
	}
	own, api, dog := r.Items[0], r.Items[1], r.Items[2]
	if dog.Owner != "watchdog" || dog.Agent != "" || dog.ServerID != "" || dog.StartedAt.Before(begun.Add(-time.Second)) || len(dog.Processes) != 1 ||
		*dog.RSSBytes < 1<<20 || !slices.Equal(processes(t, srv.Process.Pid, "watchdog"), []int{dog.PID}) {
		t.Errorf(`got dog %+v, want dog.Owner "watchdog", dog.Agent "", dog.ServerID "", not dog.StartedAt.Before(begun.Add(-time.Second)), 1 in dog.Processes, dog.RSSBytes at least 1<<20 and processes(t, srv.Process.Pid, "watchdog") []int{dog.PID}`, dog)
	}
	if own.Owner != "session" || own.Session != s.ID || own.Title != s.Title || own.ServerID != s.ID+".1" {
		t.Errorf(`got own %+v, want own.Owner "session", own.Session %v, own.Title %v and own.ServerID s.ID+".1"`, own, s.ID, s.Title)
	}
	if api.Owner != "api" || api.Session != "" || api.Title != "" || api.ServerID != "nightly" {
		t.Errorf(`got api %+v, want api.Owner "api", api.Session "", api.Title "" and api.ServerID "nightly"`, api)
	}
	children := processes(t, srv.Process.Pid, "demo-agent")
	for _, i := range r.Items[:2] {
		if i.Agent != "mock" || !slices.Contains(children, i.PID) || i.StartedAt.Before(before.Add(-time.Second)) || i.StartedAt.After(time.Now()) {
			t.Errorf("process: got %+v, want an agent mock among %v, started since %v", i, children, before)
		}
		if *i.RSSBytes < 1<<20 || i.CPUSeconds == nil || *i.PSSBytes <= 0 || *i.PSSBytes > *i.RSSBytes+1<<20 {
			t.Errorf("process: got RSS %d, PSS %d, CPU %v; want each measured, and PSS within RSS", *i.RSSBytes, *i.PSSBytes, *i.CPUSeconds)
		}
		if len(i.Processes) != 1 || i.Processes[0].PID != i.PID || i.Processes[0].Name == "" || i.Processes[0].CPUSeconds == nil || *i.Processes[0].RSSBytes != *i.RSSBytes {
			t.Errorf(`got Processes %+v, want 1 in Processes, i.Processes[0].PID %v, i.Processes[0].Name other than "", i.Processes[0].CPUSeconds not nil and i.Processes[0].RSSBytes *i.RSSBytes`, i.Processes, i.PID)
		}
	}

	out, stderr, code := run(t, dir, "ps")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if code != 0 || stderr != "" || len(lines) != 5 {
		t.Fatalf("deskhand ps: got exit %d, stderr %q\n%s\nwant 0 and 5 lines", code, stderr, out)
	}
	for n, want := range []string{
		`^AGENT +WHOSE +PID +AGE +CPU +MEMORY +PROCESSES$`,
		`^mock +Light\[U\+001B\]\[2J house \(one\) +` + strconv.Itoa(own.PID) + ` +\d+\.\d s +\d+\.\d s +\d+ MiB +1$`,
		`^mock +nightly \(API\) +` + strconv.Itoa(api.PID) + ` +\d+\.\d s +\d+\.\d s +\d+ MiB +1$`,
		`^- +watchdog of Deskhand +` + strconv.Itoa(dog.PID) + ` +\d+\.\d s +\d+\.\d s +\d+ MiB +1$`,
		`^- +Deskhand itself +` + strconv.Itoa(srv.Process.Pid) + ` +\d+\.\d s +\d+\.\d s +\d+ MiB +-$`,
	} {
		if !regexp.MustCompile(want).MatchString(lines[n]) {
			t.Errorf("line %d: got %q, want a match of %s", n, lines[n], want)
		}
	}
}

func TestPsWithoutDeskhand(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, args := range [][]string{{"ps"}, {"ps", "--json"}} {
		out, stderr, code := run(t, dir, args...)
		if code != 1 || out != "" || !strings.HasPrefix(stderr, "deskhand: no Deskhand runs on "+dir+"; `deskhand` opens the window") {
			t.Errorf("deskhand %v: got exit %d, stdout %q, stderr %q; want 1 and that no Deskhand runs", args, code, out, stderr)
		}
	}
	if list, err := os.ReadDir(dir); err != nil || len(list) > 0 {
		t.Errorf("data directory after ps: got %v, %v; want it empty", list, err)
	}
}
