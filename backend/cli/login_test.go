//go:build !windows

package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/creack/pty"

	"deskhand/backend/proxy"
	"deskhand/backend/testkit"
)

// wantLogin makes the demo agent require a login in every program of this test.
func wantLogin(t *testing.T, ways string) (dir, account string) {
	t.Helper()
	dir = t.TempDir()
	account = filepath.Join(dir, "signed-in")
	for name, value := range map[string]string{"DESKHAND_DEMO_LOGIN": ways, "DESKHAND_DEMO_SIGNED_IN": account, "DESKHAND_KEYRING": "off"} {
		t.Setenv(name, value)
	}
	return dir, account
}

func TestLoginAndLogout(t *testing.T) {
	dir, account := wantLogin(t, "agent")
	if _, stderr, code := run(t, dir, "prompt", "--agent", "mock", "silent"); code != 6 || !strings.Contains(stderr, "deskhand login mock") {
		t.Errorf("deskhand prompt: got exit %d, stderr %s; want 6 and the login command", code, stderr)
	}
	// Without --method and without a terminal, the method stays unknown.
	if _, stderr, code := run(t, dir, "login", "mock"); code != 2 || !strings.Contains(stderr, "--method") || !strings.Contains(stderr, "demo-never") {
		t.Errorf("deskhand login without --method: got exit %d, stderr %s; want 2 and the methods", code, stderr)
	}
	if _, stderr, code := run(t, dir, "login", "mock", "--method", "other"); code != 2 || !strings.Contains(stderr, "other") {
		t.Errorf("deskhand login --method other: got exit %d, stderr %s; want 2 and other named", code, stderr)
	}
	if _, stderr, code := run(t, dir, "login", "mock", "--method", "demo"); code != 0 || !strings.Contains(stderr, "Signed in to mock.") {
		t.Fatalf("deskhand login --method demo: got exit %d, stderr %s; want 0", code, stderr)
	}
	if _, stderr, code := run(t, dir, "prompt", "--agent", "mock", "silent"); code != 0 {
		t.Errorf("deskhand prompt after the login: got exit %d, stderr %s; want 0", code, stderr)
	}
	if _, stderr, code := run(t, dir, "logout", "mock"); code != 0 || !strings.Contains(stderr, "Signed out of mock.") {
		t.Errorf("deskhand logout: got exit %d, stderr %s; want 0", code, stderr)
	}
	if _, err := os.Stat(account); err == nil {
		t.Error("it is signed in still")
	}
	for _, command := range []string{"login", "logout"} {
		if _, stderr, code := run(t, dir, command, "nobody"); code != 2 || !strings.Contains(stderr, `there is no agent "nobody"`) {
			t.Errorf("deskhand %s nobody: got exit %d, stderr %s; want 2 and that there is none", command, code, stderr)
		}
	}
}

func TestLoginIsInterrupted(t *testing.T) {
	dir, _ := wantLogin(t, "agent")
	server(t, dir)
	p := start(t, dir, "login", "mock", "--method", "demo-never")
	waitFor(t, func() bool { return strings.Contains(p.stderr.String(), "Waiting for mock") })
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if _, code := p.end(); code != 4 {
		t.Errorf("exit %d, want 4: %s", code, p.stderr)
	}
	// The login is over in the server too: another login may begin.
	if _, stderr, code := run(t, dir, "login", "mock", "--method", "demo"); code != 0 {
		t.Errorf("deskhand login after an interrupted one: got exit %d, stderr %s; want 0", code, stderr)
	}
}

