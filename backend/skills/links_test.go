package skills

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"deskhand/backend/unprivileged"
)

func claude() []string { return []string{".claude/skills"} }

// kept returns a state whose skills are ready for linking.
func (d *fixture) kept(files tree) State {
	d.t.Helper()
	src := d.t.TempDir()
	files.write(d.t, src)
	s := d.Keep(d.t.Context(), d.dir, entry(Source{Type: "local", Source: src}))
	if s.State != Resolved {
		d.t.Fatal(s.Detail)
	}
	return s
}

func (d *fixture) link(user string, folders []string, s State) []string {
	d.t.Helper()
	return d.Link(d.t.Context(), user, d.dir, folders, s.Skills)
}

func (d *fixture) at(parts ...string) string {
	return filepath.Join(append([]string{d.dir}, parts...)...)
}

func (d *fixture) text(parts ...string) string {
	data, err := os.ReadFile(d.at(parts...))
	if err != nil {
		return err.Error()
	}
	return string(data)
}

// holds fails when the directory contains other names than the given.
func (d *fixture) holds(names ...string) {
	d.t.Helper()
	entries, err := os.ReadDir(d.dir)
	if err != nil {
		d.t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, names) {
		d.t.Errorf("the directory holds %v, not %v", got, names)
	}
}

func TestLinksComeAndGo(t *testing.T) {
	d := open(t)
	s := d.kept(tree{"pdf/SKILL.md": manualOf("pdf"), "pdf/run.sh": "!#!/bin/sh\n", "b/SKILL.md": manualOf("b"), "bad/SKILL.md": manualOf("bad"), "bad/x": "→/etc/passwd"})
	if notes := d.link("one", []string{".claude/skills", ".agents/skills"}, s); len(notes) > 0 {
		t.Fatalf("Link: got the notes %v, want none", notes)
	}
	for _, folder := range []string{".claude", ".agents"} {
		if d.text(folder, "skills", "pdf", "SKILL.md") != manualOf("pdf") || d.text(folder, "skills", "b", "SKILL.md") != manualOf("b") {
			t.Errorf("%s: not linked", folder)
		}
		if exists(d.at(folder, "skills", "bad")) {
			t.Errorf("%s: a skill with a problem is linked", folder)
		}
	}
	real, err := filepath.EvalSymlinks(d.at(".claude", "skills", "pdf"))
	if err != nil || filepath.Base(real) != "pdf" { // agents compare a skill's name with its folder's
		t.Errorf("link target: got %s, %v, want a folder pdf", real, err)
	}
	d.Unlink(t.Context(), "another")
	if !exists(d.at(".claude/skills/pdf")) {
		t.Error("another session's end removes it")
	}
	d.Unlink(t.Context(), "one")
	d.holds()
	d.Unlink(t.Context(), "one")
}

func TestFoldersOfOthersStay(t *testing.T) {
	d := open(t)
	tree{".claude/skills/mine/SKILL.md": manualOf("mine"), ".agents/x": "x"}.write(t, d.dir)
	s := d.kept(tree{"pdf/SKILL.md": manualOf("pdf")})
	if notes := d.link("one", []string{".claude/skills", ".agents/skills", ".opencode/skills"}, s); len(notes) > 0 {
		t.Fatalf("Link: got the notes %v, want none", notes)
	}
	tree{".opencode/theirs": "x"}.write(t, d.dir)
	d.Unlink(t.Context(), "one")
	d.holds(".agents", ".claude", ".opencode")
	if exists(d.at(".agents/skills")) || exists(d.at(".opencode/skills")) || !exists(d.at(".claude/skills/mine/SKILL.md")) || exists(d.at(".claude/skills/pdf")) {
		t.Error("not as it was")
	}
}

