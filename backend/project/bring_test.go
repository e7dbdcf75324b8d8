package project_test

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/project"
	"deskhand/backend/proxy"
)

// bench is a repository with a worktree.
type bench struct {
	t              testing.TB
	repo, worktree string
	git            project.Git
}

func set(t testing.TB, files ...string) *bench {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	processes, err := proxy.Open(proxy.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := processes.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &bench{t: t, repo: filepath.Join(root, "app"), worktree: filepath.Join(root, "tree"), git: project.Git{Processes: processes, Environ: append(os.Environ(), "HOME="+root, "GIT_CONFIG_NOSYSTEM=1")}}
	write(t, b.repo, "code.go", "code\n", ".gitignore", ".env\n*.local\nnode_modules/\n/certs/\n/secret\n/odd*\n")
	b.do(b.repo, "init", "--quiet", "--initial-branch=main")
	b.do(b.repo, "add", "--all")
	b.do(b.repo, "commit", "--quiet", "-m", "first")
	b.do(b.repo, "worktree", "add", "--quiet", "-b", "tree", b.worktree)
	write(t, b.repo, files...)
	return b
}

func (b *bench) do(dir string, args ...string) string {
	b.t.Helper()
	cmd := exec.CommandContext(b.t.Context(), "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = append(b.git.Environ, "GIT_AUTHOR_NAME=A", "GIT_AUTHOR_EMAIL=a@localhost", "GIT_COMMITTER_NAME=A", "GIT_COMMITTER_EMAIL=a@localhost")
	out, err := cmd.CombinedOutput()
	if err != nil {
		b.t.Fatalf("git %q: got %v, want no error\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (b *bench) bring(p project.Project) project.Brought {
	b.t.Helper()
	got, err := project.Bring(b.t.Context(), b.git, b.repo, b.worktree, p)
	if err != nil {
		b.t.Fatalf("Bring(%+v): got error %v, want none", p, err)
	}
	return got
}

// files lists the files of the worktree that git does not know, with links.
func (b *bench) files() (list []string) {
	b.t.Helper()
	known := strings.Split(b.do(b.worktree, "ls-files"), "\n")
	err := filepath.WalkDir(b.worktree, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(b.worktree, path)
		if err == nil && !d.IsDir() && name != ".git" && !slices.Contains(known, filepath.ToSlash(name)) {
			list = append(list, filepath.ToSlash(name))
		}
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return list
}

func TestIgnoredFilesAreCopiedByTheirPatterns(t *testing.T) {
	all := []string{
		".env", "TOP=1\n", "config/a.local", "a", "config/deep/b.local", "b", "node_modules/x/.env", "no", "node_modules/x/index.js", "x",
		"certs/ca.pem", "ca", "certs/sub/key.pem", "key", "new.txt", "not ignored\n",
	}
	for _, c := range []struct {
		patterns []string
		include  string
		want     []string
	}{
		{nil, "", nil},
		{[]string{".env"}, "", []string{".env"}},
		{[]string{"*.local"}, "", []string{"config/a.local", "config/deep/b.local"}},
		{[]string{"config/*.local"}, "", []string{"config/a.local"}},
		{[]string{"**/*.local"}, "", []string{"config/a.local", "config/deep/b.local"}},
		{[]string{"certs"}, "", []string{"certs/ca.pem", "certs/sub/key.pem"}},
		{[]string{"certs/", "!certs/sub/"}, "", []string{"certs/ca.pem", "certs/sub/key.pem"}},
		{[]string{"certs/*", "!certs/sub"}, "", []string{"certs/ca.pem"}},
		{[]string{"node_modules/x/.env"}, "", []string{"node_modules/x/.env"}},
		{[]string{"node_modules/**/.env"}, "", []string{"node_modules/x/.env"}},
		{[]string{"*"}, "", []string{".env", "certs/ca.pem", "certs/sub/key.pem", "config/a.local", "config/deep/b.local", "node_modules/x/.env", "node_modules/x/index.js"}},
		{[]string{"new.txt", "code.go", "../outside", "/etc/passwd"}, "", nil},
		{nil, "# files of the machine\r\n\r\n.env\r\nnew.txt\r\n", []string{".env"}},
		{[]string{"*.local", ".env"}, "!config/\n!.env\n", []string{"config/a.local", "config/deep/b.local"}},
	} {
		b := set(t, all...)
		if c.include != "" {
			write(t, b.repo, project.Include, c.include)
		}
		got := b.bring(project.Project{Copy: c.patterns})
		if files := b.files(); !slices.Equal(files, c.want) || got.Copied != len(c.want) {
			t.Errorf("Bring(copy %q, %s %q): got %d copied, %q; want %q", c.patterns, project.Include, c.include, got.Copied, files, c.want)
		}
		if again := b.bring(project.Project{Copy: c.patterns}); again.Copied != 0 {
			t.Errorf("Bring(copy %q) again: got %d copied, want none", c.patterns, again.Copied)
		}
	}
}

func TestCopiesKeepModesAndReplaceNothing(t *testing.T) {
	b := set(t, ".env", "theirs\n", "certs/run.sh", "#!/bin/sh\n")
	write(t, b.worktree, ".env", "mine\n", ".deskhand-partly/.gitignore", "*\n", ".deskhand-partly/file", "cut off")
	if err := os.Chmod(filepath.Join(b.repo, "certs", "run.sh"), 0o750); err != nil {
		t.Fatal(err)
	}
	b.bring(project.Project{Copy: []string{".env", "certs"}})
	info, err := os.Stat(filepath.Join(b.worktree, "certs", "run.sh"))
	if err != nil || info.Mode().Perm() != 0o750 {
		t.Errorf("the mode of a copied program: got %v, %v; want 0750", info, err)
	}
	if data, _ := os.ReadFile(filepath.Join(b.worktree, ".env")); string(data) != "mine\n" {
		t.Errorf("a file that was there: got %q, want it as it was", data)
	}
	if files := b.files(); !slices.Equal(files, []string{".env", "certs/run.sh"}) {
		t.Errorf("files after a copy that was cut off before: got %q, want no rest of it", files)
	}
}

func TestNothingIsBroughtFromOutsideOrToOutside(t *testing.T) {
	b := set(t, ".env", "x", "certs/ca.pem", "ca")
	outside := t.TempDir()
	write(t, outside, "secret", "secret")
	for name, target := range map[string]string{"odd-absolute": filepath.Join(outside, "secret"), "odd-up": "../../secret", "odd-inside": ".env"} {
		if err := os.Symlink(target, filepath.Join(b.repo, name)); err != nil {
			t.Skip(err)
		}
	}
	got := b.bring(project.Project{Copy: []string{"odd*"}, Link: []string{"../app", "/etc", ".git", ".", "odd-absolute"}})
	if files := b.files(); !slices.Equal(files, []string{"odd-inside"}) || len(got.Notes) != 7 {
		t.Errorf("Bring of links that lead outside: got %q with the notes %q, want odd-inside alone and seven notes", files, got.Notes)
	}

	if err := os.Symlink(outside, filepath.Join(b.worktree, "certs")); err != nil {
		t.Fatal(err)
	}
	if _, err := project.Bring(t.Context(), b.git, b.repo, b.worktree, project.Project{Copy: []string{"certs"}}); err == nil {
		t.Error("Bring into a link that leads outside: got no error, want one")
	}
	if list, _ := os.ReadDir(outside); len(list) != 1 {
		t.Errorf("files outside: got %v, want the one that was there", list)
	}
}

func TestLinkedFoldersAreNotOfferedForACommit(t *testing.T) {
	b := set(t, "node_modules/x/index.js", "x", ".env", "x", "certs/ca.pem", "ca")
	got := b.bring(project.Project{Link: []string{"node_modules/", "./.env", "missing", "code.go"}})
	if got.Linked != 2 || len(got.Notes) != 2 {
		t.Errorf("Bring: got %+v, want two links and two notes", got)
	}
	if target, err := os.Readlink(filepath.Join(b.worktree, "node_modules")); err != nil || target != filepath.Join(b.repo, "node_modules") {
		t.Errorf("node_modules of the worktree: got a link to %q, %v; want one to the repository's", target, err)
	}
	if said := b.do(b.worktree, "status", "--porcelain"); said != "" {
		t.Errorf("git status in the worktree: got %q, want nothing", said)
	}
	if again := b.bring(project.Project{Link: []string{"node_modules"}}); again.Linked != 0 || len(again.Notes) != 0 {
		t.Errorf("Bring again: got %+v, want nothing to do", again)
	}
	b.do(b.repo, "worktree", "remove", "--force", b.worktree)
	if _, err := os.Stat(filepath.Join(b.repo, "node_modules", "x", "index.js")); err != nil {
		t.Errorf("the repository's node_modules after the worktree was removed: got %v, want it whole", err)
	}
}

func TestTooMuchIsNotCopiedAtAll(t *testing.T) {
	b := set(t, "certs/small", "x")
	f, err := os.Create(filepath.Join(b.repo, "certs", "large"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(2<<30), f.Close()); err != nil {
		t.Fatal(err)
	}
	_, err = project.Bring(t.Context(), b.git, b.repo, b.worktree, project.Project{Copy: []string{"certs"}})
	if much, is := errors.AsType[*project.TooMuchError](err); !is || much.Files != 2 || len(b.files()) != 0 {
		t.Errorf("Bring of 2 GiB: got %v and %q, want a TooMuchError of two files, and no file", err, b.files())
	}
}
