package agents_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"deskhand/backend/agents"
)

// smallDisk mounts a file system of the given size.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skip("only the administrator can make a small disk: ", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	return filepath.Join(dir, "agents")
}

func TestInstallTellsMissingRoomBeforeDownload(t *testing.T) {
	y := openArchiveFixture(t)
	y.cfg.Dir = smallDisk(t, "16m")
	y.put("a.tar.gz", tarball(t, item{name: "agent", text: packedAgent("1.0.0", "")}))
	y.lists("1.0.0", "a.tar.gz", "agent", "")
	y.reg.publishClaude("0.101.0", "")
	c := agents.Open(y.cfg)
	defer closing(t, c)
	for _, id := range []string{"packed", "claude"} {
		_, err := c.Installer().Install(t.Context(), id, agents.InstallRequest{}, nil)
		var failed *agents.InstallError
		if !errors.As(err, &failed) || failed.Step != agents.StepResolve || !strings.Contains(err.Error(), "not enough space") || !strings.Contains(err.Error(), "MB are needed") {
			t.Errorf("Install(%s): got %v, want step resolve and \"not enough space\"", id, err)
		}
		p, err := c.Installer().Plan(t.Context(), id, "")
		if err != nil || p.Enough || p.FreeBytes == 0 || p.FreeBytes > 16<<20 {
			t.Errorf("Plan(%s): got %+v, %v, want not enough of at most 16 MiB", id, p, err)
		}
		if items, _ := filepath.Glob(filepath.Join(y.cfg.Dir, id, "*")); !slices.Equal(items, []string{filepath.Join(y.cfg.Dir, id, "lock")}) {
			t.Errorf("%s: %v is left", id, items)
		}
	}
	if tarballs, _ := y.reg.served(); tarballs != 0 {
		t.Errorf("%d tarballs were downloaded", tarballs)
	}
}

// TestInstallOnDiskThatFillsUp: the disk fills up although enough was free before.
func TestInstallOnDiskThatFillsUp(t *testing.T) {
	y := openArchiveFixture(t)
	y.cfg.Dir = smallDisk(t, "280m") // a little more than must be free
	y.put("small.tar.gz", tarball(t, item{name: "agent", text: packedAgent("1.0.0", "")}))
	y.put("large.tar.gz", tarball(t, item{name: "agent", text: packedAgent("2.0.0", "")}, item{name: "zeros", text: strings.Repeat("\x00", 300<<20)}))
	c := agents.Open(y.cfg)
	defer closing(t, c)
	y.lists("1.0.0", "small.tar.gz", "agent", "")
	if _, err := c.Installer().Install(t.Context(), "packed", agents.InstallRequest{}, nil); err != nil {
		t.Fatal(err)
	}
	y.lists("2.0.0", "large.tar.gz", "agent", "")
	_, err := c.Installer().Install(t.Context(), "packed", agents.InstallRequest{Reinstall: true}, nil)
	var failed *agents.InstallError
	if !errors.As(err, &failed) || failed.Step != agents.StepDownload || !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("Install: got %v, want step download and ENOSPC", err)
	}
	y.mustBeOnly("packed", "1.0.0")
	if a := get(t, c, "packed"); a.State != agents.Ready || a.Version != "1.0.0" {
		t.Errorf("packed: got %+v, want ready in 1.0.0", a)
	}
	if r, err := c.Test(t.Context(), "packed"); err != nil || !r.Healthy() {
		t.Errorf("Test(packed): got %+v, %v, want healthy", r.Steps, err)
	}
}

// TestNPMThatCannotWrite lets npm fail half-way by a limit of some kilobytes per file.
func TestNPMThatCannotWrite(t *testing.T) {
	s := openInstallFixture(t)
	s.reg.publishClaude("0.101.0", "")
	s.install("claude", agents.InstallRequest{})
	noise := make([]byte, 1<<20)
	f, err := os.Open("/dev/urandom")
	if err == nil {
		_, err = io.ReadFull(f, noise)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	s.reg.publish(claudePackage, "0.102.0", map[string]any{"bin": map[string]any{"claude-agent-acp": "i.js"}}, map[string]string{"i.js": agentScript("0.102.0", ""), "noise": string(noise)})
	npm := filepath.Join(s.bin, "npm")
	real, err := filepath.EvalSymlinks(npm)
	if err == nil {
		err = os.Remove(npm)
	}
	if err == nil {
		err = os.WriteFile(npm, []byte("#!/bin/sh\nulimit -f 200\nexec '"+filepath.Join(s.bin, "node")+"' '"+real+"' \"$@\"\n"), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Installer().Install(t.Context(), "claude", agents.InstallRequest{AgentProcessVersion: "0.102.0"}, nil)
	var failed *agents.InstallError
	if !errors.As(err, &failed) || failed.Step != agents.StepDownload {
		t.Errorf("Install: got %v, want step download", err)
	}
	t.Log(err)
	if now := s.current(); now.Version != "0.101.0" || !slices.Equal(s.versions(), []string{"0.101.0"}) {
		t.Errorf("got %+v, versions %v, want only 0.101.0", now, s.versions())
	}
	if r, err := s.Test(t.Context(), "claude"); err != nil || !r.Healthy() {
		t.Errorf("Test(claude): got %+v, %v, want healthy", r.Steps, err)
	}
}
