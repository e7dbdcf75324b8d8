package sample_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/sample"
)

// git runs the system's git, with no configuration but the repository's.
func git(ctx context.Context, dir string, in []byte, args ...string) error {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Stdin = dir, strings.NewReader(string(in))
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1")
	cmd.Stderr = os.Stderr
	return cmd.Run()
}

func tests(t *testing.T, dir string) (string, error) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "sh", filepath.Join(dir, sample.Tests)).CombinedOutput()
	return string(out), err
}

func TestMakeHasOneBugAndOneCommit(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "demo", "corner-shop")
	if sample.In(dir) {
		t.Error("In before it was made: got true, want false")
	}
	got, err := sample.Make(t.Context(), dir, git)
	if err != nil || got != dir || !sample.In(dir) {
		t.Fatalf("Make: got %q, %v (in it: %v), want %q", got, err, sample.In(dir), dir)
	}
	out, err := exec.CommandContext(t.Context(), "git", "-C", dir, "status", "--porcelain", "--branch").Output()
	if err != nil || string(out) != "## main\n" {
		t.Errorf("git status: got %q, %v, want everything committed on main", out, err)
	}
	printed, err := tests(t, dir)
	if err == nil || strings.Count(printed, "FAIL") != 1 {
		t.Fatalf("the tests: got %v and\n%s\nwant one that fails", err, printed)
	}
	code := filepath.Join(dir, sample.Code)
	text, err := os.ReadFile(code)
	if err != nil || strings.Count(string(text), sample.Bug) != 1 {
		t.Fatalf("%s: got %v and\n%s\nwant the bug once", sample.Code, err, text)
	}
	fixed := strings.Replace(string(text), sample.Bug, sample.Fix, 1)
	if err := os.WriteFile(code, []byte(fixed), 0o600); err != nil {
		t.Fatal(err)
	}
	if printed, err := tests(t, dir); err != nil {
		t.Errorf("the tests after the fix: got %v and\n%s\nwant none that fails", err, printed)
	}
	if _, err := sample.Make(t.Context(), dir, git); err != nil {
		t.Errorf("Make again: got %v, want no error", err)
	}
	if text, err := os.ReadFile(code); err != nil || string(text) != fixed {
		t.Errorf("%s after Make again: got %q, %v, want it as it was", sample.Code, text, err)
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), ".sample-*"))
	if err != nil || len(left) > 0 {
		t.Errorf("beside it: got %q, %v, want nothing", left, err)
	}
}

func TestMakeWithoutGit(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "corner-shop")
	none := func(context.Context, string, []byte, ...string) error { return nil }
	if _, err := sample.Make(t.Context(), dir, none); err != nil || !sample.In(dir) {
		t.Errorf("Make without git: got %v (in it: %v), want the project", err, sample.In(dir))
	}
}
