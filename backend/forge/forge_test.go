package forge_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/environ"
	"deskhand/backend/forge"
	"deskhand/backend/landing"
	"deskhand/backend/proxy"
	"deskhand/backend/refusal"
)

// bench is a library with a session in a repository, whose remote's address is one of a forge; pushes go to a bare repository beside it.
type bench struct {
	*forge.Library
	t       testing.TB
	root    string
	repo    string
	bare    string
	bin     string // with the stand-ins
	state   string // of the stand-ins
	choices string
	answer  string // the agent's last
	answers map[string][]reply
}

const id = "session"

func set(t testing.TB, address string, tools ...string) *bench {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the stand-ins are links")
	}
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{
		t: t, root: root, repo: filepath.Join(root, "app"), bare: filepath.Join(root, "bare.git"), bin: filepath.Join(root, "bin"), state: filepath.Join(root, "state"),
		answer: "The total is right now.", answers: map[string][]reply{},
	}
	self, err := os.Executable()
	if err := errors.Join(err, os.Mkdir(b.bin, 0o700), os.Mkdir(b.state, 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, name := range tools {
		if err := os.Symlink(self, filepath.Join(b.bin, name)); err != nil {
			t.Fatal(err)
		}
	}
	b.open()
	b.git(root, "init", "--quiet", "--bare", "--initial-branch=main", b.bare)
	b.git(root, "init", "--quiet", "--initial-branch=main", "app")
	for _, set := range [][2]string{{"user.name", "Ada"}, {"user.email", "ada@example.org"}, {"url." + b.bare + ".pushInsteadOf", address}} {
		b.git(b.repo, "config", "--global", set[0], set[1])
	}
	b.git(b.repo, "remote", "add", "origin", address)
	b.commit("first")
	b.git(b.repo, "push", "--quiet", "origin", "main")
	b.git(b.repo, "checkout", "--quiet", "-b", "fix/total")
	b.commit("Mend the total")
	b.commit("Test the total")
	return b
}

func (b *bench) open() {
	b.t.Helper()
	processes, err := proxy.Open(proxy.Config{})
	if err != nil {
		b.t.Fatal(err)
	}
	theirs := environ.Open(environ.Config{Environ: b.env(), Logger: slog.New(slog.DiscardHandler)})
	lands, err := landing.Open(b.t.Context(), landing.Deps{
		Beside: processes, Environ: theirs.Environ, Logger: slog.New(slog.DiscardHandler), Clean: clean, Writable: func() error { return nil },
		Find: func(context.Context, string) (landing.Session, error) {
			return landing.Session{Cwd: b.repo, Local: true, Title: "Mend the total. It is wrong."}, nil
		},
		Unapproved: func(context.Context, string) ([]string, error) { return nil, nil },
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.Library, err = forge.Open(b.t.Context(), forge.Deps{
		Landing: lands, Beside: processes, Environ: theirs.Environ, Clean: clean, Logger: slog.New(slog.DiscardHandler),
		Program: func(ctx context.Context, name string) (string, error) {
			_, find := theirs.Programs(ctx)
			return find(name)
		},
		Answer:  func(context.Context, string) (string, error) { return b.answer, nil },
		Choices: func() string { return b.choices },
		Choose:  func(list string) error { b.choices = list; return nil },
	})
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		if err := errors.Join(b.Close(), lands.Close(), processes.Close()); err != nil {
			b.t.Error(err)
		}
		theirs.Close()
	})
}

func clean(text string) string { return strings.ReplaceAll(text, "hunter2", "•••") }

func (b *bench) env() []string {
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "PATH=") })
	return append(
		env, "PATH="+b.bin+":.:"+os.Getenv("PATH"), "HOME="+b.root, "XDG_CONFIG_HOME="+filepath.Join(b.root, "config"), "GIT_CONFIG_NOSYSTEM=1",
		standInDir+"="+b.state, "GORACE=atexit_sleep_ms=0", "GH_HOST=other.example", "GIT_DIR="+filepath.Join(b.root, "elsewhere"), "GH_DEBUG=api", "GITLAB_TOKEN=kept",
	)
}

func (b *bench) git(dir string, args ...string) string {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "git", args...)
	cmd.Dir, cmd.Env = dir, append(slices.DeleteFunc(b.env(), func(kv string) bool { return strings.HasPrefix(kv, "GIT_DIR=") }), "GIT_ALLOW_PROTOCOL=file")
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("git %s: got error %v, want none\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimRight(string(out), "\n")
}

