package launch_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"deskhand/backend/agents"
	"deskhand/backend/files"
	"deskhand/backend/launch"
	"deskhand/backend/proxy"
	"deskhand/backend/redact"
	"deskhand/backend/refusal"
	"deskhand/backend/skills"
	"deskhand/backend/store"
	"deskhand/backend/storetest"
	"deskhand/backend/transcript"
)

// The agents of the tests: unknown is in no catalogue and may read anything, demo reads nothing, claude and codex read skills.
const unknown, demo, claude, codex = "unknown", agents.Demo, "claude", "codex"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "mcp-server" {
		serve(os.Args[2])
		return
	}
	os.Exit(m.Run())
}

// serve is an MCP server with one tool, whose description is the server's argument. A server with an address asks for the address and answers
// nothing.
func serve(word string) {
	if strings.HasPrefix(word, "http:") {
		if answer, err := http.Get(word); err == nil {
			answer.Body.Close()
		}
		return
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "saying", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "said", Description: "started with " + word + os.Getenv("FIXTURE_WORD")},
		func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return nil, nil, nil
		})
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

// fixture is a Gate with a directory.
type fixture struct {
	*launch.Gate

	t       *testing.T
	db      *store.DB
	work    string
	own     string              // Deps.Everywhere
	told    []launch.Executable // of Deps.Approved
	secrets redact.Redactor
}

