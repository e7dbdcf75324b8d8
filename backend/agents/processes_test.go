package agents_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/proxy"
	"deskhand/backend/testkit"
)

// census opens the process set that the catalogues of a test share, which lists their processes.
func census(t *testing.T) *proxy.Set {
	t.Helper()
	set, err := proxy.Open(proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	return set
}

// listed waits until a process with that purpose is in the list, or no longer, and returns the process.
func listed(t *testing.T, set *proxy.Set, purpose, agent string, want bool) (found proxy.Usage) {
	t.Helper()
	for end := time.Now().Add(testkit.Limit); ; time.Sleep(5 * time.Millisecond) {
		o, err := set.Overview(false)
		if err != nil {
			t.Fatal(err)
		}
		n := slices.IndexFunc(o.Usage, func(u proxy.Usage) bool { return u.Purpose == purpose && u.Agent == agent })
		if (n >= 0) == want {
			if want {
				found = o.Usage[n]
			}
			return found
		}
		if time.Now().After(end) {
			t.Fatalf("%s for %s: wanted in the list: %v; there is %+v", agent, purpose, want, o.Usage)
		}
	}
}

// shows checks the list's facts about a process.
func shows(t *testing.T, u proxy.Usage, began time.Time) {
	t.Helper()
	if u.PID == 0 || u.StartedAt.Before(began.Add(-time.Second)) || u.StartedAt.After(time.Now()) {
		t.Errorf("process: got %+v, want a pid and a start after %s", u, began)
	}
	if proxy.Measures && (len(u.Tree) == 0 || u.Tree[0].PID != u.PID) {
		t.Errorf("tree: got %+v, want pid %d first", u.Tree, u.PID)
	}
}

func TestTestsAndLoginsAreListed(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, began := t.TempDir(), time.Now()
	file := filepath.Join(dir, "agents.json")
	data, err := json.Marshal(map[string]any{"agents": []map[string]any{
		{"id": "silent", "command": self, "env": map[string]string{roleVariable: "agent:silent:" + dir}},
		{"id": "guest", "command": self, "args": []string{"demo-agent"}, "env": map[string]string{
			"DESKHAND_DEMO_LOGIN": "agent", "DESKHAND_DEMO_SIGNED_IN": filepath.Join(dir, "signed-in"), "DESKHAND_DEMO_STATE": filepath.Join(dir, "state"),
		}},
	}})
	if err == nil {
		err = os.WriteFile(file, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	set := census(t)
	c := agents.Open(agents.Config{Self: self, File: file, Environ: os.Environ(), Beside: set})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	go func() {
		_, err := c.Test(ctx, "silent")
		ended <- err
	}()
	shows(t, listed(t, set, agents.ForTest, "silent", true), began)
	m, err := c.Logins().Method(t.Context(), "guest", "demo-never")
	if err != nil {
		t.Fatal(err)
	}
	go func() { ended <- c.Logins().Authenticate(ctx, "guest", m, nil, func(string) {}) }()
	shows(t, listed(t, set, agents.ForLogin, "guest", true), began)
	cancel()
	<-ended
	<-ended
	listed(t, set, agents.ForTest, "silent", false)
	listed(t, set, agents.ForLogin, "guest", false)
}

func TestInstallationsAreListed(t *testing.T) {
	set, began := census(t), time.Now()
	s := openInstallFixture(t, func(c *agents.Config) { c.Beside = set })
	s.reg.publishClaude("0.101.0", "")
	held := s.reg.holdBack()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := s.Installer().Install(ctx, "claude", agents.InstallRequest{}, nil)
		ended <- err
	}()
	<-held
	shows(t, listed(t, set, agents.ForInstall, "claude", true), began)
	cancel()
	<-ended
	listed(t, set, agents.ForInstall, "claude", false)
	s.reg.release()
}
