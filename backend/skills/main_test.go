package skills

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"deskhand/backend/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fixture is a library with its own home and working directory.
type fixture struct {
	*Library
	t    *testing.T
	home string
	dir  string // working directory of agents
	data string
}

func open(t *testing.T) *fixture {
	t.Helper()
	d := &fixture{t: t, home: t.TempDir(), dir: real(t, t.TempDir()), data: t.TempDir()}
	d.reopen()
	return d
}

func real(t *testing.T, dir string) string {
	t.Helper()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// reopen opens the library anew, like the next start of the program, without closing the earlier library.
func (d *fixture) reopen() {
	d.t.Helper()
	set, err := proxy.Open(proxy.Config{})
	if err != nil {
		d.t.Fatal(err)
	}
	l, err := Open(d.t.Context(), Config{Dir: d.data, Beside: set, Environ: func(context.Context) []string { return d.environ() }})
	if err != nil {
		d.t.Fatal(err)
	}
	d.Library = l
	d.t.Cleanup(func() {
		if err := l.Close(); err != nil {
			d.t.Error(err)
		}
		if err := set.Close(); err != nil {
			d.t.Error(err)
		}
	})
}

func (d *fixture) environ() []string { return homely(d.home) }

func homely(home string) []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "XDG_CONFIG_HOME=" + filepath.Join(home, ".config"), "GIT_CONFIG_NOSYSTEM=1"}
}

// entry returns an entry with these sources.
func entry(sources ...Source) Entry { return Entry{Name: "mine", Sources: sources} }

// completed returns Complete of an entry that must not fail.
func (d *fixture) completed(e Entry) State {
	d.t.Helper()
	s := d.Complete(d.t.Context(), d.dir, e)
	if s.State != Resolved {
		d.t.Fatalf("Complete(%+v): got state %s (%s), want %s", e, s.State, s.Detail, Resolved)
	}
	return s
}

// skill returns the skill of that name.
func skill(t *testing.T, s State, name string) Skill {
	t.Helper()
	i := slices.IndexFunc(s.Skills, func(s Skill) bool { return s.Name == name })
	if i < 0 {
		t.Fatalf("no skill %s in %+v (%s)", name, s.Skills, s.Detail)
	}
	return s.Skills[i]
}

func (d *fixture) read(s Skill, file string) string {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(d.cache().content(s), file))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(data)
}

// manualOf returns the text of a SKILL.md.
func manualOf(name string) string {
	return "---\nname: " + name + "\ndescription: What " + name + " does.\n---\n\nDo it.\n"
}

// tree is files by path; a value with the prefix "→" is a link, with "!" an executable.
type tree map[string]string

func (f tree) write(t *testing.T, dir string) {
	t.Helper()
	for name, text := range f {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(text, "→"); ok {
			err = os.Symlink(target, file)
		} else if program, ok := strings.CutPrefix(text, "!"); ok {
			err = os.WriteFile(file, []byte(program), 0o755)
		} else {
			err = os.WriteFile(file, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// repo is a real repository.
type repo struct {
	t   *testing.T
	dir string
}

func newRepo(t *testing.T, files tree) *repo {
	t.Helper()
	r := &repo{t, real(t, t.TempDir())}
	r.git("init", "--quiet", "--initial-branch=main", ".")
	r.commit(files)
	return r
}

func (r *repo) git(args ...string) string {
	r.t.Helper()
	return gitIn(r.t, r.dir, "", args...)
}

func gitIn(t *testing.T, dir, in string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "protocol.file.allow=always"}, args...)...)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, homely(t.TempDir()), strings.NewReader(in)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit commits files and returns the commit's id.
func (r *repo) commit(files tree) string {
	r.t.Helper()
	files.write(r.t, r.dir)
	r.git("add", "--all", ".")
	r.git("commit", "--quiet", "--allow-empty", "--message=x")
	return r.git("rev-parse", "HEAD")
}

func (r *repo) source() Source { return Source{Type: "git", Source: "file://" + r.dir} }

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

func problems(s State) string {
	var list []string
	for _, sk := range s.Skills {
		list = append(list, fmt.Sprintf("%s: %s", sk.Name, sk.Problem))
	}
	return strings.Join(list, "\n")
}
