package git

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"deskhand/backend/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestFindTakesAbsoluteDirectoriesAlone(t *testing.T) {
	here, other, file := t.TempDir(), t.TempDir(), "git"
	if runtime.GOOS == "windows" {
		file = "git.exe"
	}
	t.Chdir(here)
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	// A directory of that name, or a file that is not executable, does not count.
	if err := os.MkdirAll(filepath.Join(other, "folder", file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, file), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	list := func(dirs ...string) []string {
		return []string{"PATH=" + here, "PATH=" + strings.Join(dirs, string(filepath.ListSeparator))}
	}
	for _, path := range [][]string{{"."}, {""}, {filepath.Join(other, "folder")}} {
		if got, err := find(list(path...)); !errors.Is(err, ErrAbsent) {
			t.Errorf("find in PATH %q: got %q, %v, want ErrAbsent", path, got, err)
		}
	}
	if runtime.GOOS != "windows" {
		if got, err := find(list(other, here)); err != nil || got != filepath.Join(here, file) {
			t.Errorf("find: got %q, %v, want the file in %s", got, err, here)
		}
	}
	if err := Installed(nil); !errors.Is(err, ErrAbsent) {
		t.Errorf("Installed without PATH: got %v, want ErrAbsent", err)
	}
}

func TestEnvironKeepsHowOthersAreReached(t *testing.T) {
	t.Parallel()
	absolute := filepath.Join(t.TempDir(), "bin")
	given := []string{
		"GIT_DIR=/x", "git_work_tree=/y", "GIT_EXTERNAL_DIFF=./evil", "GIT_SSH=ssh", "LC_ALL=de_DE", "LANGUAGE=de", "HOME=/home",
		"PATH=." + string(filepath.ListSeparator) + absolute + string(filepath.ListSeparator) + "bin",
	}
	env := Command{Whose: Theirs, Environ: given, Fetch: Safe}.environ([][2]string{{"filter.a=b.clean", ""}})
	for _, kv := range []string{"GIT_SSH=ssh", "HOME=/home", "LC_ALL=C", "PATH=" + absolute, "GIT_CONFIG_KEY_0=filter.a=b.clean", "GIT_CONFIG_VALUE_0=", "GIT_CONFIG_COUNT=1", "GIT_ALLOW_PROTOCOL=" + Safe} {
		if !slices.Contains(env, kv) {
			t.Errorf("environment: got %q, want %s in it", env, kv)
		}
	}
	for _, name := range []string{"GIT_DIR=", "git_work_tree=", "GIT_EXTERNAL_DIFF=", "LANGUAGE="} {
		if slices.ContainsFunc(env, func(kv string) bool { return strings.HasPrefix(kv, name) }) {
			t.Errorf("environment: got %q, want no %s", env, name)
		}
	}
	for _, whose := range []Whose{Ours, Unapproved} {
		env := Command{Whose: whose, Environ: given, Fetch: Safe, GitDir: "/ours"}.environ(nil)
		if !slices.Contains(env, "GIT_ALLOW_PROTOCOL=none") || !slices.Contains(env, "GIT_NO_LAZY_FETCH=1") {
			t.Errorf("environment of %d: got %q, want no protocol", whose, env)
		}
	}
}

// bench is a repository, a home with its own configuration, and a file in which programs leave a mark when they run.
type bench struct {
	t         *testing.T
	processes *proxy.Set
	environ   []string
	repo      string
	marker    string
}

func set(t *testing.T) *bench {
	t.Helper()
	if err := Installed(os.Environ()); err != nil {
		t.Skip(err)
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
	home := t.TempDir()
	b := &bench{t: t, processes: processes, repo: filepath.Join(home, "repo"), marker: filepath.Join(home, "ran")}
	b.environ = append(slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "GIT_") }), "HOME="+home, "XDG_CONFIG_HOME="+home, "GIT_CONFIG_NOSYSTEM=1")
	if err := os.Mkdir(b.repo, 0o700); err != nil {
		t.Fatal(err)
	}
	b.must(Ours, "init", "--quiet", b.repo)
	b.write("code.go", "one\n")
	b.must(Theirs, "add", "--all")
	tree := b.must(Theirs, "write-tree")
	b.must(Theirs, "update-ref", "HEAD", b.must(Theirs, "commit-tree", "-m", "first", tree))
	return b
}

