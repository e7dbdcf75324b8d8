package trust_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/autorun"
	"deskhand/backend/trust"
)

// layouts returns files that start programs, one tree per directory; modules have the HEAD by which git recognises them.
func layouts(t *testing.T) (list []tree) {
	t.Helper()
	data, err := os.ReadFile("testdata/layouts.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSuffix(line, "\n")
		if strings.HasPrefix(line, "#") {
			continue
		}
		name, text, _ := strings.Cut(line, " ")
		text = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t").Replace(text)
		list = append(list, tree{name: text, "evil.sh": "#!/bin/sh\nevil\n", ".git/modules/lib/HEAD": "ref: refs/heads/main\n", ".git/modules/lib/objects/none": "", ".git/modules/lib/refs/none": ""})
	}
	return list
}

func TestEveryLayoutThatStartsProgramsIsFound(t *testing.T) {
	t.Parallel()
	list := layouts(t)
	if len(list) < 137 {
		t.Errorf("got %d layouts, want 137 or more", len(list))
	}
	reads := autorun.Places(nil)
	for _, files := range list {
		dir := project(t, files)
		if got := trust.Find(t.Context(), trust.Where{Directory: dir, Reads: reads}); len(got) == 0 {
			t.Errorf("%q: got nothing found, want it found", files)
		}
	}
}

// A directory after a clone, and after use, asks nothing.
func TestOrdinaryRepositoryAsksNothing(t *testing.T) {
	t.Parallel()
	large := "#!/bin/sh\ncommand -v git-lfs >/dev/null 2>&1 || { echo >&2 \"\\nThis repository is configured for Git LFS but 'git-lfs' was not found on your path.\\n\"; exit 2; }\ngit lfs pre-push \"$@\"\n"
	dir := project(t, tree{
		".git/config": "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n\tfsmonitor = true\n\tautocrlf = input\n[remote \"origin\"]\n" +
			"\turl = git@example.org:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n\tvscode-merge-base = origin/main\n" +
			"[user]\n\tname = \"Ada \\\"A\\\" L\"\n[alias]\n\tco = checkout\n\tst = status -sb\n[credential]\n\thelper = store\n[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tsmudge = git-lfs smudge -- %f\n" +
			"\tprocess = git-lfs filter-process\n\trequired = true\n[lfs]\n\turl = https://example.org/lfs\n[submodule \"lib\"]\n\turl = https://example.org/lib\n\tactive = true\n[pull]\n\trebase = true\n",
		".git/hooks/pre-push": large, ".git/hooks/README.md": "hello\n", ".git/hooks/commit-msg.sample": "#!/bin/sh\n",
		".git/modules/lib/config": "[core]\n\tworktree = ../../../lib\n", ".git/modules/lib/HEAD": "ref: refs/heads/main\n", ".git/modules/lib/hooks/update.sample": "#!/bin/sh\n",
		"lib/.git": "gitdir: ../.git/modules/lib\n", "src/main.go": "package main\n", "package.json": `{"scripts":{"a":"b"}}`, "Makefile": "all:\n\ttrue\n", ".husky/pre-commit": "npm test\n",
		"node_modules/a/.claude/skills/a/run.sh": "#!/bin/sh\n", "CLAUDE.md": "Be kind.\n", ".gitattributes": "*.bin filter=lfs\n", ".vscode/settings.json": "{}",
	})
	if got := trust.Find(t.Context(), trust.Where{Directory: dir, Reads: autorun.Places(nil)}); len(got) > 0 {
		t.Errorf("got %+v, want nothing", got)
	}
}

