package launch_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/launch"
	"deskhand/backend/redact"
)

func TestPrepareAsksOnceForEachContent(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.servers(`{"one":` + entry(t, "one") + `,"off":{"type":"local","command":"x","enabled":false}}`)
	s := f.started(demo, "a", person{option: launch.Approve})
	if len(s.asked[0]) != 1 || s.asked[0][0].Name != "one" || s.asked[0][0].Kind != "mcp" || strings.Contains(s.asked[0][0].Detail, "hidden-value") {
		t.Errorf("first start: asked about %+v, want the enabled server, without secrets", s.asked)
	}
	if !s.BringsAny() || !s.HasServers() || f.secrets.KnownOnly(token) != token {
		t.Errorf("first start: BringsAny %v, HasServers %v; want a server, and no secret remembered yet", s.BringsAny(), s.HasServers())
	}
	if got := s.given(t); !strings.Contains(got, token) || f.secrets.KnownOnly(token) != redact.Mark {
		t.Errorf("first start: got %s, want the secret, and the secret remembered", got)
	}
	f.started(demo, "b")
	f.servers(`{"one":` + entry(t, "two") + `}`)
	s = f.started(demo, "c", person{option: launch.Once})
	if e := s.asked[0][0]; e.Before == "" || e.Before == e.Detail {
		t.Errorf("start with another content: asked about %+v, want it beside the content before", e)
	}
	s = f.started(demo, "d", person{option: launch.Without})
	if got := s.given(t); got != "[]" || s.BringsAny() || !strings.Contains(s.notices, "Started without what was not approved: mcp one") {
		t.Errorf("start without: got %s and the notices %q, want no server, and a notice", got, s.notices)
	}
}

// A person may read for hours: the agent is given the content that the person read, and no script that has changed since.
func TestServersAreThoseThatWereShown(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.servers(`{"srv":` + entry(t, "one") + `}`)
	s := f.started(demo, "a", person{launch.Approve, func() { f.servers(`{"srv":` + entry(t, "two") + `}`) }})
	if got := s.given(t); !strings.Contains(got, `"one"`) || strings.Contains(got, `"two"`) {
		t.Errorf("Servers after a change of the entry: got %s, want the first one", got)
	}
	f.write("tool.sh", "one")
	f.servers(`{"srv":` + entry(t, "tool.sh") + `}`)
	s = f.started(demo, "b", person{launch.Approve, func() { f.write("tool.sh", "two") }})
	if got := s.given(t); got != "[]" || !strings.Contains(s.notices, `"srv" was not given to`) || !strings.Contains(s.notices, "changed since") {
		t.Errorf("Servers after a change of the script: got %s and the notices %q, want none, and a notice", got, s.notices)
	}
	s = f.started(demo, "c", person{option: launch.Approve})
	if got := s.given(t); !strings.Contains(got, "tool.sh") {
		t.Errorf("Servers of the next start: got %s, want the server", got)
	}
}

func TestPrepareTellsOfBrokenServerFiles(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.servers("{\n  \"one\": " + entry(t, "one") + ",\n  oops\n}")
	if s := f.started(demo, "a"); !strings.Contains(s.notices, "gets none of them") || !strings.Contains(s.notices, "line 3") {
		t.Errorf("broken file: got the notices %q, want the line", s.notices)
	}
	f.servers(`{"bad":{"type":"nonsense"},"good":` + entry(t, "good") + `}`)
	s := f.started(demo, "b", person{option: launch.Approve})
	if got := s.given(t); !strings.Contains(got, "good") || !strings.Contains(s.notices, "Some MCP servers") || !strings.Contains(s.notices, `"bad"`) {
		t.Errorf("broken entry: got %s and the notices %q, want the good entry, and a notice of the bad one", got, s.notices)
	}
	f.servers(`{"big":"` + strings.Repeat("x", 5<<20) + `"}`)
	if s := f.started(demo, "c"); !strings.Contains(s.notices, "more than 4194304 bytes") {
		t.Errorf("big file: got the notices %q, want the limit", s.notices)
	}
	f.skills(`{"tools":`)
	if s := f.started(claude, "d"); !strings.Contains(s.notices, "Some skills of this directory cannot be read") {
		t.Errorf("broken file of skills: got the notices %q, want one about skills", s.notices)
	}
}

