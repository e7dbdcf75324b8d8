package agents_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/agents"
	"deskhand/backend/proxy"
	"deskhand/backend/store"
)

// news collects what Watch is told.
func news(c *agents.Catalogue) <-chan agents.News {
	const most = 10000 // so that it never blocks
	heard := make(chan agents.News, most)
	c.Watch(func(n agents.News) { heard <- n })
	return heard
}

// ending is the end of the installation that is under way, and the steps before it.
func ending(heard <-chan agents.News) (steps []string, end agents.News) {
	for n := range heard {
		if n.Ended {
			return steps, n
		}
		if len(steps) == 0 || steps[len(steps)-1] != n.Step {
			steps = append(steps, n.Step)
		}
	}
	return steps, end
}

func TestRollbackAndUninstall(t *testing.T) {
	s := openShop(t)
	s.reg.publishClaude("0.101.0", "")
	s.reg.publishClaude("0.102.0", "")
	if err := s.Rollback("claude"); !errors.Is(err, agents.ErrNoPrevious) {
		t.Errorf("nothing is installed: %v", err)
	}
	if err := s.Uninstall("claude"); !errors.Is(err, agents.ErrNotOurs) {
		t.Errorf("nothing is installed: %v", err)
	}
	heard := news(s.Catalogue)
	if err := s.Begin("claude", ""); err != nil {
		t.Fatal(err)
	}
	if steps, end := ending(heard); end.Err != nil || end.Agent != "claude" || !slices.Equal(steps, []string{"resolve", "download", "verify", "switch"}) {
		t.Fatalf("%v %+v", steps, end)
	}
	a := get(t, s.Catalogue, "claude")
	if a.Version != "0.101.0" || !a.Installable || a.Pinned != "0.101.0" || a.Previous != "" || a.Installing != nil || a.Package != claudePackage {
		t.Errorf("%+v", a)
	}
	if err := s.Rollback("claude"); !errors.Is(err, agents.ErrNoPrevious) {
		t.Errorf("%v", err)
	}
	s.install("claude", agents.InstallRequest{AgentProcessVersion: "0.102.0"})
	if a := get(t, s.Catalogue, "claude"); a.Version != "0.102.0" || a.Previous != "0.101.0" {
		t.Errorf("%+v", a)
	}
	if err := s.Rollback("claude"); err != nil {
		t.Fatal(err)
	}
	if a := get(t, s.Catalogue, "claude"); a.Version != "0.101.0" || a.Previous != "0.102.0" || !strings.Contains(a.Path, "0.101.0") {
		t.Errorf("%+v", a)
	}
	if r, err := s.Test(t.Context(), "claude"); err != nil || !r.Healthy() || r.AgentInfo.Version != "0.101.0" {
		t.Errorf("%+v, %v", r, err)
	}

	cmd, err := s.Command(t.Context(), "claude", s.home)
	if err != nil {
		t.Fatal(err)
	}
	set, err := proxy.Open(proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	running, err := set.Start(t.Context(), "running", "claude", cmd)
	if err != nil {
		t.Fatal(err)
	}
	before := s.current()
	if err := s.Uninstall("claude"); !errors.Is(err, agents.ErrInUse) {
		t.Errorf("while it runs: %v", err)
	}
	if now := s.current(); now.Version != before.Version || len(s.versions()) != 2 {
		t.Errorf("what runs was touched: %+v %v", now, s.versions())
	}
	if err := s.Rollback("claude"); err != nil { // the one of before runs on, and is not removed even by the next installation
		t.Errorf("while it runs: %v", err)
	}
	if err := s.Uninstall("claude"); !errors.Is(err, agents.ErrInUse) {
		t.Errorf("while the version before runs: %v", err)
	}
	if err := running.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Uninstall("claude"); err != nil {
		t.Fatal(err)
	}
	if a := get(t, s.Catalogue, "claude"); a.State != agents.NotFound || len(s.versions()) > 0 {
		t.Errorf("%+v, %v", a, s.versions())
	}
	if err := s.Uninstall("claude"); !errors.Is(err, agents.ErrNotOurs) {
		t.Errorf("once more: %v", err)
	}
}

func TestDamagedVersionIsNothingToGoBackTo(t *testing.T) {
	s := openShop(t)
	s.reg.publishClaude("0.101.0", "")
	s.reg.publishClaude("0.102.0", "")
	s.install("claude", agents.InstallRequest{})
	s.install("claude", agents.InstallRequest{AgentProcessVersion: "0.102.0"})
	if err := os.RemoveAll(filepath.Join(s.cfg.Dir, "claude", "0.101.0", "node_modules")); err != nil {
		t.Fatal(err)
	}
	if err := s.Rollback("claude"); !errors.Is(err, agents.ErrNoPrevious) {
		t.Errorf("%v", err)
	}
	if now := s.current(); now.Version != "0.102.0" {
		t.Errorf("%+v", now)
	}
}

func TestOnlyOursIsRemoved(t *testing.T) {
	s := openShop(t)
	outside := filepath.Join(s.bin, "claude-agent-acp")
	if err := os.WriteFile(outside, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"claude", "mock", "cursor"} {
		if err := s.Uninstall(id); !errors.Is(err, agents.ErrNotOurs) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if err := s.Uninstall("../claude"); !errors.Is(err, agents.ErrUnknown) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
	if err := s.Begin("mock", ""); !errors.Is(err, agents.ErrNotInstallable) {
		t.Errorf("%v", err)
	}
	if err := s.Begin("claude", "latest"); !errors.Is(err, agents.ErrVersion) {
		t.Errorf("%v", err)
	}

	// A record that is broken is ours all the same.
	home := filepath.Join(s.cfg.Dir, "claude")
	if err := os.MkdirAll(filepath.Join(home, "0.1.0"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := store.WriteFile(filepath.Join(home, "current.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Rollback("claude"); !errors.Is(err, agents.ErrNoPrevious) {
		t.Errorf("%v", err)
	}
	if err := s.Uninstall("claude"); err != nil || len(s.versions()) > 0 {
		t.Errorf("%v, %v", err, s.versions())
	}
}

func TestCancelEndsWhatRuns(t *testing.T) {
	s := openShop(t)
	s.reg.publishClaude("0.101.0", "")
	held := s.reg.holdBack()
	heard := news(s.Catalogue)
	if err := s.Cancel(t.Context(), "claude"); err != nil {
		t.Errorf("nothing runs: %v", err)
	}
	if err := s.Begin("claude", ""); err != nil {
		t.Fatal(err)
	}
	<-held
	if err := s.Begin("claude", ""); !errors.Is(err, agents.ErrInstalling) {
		t.Errorf("%v", err)
	}
	for what, do := range map[string]func(string) error{"rollback": s.Rollback, "uninstall": s.Uninstall} {
		if err := do("claude"); !errors.Is(err, agents.ErrInstalling) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if a := get(t, s.Catalogue, "claude"); a.Installing == nil || a.Installing.Step != agents.StepDownload {
		t.Errorf("%+v", a.Installing)
	}
	joined := make(chan error) // somebody else who waits for the same
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		_, err := s.Install(ctx, "claude", agents.InstallRequest{AgentProcessVersion: "0.101.0"}, nil)
		joined <- err
	}()
	leave()
	if err := <-joined; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if a := get(t, s.Catalogue, "claude"); a.Installing == nil {
		t.Error("who comes and goes has ended it")
	}
	if err := s.Cancel(t.Context(), "claude"); err != nil {
		t.Fatal(err)
	}
	s.mustBeTidy()
	if a := get(t, s.Catalogue, "claude"); a.Installing != nil || a.State != agents.NotFound {
		t.Errorf("%+v", a)
	}
	if _, end := ending(heard); !errors.Is(end.Err, agents.ErrCancelled) || !errors.Is(end.Err, agents.ErrInstall) {
		t.Errorf("%+v", end)
	}
	s.reg.release()
	if err := s.Begin("claude", "0.101.0"); err != nil {
		t.Fatal(err)
	}
	if _, end := ending(heard); end.Err != nil {
		t.Errorf("%+v", end)
	}
}
