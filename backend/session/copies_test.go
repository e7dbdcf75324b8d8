package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/agenttest"
	"deskhand/backend/attachments"
	"deskhand/backend/session"
	"deskhand/backend/undo"
)

// TestGitOffersNoCopies: git does not list the stored copies of attachments, although no ignore file lies beside them: in a repository,
// below its top and in a worktree. A turn's changes hold no copy, and the undo of a turn leaves the copies. Files that an older version
// left beside the copies are removed.
func TestGitOffersNoCopies(t *testing.T) {
	for _, where := range []string{"the top", "below the top", "a worktree", "no repository", "a repository whose rules are a link"} {
		t.Run(where, func(t *testing.T) {
			d := openLooking(t, t.TempDir())
			ignore := filepath.Join(d.work, ".deskhand", "attachments", ".gitignore")
			wantIgnore := false
			switch where {
			case "the top":
				d.git(d.work, "init", "--quiet")
				d.leave(".deskhand/attachments/.gitignore", "*\n", ".deskhand/attachments/old.zip", "old")
			case "below the top":
				d.git(filepath.Dir(d.work), "init", "--quiet")
			case "a worktree":
				other := filepath.Join(t.TempDir(), "repo")
				d.git(filepath.Dir(d.work), "init", "--quiet", other)
				d.git(other, "commit", "--quiet", "--allow-empty", "-m", "x")
				d.git(other, "worktree", "add", "--quiet", "--force", d.work)
			case "no repository":
				wantIgnore = true
			default:
				d.git(d.work, "init", "--quiet")
				wantIgnore = true
				info := filepath.Join(d.work, ".git", "info") // root may write a file that nobody may, but Deskhand follows no link
				if err := errors.Join(os.Rename(filepath.Join(info, "exclude"), filepath.Join(info, "other")), os.Symlink("other", filepath.Join(info, "exclude"))); err != nil {
					t.Fatal(err)
				}
			}
			d.leave("a.go", "a\n")
			id := d.create().ID
			d.isReady(id)
			outside := d.file(filepath.Join(t.TempDir(), "data.zip"), []byte("PK\x05\x06"))
			sent := d.sendFiles(id, "echo look", session.Now, attachments.PromptAttachment{Path: outside})
			turn := d.looked(id, sent.Turn.ID)
			if data := d.read(".deskhand/attachments/data.zip"); data != "PK\x05\x06" {
				t.Fatalf("the copy: got %q", data)
			}
			if turn.Changes != nil && turn.Changes.Files > 0 {
				t.Errorf("the turn has changed %+v, want nothing", turn.Changes)
			}
			if _, err := os.Stat(ignore); (err == nil) != wantIgnore {
				t.Errorf("the .gitignore beside the copies: %v, want it there: %v", err, wantIgnore)
			}
			if where != "no repository" {
				if status := d.git(d.work, "status", "--porcelain", "--untracked-files=all"); strings.Contains(status, ".deskhand") {
					t.Errorf("git offers:\n%s", status)
				}
			}
			after := d.during(id, func() { d.leave("b.go", "b\n") })
			if _, err := d.Undo().RestoreTurn(t.Context(), id, undo.RestoreTurn{Turn: after.ID, Force: true}); err != nil {
				t.Fatal(err)
			}
			if data := d.read(".deskhand/attachments/data.zip"); data != "PK\x05\x06" {
				t.Errorf("undoing a turn took the copy: got %q", data)
			}
			found, err := d.Attachments().FindPaths(context.Background(), id, "", "data", 10)
			if err != nil || slices.ContainsFunc(found.Items, func(p attachments.FoundPath) bool { return strings.Contains(p.Relative, "attachments") }) {
				t.Errorf("the search for files: got %+v, %v", found, err)
			}
		})
	}
}

// TestLinksAreNamedForQwen: an agent that is known to ignore links gets the paths in the text, with the blocks kept apart; the stored
// message stays as the person wrote it.
func TestLinksAreNamedForQwen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	agent := agenttest.Program(t)
	file := fmt.Sprintf(`{"agents":[{"id":"qwen-code","command":%q,"args":["demo-agent"],"override":true}]}`, agent)
	if err := os.WriteFile(filepath.Join(dir, "agents.json"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	d := open(t, dir)
	s, err := d.Create(t.Context(), session.New{Agent: "qwen-code", Cwd: d.work})
	if err != nil {
		t.Fatal(err)
	}
	d.isReady(s.ID)
	paths := []string{d.file("all notes.bin", []byte{0, 1}), d.file("a.txt", []byte("one")), d.file("b.txt", []byte("two\n"))}
	list := d.attach(s.ID, paths...)
	if got := travels(d.chips(s.ID, list...).Attachments); got != "link named, embedded, embedded" {
		t.Errorf("the chips: got %q", got)
	}
	d.sendFiles(s.ID, "echo look", session.Now, byID(list...)...)
	d.idle(s.ID)
	f := d.promptFrames(s.ID)
	if len(f) != 1 || f[0].types() != "text resource_link text resource text resource" {
		t.Fatalf("got %d prompts, %s", len(f), f[0].types())
	}
	p := f[0].Params.Prompt
	if want := "echo look\n\nAttachments:\n- " + paths[0] + "\n"; p[0].Text != want {
		t.Errorf("the text: got %q, want %q", p[0].Text, want)
	}
	if p[1].URI != "file://"+paths[0] || p[2].Text != "\n" || p[3].Resource.Text != "one\n" || p[5].Resource.Text != "two\n" {
		got, _ := json.Marshal(p)
		t.Errorf("the blocks: got %s", got)
	}
	d.sendFiles(s.ID, "echo again", session.Now, byID(list[1])...)
	tr := d.idle(s.ID)
	if text := textsOf(tr, "user"); !slices.Equal(text, []string{"echo look", "echo again"}) {
		t.Errorf("the messages of the person: got %q", text)
	}
}

func textsOf(tr session.Transcript, kind string) (list []string) {
	for _, e := range tr.Items {
		if e.Kind == kind {
			list = append(list, e.Text)
		}
	}
	return list
}
