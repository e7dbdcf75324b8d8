package session_test

import (
	"strings"
	"testing"

	"deskhand/backend/attachment"
	"deskhand/backend/session"
)

// The block of a surface's files is for tools: no conversation is called after it.
func TestATitleIsWithoutTheBlockOfFiles(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	block := attachment.Sentinel([]attachment.SentinelItem{{URL: "https://cdn.discordapp.com/a?ex=1", Filename: "a"}})
	for message, want := range map[string]string{"silent\n" + block: "silent", block: "a.txt"} {
		file, err := d.AttachUpload(t.Context(), "a.txt", "text/plain", strings.NewReader("a"))
		if err != nil {
			t.Fatal(err)
		}
		s := d.create()
		if _, err := d.Send(t.Context(), s.ID, session.Prompt{Message: message, Attachments: []session.PromptAttachment{{ID: file.ID}}}); err != nil {
			t.Fatal(err)
		}
		if got := d.get(s.ID).Title; got != want {
			t.Errorf("%q is called %q, want %q", message, got, want)
		}
	}
}
