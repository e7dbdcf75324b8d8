package launch_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/launch"
)

func TestApprovalsAreListedAndRevoked(t *testing.T) {
	t.Parallel()
	f := open(t)
	ctx := t.Context()
	for _, command := range []string{"one", "two"} {
		f.write(".claude/settings.json", hook(command))
		f.approveAll()
	}
	f.write(".mcp.json", `{"a":1}`)
	f.approveAll()
	for _, directory := range []string{"", f.work, f.work + "/"} {
		got, err := f.Approvals(ctx, directory)
		if err != nil || len(got) != 3 || got[0].Kind != "agent_config" || got[0].Directory != f.work || got[0].ApprovedAt.IsZero() {
			t.Fatalf("Approvals(%q): got %+v, %v; want three, the configuration first", directory, got, err)
		}
		if !strings.Contains(got[1].Detail, "two") || got[1].Older || !got[2].Older || !strings.Contains(got[2].Detail, "one") {
			t.Errorf("Approvals(%q): got %+v, want the newest of a name first", directory, got)
		}
	}
	if got, err := f.Approvals(ctx, "/nowhere"); err != nil || len(got) != 0 {
		t.Errorf("Approvals of another directory: got %+v, %v; want none", got, err)
	}
	_, err := f.Approvals(ctx, "relative")
	refused(t, err, "directory.relative")
	if err := os.RemoveAll(f.work); err != nil {
		t.Fatal(err)
	}
	if err := f.RevokeAll(ctx, f.work); err != nil {
		t.Fatal(err)
	}
	if got, err := f.Approvals(ctx, ""); err != nil || len(got) != 0 {
		t.Errorf("Approvals after RevokeAll: got %+v, %v; want none", got, err)
	}
}

func TestApproveTellsOfAllOrRefuses(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.write(".claude/settings.json", hook("one"))
	old := f.listed()[0].Hash
	f.write(".claude/settings.json", hook("two"))
	now := f.listed()[0].Hash
	refused(t, f.Approve(t.Context(), f.work, []string{now, old}), "trust.changed")
	if got := f.listed(); got[0].Approved || len(f.told) > 0 {
		t.Errorf("Approve of a content that is gone: got %+v, told of %+v; want nothing approved", got, f.told)
	}
	if err := f.Approve(t.Context(), f.work, []string{now}); err != nil {
		t.Fatal(err)
	}
	if got := f.listed(); !got[0].Approved || len(f.told) != 1 || f.told[0].Hash != now {
		t.Errorf("Approve: got %+v, told of %+v; want the content approved, and told of", got, f.told)
	}
	f.write(".claude/settings.json", hook("three"))
	if got := f.listed()[0]; got.Approved || !strings.Contains(got.Before, "two") {
		t.Errorf("content after the approved one: got %+v, want it unapproved, beside the one before", got)
	}
}

// What is approved in a repository is approved in its worktree, and taken back for both.
func TestApprovalOfTheRepositoryCountsInItsWorktree(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.write(".claude/settings.json", hook("one"))
	f.approveAll()
	tree := filepath.Join(filepath.Dir(f.work), "worktree")
	if err := os.CopyFS(tree, os.DirFS(f.work)); err != nil {
		t.Fatal(err)
	}
	list, err := f.Executables(t.Context(), tree)
	if err != nil || len(list) != 1 || !list[0].Approved {
		t.Fatalf("Executables(worktree): got %+v, %v; want the content approved", list, err)
	}
	if err := f.Revoke(t.Context(), tree, list[0].Hash); err != nil {
		t.Fatal(err)
	}
	if got := f.listed(); got[0].Approved {
		t.Errorf("after Revoke in the worktree: got %+v, want the repository's content unapproved", got)
	}
}

// The list that a person reads is bounded, whatever another program writes into the files.
func TestExecutablesAreFewEnoughToRead(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.servers(`{"` + strings.Repeat("n", 1<<20) + `":` + entry(t, "one") + `}`)
	var b strings.Builder
	b.WriteString(`{"` + strings.Repeat("s", 1<<20) + `":{"sources":[{"type":"local","source":"here"}]}`)
	for i := range 5000 {
		b.WriteString(`,"b` + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strings.Repeat("0", i/26%190) + `":{"sources":[{"type":"local","source":"here"}]}`)
	}
	f.skills(b.String() + "}")
	size := 0
	list := f.listed()
	for _, e := range list {
		size += len(e.Name) + len(e.Detail)
	}
	if len(list) == 0 || len(list) > 400 || size > 1<<20 {
		t.Errorf("Executables: got %d of %d bytes, want 1 to 400 of 1 MiB at most", len(list), size)
	}
	servers, err := f.Servers(t.Context(), f.work)
	if err != nil || !strings.Contains(servers.Problem, "too long") || len(servers.Problem) > 100_000 {
		t.Errorf("Servers: got the problem %.200q, %v; want a name that is too long", servers.Problem, err)
	}
	entries, err := f.Skills(t.Context(), f.work)
	if err != nil || !strings.Contains(entries.Problem, "too many") || len(entries.Problem) > 100_000 {
		t.Errorf("Skills: got the problem %.200q, %v; want too many entries", entries.Problem, err)
	}
}

func TestPrepareWithoutAnAnswerIsCalledOff(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.servers(`{"one":` + entry(t, "one") + `}`)
	if _, err := f.begin(demo, "u"); !errors.Is(err, launch.ErrCalledOff) {
		t.Errorf("Prepare: got %v, want %v", err, launch.ErrCalledOff)
	}
}
