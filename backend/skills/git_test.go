package skills

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"deskhand/backend/testkit"
)

func TestARefMovesOnlyWhenAsked(t *testing.T) {
	d := open(t)
	r := newRepo(t, tree{"pdf/SKILL.md": manualOf("pdf"), "README.md": "x"})
	first := r.git("rev-parse", "HEAD")
	e := entry(r.source())
	if s := d.Look(t.Context(), d.dir, e); s.State != Unresolved || len(s.Skills) != 0 || s.Commit != "" {
		t.Fatalf("before the first fetch: %+v", s)
	}
	s := d.completed(e)
	if s.Commit != first || skill(t, s, "pdf").Description != "What pdf does." || len(s.Skills[0].Files) != 1 {
		t.Fatalf("after it: %+v", s)
	}
	second := r.commit(tree{"pdf/SKILL.md": manualOf("pdf") + "More.\n"})
	d.reopen()
	for _, s := range []State{d.Look(t.Context(), d.dir, e), d.completed(e), d.Keep(t.Context(), d.dir, e)} {
		if s.Commit != first || s.State != Resolved {
			t.Fatalf("it moved by itself: %+v", s)
		}
	}
	if s, err := d.Fetch(t.Context(), d.dir, e); err != nil || s.Commit != second || !strings.Contains(d.read(s.Skills[0], "SKILL.md"), "More.") {
		t.Fatalf("fetched anew: %+v %v", s, err)
	}
	if s := d.Look(t.Context(), d.dir+"/other", e); s.State != Unresolved {
		t.Fatalf("another directory has the pin too: %+v", s)
	}
}

func TestRefs(t *testing.T) {
	d := open(t)
	r := newRepo(t, tree{"SKILL.md": manualOf("one")})
	one := r.git("rev-parse", "HEAD")
	r.git("tag", "light")
	r.git("tag", "--annotate", "--message=x", "v1")
	r.git("tag", "both")
	two := r.commit(tree{"SKILL.md": manualOf("two")})
	r.git("branch", "dev/x")
	r.git("branch", "both")
	for ref, want := range map[string]string{"": two, "light": one, "v1": one, "both": two, "dev/x": two, one: one, "refs/tags/both": one, "main": two} {
		src := r.source()
		src.Ref = ref
		if s := d.completed(entry(src)); s.Commit != want {
			t.Errorf("ref %q: %s, want %s", ref, s.Commit, want)
		}
		local := Source{Type: "local", Source: r.dir, Ref: ref}
		if s := d.completed(entry(local)); ref != "" && s.Commit != want {
			t.Errorf("ref %q of a folder: %s, want %s", ref, s.Commit, want)
		}
	}
	for ref, want := range map[string]string{
		"none": "no branch or tag none", one[:7]: "40 characters", "-x": "an option", "--upload-pack=touch x": "an option", "a b": "no name",
		"ma*": "no name", "main~1": "no name", "a..b": "no name", "main:x": "no name", strings.Repeat("0", 40): "",
	} {
		src := r.source()
		src.Ref = ref
		s := d.Complete(t.Context(), d.dir, entry(src))
		if s.State != Failed || !strings.Contains(s.Detail, want) {
			t.Errorf("ref %q: %s: %s", ref, s.State, s.Detail)
		}
	}
}