func (b *bench) write(name, text string) {
	b.t.Helper()
	file := filepath.Join(b.repo, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o700); err != nil { //nolint:gosec // hooks are run
		b.t.Fatal(err)
	}
}

func (b *bench) run(c Command, args ...string) (string, error) {
	b.t.Helper()
	var out []byte
	c.Environ, c.Dir, c.Args = b.environ, b.repo, args
	c.Read = func(r io.Reader) (err error) {
		out, err = io.ReadAll(r)
		return err
	}
	err := Run(b.t.Context(), b.processes, c)
	return strings.TrimSpace(string(out)), err
}

func (b *bench) must(whose Whose, args ...string) string {
	b.t.Helper()
	out, err := b.run(Command{Whose: whose, Fetch: Safe}, args...)
	if err != nil {
		b.t.Fatalf("git %q: %v", args, err)
	}
	return out
}

func (b *bench) ran() string {
	data, err := os.ReadFile(b.marker)
	if err != nil {
		return ""
	}
	_ = os.Remove(b.marker)
	return string(data)
}

func TestRunTellsHowGitEnded(t *testing.T) {
	t.Parallel()
	b := set(t)
	if got, err := b.run(Command{}, "version"); err != nil || !strings.HasPrefix(got, "git version") {
		t.Errorf("git version: got %q, %v", got, err)
	}
	_, err := b.run(Command{Whose: Theirs, GitDir: filepath.Join(b.repo, "none")}, "rev-parse", "--verify", "HEAD")
	if status, is := errors.AsType[*StatusError](err); !is || status.Code != 128 || !errors.Is(err, ErrFailed) || !strings.HasPrefix(err.Error(), "fatal: not a git repository") {
		t.Errorf("git in no repository: got %v, want status 128", err)
	}
	for _, word := range []string{"", "diff", "log", "evil", "-c"} {
		if _, err := b.run(Command{}, word); !errors.Is(err, ErrFailed) {
			t.Errorf("git %q: got %v, want it refused", word, err)
		}
	}
}

