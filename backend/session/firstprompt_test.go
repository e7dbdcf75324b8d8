package session_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/attachments"
	"deskhand/backend/session"
)

func TestCreateWithFirstPrompt(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	file := d.file("note.txt", []byte("what the note says"))
	s, err := d.Create(t.Context(), session.New{
		Agent: "mock", Cwd: d.work, Message: "echo\nat once", Attachments: []attachments.PromptAttachment{{Path: file}},
	})
	if err != nil {
		t.Fatalf("Create with a first prompt: got %v, want no error", err)
	}
	if s.Turn == nil || s.Title != "echo" || s.Draft != "" {
		t.Errorf("the session: got the turn %+v, title %q and draft %q, want a turn, the title of the prompt and no draft", s.Turn, s.Title, s.Draft)
	}
	tr := d.idle(s.ID)
	if len(tr.Turns) != 1 || len(tr.Items) == 0 {
		t.Fatalf("the transcript: got %d turns and %d entries, want one turn with entries", len(tr.Turns), len(tr.Items))
	}
	if got := tr.Items[0]; got.Kind != "user" || got.Text != "echo\nat once" || len(got.Attachments) != 1 || got.Attachments[0].Filename != "note.txt" {
		t.Errorf("the first entry: got %+v, want the message with note.txt", got)
	}
	d.sameAsRebuilt(s.ID)
}

// TestCreateWithRefusedPrompt: a prompt that is refused leaves no session, no worktree and no record of a file.
func TestCreateWithRefusedPrompt(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	d.asRepository()
	for name, test := range map[string]struct {
		of   session.New
		code string
	}{
		"blank":               {session.New{Message: " \n"}, "prompt.empty"},
		"a file that is gone": {session.New{Message: "look", Attachments: []attachments.PromptAttachment{{Path: filepath.Join(d.work, "gone.txt")}}}, "attachment.missing"},
		"an unknown file":     {session.New{Message: "look", Attachments: []attachments.PromptAttachment{{ID: "none"}}}, "attachment.unknown"},
		"in a worktree": {
			session.New{Message: "look", Worktree: true, Attachments: []attachments.PromptAttachment{{Path: filepath.Join(d.work, "gone.txt")}}}, "attachment.missing",
		},
	} {
		test.of.Agent, test.of.Cwd = "mock", d.work
		_, err := d.Create(t.Context(), test.of)
		if r, ok := errors.AsType[*session.RefusedError](err); !ok || r.Code != test.code {
			t.Errorf("Create, %s: got %v, want the refusal %s", name, err, test.code)
		}
	}
	page, err := d.List(t.Context(), session.Which{}, "", 10)
	if err != nil || len(page.Items) != 0 {
		t.Errorf("the sessions afterwards: got %d, %v, want none", len(page.Items), err)
	}
	if got := d.git(d.work, "worktree", "list"); strings.Count(got, "\n") != 0 {
		t.Errorf("the worktrees afterwards: got\n%s\nwant the repository alone", got)
	}
}

func TestCreateInWorktreeNamesBranchAfterPrompt(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	d.asRepository()
	s := d.createTree(session.New{Message: "Echo the login\nplease"})
	if s.Worktree == nil || !strings.HasPrefix(s.Worktree.Branch, "deskhand/echo-the-login-") {
		t.Errorf("the worktree: got %+v, want a branch named after the prompt", s.Worktree)
	}
	d.idle(s.ID)
}

// TestFilesBeforeSession: paths are found and attached in a directory before there is a session.
func TestFilesBeforeSession(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	d.leave("notes/storm.md", "a storm\n")
	found, err := d.Attachments().FindPaths(t.Context(), "", d.work, "storm", 10)
	if err != nil || len(found.Items) != 1 || found.Items[0].Relative != filepath.Join("notes", "storm.md") {
		t.Errorf("FindPaths in a directory: got %+v, %v, want notes/storm.md", found.Items, err)
	}
	added, err := d.Attachments().Attach(t.Context(), attachments.AttachInput{Paths: []string{"notes/storm.md"}, Cwd: d.work})
	if err != nil || len(added.Items) != 1 || added.Items[0].Filename != "storm.md" {
		t.Errorf("Attach in a directory: got %+v, %v, want storm.md", added, err)
	}
	if _, err := d.Attachments().FindPaths(t.Context(), "", filepath.Join(d.work, "gone"), "", 10); err == nil {
		t.Error("FindPaths in a directory that is missing: got no error, want a refusal")
	}
}
