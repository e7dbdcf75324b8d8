//go:build e2e

package agents

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"deskhand/backend/feed"
	"deskhand/backend/lifecycle"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/transcript"
)

// binVariable names the deskhand under test; without the variable, the tests build deskhand from this tree.
const binVariable = "DESKHAND_BIN"

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	if secret := os.Getenv(probeVariable); secret != "" {
		return serveProbe(secret)
	}
	flag.Parse()
	bin := os.Getenv(binVariable)
	if bin == "" {
		dir, err := os.MkdirTemp("", "deskhand-e2e-")
		if err != nil {
			panic(err)
		}
		defer os.RemoveAll(dir)
		bin = filepath.Join(dir, "deskhand")
		build := exec.Command("go", "build", "-o", bin, "deskhand")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			panic(fmt.Sprintf("go build: %v\n%s", err, out))
		}
	}
	bin, err := filepath.Abs(bin)
	if err != nil {
		panic(err)
	}
	if err := os.Setenv(binVariable, bin); err != nil {
		panic(err)
	}
	return m.Run()
}

func deskhand() string { return os.Getenv(binVariable) }

// server is a running `deskhand server` and a person logged in to it.
type server struct {
	t     *testing.T
	cmd   *exec.Cmd
	ended chan struct{} // closed when the process is gone; err is set before
	err   error
	base  string
	token string
}

// startServer starts the program on a free port and trades the code of its link for a token, as a browser does.
func startServer(t *testing.T, p place, flags ...string) *server {
	t.Helper()
	cmd := exec.Command(deskhand(), append([]string{"server", "--port", "0"}, flags...)...)
	cmd.Dir, cmd.Env = p.home, p.env
	var log bytes.Buffer // read only after the end of the process
	cmd.Stderr = &log
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	s := &server{t: t, cmd: cmd, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		s.err = cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // mostly gone already
		<-s.ended
		out.Close()
		if t.Failed() {
			t.Logf("stderr of the server:\n%s", log.Bytes())
		}
	})
	s.login(link(t, out))
	return s
}

// link reads the address that the server prints when it listens.
func link(t *testing.T, out io.Reader) *url.URL {
	t.Helper()
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		for word := range strings.FieldsSeq(lines.Text()) {
			if u, err := url.Parse(word); err == nil && u.Scheme == "http" && strings.HasPrefix(u.Fragment, "code=") {
				go io.Copy(io.Discard, out) // the pipe must not fill up
				return u
			}
		}
	}
	t.Fatal("the server printed no link")
	return nil
}

func (s *server) login(link *url.URL) {
	s.t.Helper()
	s.base = "http://" + link.Host
	var answer struct{ Token string }
	s.call("POST", "/client/login", map[string]string{"code": strings.TrimPrefix(link.Fragment, "code=")}, &answer)
	s.token = answer.Token
}

// call sends one request of the client API; into may be nil. A status other than 2xx fails the test.
func (s *server) call(method, path string, body, into any) {
	s.t.Helper()
	if status, answer := s.try(method, path, body); status/100 != 2 {
		s.t.Fatalf("try(%s, %s): got status %d, answer %s, want status/100 2", method, path, status, answer)
	} else if into != nil {
		decode(s.t, answer, into)
	}
}

func (s *server) try(method, path string, body any) (int, json.RawMessage) {
	s.t.Helper()
	return s.send(s.token, method, path, body)
}

// send sends one request with a token.
func (s *server) send(token, method, path string, body any) (int, json.RawMessage) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), 2*time.Minute)
	defer cancel()
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			s.t.Fatal(err)
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, s.base+path, content)
	if err != nil {
		s.t.Fatal(err)
	}
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("Deskhand-Surface", "browser")
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, answer
}

// stop ends the server as a service manager would, and wants a clean end.
func (s *server) stop() {
	s.t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	select {
	case <-s.ended:
		if s.err != nil {
			s.t.Errorf("the server ended with %v", s.err)
		}
	case <-time.After(10 * time.Second):
		s.t.Fatal("the server did not end on SIGTERM")
	}
}

// kill gives the server no chance to clean up.
func (s *server) kill() {
	s.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	<-s.ended
}

// follower follows the server's events and keeps the records that they tell about, as the window does.
type follower struct {
	s       *server
	gen     string
	seq     int64
	count   int
	only    string // a session's id: entries of other sessions are ignored
	session session.Session
	entries map[string]transcript.Entry
	turns   map[string]session.Turn
	asked   map[string]requests.Request
}

func follow(s *server) *follower {
	s.t.Helper()
	f := &follower{
		s: s, entries: map[string]transcript.Entry{}, turns: map[string]session.Turn{}, asked: map[string]requests.Request{},
	}
	var start struct {
		Gen   string
		Seq   int64
		Reset bool
	}
	s.call("GET", "/client/events", nil, &start)
	if !start.Reset {
		s.t.Error("events without a position did not answer reset")
	}
	f.gen, f.seq = start.Gen, start.Seq
	return f
}