// hostile adds every program that a repository can bring along; each writes its name when run.
func (b *bench) hostile() {
	b.t.Helper()
	program := func(name string) string { return fmt.Sprintf("echo %s >>'%s'; cat", name, b.marker) }
	var config strings.Builder
	add := func(section, name string) {
		fmt.Fprintf(&config, "[%s]\n\t%s = %q\n", section, name, program(section+"."+name))
	}
	for section, names := range programs() {
		for _, name := range names {
			switch {
			case name == "*":
				for _, command := range append(commands(), "x") {
					add(section, command)
				}
			case section == "core" || section == "sequence":
				add(section, name)
			default:
				add(section, name)
				fmt.Fprintf(&config, "[%s \"evil\"]\n\t%s = %q\n[%s \"a=b\"]\n\t%s = %q\n", section, name, program(section), section, name, program(section))
			}
		}
	}
	add("core", "fsmonitor")
	config.WriteString("[filter \"evil\"]\n\trequired = true\n[remote \"origin\"]\n\turl = ext::sh -c \"touch x\"\n\tpromisor = true\n[protocol \"ext\"]\n\tallow = always\n[extensions]\n\tpartialClone = origin\n")
	config.WriteString("[hook \"evil\"]\n\tevent = post-index-change\n\tevent = reference-transaction\n[status]\n\tsubmoduleSummary = true\n[submodule \"sub\"]\n\tupdate = !evil\n")
	b.write(".git/more", config.String())
	b.must(Ours, "init", "--quiet", filepath.Join(b.repo, "sub"))
	local, err := os.OpenFile(filepath.Join(b.repo, ".git/config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	defer local.Close()
	if _, err := local.WriteString("[core]\n\trepositoryformatversion = 1\n[include]\n\tpath = more\n"); err != nil {
		b.t.Fatal(err)
	}
	for _, hook := range []string{"pre-commit", "post-checkout", "post-index-change", "reference-transaction", "fsmonitor-watchman", "pre-auto-gc", "post-rewrite"} {
		b.write(".git/hooks/"+hook, "#!/bin/sh\necho hook "+hook+" >>'"+b.marker+"'\n")
	}
	b.write(".git/info/attributes", "*.txt filter=a=b diff=evil merge=evil\n")
	b.write(".gitattributes", "*.go filter=evil diff=evil merge=evil\n")
	b.write("code.go", "two\n") // the same length as before, so that git must read the file
	b.write("new.txt", "new\n")
}

func TestNoCommandStartsWhatTheRepositoryNames(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the programs of this repository are lines for a shell")
	}
	b := set(t)
	head := b.must(Theirs, "rev-parse", "HEAD")
	b.hostile()
	copied := filepath.Join(filepath.Dir(b.repo), "linked")
	for _, args := range [][]string{
		{"add", "--", "new.txt", "code.go", ".gitattributes"},
		{"cat-file", "--filters", "HEAD:code.go"},
		{"cat-file", "--textconv", "HEAD:code.go"},
		{"check-attr", "filter", "code.go"},
		{"check-ignore", "code.go"},
		{"check-ref-format", "--branch", "x"},
		{"commit-tree", "-m", "x", "HEAD^{tree}"},
		{"config", "--list"},
		{"diff-tree", "-r", "-p", "HEAD", head},
		{"for-each-ref"},
		{"hash-object", "code.go"},
		{"ls-files", "-z", "--modified", "--others"},
		{"ls-tree", "HEAD"},
		{"read-tree", "-m", "-u", "HEAD"},
		{"reflog", "show", "HEAD"},
		{"rev-list", "HEAD"},
		{"rev-parse", "--show-toplevel"},
		{"show-ref"},
		{"status", "--porcelain=v1", "--ignore-submodules=dirty"},
		{"status"},
		{"symbolic-ref", "HEAD"},
		{"update-index", "--refresh"},
		{"update-ref", "refs/deskhand/x", head},
		{"worktree", "add", "--quiet", "-b", "made", copied, head},
		{"worktree", "list"},
		{"worktree", "remove", "--force", copied},
		{"write-tree"},
		{"gc", "--quiet"},
		{"cat-file", "-t", strings.Repeat("1", 40)},
		{"ls-remote", "origin"},
		{"fetch", "origin"},
	} {
		for _, whose := range []Whose{Unapproved, Theirs} {
			// Except for the first, the commands may fail here: the test checks which programs run.
			_, err := b.run(Command{Whose: whose, Fetch: Safe}, args...)
			if args[0] == "add" {
				if got := b.must(whose, "cat-file", "-p", ":new.txt"); err != nil || got != "new" {
					t.Errorf("git add: got %v, and %q kept of new.txt, want new", err, got)
				}
			}
			if got := b.ran(); got != "" {
				t.Errorf("git %q in a repository that is %d (%v): got these programs run, want none:\n%s", args, whose, err, got)
			}
		}
	}
	list, err := Foreign(t.Context(), b.processes, Command{Whose: Theirs, Environ: b.environ, Dir: b.repo})
	if keys := fmt.Sprint(list); err != nil || !strings.Contains(keys, "filter.a=b.clean") || !strings.Contains(keys, "core.fsmonitor") {
		t.Errorf("Foreign: got %v, %v, want the settings of the included file in it", list, err)
	}
}

// TestQuestionsAboutRefsStartNothing: the configuration of the repository is not read before them. The commit that they need is missing, so git
// would get it in each way in which a repository can say that it is got.
func TestQuestionsAboutRefsStartNothing(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the programs of this repository are lines for a shell")
	}
	for _, url := range []string{"ssh://localhost/x", "ext::sh -c echo% ran>>%s", "../other", "https://localhost:1/x"} {
		b := set(t)
		head := b.must(Theirs, "rev-parse", "HEAD")
		program := "echo ran >>" + b.marker + "; false"
		for key, value := range map[string]string{
			"remote.origin.url": strings.ReplaceAll(url, "%s", b.marker), "remote.origin.uploadpack": program, "core.sshCommand": program, "core.askPass": program, "credential.helper": "!" + program,
			"gpg.program": program, "gpg.ssh.program": program, "core.repositoryFormatVersion": "1", "extensions.partialClone": "origin", "remote.origin.promisor": "true", "core.pager": program, "core.fsmonitor": program,
		} {
			b.must(Ours, "config", "--file", ".git/config", key, value)
		}
		if err := os.Remove(filepath.Join(b.repo, ".git", "objects", head[:2], head[2:])); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{
			AskBranches(),
			{"check-ref-format", "--branch", "@{-1}"},
			{"for-each-ref", "--format=%(objecttype) %(objectname) %(*objectname) %(subject) %(upstream:track) %(ahead-behind:HEAD)"},
			{"for-each-ref", "--format=%(signature)"},
			{"rev-parse", "--verify", "HEAD^{commit}"},
			{"rev-parse", "--show-toplevel", "HEAD^{commit}", "--symbolic-full-name", "HEAD"},
			{"rev-parse", "--show-superproject-working-tree"},
			{"rev-parse", "HEAD:code.go", ":/first", "main@{1}"},
			{"show-ref", "--dereference"},
			{"symbolic-ref", "--short", "HEAD"},
		} {
			_, err := b.run(Command{Whose: Unapproved, Fetch: Safe}, args...)
			if got := b.ran(); got != "" {
				t.Errorf("git %q with the remote %s (%v): got a program run, want none", args, url, err)
			}
		}
	}
}

