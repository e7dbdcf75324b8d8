package session_test

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"deskhand/backend/attachment"
	"deskhand/backend/attachments"
	"deskhand/backend/export"
	"deskhand/backend/feed"
	"deskhand/backend/form"
	"deskhand/backend/host"
	"deskhand/backend/lifecycle"
	"deskhand/backend/maintenance"
	"deskhand/backend/proxy"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/testkit"
	"deskhand/backend/transcript"
)

// picture returns a PNG of this size.
func picture(t testing.TB, width, height int) []byte {
	t.Helper()
	m := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Black, color.White})
	m.Pix[0] = 1
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// file writes a file at a path that is absolute or relative to d.work, and returns its path.
func (d *desk) file(name string, data []byte) string {
	d.t.Helper()
	path := name
	if !filepath.IsAbs(name) {
		path = filepath.Join(d.work, name)
	}
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, data, 0o600)); err != nil {
		d.t.Fatal(err)
	}
	return path
}

// attach accepts files, and fails the test unless all are taken.
func (d *desk) attach(id string, paths ...string) []transcript.Attachment {
	d.t.Helper()
	r, err := d.Attachments().Attach(d.t.Context(), attachments.AttachInput{Paths: paths, Session: id})
	if err != nil || len(r.Problems) > 0 {
		d.t.Fatalf("Attach(%q): got problems %+v, error %v; want all taken", paths, r.Problems, err)
	}
	return r.Items
}

func (d *desk) upload(name string, data []byte) transcript.Attachment {
	d.t.Helper()
	a, err := d.Attachments().Upload(d.t.Context(), name, "", bytes.NewReader(data))
	if err != nil {
		d.t.Fatal(err)
	}
	return a
}

func byID(list ...transcript.Attachment) (refs []attachments.PromptAttachment) {
	for _, a := range list {
		refs = append(refs, attachments.PromptAttachment{ID: a.ID})
	}
	return refs
}

func idsOf(list []transcript.Attachment) []string {
	ids := []string{}
	for _, a := range list {
		ids = append(ids, a.ID)
	}
	return ids
}