func (b *bench) commit(subject string) {
	b.git(b.repo, "commit", "--quiet", "--allow-empty", "-m", subject)
}

// on has the stand-ins answer a call with replies, one after the other.
func (b *bench) on(key string, replies ...reply) {
	b.t.Helper()
	b.answers[key] = replies
	data, err := json.Marshal(b.answers)
	if err := errors.Join(err, os.WriteFile(filepath.Join(b.state, "answers.json"), data, 0o600)); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) notes() []note { return notes(b.state) }

// calls returns the calls of the stand-ins.
func (b *bench) calls() (list []string) {
	for _, n := range b.notes() {
		list = append(list, n.key())
	}
	return list
}

func (b *bench) look(fresh bool) forge.PullRequestStatus {
	b.t.Helper()
	s, err := b.Status(b.t.Context(), id, fresh)
	if err != nil {
		b.t.Fatalf("Status(fresh %v): got error %v, want none", fresh, err)
	}
	return s
}

func (b *bench) create(q forge.CreatePullRequest) (forge.CreatedPullRequest, error) {
	return b.Create(b.t.Context(), id, q)
}

func refused(t testing.TB, what string, err error, code string) map[string]string {
	t.Helper()
	got, is := errors.AsType[*refusal.Error](err)
	if !is || got.Code != code {
		t.Fatalf("%s: got error %v, want the refusal %s", what, err, code)
	}
	return got.Params
}

func same(t testing.TB, what string, got, want any) {
	t.Helper()
	g, _ := json.MarshalIndent(got, "", " ")
	w, _ := json.MarshalIndent(want, "", " ")
	if string(g) != string(w) {
		t.Fatalf("%s: got %s\nwant %s", what, g, w)
	}
}

type object = map[string]any

func nodes(list ...any) object { return object{"nodes": list} }

// onGitHub is GitHub's answer about acme/app, with pull requests.
func onGitHub(requests ...any) reply {
	return reply{Status: 200, Body: object{"data": object{"repository": object{
		"nameWithOwner": "acme/app", "defaultBranchRef": object{"name": "main"}, "pullRequests": nodes(requests...), "parent": nil,
	}}}}
}

func request(number int, with object) object {
	r := object{
		"number": number, "title": "Mend the total", "url": "https://github.com/acme/app/pull/12", "state": "OPEN", "isDraft": false, "mergeable": "MERGEABLE",
		"mergeStateStatus": "CLEAN", "reviewDecision": nil, "baseRefName": "main", "author": object{"login": "ada"}, "headRepository": object{"nameWithOwner": "acme/app"},
		"commits": nodes(object{"commit": object{"statusCheckRollup": nil}}), "reviewThreads": nodes(), "reviews": nodes(), "comments": nodes(),
	}
	maps.Copy(r, with)
	return r
}

func said(who, text, at string) object {
	return object{"id": at, "url": "https://github.com/acme/app/pull/12#" + at, "body": text, "createdAt": at, "author": object{"__typename": "User", "login": who}}
}

const (
	gitHub = "git@github.com:acme/app.git"
	gitLab = "https://ada:hunter2@gitlab.example.org/group/sub/app.git"
	ask    = "gh POST graphql"
)

func TestNoProgramRunsBeforeThePersonHasSaidSo(t *testing.T) {
	b := set(t, gitHub, "gh", "glab")
	s := b.look(true)
	want := forge.PullRequestStatus{
		Forge: "github", Host: "github.com", Repository: "acme/app", Into: "acme/app", Remote: "origin", Branch: "fix/total", Base: "main", Bases: []string{"main"},
		Unpushed: 2, Hooks: []string{}, Tools: []string{"gh"}, Page: "https://github.com/acme/app/compare/main...fix/total?expand=1",
	}
	same(t, "Status", s, want)
	_, err := b.create(forge.CreatePullRequest{Branch: "fix/total", Base: "main", Title: "Mend"})
	refused(t, "Create", err, "forge.unasked")
	if got := b.notes(); len(got) != 0 {
		t.Fatalf("got %d calls, want none: %v", len(got), got)
	}
	if got := b.git(b.bare, "branch", "--list", "fix/total"); got != "" {
		t.Fatalf("branches of the remote: got %q, want none", got)
	}
}

