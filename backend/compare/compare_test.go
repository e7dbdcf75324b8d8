package compare_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/compare"
	"deskhand/backend/landing"
	"deskhand/backend/refusal"
	"deskhand/backend/session"
	"deskhand/backend/setup"
	"deskhand/backend/undo"
)

func paths(list []landing.BaseFile) (names []string) {
	for _, f := range list {
		names = append(names, f.Kind+" "+f.Path)
	}
	return names
}

func TestMembersWorkFromOneCommit(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	head := d.git(d.work, "rev-parse", "HEAD")
	c := d.create("permission, please", 2)
	if c.Base != "main" || c.Commit != head || c.Repository != d.work || c.Title != "permission, please" {
		t.Errorf("the comparison: got base %q, commit %s, repository %s, title %q; want main, %s, %s and the prompt", c.Base, c.Commit, c.Repository, c.Title, head, d.work)
	}
	if len(c.Members) != 2 || c.Members[0].Name == c.Members[1].Name || c.Members[1].Name != c.Members[0].Name+" 2" {
		t.Fatalf("the members: got %+v, want two with names of their own", c.Members)
	}
	d.allow(c) // both are in the one inbox
	dirs := d.idle(c)
	d.git(d.work, "commit", "--quiet", "--allow-empty", "-m", "the base moves on")
	d.write(dirs[1], "code.go", "two\nlines\n")
	d.git(dirs[1], "commit", "--quiet", "--all", "-m", "by the agent")
	d.write(dirs[1], "new.go", "new\n")
	r := d.results(c)
	if len(r.Results) != 2 || r.Message != "permission, please" || r.Test != nil {
		t.Fatalf("the results: got %d of %q with test %v, want 2 of the prompt without a test", len(r.Results), r.Message, r.Test)
	}
	for i, want := range [][]string{{"added deskhand-demo.md"}, {"modified code.go", "added deskhand-demo.md", "added new.go"}} {
		got := r.Results[i]
		if !slices.Equal(paths(got.Files), want) {
			t.Errorf("files of member %d: got %q, want %q", i, paths(got.Files), want)
		}
		if got.Answer == "" || got.Turns != 1 || got.Session.ID != c.Members[i].Session || got.Session.Worktree.BaseBranch != "main" || got.Session.Worktree.Base != head {
			t.Errorf("the result of member %d: got answer %q, %d turns, worktree %+v; want an answer, a turn, and a worktree from main at %s", i, got.Answer, got.Turns, got.Session.Worktree, head)
		}
		if branch := got.Session.Worktree.Branch; !strings.Contains(branch, "mock-permission") {
			t.Errorf("the branch of member %d: got %s, want one with the agent and the prompt", i, branch)
		}
	}
	if got := r.Results[1]; got.Added < 3 || got.Removed != 1 {
		t.Errorf("the lines of the second member: got +%d -%d, want the committed and the uncommitted ones", got.Added, got.Removed)
	}
	v, err := d.Versions(t.Context(), c.ID, c.Members[1].Session, "code.go", "")
	must(t, err)
	if v.Before == nil || *v.Before != "one\n" || v.After == nil || *v.After != "two\nlines\n" {
		t.Errorf("code.go of the second member: got %v and %v, want it as in the commit and on disk", v.Before, v.After)
	}

	more, err := d.Add(t.Context(), c.ID, compare.NewMember{Agent: "mock"})
	must(t, err)
	if got := d.session(more.Members[2].Session).Worktree; got.Base != head || got.BaseBranch != "main" {
		t.Errorf("the worktree of a member that was added later: got %+v, want it from main at %s", got, head)
	}
	if first, err := d.sessions.Transcripts().Entries(t.Context(), more.Members[2].Session, 0, 10); err != nil || len(first.Items) == 0 || first.Items[0].Text != "permission, please" {
		t.Errorf("the transcript of a member that was added later: got %+v and error %v, want the prompt", first.Items, err)
	}
	if d.git(d.work, "status", "--porcelain") != "" {
		t.Errorf("the repository: got %q, want it untouched", d.git(d.work, "status", "--porcelain"))
	}
}