func (d *desk) chips(id string, list ...transcript.Attachment) session.Session {
	d.t.Helper()
	ids := idsOf(list)
	s, err := d.Change(d.t.Context(), id, session.Patch{Attachments: &ids})
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

func (d *desk) sendFiles(id, text string, when session.When, refs ...attachments.PromptAttachment) session.Sent {
	d.t.Helper()
	sent, err := d.Send(d.t.Context(), id, session.Prompt{Message: text, Attachments: refs, When: when})
	if err != nil {
		d.t.Fatal(err)
	}
	return sent
}

func (d *desk) isReady(id string) {
	d.t.Helper()
	d.until("ready", func() bool { return d.get(id).Phase == lifecycle.Ready })
}

// promptFrames returns the prompts that were sent to the agent.
func (d *desk) promptFrames(id string) (list []promptFrame) {
	d.t.Helper()
	for dir, data := range d.journal(id) {
		var f promptFrame
		if dir == "out" && json.Unmarshal(data, &f) == nil && (f.Method == "session/prompt" || f.Method == "_session/steering") {
			f.raw = string(data)
			list = append(list, f)
		}
	}
	return list
}

type promptFrame struct {
	Method string
	Params struct {
		Prompt []struct {
			Type, Text, Data, MimeType, URI, Name string
			Size                                  *int64
			Resource                              struct{ URI, MimeType, Text, Blob string }
		}
		Meta map[string]struct {
			Attachments []struct{ Path, Mime, Filename string }
		} `json:"_meta"`
	}
	raw string
}

func (f promptFrame) types() string {
	var list []string
	for _, b := range f.Params.Prompt {
		list = append(list, b.Type)
	}
	return strings.Join(list, " ")
}

func travels(list []transcript.Attachment) string {
	var words []string
	for _, a := range list {
		words = append(words, strings.TrimSpace(a.Travels+" "+a.Warning))
	}
	return strings.Join(words, ", ")
}

func shaOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// A prompt carries a file of each kind in the way that the draft shows.
func TestPromptCarriesAttachmentsOfEachKind(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.isReady(s.ID)
	shot, code := picture(t, 20, 10), []byte("package main\n\nfunc main() {}\n")
	inside := d.file("main.go", code)
	outside := d.file(filepath.Join(t.TempDir(), "data 100%.bin"), []byte{0, 1, 2, 3})
	folder := filepath.Join(d.work, "folder")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	pasted := d.upload("shot.png", shot)
	if pasted.SHA256 != shaOf(shot) || pasted.Width != 20 || pasted.Height != 10 || pasted.MimeType != "image/png" || pasted.Path != "" {
		t.Fatalf("Upload(shot.png): got %+v, want a PNG of 20x10 with its SHA-256 and no path", pasted)
	}
	list := append([]transcript.Attachment{pasted}, d.attach(s.ID, inside, "folder", "file://"+strings.ReplaceAll(outside, "%", "%25"))...)
	shown := d.chips(s.ID, list...)
	if got := travels(shown.Attachments); got != "image, embedded, link, link copied" {
		t.Fatalf("attachments in the draft travel as %s, want image, embedded, link, link copied: %+v", got, shown.Attachments)
	}
	if !shown.Attachments[3].Copied || shown.Attachments[1].SHA256 != "" || !slices.Equal(idsOf(shown.Attachments), idsOf(list)) {
		t.Errorf("attachments in the draft: got %+v, want those given, in order, the last one copied and the embedded one not hashed yet", shown.Attachments)
	}
	d.sendFiles(s.ID, "echo look at these", session.Now, byID(list...)...)
	tr := d.idle(s.ID)

	f := d.promptFrames(s.ID)
	if len(f) != 1 || f[0].types() != "text image resource resource_link resource_link" {
		t.Fatalf("prompts sent: got %+v, want one with text, image, resource and two links", f)
	}
	p := f[0].Params.Prompt
	copied := filepath.Join(d.work, ".deskhand", "attachments", "data 100%.bin")
	if p[0].Text != "echo look at these" || p[1].Data != base64.StdEncoding.EncodeToString(shot) || p[2].Resource.Text != string(code) ||
		p[3].URI != "file://"+folder || p[4].URI != "file://"+strings.ReplaceAll(strings.ReplaceAll(copied, "%", "%25"), " ", "%20") {
		t.Errorf("blocks of the prompt: got %+v, want the text, the picture, the code and links to %s and %s", p, folder, copied)
	}
	if at := f[0].Params.Meta["sandboxagent.dev"].Attachments; len(at) != 4 || at[1].Path != inside || at[1].Filename != "main.go" || at[3].Path != copied {
		t.Errorf("_meta attachments: got %+v, want 4 with %s the second and %s the last", at, inside, copied)
	} else if data, err := os.ReadFile(at[0].Path); err != nil || !bytes.Equal(data, shot) { // an attachment without a path is listed by its stored copy
		t.Errorf("the copy of the picture at %s: got %d bytes, %v; want %d", at[0].Path, len(data), err, len(shot))
	}
	if data, err := os.ReadFile(copied); err != nil || string(data) != "\x00\x01\x02\x03" {
		t.Errorf("copy at %s: got %q, %v; want the bytes of the attached file", copied, data, err)
	}
	if data, err := os.ReadFile(filepath.Join(d.work, ".deskhand", "attachments", ".gitignore")); err != nil || string(data) != "*\n" {
		t.Errorf(".gitignore beside the copies: got %q, %v; want %q", data, err, "*\n")
	}
	e := find(tr, "user")
	if e == nil || e.Text != "echo look at these" || travels(e.Attachments) != "image, embedded, link, link copied" {
		t.Fatalf("user entry: got %+v, want the text and how its four attachments travelled", e)
	}
	if a := e.Attachments[1]; a.SHA256 != shaOf(code) || a.ID == list[1].ID { // a snapshot has a record of its own
		t.Errorf("embedded attachment in the entry: got %+v, want a record of its own, not %s, with the SHA-256 of what was sent", a, list[1].ID)
	}
	if now := d.get(s.ID); len(now.Attachments) > 0 {
		t.Errorf("attachments in the draft after the send: got %+v, want none", now.Attachments)
	}
	d.sameAsRebuilt(s.ID)
	d.checkFrames(t, s.ID)
	files, err := d.SessionFiles(t.Context(), s.ID, 0, 10)
	if err != nil || len(files.Items) != 4 || files.Items[0].Direction != "in" || files.Items[0].Turn != e.Turn || files.Next != "" {
		t.Errorf("SessionFiles: got %+v, %v; want 4 in one page, the first of them inbound in turn %s", files, err, e.Turn)
	}
}

// A prompt without files is sent byte for byte as before attachments existed.
func TestPromptWithoutAttachmentsKeepsItsBytes(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.isReady(s.ID)
	d.prompt(s.ID, `echo <b>&"ö`)
	d.idle(s.ID)
	want := fmt.Sprintf(`{"jsonrpc":"2.0","id":3,"method":"session/prompt","params":{"prompt":[{"text":"echo \u003cb\u003e\u0026\"ö","type":"text"}],"sessionId":%q}}`, d.get(s.ID).ACPSessionID)
	if f := d.promptFrames(s.ID); len(f) != 1 || f[0].raw != want {
		t.Errorf("prompts sent: got %+v\nwant one: %s", f, want)
	}
}

// An inline attachment has the contents of its file when the prompt was taken; a link to a file that is gone by then is refused, and
// nothing is sent.
func TestAttachmentIsReadWhenPromptIsTaken(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "slow")
	d.works(s.ID)
	note, shot, big := d.file("note.txt", []byte("before")), d.file("shot.png", picture(t, 3, 3)), d.file("big.bin", []byte{0, 1})
	list := d.attach(s.ID, note, shot, big)
	d.sendFiles(s.ID, "echo", session.Queue, byID(list...)...)
	queue, err := d.Queue(t.Context(), s.ID)
	if err != nil || len(queue) != 1 || len(queue[0].Attachments) != 3 {
		t.Fatalf("Queue: got %+v, %v; want one item with 3 attachments", queue, err)
	}
	d.file("note.txt", []byte("after"))
	if err := errors.Join(os.Remove(shot)); err != nil {
		t.Fatal(err)
	}
	if err := d.Cancel(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	d.idle(s.ID)
	if _, err := d.ChangeQueued(t.Context(), s.ID, queue[0].ID, session.QueuePatch{Send: true}); err != nil {
		t.Fatal(err)
	}
	d.idle(s.ID)
	f := d.promptFrames(s.ID)
	if got := f[len(f)-1]; got.types() != "text resource image resource_link" || got.Params.Prompt[1].Resource.Text != "before" || got.Params.Prompt[2].Data != base64.StdEncoding.EncodeToString(picture(t, 3, 3)) {
		t.Errorf("prompt from the queue: got %s: %+v; want the note's first text and the picture inline, and a link", got.types(), got.Params.Prompt)
	}
	// A file that is gone before the prompt is taken.
	chips := d.attach(s.ID, big)
	d.chips(s.ID, chips...)
	if err := os.Remove(big); err != nil {
		t.Fatal(err)
	}
	if now, err := d.Look(t.Context(), s.ID); err != nil || len(now.Attachments) != 1 || !now.Attachments[0].Missing {
		t.Errorf("Look: got attachments %+v, %v; want one, missing", now.Attachments, err)
	}
	for _, when := range []session.When{session.Now, session.Queue, session.Steer, session.Interrupt} {
		_, err := d.Send(t.Context(), s.ID, session.Prompt{Message: "x", Attachments: byID(chips...), When: when})
		if r := refused(t, err, "attachment.missing"); r.Bad || r.Params["name"] != "big.bin" {
			t.Errorf("Send(%s) with a missing file: got refusal %+v, want one that names big.bin and is not Bad", when, r)
		}
	}
	if now := d.get(s.ID); len(now.Attachments) != 1 || now.Turn != nil || len(d.promptFrames(s.ID)) != len(f) {
		t.Errorf("something was sent, or the draft is gone: %+v", now)
	}
	if _, err := d.Send(t.Context(), s.ID, session.Prompt{Attachments: []attachments.PromptAttachment{{ID: "nothing"}}}); err == nil {
		t.Error("an unknown file was taken")
	} else {
		refused(t, err, "attachment.unknown")
	}
	d.sameAsRebuilt(s.ID)
}

// A prompt carries a hundred files with names of all kinds.
func TestPromptCarriesHundredAttachmentsOfAnyName(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.isReady(s.ID)
	names := []string{"with space.txt", "line\nbreak.txt", "😀 emoji.txt", "100%.txt", "ä#?&.txt", `quote".txt`, "%41.txt"}
	for len(names) < 100 {
		names = append(names, fmt.Sprintf("file %d.txt", len(names)))
	}
	paths := make([]string, len(names))
	for i, name := range names {
		paths[i] = d.file(name, []byte("content of "+name))
	}
	list := d.attach(s.ID, paths...)
	d.chips(s.ID, list...)
	d.sendFiles(s.ID, "", session.Now, byID(list...)...)
	d.until("prompt", func() bool { return len(d.promptFrames(s.ID)) == 1 })
	tr := d.transcript(s.ID)
	f := d.promptFrames(s.ID)
	if len(f[0].Params.Prompt) != 100 {
		t.Fatalf("blocks of the prompt: got %d, want 100", len(f[0].Params.Prompt))
	}
	for i, b := range f[0].Params.Prompt {
		if b.Resource.Text != "content of "+names[i] || strings.ContainsAny(b.Resource.URI, " \n\"") {
			t.Errorf("block of %q: got %+v, want its text under an escaped URI", names[i], b)
		}
	}
	if e := find(tr, "user"); len(e.Attachments) != 100 || e.Attachments[1].Filename != "line\nbreak.txt" {
		t.Errorf("user entry: got %d attachments, want 100, the second named %q", len(e.Attachments), names[1])
	}
	_, err := d.Attachments().Attach(t.Context(), attachments.AttachInput{Paths: append(paths, paths[0])})
	refused(t, err, "attachment.too_many")
	page, err := d.SessionFiles(t.Context(), s.ID, 0, 40)
	if err != nil || len(page.Items) != 100 { // the files of one entry stay on one page
		t.Errorf("SessionFiles(limit 40): got %d items, %v; want all 100 of the entry", len(page.Items), err)
	}
}

// A cancel while a large image is made smaller sends nothing, and restores the message and its files as the draft.
func TestCancelWhileAttachmentsAreComposedSendsNothing(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.isReady(s.ID)
	large := d.upload("large.png", picture(t, 8100, 7000))
	for round := range 3 {
		d.chips(s.ID, large)
		d.sendFiles(s.ID, "stop me", session.Now, byID(large)...)
		if now := d.get(s.ID); now.Phase != lifecycle.Working || now.Turn == nil {
			t.Fatalf("round %d: %+v", round, now)
		}
		if err := d.Cancel(t.Context(), s.ID); err != nil {
			t.Fatal(err)
		}
		tr := d.idle(s.ID)
		now := d.get(s.ID)
		if last := lastTurn(tr); last.StopReason != "cancelled" || now.Draft != "stop me" || !slices.Equal(idsOf(now.Attachments), []string{large.ID}) {
			t.Errorf("round %d: %+v, %q, %+v", round, last, now.Draft, now.Attachments)
		}
	}
	// Another prompt that interrupts the turn, a restart and the end of the program do the same.
	d.sendFiles(s.ID, "interrupt me", session.Now, byID(large)...)
	d.send(s.ID, "echo instead", session.Interrupt)
	d.until("the other one", func() bool { return len(d.promptFrames(s.ID)) > 0 })
	d.idle(s.ID)
	d.queueIs(s.ID, "interrupt me stopped")
	d.sendFiles(s.ID, "restart me", session.Now, byID(large)...)
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	d.isReady(s.ID)
	d.sendFiles(s.ID, "end me", session.Now, byID(large)...)
	d.close()
	d = open(t, d.dir)
	f := d.promptFrames(s.ID)
	if len(f) != 1 || f[0].Params.Prompt[0].Text != "echo instead" {
		t.Errorf("prompts sent: got %d: %+v; want only %q", len(f), f, "echo instead")
	}
	wantStop(t, d.transcript(s.ID), "interrupted")
	d.sameAsRebuilt(s.ID)
}

// A large image travels in a smaller size.
func TestAttachedLargeImageIsDownscaled(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.isReady(s.ID)
	large := d.upload("large.png", picture(t, 8100, 60))
	if shown := d.chips(s.ID, large); travels(shown.Attachments) != "image downscaled" {
		t.Errorf("large image in the draft: got %+v, want it to travel downscaled", shown.Attachments)
	}
	d.sendFiles(s.ID, "echo see", session.Now, byID(large)...)
	d.idle(s.ID)
	f := d.promptFrames(s.ID)
	data, err := base64.StdEncoding.DecodeString(f[0].Params.Prompt[1].Data)
	if err != nil {
		t.Fatal(err)
	}
	if cfg, _, err := image.DecodeConfig(bytes.NewReader(data)); err != nil || cfg.Width > 8000 {
		t.Errorf("image sent: got %+v, %v; want at most 8000 wide", cfg, err)
	}
}

// The files of a draft and of the queue, and their bytes, survive a restart of the program.
func TestAttachmentsOfDraftAndQueueOutliveProgram(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "slow")
	d.works(s.ID)
	first, second, queued := d.upload("one.png", picture(t, 1, 1)), d.attach(s.ID, d.file("two.txt", []byte("two")))[0], d.upload("three.txt", []byte("three"))
	d.chips(s.ID, first, second)
	d.chips(s.ID, second, first) // in this order
	sent := d.sendFiles(s.ID, "echo later", session.Queue, byID(queued)...)
	d.close()
	d = open(t, d.dir)
	now := d.get(s.ID)
	if !slices.Equal(idsOf(now.Attachments), []string{second.ID, first.ID}) || travels(now.Attachments) != "embedded, image" {
		t.Fatalf("draft after reopening: got %+v, want second.txt embedded, then first.png", now.Attachments)
	}
	list, err := d.List(t.Context(), session.Which{}, "", 10)
	if err != nil || travels(list.Items[0].Attachments) != "embedded, image" {
		t.Errorf("List after reopening: got %+v, %v; want the draft's attachments", list, err)
	}
	if _, err := d.ChangeQueued(t.Context(), s.ID, sent.QueueItem.ID, session.QueuePatch{Send: true}); err != nil {
		t.Fatal(err)
	}
	d.idle(s.ID)
	f := d.promptFrames(s.ID)
	if got := f[len(f)-1]; got.types() != "text resource" || got.Params.Prompt[1].Resource.Text != "three" {
		t.Errorf("prompt from the queue after reopening: got %+v, want its attachment's text %q", got, "three")
	}
	if now := d.get(s.ID); len(now.Attachments) != 2 { // the draft's files were not sent
		t.Errorf("attachments in the draft: got %+v, want the 2 that were not sent", now.Attachments)
	}
}

