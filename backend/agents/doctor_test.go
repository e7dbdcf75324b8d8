package agents_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/agents"
)

// patients returns a catalogue of fake agents to be tested; a patience other than 0 shortens the wait. In dir the agents leave traces.
func patients(t *testing.T, patience time.Duration, kinds ...string) (c *agents.Catalogue, dir string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	var list []map[string]any
	for _, kind := range kinds {
		own := filepath.Join(dir, kind)
		if err := os.Mkdir(own, 0o700); err != nil {
			t.Fatal(err)
		}
		list = append(list, map[string]any{"id": kind, "command": self, "env": map[string]string{roleVariable: "agent:" + kind + ":" + own}})
	}
	data, err := json.Marshal(map[string]any{"agents": list})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "agents.json"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	c = agents.Open(agents.Config{
		Self: self, File: filepath.Join(dir, "agents.json"), Patience: patience,
		Environ: []string{"PATH=" + dir, "HOME=" + dir, shopVariable + "=" + dir},
	})
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if n := count(temp); n > 0 {
			t.Errorf("temporary directories: got %d, want none left", n)
		}
	})
	return c, dir
}

// mustBeAlone checks that every process of the tests has ended.
func mustBeAlone(t *testing.T, dir string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		return
	}
	if left := processesOf(t, dir); len(left) > 0 {
		t.Errorf("processes: got %q, want none left", left)
	}
}

func TestDoctorOfAgents(t *testing.T) {
	// These agents end without waiting for the catalogue's patience, which would hold the test up until its own limit.
	for kind, want := range map[string]struct {
		steps  string // including the failed step
		detail string // of the last step
		state  string
		advice []string
		stderr string
		exit   int
	}{
		"plain":     {steps: "resolve spawn initialize session", state: agents.Ready},
		"banner":    {steps: "resolve spawn initialize session", state: agents.Ready, advice: []string{"banner"}},
		"parent":    {steps: "resolve spawn initialize session", state: agents.Ready},
		"login":     {steps: "resolve spawn initialize session!", detail: "Authentication required", state: agents.NeedsLogin, advice: []string{"login"}},
		"crash":     {steps: "resolve spawn initialize!", detail: "with code 3", state: agents.Ready, advice: []string{"crash"}, stderr: "it crashed at initialize", exit: 3},
		"stillborn": {steps: "resolve spawn initialize!", detail: "with code 3", state: agents.Ready, advice: []string{"crash"}, stderr: "no licence found", exit: 3},
		"v2":        {steps: "resolve spawn initialize!", detail: "version 2 of the protocol", state: agents.Ready, advice: []string{"protocol"}},
		"refusing":  {steps: "resolve spawn initialize!", detail: "Not today", state: agents.Ready, advice: []string{"refused"}},
	} {
		t.Run(kind, func(t *testing.T) {
			c, dir := patients(t, time.Hour, kind)
			r, err := c.Test(t.Context(), kind)
			mustBeAlone(t, dir)
			if err != nil {
				t.Fatal(err)
			}
			steps, last := stepsOf(r)
			if steps != want.steps || !strings.Contains(last.Detail, want.detail) || r.Agent.State != want.state || !slices.Equal(codesOf(r), want.advice) {
				t.Errorf("got steps %s, %+v, state %s, advice %v, want %s, %q, %s, %v", steps, last, r.Agent.State, codesOf(r), want.steps, want.detail, want.state, want.advice)
			}
			if !strings.Contains(r.Stderr, want.stderr) || (r.ExitCode == nil) != (want.exit == 0) || r.ExitCode != nil && *r.ExitCode != want.exit {
				t.Errorf("report: got exit code %v, stderr %q; want %d, %q", r.ExitCode, r.Stderr, want.exit, want.stderr)
			}
		})
	}
}

// stepsOf returns the names of the steps, with a mark at the failed step, and the last step.
func stepsOf(r agents.Report) (string, agents.Step) {
	var names []string
	var last agents.Step
	for _, s := range r.Steps {
		last = s
		if !s.OK {
			s.Step += "!"
		}
		names = append(names, s.Step)
	}
	return strings.Join(names, " "), last
}

func codesOf(r agents.Report) []string {
	var codes []string
	for _, a := range r.Advice {
		codes = append(codes, a.Code)
	}
	return codes
}

