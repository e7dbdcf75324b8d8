package landing_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"deskhand/backend/landing"
)

// branched is a repository with main checked out, and a session in a linked worktree on the branch work, which is two commits ahead of main.
func branched(t testing.TB) *bench {
	t.Helper()
	b := set(t)
	b.session.Cwd = filepath.Join(b.root, "work")
	b.git(b.repo, "worktree", "add", "--quiet", "-b", "work", b.session.Cwd)
	b.write(b.session.Cwd, "total.sh", "one\ntwo\nthree\n")
	b.git(b.session.Cwd, "mv", "old.txt", "name.txt")
	b.git(b.session.Cwd, "commit", "--quiet", "--all", "-m", "three")
	b.write(b.session.Cwd, "more.txt", "more\n")
	b.git(b.session.Cwd, "add", "--all")
	b.git(b.session.Cwd, "commit", "--quiet", "-m", "more")
	return b
}

func (b *bench) write(dir string, files ...string) {
	b.t.Helper()
	repo := b.repo
	b.repo = dir
	b.leave(files...)
	b.repo = repo
}

func (b *bench) read(dir, name string) string {
	b.t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return "absent"
	}
	return string(data)
}

// onMain commits files on main.
func (b *bench) onMain(files ...string) {
	b.t.Helper()
	b.leave(files...)
	b.git(b.repo, "add", "--all")
	b.git(b.repo, "commit", "--quiet", "-m", "on main")
}

func (b *bench) base(name string) landing.BaseStatus {
	b.t.Helper()
	s, err := b.Base(b.t.Context(), id, name)
	if err != nil {
		b.t.Fatalf("Base(%q): got error %v, want none", name, err)
	}
	return s
}

// merge merges into main what was compared just now.
func (b *bench) merge(how string, with ...func(*landing.MergeRequest)) (landing.Merged, error) {
	b.t.Helper()
	s := b.base("main")
	r := landing.MergeRequest{Base: "main", BaseCommit: s.BaseCommit, Head: s.Head, How: how, Message: "Merge the work"}
	for _, f := range with {
		f(&r)
	}
	return b.Merge(b.t.Context(), id, r)
}

func (b *bench) merged(how string, with ...func(*landing.MergeRequest)) landing.Merged {
	b.t.Helper()
	done, err := b.merge(how, with...)
	if err != nil {
		b.t.Fatalf("Merge(%s): got error %v, want none", how, err)
	}
	return done
}

func stash(r *landing.MergeRequest) { r.Stash = true }