// until takes events in until done gives true.
func (f *follower) until(what string, done func() bool) {
	f.s.t.Helper()
	deadline := time.Now().Add(60 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			f.s.t.Fatalf("%s did not come; the session is %s, exit %+v, entries:\n%s", what, f.session.Phase, f.session.Exit, f.transcript())
		}
		var batch struct {
			Gen    string
			Seq    int64
			Reset  bool
			Events []feed.Event
		}
		f.s.call("GET", fmt.Sprintf("/client/events?gen=%s&after=%d&wait=5", url.QueryEscape(f.gen), f.seq), nil, &batch)
		if batch.Reset || batch.Gen != f.gen {
			f.s.t.Fatalf("the feed was reset: %+v", batch)
		}
		for _, event := range batch.Events {
			if event.Seq <= f.seq {
				f.s.t.Errorf("event %d after %d", event.Seq, f.seq)
			}
			f.seq = event.Seq
			f.take(event)
		}
	}
}

func (f *follower) take(event feed.Event) {
	f.s.t.Helper()
	f.count++
	if f.only != "" && event.Session != f.only {
		return
	}
	switch event.Type {
	case "session.upsert":
		decode(f.s.t, event.Data, &f.session)
	case "entry.upsert":
		var entry transcript.Entry
		decode(f.s.t, event.Data, &entry)
		f.entries[entry.ID] = entry
	case "entry.append":
		var more transcript.Append
		decode(f.s.t, event.Data, &more)
		entry, ok := f.entries[more.ID]
		if !ok {
			f.s.t.Fatalf("text for an unknown entry %s", more.ID)
		}
		if have := len(entry.Text); have >= more.Offset { // all texts here are ASCII: bytes are UTF-16 units
			entry.Text += more.Text[min(have-more.Offset, len(more.Text)):]
			f.entries[more.ID] = entry
		} else {
			f.s.t.Fatalf("a gap in entry %s: %d of %d", more.ID, have, more.Offset)
		}
	case "turn.upsert":
		var turn session.Turn
		decode(f.s.t, event.Data, &turn)
		f.turns[turn.ID] = turn
	case "request.upsert":
		var request requests.Request
		decode(f.s.t, event.Data, &request)
		f.asked[request.ID] = request
	}
}

// said is all that the agent said, in order.
func (f *follower) said() string { return said(f.sorted()) }

func (f *follower) sorted() []transcript.Entry {
	list := make([]transcript.Entry, 0, len(f.entries))
	for _, entry := range f.entries {
		list = append(list, entry)
	}
	sortEntries(list)
	return list
}

func (f *follower) transcript() string { return readable(f.sorted()) }

// waiting is the request that waits for a person, if any.
func (f *follower) waiting() (requests.Request, bool) {
	for _, request := range f.asked {
		if request.Status == "requested" {
			return request, true
		}
	}
	return requests.Request{}, false
}

// open starts a session and waits until it is ready.
func (f *follower) open(agent string, p place) {
	f.s.t.Helper()
	f.s.call("POST", "/client/sessions", map[string]string{"agent": agent, "cwd": p.work}, &f.session)
	f.only = f.session.ID
	f.ready()
}

func (f *follower) ready() {
	f.s.t.Helper()
	f.until("a ready session", func() bool {
		if f.session.Phase == lifecycle.Closed {
			f.s.t.Fatalf("the agent did not start: %+v", f.session.Exit)
		}
		return f.session.Phase == lifecycle.Ready
	})
}

// prompt sends a text and returns the turn's id.
func (f *follower) prompt(text string) string {
	f.s.t.Helper()
	var answer struct {
		Turn session.Turn
	}
	f.s.call("POST", "/client/sessions/"+f.session.ID+"/prompt", map[string]string{"message": text}, &answer)
	return answer.Turn.ID
}

// answer gives the waiting permission the first option of a kind.
func (f *follower) answer(kind string) requests.Request {
	f.s.t.Helper()
	f.until("a request for permission", func() bool { _, ok := f.waiting(); return ok })
	request, _ := f.waiting()
	for _, option := range request.Options {
		if option.Kind == kind {
			f.s.call("POST", "/client/requests/"+request.ID+"/answer", requests.Answer{OptionID: option.ID}, nil)
			return request
		}
	}
	f.s.t.Fatalf("no %s among %+v", kind, request.Options)
	return request
}

// done waits for the end of a turn.
func (f *follower) done(turn string) session.Turn {
	f.s.t.Helper()
	f.until("the end of the turn", func() bool { return f.turns[turn].State == "done" })
	return f.turns[turn]
}

// entriesOf loads the session's transcript as a window that opens would, page by page.
func (s *server) entriesOf(id string) ([]transcript.Entry, []requests.Request) {
	s.t.Helper()
	var all []transcript.Entry
	var asked []requests.Request
	path := "/client/sessions/" + id + "/entries?limit=3"
	for before := ""; ; {
		var page struct {
			Items    []transcript.Entry
			Next     json.RawMessage
			Requests []requests.Request
		}
		s.call("GET", path+before, nil, &page)
		all, asked = append(page.Items, all...), append(page.Requests, asked...)
		if next := strings.Trim(string(page.Next), `"`); next == "" || next == "null" {
			return all, asked
		} else {
			before = "&before=" + url.QueryEscape(next)
		}
	}
}

// exitCode is that of a command that was run.
func exitCode(t *testing.T, err error) int {
	t.Helper()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return -1
}
