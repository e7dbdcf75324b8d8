package landing_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/landing"
)

func (b *bench) outgoing() landing.Outgoing {
	b.t.Helper()
	o, err := b.Outgoing(b.t.Context(), id)
	if err != nil {
		b.t.Fatalf("Outgoing: got error %v, want none", err)
	}
	return o
}

func TestOutgoingTellsWhatARemoteLacks(t *testing.T) {
	b := set(t)
	_, err := b.Outgoing(t.Context(), id)
	refused(t, "Outgoing without a remote", err, "landing.no_remote")
	bare := filepath.Join(b.root, "bare.git")
	b.git(b.root, "init", "--quiet", "--bare", "--initial-branch=main", bare)
	b.git(b.repo, "remote", "add", "origin", "short:app")
	b.git(b.repo, "config", "--global", "url."+b.root+"/bare.git.insteadOf", "short:app")
	if o := b.outgoing(); o.Address != bare || o.Published || o.Unpushed != 1 || o.Default != "" {
		t.Fatalf("Outgoing before the first push: got %+v, want one commit for %s", o, bare)
	}
	b.git(b.repo, "push", "--quiet", "origin", "main")
	b.git(b.repo, "checkout", "--quiet", "-b", "fix/total")
	b.git(b.repo, "commit", "--quiet", "--allow-empty", "-m", "Mend\n\nIt was wrong.")
	b.git(b.repo, "commit", "--quiet", "--allow-empty", "-m", "Test")
	o := b.outgoing()
	if o.Branch != "fix/total" || o.Remote != "origin" || o.Default != "main" || !slices.Equal(o.Bases, []string{"main"}) || o.Published || o.Unpushed != 2 || o.Title != "Mend the total" {
		t.Fatalf("Outgoing of a branch: got %+v, want two commits for origin, onto main", o)
	}
	subjects, err := b.Subjects(t.Context(), id, "origin", "main")
	if err != nil || strings.Join(subjects, ",") != "Mend,Test" {
		t.Fatalf("Subjects: got %q, error %v, want Mend and Test", subjects, err)
	}
	if subjects, err := b.Subjects(t.Context(), id, "origin", "--all"); err != nil || len(subjects) != 0 {
		t.Fatalf("Subjects beside a branch that is not there: got %q, error %v, want none", subjects, err)
	}
	if _, err := b.Push(t.Context(), id, landing.PushRequest{}); err != nil {
		t.Fatal(err)
	}
	b.git(b.repo, "commit", "--quiet", "--allow-empty", "-m", "More")
	if o := b.outgoing(); !o.Published || o.Unpushed != 1 {
		t.Fatalf("Outgoing after a push and a commit: got %+v, want one commit for a branch that is there", o)
	}
	b.git(b.repo, "config", "remote.origin.pushurl", "git@example.org:ada/app.git")
	b.hooks = []string{"pre-push"}
	if o := b.outgoing(); o.Address != "git@example.org:ada/app.git" || !slices.Equal(o.Hooks, b.hooks) {
		t.Fatalf("Outgoing with an address for pushes: got %+v, want that address and the hook", o)
	}
	b.git(b.repo, "checkout", "--quiet", "--detach")
	_, err = b.Outgoing(t.Context(), id)
	refused(t, "Outgoing without a branch", err, "landing.no_branch")
}