func TestAddresses(t *testing.T) {
	d := open(t)
	marker := filepath.Join(d.home, "ran")
	for _, s := range []Source{
		{Type: "git", Source: "ext::sh -c touch% " + marker},
		{Type: "git", Source: "ext::touch " + marker},
		{Type: "git", Source: "-uroot"},
		{Type: "git", Source: "--upload-pack=touch " + marker},
		{Type: "git", Source: "fd::17/x"},
		{Type: "git", Source: "http://example.com/x.git"},
		{Type: "git", Source: "git://example.com/x.git"},
		{Type: "git", Source: "ftp://example.com/x.git"},
		{Type: "git", Source: "file://host/x.git"},
		{Type: "git", Source: "https://user:secret@example.com/x.git"},
		{Type: "git", Source: "https://token@example.com/x.git"},
		{Type: "git", Source: "https:///x.git"},
		{Type: "git", Source: "ssh://-oProxyCommand=touch/x"},
		{Type: "git", Source: "host:-x"},
		{Type: "git", Source: "relative/path"},
		{Type: "github", Source: "owner"},
		{Type: "github", Source: "-owner/name"},
		{Type: "github", Source: "owner/.."},
		{Type: "github", Source: "owner/name/more"},
		{Type: "github", Source: "https://example.com/owner/name"},
		{Type: "local", Source: "-x"},
		{Type: "other", Source: "x"},
		{Type: "local", Source: ".", Subpath: ".."},
		{Type: "github", Source: "a/b", Subpath: "x/../../y"},
		{Type: "github", Source: "a/b", Ref: "-x"},
	} {
		if _, err := s.place(d.dir, "https://github.com/"); !errors.Is(err, ErrEntry) {
			t.Errorf("place of %+v: got %v, want %v", s, err, ErrEntry)
		} else if strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "token") {
			t.Errorf("%+v: the error tells the secret: %v", s, err)
		}
		if got := d.Complete(t.Context(), d.dir, entry(s)); got.State != Failed {
			t.Errorf("Complete(%+v): got %+v, want failed", s, got)
		}
	}
	if exists(marker) {
		t.Error("a program ran")
	}
	for address, protocols := range map[string]string{
		"https://example.com/a/b.git": "https:ssh", "ssh://git@example.com:22/a": "ssh", "git@example.com:a/b.git": "ssh", "example.com:a/b": "ssh",
		"http://127.0.0.1:80/a": "http", "http://localhost/a": "http", "http://[::1]:3/a": "http", "file:///a/b": "file",
	} {
		if p, err := (Source{Type: "git", Source: address}).place(d.dir, ""); err != nil || p.address != address || p.protocols != protocols {
			t.Errorf("place of %s: got %+v, %v, want protocols %s", address, p, err, protocols)
		}
	}
	for _, name := range []string{"anthropics/skills", "https://github.com/anthropics/skills", "https://github.com/anthropics/skills.git", "https://github.com/anthropics/skills/"} {
		p, err := (Source{Type: "github", Source: name}).place(d.dir, "https://github.com/")
		if err != nil || p.address != "https://github.com/anthropics/skills.git" || p.protocols != "https:ssh" {
			t.Errorf("place of %s: got %+v, %v, want the repository on GitHub", name, p, err)
		}
	}
}

// The person's git may be configured to run programs; neither those nor any file of the repository runs during a fetch.
func TestNothingOfTheRepositoryRuns(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("hooks are shell scripts here")
	}
	d := open(t)
	marker := filepath.Join(d.home, "ran")
	script := "#!/bin/sh\necho \"$0 $*\" >> '" + marker + "'\ncat\n"
	hooks := tree{}
	for _, name := range []string{"post-checkout", "reference-transaction", "post-merge", "pre-auto-gc", "post-index-change", "fsmonitor-watchman", "post-update"} {
		hooks["hooks/"+name] = "!" + script
		hooks["template/hooks/"+name] = "!" + script
	}
	hooks["evil"] = "!" + script
	hooks.write(t, d.home)
	config := fmt.Sprintf(`[core]
	hooksPath = %[1]s/hooks
	fsmonitor = %[1]s/evil
[init]
	templateDir = %[1]s/template
[filter "evil"]
	smudge = %[1]s/evil
	clean = %[1]s/evil
	process = %[1]s/evil
	required = true
[filter "lfs"]
	smudge = %[1]s/evil
	process = %[1]s/evil
	required = true
[diff "evil"]
	textconv = %[1]s/evil
[submodule]
	recurse = true
[fetch]
	recurseSubmodules = true
`, d.home)
	tree{".gitconfig": config}.write(t, d.home)
	pointer := "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n"
	r := newRepo(t, tree{
		"s/SKILL.md": manualOf("s"), "s/data.bin": pointer, "s/crlf.txt": "a\n", "s/id.txt": "$Id$\n", "s/hidden.txt": "here",
		".gitattributes": "* filter=evil diff=evil\n*.bin filter=lfs\ncrlf.txt eol=crlf text\nid.txt ident\nhidden.txt export-ignore\n",
		".lfsconfig":     "[lfs]\n\turl = http://127.0.0.1:1/\n",
	})
	r.git("config", "uploadpack.packObjectsHook", filepath.Join(d.home, "evil"))
	s := d.completed(entry(r.source()))
	if exists(marker) {
		data, _ := os.ReadFile(marker)
		t.Fatalf("something ran: %s", data)
	}
	sk := skill(t, s, "s")
	for file, want := range map[string]string{"data.bin": pointer, "crlf.txt": "a\n", "id.txt": "$Id$\n", "hidden.txt": "here"} {
		if got := d.read(sk, file); got != want {
			t.Errorf("%s: got %q, want %q", file, got, want)
		}
	}
}