func TestStatusOfAGitHubBranch(t *testing.T) {
	b := set(t, gitHub, "gh")
	b.choices = "github.com=gh"
	run := func(name, status, conclusion, at string) object {
		return object{
			"__typename": "CheckRun", "name": name, "status": status, "conclusion": conclusion, "startedAt": at, "detailsUrl": "https://ci.example/" + name,
			"checkSuite": object{"workflowRun": object{"event": "push", "workflow": object{"name": "CI"}}},
		}
	}
	minimized, robot := said("eve", "spam", "2026-01-09T00:00:00Z"), said("robot", "deployed", "2026-01-09T00:00:01Z")
	minimized["isMinimized"] = true
	robot["author"] = object{"__typename": "Bot", "login": "robot"}
	b.on(ask, onGitHub(
		request(13, object{"state": "CLOSED"}),
		request(14, object{"headRepository": object{"nameWithOwner": "eve/app"}}),
		request(12, object{
			"reviewDecision": "CHANGES_REQUESTED", "mergeStateStatus": "BLOCKED",
			"commits": nodes(object{"commit": object{"statusCheckRollup": object{"contexts": nodes(
				run("test", "COMPLETED", "FAILURE", "1"), run("test", "COMPLETED", "SUCCESS", "2"), run("lint", "COMPLETED", "FAILURE", "1"), run("slow", "IN_PROGRESS", "", "1"),
				object{"__typename": "StatusContext", "context": "cover", "state": "ERROR", "targetUrl": "javascript:alert(1)"},
			)}}}),
			"reviewThreads": nodes(
				object{"isResolved": true, "path": "a.go", "line": 1, "comments": nodes(said("bob", "resolved", "2026-01-01T00:00:00Z"))},
				object{"isResolved": false, "path": "b.go", "line": 2, "comments": nodes(said("bob", "answered", "2026-01-01T00:00:00Z"), said("ada", "yes", "2026-01-01T00:00:01Z"))},
				object{"isResolved": false, "path": "total.go", "line": 7, "comments": nodes(said("bob", "Off by one, hunter2?", "2026-01-02T00:00:00Z"), said("cyd", "Indeed.", "2026-01-02T00:00:01Z"))},
			),
			"reviews":  nodes(said("bob", "", "2026-01-05T00:00:00Z"), said("bob", "Nearly.", "2026-01-05T00:00:01Z")),
			"comments": nodes(said("bob", "old", "2026-01-03T00:00:00Z"), said("ada", "Please look.", "2026-01-04T00:00:00Z"), minimized, robot),
		}),
	))
	s := b.look(false)
	if s.Refused != nil || s.At == nil {
		t.Fatalf("Status: got refused %+v at %v, want an answer", s.Refused, s.At)
	}
	same(t, "PullRequest", s.PullRequest, forge.PullRequest{
		Number: 12, Title: "Mend the total", URL: "https://github.com/acme/app/pull/12", State: "open", Base: "main", Mergeable: "blocked", Review: "changes",
		Checks: forge.Checks{Passed: 1, Pending: 1, Failed: []forge.FailedCheck{{Name: "CI / lint", URL: "https://ci.example/lint"}, {Name: "cover"}}},
		Comments: []forge.ReviewComment{
			{ID: "2026-01-02T00:00:00Z", Author: "bob", Text: "Off by one, •••?\n\ncyd: Indeed.", Path: "total.go", Line: 7, URL: "https://github.com/acme/app/pull/12#2026-01-02T00:00:00Z"},
			{ID: "2026-01-05T00:00:01Z", Author: "bob", Text: "Nearly.", URL: "https://github.com/acme/app/pull/12#2026-01-05T00:00:01Z"},
		},
	})
	call := b.notes()[0]
	same(t, "arguments of gh", call.Args, []string{"api", "--hostname", "github.com", "--include", "--method", "POST", "--header", "Content-Type: application/json", "--input", "-", "graphql"})
	if strings.HasPrefix(call.Dir, b.repo) || len(call.Listing) != 0 {
		t.Errorf("gh ran in %s with %v, want an empty directory outside of %s", call.Dir, call.Listing, b.repo)
	}
	if _, err := os.Stat(call.Dir); err == nil {
		t.Errorf("the directory %s of gh is still there", call.Dir)
	}
	for _, name := range []string{"GH_HOST", "GIT_DIR", "GH_DEBUG"} {
		if slices.ContainsFunc(call.Env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") }) {
			t.Errorf("the environment of gh has %s, want it left out", name)
		}
	}
	for _, kv := range []string{"GH_PROMPT_DISABLED=1", "GITLAB_TOKEN=kept", "GIT_CEILING_DIRECTORIES=" + filepath.Dir(call.Dir)} {
		if !slices.Contains(call.Env, kv) {
			t.Errorf("the environment of gh has no %s", kv)
		}
	}
	if path := variable(call.Env, "PATH"); slices.Contains(filepath.SplitList(path), ".") {
		t.Errorf("PATH of gh: got %s, want absolute directories alone", path)
	}
	b.look(false)
	b.look(true)
	if got := b.calls(); len(got) != 1 {
		t.Errorf("calls of three looks within five seconds: got %v, want one", got)
	}
}