// The files of a queued prompt can be replaced and removed; a prompt without text and files is refused.
func TestQueuedPromptTakesOtherAttachments(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "slow")
	d.works(s.ID)
	a, b := d.upload("a.txt", []byte("a")), d.upload("b.txt", []byte("b"))
	item := d.sendFiles(s.ID, "", session.Queue, byID(a)...).QueueItem
	ids := []string{b.ID, a.ID}
	sent, err := d.ChangeQueued(t.Context(), s.ID, item.ID, session.QueuePatch{Attachments: &ids})
	if err != nil || !slices.Equal(idsOf(sent.QueueItem.Attachments), ids) {
		t.Fatalf("ChangeQueued: got %+v, %v; want attachments %q", sent, err, ids)
	}
	none := []string{}
	_, err = d.ChangeQueued(t.Context(), s.ID, item.ID, session.QueuePatch{Attachments: &none})
	refused(t, err, "prompt.empty")
	text := "now with words"
	if _, err := d.ChangeQueued(t.Context(), s.ID, item.ID, session.QueuePatch{Message: &text, Attachments: &none}); err != nil {
		t.Fatal(err)
	}
	d.queueIs(s.ID, text)
}

func (d *desk) attachmentRows() (n int) {
	d.t.Helper()
	if err := d.db.Read().QueryRowContext(d.t.Context(), `SELECT count(*) FROM attachment`).Scan(&n); err != nil {
		d.t.Fatal(err)
	}
	return n
}

