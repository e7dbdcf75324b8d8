package launch_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/launch"
	"deskhand/backend/refusal"
)

// everywhere writes a file of the configuration of all projects, as another program would.
func (f *fixture) everywhere(name, text string) {
	f.t.Helper()
	if err := errors.Join(os.MkdirAll(f.own, 0o700), os.WriteFile(filepath.Join(f.own, name), []byte(text), 0o600)); err != nil {
		f.t.Fatal(err)
	}
}

// in runs test in another directory than the fixture's.
func (f *fixture) in(name string, test func()) {
	f.t.Helper()
	before := f.work
	f.work = filepath.Join(filepath.Dir(before), name)
	if err := os.MkdirAll(f.work, 0o700); err != nil {
		f.t.Fatal(err)
	}
	test()
	f.work = before
}

func TestServersOfAllProjectsComeWithEachStart(t *testing.T) {
	t.Parallel()
	f := open(t)
	ctx := t.Context()
	item, err := f.PutServer(ctx, launch.AllProjects, "srv", "", json.RawMessage(entry(t, "everywhere")))
	if err != nil || !item.Approved || item.Executable.Scope != "all" || strings.Contains(string(item.Entry), "hidden-value") {
		t.Fatalf("PutServer: got %+v, %v; want an approved entry of all projects without secrets", item, err)
	}
	list, err := f.Servers(ctx, launch.AllProjects)
	if err != nil || len(list.Items) != 1 || !list.Items[0].Approved || list.Path != filepath.Join(f.own, "mcp.json") {
		t.Errorf("Servers: got %+v, %v; want the approved entry in %s", list, err, f.own)
	}
	if info, err := os.Stat(list.Path); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("the file: got %v, %v; want the mode 0600", info, err)
	}
	if got := f.started(demo, "a").given(t); !strings.Contains(got, `"everywhere"`) || !strings.Contains(got, token) {
		t.Errorf("a start: got %s, want the server, and no question", got)
	}
	f.in("second", func() {
		if got := f.started(demo, "b").given(t); !strings.Contains(got, `"everywhere"`) {
			t.Errorf("a start in another directory: got %s, want the server, and no question", got)
		}
		if secrets, err := f.ServerSecrets(t.Context(), f.work); err != nil || !slices.Contains(secrets, token) {
			t.Errorf("ServerSecrets: got %d, %v; want the token among them", len(secrets), err)
		}
	})
	if secrets, err := f.ServerSecrets(ctx, launch.AllProjects); err != nil || !slices.Contains(secrets, token) {
		t.Errorf("ServerSecrets of all projects: got %d, %v; want the token among them", len(secrets), err)
	}
	if got, err := f.TestServer(ctx, launch.AllProjects, "srv", "", nil); err != nil || !got.OK || len(got.Tools) != 1 {
		t.Errorf("TestServer: got %+v, %v; want its tool", got, err)
	}
	off := strings.Replace(string(item.Entry), `"type":"local"`, `"type":"local","enabled":false`, 1)
	if item, err = f.PutServer(ctx, launch.AllProjects, "srv", item.Hash, json.RawMessage(off)); err != nil || item.Enabled {
		t.Errorf("PutServer of a disabled entry: got %+v, %v; want it disabled", item, err)
	}
	if got := f.started(demo, "c").given(t); got != "[]" {
		t.Errorf("a start with the entry disabled: got %s, want none", got)
	}
	if err := f.DeleteServer(ctx, launch.AllProjects, "srv"); err != nil {
		t.Fatal(err)
	}
	if list, err := f.Servers(ctx, launch.AllProjects); err != nil || len(list.Items) != 0 {
		t.Errorf("Servers after DeleteServer: got %+v, %v; want none", list, err)
	}
}

