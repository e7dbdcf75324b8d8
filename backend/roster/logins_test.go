package roster_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/agenttest"
	"deskhand/backend/refusal"
	"deskhand/backend/roster"
	"deskhand/backend/shells"
	"deskhand/backend/store"
	"deskhand/backend/terminal"
	"deskhand/backend/testkit"
	"deskhand/backend/vault"
)

// fixture is Agents with conversations that only note what the agents' side tells.
type fixture struct {
	*roster.Agents
	t    *testing.T
	file string // where entered values are kept

	mu     sync.Mutex // protects the fields below
	news   chan struct{}
	events []event
	signed []string // agents that SignedIn was called for
}

type event struct {
	Kind string
	Data json.RawMessage
}

// open opens the agents of a list of definitions. A set write is called in place of writing a file.
func open(t *testing.T, list []map[string]any, write func(string, []byte, fs.FileMode) error) *fixture {
	t.Helper()
	dir := t.TempDir()
	data, err := json.Marshal(map[string]any{"agents": list})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "agents.json"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if write == nil {
		write = store.WriteFile
	}
	f := &fixture{t: t, file: filepath.Join(dir, "logins.json"), news: make(chan struct{})}
	catalogue := agents.Open(agents.Config{
		Self: agenttest.Program(t), File: filepath.Join(dir, "agents.json"), Vault: vault.Open(vault.Config{File: f.file, WriteFile: write}), WriteFile: write,
		Environ: append(os.Environ(), "DESKHAND_DEMO_STATE="+filepath.Join(dir, "demo"), "DESKHAND_DEMO_SIGNED_IN="+filepath.Join(dir, "signed-in")),
	})
	f.Agents = roster.New(roster.Deps{Catalogue: catalogue})
	f.Use(roster.Sessions{Publish: f.publish, SignedIn: f.signedIn, Writable: func() error { return nil }})
	t.Cleanup(func() {
		f.Close()
		if err := catalogue.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// locked is a fixture of demo agents that want a login: by-agent, by-terminal and by-env, with one account for all.
func locked(t *testing.T, write func(string, []byte, fs.FileMode) error) *fixture {
	t.Helper()
	program := agenttest.Program(t)
	var list []map[string]any
	for _, way := range []string{"agent", "terminal", "env"} {
		list = append(list, map[string]any{"id": "by-" + way, "command": program, "args": []string{"demo-agent"}, "env": map[string]string{"DESKHAND_DEMO_LOGIN": way}})
	}
	return open(t, list, write)
}

// scripted is a fixture of agents that are scripts of a shell.
func scripted(t *testing.T, scripts map[string]string) *fixture {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("a shell is needed")
	}
	var list []map[string]any
	for id, script := range scripts {
		list = append(list, map[string]any{"id": id, "command": "/bin/sh", "args": []string{"-c", script}})
	}
	return open(t, list, nil)
}

func (f *fixture) publish(kind string, data json.RawMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.events = append(f.events, event{kind, data})
	close(f.news)
	f.news = make(chan struct{})
}

func (f *fixture) signedIn(agent string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.signed = append(f.signed, agent)
}

// signedInTo returns the agents that SignedIn was called for.
func (f *fixture) signedInTo() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.signed)
}

// until waits, by the events, until a condition holds.
func (f *fixture) until(condition string, holds func() bool) {
	f.t.Helper()
	for limit := time.After(testkit.Limit); ; {
		f.mu.Lock()
		news := f.news
		f.mu.Unlock()
		if holds() {
			return
		}
		select {
		case <-news:
		case <-limit:
			f.t.Fatalf("waited in vain until %s", condition)
		}
	}
}

func (f *fixture) begin(agent, method string, values map[string]string) roster.Login {
	f.t.Helper()
	l, err := f.Logins().Begin(f.t.Context(), agent, method, values)
	if err != nil {
		f.t.Fatalf("Begin(%s, %s): got error %v", agent, method, err)
	}
	return l
}

// ended waits for the end of a login.
func (f *fixture) ended(l roster.Login) roster.Login {
	f.t.Helper()
	f.until("the login has ended", func() bool {
		now, err := f.Logins().Get(l.ID)
		if err != nil {
			f.t.Fatalf("Get(%s): got error %v", l.ID, err)
		}
		l = now
		return l.State != "running"
	})
	return l
}

// state returns the state of an agent.
func (f *fixture) state(agent string) string {
	f.t.Helper()
	list, err := f.List(f.t.Context(), false, false)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, a := range list {
		if a.ID == agent {
			return a.State
		}
	}
	f.t.Fatalf("got no agent %s in %+v", agent, list)
	return ""
}