// Programs that git would run are found in any nested repository, and in every included configuration file.
func TestRepositoriesWithProgramsAreFound(t *testing.T) {
	t.Parallel()
	watcher := "[core]\n\tfsmonitor = ./evil.sh\n"
	below := func(dir string) tree {
		files := repository(dir)
		files[dir+"/.git/config"] = watcher
		return files
	}
	bare := tree{"sub/HEAD": "ref: refs/heads/main\n", "sub/objects/none": "", "sub/refs/none": "", "sub/config": watcher}
	for name, c := range map[string]struct {
		files tree
		want  string
	}{
		"in a folder":           {below("sub"), "sub/.git/config"},
		"deep in folders":       {below("a/b/c"), "a/b/c/.git/config"},
		"a bare one":            {bare, "sub/config"},
		"by an included file":   {tree{".git/config": "[include]\n\tpath = more\n", ".git/more": watcher}, ".git/more"},
		"by one of the project": {tree{".git/config": "[includeIf \"gitdir:/\"]\n\tpath = ../tools/git\n", "tools/git": watcher}, "tools/git"},
		"by two of them":        {tree{".git/config": "[include]\n\tpath = a\n", ".git/a": "[include]\npath = b\n", ".git/b": watcher}, ".git/b"},
	} {
		c.files["evil.sh"] = "#!/bin/sh\nevil\n"
		dir := project(t, c.files)
		find := func() []string {
			return names(trust.Find(t.Context(), trust.Where{Directory: dir, Reads: reads(t, claude)}))
		}
		if got := find(); !slices.Contains(got, "agent_config "+c.want) {
			t.Errorf("a repository %s: got %q, want %s in it", name, got, c.want)
		}
	}
	// A change of the hook asks again, and so does a change of its script.
	dir := project(t, tree{".git/hooks/pre-commit": "#!/bin/sh\nsh scripts/check.txt\n", "scripts/check.txt": "one\n"})
	before := find(t, claude, dir)
	is(t, before, "script .git/hooks/pre-commit", "script scripts/check.txt")
	tree{"scripts/check.txt": "two\n"}.write(t, dir)
	if after := find(t, claude, dir); len(after) != 2 || after[1].Hash == before[1].Hash {
		t.Errorf("the script of a hook after a change: got %+v, want another hash than in %+v", after, before)
	}
}

// A configuration includes a file by the home of an account: what is the user's own does not count, what is the project's does, and of what
// only git finds a person is asked.
func TestFilesIncludedByHomes(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	tree{"own": "[core]\n\tfsmonitor = own\n"}.write(t, home)
	beside := project(t, tree{"more": "[core]\n\tfsmonitor = ./evil.sh\n"})
	for _, c := range []struct{ path, want string }{
		{"~/own", ""},
		{"~", ""},
		{"~other/x", ".git/config"},
		{"%(prefix)/x", ".git/config"},
		{"~/p/more", "more"},
		{"~/../" + filepath.Base(home) + "/p/more", "more"},
		{"~/../" + mustRel(t, filepath.Dir(home), beside) + "/more", beside + "/more"},
	} {
		dir := filepath.Join(home, "p")
		repository("").write(t, dir)
		tree{".git/config": "[include]\n\tpath = \"" + c.path + "\"\n", "more": "[core]\n\tfsmonitor = ./evil.sh\n"}.write(t, dir)
		var want []string
		if c.want != "" {
			rel := c.want
			if filepath.IsAbs(rel) {
				rel = mustRel(t, dir, rel)
			}
			want = []string{"agent_config " + rel}
		}
		if got := names(find(t, claude, dir)); !slices.Equal(got, want) {
			t.Errorf("Find with path = %s: got %q, want %q", c.path, got, want)
		}
	}
}

func mustRel(t *testing.T, base, target string) string {
	t.Helper()
	rel, err := filepath.Rel(base, target)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.ToSlash(rel)
}

// An approval for a repository holds for its linked worktrees: names and hashes are the same.
func TestLinkedWorktreeHasNamesOfItsRepository(t *testing.T) {
	t.Parallel()
	dir := project(t, tree{
		"main/x": "", ".git/hooks/pre-commit": "#!/bin/sh\nevil\n", ".git/config": "[core]\n\tpager = ./evil.sh\n", ".git/worktrees/w/HEAD": "ref: refs/heads/w\n", ".git/worktrees/w/commondir": "../..\n",
	})
	other := t.TempDir()
	tree{".git": "gitdir: " + dir + "/.git/worktrees/w\n"}.write(t, other)
	got, want := find(t, claude, other), find(t, claude, dir)
	if len(got) != 2 || !slices.Equal(got, want) {
		t.Errorf("in the worktree: got %+v, want as in its repository %+v", got, want)
	}
}