func variable(env []string, name string) string {
	for _, kv := range env {
		if value, is := strings.CutPrefix(kv, name+"="); is {
			return value
		}
	}
	return ""
}

func TestCreateOnGitHubPushesFirst(t *testing.T) {
	b := set(t, gitHub, "gh")
	b.choices = "github.com=gh"
	b.on(ask, onGitHub(), onGitHub(request(12, object{"isDraft": true})))
	b.on("gh POST repos/acme/app/pulls", reply{Status: 201, Body: object{"number": 12, "title": "Mend", "html_url": "https://github.com/acme/app/pull/12", "draft": true}})
	done, err := b.create(forge.CreatePullRequest{Branch: "fix/total", Base: "main", Title: " Mend ", Text: "The text", Draft: true})
	if err != nil {
		t.Fatalf("Create: got error %v, want none", err)
	}
	if !done.Pushed || done.PullRequest == nil || done.PullRequest.Number != 12 || done.PullRequest.State != "draft" {
		t.Fatalf("Create: got %+v, want number 12, a draft, pushed", done)
	}
	if got := b.git(b.bare, "log", "-1", "--format=%s", "fix/total"); got != "Test the total" {
		t.Errorf("newest commit of the remote's branch: got %q, want %q", got, "Test the total")
	}
	var body object
	if err := json.Unmarshal([]byte(b.notes()[1].In), &body); err != nil {
		t.Fatal(err)
	}
	same(t, "body of the creation", body, object{"title": "Mend", "body": "The text", "head": "acme:fix/total", "base": "main", "draft": true})
	s := b.look(false)
	if s.PullRequest == nil || s.PullRequest.State != "draft" || s.Unpushed != 0 {
		t.Fatalf("Status afterwards: got %+v with %d commits to push, want the draft and none", s.PullRequest, s.Unpushed)
	}
	_, err = b.create(forge.CreatePullRequest{Branch: "fix/total", Base: "main", Title: "Again"})
	refused(t, "Create again", err, "forge.exists")
}

func TestCreateRefuses(t *testing.T) {
	b := set(t, gitHub, "gh")
	b.choices = "github.com=gh"
	b.on(ask, onGitHub())
	for _, c := range []struct {
		q    forge.CreatePullRequest
		code string
	}{
		{forge.CreatePullRequest{Branch: "fix/total", Base: "main", Title: " \n"}, "forge.no_title"},
		{forge.CreatePullRequest{Branch: "other", Base: "main", Title: "Mend"}, "forge.moved"},
		{forge.CreatePullRequest{Branch: "fix/total", Base: "fix/total", Title: "Mend"}, "forge.base"},
		{forge.CreatePullRequest{Branch: "fix/total", Title: "Mend"}, "forge.base"},
	} {
		_, err := b.create(c.q)
		refused(t, "Create", err, c.code)
	}
	if got := b.git(b.bare, "branch", "--list", "fix/total"); got != "" {
		t.Errorf("branches of the remote: got %q, want none", got)
	}
	for _, c := range []struct {
		body any
		code string
	}{
		{object{"message": "Validation Failed", "errors": []any{object{"resource": "PullRequest", "code": "custom", "message": "A pull request already exists for acme:fix/total."}}}, "forge.exists"},
		{object{"message": "Validation Failed", "errors": []any{object{"resource": "PullRequest", "code": "custom", "message": "No commits between main and fix/total"}}}, "forge.even"},
		{object{"message": "Validation Failed", "errors": []any{object{"resource": "PullRequest", "field": "base", "code": "invalid"}}}, "forge.base"},
		{object{"message": "Draft pull requests are not supported, hunter2."}, "forge.failed"},
	} {
		b.on("gh POST repos/acme/app/pulls", reply{Status: 422, Body: c.body})
		_, err := b.create(forge.CreatePullRequest{Branch: "fix/total", Base: "main", Title: "Mend"})
		params := refused(t, "Create", err, c.code)
		if c.code == "forge.failed" && params["detail"] != "Draft pull requests are not supported, •••." {
			t.Errorf("detail: got %q", params["detail"])
		}
	}
}