func open(t *testing.T) *fixture {
	t.Helper()
	dir := t.TempDir()
	db := storetest.Open(t, dir)
	set, err := proxy.Open(proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	library, err := skills.Open(t.Context(), skills.Config{
		Dir: filepath.Join(dir, "skills"), Beside: set,
		Environ: func(context.Context) []string { return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home} },
	})
	if err != nil {
		t.Fatal(err)
	}
	catalogue := agents.Open(agents.Config{Self: self})
	f := &fixture{t: t, db: db, secrets: redact.New(nil, nil), work: filepath.Join(dir, "work"), own: filepath.Join(dir, "config")}
	f.Gate, err = launch.Open(launch.Deps{
		Store: db, Logger: slog.New(slog.DiscardHandler), Agents: catalogue, Proxy: set, Skills: library, Replace: files.Replace,
		StandsFor: func(directory string) string {
			return strings.Replace(directory, filepath.Join(dir, "worktree"), filepath.Join(dir, "work"), 1)
		},
		Everywhere: f.own,
		Secrets:    f.secrets,
		Approved:   func(_ string, list []launch.Executable) { f.told = append(f.told, list...) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(f.Close(), library.Close(), catalogue.Close(), set.Close(), db.Close()); err != nil {
			t.Error(err)
		}
	})
	f.write(".git/HEAD", "ref: refs/heads/main\n")
	return f
}

// write writes a file of the directory, as another program would.
func (f *fixture) write(name, text string) {
	f.t.Helper()
	file := filepath.Join(f.work, filepath.FromSlash(name))
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) servers(text string) { f.t.Helper(); f.write(".sandbox-agent/config/mcp.json", text) }

func (f *fixture) skills(text string) {
	f.t.Helper()
	f.write(".sandbox-agent/config/skills.json", text)
}

func (f *fixture) has(path string) bool {
	_, err := os.Stat(filepath.Join(f.work, filepath.FromSlash(path)))
	return err == nil
}

// listed returns the executables of the directory.
func (f *fixture) listed() []launch.Executable {
	f.t.Helper()
	list, err := f.Executables(f.t.Context(), f.work)
	if err != nil {
		f.t.Fatal(err)
	}
	return list
}

// approveAll approves every executable of the directory.
func (f *fixture) approveAll() {
	f.t.Helper()
	var hashes []string
	for _, e := range f.listed() {
		hashes = append(hashes, e.Hash)
	}
	if err := f.Approve(f.t.Context(), f.work, hashes); err != nil {
		f.t.Fatal(err)
	}
}

// start is a start of an agent, and what a person saw of the start.
type start struct {
	*launch.Plan

	asked   [][]launch.Executable
	notices string
}

// person answers a question of a start: reads runs while the person reads.
type person struct {
	option string
	reads  func()
}

// begin prepares a start. Each question takes the next answer; without one the start is called off. An approval is stored, as a session does.
func (f *fixture) begin(agent, user string, answers ...person) (*start, error) {
	f.t.Helper()
	s := &start{}
	plan, err := f.Prepare(f.t.Context(), launch.Start{
		Agent: agent, Directory: f.work, User: user,
		Ask: func(list []launch.Executable, otherwise string) (string, bool) {
			s.asked = append(s.asked, list)
			if len(answers) == 0 {
				return "", false
			}
			answer := answers[0]
			answers = answers[1:]
			if answer.reads != nil {
				answer.reads()
			}
			if (answer.option == launch.Without || answer.option == launch.Decline) && answer.option != otherwise {
				f.t.Errorf("question %d: got the answer %q, want one of approve, once and %q", len(s.asked), answer.option, otherwise)
			}
			if answer.option == launch.Approve {
				f.store(list)
			}
			return answer.option, true
		},
		Tell: func(notices []transcript.Notice) bool { s.notices += noticesOf(notices); return true },
	})
	if len(answers) > 0 {
		f.t.Errorf("start of %s: %d answers are left, want a question for each", agent, len(answers))
	}
	if err == nil {
		s.Plan = plan
		f.t.Cleanup(func() { plan.Close(f.t.Context()) })
	}
	return s, err
}

// started is begin for a start that must succeed.
func (f *fixture) started(agent, user string, answers ...person) *start {
	f.t.Helper()
	s, err := f.begin(agent, user, answers...)
	if err != nil {
		f.t.Fatalf("start of %s after %d questions: %v\n%s", agent, len(s.asked), err, s.notices)
	}
	return s
}

// store stores an approval, as the answer to a question does.
func (f *fixture) store(list []launch.Executable) {
	f.t.Helper()
	err := f.db.Write(f.t.Context(), func(tx *sql.Tx) error { return launch.SaveApprovals(f.t.Context(), tx, f.work, list) })
	if err != nil {
		f.t.Fatal(err)
	}
}

func noticesOf(list []transcript.Notice) string {
	var b strings.Builder
	for _, n := range list {
		b.WriteString(n.Title + ": " + n.Description + "\n")
	}
	return b.String()
}

// given returns the MCP servers that the agent of a start gets, in one text, and adds the notices to those of the start.
func (s *start) given(t *testing.T) string {
	t.Helper()
	list, notices := s.Servers(t.Context(), []string{"stdio", "http", "sse"})
	s.notices += noticesOf(notices)
	text, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func refused(t *testing.T, err error, code string) *refusal.Error {
	t.Helper()
	r, ok := errors.AsType[*refusal.Error](err)
	if !ok || r.Code != code {
		t.Fatalf("err = %v, want refused: %s", err, code)
	}
	return r
}

const token = "aB3dE6gH9jK2mN5p"

// entry is an entry of a server that says a word.
func entry(t *testing.T, word string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command, _ := json.Marshal([]string{self, "mcp-server", word})
	return fmt.Sprintf(`{"type":"local","command":%s,"env":{"FIXTURE_WORD":" and hidden-value-1","A_TOKEN":%q}}`, command, token)
}

// hook is Claude's settings with a hook that runs a command.
func hook(command string) string {
	text, _ := json.Marshal(map[string]any{"hooks": map[string]any{"Stop": []any{map[string]any{"hooks": []any{map[string]any{"type": "command", "command": command}}}}}})
	return string(text)
}

// repository is a git repository behind HTTP, and the number of requests to the server.
type repository struct {
	t     *testing.T
	dir   string
	url   string
	asked atomic.Int64
}

func newRepository(t *testing.T) *repository {
	t.Helper()
	r := &repository{t: t, dir: filepath.Join(t.TempDir(), "repo")}
	if err := os.Mkdir(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	r.git("init", "--quiet", "--initial-branch=main", ".")
	backend := filepath.Join(r.git("--exec-path"), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		t.Skip("there is no git-http-backend")
	}
	serve := &cgi.Handler{Path: backend, Env: []string{"GIT_PROJECT_ROOT=" + r.dir, "GIT_HTTP_EXPORT_ALL=1", "HOME=" + t.TempDir()}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) { r.asked.Add(1); serve.ServeHTTP(w, q) }))
	t.Cleanup(server.Close)
	r.url = server.URL + "/.git"
	return r
}

func (r *repository) git(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", slices.Concat([]string{"-c", "user.name=A", "-c", "user.email=a@example.com"}, args)...)
	cmd.Dir, cmd.Env = r.dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir}
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *repository) commit(files map[string]string) {
	r.t.Helper()
	for name, text := range files {
		file := filepath.Join(r.dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			r.t.Fatal(err)
		}
	}
	r.git("add", ".")
	r.git("commit", "--quiet", "--message=x")
}