func TestDoctorReportTellsWhatAgentSaid(t *testing.T) {
	c, dir := patients(t, 0, "plain", "login", "banner", "v2")
	r, err := c.Test(t.Context(), "plain")
	if err != nil {
		t.Fatal(err)
	}
	if r.AgentInfo == nil || *r.AgentInfo != (agents.AgentInfo{Name: "fake", Version: "4.5.6"}) || *r.ProtocolVersion != 1 ||
		string(r.Capabilities) != `{"sessionCapabilities":{"delete":{}}}` || !slices.Equal(r.Env.Path, []string{dir}) || !r.Healthy() {
		t.Errorf("report: got %+v, want fake 4.5.6, protocol 1, healthy", r)
	}
	if _, err := os.Stat(filepath.Join(dir, "plain", "deleted")); err != nil {
		t.Error("the session is left in the agent's list: ", err)
	}
	r, err = c.Test(t.Context(), "banner")
	if err != nil || r.Advice[0].Params["text"] != "Welcome to the fake agent!" {
		t.Errorf("advice: got %+v, %v, want the banner's text", r.Advice, err)
	}
	r, err = c.Test(t.Context(), "v2")
	if err != nil || *r.ProtocolVersion != 2 || r.Advice[0].Params["theirs"] != "2" {
		t.Errorf("report: got %+v, %v, want protocol 2", r, err)
	}
	r, err = c.Test(t.Context(), "login")
	if err != nil || !slices.Equal(r.AuthMethods, []agents.AuthMethod{{ID: "a", Name: "By browser", Description: "Opens one"}}) ||
		r.Advice[0].Params["methods"] != "By browser" || r.Healthy() {
		t.Errorf("report: got %+v, %v, want the method \"By browser\", not healthy", r, err)
	}
	if a := get(t, c, "login"); a.State != agents.NeedsLogin || a.Detail != "Authentication required" {
		t.Errorf("agent afterwards: got %+v, want needs_login with its reason", a)
	}
	if _, err := c.Test(t.Context(), "nobody"); !errors.Is(err, agents.ErrUnknown) {
		t.Errorf("Test(nobody): got %v, want %v", err, agents.ErrUnknown)
	}
}

func TestDoctorOfDemoAgent(t *testing.T) {
	c, dir := patients(t, 0)
	r, err := c.Test(t.Context(), agents.Demo)
	if err != nil || !r.Healthy() || len(r.Advice) > 0 {
		t.Errorf("Test(mock): got %+v, %v, want healthy without advice", r, err)
	}
	mustBeAlone(t, dir)
}

func TestDoctorOfSilentAgentIsBounded(t *testing.T) {
	c, dir := patients(t, 300*time.Millisecond, "silent")
	r, err := c.Test(t.Context(), "silent")
	mustBeAlone(t, dir)
	steps, last := stepsOf(r)
	if err != nil || steps != "resolve spawn initialize!" || last.Ms < 300 || !slices.Equal(codesOf(r), []string{"silent"}) || r.Advice[0].Params["seconds"] != "0.3" {
		t.Errorf("report: got %+v, %v, want a failed initialize and the advice silent", r, err)
	}
}

func TestDoctorEndsWithItsCaller(t *testing.T) {
	c, dir := patients(t, 0, "silent")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := c.Test(ctx, "silent")
		ended <- err
	}()
	until(t, func() bool { return living(filepath.Join(dir, "silent", "live")) == 1 })
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("Test: got %v, want %v", err, context.Canceled)
	}
	mustBeAlone(t, dir)

	go func() {
		_, err := c.Test(t.Context(), "silent")
		ended <- err
	}()
	until(t, func() bool { return living(filepath.Join(dir, "silent", "live")) == 1 })
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, agents.ErrClosed) {
		t.Errorf("Test: got %v, want %v", err, agents.ErrClosed)
	}
}

func TestDoctorOfMissingAgent(t *testing.T) {
	for name, tc := range map[string]struct {
		id, state, advice, detail string
	}{
		"not here, no node":      {"claude", agents.NotFound, "node", "nodejs.org"},
		"not here, no uv":        {"eel", agents.NotFound, "uv", "astral.sh"},
		"not here, not for us":   {"tool", agents.NotFound, "get", "write it into agents.json"},
		"not here, nor anywhere": {"elsewhere", agents.Broken, "file", "its distribution"},
		"a command that is none": {"wrong", agents.Broken, "file", "neither an absolute path"},
		"a file that is gone":    {"gone", agents.NotFound, "file", "does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, "agents.json")
			content := fmt.Sprintf(`{"agents":[{"id":"wrong","command":"a/b"},{"id":"gone","command":%q},
				{"id":"eel","distribution":{"uvx":{"package":"eel==1.0"}}},{"id":"elsewhere","distribution":{}}]}`, filepath.Join(dir, "gone"))
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			kept := `{"url":"https://r.example","document":` + document(`{"id":"tool","name":"Tool","version":"1.0.0","distribution":{"binary":{"plan9-x86_64":{"cmd":"t"}}}}`) + `}`
			err := os.Mkdir(filepath.Join(dir, "store"), 0o700)
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, "store", "registry.json"), []byte(kept), 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			c := agents.Open(agents.Config{
				CatalogueURL: "https://r.example",
				File:         file, Dir: filepath.Join(dir, "store"), WriteFile: func(string, []byte, os.FileMode) error { return nil }, Environ: []string{"PATH=" + dir},
			})
			defer c.Close()
			r, err := c.Test(t.Context(), tc.id)
			if err != nil {
				t.Fatal(err)
			}
			steps, _ := stepsOf(r)
			if steps != "resolve!" || r.Agent.State != tc.state || !slices.Equal(codesOf(r), []string{tc.advice}) || !strings.Contains(r.Advice[0].Params["detail"], tc.detail) {
				t.Errorf("report: got %+v, want a failed resolve, state %s, advice %s with %q", r, tc.state, tc.advice, tc.detail)
			}
		})
	}
}