func TestSubmodulesAreNotFetched(t *testing.T) {
	d := open(t)
	inner := newRepo(t, tree{"SKILL.md": manualOf("inner")})
	r := newRepo(t, tree{"a/SKILL.md": manualOf("a"), "b/SKILL.md": manualOf("b")})
	r.git("submodule", "--quiet", "add", inner.dir, "a/inner")
	r.git("submodule", "--quiet", "add", inner.dir, "elsewhere")
	r.commit(nil)
	s := d.completed(entry(r.source()))
	if len(s.Skills) != 2 || !strings.Contains(skill(t, s, "a").Problem, "another repository") || skill(t, s, "b").Problem != "" {
		t.Errorf("got %s, want the submodule in a refused", problems(s))
	}
}

func TestSubpaths(t *testing.T) {
	d := open(t)
	outside := t.TempDir()
	tree{"SKILL.md": manualOf("outside")}.write(t, outside)
	r := newRepo(t, tree{
		"a/b/one/SKILL.md": manualOf("one"), "a/two/SKILL.md": manualOf("two"), "out": "→" + outside, "up": "→../..", "in": "→a", "file": "x",
	})
	for _, kind := range []string{"git", "local"} {
		at := func(subpath string) State {
			return d.Complete(t.Context(), d.dir, entry(Source{Type: kind, Source: r.dir, Subpath: subpath}))
		}
		if s := at("a/b"); s.State != Resolved || len(s.Skills) != 1 || s.Skills[0].Name != "one" {
			t.Errorf("%s: a/b: got %+v, want the skill one", kind, s)
		}
		if s := at("a/b/one"); s.State != Resolved || len(s.Skills) != 1 {
			t.Errorf("%s: the skill itself: %+v", kind, s)
		}
		for _, subpath := range []string{"..", "a/../..", "/", "/etc", outside, "out", "up", "file", "none", "a:b", `..\x`} {
			if s := at(subpath); s.State != Failed {
				t.Errorf("%s: subpath %q: %+v", kind, subpath, s)
			}
		}
	}
	if s := d.Complete(t.Context(), d.dir, entry(Source{Type: "git", Source: r.dir, Subpath: "in"})); s.State != Failed {
		t.Errorf("a link in git: %+v", s)
	}
}