func TestFaultsOfTheWayToTheForge(t *testing.T) {
	b := set(t, gitHub, "gh")
	for _, c := range []struct {
		name  string
		reply reply
		code  string
		param string // name=value
	}{
		{"not logged in", reply{Exit: 4, Stderr: "To get started with GitHub CLI, please run:  gh auth login\n"}, "forge.login", "tool=gh"},
		{"a token that ended", reply{Status: 401, Body: object{"message": "Bad credentials"}}, "forge.login", "host=github.com"},
		{"no network", reply{Exit: 1, Stderr: "error connecting to api.github.com\ncheck your internet connection or https://githubstatus.com\n"}, "forge.network", ""},
		{"the forge is down", reply{Status: 502, Body: object{"message": "Server Error"}}, "forge.network", "detail=HTTP 502 Server Error"},
		{"too many calls", reply{Status: 403, Header: map[string]string{"Retry-After": "90"}, Body: object{"message": "You have exceeded a secondary rate limit."}}, "forge.limit", "minutes=2"},
		{"too many calls of GraphQL", reply{Status: 200, Body: object{"data": nil, "errors": []any{object{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}}}}, "forge.limit", "minutes=15"},
		{"single sign-on", reply{Status: 403, Body: object{"message": "Resource protected by organization SAML enforcement."}}, "forge.permission", "detail=Resource protected by organization SAML enforcement."},
		{"no such repository", reply{Status: 200, Body: object{"data": object{"repository": nil}, "errors": []any{object{"type": "NOT_FOUND", "message": "Could not resolve"}}}}, "forge.missing", "repository=acme/app"},
		{"another program", reply{Raw: "I am no gh\n", Stderr: "unknown command \"api\", hunter2"}, "forge.failed", "detail=unknown command \"api\", •••"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := b.Choose("github.com", "gh"); err != nil { // forgets what was asked before
				t.Fatal(err)
			}
			b.on(ask, c.reply)
			s := b.look(false)
			if s.Refused == nil || s.Refused.Code != c.code || s.PullRequest != nil {
				t.Fatalf("Status: got %+v, want the refusal %s", s.Refused, c.code)
			}
			if name, value, is := strings.Cut(c.param, "="); is && s.Refused.Params[name] != value {
				t.Errorf("%s: got %q, want %q", name, s.Refused.Params[name], value)
			}
			_, err := b.create(forge.CreatePullRequest{Branch: "fix/total", Base: "main", Title: "Mend"})
			refused(t, "Create", err, c.code)
			if got := b.git(b.bare, "branch", "--list", "fix/total"); got != "" {
				t.Errorf("branches of the remote: got %q, want none", got)
			}
		})
	}
	if err := os.Remove(filepath.Join(b.bin, "gh")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Choose("github.com", "gh"); err != nil {
		t.Fatal(err)
	}
	if s := b.look(false); s.Refused == nil || s.Refused.Code != "forge.no_tool" || len(s.Tools) != 0 {
		t.Fatalf("Status without gh: got %+v, tools %v, want the refusal forge.no_tool", s.Refused, s.Tools)
	}
}