func TestANameThatIsTakenStays(t *testing.T) {
	d := open(t)
	tree{
		".claude/skills/a/SKILL.md": "theirs", ".claude/skills/b": "a file", ".claude/skills/c": "→nowhere", ".claude/skills/d": "→../..",
	}.write(t, d.dir)
	s := d.kept(tree{"a/SKILL.md": manualOf("a"), "b/SKILL.md": manualOf("b"), "c/SKILL.md": manualOf("c"), "d/SKILL.md": manualOf("d"), "e/SKILL.md": manualOf("e")})
	notes := d.link("one", claude(), s)
	if len(notes) != 4 || !strings.Contains(notes[0], ".claude/skills/a was not linked: there is something of this name already") {
		t.Errorf("Link: got the notes %v, want four, the first about a", notes)
	}
	d.Unlink(t.Context(), "one")
	if d.text(".claude/skills/a/SKILL.md") != "theirs" || d.text(".claude/skills/b") != "a file" || !exists(d.at(".claude/skills/c")) || !exists(d.at(".claude/skills/d")) {
		t.Error("what was there is gone")
	}
	if exists(d.at(".claude/skills/e")) {
		t.Error("ours is left")
	}
}

func TestWhatTheUserPutsInOurPlaceStays(t *testing.T) {
	d := open(t)
	files := tree{}
	for _, name := range []string{"a", "b", "c", "d"} {
		files[name+"/SKILL.md"] = manualOf(name)
	}
	s := d.kept(files)
	if notes := d.link("one", claude(), s); len(notes) > 0 {
		t.Fatalf("Link: got the notes %v, want none", notes)
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		if err := os.Remove(d.at(".claude/skills", name)); err != nil {
			t.Fatal(err)
		}
	}
	tree{".claude/skills/a/SKILL.md": "theirs", ".claude/skills/b": "theirs", ".claude/skills/c": "→" + d.home}.write(t, d.dir)
	// A second session makes the missing links, and leaves the person's files.
	if notes := d.link("two", claude(), s); len(notes) != 3 {
		t.Errorf("Link: got the notes %v, want three", notes)
	}
	if d.text(".claude/skills/d/SKILL.md") != manualOf("d") {
		t.Error("what was removed is not made again")
	}
	d.Unlink(t.Context(), "one")
	d.Unlink(t.Context(), "two")
	target, _ := os.Readlink(d.at(".claude/skills/c"))
	if d.text(".claude/skills/a/SKILL.md") != "theirs" || d.text(".claude/skills/b") != "theirs" || target != d.home || exists(d.at(".claude/skills/d")) {
		t.Error("theirs is gone, or ours is left")
	}
}

func TestTwoSessionsOfOneDirectory(t *testing.T) {
	d := open(t)
	old := d.kept(tree{"pdf/SKILL.md": manualOf("pdf")})
	now := d.kept(tree{"pdf/SKILL.md": manualOf("pdf") + "new", "more/SKILL.md": manualOf("more")})
	if notes := slices.Concat(d.link("claude", claude(), old), d.link("codex", []string{".agents/skills"}, old), d.link("third", claude(), old)); len(notes) > 0 {
		t.Fatalf("Link: got the notes %v, want none", notes)
	}
	d.Unlink(t.Context(), "claude")
	if !exists(d.at(".claude/skills/pdf")) || !exists(d.at(".agents/skills/pdf")) {
		t.Error("gone while another session needs it")
	}
	notes := d.link("fourth", claude(), now) // the same directory under another name
	if len(notes) != 1 || !strings.Contains(notes[0], "stays what it was") || d.text(".claude/skills/pdf/SKILL.md") != manualOf("pdf") {
		t.Errorf("a running session's skill has changed: %v", notes)
	}
	other := filepath.Join(t.TempDir(), "alias")
	if err := os.Symlink(d.dir, other); err != nil {
		t.Fatal(err)
	}
	if notes := d.Link(t.Context(), "fifth", other, claude(), old.Skills); len(notes) > 0 {
		t.Errorf("by another name of the directory: %v", notes)
	}
	d.Unlink(t.Context(), "third")
	d.Unlink(t.Context(), "fourth")
	if !exists(d.at(".claude/skills/pdf")) || exists(d.at(".claude/skills/more")) {
		t.Error("the fifth session has lost its link, or the fourth has left one")
	}
	d.Unlink(t.Context(), "fifth")
	if exists(d.at(".claude")) || !exists(d.at(".agents/skills/pdf")) {
		t.Error("the folder of one agent is bound to that of another")
	}
	d.Unlink(t.Context(), "codex")
	d.holds()
}

