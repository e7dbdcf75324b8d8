package compare_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"deskhand/backend/agents"
	"deskhand/backend/agenttest"
	"deskhand/backend/compare"
	"deskhand/backend/feed"
	"deskhand/backend/files"
	"deskhand/backend/proxy"
	"deskhand/backend/refusal"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/setup"
	"deskhand/backend/snapshot"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
	"deskhand/backend/testkit"
	"deskhand/backend/vault"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// desk is a data directory with sessions and comparisons, and a repository to work in.
type desk struct {
	*compare.Library

	t        *testing.T
	dir      string
	work     string // the repository
	sessions *session.Client
	db       *store.DB
	close    func()
}

// open opens a desk in a directory, which may be that of a desk that was closed.
func open(t *testing.T, dir string) *desk {
	t.Helper()
	db := storetest.Open(t, dir)
	set, err := proxy.Open(proxy.Config{})
	must(t, err)
	catalogue := agents.Open(agents.Config{
		Self: agenttest.Program(t), File: filepath.Join(dir, "agents.json"), Vault: vault.Open(vault.Config{File: filepath.Join(dir, "logins.json"), WriteFile: store.WriteFile}),
		WriteFile: store.WriteFile, Environ: append(os.Environ(), "DESKHAND_DEMO_STATE="+filepath.Join(dir, "demo")),
	})
	kept, err := snapshot.Open(t.Context(), snapshot.Config{
		Dir: filepath.Join(dir, "snapshots"), Beside: set, Replace: files.ReplaceIf, Environ: func(context.Context) []string { return os.Environ() },
	})
	must(t, err)
	setups := setup.New(setup.Deps{Store: db, Processes: set, Environ: catalogue.Environment().Environ})
	client, err := session.Open(t.Context(), session.Config{
		Store: db, Agents: catalogue, Proxy: set, Version: "test", Patience: 300 * time.Millisecond, HoldPrompt: time.Minute, Snapshots: kept, Setups: setups,
		Replace: files.Replace,
	})
	must(t, err)
	l, err := compare.Open(t.Context(), compare.Deps{
		Store: db, Sessions: client, Setups: setups, Clean: func(text string) string { return text }, Agents: catalogue,
	})
	must(t, err)
	work, err := filepath.EvalSymlinks(dir)
	must(t, err)
	d := &desk{Library: l, t: t, dir: dir, work: filepath.Join(work, "work"), sessions: client, db: db}
	closed := false
	d.close = func() {
		if closed {
			return
		}
		closed = true
		must(t, errors.Join(client.Close(), kept.Close(), catalogue.Close(), set.Close(), db.Close()))
	}
	t.Cleanup(d.close)
	if _, err := os.Stat(d.work); err != nil {
		d.write(d.work, "code.go", "one\n", "old.go", "old\n", "sub/deep.go", "deep\n", ".gitignore", "*.log\n")
		d.git(d.work, "init", "--quiet", "--initial-branch=main")
		d.commit("first")
	}
	return d
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("got error %v, want none", err)
	}
}

// write writes files, each a path below a directory and its content.
func (d *desk) write(dir string, list ...string) {
	d.t.Helper()
	for i := 0; i+1 < len(list); i += 2 {
		name := filepath.Join(dir, list[i])
		must(d.t, errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(list[i+1]), 0o600)))
	}
}

// read returns the content of a file, or "(gone)".
func (d *desk) read(dir, name string) string {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, os.ErrNotExist) {
		return "(gone)"
	}
	must(d.t, err)
	return string(data)
}

// git runs git as a person would, and returns its output.
func (d *desk) git(dir string, args ...string) string {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@localhost",
		"GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@localhost")
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("git %s: got error %v, want none\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit commits everything in the repository.
func (d *desk) commit(message string) {
	d.t.Helper()
	d.git(d.work, "add", "--all")
	d.git(d.work, "commit", "--quiet", "-m", message)
}

// until waits until a condition holds, which is looked at after each event.
func (d *desk) until(what string, holds func() bool) {
	d.t.Helper()
	ctx, cancel := context.WithTimeout(d.t.Context(), testkit.Limit)
	defer cancel()
	q := feed.Query{Gen: d.sessions.Feed().Gen(), Wait: 200 * time.Millisecond}
	for !holds() {
		batch, err := d.sessions.Feed().After(ctx, q)
		if err != nil || ctx.Err() != nil {
			d.t.Fatalf("waited in vain for %s", what)
		}
		q.After = batch.Seq
	}
}

func (d *desk) session(id string) session.Session {
	d.t.Helper()
	s, err := d.sessions.Get(d.t.Context(), id)
	must(d.t, err)
	return s
}

// create puts a prompt to the agent of the tests, as often as it has members.
func (d *desk) create(message string, members int) compare.Comparison {
	d.t.Helper()
	n := compare.NewComparison{Cwd: d.work, Message: message}
	for range members {
		n.Members = append(n.Members, compare.NewMember{Agent: "mock"})
	}
	c, err := d.Create(d.t.Context(), n)
	must(d.t, err)
	return c
}

// idle waits until no member has a turn, and returns the directories of the members.
func (d *desk) idle(c compare.Comparison) (dirs []string) {
	d.t.Helper()
	for _, m := range c.Members {
		d.until("the end of the turn of "+m.Name, func() bool { s := d.session(m.Session); return s.Turn == nil && s.AgentName != "" && s.Generation > 0 })
		dirs = append(dirs, d.session(m.Session).Cwd)
	}
	return dirs
}

func (d *desk) results(c compare.Comparison) compare.ComparisonResults {
	d.t.Helper()
	r, err := d.Results(d.t.Context(), c.ID)
	must(d.t, err)
	return r
}

func (d *desk) list() []compare.Comparison {
	d.t.Helper()
	list, err := d.List(d.t.Context())
	must(d.t, err)
	return list
}

// allow answers the requests of all members by their first option, when all wait.
func (d *desk) allow(c compare.Comparison) {
	d.t.Helper()
	var waiting []requests.Request
	d.until("requests of all members", func() bool {
		var err error
		waiting, err = d.sessions.Requests().Waiting(d.t.Context())
		must(d.t, err)
		return len(waiting) == len(c.Members)
	})
	for _, r := range waiting {
		must(d.t, d.sessions.Answer(d.t.Context(), r.ID, requests.Answer{OptionID: r.Options[0].ID}, "window"))
	}
}

// refused fails the test unless err is a refusal with a code.
func refused(t *testing.T, what string, err error, code string) {
	t.Helper()
	if r, is := errors.AsType[*refusal.Error](err); !is || r.Code != code {
		t.Errorf("%s: got error %v, want the refusal %s", what, err, code)
	}
}