func TestLoginByValue(t *testing.T) {
	dir, _ := wantLogin(t, "env")
	input := filepath.Join(dir, "input")
	if err := os.WriteFile(input, []byte("a long enough key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startWith(t, dir, input, "login", "mock")
	out, code := p.end()
	if stderr := p.stderr.String(); code != 0 || !strings.Contains(stderr, "Signed in to mock.") || !strings.Contains(stderr, "plain text") || strings.Contains(stderr+out, "long enough") {
		t.Fatalf("deskhand login by value: got exit %d, stderr %s; want 0, a word of plain text, and nothing of the value", code, stderr)
	}
	out, stderr, code := run(t, dir, "prompt", "--agent", "mock", "echo a long enough key")
	if code != 0 || !strings.Contains(out, "[redacted]") || strings.Contains(out, "long enough") {
		t.Errorf("deskhand prompt of the value: got exit %d, %s %s; want 0 and it redacted", code, out, stderr)
	}
	if _, stderr, code := run(t, dir, "logout", "mock"); code != 0 {
		t.Errorf("deskhand logout: got exit %d, stderr %s; want 0", code, stderr)
	}
	if _, _, code := run(t, dir, "prompt", "--agent", "mock", "silent"); code != 6 {
		t.Errorf("exit %d, want 6", code)
	}
}

// TestLoginAtThisTerminal: the agent's login program runs at the person's terminal, and then the running app retries the agent that was
// refused.
func TestLoginAtThisTerminal(t *testing.T) {
	dir, account := wantLogin(t, "terminal")
	server(t, dir)
	c := onSocket(t, dir)
	var s struct{ ID, Phase string }
	c.post("/client/sessions", map[string]string{"agent": "mock", "cwd": dir}, &s)
	phase := func() string {
		var now struct {
			Phase string
			Exit  *struct{ Problem string }
		}
		c.get("/client/sessions/"+s.ID, &now)
		if now.Exit != nil {
			return now.Exit.Problem
		}
		return now.Phase
	}
	waitFor(t, func() bool { return phase() == "agent.auth_required" })

	if _, stderr, code := run(t, dir, "login", "mock"); code != 1 || !strings.Contains(stderr, "terminal") {
		t.Errorf("deskhand login without a terminal: got exit %d, stderr %s; want 1 and a terminal asked for", code, stderr)
	}
	typing := func(answer string) (screen string, code int) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), testkit.Deskhand(t), "login", "mock")
		cmd.Env = append(os.Environ(), "DESKHAND_LOGIN_SHELL=off", "DESKHAND_CATALOGUE_URL=off", "DESKHAND_DATA_DIR="+dir, "PATH=/none")
		tty, err := pty.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		defer tty.Close()
		buf, typed := make([]byte, 4096), false
		for {
			n, err := tty.Read(buf)
			screen += string(buf[:n])
			if err != nil {
				break
			}
			if !typed && strings.Contains(screen, "Type yes to sign in: ") {
				typed = true
				_, _ = io.WriteString(tty, answer+"\n")
			}
		}
		err = cmd.Wait()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return screen, cmd.ProcessState.ExitCode()
	}
	if screen, code := typing("no"); code != 1 || !strings.Contains(screen, "has not signed in") {
		t.Errorf("login at a terminal, no: got exit %d, screen %s; want 1", code, screen)
	}
	if screen, code := typing("yes"); code != 0 || !strings.Contains(screen, "Signed in to mock.") {
		t.Fatalf("login at a terminal, yes: got exit %d, screen %s; want 0", code, screen)
	}
	if _, err := os.Stat(account); err != nil {
		t.Error(err)
	}
	waitFor(t, func() bool { return phase() == "ready" })
}

func TestOpenURLOpensOnlyPages(t *testing.T) {
	for _, bad := range []string{"file:///etc/passwd", "javascript:alert(1)", "https:", "/etc/passwd", "mailto:a@example.test", "http://%zz"} {
		if _, stderr, code := run(t, t.TempDir(), "open-url", bad); code != 2 {
			t.Errorf("deskhand open-url %s: got exit %d, stderr %s; want 2", bad, code, stderr)
		}
	}
	if _, stderr, code := run(t, t.TempDir(), "open-url", "https://example.test/"); code != 1 || !strings.Contains(stderr, "PATH") {
		t.Errorf("deskhand open-url of a page: got exit %d, stderr %s; want 1 and PATH named", code, stderr)
	}
}

