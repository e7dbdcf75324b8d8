package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/agents"
	"deskhand/backend/files"
	"deskhand/backend/httpapi"
	"deskhand/backend/launch"
	"deskhand/backend/proxy"
	"deskhand/backend/session"
	"deskhand/backend/skills"
	"deskhand/backend/storetest"
)

// openSkills returns the client API with skills, and a working directory.
func openSkills(t *testing.T) (c *clinic, work string) {
	t.Helper()
	dir, work := t.TempDir(), t.TempDir()
	db := storetest.Open(t, dir)
	set, err := proxy.Open(proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	environ := func(context.Context) []string { return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir} }
	library, err := skills.Open(t.Context(), skills.Config{Dir: filepath.Join(dir, "skills"), Beside: set, Environ: environ})
	if err != nil {
		t.Fatal(err)
	}
	catalogue := agents.Open(agents.Config{File: filepath.Join(dir, "agents.json")})
	sessions, err := session.Open(t.Context(), session.Config{Store: db, Agents: catalogue, Proxy: set, Replace: files.Replace, Skills: library})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(httpapi.NewClient(httpapi.ClientConfig{Sessions: sessions, Agents: catalogue}))
	c = &clinic{t: t, url: server.URL, client: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(func() {
		c.client.CloseIdleConnections()
		server.Close()
		for _, closing := range []func() error{sessions.Close, library.Close, catalogue.Close, set.Close, db.Close} {
			if err := closing(); err != nil {
				t.Error(err)
			}
		}
	})
	return c, work
}

func TestSkillsOverTheAPI(t *testing.T) {
	c, work := openSkills(t)
	repo := t.TempDir()
	git := func(args ...string) string {
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=A", "-c", "user.email=a@example.com"}, args...)...)
		cmd.Dir, cmd.Env = repo, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + repo}
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	write := func(name, text string) {
		file := filepath.Join(repo, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	git("init", "--quiet", ".")
	write("pdf/SKILL.md", "---\nname: pdf\ndescription: Reads PDFs.\n---\n")
	write("pdf/run.sh", "echo\n")
	git("add", "pdf")
	git("commit", "--quiet", "--message=x")

	at := func(more string) string { return "?directory=" + url.QueryEscape(work) + more }
	var list launch.SkillList
	c.call("GET", "config/skills"+at(""), "", 200, &list)
	if len(list.Items) != 0 || list.Items == nil || !strings.HasSuffix(filepath.ToSlash(list.Path), "/.sandbox-agent/config/skills.json") {
		t.Errorf("config/skills: got %+v, want an empty list with the path", list)
	}
	var item launch.SkillEntry
	entry := `{"sources":[{"source":"file://` + repo + `","type":"git","mine":{"b":1}}]}`
	c.call("PUT", "config/skills"+at("&name=a/b"), entry, 200, &item)
	if item.State != "unresolved" || !item.Approved || item.Name != "a/b" || item.Skills == nil || item.Commit != "" ||
		string(item.Entry) != `{"sources":[{"type":"git","source":"file://`+repo+`","mine":{"b":1}}]}` {
		t.Errorf("PUT: got %+v, want unresolved and approved", item)
	}
	c.call("POST", "config/skills/fetch"+at("&name=a/b"), "", 200, &item)
	if item.State != "resolved" || item.Approved || item.Commit != git("rev-parse", "HEAD") || len(item.Skills) != 1 || item.Executable == nil ||
		item.Executable.Kind != "skill" || !strings.Contains(item.Executable.Detail, "pdf/run.sh") {
		t.Errorf("what can be run is to be shown: %+v", item)
	}
	if f := item.Skills[0].Files; len(f) != 2 || f[0].Path != "SKILL.md" || f[0].Executable || !f[1].Executable || f[1].Size != 5 {
		t.Errorf("files: got %+v, want SKILL.md and an executable of 5 bytes", f)
	}
	var text struct{ Text string }
	c.call("GET", "config/skills/file"+at("&name=a/b&skill=pdf&path=SKILL.md"), "", 200, &text)
	if !strings.Contains(text.Text, "Reads PDFs.") {
		t.Errorf("SKILL.md: got %q, want the description", text.Text)
	}
	c.refused("GET", "config/skills/file"+at("&name=a/b&skill=pdf&path=..%2F..%2FSKILL.md"), "", 404, "not_found")
	c.refused("GET", "config/skills/file"+at("&name=a/b&skill=none&path=SKILL.md"), "", 404, "not_found")
	wish, _ := json.Marshal(map[string]any{"directory": work, "hashes": []string{item.Executable.Hash}})
	c.call("POST", "trust", string(wish), 204, nil)
	c.call("GET", "config/skills"+at(""), "", 200, &list)
	if len(list.Items) != 1 || !list.Items[0].Approved {
		t.Errorf("config/skills: got %+v, want one approved entry", list)
	}
	c.refused("PUT", "config/skills"+at("&name=x"), `{"sources":[{"type":"git"}]}`, 400, "config.invalid")
	into := func(name string) string {
		return "config/skills?name=a&directory=" + url.QueryEscape(filepath.Join(work, name))
	}
	c.call("PUT", into("new/deeper"), entry, 200, nil)
	if _, err := os.Stat(filepath.Join(work, "new", "deeper", ".sandbox-agent", "config", "skills.json")); err != nil {
		t.Errorf("after PUT of skills into a directory that was not there: got %v, want a file", err)
	}
	c.refused("PUT", into("other"), `{"sources":[{"type":"git"}]}`, 400, "config.invalid")
	if _, err := os.Stat(filepath.Join(work, "other")); err == nil {
		t.Error("PUT of skills that are refused has made the directory")
	}
	c.refused("PUT", "config/skills"+at("&name=x"), `{"sources":[{"type":"github","source":"a/b","subpath":"../x"}]}`, 400, "config.invalid")
	c.refused("POST", "config/skills/fetch"+at("&name=none"), "", 404, "not_found")
	c.refused("GET", "config/skills?directory=relative", "", 400, "directory.relative")
	if err := os.WriteFile(list.Path, []byte(`{"other":`+entry+`}`), 0o600); err != nil { // as another program would
		t.Fatal(err)
	}
	c.refused("POST", "config/skills/fetch"+at("&name=other"), "", 409, "config.unapproved")
	c.call("DELETE", "config/skills"+at("&name=other"), "", 204, nil)
	c.call("DELETE", "config/skills"+at("&name=other"), "", 204, nil)
	c.call("GET", "config/skills"+at(""), "", 200, &list)
	if len(list.Items) != 0 {
		t.Errorf("config/skills: got %+v, want none", list)
	}
}
