package skills

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// both returns the states of a folder with these files, and of the same files in git.
func both(t *testing.T, d *fixture, files tree, s Source) map[string]State {
	t.Helper()
	r := newRepo(t, files)
	states := map[string]State{}
	for _, kind := range []string{"local", "git"} {
		s.Type, s.Source = kind, r.dir
		states[kind] = d.Complete(t.Context(), d.dir, entry(s))
	}
	return states
}

func TestFrontMatter(t *testing.T) {
	for text, want := range map[string]front{
		"---\nname: a\ndescription: b\n---\n":                                 {"a", "b"},
		"\xef\xbb\xbf---\r\nname: a\r\ndescription: b\r\n---\r\ntext":         {"a", "b"},
		"---\nname: \"a\"\ndescription: >\n  b\n  c\nlicense: MIT\n---":       {"a", "b c\n"},
		"---\ndescription: 'it''s: b'\nmetadata: {x: [1, 2]}\nname: a\n---\n": {"a", "it's: b"},
	} {
		if got, err := frontMatter([]byte(text)); err != nil || got != want {
			t.Errorf("frontMatter(%q): got %+v, %v, want %+v", text, got, err, want)
		}
	}
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'n'; c++ {
		bomb += fmt.Sprintf("%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	for _, text := range []string{
		"", "# no front matter", "---\nname: a\n", "---\nname: [\n---\n", "---\nname: {a: b}\n---\n", "---\ndescription: a: b\n---\n", "---\n" + bomb + "name: *m\n---\n",
	} {
		if got, err := frontMatter([]byte(text)); err == nil {
			t.Errorf("frontMatter(%.40q): got %+v, want an error", text, got)
		}
	}
}

func TestWhatIsASkill(t *testing.T) {
	d := open(t)
	for kind, s := range both(t, d, tree{
		"README.md": "x", "a/SKILL.md": manualOf("alpha"), "a/sub/SKILL.md": manualOf("below"), "a/sub/x": "x", "b/c/SKILL.md": "# none", "b/skill.md": manualOf("small"),
		"ab/x": "not of a", "d/SKILL.md": manualOf("../evil"), "e/SKILL.md": manualOf("nul"), "f/SKILL.md": strings.Repeat("x", maxFrontal+1), "g/SKILL.md/x": "a folder",
	}, Source{}) {
		var got []string
		for _, sk := range s.Skills {
			problem := "-"
			if sk.Problem != "" {
				problem = "problem"
			}
			got = append(got, fmt.Sprintf("%s %d %s", sk.Name, len(sk.Files), problem))
		}
		if want := "alpha 3 -|c 1 -|d 1 -|e 1 -|f 0 problem"; strings.Join(got, "|") != want {
			t.Errorf("%s: got %s, want %s", kind, strings.Join(got, "|"), want)
		}
		if !strings.Contains(skill(t, s, "c").Note, "begin with ---") {
			t.Errorf("%s: got %+v, want a note about ---", kind, skill(t, s, "c"))
		}
	}
	for kind, s := range both(t, d, tree{"SKILL.md": "# top", "sub/SKILL.md": manualOf("sub")}, Source{}) {
		if len(s.Skills) != 1 || len(s.Skills[0].Files) != 2 { // named after the repository's folder
			t.Errorf("%s: got %+v, want one skill with 2 files", kind, s)
		}
	}
	for kind, s := range both(t, d, tree{"x": "y"}, Source{}) {
		if s.State != Failed || !strings.Contains(s.Detail, "there is no SKILL.md") {
			t.Errorf("%s: got %+v, want failed without a SKILL.md", kind, s)
		}
	}
}

// Skills as people write them: each gets a name that a folder may have, its own or its folder's.
func TestNamesOfSkills(t *testing.T) {
	d := open(t)
	utf16le := "\xff\xfe"
	for _, r := range "---\nname: wide\ndescription: Wide text\n---\n" {
		utf16le += string([]byte{byte(r), 0})
	}
	cases := []struct{ folder, text, name, description, note string }{
		{"using-git-worktrees", "---\nname: Using Git Worktrees\ndescription: x\n---\nbody\n", "using-git-worktrees", "x", `its name "Using Git Worktrees"`},
		{"code-review-zh", "---\nname: 代码审查\ndescription: 审查代码\n---\n", "code-review-zh", "审查代码", "its name"},
		{"übersetzen", "---\nname: übersetzen\ndescription: x\n---\n", "übersetzen", "x", ""},
		{"代码", "---\nname: 代码审查\ndescription: x\n---\n", "代码", "x", "its name"},
		{"bom", "\ufeff---\nname: bom\ndescription: x\n---\n", "bom", "x", ""},
		{"crlf", "---\r\nname: crlf\r\ndescription: x\r\n---\r\n", "crlf", "x", ""},
		{"wide", utf16le, "wide", "Wide text", ""},
		{"folded", "---\nname: folded\ndescription: >-\n  a\n  b\n---\n", "folded", "a b", ""},
		{"colon", "---\nname: colon-2\ndescription: Use when: the user asks. Triggers on: x\n---\n", "colon-2", "Use when: the user asks. Triggers on: x", "cannot be read"},
		{"noname", "---\ndescription: x\n---\n", "noname", "x", ""},
		{"nofront", "# Heading\n", "nofront", "", "does not begin with ---"},
		{"blanks behind", "---  \t\nname: Blanks\ndescription: x\n--- \t\n", "Blanks", "x", ""},
		{"my skill", "---\nname: My Skill\ndescription: x\n---\n", "my skill", "x", "its name"},
		{"tabs", "---\nname:\ttabs\n\tdescription: x\n---\n", "tabs", "", "cannot be read"},
		{"number", "---\nname: 7\ndescription: 8\n---\n", "7", "8", ""},
		{"list", "---\nname: [a, b]\ndescription: x\n---\n", "list", "x", "cannot be read"},
		{"table", "---\nname: {a: b}\ndescription: [x]\n---\n", "table", "", "cannot be read"},
		{"twice", "---\nname: twice\nname: other\n---\n", "twice", "", "cannot be read"},
		{"null", "---\nname: ~\n---\n", "null", "", ""},
		{"slash", "---\nname: a/b\n---\n", "slash", "", "its name"},
		{"dots", "---\nname: ..\n---\n", "dots", "", "its name"},
		{"device", "---\nname: COM1\n---\n", "device", "", "its name"},
		{"long", "---\nname: " + strings.Repeat("x", 5000) + "\n---\n", "long", "", "its name"},
		{"lines", "---\nname: |\n  a\n  b\n---\n", "lines", "", "its name"},
		{"rocket 🚀", "---\nname: 🚀\n---\n", "rocket 🚀", "", "its name"},
		{"👩\u200d💻", "---\nname: x y\n---\n", "👩\u200d💻", "", "its name"},
		{"endless", "---\nname: endless\n", "endless", "", "does not end with ---"},
		{"empty", "", "empty", "", "does not begin with ---"},
	}
	files := tree{}
	for _, c := range cases {
		files[c.folder+"/SKILL.md"] = c.text
	}
	for kind, s := range both(t, d, files, Source{}) {
		for _, c := range cases {
			got := skill(t, s, c.name)
			if got.Problem != "" || got.Description != c.description || (got.Note == "") != (c.note == "") || !strings.Contains(got.Note, c.note) {
				t.Errorf("%s: %q: got description %q, problem %q, note %q; want %q, none, %q", kind, c.folder, got.Description, got.Problem, got.Note, c.description, c.note)
			}
		}
	}
}

// A folder whose name looks like another, or like an option, is none for a skill.
func TestFolderNames(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "my skill": true, "übersetzen": true, "代码审查": true, "🚀": true, "نیم\u200cفاصله": true, "A.b_c": true,
		"": false, ".": false, "..": false, ".claude": false, "-rf": false, " a": false, "a ": false, "a/b": false, `a\b`: false, "a:b": false, "con": false,
		"a\u202eb": false, "a\u200bb": false, "a\u200db": false, "a\u00a0b": false, "\u200da": false, "a\nb": false, "\xff": false, strings.Repeat("x", 201): false,
	} {
		if got := folderName(name); got != want {
			t.Errorf("folderName(%q): got %v, want %v", name, got, want)
		}
	}
}