func TestARepositoryOfManyFiles(t *testing.T) {
	d := open(t)
	r := newRepo(t, tree{"deep/s/SKILL.md": manualOf("s"), "deep/s/run.sh": "!#!/bin/sh\n"})
	var in strings.Builder
	in.WriteString("blob\nmark :1\ndata 1\nx\ncommit refs/heads/main\nmark :2\ncommitter A <a@example.com> 1 +0000\ndata 1\nx\nfrom refs/heads/main^0\n")
	for n := range 100_000 {
		fmt.Fprintf(&in, "M 100644 :1 many/%d/%d/f%d.txt\n", n%100, n%1000, n)
	}
	gitIn(t, r.dir, in.String(), "fast-import", "--quiet")
	begun := time.Now()
	s := d.completed(entry(r.source()))
	t.Logf("100,000 files in %s", time.Since(begun))
	if len(s.Skills) != 1 || len(s.Skills[0].Files) != 2 {
		t.Errorf("got %+v, want one skill with 2 files", s)
	}
	if n := sizeOf(filepath.Join(d.data, "content")); n > 10_000 {
		t.Errorf("%d bytes are kept", n)
	}
	if left, _ := os.ReadDir(filepath.Join(d.data, "tmp")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

func TestTooLargeARepositoryIsGivenUp(t *testing.T) {
	d := open(t)
	d.most = 64 << 10
	r := newRepo(t, tree{"SKILL.md": manualOf("s")})
	noise := make([]byte, 1<<20)
	for i := range noise { // incompressible
		noise[i] = byte((i * i * 2654435761) >> 13)
	}
	r.commit(tree{"noise": string(noise)})
	s := d.Complete(t.Context(), d.dir, entry(r.source()))
	if s.State != Failed || !strings.Contains(s.Detail, "too much") {
		t.Errorf("got %+v, want failed with too much", s)
	}
	if left, _ := os.ReadDir(filepath.Join(d.data, "tmp")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
}

// serve serves a repository over smart HTTP with git's own program.
func serve(t *testing.T, r *repo) *httptest.Server {
	t.Helper()
	exe := filepath.Join(r.git("--exec-path"), "git-http-backend")
	if !exists(exe) {
		t.Skip("there is no git-http-backend")
	}
	server := httptest.NewServer(&cgi.Handler{
		Path: exe, Env: []string{"GIT_PROJECT_ROOT=" + filepath.Dir(r.dir), "GIT_HTTP_EXPORT_ALL=1", "HOME=" + t.TempDir()},
	})
	t.Cleanup(server.Close)
	return server
}

func TestOverHTTP(t *testing.T) {
	d := open(t)
	r := newRepo(t, tree{"old/SKILL.md": manualOf("old")})
	old := r.git("rev-parse", "HEAD")
	now := r.commit(tree{"skills/pdf/SKILL.md": manualOf("pdf"), "skills/pdf/x.py": "print()"})
	bare := &repo{t, filepath.Join(t.TempDir(), "owner", "name.git")}
	gitIn(t, t.TempDir(), "", "clone", "--quiet", "--bare", r.dir, bare.dir)
	bare.git("update-server-info")
	bare.git("repack", "-a", "-d", "-q")

	smart := serve(t, &repo{t, filepath.Dir(bare.dir)})
	d.cfg.GitHub = smart.URL + "/"
	hub := Source{Type: "github", Source: "owner/name", Subpath: "skills"}
	if s := d.completed(entry(hub)); s.Commit != now || len(s.Skills) != 1 {
		t.Errorf("github: %+v", s)
	}
	hub.Ref, hub.Subpath = old, ""
	if s := d.completed(entry(hub)); s.Commit != old {
		t.Errorf("github, at a commit: %+v", s)
	}

	dumb := httptest.NewServer(http.FileServer(http.Dir(filepath.Dir(bare.dir))))
	defer dumb.Close()
	for ref, want := range map[string]string{"": now, "main": now, old: old} {
		if s := d.completed(entry(Source{Type: "git", Source: dumb.URL + "/name.git", Ref: ref})); s.Commit != want {
			t.Errorf("plain files, ref %q: %+v", ref, s)
		}
	}
	if s := d.Complete(t.Context(), d.dir, entry(Source{Type: "git", Source: dumb.URL + "/none.git"})); s.State != Failed || !strings.Contains(s.Detail, "not found") {
		t.Errorf("none: %+v", s)
	}
}

// A redirect to another protocol is not followed.
func TestRedirects(t *testing.T) {
	d := open(t)
	r := newRepo(t, tree{"SKILL.md": manualOf("s")})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		w.Header().Set("Location", "file://"+r.dir)
		w.WriteHeader(http.StatusMovedPermanently)
	}))
	defer server.Close()
	if s := d.Complete(t.Context(), d.dir, entry(Source{Type: "git", Source: server.URL + "/x.git"})); s.State != Failed {
		t.Errorf("Complete: got %+v, want failed", s)
	}
}

