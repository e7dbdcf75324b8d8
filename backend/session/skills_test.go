package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofrs/flock"

	"deskhand/backend/agenttest"
	"deskhand/backend/proxy"
	"deskhand/backend/session"
	"deskhand/backend/skills"
)

// skilled is a desk with a library of skills, and agents that read them: the demo agent under the names of others.
type skilled struct {
	*desk
	library *skills.Library
}

func openSkilled(t *testing.T, dir string) *skilled {
	t.Helper()
	agent := agenttest.Program(t)
	var list []string
	for _, id := range []string{"claude", "codex"} {
		list = append(list, fmt.Sprintf(`{"id":%q,"name":%q,"command":%q,"args":["demo-agent"],"override":true}`, id, id, agent))
	}
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), []byte(`{"agents":[`+strings.Join(list, ",")+`]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	set, err := proxy.Open(proxy.Config{})
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
	t.Cleanup(func() {
		if err := errors.Join(library.Close(), set.Close()); err != nil {
			t.Error(err)
		}
	})
	return &skilled{openAs(t, dir, proxy.Config{}, session.Config{Skills: library}), library}
}

func (d *skilled) start(agent string) session.Session {
	d.t.Helper()
	s, err := d.Create(d.t.Context(), session.New{Agent: agent, Cwd: d.work})
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// skillsFile writes skills.json as another program would.
func (d *skilled) skillsFile(text string) {
	d.t.Helper()
	folder := filepath.Join(d.work, ".sandbox-agent", "config")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		d.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "skills.json"), []byte(text), 0o600); err != nil {
		d.t.Fatal(err)
	}
}

func (d *skilled) has(path string) bool {
	_, err := os.Stat(filepath.Join(d.work, filepath.FromSlash(path)))
	return err == nil
}

// skillRepo is a repository behind HTTP, and how often it was asked.
type skillRepo struct {
	t     *testing.T
	dir   string
	url   string
	asked atomic.Int64
}

func newSkillRepo(t *testing.T) *skillRepo {
	t.Helper()
	r := &skillRepo{t: t, dir: filepath.Join(t.TempDir(), "repo")}
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

func (r *skillRepo) git(args ...string) string {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), "git", append([]string{"-c", "user.name=A", "-c", "user.email=a@example.com"}, args...)...)
	cmd.Dir, cmd.Env = r.dir, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir}
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *skillRepo) commit(files map[string]string) {
	r.t.Helper()
	writeSkills(r.t, r.dir, files)
	r.git("add", ".")
	r.git("commit", "--quiet", "--message=x")
}

func writeSkills(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

const pdfManual = "---\nname: pdf\ndescription: Reads PDFs.\n---\n"

// A source is not fetched before somebody has approved it; what it brings that can be run is shown in a second request; and only then
// does the agent start, with the skill in its folder for as long as the session runs.
func TestSkillsAreShownBeforeTheyAreFetchedAndAgainWhenTheyCanRun(t *testing.T) {
	t.Parallel()
	d := openSkilled(t, t.TempDir())
	repo := newSkillRepo(t)
	repo.commit(map[string]string{"pdf/SKILL.md": pdfManual, "pdf/read.py": "print()\n"})
	d.skillsFile(`{"tools":{"sources":[{"type":"git","source":"` + repo.url + `","ref":"main"}]}}`)
	s := d.start("claude")
	d.prompt(s.ID, "mcp")
	first := d.request(s.ID)
	if first.Kind != "trust" || len(first.Executables) != 1 || first.Executables[0].Kind != "skill" ||
		first.Executables[0].Detail != "git "+repo.url+", ref main\nnot fetched yet" {
		t.Fatalf("%+v", first)
	}
	if repo.asked.Load() > 0 || d.has(".claude") || len(d.set.List()) > 0 {
		t.Fatal("something has happened before the approval")
	}
	d.answer(first, session.Answer{OptionID: "approve"})
	second := d.request(s.ID)
	if second.ID == first.ID || len(second.Executables) != 1 || !strings.Contains(second.Executables[0].Detail, "pdf/read.py") ||
		!strings.Contains(second.Executables[0].Detail, "commit "+repo.git("rev-parse", "HEAD")) || !strings.Contains(second.Executables[0].Before, "not fetched yet") {
		t.Fatalf("%+v", second)
	}
	if repo.asked.Load() == 0 || d.has(".claude") || len(d.set.List()) > 0 {
		t.Fatal("linked, or started, before the second approval")
	}
	d.answer(second, session.Answer{OptionID: "approve"})
	d.idle(s.ID)
	if !d.has(".claude/skills/pdf/read.py") {
		t.Fatal("the agent has no skill")
	}
	asked := repo.asked.Load()
	repo.commit(map[string]string{"pdf/read.py": "print(2)\n"})
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	d.ready(s.ID) // nobody is asked again
	data, _ := os.ReadFile(filepath.Join(d.work, ".claude/skills/pdf/read.py"))
	if string(data) != "print()\n" || repo.asked.Load() != asked {
		t.Errorf("the ref has moved by itself: %q", data)
	}
	// It moves when somebody asks, and what has changed is shown.
	item, err := d.FetchSkill(t.Context(), d.work, "tools")
	if err != nil || item.Approved || item.State != "resolved" || item.Executable == nil || !strings.Contains(item.Executable.Before, "pdf/read.py") {
		t.Fatalf("%+v %v", item, err)
	}
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	third := d.request(s.ID)
	if len(third.Executables) != 1 || third.Executables[0].Before != second.Executables[0].Detail {
		t.Errorf("%+v", third)
	}
	d.answer(third, session.Answer{OptionID: "without"})
	d.ready(s.ID)
	if d.has(".claude") {
		t.Error("linked without an approval")
	}
	if err := d.Approve(t.Context(), d.work, []string{item.Executable.Hash}); err != nil {
		t.Fatal(err)
	}
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	d.ready(s.ID)
	if !d.has(".claude/skills/pdf/read.py") {
		t.Error("approved, and not linked")
	}
	d.sameAsRebuilt(s.ID)
	d.close()
	if d.has(".claude") {
		t.Error("the link is left at the end")
	}
}

func TestSkillsOfTextAreAskedAboutOnce(t *testing.T) {
	t.Parallel()
	d := openSkilled(t, t.TempDir())
	repo := newSkillRepo(t)
	repo.commit(map[string]string{"pdf/SKILL.md": pdfManual})
	entry := json.RawMessage(`{"sources":[{"type":"git","source":"` + repo.url + `"}]}`)
	item, err := d.PutSkill(t.Context(), d.work, "tools", entry) // who writes it has approved it
	if err != nil || !item.Approved || item.State != "unresolved" || repo.asked.Load() > 0 {
		t.Fatalf("%+v %v", item, err)
	}
	s := d.start("codex")
	d.ready(s.ID)
	if !d.has(".agents/skills/pdf/SKILL.md") || !strings.Contains(notices(d.transcript(s.ID)), `Fetching the skills of "tools"`) {
		t.Errorf("%s", notices(d.transcript(s.ID)))
	}
	list, err := d.Skills(t.Context(), d.work)
	if err != nil || len(list.Items) != 1 || !list.Items[0].Approved || list.Items[0].Commit == "" || len(list.Items[0].Skills) != 1 ||
		list.Items[0].Skills[0].Description != "Reads PDFs." || !strings.HasSuffix(list.Path, "skills.json") {
		t.Errorf("%+v %v", list, err)
	}
	if text, err := d.SkillFile(t.Context(), d.work, "tools", "pdf", "SKILL.md"); err != nil || text != pdfManual {
		t.Errorf("%q %v", text, err)
	}
	// An agent that reads no skills is not asked about them, and it is said.
	mock := d.create()
	d.ready(mock.ID)
	if text := notices(d.transcript(mock.ID)); !strings.Contains(text, "it is not known to read any: tools") {
		t.Errorf("%s", text)
	}
	if err := d.DeleteSkill(t.Context(), d.work, "tools"); err != nil {
		t.Fatal(err)
	}
	if list, err := d.Skills(t.Context(), d.work); err != nil || len(list.Items) != 0 {
		t.Errorf("%+v %v", list, err)
	}
	if !d.has(".agents/skills/pdf/SKILL.md") {
		t.Error("taken from a session that runs")
	}
}

func TestSkillsOfAFolder(t *testing.T) {
	t.Parallel()
	d := openSkilled(t, t.TempDir())
	src := filepath.Join(d.work, "skills")
	writeSkills(t, src, map[string]string{"pdf/SKILL.md": pdfManual, "pdf/run.sh": "echo 1\n", "bad/SKILL.md": "---\nname: ../bad\n---\n", "bad/a:b": "", "zwei wörter/SKILL.md": "---\nname: Zwei Wörter\n---\n"})
	item, err := d.PutSkill(t.Context(), d.work, "mine", json.RawMessage(`{"sources":[{"type":"local","source":"skills"},{"type":"local","source":"none"}]}`))
	if err != nil || item.Approved || item.State != "failed" || !strings.Contains(item.Detail, "none") || len(item.Skills) != 3 {
		t.Fatalf("its programs were not shown yet: %+v %v", item, err)
	}
	s := d.start("claude")
	r := d.request(s.ID)
	writeSkills(t, src, map[string]string{"pdf/run.sh": "echo 2\n"}) // while the person reads
	d.answer(r, session.Answer{OptionID: "approve"})
	again := d.request(s.ID)
	if again.Executables[0].Hash == r.Executables[0].Hash || d.has(".claude") {
		t.Fatalf("what was not shown is given: %+v", again)
	}
	d.answer(again, session.Answer{OptionID: "once"})
	d.ready(s.ID)
	text := notices(d.transcript(s.ID))
	if !d.has(".claude/skills/pdf/run.sh") || !strings.Contains(text, `The skill "bad" of "mine" was not given`) || !strings.Contains(text, "none cannot be read") {
		t.Fatalf("%s", text)
	}
	if !d.has(".claude/skills/zwei wörter/SKILL.md") || !strings.Contains(text, `zwei wörter: its name "Zwei Wörter" is not one for a folder`) {
		t.Errorf("a skill with blanks in its name: got notices %s", text)
	}
	writeSkills(t, src, map[string]string{"pdf/run.sh": "echo 3\n"}) // a running session keeps what it began with
	if data, _ := os.ReadFile(filepath.Join(d.work, ".claude/skills/pdf/run.sh")); string(data) != "echo 2\n" {
		t.Errorf("%q", data)
	}
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if r := d.request(s.ID); !strings.Contains(r.Executables[0].Detail, "pdf/run.sh") { // once was once
		t.Errorf("%+v", r)
	}
}

func TestTwoAgentsInOneDirectory(t *testing.T) {
	t.Parallel()
	d := openSkilled(t, t.TempDir())
	src := t.TempDir()
	writeSkills(t, src, map[string]string{"pdf/SKILL.md": pdfManual})
	if _, err := d.PutSkill(t.Context(), d.work, "mine", json.RawMessage(`{"sources":[{"type":"local","source":"`+src+`"}]}`)); err != nil {
		t.Fatal(err)
	}
	writeSkills(t, d.work, map[string]string{".agents/skills/theirs/SKILL.md": pdfManual})
	one, two, three := d.start("claude"), d.start("codex"), d.start("claude")
	for _, s := range []session.Session{one, two, three} {
		d.ready(s.ID)
	}
	if !d.has(".claude/skills/pdf") || !d.has(".agents/skills/pdf") {
		t.Fatal("not linked for both")
	}
	exit := func(s session.Session) {
		turn := d.prompt(s.ID, "crash")
		d.until("the end of "+turn.ID, func() bool { return d.get(s.ID).Phase == session.Closed })
	}
	exit(one)
	d.until("nothing", func() bool { return d.has(".claude/skills/pdf") }) // the third session has it still
	exit(three)
	d.gone(".claude")
	if !d.has(".agents/skills/pdf") {
		t.Error("the link of another session is gone")
	}
	exit(two)
	d.gone(".agents/skills/pdf")
	if !d.has(".agents/skills/theirs/SKILL.md") {
		t.Error("theirs is gone")
	}
	// A name that is taken is said, and the session starts.
	writeSkills(t, d.work, map[string]string{".claude/skills/pdf/SKILL.md": "theirs"})
	again := d.start("claude")
	d.ready(again.ID)
	if text := notices(d.transcript(again.ID)); !strings.Contains(text, "there is something of this name already") {
		t.Errorf("%s", text)
	}
}

// gone waits until something is not there: a link is removed a moment after its session is seen closed.
func (d *skilled) gone(path string) {
	d.t.Helper()
	d.until("end of "+path, func() bool { return !d.has(path) })
}

func TestWishesAboutSkillsThatAreRefused(t *testing.T) {
	t.Parallel()
	d := openSkilled(t, t.TempDir())
	repo := newSkillRepo(t)
	repo.commit(map[string]string{"pdf/SKILL.md": pdfManual, "pdf/bin": "a\x00b"})
	ctx := t.Context()
	put := func(entry string) error {
		_, err := d.PutSkill(ctx, d.work, "x", json.RawMessage(entry))
		return err
	}
	refused(t, put(`{"sources":[{"type":"git","source":"-x"}]}`), "config.invalid")
	refused(t, put(`[]`), "config.invalid")
	refused(t, func() error { _, err := d.Skills(ctx, "relative"); return err }(), "directory.relative")
	if _, err := d.FetchSkill(ctx, d.work, "none"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("%v", err)
	}
	d.skillsFile(`{"tools":{"sources":[{"type":"git","source":"` + repo.url + `"}]}}`)
	_, err := d.FetchSkill(ctx, d.work, "tools")
	refused(t, err, "config.unapproved")
	if repo.asked.Load() > 0 {
		t.Error("fetched without an approval")
	}
	list, err := d.Trust(ctx, d.work)
	if err != nil || len(list) != 1 || list[0].Kind != "skill" {
		t.Fatalf("%+v %v", list, err)
	}
	if err := d.Approve(ctx, d.work, []string{list[0].Hash}); err != nil {
		t.Fatal(err)
	}
	if item, err := d.FetchSkill(ctx, d.work, "tools"); err != nil || item.State != "resolved" || !item.Approved {
		t.Errorf("%+v %v", item, err)
	}
	_, err = d.SkillFile(ctx, d.work, "tools", "pdf", "bin")
	refused(t, err, "skill.no_text")
	if _, err := d.SkillFile(ctx, d.work, "tools", "pdf", "../../SKILL.md"); !errors.Is(err, session.ErrNotFound) {
		t.Errorf("%v", err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := d.FetchSkill(gone, d.work, "tools"); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	d.skillsFile(`{"tools":`)
	refused(t, put(`{"sources":[]}`), "config.broken")
	if list, err := d.Skills(ctx, d.work); err != nil || list.Problem == "" || len(list.Items) > 0 {
		t.Errorf("%+v %v", list, err)
	}
	s := d.start("claude")
	d.ready(s.ID)
	if text := notices(d.transcript(s.ID)); !strings.Contains(text, "Some skills of this directory cannot be read") {
		t.Errorf("%s", text)
	}
}

// A start that is called off while skills are fetched leaves nothing behind.
func TestAStartThatIsCalledOffWhileSkillsAreFetched(t *testing.T) {
	t.Parallel()
	d := openSkilled(t, t.TempDir())
	asked, release := make(chan struct{}, 10), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- struct{}{}; <-release }))
	defer server.Close()
	defer close(release)
	if _, err := d.PutSkill(t.Context(), d.work, "slow", json.RawMessage(`{"sources":[{"type":"git","source":"`+server.URL+`/x.git"}]}`)); err != nil {
		t.Fatal(err)
	}
	s := d.start("claude")
	<-asked
	if step := d.get(s.ID).Step; step != "resolve" {
		t.Errorf("step %s", step)
	}
	d.close()
	if d.has(".claude") {
		t.Error("something is left")
	}
}

// What cannot be removed keeps its pin: it would else move at the next session, which nobody has asked for.
func TestSkillsThatCannotBeRemovedStayPinned(t *testing.T) {
	t.Parallel()
	d := openSkilled(t, t.TempDir())
	repo := newSkillRepo(t)
	repo.commit(map[string]string{"pdf/SKILL.md": pdfManual})
	if _, err := d.PutSkill(t.Context(), d.work, "tools", json.RawMessage(`{"sources":[{"type":"git","source":"`+repo.url+`"}]}`)); err != nil {
		t.Fatal(err)
	}
	item, err := d.FetchSkill(t.Context(), d.work, "tools")
	if err != nil || item.Commit == "" {
		t.Fatalf("%+v %v", item, err)
	}
	lock := flock.New(filepath.Join(d.work, ".sandbox-agent", "config", ".lock")) // of another program
	if ok, err := lock.TryLock(); err != nil || !ok {
		t.Fatal(ok, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := d.DeleteSkill(ctx, d.work, "tools"); err == nil {
		t.Fatal("it is not locked")
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	list, err := d.Skills(t.Context(), d.work)
	if err != nil || len(list.Items) != 1 || list.Items[0].Commit != item.Commit {
		t.Errorf("%+v %v", list, err)
	}
}