// TestOpenURLBrowserOutlivesAgent: a browser that an agent opens during a login outlives the agent, and inherits no variable that is for the agent
// alone.
func TestOpenURLBrowserOutlivesAgent(t *testing.T) {
	dir, _ := wantLogin(t, "agent")
	bin := filepath.Join(dir, "bin")
	opened := filepath.Join(dir, "opened")
	opener := fmt.Sprintf("#!/bin/sh\nenv >%[1]s.new; echo PAGE=$1 >>%[1]s.new; echo PID=$$ >>%[1]s.new; mv %[1]s.new %[1]s; exec sleep 100\n", opened)
	if err := errors.Join(os.Mkdir(bin, 0o700), os.WriteFile(filepath.Join(bin, "xdg-open"), []byte(opener), 0o700)); err != nil {
		t.Fatal(err)
	}
	ours := filepath.Join(dir, "ours") // replaces the opener, which would else start this program for ever
	loop := fmt.Sprintf("#!/bin/sh\nexec '%s' open-url \"$1\"\n", testkit.Deskhand(t))
	if err := errors.Join(os.Mkdir(ours, 0o700), os.WriteFile(filepath.Join(ours, "xdg-open"), []byte(loop), 0o700)); err != nil {
		t.Fatal(err)
	}
	set, err := proxy.Open(proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	inst, err := set.Start(t.Context(), "agent", "fake", proxy.Command{
		Path: "/bin/sh", Args: []string{"-c", `xdg-open "https://example.test/a?b=c&d"; sleep 100`},
		Env: append(os.Environ(), "PATH="+ours+":"+bin+":/usr/bin:/bin", "BROWSER=ours", "DESKHAND_BROWSER_DIR="+ours, "DESKHAND_BROWSER=theirs", "DESKHAND_WITHOUT=KEY_OF_THE_AGENT,OTHER",
			"KEY_OF_THE_AGENT=secret", "DESKHAND_AGENT_HOME=/x"),
	})
	if err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { _, err := os.Stat(opened); return err == nil })
	data, err := os.ReadFile(opened)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		env[name] = value
	}
	pid, err := strconv.Atoi(env["PID"])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(pid, syscall.SIGKILL) }()
	if strings.Contains(env["PATH"], ours) {
		t.Errorf("browser: got PATH=%s, want it without %s", env["PATH"], ours)
	}
	if env["PAGE"] != "https://example.test/a?b=c&d" || env["BROWSER"] != "theirs" {
		t.Errorf("browser: got page %q, BROWSER %q; want the page and theirs", env["PAGE"], env["BROWSER"])
	}
	for _, name := range []string{"KEY_OF_THE_AGENT", "DESKHAND_TREE", "DESKHAND_AGENT_HOME", "DESKHAND_WITHOUT", "DESKHAND_BROWSER", "DESKHAND_BROWSER_DIR"} {
		if value, there := env[name]; there {
			t.Errorf("got name %s, value %s, want not there", name, value)
		}
	}
	if err := errors.Join(inst.Close(), set.Close()); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Error("the browser was ended with the agent: ", err)
	}
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if bytes.Contains(stat, []byte(") Z ")) {
		t.Error("the browser was ended with the agent")
	}
}