// TestJudgeEndsARunBeforeGit.
func TestJudgeEndsARunBeforeGit(t *testing.T) {
	t.Parallel()
	b := set(t)
	b.must(Theirs, "config", "filter.x.smudge", "./evil")
	no := errors.New("no")
	for _, whose := range []Whose{Unapproved, Theirs} {
		var keys []string
		_, err := b.run(Command{Whose: whose, Judge: func(list []Setting) error {
			for _, s := range list {
				keys = append(keys, s.Key)
			}
			return no
		}}, "symbolic-ref", "HEAD", "refs/heads/other")
		if at := b.must(Theirs, "symbolic-ref", "HEAD"); !errors.Is(err, no) || !slices.Equal(keys, []string{"filter.x.smudge"}) || at == "refs/heads/other" {
			t.Errorf("a run that Judge refuses, in a repository that is %d: got %v, judged %q, HEAD at %s; want %v, filter.x.smudge, and git not run", whose, err, keys, at, no)
		}
	}
}

// A program that a person has configured for all repositories runs, even if the repository names the same program; before an approval it
// does not.
func TestFiltersOfThePersonRun(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the filter is a line for a shell")
	}
	b := set(t)
	clean := "echo ran >>'" + b.marker + "'; tr a-z A-Z"
	b.must(Theirs, "config", "--global", "filter.upper.clean", clean)
	b.write(".gitattributes", "*.txt filter=upper\n")
	for _, local := range []string{"", clean, "echo no >>'" + b.marker + "'"} {
		if local != "" {
			b.must(Theirs, "config", "filter.upper.clean", local)
		}
		b.write("a.txt", "abc\n")
		for _, whose := range []Whose{Unapproved, Theirs} {
			want := ""
			if whose == Theirs {
				want = "ran\n"
			}
			if local != "" && local != clean {
				want = ""
			}
			b.must(whose, "hash-object", "a.txt")
			if got := b.ran(); got != want {
				t.Errorf("filter of the person, %q in the repository, %d: got %q run, want %q", local, whose, got, want)
			}
		}
	}
	b.must(Theirs, "config", "--unset", "filter.upper.clean")
	b.must(Theirs, "config", "--global", "filter.upper.clean", "git-nowhere clean %f")
	absent, err := Missing(t.Context(), b.processes, Command{Whose: Theirs, Environ: b.environ, Dir: b.repo})
	if err != nil || len(absent) != 1 || absent[0].Setting.Key != "filter.upper.clean" || absent[0].Program != "git-nowhere" {
		t.Errorf("Missing: got %+v, error %v, want filter.upper.clean and git-nowhere alone", absent, err)
	}
}