func TestRefusedComparisonLeavesNothing(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	two := []compare.NewMember{{Agent: "mock"}, {Agent: "mock"}}
	for _, tc := range []struct {
		n    compare.NewComparison
		code string
	}{
		{compare.NewComparison{Cwd: d.work, Message: " \n", Members: two}, "compare.empty"},
		{compare.NewComparison{Cwd: d.work, Message: "go", Members: two[:1]}, "compare.full"},
		{compare.NewComparison{Cwd: d.work, Message: "go", Members: slices.Repeat(two, 3)}, "compare.full"},
		{compare.NewComparison{Cwd: d.work, Message: "go", Members: []compare.NewMember{{Agent: "mock"}, {Agent: "nobody"}}}, "agent.unknown"},
		{compare.NewComparison{Cwd: d.work, Message: "go", Base: "nowhere", Members: two}, "worktree.base"},
		{compare.NewComparison{Cwd: d.dir, Message: "go", Members: two}, "worktree.no_repository"},
	} {
		_, err := d.Create(t.Context(), tc.n)
		refused(t, tc.code, err, tc.code)
	}
	list, err := d.sessions.List(t.Context(), session.Which{}, "", 10)
	must(t, err)
	if got := d.list(); len(got) != 0 || len(list.Items) != 0 {
		t.Errorf("after refusals: got %d comparisons and %d sessions, want none", len(got), len(list.Items))
	}
	if trees := d.git(d.work, "worktree", "list"); strings.Count(trees, "\n") != 0 {
		t.Errorf("after refusals: got the worktrees %q, want the repository's alone", trees)
	}
	_, err = d.Results(t.Context(), "none")
	if !errors.Is(err, refusal.ErrNotFound) {
		t.Errorf("results of an unknown comparison: got error %v, want not found", err)
	}
}

func TestTakeRemovesTheOthersAndKeepsTheirWork(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	c := d.create("slow", 3)
	var dirs []string
	for _, m := range c.Members {
		d.until("a turn of "+m.Name, func() bool { return d.session(m.Session).Turn != nil && d.session(m.Session).Phase == "working" })
		dirs = append(dirs, d.session(m.Session).Cwd)
	}
	d.write(dirs[1], "code.go", "not committed\n", "new.go", "new\n")
	taken := c.Members[0].Session
	_, err := d.Take(t.Context(), c.ID, "nobody")
	refused(t, "Take(nobody)", err, "compare.no_member")
	for range 2 { // the second has nothing left to do
		after, err := d.Take(t.Context(), c.ID, taken)
		must(t, err)
		if after.Taken != taken || slices.ContainsFunc(after.Members, func(m compare.Member) bool { return m.Problem != "" }) {
			t.Errorf("after Take: got %+v, want the first member taken, without a problem", after)
		}
	}
	if s := d.session(taken); s.Turn == nil || s.ArchivedAt != nil || s.Worktree.State != "ready" {
		t.Errorf("the member that was taken: got turn %v, archived %v, worktree %s; want it at work as before", s.Turn, s.ArchivedAt, s.Worktree.State)
	}
	for i, m := range c.Members[1:] {
		s := d.session(m.Session)
		if s.Turn != nil || s.ArchivedAt == nil || s.Worktree.State != "removed" {
			t.Errorf("member %d: got turn %v, archived %v, worktree %s; want it stopped, archived and removed", i+1, s.Turn, s.ArchivedAt, s.Worktree.State)
		}
	}
	other := c.Members[1].Session
	if kept := d.session(other).Worktree.Kept; kept == nil || kept.Files != 2 {
		t.Fatalf("what is kept of the second member: got %+v, want 2 files", kept)
	}
	_, err = d.Take(t.Context(), c.ID, other)
	refused(t, "Take of another member", err, "compare.taken")
	_, err = d.Add(t.Context(), c.ID, compare.NewMember{Agent: "mock"})
	refused(t, "Add after Take", err, "compare.taken")
	if r := d.results(c); len(r.Results) != 3 || r.Results[0].Problem != "" || r.Results[1].Problem == "" {
		t.Errorf("the results after Take: got %+v, want three, and why the files of the second are not known", r.Results)
	}
	must(t, d.sessions.Worktrees().Restore(t.Context(), other))
	if got := d.read(dirs[1], "code.go") + d.read(dirs[1], "new.go"); got != "not committed\nnew\n" {
		t.Errorf("the files of the second member, restored: got %q, want every byte", got)
	}
	must(t, d.sessions.Cancel(t.Context(), taken))
	must(t, d.Dissolve(t.Context(), c.ID))
	if got := d.list(); len(got) != 0 || d.session(taken).ID != taken {
		t.Errorf("after Dissolve: got %d comparisons, want none, and the sessions there", len(got))
	}
}

func TestTakeThatACrashCutOffGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	c := d.create("markdown", 2)
	dirs := d.idle(c)
	d.write(dirs[1], "new.go", "new\n")
	broken := d.create("markdown", 2)
	d.idle(broken)
	// As after a crash: who was taken is stored, and nothing is done; and a member was named, and its session not made.
	for _, change := range []string{
		`UPDATE comparison SET record = json_set(record, '$.taken', '` + c.Members[0].Session + `') WHERE id = '` + c.ID + `'`,
		`UPDATE comparison SET record = json_set(record, '$.members[1].session', 'never', '$.members[1].begun', json('false')) WHERE id = '` + broken.ID + `'`,
	} {
		must(t, d.db.Write(t.Context(), func(tx *sql.Tx) error {
			_, err := tx.ExecContext(t.Context(), change)
			return err
		}))
	}
	d.close()
	d = open(t, dir)
	list := d.list()
	if len(list) != 2 || list[1].Taken != c.Members[0].Session || list[0].Members[1].Begun || !list[0].Members[0].Begun {
		t.Fatalf("after the crash: got %+v, want the member that was taken, and one that has not begun", list)
	}
	_, err := d.Take(t.Context(), broken.ID, "never")
	refused(t, "Take of a member that has not begun", err, "compare.not_begun")
	again, err := d.Begin(t.Context(), broken.ID, "never")
	must(t, err)
	if m := again.Members[1]; !m.Begun || d.session(m.Session).Worktree.Base != c.Commit {
		t.Errorf("a member that was begun again: got %+v, want a session in a worktree from %s", m, c.Commit)
	}
	d.idle(again)
	_, err = d.Take(t.Context(), c.ID, c.Members[0].Session)
	must(t, err)
	if s := d.session(c.Members[1].Session); s.Worktree.State != "removed" || s.Worktree.Kept == nil || s.Worktree.Kept.Files != 1 {
		t.Errorf("the other member after the second Take: got worktree %+v, want it removed with its file kept", s.Worktree)
	}
}

func TestFilesComeFromAnotherMember(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	c := d.create("markdown", 2)
	dirs := d.idle(c)
	a, b := c.Members[0].Session, c.Members[1].Session
	d.write(dirs[0], "code.go", "a\n", "only.go", "of a\n")
	d.write(dirs[1], "code.go", "b\n", "sub/deep.go", "of b\n", "script.sh", "echo\n")
	d.git(dirs[1], "rm", "--quiet", "old.go")
	d.git(dirs[1], "add", "--all")
	d.git(dirs[1], "commit", "--quiet", "-m", "by the agent")
	take := compare.TakeFiles{From: b, To: a, Paths: []string{"code.go", "sub/deep.go", "script.sh", "old.go"}, Preview: true}
	before := []string{"a\n", "deep\n", "(gone)", "old\n", "of a\n"}
	now := func() (list []string) {
		for _, name := range []string{"code.go", "sub/deep.go", "script.sh", "old.go", "only.go"} {
			list = append(list, d.read(dirs[0], name))
		}
		return list
	}
	preview, err := d.TakeFiles(t.Context(), c.ID, take)
	must(t, err)
	if len(preview.Files) != 4 || !slices.Equal(now(), before) {
		t.Errorf("the preview: got %+v and files %q, want 4 files, and nothing changed", preview, now())
	}
	take.Preview = false
	done, err := d.TakeFiles(t.Context(), c.ID, take)
	must(t, err)
	if want := []string{"b\n", "of b\n", "echo\n", "(gone)", "of a\n"}; !slices.Equal(now(), want) || done.ID == "" || slices.ContainsFunc(done.Files, func(f undo.RestoredFile) bool { return f.Outcome == "conflict" }) {
		t.Errorf("after TakeFiles: got %q and %+v, want %q", now(), done, want)
	}
	if d.read(dirs[1], "code.go") != "b\n" || d.git(dirs[1], "status", "--porcelain") != "" {
		t.Errorf("the member that files came from: got %q, want it unchanged", d.git(dirs[1], "status", "--porcelain"))
	}
	if got := paths(d.results(c).Results[0].Files); !slices.Equal(got, []string{"modified code.go", "deleted old.go", "added only.go", "added script.sh", "modified sub/deep.go"}) {
		t.Errorf("files of the first member: got %q, want what it has now", got)
	}
	_, err = d.sessions.Undo().UndoRestoration(t.Context(), a, done.ID)
	must(t, err)
	if !slices.Equal(now(), before) {
		t.Errorf("after the restoration was undone: got %q, want %q", now(), before)
	}
	_, err = d.TakeFiles(t.Context(), c.ID, compare.TakeFiles{From: a, To: a, Paths: take.Paths})
	refused(t, "TakeFiles from the member itself", err, "compare.same")
	_, err = d.TakeFiles(t.Context(), c.ID, compare.TakeFiles{From: "other", To: a, Paths: take.Paths})
	refused(t, "TakeFiles from another session", err, "compare.no_member")
}