func TestACancelledFetchLeavesNothing(t *testing.T) {
	d := open(t)
	asked, release := make(chan struct{}, 10), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- struct{}{}; <-release }))
	defer server.Close()
	defer close(release)
	e := entry(Source{Type: "git", Source: server.URL + "/x.git"})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	if _, err := d.Fetch(ctx, d.dir, e); !errors.Is(err, context.Canceled) {
		t.Fatalf("Fetch: got %v, want %v", err, context.Canceled)
	}
	if s := d.Look(t.Context(), d.dir, e); s.State != Unresolved { // a cancelled fetch is no failure
		t.Errorf("Look: got %+v, want unresolved", s)
	}
	if left, _ := os.ReadDir(filepath.Join(d.data, "tmp")); len(left) > 0 {
		t.Errorf("left over: %v", left)
	}
	d.patience = 300 * time.Millisecond
	if s := d.Complete(t.Context(), d.dir, e); s.State != Failed || !strings.Contains(s.Detail, "more than 300ms") {
		t.Errorf("time-out: %+v", s)
	}
	if s := d.Look(t.Context(), d.dir, e); s.State != Failed || !strings.Contains(s.Detail, "300ms") {
		t.Errorf("the failure is not remembered: %+v", s)
	}
	// The end of the library ends a fetch, too.
	d.patience = time.Minute
	for len(asked) > 0 { // requests of the cancelled fetch
		<-asked
	}
	done := make(chan State, 1)
	go func() { done <- d.Complete(context.WithoutCancel(t.Context()), d.dir, e) }()
	<-asked
	d.stop()
	if s := <-done; s.State != Failed {
		t.Errorf("Fetch: got %+v, want failed", s)
	}
}

func TestWithoutGit(t *testing.T) {
	d := open(t)
	r := newRepo(t, tree{"SKILL.md": manualOf("s")})
	empty := t.TempDir()
	d.cfg.Environ = func(context.Context) []string { return []string{"PATH=" + empty} }
	s := d.Complete(t.Context(), d.dir, entry(r.source(), Source{Type: "local", Source: r.dir}))
	if s.State != Failed || !strings.Contains(s.Detail, "git was not found: install it") || !strings.Contains(s.Detail, empty) {
		t.Errorf("Complete without git: got %+v, want git missing in %s", s, empty)
	}
	if skill(t, s, "s").Problem != "" { // a folder needs no git
		t.Errorf("got %s, want no problem", problems(s))
	}
	if notes := d.Link(t.Context(), "u", d.dir, []string{".claude/skills"}, d.Keep(t.Context(), d.dir, entry(Source{Type: "local", Source: r.dir})).Skills); len(notes) > 0 {
		t.Errorf("Link: got the notes %v, want none", notes)
	}
	d.Unlink(t.Context(), "u")
}

func TestADamagedCacheIsMadeAnew(t *testing.T) {
	d := open(t)
	r := newRepo(t, tree{"s/SKILL.md": manualOf("s"), "s/run.sh": "!#!/bin/sh\n", "s/same.sh": "!#!/bin/sh\n"})
	e := entry(r.source())
	s := d.completed(e)
	r.commit(tree{"s/SKILL.md": manualOf("s") + "moved"})
	for _, damage := range []func(dir string) error{
		func(dir string) error { return os.RemoveAll(dir) },
		func(dir string) error {
			return errors.Join(os.Chmod(dir+"/run.sh", 0o700), os.WriteFile(dir+"/run.sh", []byte("#!/bin/evil\n"), 0o700))
		},
		func(dir string) error { return os.WriteFile(dir+"/more", nil, 0o600) },
		func(dir string) error {
			return errors.Join(os.Rename(dir+"/SKILL.md", d.home+"/x"), os.Symlink(d.home+"/x", dir+"/SKILL.md"))
		},
		func(dir string) error {
			return errors.Join(os.Remove(dir+"/same.sh"), os.Symlink("run.sh", dir+"/same.sh")) // would change together with its target
		},
	} {
		if err := damage(d.cache().content(s.Skills[0])); err != nil {
			t.Fatal(err)
		}
		after := d.Keep(t.Context(), d.dir, e)
		if after.State != Resolved || after.Commit != s.Commit || after.Skills[0].Digest != s.Skills[0].Digest {
			t.Fatalf("Keep: got %+v, want the same commit and digest", after)
		}
		if got := d.read(after.Skills[0], "run.sh") + d.read(after.Skills[0], "SKILL.md"); got != "#!/bin/sh\n"+manualOf("s") {
			t.Errorf("files: got %q, want the original text", got)
		}
		if info, err := os.Lstat(d.cache().content(s.Skills[0]) + "/same.sh"); err != nil || !info.Mode().IsRegular() {
			t.Errorf("same.sh: got %v, %v, want a regular file", info, err)
		}
		if exists(d.cache().content(s.Skills[0]) + "/more") {
			t.Error("what was put there stays")
		}
	}
}

