package agents_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/agents"
)

func TestPlanTellsTheSizeBefore(t *testing.T) {
	s := openInstallFixture(t)
	p := s.reg.publishClaude("0.101.0", "")
	dep := s.reg.packages["fake-dep"]["1.0.0"]
	if err := os.WriteFile(filepath.Join(s.home, "npmrc"), []byte("omit-lockfile-registry-resolved=true\n"), 0o600); err != nil { // some people have this setting
		t.Fatal(err)
	}
	before := get(t, s.Catalogue, "claude").Size
	heard := news(s.Catalogue)
	plan, err := s.Installer().Plan(t.Context(), "claude", "")
	if err != nil {
		t.Fatal(err)
	}
	if plan.Version != "0.101.0" || plan.Packages != 2 || plan.Unpacked != p.size+dep.size || plan.Download != int64(len(p.tarball)+len(dep.tarball)) || plan.FreeBytes == 0 || !plan.Enough {
		t.Errorf("Plan: got %+v, want 0.101.0, 2 packages, the registry's sizes", plan)
	}
	if n := <-heard; n.Agent != "claude" || !n.Aside {
		t.Errorf("news: got %+v, want claude, aside", n)
	}
	a := get(t, s.Catalogue, "claude")
	if before == nil || before.Source != agents.SizeMeasured || before.Unpacked < 300<<20 || a.Size == nil || *a.Size != (agents.Footprint{Download: plan.Download, Unpacked: plan.Unpacked, Source: agents.SizeRegistry}) {
		t.Errorf("size: got %+v, then %+v; want it measured, then as the registry tells", before, a.Size)
	}
	if tarballs, _ := s.reg.served(); tarballs != 0 {
		t.Errorf("tarballs: got %d downloaded, want none", tarballs)
	}
	if items, _ := os.ReadDir(s.cfg.Dir); len(items) > 0 || a.State != agents.NotFound {
		t.Errorf("after Plan: got %v, %+v, want an empty store, not_found", items, a)
	}
	s.reg.publishClaude("0.102.0", "").told = 1 << 50
	if plan, err = s.Installer().Plan(t.Context(), "claude", "0.102.0"); err != nil || plan.Enough || plan.Unpacked < 1<<50 {
		t.Errorf("Plan(0.102.0): got %+v, %v, want not enough", plan, err)
	}
	if a := get(t, s.Catalogue, "claude"); a.Size.Unpacked > 1<<30 {
		t.Errorf("size: got %+v, want that of its own version", a.Size)
	}
	s.reg.publishClaude("0.103.0", "").told = 0 // a mirror without sizes
	if plan, err = s.Installer().Plan(t.Context(), "claude", "0.103.0"); err != nil || !plan.Enough || plan.Unpacked != 0 || plan.Download == 0 || plan.Packages != 2 {
		t.Errorf("Plan(0.103.0): got %+v, %v, want enough, unpacked unknown", plan, err)
	}
	for version, want := range map[string]error{"9.9.9": agents.ErrInstall, "latest": agents.ErrVersion} {
		if _, err := s.Installer().Plan(t.Context(), "claude", version); !errors.Is(err, want) {
			t.Errorf("Plan(%s): got %v, want %v", version, err, want)
		}
	}
	if _, err := s.Installer().Plan(t.Context(), "mock", ""); !errors.Is(err, agents.ErrNotInstallable) {
		t.Errorf("Plan(mock): got %v, want %v", err, agents.ErrNotInstallable)
	}
}

func TestPlanOfAnArchive(t *testing.T) {
	y := openArchiveFixture(t)
	data := tarball(t, item{name: "agent", text: packedAgent("1.0.0", "")})
	y.put("a.tar.gz", data)
	y.lists("1.0.0", "a.tar.gz", "agent", "")
	plan, err := y.Installer().Plan(t.Context(), "packed", "")
	if err != nil || plan.Version != "1.0.0" || plan.Download != int64(len(data)) || plan.Packages != 1 || !plan.Enough {
		t.Errorf("Plan(packed): got %+v, %v, want the archive's size and one package", plan, err)
	}
	if a := y.packed(); a.Size == nil || a.Size.Download != int64(len(data)) || a.Size.Source != agents.SizeRegistry {
		t.Errorf("packed: got %+v, want the size of the registry", a)
	}
	y.lists("1.0.0", "gone.tar.gz", "agent", "")
	if _, err := y.Installer().Plan(t.Context(), "packed", ""); !errors.Is(err, agents.ErrInstall) || !strings.Contains(err.Error(), "status 404") {
		t.Errorf("Plan(packed): got %v, want status 404", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	y.says(func(_ http.ResponseWriter, r *http.Request) bool {
		cancel()
		<-r.Context().Done()
		return true
	})
	if _, err := y.Installer().Plan(ctx, "packed", ""); !errors.Is(err, context.Canceled) {
		t.Errorf("Plan of a caller that has gone: got %v, want context.Canceled", err)
	}
}

// With a mirror without sizes, a plan has the measured sizes, and says so.
func TestPlanSaysWhoseSizeItIs(t *testing.T) {
	if here() != "linux-x86_64" {
		t.Skip("nothing was measured here")
	}
	s := openInstallFixture(t)
	s.reg.publishClaude("0.101.0", "").told = 0
	s.reg.packages["fake-dep"]["1.0.0"].told = 0
	before := get(t, s.Catalogue, "claude").Size
	plan, err := s.Installer().Plan(t.Context(), "claude", "")
	if err != nil || before == nil || plan.Unpacked != before.Unpacked {
		t.Fatalf("Plan: got %+v, %v, want the measured size %+v", plan, err, before)
	}
	if a := get(t, s.Catalogue, "claude"); a.Size == nil || a.Size.Source != agents.SizeMeasured {
		t.Errorf("size: got %+v, want source measured", a.Size)
	}
}
