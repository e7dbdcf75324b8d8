package session_test

import (
	"encoding/base64"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"deskhand/backend/attachment"
	"deskhand/backend/attachments"
	"deskhand/backend/export"
	"deskhand/backend/proxy"
	"deskhand/backend/session"
	"deskhand/backend/transcript"
)

// A message with files is steered into the running turn with its files; when the turn is stopped while the files are composed, the message
// waits in the queue with them.
func TestSteeringCarriesAttachments(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "slow")
	d.works(s.ID)
	shot := d.upload("shot.png", picture(t, 6, 6))
	if sent := d.sendFiles(s.ID, "see this", session.Steer, byID(shot)...); sent.QueueItem == nil || len(sent.QueueItem.Attachments) != 1 {
		t.Fatalf("steering Send with an attachment: got %+v, want a queue item with it", sent)
	}
	d.until("answer to it", func() bool { return strings.Contains(said(d.transcript(s.ID)), "You add: *see this*") })
	f := d.promptFrames(s.ID)
	if got := f[len(f)-1]; got.Method != "_session/steering" || got.types() != "text image" || !strings.Contains(got.raw, `"idleBehavior":"promptRequired"`) {
		t.Errorf("frame sent: got %s with %s, want _session/steering with text and image", got.Method, got.types())
	}
	large := d.upload("large.png", picture(t, 8100, 7000))
	item := d.sendFiles(s.ID, "and this", session.Steer, byID(large)...).QueueItem
	if err := d.Cancel(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	tr := d.idle(s.ID)
	queue, err := d.Queue(t.Context(), s.ID)
	if err != nil || len(queue) != 1 || queue[0].ID != item.ID || queue[0].Held != "stopped" || !slices.Equal(idsOf(queue[0].Attachments), []string{large.ID}) {
		t.Errorf("Queue: got %+v, %v; want item %s, held as stopped, with large.png", queue, err, item.ID)
	}
	i := slices.IndexFunc(tr.Items, func(e transcript.Entry) bool { return e.Kind == "user" && e.Text == "see this" })
	if i < 0 || travels(tr.Items[i].Attachments) != "image" {
		t.Errorf("transcript: got %+v, want a user entry %q with an image", tr.Items, "see this")
	}
	if again := d.promptFrames(s.ID); len(again) != len(f) {
		t.Errorf("prompts sent after the cancel: got %d, the last %+v; want %d", len(again), again[len(again)-1], len(f))
	}
	d.sameAsRebuilt(s.ID)
}

// A remote agent gets attachments that can travel within the prompt; a link to a local file is refused.
func TestAttachmentsTravelToPlace(t *testing.T) {
	t.Parallel()
	e := runtimeElsewhere(t, 0)
	d := deskWithPlaces(t, t.TempDir())
	s := d.createAt(d.addPlace(e, placeToken).ID)
	d.isReady(s.ID)
	here := t.TempDir()
	text, data := d.file(filepath.Join(here, "a.txt"), []byte("from here")), d.file(filepath.Join(here, "b.bin"), []byte{0, 1})
	d.sendFiles(s.ID, "echo", session.Now, attachments.PromptAttachment{Path: text}, attachments.PromptAttachment{ID: d.upload("p.png", picture(t, 2, 2)).ID})
	d.idle(s.ID)
	if f := d.promptFrames(s.ID); len(f) != 1 || f[0].types() != "text resource image" || f[0].Params.Prompt[1].Resource.Text != "from here" {
		t.Errorf("prompts sent: got %+v, want one with text, the file embedded and the image", f)
	}
	for _, p := range []attachments.PromptAttachment{{Path: data}, {ID: d.upload("b.bin", []byte{0, 1}).ID}, {Path: here}} {
		_, err := d.Send(t.Context(), s.ID, session.Prompt{Message: "x", Attachments: []attachments.PromptAttachment{p}})
		refused(t, err, "attachment.elsewhere")
	}
	if _, err := os.Stat(filepath.Join(d.work, ".deskhand")); err == nil {
		t.Error("something was copied")
	}
	_, err := d.Attachments().FindPaths(t.Context(), s.ID, "", "a", 10)
	refused(t, err, "paths.elsewhere")
}