// Nobody is asked about a list that nobody could read: the rest does not start, and a notice says so.
func TestPrepareAsksOnlyAboutWhatCanBeRead(t *testing.T) {
	t.Parallel()
	f := open(t)
	var b strings.Builder
	b.WriteString(`{"a":` + entry(t, "one") + `,"aa":{"type":"local","command":["x","` + strings.Repeat("y ", 100_000) + `"]}`)
	for i := range 2_000 {
		fmt.Fprintf(&b, `,"b%05d":{"type":"local","command":["x","y"]}`, i)
	}
	f.servers(b.String() + "}")
	s := f.started(demo, "a", person{option: launch.Without})
	size := 0
	for _, e := range s.asked[0] {
		size += len(e.Name) + len(e.Detail)
		if e.Name == "aa" {
			t.Error("the person was asked about an entry that is too long")
		}
	}
	if size == 0 || size > 1<<20 || len(s.asked[0]) > 1000 {
		t.Errorf("asked about %d entries of %d bytes, want 1000 of 1 MiB at most", len(s.asked[0]), size)
	}
	if !strings.Contains(s.notices, "the agent does not get them") || !strings.Contains(s.notices, `"aa"`) || len(s.notices) > 100_000 {
		t.Errorf("got %d bytes of notices, %.2000q; want the entry that is too long", len(s.notices), s.notices)
	}
}

func TestPrepareQuotesNamesInNotices(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.servers(`{"srv\u202e":` + entry(t, "one") + `}`)
	s := f.started(demo, "a", person{option: launch.Without})
	if strings.Contains(s.notices, "\u202e") || !strings.Contains(s.notices, `mcp "srv\u202e"`) {
		t.Errorf("got the notices %q, want the name quoted", s.notices)
	}
}

// An agent starts with everything that the agent reads by itself, or not at all.
func TestPrepareAsksAboutWhatTheAgentReads(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.write(".claude/settings.json", hook("sh tools/one.sh"))
	f.write("tools/one.sh", "echo one\n")
	f.started(demo, "a") // the demo agent reads nothing
	s, err := f.begin(unknown, "b", person{option: launch.Decline})
	if !errors.Is(err, launch.ErrDeclined) || len(s.asked[0]) != 2 || s.asked[0][0].Name != ".claude/settings.json Stop" || s.asked[0][1].Name != "tools/one.sh" {
		t.Errorf("declined: got %v after a question about %+v, want %v, and a hook and its script", err, s.asked, launch.ErrDeclined)
	}
	// A change while the person reads is asked about as well, until nothing changes any more.
	for _, option := range []string{launch.Approve, launch.Once} {
		f.write("tools/one.sh", "echo "+option+"\n")
		s = f.started(unknown, "c", person{option, func() { f.write("tools/one.sh", "echo two of "+option+"\n") }}, person{option: option})
		if last := s.asked[1]; len(last) != 1 || !strings.Contains(last[0].Detail, "two of "+option) {
			t.Errorf("%s: asked again about %+v, want the changed script", option, last)
		}
	}
}

// Servers are asked about apart from the files that the agent reads: without servers the agent can start.
func TestPrepareAsksAboutServersApart(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.write(".claude/settings.json", hook("x"))
	f.servers(`{"one":` + entry(t, "one") + `}`)
	s := f.started(unknown, "a",
		person{option: launch.Approve},
		person{launch.Without, func() { f.write(".claude/settings.json", hook("y")) }},
		person{option: launch.Approve})
	for i, kind := range []string{"hook", "mcp", "hook"} {
		if got := s.asked[i]; len(got) != 1 || got[0].Kind != kind {
			t.Errorf("question %d: got %+v, want one %s", i+1, got, kind)
		}
	}
	if got := s.given(t); got != "[]" {
		t.Errorf("Servers: got %s, want none", got)
	}
}