// A directory's entry goes before the entry of all projects with the same name: also a disabled or broken one, which says that the directory has
// no such server.
func TestDirectoryGoesBeforeAllProjects(t *testing.T) {
	t.Parallel()
	f := open(t)
	ctx := t.Context()
	if _, err := f.PutServer(ctx, launch.AllProjects, "srv", "", json.RawMessage(entry(t, "everywhere"))); err != nil {
		t.Fatal(err)
	}
	if _, err := f.PutServer(ctx, f.work, "srv", "", json.RawMessage(entry(t, "here"))); err != nil {
		t.Fatal(err)
	}
	if got := f.started(demo, "a").given(t); !strings.Contains(got, `"here"`) || strings.Contains(got, `"everywhere"`) {
		t.Errorf("a start: got %s, want the directory's server alone", got)
	}
	for _, mine := range []string{`{"srv":{"type":"local","command":"x","enabled":false}}`, `{"srv":{"type":"nonsense"}}`} {
		f.servers(mine)
		if got := f.started(demo, "b").given(t); got != "[]" {
			t.Errorf("a start with %s: got %s, want none", mine, got)
		}
	}
	f.servers(`{`)
	if s := f.started(demo, "c"); !strings.Contains(s.given(t), `"everywhere"`) || !strings.Contains(s.notices, "The MCP servers of this directory cannot be read") {
		t.Errorf("a start with a broken file of the directory: got the notices %s, want the server of all projects, and a notice", s.notices)
	}
	f.in("second", func() {
		if got := f.started(demo, "d").given(t); !strings.Contains(got, `"everywhere"`) {
			t.Errorf("a start in another directory: got %s, want the server of all projects", got)
		}
	})
}

// An entry that somebody has written into the file is asked about once, and the answer counts in all directories.
func TestWrittenEntriesOfAllProjectsAreAskedAboutOnce(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.everywhere("mcp.json", `{"srv":`+entry(t, "one")+`}`)
	s := f.started(demo, "a", person{option: launch.Without})
	if len(s.asked[0]) != 1 || s.asked[0][0].Scope != "all" || s.given(t) != "[]" {
		t.Errorf("a start: asked about %+v, want the entry of all projects, and no server", s.asked)
	}
	f.started(demo, "b", person{option: launch.Approve})
	f.in("second", func() {
		if got := f.started(demo, "c").given(t); !strings.Contains(got, `"one"`) {
			t.Errorf("a start in another directory: got %s, want the server, and no question", got)
		}
	})
	f.everywhere("mcp.json", `{"srv":`+entry(t, "two")+`}`)
	f.in("second", func() {
		s := f.started(demo, "d", person{option: launch.Once})
		if before := s.asked[0][0].Before; !strings.Contains(before, "one") {
			t.Errorf("a start with another content: the content before is %q, want the first", before)
		}
	})
	list, err := f.Executables(t.Context(), launch.AllProjects)
	if err != nil || len(list) != 1 || list[0].Approved {
		t.Fatalf("Executables: got %+v, %v; want the second content, unapproved", list, err)
	}
	if err := f.Approve(t.Context(), launch.AllProjects, []string{list[0].Hash}); err != nil {
		t.Fatal(err)
	}
	f.started(demo, "e")
	all, err := f.Approvals(t.Context(), "")
	if err != nil || len(all) != 2 || all[0].Directory != launch.AllProjects || all[1].Directory != launch.AllProjects {
		t.Errorf("Approvals: got %+v, %v; want both of all projects", all, err)
	}
	if err := f.Revoke(t.Context(), launch.AllProjects, list[0].Hash); err != nil {
		t.Fatal(err)
	}
	f.started(demo, "f", person{option: launch.Without})
	if err := f.RevokeAll(t.Context(), launch.AllProjects); err != nil {
		t.Fatal(err)
	}
	if all, err = f.Approvals(t.Context(), ""); err != nil || len(all) != 0 {
		t.Errorf("Approvals after RevokeAll: got %+v, %v; want none", all, err)
	}
}

// What an entry of all projects runs of a directory is the directory's: nobody has approved it by the entry. The directory's name is no content.
func TestEntriesOfAllProjectsRunNoFileUnseen(t *testing.T) {
	t.Parallel()
	f := open(t)
	ctx := t.Context()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	form := func(args ...string) json.RawMessage {
		command, _ := json.Marshal(append([]string{self, "mcp-server"}, args...))
		return json.RawMessage(fmt.Sprintf(`{"type":"local","command":%s}`, command))
	}
	if _, err := f.PutServer(ctx, launch.AllProjects, "folder", "", form("${workspaceFolder}")); err != nil {
		t.Fatal(err)
	}
	if got := f.started(demo, "a").given(t); !strings.Contains(got, f.work) {
		t.Errorf("a start: got %s, want the directory in the arguments, and no question", got)
	}
	if _, err := f.PutServer(ctx, launch.AllProjects, "script", "", form("tool.sh")); err != nil {
		t.Fatal(err)
	}
	f.started(demo, "b")
	f.write("tool.sh", "one")
	if s := f.started(demo, "c", person{option: launch.Approve}); len(s.asked[0]) != 1 || s.asked[0][0].Name != "script" {
		t.Errorf("a start with a script in the directory: asked about %+v, want the server that runs it", s.asked)
	}
	f.started(demo, "d")
	f.in("second", func() {
		f.started(demo, "e")
		f.write("tool.sh", "one")
		f.started(demo, "f", person{option: launch.Without})
	})
}