func wantRefused(t *testing.T, call string, err error, code string) map[string]string {
	t.Helper()
	r, ok := errors.AsType[*refusal.Error](err)
	if !ok || r.Code != code {
		t.Errorf("%s: got error %v, want the refusal %s", call, err, code)
		return nil
	}
	return r.Params
}

func TestLoginIsCancelled(t *testing.T) {
	t.Parallel()
	f := locked(t, nil)
	l := f.begin("by-agent", "demo-never", nil)
	_, err := f.Logins().Begin(t.Context(), "by-agent", "demo", nil)
	wantRefused(t, "Begin beside a login", err, "login.running")
	wantRefused(t, "Logout beside a login", f.Logins().Logout(t.Context(), "by-agent"), "login.running")
	for _, call := range []string{"first", "second"} {
		if err := f.Logins().Cancel(t.Context(), l.ID); err != nil {
			t.Errorf("the %s Cancel: got error %v", call, err)
		}
	}
	if now, err := f.Logins().Get(l.ID); err != nil || now.State != "failed" || now.Code != "login.cancelled" || now.EndedAt == nil {
		t.Errorf("Get after Cancel: got %+v, %v, want a login that failed as cancelled", now, err)
	}
	if l := f.ended(f.begin("by-agent", "demo", nil)); l.State != "done" {
		t.Errorf("the login after the cancelled login: got %+v, want done", l)
	}
	if err := f.Logins().Cancel(t.Context(), "none"); !errors.Is(err, refusal.ErrNotFound) {
		t.Errorf("Cancel(none): got error %v, want %v", err, refusal.ErrNotFound)
	}
}

func TestLoginEndsWithTheProgram(t *testing.T) {
	t.Parallel()
	f := locked(t, nil)
	running := []roster.Login{f.begin("by-agent", "demo-never", nil)}
	if runtime.GOOS != "windows" {
		running = append(running, f.begin("by-terminal", "demo-terminal", nil))
	}
	f.Close()
	for _, l := range running {
		if now, err := f.Logins().Get(l.ID); err != nil || now.Code != "login.cancelled" {
			t.Errorf("Get(%s) after Close: got %+v, %v, want login.cancelled", l.Agent, now, err)
		}
	}
	_, err := f.Logins().Begin(t.Context(), "by-env", "demo-key", map[string]string{"DESKHAND_DEMO_KEY": "too late"})
	if !errors.Is(err, refusal.ErrClosed) {
		t.Errorf("Begin after Close: got error %v, want %v", err, refusal.ErrClosed)
	}
}

func TestLoginsThatCannotBegin(t *testing.T) {
	t.Parallel()
	f := locked(t, nil)
	for code, try := range map[string][2]string{
		"agent.unknown": {"nobody", "x"}, "login.method": {"by-agent", "x"}, "login.values": {"by-env", "demo-key"}, "agent.not_installed": {"gemini", "x"},
	} {
		_, err := f.Logins().Begin(t.Context(), try[0], try[1], nil)
		wantRefused(t, "Begin("+try[0]+", "+try[1]+")", err, code)
	}
	_, err := f.Logins().Methods(t.Context(), "nobody")
	wantRefused(t, "Methods(nobody)", err, "agent.unknown")
	wantRefused(t, "Logout(mock)", f.Logins().Logout(t.Context(), "mock"), "login.no_logout")
	// A refused attempt does not keep the next from beginning.
	if l := f.ended(f.begin("by-env", "demo-key", map[string]string{"DESKHAND_DEMO_KEY": "a value"})); l.State != "done" || !strings.Contains(l.Warning, "logins.json") {
		t.Errorf("login by a key: got %+v, want done with a warning of the file", l)
	}
}