// Git itself writes no tree with such names, and refuses to check such a tree out, but lists the names.
func TestNamesThatNoTreeHas(t *testing.T) {
	d := open(t)
	r := newRepo(t, tree{"a/SKILL.md": manualOf("a")})
	blob, err := hex.DecodeString(r.git("rev-parse", "HEAD:a/SKILL.md"))
	if err != nil {
		t.Fatal(err)
	}
	for n, name := range []string{"/SKILL.md", "../SKILL.md", "a/../../SKILL.md", "a//SKILL.md", "./SKILL.md"} {
		top := gitIn(t, r.dir, "100644 "+name+"\x00"+string(blob), "hash-object", "-w", "--literally", "-t", "tree", "--stdin")
		branch := fmt.Sprintf("bad-%d", n)
		r.git("update-ref", "refs/heads/"+branch, r.git("commit-tree", "-m", "x", top))
		src := r.source()
		src.Ref = branch
		ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit)
		done := make(chan State)
		go func() { done <- d.Complete(ctx, d.dir, entry(src)) }()
		select {
		case s := <-done:
			if s.State != Failed || !strings.Contains(s.Detail, "no name of a file") || len(s.Skills) > 0 {
				t.Errorf("%s: got %+v, want failed for the name", name, s)
			}
		case <-ctx.Done():
			t.Fatalf("%s is never done with", name)
		}
		cancel()
	}
}

// On Windows, looking at a folder of another machine signs in there, and nobody was asked.
func TestFoldersOfOtherMachines(t *testing.T) {
	for _, source := range []string{`\\host\share\skills`, `//host/share/skills`, `\\?\UNC\host\share`, `\/host/share`} {
		if at, err := (Source{Type: "local", Source: source}).place("/somewhere", ""); err == nil {
			t.Errorf("place of %s: got %+v, want an error", source, at)
		}
	}
}

// Programs of a skill, for example in Python, leave files in the cache. That must not cause a fetch, for which there may be no network.
func TestWhatASkillLeavesInTheCache(t *testing.T) {
	d := open(t)
	r := newRepo(t, tree{"a/SKILL.md": manualOf("a"), "a/lib/run.py": "!#!/usr/bin/python3\n"})
	e := entry(r.source())
	a := skill(t, d.completed(e), "a")
	content := d.cache().content(a)
	tree{"lib/__pycache__/run.pyc": "x", "json.py": "x", "out": "→/"}.write(t, content)
	if err := os.RemoveAll(r.dir); err != nil {
		t.Fatal(err)
	}
	s := d.Keep(t.Context(), d.dir, e)
	if s.State != Resolved || skill(t, s, "a").Digest != a.Digest || d.read(a, "lib/run.py") != "#!/usr/bin/python3\n" {
		t.Errorf("Keep: got %s: %s, want the skill unchanged", s.State, s.Detail)
	}
	for _, name := range []string{"lib/__pycache__", "json.py", "out"} {
		if exists(filepath.Join(content, name)) {
			t.Errorf("%s is given to the next session", name)
		}
	}
	if err := os.Chmod(filepath.Join(content, "SKILL.md"), 0o600); err != nil {
		t.Fatal(err)
	}
	tree{"SKILL.md": "changed"}.write(t, content)
	if s := d.Keep(t.Context(), d.dir, e); s.State != Failed {
		t.Errorf("with another manual: %s", s.State)
	}
}

// An old server serves only the tips of branches: an older commit comes with all commits in between.
func TestACommitThatIsNoTip(t *testing.T) {
	d := open(t)
	tree{".gitconfig": "[protocol]\n\tversion = 0\n"}.write(t, d.home)
	r := newRepo(t, tree{"a/SKILL.md": manualOf("a")})
	src := r.source()
	src.Ref = r.git("rev-parse", "HEAD")
	r.commit(tree{"a/SKILL.md": manualOf("a") + "later"})
	if s := d.completed(entry(src)); s.Commit != src.Ref || d.read(skill(t, s, "a"), "SKILL.md") != manualOf("a") {
		t.Errorf("Complete: got %+v, want commit %s", s, src.Ref)
	}
	src.Ref = strings.Repeat("0123", 10)
	if s := d.Complete(t.Context(), d.dir, entry(src)); s.State != Failed || !strings.Contains(s.Detail, "there is no commit") {
		t.Errorf("Complete: got %+v, want a missing commit", s)
	}
}