func TestOnlyTheSkillsThatAreWanted(t *testing.T) {
	d := open(t)
	files := tree{"a/SKILL.md": manualOf("alpha"), "b/SKILL.md": manualOf("beta"), "c/SKILL.md": manualOf("gamma")}
	for kind, s := range both(t, d, files, Source{Skills: []string{"c", "alpha", "a"}}) {
		if len(s.Skills) != 2 || s.Skills[0].Name != "gamma" || s.Skills[1].Name != "alpha" {
			t.Errorf("%s: got %+v, want gamma and alpha", kind, s)
		}
	}
	for kind, s := range both(t, d, files, Source{Skills: []string{"delta"}}) {
		if s.State != Failed || !strings.Contains(s.Detail, "no skill delta (there are alpha, beta, gamma)") {
			t.Errorf("%s: got %+v, want failed without delta", kind, s)
		}
	}
}

func TestLinksInASkill(t *testing.T) {
	d := open(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	states := both(t, d, tree{
		"good/SKILL.md": manualOf("good"), "good/run.sh": "!#!/bin/sh\n", "good/sub/link": "→../run.sh", "good/AGENTS.md": "→SKILL.md",
		"out/SKILL.md": manualOf("out"), "out/x": "→" + secret,
		"up/SKILL.md": manualOf("up"), "up/x": "→../shared/x", "shared/x": "x",
		"self/SKILL.md": manualOf("self"), "self/x": "→x",
		"dir/SKILL.md": manualOf("dir"), "dir/sub/y": "y", "dir/x": "→sub",
		"root/SKILL.md": manualOf("root"), "root/x": "→/SKILL.md",
		"none/SKILL.md": manualOf("none"), "none/x": "→nothing",
		"top/SKILL.md": "→../good/SKILL.md",
	}, Source{})
	for kind, s := range states {
		good := skill(t, s, "good")
		if good.Problem != "" || len(good.Files) != 4 {
			t.Errorf("%s: got %+v, want 4 files", kind, good)
		}
		for _, name := range []string{"out", "up", "self", "dir", "root", "none"} {
			if sk := skill(t, s, name); !strings.Contains(sk.Problem, "x is a link to") || sk.Digest != "" {
				t.Errorf("%s: %s: got %+v, want a refused link", kind, name, sk)
			}
		}
		if len(s.Skills) != 7 {
			t.Errorf("%s: a link makes a skill: %s", kind, problems(s))
		}
	}
	if states["git"].Skills[1].Digest != states["local"].Skills[1].Digest {
		t.Error("a folder and its commit are not the same")
	}
	good := skill(t, states["git"], "good")
	info, err := os.Lstat(filepath.Join(d.cache().content(good), "sub", "link"))
	if err != nil || !info.Mode().IsRegular() || info.Mode()&0o100 == 0 || info.Mode()&0o222 != 0 {
		t.Errorf("the copy: %v %v", info, err)
	}
	if d.read(good, "AGENTS.md") != manualOf("good") {
		t.Error("not what the link leads to")
	}
}

func TestOneNameInTwoCases(t *testing.T) {
	d := open(t)
	for kind, s := range both(t, d, tree{
		"a/SKILL.md": manualOf("pdf"), "b/SKILL.md": manualOf("PDF"), "c/SKILL.md": manualOf("files"), "c/x.txt": "1", "c/X.txt": "2",
		"d/SKILL.md": manualOf("folders"), "d/sub/a": "1", "d/Sub/b": "2", "e/SKILL.md": manualOf("pdf"),
	}, Source{}) {
		for name, note := range map[string]string{"pdf": "", "b": "another skill is called PDF too", "e": "another skill is called pdf too"} {
			if got := skill(t, s, name); got.Problem != "" || !strings.HasPrefix(got.Note, note) {
				t.Errorf("%s: skill %s: got problem %q and note %q, want none and %q", kind, name, got.Problem, got.Note, note)
			}
		}
		if !strings.Contains(skill(t, s, "files").Problem, "one name on some systems") || !strings.Contains(skill(t, s, "folders").Problem, "one name on some systems") {
			t.Errorf("%s: got %s, want colliding names", kind, problems(s))
		}
	}
}

func TestNamesOfFiles(t *testing.T) {
	for name, fits := range map[string]bool{
		"a": true, "a.b-c_d": true, "ünï": true, ".hidden": true, "a b": true, "": false, "..": false, ".git": false, ".GIT": false, "a:b": false, "a\\b": false, "a\n": false,
		"a.": false, "a ": false, "con": false, "COM1.txt": false, "\xff": false, strings.Repeat("x", 300): false, "a*": false,
	} {
		if portable(name) != fits {
			t.Errorf("portable(%q): got %v, want %v", name, !fits, fits)
		}
	}
}

func TestLimitsOfASkill(t *testing.T) {
	d := open(t)
	files := tree{"ok/SKILL.md": manualOf("ok"), "large/SKILL.md": manualOf("large"), "large/x": strings.Repeat("x", maxFile+1)}
	files["many/SKILL.md"] = manualOf("many")
	for n := range maxFiles {
		files[fmt.Sprintf("many/%d", n)] = ""
	}
	for kind, s := range both(t, d, files, Source{}) {
		if skill(t, s, "ok").Problem != "" {
			t.Errorf("%s: got %s, want ok without a problem", kind, problems(s))
		}
		for name, want := range map[string]string{"large": "x has 16777217 bytes", "many": "it has 2001 files"} {
			if sk := skill(t, s, name); !strings.Contains(sk.Problem, want) || len(sk.Files) > 0 {
				t.Errorf("%s: %s: got the problem %q, want %q", kind, name, sk.Problem, want)
			}
		}
	}
}

func TestManyLargeFiles(t *testing.T) {
	d := open(t)
	src := t.TempDir()
	tree{"SKILL.md": manualOf("sum"), "0": "", "1": "", "2": "", "3": "", "4": ""}.write(t, src)
	for n := range 5 {
		if err := os.Truncate(filepath.Join(src, fmt.Sprint(n)), maxFile); err != nil { // sparse, takes no space
			t.Fatal(err)
		}
	}
	s := d.Look(t.Context(), d.dir, entry(Source{Type: "local", Source: src}))
	if sk := skill(t, s, "sum"); !strings.Contains(sk.Problem, "more than 67108864 bytes") || len(sk.Files) > 0 {
		t.Errorf("sum: got %+v, want too many bytes", sk)
	}
}

func TestSpecialFilesInAFolder(t *testing.T) {
	d := open(t)
	src := t.TempDir()
	tree{"s/SKILL.md": manualOf("s"), "ok/SKILL.md": manualOf("ok"), ".git/SKILL.md": manualOf("git")}.write(t, src)
	if err := makePipe(filepath.Join(src, "s", "pipe")); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(src, "p"), 0o700), makePipe(filepath.Join(src, "p", "SKILL.md"))); err != nil {
		t.Fatal(err)
	}
	s := d.Look(t.Context(), d.dir, entry(Source{Type: "local", Source: src}))
	if len(s.Skills) != 2 || !strings.Contains(skill(t, s, "s").Problem, "no regular file") || skill(t, s, "ok").Problem != "" {
		t.Errorf("Look: got %+v, want ok, and s with an irregular file", s)
	}
	if s := d.Look(t.Context(), d.dir, entry(Source{Type: "local", Source: src, Subpath: "s/pipe"})); s.State != Failed {
		t.Errorf("Look at the subpath s/pipe: got %+v, want failed", s)
	}
	if s := d.Look(t.Context(), d.dir, entry(Source{Type: "local", Source: filepath.Join(src, "s", "pipe")})); s.State != Failed {
		t.Errorf("Look at the source s/pipe: got %+v, want failed", s)
	}
	if s := d.Look(t.Context(), d.dir, entry(Source{Type: "local", Source: "nothing"})); s.State != Failed || !strings.Contains(s.Detail, filepath.Join(d.dir, "nothing")) {
		t.Errorf("Look at nothing: got %+v, want failed with its path", s)
	}
}