func TestTerminalOfALogin(t *testing.T) {
	t.Parallel()
	f := locked(t, nil)
	if runtime.GOOS == "windows" {
		_, err := f.Logins().Begin(t.Context(), "by-terminal", "demo-terminal", nil)
		wantRefused(t, "Begin(by-terminal)", err, "terminal.unavailable")
		return
	}
	terminals := shells.New(t.Context(), shells.Deps{Login: f.Logins().Terminal})
	defer terminals.Close()
	l := f.begin("by-terminal", "demo-terminal", nil)
	if err := terminals.Resize(l.Terminal, terminal.Size{Cols: 120, Rows: 40}); err != nil {
		t.Errorf("Resize: got error %v", err)
	}
	text, after := "", int64(0)
	read := func(until func(shells.TerminalOutput) bool) shells.TerminalOutput {
		t.Helper()
		for deadline := time.Now().Add(testkit.Limit); ; {
			out, err := terminals.Read(t.Context(), l.Terminal, after, time.Second)
			if err != nil || time.Now().After(deadline) {
				t.Fatalf("Read: got %q and error %v", text, err)
			}
			after, text = out.Next, text+string(out.Data)
			if until(out) {
				return out
			}
		}
	}
	read(func(shells.TerminalOutput) bool { return strings.Contains(text, "Type yes to sign in: ") })
	if err := terminals.Type(l.Terminal, []byte("no\r")); err != nil {
		t.Fatal(err)
	}
	out := read(func(out shells.TerminalOutput) bool { return out.Exited })
	if out.ExitCode == nil || *out.ExitCode != 1 || !strings.Contains(text, "nobody has signed in") {
		t.Errorf("the program's end: got %+v after %q, want code 1", out, text)
	}
	if l := f.ended(l); l.State != "failed" || l.Code != "login.exit" {
		t.Errorf("login after code 1: got %+v, want login.exit", l)
	}
	wantRefused(t, "Type after the end", terminals.Type(l.Terminal, []byte("x")), "terminal.ended")

	l = f.begin("by-terminal", "demo-terminal", nil)
	if err := terminals.End(t.Context(), l.Terminal); err != nil {
		t.Errorf("End: got error %v", err)
	}
	if l, err := f.Logins().Get(l.ID); err != nil || l.Code != "login.cancelled" {
		t.Errorf("login after End: got %+v, %v, want login.cancelled", l, err)
	}
	if _, err := terminals.Read(t.Context(), "none", 0, 0); !errors.Is(err, refusal.ErrNotFound) {
		t.Errorf("Read(none): got error %v, want %v", err, refusal.ErrNotFound)
	}
}

// A caller of Cancel hears of the end of a login whose values are being stored, even if the values cannot be stored.
func TestLoginIsCancelledWhileItsValuesAreKept(t *testing.T) {
	t.Parallel()
	writing, release := make(chan struct{}), make(chan struct{})
	f := locked(t, func(string, []byte, fs.FileMode) error {
		close(writing)
		<-release
		return errors.New("no space is left")
	})
	values := map[string]string{"DESKHAND_DEMO_KEY": "open sesame"}
	l := f.begin("by-env", "demo-key", values)
	<-writing
	_, err := f.Logins().Begin(t.Context(), "by-env", "demo-key", values)
	if got := wantRefused(t, "Begin beside a login", err, "login.running")["login"]; got != l.ID {
		t.Errorf("Begin beside a login: got a refusal that names the login %q, want %q", got, l.ID)
	}
	cancelled := make(chan error, 1)
	go func() { cancelled <- f.Logins().Cancel(t.Context(), l.ID) }()
	select {
	case err := <-cancelled:
		t.Errorf("Cancel returned %v while the values were stored, want it to wait", err)
	case <-time.After(100 * time.Millisecond): // by then Cancel waits
	}
	close(release)
	select {
	case err := <-cancelled:
		now, lost := f.Logins().Get(l.ID)
		if errors.Join(err, lost) != nil || now.State != "failed" || now.Code != "login.cancelled" {
			t.Errorf("after Cancel: got %+v, %v, %v, want a login that failed as cancelled", now, err, lost)
		}
	case <-time.After(testkit.Limit):
		t.Error("Cancel does not return")
	}
}