func TestBaseListsWhatDiffersFromTheCommitInCommon(t *testing.T) {
	b := branched(t)
	b.onMain("elsewhere.txt", "main has this\n")
	b.git(b.repo, "branch", "older", "HEAD~1")
	b.write(b.session.Cwd, "total.sh", "one\ntwo\nthree\nfour\n", "untracked.txt", "a\nb", "run.log", "ignored\n")
	if err := os.Remove(filepath.Join(b.session.Cwd, "gone.txt")); err != nil {
		t.Fatal(err)
	}
	b.write(b.session.Cwd, "sub/deep.txt", "deep\n") // written again, and the same
	s := b.base("")
	if s.Base != "main" || s.CheckedOut != b.repo || s.Ahead != 2 || s.Behind != 1 || s.Remote || len(s.Conflicts) != 0 || !slices.Equal(s.Bases, []string{"main", "older"}) {
		t.Errorf("Base(%q): got %+v, want main in %s, 2 ahead, 1 behind, the branches main and older", "", s, b.repo)
	}
	var got []string
	for _, f := range s.Files {
		got = append(got, fmt.Sprintf("%s %s%s +%d -%d %t", f.Kind, f.Was, f.Path, f.Added, f.Removed, f.Uncommitted))
	}
	want := []string{"deleted gone.txt +0 -1 true", "added more.txt +1 -0 false", "renamed old.txtname.txt +0 -0 false", "modified total.sh +2 -0 true", "added untracked.txt +2 -0 true"}
	if !slices.Equal(got, want) {
		t.Errorf("Base files: got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	v, err := b.File(t.Context(), id, "total.sh", "main")
	if err != nil || v.Before == nil || *v.Before != "one\ntwo\n" || v.After == nil || *v.After != "one\ntwo\nthree\nfour\n" {
		t.Errorf("File(total.sh, main): got %+v, %v, want the text of the first commit and the one on disk", v, err)
	}
	_, err = b.File(t.Context(), id, "elsewhere.txt", "main")
	refused(t, "File of a file that the base alone has", err, "landing.file")
	_, err = b.Base(t.Context(), id, "nowhere")
	refused(t, "Base(nowhere)", err, "landing.base")
	_, err = b.Base(t.Context(), id, "--all")
	refused(t, "Base(--all)", err, "landing.base")
}

func TestBaseNamesTheConflictsOfAMerge(t *testing.T) {
	b := branched(t)
	b.onMain("total.sh", "one\n2\n")
	s := b.base("main")
	if !slices.Equal(s.Conflicts, []string{"total.sh"}) {
		t.Errorf("Conflicts: got %q, want total.sh", s.Conflicts)
	}
	before := b.git(b.repo, "rev-parse", "main")
	for _, how := range []string{"merge", "squash", "rebase"} {
		_, err := b.merge(how)
		refused(t, "Merge("+how+") with conflicts", err, "landing.conflicts")
	}
	if got := b.git(b.repo, "rev-parse", "main"); got != before || b.git(b.session.Cwd, "status", "--porcelain") != "" {
		t.Errorf("after refused merges: got main at %s, want %s, and no change in the worktree", got, before)
	}
}

func TestBaseOfARepositoryWithOneBranch(t *testing.T) {
	b := set(t)
	_, err := b.Base(t.Context(), id, "")
	refused(t, "Base without another branch", err, "landing.no_base")
	b.git(b.root, "init", "--quiet", "--bare", "origin.git")
	b.git(b.repo, "remote", "add", "origin", "../origin.git")
	b.git(b.repo, "push", "--quiet", "-u", "origin", "main")
	b.onMain("here.txt", "here\n")
	s := b.base("")
	if s.Base != "origin/main" || !s.Remote || s.Ahead != 1 {
		t.Errorf("Base(%q): got %+v, want origin/main, 1 ahead", "", s)
	}
	_, err = b.Merge(t.Context(), id, landing.MergeRequest{Base: s.Base, BaseCommit: s.BaseCommit, Head: s.Head, How: "forward"})
	refused(t, "Merge into a remote's branch", err, "landing.remote_base")
	b.git(b.repo, "checkout", "--quiet", "--orphan", "alone")
	b.git(b.repo, "commit", "--quiet", "-m", "alone")
	_, err = b.Base(t.Context(), id, "main")
	refused(t, "Base without a commit in common", err, "landing.unrelated")
}

func TestMergeMovesTheBaseAndItsFiles(t *testing.T) {
	for how, want := range map[string]struct{ behind, ahead string }{
		"merge":   {"Merge the work|2", "Merge the work|2"},
		"squash":  {"Merge the work|1", "Merge the work|1"},
		"rebase":  {"more|1", "more|1"},
		"forward": {"more|1", ""},
	} {
		t.Run(how, func(t *testing.T) {
			for name, want := range map[string]string{"even": want.behind, "moved": want.ahead} {
				b := branched(t)
				if name == "moved" {
					b.onMain("elsewhere.txt", "main has this\n")
				}
				b.leave("sub/deep.txt", "mine, not committed\n", "mine.txt", "untracked\n")
				if want == "" {
					_, err := b.merge(how)
					refused(t, "Merge("+how+") into a base with other commits", err, "landing.behind")
					continue
				}
				done := b.merged(how)
				parents := len(strings.Fields(b.git(b.repo, "log", "-1", "--format=%P", "main")))
				if got := b.git(b.repo, "log", "-1", "--format=%s", "main") + "|" + strconv.Itoa(parents); got != want || done.Commit != b.git(b.repo, "rev-parse", "HEAD") {
					t.Errorf("%s, %s: got commit %q of %+v, want %q, checked out", how, name, got, done, want)
				}
				if got := b.git(b.repo, "log", "-1", "--format=%an <%ae>", "main"); got != "Ada <ada@example.org>" {
					t.Errorf("%s, %s: got author %s, want Ada", how, name, got)
				}
				if got := b.read(b.repo, "total.sh") + b.read(b.repo, "name.txt") + b.read(b.repo, "old.txt"); got != "one\ntwo\nthree\na\nb\nc\nd\nabsent" {
					t.Errorf("%s, %s: got files %q, want those of the branch", how, name, got)
				}
				if got := b.git(b.repo, "status", "--porcelain"); got != " M sub/deep.txt\n?? mine.txt" {
					t.Errorf("%s, %s: got status %q, want the two files that are not committed", how, name, got)
				}
			}
		})
	}
}

func TestMergeIntoABranchThatIsNotCheckedOut(t *testing.T) {
	b := branched(t)
	b.git(b.repo, "checkout", "--quiet", "--detach")
	done := b.merged("squash")
	if got := b.git(b.repo, "rev-parse", "main"); got != done.Commit || b.read(b.repo, "more.txt") != "absent" {
		t.Errorf("Merge: got main at %s, want %s, and no file changed in the other worktree", got, done.Commit)
	}
	_, err := b.Merge(t.Context(), id, landing.MergeRequest{Base: "main", BaseCommit: b.git(b.repo, "rev-parse", "main~1"), Head: b.look().Head, How: "merge", Message: "m"})
	refused(t, "Merge into a base that has moved", err, "landing.moved")
}

func TestMergeKeepsWhatIsInTheWay(t *testing.T) {
	for _, c := range []struct{ name, file, mine, after, kept string }{
		{"a change elsewhere in the file", "total.sh", "zero\none\ntwo\n", "zero\none\ntwo\nthree\n", ""},
		{"a change in the same place", "total.sh", "one\ntwo\n3\n", "", "one\ntwo\n3\n"},
		{"an untracked file", "more.txt", "mine\n", "", "mine\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := branched(t)
			b.write(b.session.Cwd, "total.sh", "one\ntwo\nlast\n")
			if c.kept == "" {
				b.write(b.session.Cwd, "total.sh", "one\ntwo\nthree\n")
			}
			b.git(b.session.Cwd, "commit", "--quiet", "--allow-empty", "--all", "-m", "last")
			b.leave(c.file, c.mine, "gone.txt", "also mine\n")
			_, err := b.merge("merge")
			told := refused(t, "Merge", err, "landing.in_the_way")
			if told.Params["paths"] != c.file || told.Params["path"] != b.repo || b.read(b.repo, c.file) != c.mine {
				t.Errorf("refusal: got %v and file %q, want the path %s and the file as it was", told.Params, b.read(b.repo, c.file), c.file)
			}
			done := b.merged("merge", stash)
			if (done.Stashed == "") != (c.kept == "") {
				t.Errorf("Merge: got %+v, want a stash: %t", done, c.kept != "")
			}
			if c.kept == "" {
				if got := b.read(b.repo, c.file); got != c.after || b.read(b.repo, "gone.txt") != "also mine\n" || b.git(b.repo, "stash", "list") != "" {
					t.Errorf("%s: got %q, want %q, the other change, and no stash", c.file, got, c.after)
				}
				return
			}
			if got := b.git(b.repo, "rev-parse", "stash@{0}"); got != done.Stashed {
				t.Errorf("stash: got %s, want %s", got, done.Stashed)
			}
			kept := b.git(b.repo, "show", done.Stashed+":total.sh")
			if c.file == "more.txt" {
				kept = b.git(b.repo, "show", done.Stashed+"^3:more.txt")
			}
			if kept+"\n" != c.kept {
				t.Errorf("stashed %s: got %q, want %q", c.file, kept, c.kept)
			}
		})
	}
}

func TestUpdateBringsTheBaseIn(t *testing.T) {
	for how, want := range map[string]string{"merge": "Merge main into work|2", "rebase": "more|1"} {
		b := branched(t)
		b.onMain("elsewhere.txt", "main has this\n")
		b.write(b.session.Cwd, "untracked.txt", "mine\n")
		s := b.base("main")
		done, err := b.Update(t.Context(), id, landing.UpdateRequest{Base: "main", Head: s.Head, How: how})
		if err != nil || len(done.Conflicts) != 0 {
			t.Fatalf("Update(%s): got %+v, %v, want no conflict", how, done, err)
		}
		parents := len(strings.Fields(b.git(b.session.Cwd, "log", "-1", "--format=%P")))
		if got := b.git(b.session.Cwd, "log", "-1", "--format=%s") + "|" + strconv.Itoa(parents); got != want || b.read(b.session.Cwd, "elsewhere.txt") != "main has this\n" {
			t.Errorf("Update(%s): got %q, want %q and the file of main", how, got, want)
		}
		_, err = b.Update(t.Context(), id, landing.UpdateRequest{Base: "main", Head: done.Commit, How: how})
		refused(t, "Update of a branch that has all", err, "landing.up_to_date")
	}
}

func TestUpdateLeavesConflictsForWhoAsksForThem(t *testing.T) {
	for _, how := range []string{"merge", "rebase"} {
		t.Run(how, func(t *testing.T) {
			b := branched(t)
			b.onMain("total.sh", "one\n2\n")
			s := b.base("main")
			update := func(leave bool) (landing.Updated, error) {
				return b.Update(t.Context(), id, landing.UpdateRequest{Base: "main", Head: s.Head, How: how, Leave: leave})
			}
			_, err := update(false)
			refused(t, "Update with conflicts", err, "landing.conflicts")
			if got := b.look(); got.Unfinished != "" || got.Head != s.Head || len(got.Files) != 0 {
				t.Errorf("after it: got %+v, want everything as it was", got)
			}
			done, err := update(true)
			if err != nil || !slices.Equal(done.Conflicts, []string{"total.sh"}) {
				t.Fatalf("Update that leaves conflicts: got %+v, %v, want one in total.sh", done, err)
			}
			_, err = b.Resolve(t.Context(), id, landing.ResolveRequest{})
			refused(t, "Resolve with marks in a file", err, "landing.conflict")
			b.write(b.session.Cwd, "total.sh", "one\n2\nthree\n")
			ended, err := b.Resolve(t.Context(), id, landing.ResolveRequest{})
			if err != nil || b.look().Unfinished != "" || b.git(b.session.Cwd, "show", "HEAD:total.sh") != "one\n2\nthree" || ended.Commit != b.look().Head {
				t.Fatalf("Resolve: got %+v, %v and %+v, want the resolution committed", ended, err, b.look())
			}
			_, err = b.Resolve(t.Context(), id, landing.ResolveRequest{})
			refused(t, "Resolve of nothing", err, "landing.no_merge")
		})
	}
}

func TestResolveThatTakesTheMergeBackKeepsTheFiles(t *testing.T) {
	b := branched(t)
	b.onMain("total.sh", "one\n2\n")
	s := b.base("main")
	if _, err := b.Update(t.Context(), id, landing.UpdateRequest{Base: "main", Head: s.Head, How: "merge", Leave: true}); err != nil {
		t.Fatal(err)
	}
	b.write(b.session.Cwd, "total.sh", "half resolved\n", "notes.txt", "how\n")
	done, err := b.Resolve(t.Context(), id, landing.ResolveRequest{Abort: true})
	if err != nil || done.Commit != s.Head || b.look().Unfinished != "" {
		t.Fatalf("Resolve(abort): got %+v, %v, want the branch at %s", done, err, s.Head)
	}
	if got := b.git(b.session.Cwd, "show", done.Kept+":total.sh"); got != "half resolved" || b.read(b.session.Cwd, "notes.txt") != "how\n" {
		t.Errorf("kept total.sh: got %q, want the half resolved one, and notes.txt still there", got)
	}
}

func TestFetchTellsTheNewsOfARemote(t *testing.T) {
	b := set(t)
	_, err := b.Base(t.Context(), id, "")
	refused(t, "Base", err, "landing.no_base")
	refused(t, "Fetch without a remote", b.Fetch(t.Context(), id, landing.FetchRequest{}), "landing.no_remote")
	b.git(b.root, "init", "--quiet", "--bare", "origin.git")
	b.git(b.repo, "remote", "add", "origin", "../origin.git")
	b.git(b.repo, "push", "--quiet", "-u", "origin", "main")
	b.git(b.root, "clone", "--quiet", "--branch", "main", "origin.git", "other")
	b.write(filepath.Join(b.root, "other"), "theirs.txt", "theirs\n")
	b.git(filepath.Join(b.root, "other"), "add", "--all")
	b.git(filepath.Join(b.root, "other"), "commit", "--quiet", "-m", "theirs")
	b.git(filepath.Join(b.root, "other"), "push", "--quiet")
	if err := b.Fetch(t.Context(), id, landing.FetchRequest{}); err != nil {
		t.Fatalf("Fetch: got error %v, want none", err)
	}
	if s := b.look(); s.Behind != 1 || b.read(b.repo, "theirs.txt") != "absent" {
		t.Errorf("Status after Fetch: got %+v, want 1 behind, and no file changed", s)
	}
	b.git(b.repo, "config", "remote.origin.uploadpack", "touch ran; git-upload-pack")
	refused(t, "Fetch by a program of the repository", b.Fetch(t.Context(), id, landing.FetchRequest{}), "landing.programs")
	if b.read(b.repo, "ran") != "absent" {
		t.Error("a program of the repository ran")
	}
}

// The programs of a repository are its merge drivers, its hooks, and its way to sign.
func TestMergeStartsNoProgramOfTheRepository(t *testing.T) {
	b := branched(t)
	ran := filepath.Join(b.root, "ran")
	program := filepath.Join(b.root, "program")
	if err := os.WriteFile(program, []byte("#!/bin/sh\necho \"$0 $*\" >> "+ran+"\nexit 0\n"), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	b.onMain("total.sh", "zero\none\ntwo\n")
	b.leave(".git/info/attributes", "total.sh merge=theirs\n")
	b.git(b.repo, "config", "merge.theirs.driver", program+" driver")
	b.git(b.repo, "config", "commit.gpgSign", "true")
	b.git(b.repo, "config", "gpg.program", program)
	b.git(b.repo, "config", "gpg.ssh.program", program)
	b.git(b.repo, "config", "gpg.ssh.defaultKeyCommand", program)
	b.git(b.repo, "config", "gpg.x509.program", program)
	for _, name := range []string{"post-merge", "pre-merge-commit", "commit-msg", "post-checkout", "pre-rebase", "reference-transaction", "post-rewrite"} {
		b.hook(name, program+" "+name)
	}
	b.hooks = []string{".git/hooks/post-merge"}
	_, err := b.merge("merge", func(r *landing.MergeRequest) { r.NoHooks = true })
	refused(t, "Merge with conflicts by a driver that does not run", err, "landing.conflicts")
	_, err = b.Update(t.Context(), id, landing.UpdateRequest{Base: "main", Head: b.look().Head, How: "merge", Leave: true})
	refused(t, "Update with hooks that nobody has approved", err, "landing.hooks")
	for _, format := range []string{"openpgp", "ssh", "x509"} {
		b.git(b.repo, "config", "gpg.format", format)
		b.write(b.session.Cwd, "more.txt", "more of "+format+"\n")
		_, err := b.commit(landing.CommitRequest{Paths: []string{"more.txt"}, Message: "signed", NoHooks: true})
		refused(t, "Commit with a signature that needs a key, "+format, err, "landing.failed")
		for _, how := range []string{"merge", "rebase"} {
			b.git(b.session.Cwd, "stash", "--quiet")
			done, err := b.Update(t.Context(), id, landing.UpdateRequest{Base: "main", Head: b.look().Head, How: how, Leave: true, NoHooks: true})
			if err != nil || len(done.Conflicts) != 1 {
				t.Fatalf("Update(%s): got %+v, %v, want one conflict", how, done, err)
			}
			if _, err = b.Resolve(t.Context(), id, landing.ResolveRequest{Abort: true, NoHooks: true}); err != nil {
				t.Fatalf("Resolve(%s, abort): got error %v, want none", how, err)
			}
			b.git(b.session.Cwd, "stash", "pop", "--quiet")
		}
		b.leave(".git/info/attributes", "")
		_, err = b.merge("squash", func(r *landing.MergeRequest) { r.NoHooks = true })
		refused(t, "Merge with a signature that needs a key", err, "landing.failed")
		b.leave(".git/info/attributes", "total.sh merge=theirs\n")
	}
	if got := b.read(b.root, "ran"); got != "absent" {
		t.Errorf("programs of the repository ran:\n%s", got)
	}
}

// A git that cannot be started any more, from one of its runs on, stands for the end of Deskhand there: just before and just after each run that
// changes something. Every file that was not committed is found again: on disk, or in a stash; and the base is as it was, or merged.
func TestMergeThatIsBrokenOffLosesNothing(t *testing.T) {
	broken := func(end int) (runs []string) {
		b := branched(t)
		b.leave("total.sh", "zero\none\ntwo\n", "mine.txt", "mine\n")
		b.write(b.session.Cwd, "total.sh", "one\ntwo\nthree\nnot committed\n")
		before := b.git(b.repo, "rev-parse", "main")
		s := b.base("main")
		b.breakOff(end)
		done, err := b.Merge(t.Context(), id, landing.MergeRequest{Base: "main", BaseCommit: s.BaseCommit, Head: s.Head, How: "merge", Message: "m", Stash: true})
		runs = strings.Split(strings.TrimSpace(b.read(b.root, "runs")), "\n")
		b.path = ""
		mine := b.read(b.repo, "total.sh") + b.read(b.repo, "mine.txt")
		if b.git(b.repo, "stash", "list") != "" {
			mine = b.git(b.repo, "show", "stash@{0}:total.sh") + "\n" + b.git(b.repo, "show", "stash@{0}^3:mine.txt") + "\n"
		}
		if mine != "zero\none\ntwo\nmine\n" && mine != "zero\none\ntwo\nthree\nmine\n" {
			t.Errorf("broken off at run %d: got %q, want the files that are not committed on disk or in a stash", end, mine)
		}
		if got := b.read(b.session.Cwd, "total.sh"); got != "one\ntwo\nthree\nnot committed\n" {
			t.Errorf("broken off at run %d: got %q in the session's worktree, want it as it was", end, got)
		}
		if now := b.git(b.repo, "rev-parse", "main"); now != before && b.git(b.repo, "rev-parse", "main^2") != s.Head {
			t.Errorf("broken off at run %d: got main at %s, want %s or the merge", end, now, before)
		}
		if (err == nil && done.Stashed == "") != (len(runs) < end) {
			t.Errorf("broken off at run %d of %d: got %+v, %v, want the failure told", end, len(runs), done, err)
		}
		return runs
	}
	const never = 1000
	ends := map[int]bool{}
	for i, args := range broken(never) {
		if slices.ContainsFunc([]string{" commit-tree ", " stash ", " merge "}, func(command string) bool { return strings.Contains(args, command) }) {
			ends[i+1], ends[i+2] = true, true
		}
	}
	if len(ends) < 6 {
		t.Fatalf("runs that change something: got %v, want a commit, merges and a stash", ends)
	}
	for end := range ends {
		broken(end)
	}
}

// breakOff has every run of git fail, from one of them on, without having done anything.
func (b *bench) breakOff(end int) {
	b.t.Helper()
	b.path = filepath.Join(b.root, "bin")
	script := fmt.Sprintf("#!/bin/sh\necho \"$*\" >> %s/runs\n[ $(wc -l < %s/runs) -lt %d ] || exit 137\nPATH=%q exec git \"$@\"\n", b.root, b.root, end, os.Getenv("PATH"))
	if err := os.MkdirAll(b.path, 0o700); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.path, "git"), []byte(script), 0o700); err != nil { //nolint:gosec // a program
		b.t.Fatal(err)
	}
}
