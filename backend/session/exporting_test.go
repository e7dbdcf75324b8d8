package session_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"io"
	"strings"
	"testing"

	"deskhand/backend/session"
)

func (d *desk) export(id, format string) (name string, data []byte) {
	d.t.Helper()
	x, err := d.Export(d.t.Context(), id, format)
	if err != nil {
		d.t.Fatal(err)
	}
	var b bytes.Buffer
	if n, err := x.WriteTo(&b); err != nil || n != int64(b.Len()) {
		d.t.Fatal(n, b.Len(), err)
	}
	return x.Name, b.Bytes()
}

func TestExport(t *testing.T) {
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "please write a note with our-own-token in it")
	r := d.request(s.ID)
	d.answer(r, session.Answer{OptionID: optionOf(t, r, "allow_once")})
	tr := d.idle(s.ID)

	name, text := d.export(s.ID, session.Markdown)
	if !strings.HasSuffix(name, "please-write-a-note-with-redacted-in-it.md") {
		t.Error(name)
	}
	for _, want := range []string{
		"\n## You\n\nplease write a note with ", "\n## " + s.AgentName + "\n", "**" + r.Agent + " asks:** " + r.Title, "answered: ", "```diff\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	_, data := d.export(s.ID, session.JSON)
	var out struct {
		Format   string
		Session  session.Session
		Entries  []session.Entry
		Turns    []session.Turn
		Requests []session.Request
	}
	if err := json.Unmarshal(data, &out); err != nil || out.Session.ID != s.ID || len(out.Entries) != len(tr.Items) || len(out.Turns) != 1 || len(out.Requests) != 1 {
		t.Errorf("%v, %s", err, data)
	}
	_, data = d.export(s.ID, session.Recording)
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	f, err := z.Open("frames.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	journal, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	frames := 0
	for range d.journal(s.ID) {
		frames++
	}
	if have := bytes.Count(journal, []byte("\n")); have != frames {
		t.Errorf("%d frames of %d", have, frames)
	}
	for format, all := range map[string][]byte{"md": text, "recording": journal} {
		if strings.Contains(string(all), "our-own-token") {
			t.Errorf("a secret goes out as %s", format)
		}
	}
	_, err = d.Export(t.Context(), s.ID, "pdf")
	refused(t, err, "export.format")
}

// TestExportOfALongMessage: what is clipped on the screen goes out whole.
func TestExportOfALongMessage(t *testing.T) {
	d := open(t, t.TempDir())
	s := d.create()
	long := strings.Repeat("0123456789abcdef", 20_000) // 320 kB
	d.prompt(s.ID, "echo "+long)
	if tr := d.idle(s.ID); find(tr, "user").Clipped == 0 {
		t.Fatal("nothing was clipped")
	}
	for _, format := range []string{session.Markdown, session.JSON} {
		if _, data := d.export(s.ID, format); strings.Count(string(data), long) < 2 {
			t.Errorf("%s: the long message is not whole", format)
		}
	}
}
