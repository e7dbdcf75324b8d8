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

// news collects the news of Watch.
func news(c *agents.Catalogue) <-chan agents.News {
	const most = 10000 // so that sends never block
	heard := make(chan agents.News, most)
	c.Watch(func(n agents.News) { heard <- n })
	return heard
}

// ending returns the end of the running installation, and the steps before.
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
	s := openInstallFixture(t)
	s.reg.publishClaude("0.101.0", "")
	s.reg.publishClaude("0.102.0", "")
	if err := s.Installer().Rollback("claude"); !errors.Is(err, agents.ErrNoPrevious) {
		t.Errorf("Rollback of nothing: got %v, want ErrNoPrevious", err)
	}
	if err := s.Installer().Uninstall("claude"); !errors.Is(err, agents.ErrNotOurs) {
		t.Errorf("Uninstall of nothing: got %v, want ErrNotOurs", err)
	}
	heard := news(s.Catalogue)
	if err := s.Installer().Begin("claude", ""); err != nil {
		t.Fatal(err)
	}
	if steps, end := ending(heard); end.Err != nil || end.Agent != "claude" || !slices.Equal(steps, []string{"resolve", "download", "verify", "switch"}) {
		t.Fatalf("got steps %v, end %+v, want all four steps of claude", steps, end)
	}
	a := get(t, s.Catalogue, "claude")
	if a.Version != "0.101.0" || !a.Installable || a.Pinned != "0.101.0" || a.Previous != "" || a.Installing != nil || a.Package != claudePackage {
		t.Errorf("claude: got %+v, want 0.101.0, installable, no version before", a)
	}
	if err := s.Installer().Rollback("claude"); !errors.Is(err, agents.ErrNoPrevious) {
		t.Errorf("Rollback: got %v, want %v", err, agents.ErrNoPrevious)
	}
	s.install("claude", agents.InstallRequest{AgentProcessVersion: "0.102.0"})
	if a := get(t, s.Catalogue, "claude"); a.Version != "0.102.0" || a.Previous != "0.101.0" {
		t.Errorf("claude: got %+v, want 0.102.0, before 0.101.0", a)
	}
	if err := s.Installer().Rollback("claude"); err != nil {
		t.Fatal(err)
	}
	if a := get(t, s.Catalogue, "claude"); a.Version != "0.101.0" || a.Previous != "0.102.0" || !strings.Contains(a.Path, "0.101.0") {
		t.Errorf("after Rollback: got %+v, want 0.101.0, before 0.102.0", a)
	}
	if r, err := s.Test(t.Context(), "claude"); err != nil || !r.Healthy() || r.AgentInfo.Version != "0.101.0" {
		t.Errorf("Test: got %+v, %v, want healthy in 0.101.0", r, err)
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
	if err := s.Installer().Uninstall("claude"); !errors.Is(err, agents.ErrInUse) {
		t.Errorf("Uninstall while it runs: got %v, want ErrInUse", err)
	}
	if now := s.current(); now.Version != before.Version || len(s.versions()) != 2 {
		t.Errorf("after a refused Uninstall: got %+v, versions %v; want it as before", now, s.versions())
	}
	if err := s.Installer().Rollback("claude"); err != nil { // the earlier version still runs, and even the next installation keeps its directory
		t.Errorf("Rollback while it runs: got %v, want no error", err)
	}
	if err := s.Installer().Uninstall("claude"); !errors.Is(err, agents.ErrInUse) {
		t.Errorf("Uninstall while the version before runs: got %v, want ErrInUse", err)
	}
	if err := running.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Installer().Uninstall("claude"); err != nil {
		t.Fatal(err)
	}
	if a := get(t, s.Catalogue, "claude"); a.State != agents.NotFound || len(s.versions()) > 0 {
		t.Errorf("after Uninstall: got %+v, versions %v, want not_found and none", a, s.versions())
	}
	if err := s.Installer().Uninstall("claude"); !errors.Is(err, agents.ErrNotOurs) {
		t.Errorf("Uninstall once more: got %v, want ErrNotOurs", err)
	}
}

func TestDamagedVersionIsNothingToGoBackTo(t *testing.T) {
	s := openInstallFixture(t)
	s.reg.publishClaude("0.101.0", "")
	s.reg.publishClaude("0.102.0", "")
	s.install("claude", agents.InstallRequest{})
	s.install("claude", agents.InstallRequest{AgentProcessVersion: "0.102.0"})
	if err := os.RemoveAll(filepath.Join(s.cfg.Dir, "claude", "0.101.0", "node_modules")); err != nil {
		t.Fatal(err)
	}
	if err := s.Installer().Rollback("claude"); !errors.Is(err, agents.ErrNoPrevious) {
		t.Errorf("Rollback: got %v, want %v", err, agents.ErrNoPrevious)
	}
	if now := s.current(); now.Version != "0.102.0" {
		t.Errorf("current.json: got %+v, want 0.102.0", now)
	}
}