func TestPullRequestOfAForkGoesIntoItsOrigin(t *testing.T) {
	b := set(t, "git@github.com:ada/app.git", "gh")
	b.choices = "github.com=gh"
	fork := object{
		"nameWithOwner": "ada/app", "defaultBranchRef": object{"name": "main"}, "pullRequests": nodes(),
		"parent": object{"nameWithOwner": "acme/app", "defaultBranchRef": object{"name": "trunk"}, "pullRequests": nodes(request(3, object{"state": "MERGED", "headRepository": object{"nameWithOwner": "Ada/App"}}))},
	}
	b.on(ask, reply{Status: 200, Body: object{"data": object{"repository": fork}, "errors": []any{object{"type": "FORBIDDEN", "message": "no checks for you"}}}})
	b.on("gh POST repos/acme/app/pulls", reply{Status: 201, Body: object{"number": 4, "html_url": "https://github.com/acme/app/pull/4"}})
	s := b.look(false)
	if s.Into != "acme/app" || s.Base != "trunk" || s.PullRequest == nil || s.PullRequest.State != "merged" {
		t.Fatalf("Status: got into %q, base %q, %+v, want acme/app, trunk, the merged one", s.Into, s.Base, s.PullRequest)
	}
	done, err := b.create(forge.CreatePullRequest{Branch: "fix/total", Base: "trunk", Title: "Mend"})
	if err != nil || done.PullRequest.Number != 4 {
		t.Fatalf("Create: got %+v, error %v, want number 4", done, err)
	}
	calls := b.notes()
	if in := calls[len(calls)-1].In; !strings.Contains(in, `"head":"ada:fix/total"`) {
		t.Errorf("body of the creation: got %s, want the head ada:fix/total", in)
	}
}

func TestMergeRequestOnGitLab(t *testing.T) {
	b := set(t, gitLab, "glab")
	b.choices = "gitlab.example.org=glab"
	const of = "glab GET projects/"
	page := "https://gitlab.example.org/group/sub/app/-/merge_requests/5"
	b.on(of+"group%2Fsub%2Fapp", reply{Status: 200, Body: object{"id": 7, "path_with_namespace": "group/sub/app", "default_branch": "main"}})
	b.on(of+"7/merge_requests", reply{Status: 200, Body: []any{}}, reply{Status: 200, Body: []any{object{"iid": 6, "source_project_id": 8, "state": "opened"}, object{"iid": 5, "source_project_id": 7, "state": "opened"}}})
	b.on("glab POST projects/group%2Fsub%2Fapp/merge_requests", reply{Status: 201, Body: object{"iid": 5, "title": "Draft: Mend", "web_url": page, "draft": true}})
	if s := b.look(false); s.PullRequest != nil || s.Refused != nil || s.Base != "main" {
		t.Fatalf("Status before: got %+v, refused %+v, base %q, want none, none, main", s.PullRequest, s.Refused, s.Base)
	}
	done, err := b.create(forge.CreatePullRequest{Branch: "fix/total", Base: "main", Title: "Mend", Draft: true})
	if err != nil || done.PullRequest == nil || done.PullRequest.State != "draft" {
		t.Fatalf("Create: got %+v, error %v, want a draft", done, err)
	}
	calls := b.notes()
	if in := calls[len(calls)-1].In; in != `{"description":"","source_branch":"fix/total","target_branch":"main","target_project_id":7,"title":"Draft: Mend"}` {
		t.Errorf("body of the creation: got %s", in)
	}
	comment := func(n int, who, text string, resolvable, resolved bool) object {
		return object{
			"id": n, "body": text, "author": object{"username": who}, "created_at": "2026-01-01T00:00:0" + string(rune('0'+n)) + "Z", "resolvable": resolvable, "resolved": resolved,
			"position": object{"new_path": "total.go", "new_line": 7},
		}
	}
	b.on(of+"7/merge_requests/5", reply{Status: 200, Body: object{
		"iid": 5, "title": "Mend", "web_url": page, "state": "opened", "target_branch": "main", "source_project_id": 7, "detailed_merge_status": "ci_must_pass",
		"author": object{"username": "ada"}, "head_pipeline": object{"id": 9, "project_id": 7, "status": "failed"},
	}})
	b.on(of+"7/pipelines/9/jobs", reply{Status: 200, Body: []any{
		object{"name": "unit", "stage": "test", "status": "failed", "web_url": "https://gitlab.example.org/j/1"},
		object{"name": "lint", "stage": "test", "status": "failed", "allow_failure": true},
		object{"name": "build", "stage": "build", "status": "success"},
		object{"name": "deploy", "stage": "deploy", "status": "manual"},
		object{"name": "slow", "stage": "test", "status": "running"},
	}})
	b.on(of+"7/merge_requests/5/discussions", reply{Status: 200, Body: []any{
		object{"id": "a", "notes": []any{comment(1, "bob", "Off by one", true, false)}},
		object{"id": "b", "notes": []any{comment(2, "bob", "resolved", true, true)}},
		object{"id": "c", "notes": []any{comment(3, "bob", "answered", true, false), comment(4, "ada", "yes", true, false)}},
	}})
	b.on(of+"7/merge_requests/5/approvals", reply{Status: 403, Body: object{"error": "insufficient_scope"}})
	s := b.look(false)
	if s.Refused != nil {
		t.Fatalf("Status: got refused %+v, want none", s.Refused)
	}
	same(t, "PullRequest", s.PullRequest, forge.PullRequest{
		Number: 5, Title: "Mend", URL: page, State: "open", Base: "main", Mergeable: "blocked", Review: "none",
		Checks:   forge.Checks{Passed: 1, Pending: 1, Failed: []forge.FailedCheck{{Name: "test / unit", URL: "https://gitlab.example.org/j/1"}}},
		Comments: []forge.ReviewComment{{ID: "a", Author: "bob", Text: "Off by one", Path: "total.go", Line: 7, URL: page + "#note_1"}},
	})
	data, err := json.Marshal([]any{s, b.notes()})
	if err != nil || strings.Contains(string(data), "hunter2") {
		t.Errorf("the password of the address is in what is shown or in the arguments of glab (error %v)", err)
	}
}