func TestFilesComeIntoAFolderOfTheRepository(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	d.work = filepath.Join(d.work, "sub")
	c := d.create("markdown", 2)
	dirs := d.idle(c)
	d.write(dirs[1], "deep.go", "of b\n", "../code.go", "b\n")
	take := compare.TakeFiles{From: c.Members[1].Session, To: c.Members[0].Session, Paths: []string{"sub/deep.go", "code.go"}}
	_, err := d.TakeFiles(t.Context(), c.ID, take)
	refused(t, "TakeFiles of a file outside of the directory", err, "compare.outside")
	take.Paths = take.Paths[:1]
	_, err = d.TakeFiles(t.Context(), c.ID, take)
	must(t, err)
	if got := d.read(dirs[0], "deep.go") + d.read(dirs[0], "../code.go"); got != "of b\none\n" {
		t.Errorf("the files of the first member: got %q, want the one in the folder from the second", got)
	}
}

func TestTestsRunInEachMember(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	d.write(d.work, ".deskhand/project.json", `{"test": "echo tested in $DESKHAND_WORKTREE; test -e good || { test -e bad && exit 3; while :; do sleep 1; done; }"}`)
	d.commit("the project")
	c := d.create("markdown", 3)
	dirs := d.idle(c)
	d.write(dirs[0], "good", "")
	d.write(dirs[1], "bad", "")
	_, err := d.Test(t.Context(), c.ID, "")
	refused(t, "Test without an approval", err, "setup.unapproved")
	r := d.results(c)
	if r.Test == nil || r.Test.Approved || !strings.Contains(r.Test.Line, "test -e good") {
		t.Fatalf("the command of the tests: got %+v, want it, not approved", r.Test)
	}
	_, err = d.Test(t.Context(), c.ID, r.Test.Hash)
	must(t, err)
	state := func(i int) setup.TestRun {
		run := d.results(c).Results[i].Tests
		if run == nil {
			return setup.TestRun{}
		}
		return *run
	}
	d.until("the end of two runs", func() bool { return state(0).Ended != nil && state(1).Ended != nil })
	if got := state(0); got.State != setup.Passed || !strings.Contains(got.Head, "tested in "+dirs[0]+"\n") {
		t.Errorf("the tests of the first member: got %+v, want them passed in %s", got, dirs[0])
	}
	if got := state(1); got.State != setup.Failed || got.ExitCode == nil || *got.ExitCode != 3 {
		t.Errorf("the tests of the second member: got %+v, want them failed with 3", got)
	}
	if r := d.results(c).Results; r[0].Outdated || r[1].Outdated {
		t.Errorf("tests after which nothing was written: got outdated %t and %t, want none", r[0].Outdated, r[1].Outdated)
	}
	d.write(dirs[0], "later.go", "later\n")
	if r := d.results(c).Results; !r[0].Outdated || r[1].Outdated {
		t.Errorf("tests after which the first member has a new file: got outdated %t and %t, want the first", r[0].Outdated, r[1].Outdated)
	}
	if got := state(2); got.State != setup.Running {
		t.Errorf("the tests of the third member: got %+v, want them running", got)
	}
	_, err = d.Take(t.Context(), c.ID, c.Members[0].Session) // ends what runs in the worktrees that are removed
	must(t, err)
	if s := d.session(c.Members[2].Session); s.Worktree.State != "removed" {
		t.Errorf("the third member: got worktree %s, want it removed with its tests ended", s.Worktree.State)
	}
	d.close()
	d = open(t, dir)
	if got := state(0); got.State != setup.Passed || !strings.Contains(got.Head, "tested in ") {
		t.Errorf("the tests of the first member after a restart: got %+v, want them as they were", got)
	}
}

func TestStoppedTestsAreStopped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := open(t, dir)
	d.write(d.work, ".deskhand/project.json", `{"test": "echo begun; while :; do sleep 1; done"}`)
	d.commit("the project")
	c := d.create("markdown", 2)
	d.idle(c)
	begun := func() bool {
		r := d.results(c)
		return !slices.ContainsFunc(r.Results, func(m compare.MemberResult) bool { return m.Tests == nil || !strings.Contains(m.Tests.Head, "begun\n") })
	}
	_, err := d.Test(t.Context(), c.ID, d.results(c).Test.Hash)
	must(t, err)
	d.until("tests that have begun", begun)
	_, err = d.Test(t.Context(), c.ID, "")
	refused(t, "Test while they run", err, "setup.testing")
	r, err := d.StopTests(t.Context(), c.ID)
	must(t, err)
	for i, m := range r.Results {
		if m.Tests.State != setup.Stopped || m.Tests.Problem != "" {
			t.Errorf("the tests of member %d: got %+v, want them stopped", i, m.Tests)
		}
	}
	_, err = d.Test(t.Context(), c.ID, "")
	must(t, err)
	d.until("tests that have begun again", begun)
	d.close()
	d = open(t, dir)
	for i, m := range d.results(c).Results {
		if m.Tests.State != setup.Stopped || m.Tests.Problem == "" {
			t.Errorf("the tests of member %d after a restart: got %+v, want them cut off", i, m.Tests)
		}
	}
}