// A source without an approval is described; its content is shown when a file can be run, and only then.
func TestWhatIsShown(t *testing.T) {
	d := open(t)
	r := newRepo(t, tree{"text/SKILL.md": manualOf("text"), "code/SKILL.md": manualOf("code"), "code/run": "!#!/bin/sh\n", "code/lib.py": "x = 1\n", "code/data": "x"})
	src := r.source()
	src.Ref = "main"
	src.Skills = []string{"text"}
	e := entry(src)
	before, detail := d.Look(t.Context(), d.dir, e).Shown()
	if want := "git " + src.Source + ", ref main, only text\nnot fetched yet"; detail != want {
		t.Errorf("Shown: got %q, want %q", detail, want)
	}
	if hash, shown := e.Shown(); hash != before || shown != detail {
		t.Errorf("of the entry alone: %q", shown)
	}
	after, detail := d.completed(e).Shown()
	if after != before || strings.Contains(detail, "commit") {
		t.Errorf("text alone is asked about again: %q", detail)
	}
	src.Skills = nil
	e = entry(src)
	before, _ = d.Look(t.Context(), d.dir, e).Shown()
	s := d.completed(e)
	after, detail = s.Shown()
	for _, want := range []string{"  commit " + s.Commit, "  can be run:", "  code/run (10 bytes, sha256 ", "  code/lib.py (6 bytes, sha256 "} {
		if !strings.Contains(detail, want) {
			t.Errorf("%q is not in %q", want, detail)
		}
	}
	if after == before || strings.Contains(detail, "data") {
		t.Errorf("Shown: got %q, hash changed %v, want a new hash without data", detail, after != before)
	}
	// For a folder, executable files count, and texts do not.
	e = entry(Source{Type: "local", Source: r.dir})
	first, _ := d.Look(t.Context(), d.dir, e).Shown()
	if err := os.WriteFile(filepath.Join(r.dir, "code", "SKILL.md"), []byte(manualOf("code")+"more"), 0o600); err != nil {
		t.Fatal(err)
	}
	second, _ := d.Look(t.Context(), d.dir, e).Shown()
	if err := os.WriteFile(filepath.Join(r.dir, "code", "lib.py"), []byte("x = 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	third, _ := d.Look(t.Context(), d.dir, e).Shown()
	if first != second || second == third {
		t.Errorf("hashes: got %s %s %s, want only the third changed", first, second, third)
	}
}

// No shown text can look like something else.
func TestWhatIsShownIsQuoted(t *testing.T) {
	s := Source{Type: "git", Source: "https://a.example/x, ref v1\n  commit 0", Ref: "m\u202eain", Subpath: "a b", Skills: []string{`x"`, "y"}}
	_, detail := entry(s).Shown()
	want := `git "https://a.example/x, ref v1\n  commit 0", ref "m\u202eain", in "a b", only "x\"", y` + "\nnot fetched yet"
	if detail != want {
		t.Errorf("Shown: got %s, want %s", detail, want)
	}
	d := open(t)
	for kind, s := range both(t, d, tree{"s/SKILL.md": manualOf("s"), "s/a\u202eyp.txt.sh": "x"}, Source{}) {
		if _, detail := s.Shown(); !strings.Contains(detail, `"s/a\u202eyp.txt.sh"`) {
			t.Errorf("%s: got %s, want the name quoted", kind, detail)
		}
	}
}

func TestTextToRead(t *testing.T) {
	d := open(t)
	r := newRepo(t, tree{
		"s/SKILL.md": manualOf("s"), "s/sub/a.txt": "text", "s/bin": "a\x00b", "s/latin": "\xe9", "s/long": strings.Repeat("x", MaxText+1), "s/link": "→sub/a.txt",
		"other": "secret",
	})
	for _, kind := range []string{"git", "local"} {
		e := entry(Source{Type: kind, Source: r.dir})
		d.completed(e)
		for file, want := range map[string]string{"SKILL.md": manualOf("s"), "sub/a.txt": "text", "link": "text"} {
			if got, err := d.Text(t.Context(), d.dir, e, "s", file); err != nil || got != want {
				t.Errorf("%s: Text(%s): got %q, %v, want %q", kind, file, got, err, want)
			}
		}
		for file, want := range map[string]error{
			"bin": ErrText, "latin": ErrText, "long": ErrText, "none": ErrNotFound, "../other": ErrNotFound, "/etc/passwd": ErrNotFound, "sub": ErrNotFound, "": ErrNotFound,
			"sub/../SKILL.md": ErrNotFound,
		} {
			if got, err := d.Text(t.Context(), d.dir, e, "s", file); !errors.Is(err, want) {
				t.Errorf("%s: Text(%s): got %q, %v, want %v", kind, file, got, err, want)
			}
		}
		if _, err := d.Text(t.Context(), d.dir, e, "none", "SKILL.md"); !errors.Is(err, ErrNotFound) {
			t.Errorf("Text(none): got %v, want %v", err, ErrNotFound)
		}
	}
}

func TestWhatNobodyNeedsIsRemoved(t *testing.T) {
	d := open(t)
	r := newRepo(t, tree{"s/SKILL.md": manualOf("s")})
	e := entry(r.source())
	old := d.completed(e).Skills[0]
	r.commit(tree{"s/x": "x"})
	now, err := d.Fetch(t.Context(), d.dir, e)
	if err != nil {
		t.Fatal(err)
	}
	d.reopen()
	if exists(d.cache().content(old)) || !exists(d.cache().content(now.Skills[0])) {
		t.Error("of two versions the wrong one is kept")
	}
	d.Forget(d.dir, e)
	if s := d.Look(t.Context(), d.dir, e); s.State != Unresolved {
		t.Errorf("Look after Forget: got %+v, want unresolved", s)
	}
	d.reopen()
	if exists(d.cache().content(now.Skills[0])) {
		t.Error("what was forgotten is kept")
	}
}

// A link counts with the size of its copy.
func TestLinksThatMultiplyAFile(t *testing.T) {
	d := open(t)
	src := t.TempDir()
	tree{"a/SKILL.md": manualOf("a"), "a/big": ""}.write(t, src)
	if err := os.Truncate(filepath.Join(src, "a", "big"), maxFile); err != nil {
		t.Fatal(err)
	}
	for n := range maxSkill / maxFile {
		tree{fmt.Sprintf("a/link-%d", n): "→big"}.write(t, src)
	}
	s := d.Look(t.Context(), d.dir, entry(Source{Type: "local", Source: src}))
	if !strings.Contains(problems(s), "more than") {
		t.Errorf("got %.200s: %s, want too many bytes", s.Detail, problems(s))
	}
}

// The disk space of a source is limited, however small the source packs its files.
func TestManyLargeSkills(t *testing.T) {
	d := open(t)
	src := t.TempDir()
	for n := range maxSource/maxFile + 1 {
		dir := fmt.Sprintf("s%d", n)
		tree{dir + "/SKILL.md": manualOf(dir), dir + "/big": ""}.write(t, src)
		if err := os.Truncate(filepath.Join(src, dir, "big"), maxFile); err != nil {
			t.Fatal(err)
		}
	}
	s := d.Look(t.Context(), d.dir, entry(Source{Type: "local", Source: src}))
	if s.State != Failed || !strings.Contains(s.Detail, ErrLimit.Error()) {
		t.Errorf("got %s: %s, want failed with %v", s.State, s.Detail, ErrLimit)
	}
}

// A few skills of a large collection can be used.
func TestAFewOfManySkills(t *testing.T) {
	d := open(t)
	src := t.TempDir()
	for n := range maxSkills + 1 {
		tree{fmt.Sprintf("s%d/SKILL.md", n): manualOf(fmt.Sprintf("skill-%d", n))}.write(t, src)
	}
	s := d.Look(t.Context(), d.dir, entry(Source{Type: "local", Source: src, Skills: []string{"skill-7", "s9"}}))
	if s.State != Resolved || len(s.Skills) != 2 {
		t.Errorf("got %s: %s, %d skills, want 2", s.State, s.Detail, len(s.Skills))
	}
	if s := d.Look(t.Context(), d.dir, entry(Source{Type: "local", Source: src})); s.State != Failed || !strings.Contains(s.Detail, "201 skills") {
		t.Errorf("got %s: %s, want failed with 201 skills", s.State, s.Detail)
	}
}
