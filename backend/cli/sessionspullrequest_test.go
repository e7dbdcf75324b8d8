package cli_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestPullRequestFromTerminal: the branch of a conversation is committed, pushed and becomes a pull request by a stand-in for gh, or by the page of
// the forge.
func TestPullRequestFromTerminal(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("the stand-in for gh is a script of a shell")
	}
	tools := t.TempDir()
	gh := `#!/bin/sh
for last; do :; done
printf '%s\n' "$last" >>"` + tools + `/calls"
case "$last" in
graphql)
	printf 'HTTP/2.0 200 OK\nContent-Type: application/json\r\n\r\n{"data":{"repository":{"nameWithOwner":"acme/app","defaultBranchRef":{"name":"main"},"parent":null,"pullRequests":{"nodes":[]}}}}' ;;
repos/acme/app/pulls)
	cat >"` + tools + `/body"
	printf 'HTTP/2.0 201 Created\nContent-Type: application/json\r\n\r\n{"number":12,"title":"x","html_url":"https://github.com/acme/app/pull/12","draft":false}' ;;
*) exit 1 ;;
esac
`
	if err := os.WriteFile(filepath.Join(tools, "gh"), []byte(gh), 0o755); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	r := inRepository(t, "PATH="+tools+string(filepath.ListSeparator)+os.Getenv("PATH"))
	bare := filepath.Join(filepath.Dir(r.work), "bare.git")
	config := filepath.Join(r.data, "gitconfig")
	testWrite(t, config, "[user]\n\tname = Ada\n\temail = ada@example.org\n[url \""+bare+"\"]\n\tpushInsteadOf = git@github.com:acme/app.git\n")
	r.must("git", "init", "--quiet", "--bare", "--initial-branch=main", bare)
	r.must("git", "init", "--quiet", "--initial-branch=main")
	r.must("git", "commit", "--quiet", "--allow-empty", "-m", "first")
	r.must("git", "remote", "add", "origin", "git@github.com:acme/app.git")
	r.must("git", "push", "--quiet", "origin", "main")
	if _, errs, code := r.run("prompt", "--agent", "mock", "--approve", "once", "--worktree", "Write it down"); code != 0 {
		t.Fatalf("deskhand prompt --worktree: got exit code %d, stderr %s, want 0", code, errs)
	}
	land := func(code int, args ...string) (string, string) {
		t.Helper()
		out, errs, got := r.run(append([]string{"sessions", "land", "last"}, args...)...)
		if got != code {
			t.Fatalf("deskhand sessions land last %s: got exit code %d, stdout %s, stderr %s, want %d", strings.Join(args, " "), got, out, errs, code)
		}
		return out, errs
	}
	if _, errs := land(2, "--pr"); !strings.Contains(errs, "--with gh, or --with page") {
		t.Errorf("--pr before anybody has said how: got stderr %s, want the choice", errs)
	}
	if calls, err := os.ReadFile(filepath.Join(tools, "calls")); err == nil {
		t.Errorf("gh before anybody has allowed it: got the calls %s, want none", calls)
	}
	out, _ := land(0, "--commit", "--pr", "--with", "gh", "--title", "Write down what was said", "--json")
	var done struct{ Commit, PullRequest, Page string }
	if err := json.Unmarshal([]byte(out), &done); err != nil || done.Commit == "" || done.PullRequest != "https://github.com/acme/app/pull/12" {
		t.Fatalf("--commit --pr --json: got %s, %v, want a commit and the pull request", out, err)
	}
	if body, err := os.ReadFile(filepath.Join(tools, "body")); err != nil || !strings.Contains(string(body), `"title":"Write down what was said"`) || !strings.Contains(string(body), `"base":"main"`) {
		t.Errorf("what gh was given: got %s, %v, want the title and the base", body, err)
	}
	if pushed := r.must("git", "--git-dir", bare, "branch", "--list", "deskhand/*"); !strings.Contains(pushed, "deskhand/write-it-down-") {
		t.Errorf("the remote's branches: got %q, want the pushed branch", pushed)
	}
	if out, _ := land(0, "--pr", "--with", "page"); !strings.Contains(out, "make the pull request at https://github.com/acme/app/compare/main...deskhand") {
		t.Errorf("--pr --with page: got %s, want the address of the forge's page", out)
	}
}