func TestAfterACrash(t *testing.T) {
	d := open(t)
	s := d.kept(tree{"a/SKILL.md": manualOf("a"), "b/SKILL.md": manualOf("b"), "c/SKILL.md": manualOf("c")})
	// The record precedes the link.
	made := 0
	d.links.symlink = func(dir *os.Root, target, name string) error {
		data, err := os.ReadFile(d.bookFile())
		if err != nil || !strings.Contains(string(data), `"path": "`+filepath.ToSlash(name)+`"`) {
			t.Errorf("%s is not in the record: %v", name, err)
		}
		if made++; made == 3 {
			return nil // simulates a kill before the third link
		}
		return dir.Symlink(target, name)
	}
	if notes := d.link("one", claude(), s); len(notes) > 0 {
		t.Fatalf("Link: got the notes %v, want none", notes)
	}
	tree{".claude/skills/c/SKILL.md": "theirs"}.write(t, d.dir)
	d.reopen()
	if exists(d.at(".claude/skills/a")) || exists(d.at(".claude/skills/b")) || d.text(".claude/skills/c/SKILL.md") != "theirs" {
		t.Error("not what a start leaves")
	}
	if data, _ := os.ReadFile(d.bookFile()); strings.Contains(string(data), "skills/a") {
		t.Errorf("record: got %s, want no skills/a", data)
	}
	// The links of a directory that is away for a while are remembered.
	if notes := d.link("two", claude(), d.kept(tree{"z/SKILL.md": manualOf("z")})); len(notes) > 0 {
		t.Fatalf("Link: got the notes %v, want none", notes)
	}
	away := d.dir + "-away"
	if err := os.Rename(d.dir, away); err != nil {
		t.Fatal(err)
	}
	d.reopen()
	if err := os.Rename(away, d.dir); err != nil {
		t.Fatal(err)
	}
	if !exists(d.at(".claude/skills/z")) {
		t.Fatal("removed without being there")
	}
	if _, err := os.ReadFile(d.at(".claude/skills/z/SKILL.md")); err != nil {
		t.Errorf("its files were removed from the cache: %v", err)
	}
	d.reopen()
	if exists(d.at(".claude/skills/z")) {
		t.Error("it stays for ever")
	}
	// With an unreadable record nothing is removed, and the start succeeds.
	if err := os.WriteFile(d.bookFile(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.reopen()
	if !exists(d.bookFile() + ".broken") {
		t.Error("the broken record is lost")
	}
}

func TestADirectoryThatCannotBeWritten(t *testing.T) {
	d := open(t)
	s := d.kept(tree{"a/SKILL.md": manualOf("a")})
	d.dir = filepath.Join(d.dir, "work")
	if err := os.Mkdir(d.dir, 0o500); err != nil {
		t.Fatal(err)
	}
	unprivileged.Bind(t)
	notes := d.link("one", claude(), s)
	if len(notes) != 1 || !strings.HasPrefix(notes[0], ".claude/skills/a was not linked: ") {
		t.Errorf("Link: got the notes %v, want one about a", notes)
	}
	if len(d.links.book.Links)+len(d.links.book.Folders) > 0 {
		t.Errorf("what is not there is in the record: %+v", d.links.book)
	}
	d.Unlink(t.Context(), "one")
	if notes := d.Link(t.Context(), "one", filepath.Join(d.home, "none"), claude(), s.Skills); len(notes) != 1 {
		t.Errorf("a directory that is not there: %v", notes)
	}
}

func TestHostileFolders(t *testing.T) {
	outside := t.TempDir()
	for what, prepare := range map[string]func(d *fixture) error{
		"a link out": func(d *fixture) error { return os.Symlink(outside, d.at(".claude")) },
		"a link up":  func(d *fixture) error { return os.Symlink("..", d.at(".claude")) },
		"a deeper link": func(d *fixture) error {
			return errors.Join(os.Mkdir(d.at(".claude"), 0o700), os.Symlink(outside, d.at(".claude/skills")))
		},
		"a file": func(d *fixture) error { return os.WriteFile(d.at(".claude"), nil, 0o600) },
		"a pipe": func(d *fixture) error { return makePipe(d.at(".claude")) },
		"a pipe further down": func(d *fixture) error {
			return errors.Join(os.Mkdir(d.at(".claude"), 0o700), makePipe(d.at(".claude/skills")))
		},
		"a link to nothing": func(d *fixture) error { return os.Symlink(outside+"/none", d.at(".claude")) },
	} {
		d := open(t)
		if err := prepare(d); err != nil {
			t.Fatal(err)
		}
		notes := d.link("one", claude(), d.kept(tree{"a/SKILL.md": manualOf("a")}))
		if len(notes) != 1 || !strings.Contains(notes[0], "was not linked") {
			t.Errorf("%s: Link: got the notes %v, want one", what, notes)
		}
		d.Unlink(t.Context(), "one")
		if !exists(d.at(".claude")) {
			t.Errorf("%s is gone", what)
		}
	}
	if left, _ := os.ReadDir(outside); len(left) > 0 {
		t.Errorf("written outside: %v", left)
	}
	d := open(t)
	for _, folder := range []string{"../x", outside, "a/../../x", ""} {
		_ = d.link("one", []string{folder}, d.kept(tree{"a/SKILL.md": manualOf("a")}))
	}
	d.Unlink(t.Context(), "one")
	if exists(filepath.Join(d.dir, "..", "x")) || exists(filepath.Join(outside, "a")) {
		t.Error("linked outside")
	}
}

func TestWhereThereAreNoLinks(t *testing.T) {
	d := open(t)
	s := d.kept(tree{"a/SKILL.md": manualOf("a"), "a/sub/run.sh": "!#!/bin/sh\n", "b/SKILL.md": manualOf("b")})
	d.links.symlink = func(*os.Root, string, string) error { return &fs.PathError{Op: "symlink", Err: syscall.EPERM} }
	if notes := d.link("one", claude(), s); len(notes) > 0 {
		t.Fatalf("Link: got the notes %v, want none", notes)
	}
	info, err := os.Stat(d.at(".claude/skills/a/sub/run.sh"))
	if err != nil || info.Mode()&0o100 == 0 || d.text(".claude/skills/b/SKILL.md") != manualOf("b") {
		t.Fatalf("copy: got %v, %v, want an executable file", info, err)
	}
	if err := os.WriteFile(d.at(".claude/skills/b/SKILL.md"), []byte("changed"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.reopen() // the record tells copies from links
	if exists(d.at(".claude/skills/a")) {
		t.Error("the copy is left")
	}
	if d.text(".claude/skills/b/SKILL.md") != "changed" {
		t.Error("somebody's work is gone")
	}
}

func TestGitSeesNothingOfTheLinks(t *testing.T) {
	d := open(t)
	s := d.kept(tree{"a/SKILL.md": manualOf("a"), "b/SKILL.md": manualOf("b")})
	r := newRepo(t, tree{"sub [x]/file": "x", "theirs": "x"})
	exclude := filepath.Join(r.dir, ".git", "info", "exclude")
	for _, before := range []string{"# git ls-files --others\n*.log\n", "no line end", ""} {
		if err := os.WriteFile(exclude, []byte(before), 0o644); err != nil {
			t.Fatal(err)
		}
		for _, dir := range []string{"", "sub [x]"} {
			d.dir = filepath.Join(r.dir, dir)
			if notes := d.link("one"+dir, claude(), s); len(notes) > 0 {
				t.Fatalf("Link in %q: got the notes %v, want none", dir, notes)
			}
			if status := r.git("status", "--porcelain", "--untracked-files=all"); status != "" {
				t.Errorf("in %q: %s", dir, status)
			}
		}
		tree{".claude/skills/new/SKILL.md": "x"}.write(t, r.dir)
		if status := r.git("status", "--porcelain", "--untracked-files=all"); status != "?? .claude/skills/new/SKILL.md" {
			t.Errorf("what is theirs is hidden: %s", status)
		}
		if err := os.RemoveAll(filepath.Join(r.dir, ".claude/skills/new")); err != nil {
			t.Fatal(err)
		}
		d.Unlink(t.Context(), "one")
		if text, _ := os.ReadFile(exclude); !strings.Contains(string(text), `/sub \[x]/.claude/skills/a`) || strings.Contains(string(text), "\n/.claude") {
			t.Errorf("with one of two sessions: %s", text)
		}
		d.Unlink(t.Context(), "onesub [x]")
		if text, _ := os.ReadFile(exclude); strings.TrimSuffix(string(text), "\n") != strings.TrimSuffix(before, "\n") {
			t.Errorf("it was %q and is %q", before, text)
		}
		if status := r.git("status", "--porcelain"); status != "" {
			t.Errorf("after: %s", status)
		}
	}
	// In a linked worktree.
	tree := filepath.Join(real(t, t.TempDir()), "tree")
	r.git("worktree", "add", "--quiet", tree, "-b", "other")
	d.dir = tree
	if notes := d.link("two", claude(), s); len(notes) > 0 {
		t.Fatalf("Link: got the notes %v, want none", notes)
	}
	if status := gitIn(t, tree, "", "status", "--porcelain", "--untracked-files=all"); status != "" || !exists(filepath.Join(tree, ".claude/skills/a")) {
		t.Errorf("git status: got %s, want no file", status)
	}
	// After a crash.
	d.reopen()
	if text, _ := os.ReadFile(exclude); strings.Contains(string(text), "claude") {
		t.Errorf("left after a crash: %s", text)
	}
}

func TestAnExcludeFileThatIsNone(t *testing.T) {
	d := open(t)
	s := d.kept(tree{"a/SKILL.md": manualOf("a")})
	victim := filepath.Join(d.home, "victim")
	if err := os.WriteFile(victim, []byte("theirs"), 0o600); err != nil {
		t.Fatal(err)
	}
	for what, prepare := range map[string]func(info string) error{
		"a link":   func(info string) error { return os.Symlink(victim, filepath.Join(info, "exclude")) },
		"a pipe":   func(info string) error { return makePipe(filepath.Join(info, "exclude")) },
		"a folder": func(info string) error { return os.Mkdir(filepath.Join(info, "exclude"), 0o700) },
		"too large": func(info string) error {
			return os.WriteFile(filepath.Join(info, "exclude"), make([]byte, 1<<20+1), 0o600)
		},
		"no info":         func(info string) error { return os.Remove(info) },
		"info leads away": func(info string) error { return errors.Join(os.Remove(info), os.Symlink(d.home, info)) },
	} {
		r := newRepo(t, tree{"x": "x"})
		info := filepath.Join(r.dir, ".git", "info")
		if err := errors.Join(os.RemoveAll(info), os.Mkdir(info, 0o700), prepare(info)); err != nil {
			t.Fatal(err)
		}
		before, _ := os.Lstat(filepath.Join(info, "exclude"))
		d.dir = r.dir
		if notes := d.link("one", claude(), s); len(notes) > 0 || !exists(d.at(".claude/skills/a")) {
			t.Errorf("%s: Link: got the notes %v, want none", what, notes)
		}
		if after, err := os.Lstat(filepath.Join(info, "exclude")); before != nil && (err != nil || !os.SameFile(before, after)) {
			t.Errorf("%s: it was replaced: %v", what, err)
		}
		d.Unlink(t.Context(), "one")
	}
	if text, _ := os.ReadFile(victim); string(text) != "theirs" || exists(filepath.Join(d.home, "exclude")) {
		t.Errorf("written outside: %q", text)
	}
}

// A person who has replaced a link by a skill of their own sees the skill in git again.
func TestOurLineGoesWithOurLink(t *testing.T) {
	d := open(t)
	s := d.kept(tree{"a/SKILL.md": manualOf("a")})
	r := newRepo(t, tree{"x": "x"})
	d.dir = r.dir
	if notes := d.link("one", claude(), s); len(notes) > 0 {
		t.Fatalf("Link: got the notes %v, want none", notes)
	}
	if err := os.Remove(d.at(".claude/skills/a")); err != nil {
		t.Fatal(err)
	}
	tree{".claude/skills/a/SKILL.md": "theirs"}.write(t, r.dir)
	if notes := d.link("two", claude(), s); len(notes) != 1 {
		t.Fatalf("Link: got the notes %v, want one", notes)
	}
	d.Unlink(t.Context(), "one")
	d.Unlink(t.Context(), "two")
	if status := r.git("status", "--porcelain", "--untracked-files=all"); status != "?? .claude/skills/a/SKILL.md" {
		t.Errorf("%q: git does not see it", status)
	}
}

// File systems without links usually have no modes: no file is executable, or every file is.
func TestCopiesWhereThereAreNoModes(t *testing.T) {
	for _, mode := range []os.FileMode{0o666, 0o777} {
		d := open(t)
		s := d.kept(tree{"a/SKILL.md": manualOf("a"), "a/run.sh": "!#!/bin/sh\n"})
		d.links.symlink = func(*os.Root, string, string) error { return errLinkless }
		if notes := d.link("one", claude(), s); len(notes) > 0 {
			t.Fatalf("Link: got the notes %v, want none", notes)
		}
		for _, name := range []string{"SKILL.md", "run.sh"} {
			if err := os.Chmod(d.at(".claude/skills/a", name), mode); err != nil {
				t.Fatal(err)
			}
		}
		d.Unlink(t.Context(), "one")
		d.holds()
	}
}

// A crash after the first copy, during the second.
func TestACrashBetweenCopies(t *testing.T) {
	d := open(t)
	s := d.kept(tree{"a/SKILL.md": manualOf("a"), "b/SKILL.md": manualOf("b")})
	var crashed []byte
	d.links.symlink = func(_ *os.Root, _, name string) error {
		if filepath.Base(name) == "b" {
			crashed, _ = os.ReadFile(d.bookFile())
		}
		return errLinkless
	}
	if notes := d.link("one", claude(), s); len(notes) > 0 {
		t.Fatalf("Link: got the notes %v, want none", notes)
	}
	if err := errors.Join(os.RemoveAll(d.at(".claude/skills/b")), os.WriteFile(d.bookFile(), crashed, 0o600)); err != nil {
		t.Fatal(err)
	}
	d.reopen()
	d.holds()
}

// Another program has just made a file in place of the copy.
func TestACopyThatComesTooLate(t *testing.T) {
	d := open(t)
	s := d.kept(tree{"a/SKILL.md": manualOf("a")})
	d.links.symlink = func(*os.Root, string, string) error {
		tree{".claude/skills/a/theirs": "work of a day"}.write(t, d.dir)
		return errLinkless
	}
	if notes := d.link("one", claude(), s); len(notes) != 1 {
		t.Errorf("Link: got the notes %v, want one", notes)
	}
	d.Unlink(t.Context(), "one")
	if d.text(".claude/skills/a/theirs") != "work of a day" {
		t.Error("somebody's work is gone")
	}
}

var errLinkless = &os.PathError{Op: "symlink", Err: syscall.EPERM}
