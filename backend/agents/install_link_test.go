package agents_test

import (
	"os"
	"path/filepath"
	"testing"

	"deskhand/backend/agents"
)

// People put their data on another disk and leave a link. Given a directory below a link, npm writes other paths than node_modules/… into
// its lock file.
func TestInstallBelowALink(t *testing.T) {
	s := openInstallFixture(t, func(cfg *agents.Config) {
		link := filepath.Join(filepath.Dir(cfg.Dir), "link")
		if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(cfg.Dir, link); err != nil {
			t.Fatal(err)
		}
		cfg.Dir = link
	})
	s.reg.publishClaude("0.101.0", "")
	done := s.install("claude", agents.InstallRequest{})
	if len(done.Artifacts) != 1 || done.Artifacts[0].Version != "0.101.0" {
		t.Errorf("Install(claude): got %+v, want one artifact in 0.101.0", done)
	}
}