func TestCreateOnGitLabRefuses(t *testing.T) {
	b := set(t, gitLab, "glab")
	b.choices = "gitlab.example.org=glab"
	b.on("glab GET projects/group%2Fsub%2Fapp", reply{Status: 200, Body: object{"id": 7, "path_with_namespace": "group/sub/app", "default_branch": "main"}})
	b.on("glab GET projects/7/merge_requests", reply{Status: 200, Body: []any{}})
	for _, c := range []struct {
		status int
		body   any
		code   string
	}{
		{409, object{"message": []any{"Another open merge request already exists for this source branch: !5"}}, "forge.exists"},
		{400, object{"message": object{"target_branch": []any{"does not exist"}}}, "forge.base"},
		{400, object{"error": "title is too long"}, "forge.failed"},
		{404, object{"message": "404 Project Not Found"}, "forge.missing"},
	} {
		b.on("glab POST projects/group%2Fsub%2Fapp/merge_requests", reply{Status: c.status, Body: c.body})
		_, err := b.create(forge.CreatePullRequest{Branch: "fix/total", Base: "main", Title: "Mend"})
		params := refused(t, "Create", err, c.code)
		if c.code == "forge.failed" && params["detail"] != "title is too long" {
			t.Errorf("detail: got %q, want %q", params["detail"], "title is too long")
		}
	}
}

func TestNobodyIsAskedWhereThereIsOnlyTheBrowser(t *testing.T) {
	b := set(t, "git@codeberg.org:ada/app.git", "gh", "glab")
	b.git(b.repo, "remote", "set-url", "origin", "https://gitlab.example.org:8443/ada/app")
	if s := b.look(false); s.Use != "page" || len(s.Tools) != 0 || s.Host != "gitlab.example.org:8443" {
		t.Fatalf("Status of a host with a port, which glab does not take: got use %q, tools %v, host %q, want the page", s.Use, s.Tools, s.Host)
	}
	b.git(b.repo, "remote", "set-url", "origin", "git@codeberg.org:ada/app.git")
	s := b.look(false)
	if s.Use != "page" || len(s.Tools) != 0 || s.Page != "https://codeberg.org/ada/app/compare/main...fix/total?expand=1" {
		t.Fatalf("Status: got use %q, tools %v, page %q, want the page of codeberg.org", s.Use, s.Tools, s.Page)
	}
	done, err := b.create(forge.CreatePullRequest{Branch: "fix/total", Base: "main", Title: "Mend"})
	if err != nil || !done.Pushed || done.Page == "" {
		t.Fatalf("Create: got %+v, error %v, want a push and a page", done, err)
	}
}

func TestPageMakesThePullRequestWhereThePersonWantsTheBrowser(t *testing.T) {
	b := set(t, gitHub, "gh")
	b.choices = "github.com=page"
	done, err := b.create(forge.CreatePullRequest{Branch: "fix/total", Base: "main", Title: "Mend & more", Text: "Text"})
	if err != nil || !done.Pushed || done.PullRequest != nil {
		t.Fatalf("Create: got %+v, error %v, want a push and a page", done, err)
	}
	if want := "https://github.com/acme/app/compare/main...fix/total?body=Text&expand=1&title=Mend+%26+more"; done.Page != want {
		t.Errorf("page: got %s, want %s", done.Page, want)
	}
	if got := b.notes(); len(got) != 0 {
		t.Errorf("got the calls %v, want none", got)
	}
}