// TestLoginHasOurBrowser: an agent finds the opener through BROWSER, which is a single file.
func TestLoginHasOurBrowser(t *testing.T) {
	dir, _ := wantLogin(t, "agent")
	ownAgents(t, dir, map[string]string{"shy": `while read -r line; do
  id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case $line in
  *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":1,"authMethods":[{"id":"a","name":"A"}]}}' ;;
  *'"session/new"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"sessionId":"s"}}' ;;
  *'"authenticate"'*) echo "$BROWSER" >` + dir + `/browser; "$BROWSER" file:///etc/passwd; echo '{"jsonrpc":"2.0","id":'$id',"result":{}}' ;;
  esac
done`})
	t.Setenv("PATH", os.Getenv("PATH"))
	cmd := exec.CommandContext(t.Context(), testkit.Deskhand(t), "login", "shy")
	cmd.Env = append(os.Environ(), "DESKHAND_LOGIN_SHELL=off", "DESKHAND_CATALOGUE_URL=off", "DESKHAND_DATA_DIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("CombinedOutput: got stdout %s, error %v, want no error", out, err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "browser"))
	if want := filepath.Join(dir, "agents", ".browser", "open-url"); err != nil || strings.TrimSpace(string(data)) != want {
		t.Errorf("got data %s, error %v, want no error and strings.TrimSpace(string(data)) %v", data, err, want)
	}
	script, err := os.ReadFile(filepath.Join(dir, "agents", ".browser", "open-url"))
	if err != nil || !strings.Contains(string(script), "open-url") {
		t.Errorf(`ReadFile: got script %s, error %v, want no error and script with "open-url"`, script, err)
	}
	var list struct{ Items []json.RawMessage }
	server(t, dir)
	onSocket(t, dir).get("/client/agents?all=true", &list) // the opener beside the agents is no agent
	if len(list.Items) == 0 || bytes.Contains(bytes.Join(rawBytes(list.Items), nil), []byte("open-url")) {
		t.Errorf(`got list.Items %s, want some list.Items and bytes.Join(rawBytes(list.Items), nil) without []byte("open-url")`, list.Items)
	}
}

// TestOpenURLOfAgentThatClearsItsEnvironment: an agent that passes on little but PATH, to hide secrets from its tools, still reaches the
// system's opener, and does not start this program again and again.
func TestOpenURLOfAgentThatClearsItsEnvironment(t *testing.T) {
	dir, _ := wantLogin(t, "agent")
	bin, opened := filepath.Join(dir, "bin"), filepath.Join(dir, "opened")
	opener := fmt.Sprintf("#!/bin/sh\necho $1 >%[1]s.new; mv %[1]s.new %[1]s\n", opened)
	if err := errors.Join(os.Mkdir(bin, 0o700), os.WriteFile(filepath.Join(bin, "xdg-open"), []byte(opener), 0o700)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(filepath.ListSeparator)+os.Getenv("PATH"))
	ownAgents(t, dir, map[string]string{"shy": `while read -r line; do
  id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case $line in
  *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":1,"authMethods":[{"id":"a","name":"A"}]}}' ;;
  *'"session/new"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"sessionId":"s"}}' ;;
  *'"authenticate"'*) env -i PATH="$PATH" xdg-open https://example.test/; echo '{"jsonrpc":"2.0","id":'$id',"result":{}}' ;;
  esac
done`})
	cmd := exec.CommandContext(t.Context(), testkit.Deskhand(t), "login", "shy")
	cmd.Env = append(os.Environ(), "DESKHAND_LOGIN_SHELL=off", "DESKHAND_CATALOGUE_URL=off", "DESKHAND_DATA_DIR="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("CombinedOutput: got stdout %s, error %v, want no error", out, err)
	}
	waitFor(t, func() bool { _, err := os.Stat(opened); return err == nil })
	if page, err := os.ReadFile(opened); err != nil || string(page) != "https://example.test/\n" {
		t.Errorf("ReadFile: got page %s, error %v, want no error and page \"https://example.test/\\n\"", page, err)
	}
}

func rawBytes(items []json.RawMessage) [][]byte {
	var list [][]byte
	for _, item := range items {
		list = append(list, item)
	}
	return list
}

// formAgent takes two values from its environment, and begins a session when the first of them is set.
const formAgent = `while read -r line; do
  id=$(printf %s "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case $line in
  *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":1,"authMethods":[{"id":"keys","name":"Keys","type":"env_var","vars":[{"name":"FORM_KEY","optional":true},{"name":"FORM_URL","secret":false,"optional":true},{"name":"FORM_MODEL","secret":false,"optional":true}]}]}}' ;;
  *'"session/new"'*)
    if [ "$FORM_KEY" = right-key ]; then echo '{"jsonrpc":"2.0","id":'$id',"result":{"sessionId":"s"}}'
    else echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32000,"message":"The key is '$FORM_MODEL' wrong"}}'; fi ;;
  esac
done`

// TestLoginFormFromAPipe: after the end of a pipe the command asks for no further value, and a login that the agent does not honour says why.
func TestLoginFormFromAPipe(t *testing.T) {
	dir, _ := wantLogin(t, "agent")
	ownAgents(t, dir, map[string]string{"form": formAgent})
	t.Setenv("PATH", os.Getenv("PATH"))
	enter := func(input string) (stderr string, code int) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), testkit.Deskhand(t), "login", "form")
		cmd.Env = append(os.Environ(), "DESKHAND_LOGIN_SHELL=off", "DESKHAND_CATALOGUE_URL=off", "DESKHAND_DATA_DIR="+dir)
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		return string(out), cmd.ProcessState.ExitCode()
	}
	for _, input := range []string{"right-key", "right-key\n", "right-key\n\n", "right-key\nhttp://localhost/\n"} {
		said, code := enter(input)
		if code != 0 || !strings.Contains(said, "Signed in to form.") || !strings.Contains(said, "Checking that form can begin a conversation") ||
			strings.Count(said, "FORM_KEY") != 1 || strings.Contains(said, "FORM_MODEL") {
			t.Errorf("login form of %q: got exit %d, %s; want 0, checked, FORM_KEY asked once", input, code, said)
		}
	}
	said, code := enter("wrong-key\n\nvery\n")
	if code != 1 || strings.Contains(said, "Signed in") || !strings.Contains(said, "cannot begin a conversation, so it is not signed in: The key is very wrong") {
		t.Errorf("login form of a wrong key: got exit %d, %s; want 1 and the agent's refusal", code, said)
	}
}