func TestUninstallRemovesOnlyOurs(t *testing.T) {
	s := openInstallFixture(t)
	outside := filepath.Join(s.bin, "claude-agent-acp")
	if err := os.WriteFile(outside, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"claude", "mock", "cursor"} {
		if err := s.Installer().Uninstall(id); !errors.Is(err, agents.ErrNotOurs) {
			t.Errorf("Uninstall(%s): got %v, want %v", id, err, agents.ErrNotOurs)
		}
	}
	if err := s.Installer().Uninstall("../claude"); !errors.Is(err, agents.ErrUnknown) {
		t.Errorf("Uninstall(../claude): got %v, want %v", err, agents.ErrUnknown)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Error(err)
	}
	if err := s.Installer().Begin("mock", ""); !errors.Is(err, agents.ErrNotInstallable) {
		t.Errorf("Begin(mock): got %v, want %v", err, agents.ErrNotInstallable)
	}
	if err := s.Installer().Begin("claude", "latest"); !errors.Is(err, agents.ErrVersion) {
		t.Errorf("Begin(claude, latest): got %v, want %v", err, agents.ErrVersion)
	}

	// An agent with a broken record still counts as installed by Deskhand.
	home := filepath.Join(s.cfg.Dir, "claude")
	if err := os.MkdirAll(filepath.Join(home, "0.1.0"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := store.WriteFile(filepath.Join(home, "current.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Installer().Rollback("claude"); !errors.Is(err, agents.ErrNoPrevious) {
		t.Errorf("Rollback: got %v, want %v", err, agents.ErrNoPrevious)
	}
	if err := s.Installer().Uninstall("claude"); err != nil || len(s.versions()) > 0 {
		t.Errorf("Uninstall: got %v, versions %v, want none", err, s.versions())
	}
}

func TestCancelEndsInstallation(t *testing.T) {
	s := openInstallFixture(t)
	s.reg.publishClaude("0.101.0", "")
	held := s.reg.holdBack()
	heard := news(s.Catalogue)
	if err := s.Installer().Cancel(t.Context(), "claude"); err != nil {
		t.Errorf("Cancel of nothing: got %v, want no error", err)
	}
	if err := s.Installer().Begin("claude", ""); err != nil {
		t.Fatal(err)
	}
	<-held
	if err := s.Installer().Begin("claude", ""); !errors.Is(err, agents.ErrInstalling) {
		t.Errorf("Begin: got %v, want %v", err, agents.ErrInstalling)
	}
	for what, do := range map[string]func(string) error{"rollback": s.Installer().Rollback, "uninstall": s.Installer().Uninstall} {
		if err := do("claude"); !errors.Is(err, agents.ErrInstalling) {
			t.Errorf("%s: got %v, want %v", what, err, agents.ErrInstalling)
		}
	}
	if a := get(t, s.Catalogue, "claude"); a.Installing == nil || a.Installing.Step != agents.StepDownload {
		t.Errorf("Installing: got %+v, want step download", a.Installing)
	}
	joined := make(chan error) // another caller who waits for the same installation
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		_, err := s.Installer().Install(ctx, "claude", agents.InstallRequest{AgentProcessVersion: "0.101.0"}, nil)
		joined <- err
	}()
	leave()
	if err := <-joined; !errors.Is(err, context.Canceled) {
		t.Errorf("Install: got %v, want %v", err, context.Canceled)
	}
	if a := get(t, s.Catalogue, "claude"); a.Installing == nil {
		t.Error("who comes and goes has ended it")
	}
	if err := s.Installer().Cancel(t.Context(), "claude"); err != nil {
		t.Fatal(err)
	}
	s.mustBeTidy()
	if a := get(t, s.Catalogue, "claude"); a.Installing != nil || a.State != agents.NotFound {
		t.Errorf("after Cancel: got %+v, want not_found, not installing", a)
	}
	if _, end := ending(heard); !errors.Is(end.Err, agents.ErrCancelled) || !errors.Is(end.Err, agents.ErrInstall) {
		t.Errorf("end: got %+v, want ErrCancelled and ErrInstall", end)
	}
	s.reg.release()
	if err := s.Installer().Begin("claude", "0.101.0"); err != nil {
		t.Fatal(err)
	}
	if _, end := ending(heard); end.Err != nil {
		t.Errorf("end: got %+v, want no error", end)
	}
}