func TestProposeTakesTheAnswerOrTheCommits(t *testing.T) {
	b := set(t, gitHub, "gh")
	b.answer = "The total is right now, hunter2.\n"
	got, err := b.Propose(t.Context(), id, "")
	if want := (forge.PullRequestProposal{Title: "Mend the total", Text: "The total is right now, •••."}); err != nil || got != want {
		t.Fatalf("Propose: got %+v, error %v, want %+v", got, err, want)
	}
	b.answer = ""
	got, err = b.Propose(t.Context(), id, "main")
	if want := "- Mend the total\n- Test the total"; err != nil || got.Text != want {
		t.Fatalf("Propose without an answer: got %q, error %v, want %q", got.Text, err, want)
	}
}

func TestChoicesOfHosts(t *testing.T) {
	b := set(t, gitHub, "gh")
	for _, c := range [][2]string{{"--help", "gh"}, {"github.com", "git"}, {"GitHub.com", "gh"}, {"a b", "gh"}, {"a,b=gh", "gh"}, {"git.example.org:3000", "glab"}, {"gіthub.com", "gh"}} {
		_, err := b.Choose(c[0], c[1])
		refused(t, "Choose("+c[0]+", "+c[1]+")", err, "forge.host")
	}
	for _, c := range [][2]string{{"github.com", "gh"}, {"git.example.org:3000", "page"}, {"github.com", "page"}} {
		if _, err := b.Choose(c[0], c[1]); err != nil {
			t.Fatalf("Choose(%s, %s): got error %v, want none", c[0], c[1], err)
		}
	}
	if got := forge.ParseChoices("git.example.org:3000=gh, github.com=gh, x"); len(got) != 1 || got[0].Host != "github.com" {
		t.Errorf("ParseChoices: got %v, want github.com alone, since gh takes no port", got)
	}
	if want := "git.example.org:3000=page, github.com=page"; b.choices != want {
		t.Errorf("choices: got %q, want %q", b.choices, want)
	}
	if list, err := b.Choose("github.com", ""); err != nil || len(list) != 1 {
		t.Errorf("Choose(github.com, none): got %v, error %v, want one choice", list, err)
	}
}

func TestHostThatOnlySSHKnows(t *testing.T) {
	b := set(t, "git@work:acme/app.git", "gh", "ssh")
	s := b.look(false)
	if s.Host != "github.com" || s.Forge != "github" {
		t.Fatalf("Status: got the host %q of %q, want github.com", s.Host, s.Forge)
	}
	same(t, "arguments of ssh", b.notes()[0].Args, []string{"-G", "work"})
	b.look(false)
	if got := b.notes(); len(got) != 1 {
		t.Errorf("got %d calls of ssh, want one", len(got))
	}
}

func TestStatusOfARemoteThatIsNoForge(t *testing.T) {
	b := set(t, gitHub, "gh")
	b.git(b.repo, "remote", "set-url", "origin", b.bare)
	_, err := b.Status(t.Context(), id, false)
	refused(t, "Status", err, "forge.address")
	b.git(b.repo, "remote", "remove", "origin")
	_, err = b.Status(t.Context(), id, false)
	refused(t, "Status", err, "landing.no_remote")
	b.git(b.repo, "checkout", "--quiet", "--detach")
	_, err = b.Status(t.Context(), id, false)
	refused(t, "Status", err, "landing.no_branch")
}

func TestCloseEndsACall(t *testing.T) {
	b := set(t, gitHub)
	b.choices = "github.com=gh"
	started := filepath.Join(b.state, "started")
	script := "#!/bin/sh\necho started > " + started + "\nsleep 1000\n"
	if err := os.WriteFile(filepath.Join(b.bin, "gh"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { _, err := b.Status(context.Background(), id, false); done <- err }()
	for deadline := time.Now().Add(time.Minute); ; {
		if _, err := os.Stat(started); err == nil {
			break
		}
		select {
		case err := <-done:
			t.Fatalf("Status: got error %v before gh ran", err)
		case <-time.After(10 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			t.Fatal("gh was not started")
		}
	}
	if err := b.Close(); err != nil {
		t.Fatalf("Close: got error %v, want none", err)
	}
	if err := <-done; !errors.Is(err, refusal.ErrClosed) {
		t.Fatalf("Status: got error %v, want %v", err, refusal.ErrClosed)
	}
}