func TestBrokenConfigurationOfAllProjectsStopsNoStart(t *testing.T) {
	t.Parallel()
	f := open(t)
	ctx := t.Context()
	const broken = "{\n oops"
	f.everywhere("mcp.json", broken)
	f.everywhere("skills.json", broken)
	if _, err := f.PutServer(ctx, f.work, "srv", "", json.RawMessage(entry(t, "here"))); err != nil {
		t.Fatal(err)
	}
	s := f.started(codex, "a")
	for _, want := range []string{"The MCP servers of all projects cannot be read; the agent gets none of them", "line 2", "Some skills of all projects cannot be read"} {
		if !strings.Contains(s.notices, want) {
			t.Errorf("a start: got the notices %s, want %q", s.notices, want)
		}
	}
	if got := s.given(t); !strings.Contains(got, `"here"`) {
		t.Errorf("a start: got %s, want the server of the directory", got)
	}
	_, err := f.PutServer(ctx, launch.AllProjects, "srv", "", json.RawMessage(entry(t, "one")))
	refused(t, err, "config.broken")
	refused(t, f.DeleteSkill(ctx, launch.AllProjects, "srv"), "config.broken")
	list, err := f.Servers(ctx, launch.AllProjects)
	if err != nil || !strings.Contains(list.Problem, "line 2") {
		t.Errorf("Servers: got %+v, %v; want a problem in line 2", list, err)
	}
	if data, err := os.ReadFile(list.Path); err != nil || string(data) != broken {
		t.Errorf("the file: got %q, %v; want %q", data, err, broken)
	}
}

func TestSkillsOfAllProjectsComeWithEachStart(t *testing.T) {
	t.Parallel()
	f := open(t)
	ctx := t.Context()
	if err := os.MkdirAll(filepath.Join(f.own, "skills", "pdf"), 0o700); err != nil {
		t.Fatal(err)
	}
	f.everywhere("skills/pdf/SKILL.md", manual)
	local := json.RawMessage(`{"sources":[{"type":"local","source":"skills"}]}`)
	item, err := f.PutSkill(ctx, launch.AllProjects, "mine", local)
	if err != nil || !item.Approved || item.State != "resolved" || len(item.Skills) != 1 || item.Executable.Scope != "all" {
		t.Fatalf("PutSkill: got %+v, %v; want the skill of the folder beside the file, approved", item, err)
	}
	f.started(codex, "a")
	if !f.has(".agents/skills/pdf/SKILL.md") {
		t.Error("a start: the skill is not linked")
	}
	f.in("second", func() {
		f.started(codex, "b")
		if !f.has(".agents/skills/pdf/SKILL.md") {
			t.Error("a start in another directory: the skill is not linked")
		}
	})
	f.in("third", func() {
		f.skills(`{"mine":{"sources":[]}}`)
		f.approveAll()
		f.started(codex, "c")
		if f.has(".agents/skills/pdf/SKILL.md") {
			t.Error("a start where the directory has an entry of the name: the skill of all projects is linked")
		}
	})
	if s := f.started(demo, "d"); strings.Contains(s.notices, "skills") {
		t.Errorf("a start of an agent that reads no skills: got the notices %s, want none of them", s.notices)
	}
	f.everywhere("skills/pdf/run.sh", "echo 1\n")
	s := f.started(codex, "e", person{option: launch.Without})
	if len(s.asked[0]) != 1 || s.asked[0][0].Scope != "all" || !strings.Contains(s.asked[0][0].Detail, "run.sh") {
		t.Errorf("a start with a program in the skill: asked about %+v, want the entry of all projects", s.asked)
	}
	if text, err := f.SkillFile(ctx, launch.AllProjects, "mine", "pdf", "SKILL.md"); err != nil || text != manual {
		t.Errorf("SkillFile: got %q, %v; want %q", text, err, manual)
	}
	if _, err := f.FetchSkill(ctx, launch.AllProjects, "none"); !errors.Is(err, refusal.ErrNotFound) {
		t.Errorf("FetchSkill of a missing entry: got %v, want %v", err, refusal.ErrNotFound)
	}
	if err := f.DeleteSkill(ctx, launch.AllProjects, "mine"); err != nil {
		t.Fatal(err)
	}
	if list, err := f.Skills(ctx, launch.AllProjects); err != nil || len(list.Items) != 0 {
		t.Errorf("Skills after DeleteSkill: got %+v, %v; want none", list, err)
	}
}