func TestSettingsThatStartPrograms(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]bool{
		"core.fsmonitor ./x": true, "core.fsmonitor true": false, "core.fsmonitor ": false, "core.hookspath .husky/_": true, "core.bare false": false,
		"core.sshcommand ssh -i key": true, "core.autocrlf input": false, "alias.co checkout": false, "alias.x !sh -c x": true, "alias.g grep -O./x": true,
		"alias.st status -sb": false, "alias.r rebase -x ./x": true, "filter.lfs.clean git-lfs clean -- %f": false, "filter.x.clean ./x": true,
		"filter.x.required true": false, "credential.helper store": false, "credential.helper !x": true, "credential.https://x.helper /bin/x": true,
		"remote.origin.url https://example.org/a.git": false, "remote.origin.url ext::sh -c x": true, "remote.origin.uploadpack ./x": true,
		"remote.origin.fetch +refs/heads/*:refs/remotes/origin/*": false, "branch.main.remote origin": false, "user.name Ada": false,
		"diff.x.textconv ./x": true, "diff.external ./x": true, "merge.x.driver ./x %A": true, "pager.log false": false, "pager.log ./x": true,
		"protocol.ext.allow always": true, "protocol.https.allow always": false, "submodule.a.update !x": true, "submodule.a.update checkout": false,
		"url.ext::sh -c x.insteadof https://x": true, "url.git@example.org:.insteadof https://example.org/": false, "gpg.ssh.program ./x": true,
		"hook.a.command ./x": true, "hook.a.event pre-commit": false, "lfs.url https://x": false, "lfs.extension.x.clean ./x": true, "sequence.editor ./x": true,
	} {
		key, value, _ := strings.Cut(text, " ")
		if strings.HasPrefix(key, "url.ext::sh") {
			key, value = "url.ext::sh -c x.insteadof", "https://x"
		}
		if got := (Setting{Key: key, Value: value}).Starts(); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// Only this package starts git: all other code goes through Run, which turns off the programs of a repository.
func TestNobodyElseStartsGit(t *testing.T) {
	t.Parallel()
	names := func(e ast.Expr) bool {
		lit, is := e.(*ast.BasicLit)
		return is && lit.Kind == token.STRING && slices.Contains([]string{"git", "git.exe"}, strings.Trim(lit.Value, "\"`"))
	}
	for _, root := range []string{"../../backend", "../../app"} {
		err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(filepath.ToSlash(name), "../../backend/git/") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			ast.Inspect(file, func(n ast.Node) bool {
				starts := false
				switch n := n.(type) {
				case *ast.CallExpr:
					callee, is := n.Fun.(*ast.SelectorExpr)
					starts = is && slices.Contains([]string{"Command", "CommandContext", "LookPath", "StartProcess"}, callee.Sel.Name) && slices.ContainsFunc(n.Args, names)
				case *ast.KeyValueExpr:
					key, is := n.Key.(*ast.Ident)
					starts = is && slices.Contains([]string{"Path", "Command", "Program"}, key.Name) && names(n.Value)
				case *ast.CompositeLit:
					starts = len(n.Elts) > 1 && names(n.Elts[0]) && !strings.Contains(filepath.ToSlash(name), "backend/rules/") && slices.ContainsFunc(n.Elts, func(e ast.Expr) bool {
						lit, is := e.(*ast.BasicLit)
						return is && slices.Contains(commands(), strings.Trim(lit.Value, "\"`"))
					})
				}
				if starts {
					t.Errorf("%s: git is started here, want it started by package git alone", files.Position(n.Pos()))
				}
				return true
			})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