// The bytes of attachments are kept while a draft, a queue or a journal names them, and are removed after that; with an undo, when the undo
// is over.
func TestAttachmentBytesGoWhenNothingNamesThem(t *testing.T) {
	t.Parallel()
	d := openAs(t, t.TempDir(), proxy.Config{}, session.Config{Undo: 2 * time.Second})
	s, other := d.create(), d.create()
	d.isReady(s.ID)
	draft, sent, given, queued := d.upload("draft.txt", []byte("draft")), d.upload("sent.png", picture(t, 2, 2)), d.file("given.bin", []byte("given")), d.upload("queued.txt", []byte("queued"))
	d.upload("unused.txt", []byte("unused"))
	d.chips(other.ID, draft)
	d.sendFiles(s.ID, "echo", session.Now, byID(sent)...)
	d.idle(s.ID)
	if _, err := d.AddFiles(t.Context(), s.ID, []attachment.Wanted{{Path: given}}); err != nil {
		t.Fatal(err)
	}
	d.prompt(s.ID, "slow")
	d.works(s.ID)
	d.sendFiles(s.ID, "later", session.Queue, byID(queued)...)
	d.close()

	later := session.Config{Unattached: time.Millisecond, Undo: time.Hour}
	d = openAs(t, d.dir, proxy.Config{}, later)
	d.until("sweep", func() bool { return d.attachmentRows() == 4 })
	for name, sha := range map[string]string{"draft": shaOf([]byte("draft")), "sent": sent.SHA256, "given": shaOf([]byte("given")), "queued": queued.SHA256} {
		if _, err := d.Attachments().Blob(sha); err != nil {
			t.Errorf("Blob of %s: got %v, want it kept", name, err)
		}
	}
	d.until("end of what nothing names", func() bool { _, err := d.Attachments().Blob(shaOf([]byte("unused"))); return err != nil })
	d.delete(s.ID)
	if _, err := d.Attachments().Blob(sent.SHA256); err != nil {
		t.Error("it went before the deletion was final")
	}
	d.restore(s.ID)
	if e := find(d.transcript(s.ID), "attachment"); e == nil || len(e.Attachments) != 1 {
		t.Errorf("attachment entry of the restored session: got %+v, want one with its attachment", e)
	}
	if err := d.Erase(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	d.until("end of its files", func() bool { return d.attachmentRows() == 1 })
	d.until("end of its bytes", func() bool { _, err := d.Attachments().Blob(sent.SHA256); return err != nil })
	if _, err := d.Attachments().Blob(draft.SHA256); err != nil {
		t.Error(err)
	}
	d.chips(other.ID)
	d.until("end of all files", func() bool { return d.attachmentRows() == 0 })
	d.until("end of all bytes", func() bool { _, err := d.Attachments().Blob(draft.SHA256); return err != nil })
}

// Data of a newer version shows its attachments, and accepts none.
func TestAttachmentsOfNewerDataAreShown(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.isReady(s.ID)
	a, b := d.upload("a.txt", []byte("a")), d.upload("b.txt", []byte("b"))
	d.sendFiles(s.ID, "echo", session.Now, byID(a)...)
	d.idle(s.ID)
	d.chips(s.ID, b)
	d.close()
	raise(t, d.dir, "ALTER TABLE attachment ADD COLUMN colour TEXT NOT NULL DEFAULT ''")
	d = open(t, d.dir)
	if now := d.get(s.ID); len(now.Attachments) != 1 || now.Attachments[0].Travels != "embedded" {
		t.Errorf("draft of newer data: got %+v, want one embedded attachment", now.Attachments)
	}
	if e := find(d.transcript(s.ID), "user"); len(e.Attachments) != 1 {
		t.Errorf("user entry of newer data: got %+v, want one attachment", e)
	}
	if files, err := d.SessionFiles(t.Context(), s.ID, 0, 10); err != nil || len(files.Items) != 1 {
		t.Errorf("SessionFiles of newer data: got %+v, %v; want one", files, err)
	}
	_, r, err := d.Attachments().Content(t.Context(), a.ID)
	if err != nil {
		t.Fatal(err)
	}
	r.Close()
	_, err = d.Attachments().Upload(t.Context(), "x", "", strings.NewReader("x"))
	refused(t, err, "storage.newer")
	_, err = d.Attachments().Attach(t.Context(), attachments.AttachInput{Paths: []string{d.work}})
	refused(t, err, "storage.newer")
	_, err = d.Send(t.Context(), s.ID, session.Prompt{Attachments: byID(b)})
	refused(t, err, "storage.newer")
	_, err = d.AddFiles(t.Context(), s.ID, []attachment.Wanted{{Path: d.work}})
	refused(t, err, "storage.newer")
}

// Verify finds damage of attachments, and a repair makes what the journal holds.
func TestVerifyRepairsAttachments(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.isReady(s.ID)
	kept, lost := d.upload("kept.txt", []byte("kept")), d.upload("lost.png", picture(t, 5, 5))
	d.sendFiles(s.ID, "echo", session.Now, byID(kept, lost)...)
	d.idle(s.ID)
	d.wantVerified()
	if err := d.db.Write(t.Context(), func(tx *sql.Tx) error {
		_, err := tx.ExecContext(t.Context(), `DELETE FROM attachment_use`)
		_, rows := tx.ExecContext(t.Context(), `UPDATE entry SET attachments = 0`)
		return errors.Join(err, rows)
	}); err != nil {
		t.Fatal(err)
	}
	found := d.verified(maintenance.Verify{Repair: true})
	if len(found) != 1 || found[0].Code != "attachments.differ" || !found[0].Repaired || found[0].Params["missing"] != "2" {
		t.Errorf("Verify with repair: got %+v, want attachments.differ repaired, 2 missing", found)
	}
	if err := os.Remove(filepath.Join(d.dir, "blobs", lost.SHA256[:2], lost.SHA256+".zst")); err != nil {
		t.Fatal(err)
	}
	found = d.verified(maintenance.Verify{})
	if len(found) != 1 || found[0].Code != "attachment.lost" || found[0].Params["name"] != "lost.png" {
		t.Errorf("Verify without a blob: got %+v, want attachment.lost of lost.png", found)
	}
}

func (d *desk) verified(wish maintenance.Verify) []maintenance.Finding {
	d.t.Helper()
	if _, err := d.Maintenance().Verify(wish); err != nil {
		d.t.Fatal(err)
	}
	d.until("end of the verification", func() bool { return d.Maintenance().Verification().State != "running" })
	return slices.DeleteFunc(d.Maintenance().Verification().Findings, func(f maintenance.Finding) bool { return f.Code == "blob.unused" })
}

// wantVerified fails the test if a verification finds anything except unused blobs.
func (d *desk) wantVerified() {
	d.t.Helper()
	if found := d.verified(maintenance.Verify{}); len(found) > 0 {
		d.t.Errorf("Verify: got findings %+v, want none", found)
	}
}

// An export holds the attachments: by name for people, whole for programs. A fork has them too, and keeps them when its parent is erased.
func TestAttachmentsAreExportedAndForked(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.isReady(s.ID)
	shot := d.upload("shot.png", picture(t, 7, 7))
	d.sendFiles(s.ID, "echo", session.Now, byID(shot)...)
	d.idle(s.ID)
	if _, err := d.AddFiles(t.Context(), s.ID, []attachment.Wanted{{Path: d.file("out.csv", []byte("a,b\n")), Filename: "table.csv"}}); err != nil {
		t.Fatal(err)
	}
	d.chips(s.ID, shot)
	if _, text := d.export(s.ID, export.Markdown); !strings.Contains(string(text), "- **file** `shot.png` (image/png, ") || !strings.Contains(string(text), "`table.csv`") {
		t.Errorf("export as Markdown: got %s, want shot.png and table.csv named", text)
	}
	_, data := d.export(s.ID, export.JSON)
	var out struct {
		Session session.Session
		Entries []transcript.Entry
		Blobs   map[string][]byte
	}
	if err := json.Unmarshal(data, &out); err != nil || !bytes.Equal(out.Blobs[shot.SHA256], picture(t, 7, 7)) || string(out.Blobs[shaOf([]byte("a,b\n"))]) != "a,b\n" || len(out.Blobs) != 2 || len(out.Session.Attachments) > 0 {
		t.Errorf("%v, %d blobs", err, len(out.Blobs))
	}
	_, data = d.export(s.ID, export.Recording)
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	if f, err := z.Open("blobs/" + shot.SHA256); err != nil {
		t.Error(err)
	} else {
		f.Close()
	}
	id := s.ID
	d.close()
	d = openAs(t, d.dir, proxy.Config{}, session.Config{Unattached: time.Millisecond})
	fork := d.forkOf(id)
	if err := d.Erase(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	d.until("end of the draft's record", func() bool { return d.attachmentRows() == 2 })
	if files, err := d.SessionFiles(t.Context(), fork.ID, 0, 10); err != nil || len(files.Items) != 2 || files.Items[0].Direction != "out" {
		t.Errorf("SessionFiles of the fork: got %+v, %v; want 2, the newest outbound", files, err)
	}
	if _, err := d.Attachments().Blob(shot.SHA256); err != nil {
		t.Error(err)
	}
	d.wantVerified()
}

// A message of a surface with its attachments waits at its position in the queue like any other message.
func TestSurfaceMessagesKeepTheirOrder(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "slow")
	d.works(s.ID)
	d.queues(s.ID, "one")
	d.queues(s.ID, "two")
	d.queueIs(s.ID, "one, two")
	with := "echo three\n" + attachment.Sentinel([]attachment.SentinelItem{{URL: "https://cdn.discordapp.com/a.png?ex=1", Filename: "a.png"}})
	d.queues(s.ID, with)
	d.queues(s.ID, "four")
	d.queueIs(s.ID, "one, two, "+with+", four")
}

func TestToolsReadAndAddAttachments(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.isReady(s.ID)
	ctx := t.Context()
	if in, err := d.Attachments().Inbound(ctx, s.ID); in.Items != nil || in.Own != nil || in.Cwd != s.Cwd || err != nil {
		t.Errorf("the files of a session without messages: got %+v, %v, want none", in, err)
	}
	shot := d.upload("shot.png", picture(t, 4, 4))
	d.sendFiles(s.ID, "echo", session.Now, byID(shot)...)
	d.idle(s.ID)
	d.prompt(s.ID, "echo")
	d.idle(s.ID)
	in, err := d.Attachments().Inbound(ctx, s.ID)
	if err != nil || len(in.Own) != 1 || in.Own[0].Filename != "shot.png" {
		t.Fatalf("the newest message with files: got %+v, %v, want shot.png", in, err)
	}
	if data, err := d.Attachments().Read(ctx, in.Own[0]); err != nil || !bytes.Equal(data, picture(t, 4, 4)) {
		t.Errorf("Read(%s): got %d bytes, %v; want the picture", in.Own[0].Filename, len(data), err)
	}
	d.prompt(s.ID, "echo\n"+attachment.Sentinel([]attachment.SentinelItem{{URL: "https://cdn.discordapp.com/a.png", Filename: "a.png"}}))
	d.idle(s.ID)
	d.prompt(s.ID, "echo")
	d.idle(s.ID)
	if in, err := d.Attachments().Inbound(ctx, s.ID); err != nil || len(in.Items) != 1 || in.Items[0].Filename != "a.png" || in.Own != nil {
		t.Errorf("the newest message with a surface's files: got %+v, %v, want a.png", in, err)
	}
	one, two := d.file("one.png", picture(t, 1, 2)), d.file("two.txt", []byte("two"))
	given, err := d.AddFiles(ctx, s.ID, []attachment.Wanted{{Path: "one.png"}, {Path: two, Filename: "second.txt", MimeType: "text/x-two"}})
	if err != nil || len(given) != 2 || given[0].MimeType != "image/png" || given[1].Filename != "second.txt" {
		t.Fatalf("AddFiles: got %+v, %v; want a PNG and second.txt", given, err)
	}
	if err := errors.Join(os.Remove(one), os.Remove(two)); err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, e := range d.transcript(s.ID).Items {
		if e.Kind == "attachment" {
			shown = append(shown, e.Attachments[0].Filename)
		}
	}
	if !slices.Equal(shown, []string{"one.png", "second.txt"}) {
		t.Error(shown)
	}
	before := len(d.transcript(s.ID).Items)
	for _, list := range [][]attachment.Wanted{{{Path: "one.png"}}, {{Path: "/etc/hostname"}}, {{Path: d.file("ok.txt", []byte("ok"))}, {Path: ".."}}} {
		if given, err := d.AddFiles(ctx, s.ID, list); err == nil {
			t.Errorf("%+v was given as %+v", list, given)
		}
	}
	if len(d.transcript(s.ID).Items) != before { // no file is shown when one of them cannot be shown
		t.Error("some of them were shown")
	}
	d.sameAsRebuilt(s.ID)
}

func TestAskUserReturnsEachOutcome(t *testing.T) {
	t.Parallel()
	d := openAs(t, t.TempDir(), proxy.Config{}, session.Config{Patience: time.Minute})
	s := d.create()
	questions := []requests.Question{{Prompt: "Which?", Options: []form.QuestionOption{{ID: "a", Label: "A"}, {ID: "b", Label: "B"}}}, {Prompt: "Why?"}}
	type result struct {
		answers [][]string
		status  string
		err     error
	}
	ask := func(ctx context.Context) <-chan result {
		done := make(chan result, 1)
		go func() {
			var r result
			r.answers, r.status, r.err = d.AskUser(ctx, s.ID, questions)
			done <- r
		}()
		return done
	}
	d.prompt(s.ID, "slow")
	d.works(s.ID)
	done := ask(t.Context())
	r := d.request(s.ID)
	if r.Kind != "question" || len(r.Questions) != 2 || !r.Questions[1].AllowFreeText || r.Turn == "" || d.get(s.ID).Phase != lifecycle.Waiting {
		t.Fatalf("AskUser: got request %+v, want a question of 2 in the turn, the second with free text, and the session waiting", r)
	}
	d.answer(r, requests.Answer{Answers: [][]string{{"b"}, {"because"}}})
	if got := <-done; got.err != nil || got.status != "answered" || fmt.Sprint(got.answers) != "[[b] [because]]" {
		t.Errorf("AskUser after an answer: got %+v, want answered with [[b] [because]]", got)
	}
	done = ask(t.Context())
	d.answer(d.request(s.ID), requests.Answer{Reject: true})
	if got := <-done; got.err != nil || got.status != "rejected" || got.answers != nil {
		t.Errorf("AskUser after a rejection: got %+v, want rejected", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done = ask(ctx)
	d.request(s.ID)
	cancel()
	if got := <-done; got.err != nil || got.status != "cancelled" {
		t.Errorf("AskUser whose caller left: got %+v, want cancelled", got)
	}
	d.until("end of the request", func() bool { return d.get(s.ID).Waiting == 0 })
	done = ask(t.Context())
	d.request(s.ID)
	if err := d.Cancel(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	if got := <-done; got.status != "cancelled" {
		t.Errorf("AskUser in a cancelled turn: got %+v, want cancelled", got)
	}
	d.idle(s.ID)
	done = ask(t.Context()) // also while no turn runs
	d.request(s.ID)
	d.close()
	if got := <-done; got.status != "expired" {
		t.Errorf("AskUser at the end of the program: got %+v, want expired", got)
	}
	for dir, data := range open(t, d.dir).journal(s.ID) {
		if dir == "out" && strings.Contains(string(data), "because") {
			t.Errorf("the agent was answered what it did not ask: %s", data)
		}
	}
}

// The agent gets Deskhand's tools at every opening of its session, and the tools' secret is written nowhere.
func TestToolsAreGivenAtEveryOpening(t *testing.T) {
	t.Parallel()
	const secret = "0123456789abcdef-0123456789abcdef"
	var given, ended []string
	tools := func(session string, transports []string) (json.RawMessage, <-chan struct{}, bool) {
		given = append(given, strings.Join(transports, " "))
		return json.RawMessage(fmt.Sprintf(`{"type":"http","name":"deskhand","url":"http://127.0.0.1:1/mcp/%s","headers":[{"name":"Authorization","value":"Bearer %s"}]}`, session, secret)), nil, true
	}
	d := openAs(t, t.TempDir(), proxy.Config{}, session.Config{Tools: &host.Tools{Give: tools, End: func(session string) { ended = append(ended, session) }}})
	s := d.create()
	d.isReady(s.ID)
	d.prompt(s.ID, "echo my token is "+secret)
	d.idle(s.ID)
	if err := d.Restart(t.Context(), s.ID); err != nil {
		t.Fatal(err)
	}
	d.isReady(s.ID)
	opened := 0
	for dir, data := range d.journal(s.ID) {
		if strings.Contains(string(data), secret) {
			t.Errorf("journal: got the secret of the tools in %s", data)
		}
		if dir == "out" && strings.Contains(string(data), `"mcpServers"`) && strings.Contains(string(data), "/mcp/"+s.ID) {
			opened++
		}
	}
	d.close()
	if opened != 2 || len(given) != 2 || !strings.Contains(given[0], "http") || len(ended) != 2 {
		t.Errorf("tools: got %d session openings with our server, given for %q, ended for %q; want 2 of each", opened, given, ended)
	}
	d = openAs(t, d.dir, proxy.Config{}, session.Config{Tools: &host.Tools{Give: func(string, []string) (json.RawMessage, <-chan struct{}, bool) { return nil, nil, false }, End: func(string) {}}})
	none := d.create()
	d.isReady(none.ID)
	if n := find(d.transcript(none.ID), "notice"); n == nil || !strings.Contains(n.Notice.Title, "tools") {
		t.Errorf("session without tools: got notice %+v, want one that says so", n)
	}
}

// Readers that name the types of the bus get the bus events of a conversation, in the order of the stored steps.
func TestFeedTellsBusEventsToWhoAsks(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.isReady(s.ID)
	from, err := d.Feed().After(t.Context(), feed.Query{Gen: d.Feed().Gen(), After: 0})
	if err != nil {
		t.Fatal(err)
	}
	shot := d.upload("in.png", picture(t, 2, 2))
	turn := *d.sendFiles(s.ID, "markdown", session.Now, byID(shot)...).Turn
	tr := d.idle(s.ID)
	if _, err := d.AddFiles(t.Context(), s.ID, []attachment.Wanted{{Path: d.file("a.png", picture(t, 1, 1))}, {Path: d.file("b.txt", []byte("b"))}}); err != nil {
		t.Fatal(err)
	}
	types := []string{
		"evt.adapter.message.created", "cmd.request.message", "evt.request.lifecycle.changed", "evt.agent.output.delta.text", "evt.agent.output.delta.reasoning",
		"evt.agent.output.response.text", "evt.agent.output.response.binary", "evt.agent.output.toolcall", "evt.surface.output.message.created",
	}
	after := from.Seq
	var order []string
	var said, final string
	var files []session.BusEvent
	ctx, cancel := context.WithTimeout(t.Context(), testkit.Limit)
	defer cancel()
	for len(files) < 2 {
		batch, err := d.Feed().After(ctx, feed.Query{Gen: d.Feed().Gen(), After: after, Wait: time.Second, Session: s.ID, Types: types})
		if err != nil || ctx.Err() != nil {
			t.Fatalf("feed: got error %v with %d files, want 2", err, len(files))
		}
		after = batch.Seq
		for _, e := range d.Leaving(batch).Events {
			var b session.BusEvent
			if err := json.Unmarshal(e.Data, &b); err != nil {
				t.Fatal(err)
			}
			if len(order) == 0 || order[len(order)-1] != e.Type {
				order = append(order, e.Type)
			}
			switch e.Type {
			case "evt.agent.output.delta.text":
				said += b.Delta
			case "evt.agent.output.response.text":
				final = *b.FinalText
			case "evt.agent.output.response.binary":
				files = append(files, b)
			case "evt.adapter.message.created", "cmd.request.message":
				if b.RequestID != turn.ID || b.Text != "markdown" || len(b.Attachments) != 1 {
					t.Errorf("%s: got %+v, want text %q and one attachment in request %s", e.Type, b, "markdown", turn.ID)
				}
			}
		}
	}
	if order[0] != "evt.adapter.message.created" || order[1] != "cmd.request.message" || order[2] != "evt.request.lifecycle.changed" {
		t.Errorf("order of events: got %q, want the message, the request, its lifecycle first", order)
	}
	want := find(tr, "agent").Text
	if said != want || final != want || want == "" {
		t.Errorf("text of the agent: got deltas %q, final %q; want %q", said, final, want)
	}
	if files[0].Filename != "a.png" || files[0].DataBase64 == nil || *files[0].DataBase64 != base64.StdEncoding.EncodeToString(picture(t, 1, 1)) || files[0].Blob != nil || files[1].Filename != "b.txt" || files[1].MimeType != "text/plain" && !strings.HasPrefix(files[1].MimeType, "text/plain") {
		t.Errorf("binary events: got %+v, want a.png with its bytes, then b.txt as text/plain", files)
	}
	all, err := d.Feed().After(t.Context(), feed.Query{Gen: d.Feed().Gen(), After: from.Seq, Session: s.ID})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range all.Events {
		if strings.HasPrefix(e.Type, "evt.") || strings.HasPrefix(e.Type, "cmd.") {
			t.Errorf("%s comes to who has not asked for it", e.Type)
		}
	}
}