// The attachments of the transcript, the draft and the queue survive a kill of the program.
func TestAttachmentsOutliveKill(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "slow")
	d.works(s.ID)
	d.until("text", func() bool { return textOf(d.transcript(s.ID), "agent") != "" }) // the prompt is stored by then
	chip, queued := d.upload("chip.txt", []byte("chip")), d.upload("queued.png", picture(t, 9, 9))
	d.chips(s.ID, chip)
	item := d.sendFiles(s.ID, "echo", session.Queue, byID(queued)...).QueueItem
	dir := t.TempDir() // a copy of the directory as it is now
	if err := os.CopyFS(dir, os.DirFS(d.dir)); err != nil {
		t.Fatal(err)
	}
	d.close()
	d = openAs(t, dir, proxy.Config{}, session.Config{})
	if now := d.get(s.ID); !slices.Equal(idsOf(now.Attachments), []string{chip.ID}) {
		t.Errorf("draft after a kill: got attachments %+v, want chip.txt", now.Attachments)
	}
	if _, err := d.ChangeQueued(t.Context(), s.ID, item.ID, session.QueuePatch{Send: true}); err != nil {
		t.Fatal(err)
	}
	d.idle(s.ID)
	f := d.promptFrames(s.ID)
	if got := f[len(f)-1]; got.types() != "text image" || got.Params.Prompt[1].Data != base64.StdEncoding.EncodeToString(picture(t, 9, 9)) {
		t.Errorf("prompt from the queue after a kill: got %s, want text and the picture that was queued", got.types())
	}
	d.wantVerified()
	d.sameAsRebuilt(s.ID)
}

// The replay of a recording with files gives the same prompt to the agent and the same transcript.
func TestRecordingWithAttachmentsIsReplayed(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.isReady(s.ID)
	shot := d.upload("shot.png", picture(t, 30, 30))
	d.sendFiles(s.ID, "echo what this shows", session.Now, byID(shot)...)
	d.idle(s.ID)
	_, recording := d.export(s.ID, export.Recording)
	again := d.replayOf(recording)
	d.sendFiles(again.ID, "echo what this shows", session.Now, byID(shot)...)
	d.idle(again.ID)
	if have, want := d.seenAs(again.ID), d.seenAs(s.ID); have != want {
		t.Errorf("replayed %s\nwant %s", have, want)
	}
}

// An agent without capabilities for files gets the paths as text, in the form of the seed.
func TestAttachmentsAreTextForAgentWithoutCapabilities(t *testing.T) {
	t.Parallel()
	d := askingDesk(t, t.TempDir())
	id := d.asking()
	d.isReady(id)
	path, pasted := d.file("a b.txt", []byte("x")), d.upload("pasted.txt", []byte("pasted"))
	list := append(d.attach(id, path), pasted)
	if shown := d.chips(id, list...); travels(shown.Attachments) != "text text_only, text text_only" {
		t.Errorf("attachments in the draft travel as %s, want both as text only", travels(shown.Attachments))
	}
	d.sendFiles(id, "look", session.Now, byID(list...)...) // the prompt is no list of steps, so that the agent ends
	d.until("prompt", func() bool { return len(d.promptFrames(id)) == 1 })
	f := d.promptFrames(id)[0]
	copied := filepath.Join(d.work, ".deskhand", "attachments", "pasted.txt")
	if want := "look\n\nAttachments:\n- " + path + "\n- " + copied + "\n"; f.types() != "text" || f.Params.Prompt[0].Text != want {
		t.Errorf("prompt: got %q, want the text alone: %q", f.Params.Prompt[0].Text, want)
	}
	if data, err := os.ReadFile(copied); err != nil || string(data) != "pasted" {
		t.Errorf("copy at %s: got %q, %v; want %q", copied, data, err, "pasted")
	}
	d.checkFrames(t, id)
}

