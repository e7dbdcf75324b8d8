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

// A prompt from elsewhere than the composer, such as comments on changes, leaves the draft as it is.
func TestPromptFromElsewhereLeavesDraft(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.isReady(s.ID)
	for _, tc := range []struct{ draft, message, left string }{
		{"half a thought", "echo something else", "half a thought"},
		{"echo hello", "echo hello", ""},
		{"echo hel", "echo hello", ""}, // the draft was saved before the last letters were typed
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

// A file that became a link after it was attached is not sent, since nobody has agreed to the link's target.
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

// An agent cannot give people a file that the agent may not read, in any directory of its session.
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