const manual = "---\nname: pdf\ndescription: Reads PDFs.\n---\n"

// A source is not fetched before a person has approved the source; programs that the source brings are shown in a second question; and only
// then the skill is linked, until the last start that needs the skill is closed.
func TestPrepareShowsSkillsBeforeAndAfterTheFetch(t *testing.T) {
	t.Parallel()
	f := open(t)
	repo := newRepository(t)
	repo.commit(map[string]string{"pdf/SKILL.md": manual, "pdf/read.py": "print()\n"})
	f.skills(`{"tools":{"sources":[{"type":"git","source":"` + repo.url + `","ref":"main"}]}}`)
	nothing := func(fetched bool) func() {
		return func() {
			if got := repo.asked.Load() > 0; got != fetched || f.has(".claude") {
				t.Errorf("during the question: fetched %v, linked %v; want fetched %v, and nothing linked", got, f.has(".claude"), fetched)
			}
		}
	}
	s := f.started(claude, "a", person{launch.Approve, nothing(false)}, person{launch.Approve, nothing(true)})
	if got := s.asked[0][0].Detail; got != "git "+repo.url+", ref main\nnot fetched yet" {
		t.Errorf("first question: got %q, want the source", got)
	}
	second := s.asked[1][0]
	if !strings.Contains(second.Detail, "pdf/read.py") || !strings.Contains(second.Detail, "commit "+repo.git("rev-parse", "HEAD")) || !strings.Contains(second.Before, "not fetched yet") {
		t.Errorf("second question: got %+v, want the program and the commit", second)
	}
	if !f.has(".claude/skills/pdf/read.py") {
		t.Fatal("the agent has no skill")
	}
	// A ref moves when a person asks for that, and only then.
	asked := repo.asked.Load()
	repo.commit(map[string]string{"pdf/read.py": "print(2)\n"})
	f.started(claude, "b").Close(t.Context())
	data, err := os.ReadFile(filepath.Join(f.work, ".claude/skills/pdf/read.py"))
	if string(data) != "print()\n" || repo.asked.Load() != asked {
		t.Errorf("the next start: got %q, %v, and %d requests more; want the skill as it was", data, err, repo.asked.Load()-asked)
	}
	item, err := f.FetchSkill(t.Context(), f.work, "tools")
	if err != nil || item.Approved || item.State != "resolved" || item.Executable == nil || !strings.Contains(item.Executable.Before, "pdf/read.py") {
		t.Fatalf("FetchSkill: got %+v, %v; want it unapproved, beside the content before", item, err)
	}
	s.Close(t.Context())
	s = f.started(claude, "c", person{option: launch.Without})
	if s.asked[0][0].Before != second.Detail || f.has(".claude") {
		t.Errorf("start without: asked about %+v, linked %v; want nothing linked", s.asked[0], f.has(".claude"))
	}
	if err := f.Approve(t.Context(), f.work, []string{item.Executable.Hash}); err != nil {
		t.Fatal(err)
	}
	s = f.started(claude, "d")
	if !f.has(".claude/skills/pdf/read.py") {
		t.Error("the approved skill is not linked")
	}
	s.Close(t.Context())
	if f.has(".claude") {
		t.Error("the link is left at the end")
	}
}