// On a disk that stores no bytes a prompt with files fails with an error, nothing is sent, and the draft stays.
func TestAttachmentsFailWholeWithoutBlobs(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.isReady(s.ID)
	list := d.attach(s.ID, d.file("a.txt", []byte("a")))
	d.chips(s.ID, list...)
	blobs := filepath.Join(d.dir, "blobs")
	if err := errors.Join(os.RemoveAll(blobs), os.WriteFile(blobs, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Attachments().Upload(t.Context(), "b.txt", "", strings.NewReader("b")); !errors.Is(err, session.ErrStorage) {
		t.Errorf("Upload without a directory of blobs = %v, want ErrStorage", err)
	}
	if _, err := d.Send(t.Context(), s.ID, session.Prompt{Message: "x", Attachments: byID(list...)}); !errors.Is(err, session.ErrStorage) {
		t.Errorf("Send without a directory of blobs = %v, want ErrStorage", err)
	}
	if _, err := d.AddFiles(t.Context(), s.ID, []attachment.Wanted{{Path: "a.txt"}}); !errors.Is(err, session.ErrStorage) {
		t.Errorf("AddFiles without a directory of blobs = %v, want ErrStorage", err)
	}
	if now := d.get(s.ID); len(now.Attachments) != 1 || now.Turn != nil || len(d.promptFrames(s.ID)) > 0 || find(d.transcript(s.ID), "attachment") != nil {
		t.Errorf("session after the failures: got %+v, want its draft kept, no turn, nothing sent, no attachment entry", now)
	}
	if err := os.Remove(blobs); err != nil {
		t.Fatal(err)
	}
	d.sendFiles(s.ID, "echo", session.Now, byID(list...)...)
	d.idle(s.ID)
}

// A prompt takes files by path, with a type and a name of the caller's choice. A link that leads out of the directory needs a person's
// approval.
func TestPromptTakesAttachmentsByPath(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.isReady(s.ID)
	d.file("thing.bin", []byte{0, 1, 2})
	d.file("two words.txt", []byte("two"))
	d.file("a#b?c%.txt", []byte("odd"))
	odd := "file://" + d.work + "/a#b?c%.txt" // in the form in which people write such addresses
	exact := "file://" + d.work + "/a%23b%3Fc%25.txt"
	if err := os.Symlink("/etc/hostname", filepath.Join(d.work, "link")); err != nil {
		t.Skip("links cannot be made here: " + err.Error())
	}
	d.sendFiles(s.ID, "echo", session.Now, attachments.PromptAttachment{Path: "thing.bin", Mime: "application/x-thing", Filename: "other.bin"},
		attachments.PromptAttachment{Path: "file://" + d.work + "/two%20words.txt"},
		attachments.PromptAttachment{Path: odd}, attachments.PromptAttachment{Path: exact}, attachments.PromptAttachment{Path: "/"})
	d.idle(s.ID)
	f := d.promptFrames(s.ID)[0]
	list := f.Params.Meta["sandboxagent.dev"].Attachments
	if len(list) != 5 || list[0].Path != "thing.bin" || list[1].Path != "file://"+d.work+"/two%20words.txt" || list[2].Path != odd || list[3].Path != exact || list[0].Mime != "application/x-thing" || list[0].Filename != "other.bin" || list[1].Filename != "two words.txt" ||
		list[2].Filename != "a#b?c%.txt" || list[3].Filename != "a#b?c%.txt" || list[4].Path != "/" || list[4].Filename != "" {
		t.Errorf("the seed's list: got %+v, want the paths as they were given", list)
	}
	for n := 3; n <= 4; n++ {
		if b := f.Params.Prompt[n]; b.Resource.Text != "odd" || b.Resource.URI != exact {
			t.Errorf("block %d: got %+v, want the file's text under %s", n, b, exact)
		}
	}
	if b := f.Params.Prompt[1]; b.Type != "resource_link" || b.Name != "other.bin" || b.MimeType != "application/x-thing" || b.Size == nil || *b.Size != 3 {
		t.Errorf("block of thing.bin: got %+v, want a link with the name and type of the caller and size 3", b)
	}
	_, err := d.Send(t.Context(), s.ID, session.Prompt{Attachments: []attachments.PromptAttachment{{Path: "link"}}})
	refused(t, err, "attachment.link_outside")
	r, err := d.Attachments().Attach(t.Context(), attachments.AttachInput{Paths: []string{"link", "/dev/null", "thing.bin"}, Session: s.ID})
	if err != nil || len(r.Items) != 1 || len(r.Problems) != 2 || r.Problems[0].Code != "attachment.link_outside" || r.Problems[1].Code != "attachment.not_a_file" {
		t.Errorf("Attach: got %+v, %v; want thing.bin taken, the link and the device refused", r, err)
	}
	r, err = d.Attachments().Attach(t.Context(), attachments.AttachInput{Paths: []string{"link"}, Session: s.ID, Follow: true})
	if err != nil || len(r.Items) != 1 {
		t.Fatalf("Attach(link, follow): got %+v, %v; want it taken", r, err)
	}
	d.sendFiles(s.ID, "echo", session.Now, byID(r.Items...)...) // the approved files
	d.idle(s.ID)
}
