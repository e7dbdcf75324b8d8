package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/agenttest"
	"deskhand/backend/lifecycle"
	"deskhand/backend/proxy"
	"deskhand/backend/session"
	"deskhand/backend/skills"
)

// skilled is a desk with a library of skills, and with agents that read skills: the demo agent under the names of others.
type skilled struct{ *desk }

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
	return &skilled{openAs(t, dir, proxy.Config{}, session.Config{Skills: library})}
}

func (d *skilled) start(agent string) session.Session {
	d.t.Helper()
	s, err := d.Create(d.t.Context(), session.New{Agent: agent, Cwd: d.work})
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

func (d *skilled) has(path string) bool {
	_, err := os.Stat(filepath.Join(d.work, filepath.FromSlash(path)))
	return err == nil
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

func TestSkillsOfTwoAgentsInOneDirectory(t *testing.T) {
	t.Parallel()
	d := openSkilled(t, t.TempDir())
	src := t.TempDir()
	writeSkills(t, src, map[string]string{"pdf/SKILL.md": pdfManual})
	if _, err := d.Launch().PutSkill(t.Context(), d.work, "mine", json.RawMessage(`{"sources":[{"type":"local","source":"`+src+`"}]}`)); err != nil {
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
		d.until("the end of "+turn.ID, func() bool { return d.get(s.ID).Phase == lifecycle.Closed })
	}
	exit(one)
	d.until("nothing", func() bool { return d.has(".claude/skills/pdf") }) // the third session still uses the skill
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
	// A name that is taken is told, and the session starts.
	writeSkills(t, d.work, map[string]string{".claude/skills/pdf/SKILL.md": "theirs"})
	again := d.start("claude")
	d.ready(again.ID)
	if text := notices(d.transcript(again.ID)); !strings.Contains(text, "there is something of this name already") {
		t.Errorf("notices: got %q, want that the name is taken", text)
	}
}

// gone waits until a path is removed: a link is removed a moment after its session is closed.
func (d *skilled) gone(path string) {
	d.t.Helper()
	d.until("end of "+path, func() bool { return !d.has(path) })
}

// A start that is cancelled while skills are fetched leaves no link behind.
func TestSkillsFetchIsCalledOffWithStart(t *testing.T) {
	t.Parallel()
	d := openSkilled(t, t.TempDir())
	asked, release := make(chan struct{}, 10), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- struct{}{}; <-release }))
	defer server.Close()
	defer close(release)
	if _, err := d.Launch().PutSkill(t.Context(), d.work, "slow", json.RawMessage(`{"sources":[{"type":"git","source":"`+server.URL+`/x.git"}]}`)); err != nil {
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