// The words of an agent that refuses a key may quote the key.
func TestReportsAndEventsHoldNoSecret(t *testing.T) {
	t.Parallel()
	const secret = "sk-abcdefghijklmnopqrstuvwxyz0123"
	f := scripted(t, map[string]string{"chatty": `read -r line; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":1,"agentInfo":{"name":"a","version":"` + secret + `"},"agentCapabilities":{"_meta":{"key":"` + secret + `"}},"authMethods":[{"id":"a","name":"A","description":"` + secret + `"}]}}'
		read -r line; echo '{"jsonrpc":"2.0","id":2,"error":{"code":-32000,"message":"` + secret + ` is no valid key"}}'; cat >/dev/null`})
	r, err := f.Test(t.Context(), "chatty")
	if err != nil || r.Agent.State != agents.NeedsLogin {
		t.Fatalf("Test(chatty): got %+v, %v, want an agent that needs a login", r, err)
	}
	list, err := f.List(t.Context(), false, false)
	if err != nil {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for name, told := range map[string]any{"report": r, "list": list, "events": f.events} {
		data, err := json.Marshal(told)
		if err != nil {
			t.Fatal(err)
		}
		if before, _, found := bytes.Cut(data, []byte(secret)); found {
			t.Errorf("%s: got the secret after …%s", name, before[max(0, len(before)-80):])
		}
	}
}

// proving is an agent that says yes to each login. The agent begins a conversation for the right key; for slow-key it never answers.
const proving = `while read -r line; do
  id=${line##*'"id":'}; id=${id%%[,\}]*}
  case $line in
  *'"initialize"'*) say='"result":{"protocolVersion":1,"authMethods":[{"id":"account","name":"Account"},{"id":"key","name":"Key","type":"env_var","vars":[{"name":"PROVING_KEY"}]}]}' ;;
  *'"authenticate"'*) say='"result":{}' ;;
  *'"session/new"'*)
    case $PROVING_KEY in
    right-key) say='"result":{"sessionId":"s"}' ;;
    slow-key) continue ;;
    *) echo "no account" >&2; say='"error":{"code":-32000,"message":"API key is missing"}' ;;
    esac ;;
  *) continue ;;
  esac
  printf '{"jsonrpc":"2.0","id":%s,%s}\n' "$id" "$say"
done`

// A login that the agent confirms and does not keep to has failed in the agent's words, and the conversations try nothing again.
func TestLoginThatTheAgentDoesNotKeepToHasFailed(t *testing.T) {
	t.Parallel()
	f := scripted(t, map[string]string{"proving": proving})
	for call, begin := range map[string]func() (roster.Login, error){
		"Begin":    func() (roster.Login, error) { return f.Logins().Begin(t.Context(), "proving", "account", nil) },
		"SignedIn": func() (roster.Login, error) { return f.Logins().SignedIn(t.Context(), "proving") },
	} {
		l, err := begin()
		if err != nil {
			t.Fatalf("%s: got error %v", call, err)
		}
		if l = f.ended(l); l.State != "failed" || l.Code != "login.unproven" || l.Detail != "API key is missing" || !strings.Contains(l.Stderr, "no account") || l.Proving {
			t.Errorf("%s: got %+v, want login.unproven in the agent's words", call, l)
		}
	}
	if got := f.signedInTo(); len(got) > 0 {
		t.Errorf("got the conversations told that somebody has signed in to %q, want none", got)
	}
	if got := f.state("proving"); got != agents.NeedsLogin {
		t.Errorf("state: got %s, want %s", got, agents.NeedsLogin)
	}
}

// A key that the agent does not take is not stored, and the key of before stays; a proof that is cancelled stores nothing either.
func TestKeysAreKeptWhenTheyAreProven(t *testing.T) {
	t.Parallel()
	f := scripted(t, map[string]string{"proving": proving})
	kept := func() string {
		data, _ := os.ReadFile(f.file)
		return string(data)
	}
	enter := func(key string) roster.Login {
		return f.begin("proving", "key", map[string]string{"PROVING_KEY": key})
	}
	if l := f.ended(enter("wrong-key")); l.Code != "login.unproven" || strings.Contains(kept(), "wrong-key") {
		t.Errorf("wrong-key: got %+v and %s, want a key that is not stored", l, kept())
	}
	if l := f.ended(enter("right-key")); l.State != "done" || l.Warning == "" || !strings.Contains(kept(), "right-key") {
		t.Errorf("right-key: got %+v and %s, want the key stored", l, kept())
	}
	f.ended(enter("wrong-key"))
	l := enter("slow-key")
	if l.State != "running" || l.Type != "env" {
		t.Errorf("slow-key: got %+v, want running", l)
	}
	f.until("the login is being proven", func() bool { now, err := f.Logins().Get(l.ID); return err == nil && now.Proving })
	if err := f.Logins().Cancel(t.Context(), l.ID); err != nil {
		t.Fatal(err)
	}
	if l = f.ended(l); l.Code != "login.cancelled" || l.Proving || !strings.Contains(kept(), "right-key") || strings.Contains(kept(), "slow-key") {
		t.Errorf("slow-key, cancelled: got %+v and %s, want the key of before", l, kept())
	}
	if got, want := f.signedInTo(), []string{"proving"}; !slices.Equal(got, want) {
		t.Errorf("got the conversations told that somebody has signed in to %q, want %q", got, want)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range f.events {
		var told roster.Login
		if e.Kind == "login.upsert" && json.Unmarshal(e.Data, &told) == nil && told.State == "done" && told.Proving {
			t.Errorf("event: got %+v, want no login that is done and still being proven", told)
		}
	}
}
