package session_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"deskhand/backend/attachment"
	"deskhand/backend/attachments"
	"deskhand/backend/session"
)

// What is sent from elsewhere than the composer, such as comments on changes, takes nothing out of it.
func TestPromptFromElsewhereLeavesDraft(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.isReady(s.ID)
	for _, tc := range []struct{ draft, message, left string }{
		{"half a thought", "echo something else", "half a thought"},
		{"echo hello", "echo hello", ""},
		{"echo hel", "echo hello", ""}, // it was saved a moment before the last letters
		{"echo hello and more", "echo hello", "echo hello and more"},
	} {
		if _, err := d.Change(t.Context(), s.ID, session.Patch{Draft: &tc.draft}); err != nil {
			t.Fatal(err)
		}
		d.prompt(s.ID, tc.message)
		d.idle(s.ID)
		if now := d.get(s.ID); now.Draft != tc.left {
			t.Errorf("of %q is left %q, want %q", tc.draft, now.Draft, tc.left)
		}
	}
}

// A chip is what it was when it was attached: a link that has taken its place since was agreed to by nobody.
func TestAttachmentThatBecameLinkIsNotSent(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.isReady(s.ID)
	file, secret := d.file("notes.txt", []byte("notes")), filepath.Join(d.dir, "secret")
	r, err := d.Attachments().Attach(t.Context(), attachments.AttachInput{Paths: []string{file}, Session: s.ID})
	if err != nil || len(r.Items) != 1 {
		t.Fatalf("Attach(%s): got %+v, %v; want it taken", file, r, err)
	}
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, file); err != nil {
		t.Fatal(err)
	}
	_, err = d.Send(t.Context(), s.ID, session.Prompt{Message: "echo", Attachments: byID(r.Items[0])})
	refused(t, err, "attachment.link_outside")
}

// What an agent may not read it may not give to people either, where a directory of its session holds it.
func TestAddFilesRefusesPrivateFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := askingDesk(t, dir)
	id := d.asking(dir)
	token := filepath.Join(dir, "private", "token")
	if err := os.MkdirAll(filepath.Dir(token), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(token, []byte("token"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := d.AddFiles(t.Context(), id, []attachment.Wanted{{Path: token, Filename: "notes.txt"}})
	if p, ok := errors.AsType[*attachment.Problem](err); !ok || p.Code != "attachment.outside" {
		t.Errorf("AddFiles(%s): got %v, want attachment.outside", token, err)
	}
	if _, err := d.AddFiles(t.Context(), id, []attachment.Wanted{{Path: d.file("fine.txt", []byte("fine"))}}); err != nil {
		t.Error(err)
	}
}
