package agents_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gofrs/flock"
	"go.uber.org/goleak"

	"deskhand/backend/agents"
	"deskhand/backend/agenttest"
	"deskhand/backend/environ"
	"deskhand/backend/store"
)

// roleVariable selects the role that the test binary plays.
const roleVariable = "AGENTS_TEST_ROLE"

func TestMain(m *testing.M) {
	var err error
	role, arg, _ := strings.Cut(os.Getenv(roleVariable), ":")
	switch {
	case len(os.Args) > 1 && os.Args[1] == "demo-agent":
		os.Exit(agenttest.Main(os.Args[1:]))
	case len(os.Args) > 1 && os.Args[1] == "environment":
		err = environ.PrintEnvironment(os.Stdout)
	case role == "agent":
		err = fakeAgent(arg)
	case role == "sleeper":
		time.Sleep(time.Hour)
	case role == "installer":
		err = installer(arg)
	default:
		goleak.VerifyTestMain(m)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(3)
	}
	os.Exit(0)
}

// installer plays another Deskhand, which installs claude into dir and prints the result.
func installer(dir string) error {
	c := agents.Open(agents.Config{Dir: dir, WriteFile: store.WriteFile, Registry: os.Getenv("AGENTS_TEST_REGISTRY")})
	done, err := c.Installer().Install(context.Background(), "claude", agents.InstallRequest{}, nil)
	if err != nil {
		return err
	}
	if err := c.Close(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(done)
}

// fakeAgent speaks a little ACP. Its kind says how the agent misbehaves; in its directory the agent leaves a line in "starts" for every
// start, and a file in "live" for as long as the agent lives.
func fakeAgent(arg string) error {
	kind, dir, _ := strings.Cut(arg, ":")
	starts, err := os.OpenFile(filepath.Join(dir, "starts"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	cwd, _ := os.Getwd()
	fmt.Fprintln(starts, cwd)
	live := filepath.Join(dir, "live")
	if err := os.MkdirAll(live, 0o700); err != nil {
		return err
	}
	mine, err := os.CreateTemp(live, "")
	if err != nil {
		return err
	}
	defer os.Remove(mine.Name())
	alive := flock.New(mine.Name()) // the lock ends with the process, in any case
	if err := alive.Lock(); err != nil {
		return err
	}
	defer func() { _ = alive.Unlock() }()
	switch kind {
	case "banner":
		fmt.Println("Welcome to the fake agent!")
	case "stillborn":
		return errors.New("no licence found")
	case "parent":
		child := exec.Command(os.Args[0])
		child.Env = append(os.Environ(), roleVariable+"=sleeper")
		if err := child.Start(); err != nil {
			return err
		}
	}
	in := bufio.NewScanner(os.Stdin)
	for in.Scan() {
		var q struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
		}
		if json.Unmarshal(in.Bytes(), &q) != nil || q.Method == "" {
			continue
		}
		switch answer := fakeAnswer(kind, dir, q.Method); answer {
		case "":
		case "crash":
			return fmt.Errorf("it crashed at %s", q.Method)
		default:
			fmt.Printf(`{"jsonrpc":"2.0","id":%s,%s}`+"\n", q.ID, answer)
		}
	}
	return in.Err()
}

func fakeAnswer(kind, dir, method string) string {
	switch method + " " + kind {
	case "initialize silent":
		return ""
	case "initialize crash":
		return "crash"
	case "initialize refusing":
		return `"error":{"code":-32603,"message":"Not today"}`
	case "initialize login":
		return `"result":{"protocolVersion":1,"agentInfo":{"name":"fake","version":"4.5.6"},"authMethods":[{"id":"a","name":"By browser","description":"Opens one"}]}`
	case "initialize v2":
		return `"result":{"protocolVersion":2}`
	case "session/new login":
		return `"error":{"code":-32000,"message":"Authentication required"}`
	case "session/new modes":
		return `"result":{"sessionId":"s","modes":{"currentModeId":"b","availableModes":[{"id":"a","name":"A","description":"first"},{"id":"b","name":"B"}]}}`
	case "session/new models":
		return `"result":{"sessionId":"s","configOptions":[],"models":{"currentModelId":"b","availableModels":[{"modelId":"a","name":"A"},{"modelId":"b"}]}}`
	case "session/new plain":
		return `"result":{"sessionId":"s"}`
	case "session/new crowd":
		crowd(dir)
	}
	switch method {
	case "initialize":
		return `"result":{"protocolVersion":1,"agentInfo":{"name":"fake","version":"4.5.6"},"agentCapabilities":{"sessionCapabilities":{"delete":{}}}}`
	case "session/new":
		return `"result":{"sessionId":"s","configOptions":[{"id":"m","name":"M","type":"select","category":"mode","currentValue":"x","options":[{"value":"x","name":"X"}],"_meta":{"kept":1.0}}]}`
	case "session/delete":
		_ = os.WriteFile(filepath.Join(dir, "deleted"), nil, 0o600)
		return `"result":{}`
	}
	return `"error":{"code":-32601,"message":"Method not found"}`
}

// crowd waits a while for company, and notes how many agents are alive.
func crowd(dir string) {
	n := 0
	for deadline := time.Now().Add(time.Second); n < 2 && time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		n = living(filepath.Join(dir, "live"))
	}
	time.Sleep(100 * time.Millisecond) // time for a third agent, which must not come
	n = living(filepath.Join(dir, "live"))
	_ = os.WriteFile(filepath.Join(dir, fmt.Sprintf("crowd-of-%d", n)), nil, 0o600)
}

// living counts the living agents of a directory.
func living(dir string) int {
	n := 0
	items, _ := os.ReadDir(dir)
	for _, item := range items {
		lock := flock.New(filepath.Join(dir, item.Name()))
		free, err := lock.TryRLock()
		if free {
			_ = lock.Unlock()
		}
		if err == nil && !free {
			n++
		}
	}
	return n
}

func count(dir string) int {
	items, _ := os.ReadDir(dir)
	return len(items)
}

// nodeOnPath returns a directory for PATH that contains only node, npm and a shell.
func nodeOnPath(t *testing.T) string {
	t.Helper()
	bin := t.TempDir()
	for _, name := range []string{"node", "npm", "sh"} {
		file, err := exec.LookPath(name)
		if err == nil {
			file, err = filepath.EvalSymlinks(file)
		}
		if err != nil {
			t.Skipf("%s is needed: %v", name, err)
		}
		if err := os.Symlink(file, filepath.Join(bin, name)); err != nil {
			t.Skip("links are needed: ", err)
		}
	}
	return bin
}