func TestPrepareGivesSkillsOfAFolder(t *testing.T) {
	t.Parallel()
	f := open(t)
	for name, text := range map[string]string{
		"pdf/SKILL.md": manual, "pdf/run.sh": "echo 1\n", "bad/SKILL.md": "---\nname: ../bad\n---\n", "bad/a:b": "", "zwei wörter/SKILL.md": "---\nname: Zwei Wörter\n---\n",
	} {
		f.write("skills/"+name, text)
	}
	f.skills(`{"mine":{"sources":[{"type":"local","source":"skills"},{"type":"local","source":"none"}]}}`)
	s := f.started(claude, "a", person{launch.Approve, func() { f.write("skills/pdf/run.sh", "echo 2\n") }}, person{option: launch.Once})
	if s.asked[0][0].Hash == s.asked[1][0].Hash {
		t.Errorf("asked about %+v twice, want the changed program", s.asked)
	}
	for _, want := range []string{`The skill "bad" of "mine" was not given`, "none cannot be read", `zwei wörter: its name "Zwei Wörter" is not one for a folder`} {
		if !strings.Contains(s.notices, want) {
			t.Errorf("got the notices %s, want %q", s.notices, want)
		}
	}
	if !f.has(".claude/skills/zwei wörter/SKILL.md") {
		t.Error("a skill with blanks in its name is not linked")
	}
	f.write("skills/pdf/run.sh", "echo 3\n")
	if data, err := os.ReadFile(filepath.Join(f.work, ".claude/skills/pdf/run.sh")); string(data) != "echo 2\n" {
		t.Errorf("the skill of a start: got %q, %v; want what the start began with", data, err)
	}
	s.Close(t.Context())
	f.started(claude, "b", person{option: launch.Once}) // once was once
}

// An agent that reads no skills gets none, and nobody is asked about them.
func TestPrepareOfAnAgentWithoutSkills(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.write("kept/s/SKILL.md", manual)
	f.skills(`{"kept":{"sources":[{"type":"local","source":"kept"}]}}`)
	if s := f.started(demo, "a"); !strings.Contains(s.notices, "it is not known to read any: kept") {
		t.Errorf("got the notices %q, want the skills that the agent does not get", s.notices)
	}
}

// A skill of mere text is asked about again when the text has commands that the agent runs, or lets the agent run some.
func TestSkillThatIsNoLongerOnlyText(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"leave":    "---\nname: s\ndescription: What it is.\nallowed-tools: Bash\n---\nDo it.\n",
		"hooks":    "---\nname: s\ndescription: What it is.\nhooks:\n  Stop: x\n---\nDo it.\n",
		"commands": "---\nname: s\ndescription: What it is.\n---\nDo it: !`id`.\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t)
			f.write("kept/s/SKILL.md", "---\nname: s\ndescription: What it is.\n---\nDo it.\n")
			f.skills(`{"kept":{"sources":[{"type":"local","source":"kept"}]}}`)
			f.started(claude, "a", person{option: launch.Approve})
			f.started(claude, "b")
			f.write("kept/s/SKILL.md", text)
			if s := f.started(claude, "c", person{option: launch.Approve}); len(s.asked[0]) != 1 || !strings.Contains(s.asked[0][0].Detail, "s/SKILL.md") {
				t.Errorf("asked about %+v, want the text", s.asked)
			}
		})
	}
}

// A skill that is linked for one start cannot be kept from another start in the directory, which a person began without the skill: the person is
// asked about the skill as a file that the agent reads by itself. A start that has the skill, too, is not asked about the link.
func TestSkillLinkedForAnotherStart(t *testing.T) {
	t.Parallel()
	f := open(t)
	f.write("kept/s/SKILL.md", "---\nname: s\ndescription: What it is.\nallowed-tools: Bash\n---\nDo it.\n")
	f.write("kept/s/run.sh", "#!/bin/sh\n")
	f.skills(`{"kept":{"sources":[{"type":"local","source":"` + filepath.ToSlash(filepath.Join(f.work, "kept")) + `"}]}}`)
	first := f.started(claude, "a", person{option: launch.Once})
	if !f.has(".claude/skills/s/SKILL.md") {
		t.Fatal("the skill is not linked")
	}
	if list := f.listed(); len(list) != 1 {
		t.Errorf("Executables: got %+v, want the skill, and not the link", list)
	}
	second, err := f.begin(claude, "b", person{option: launch.Without}, person{option: launch.Decline})
	if !errors.Is(err, launch.ErrDeclined) || !strings.HasPrefix(second.asked[1][0].Name, ".claude/skills/s/") {
		t.Errorf("start without the skill: got %v after %+v, want a question about the link", err, second.asked)
	}
	third := f.started(claude, "c", person{option: launch.Once})
	first.Close(t.Context())
	third.Close(t.Context())
	if f.has(".claude") {
		t.Error("the link is left at the end")
	}
	f.started(claude, "d", person{option: launch.Without})
}
