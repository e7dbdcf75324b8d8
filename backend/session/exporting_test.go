package session_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"deskhand/backend/export"
	"deskhand/backend/proxy"
	"deskhand/backend/requests"
	"deskhand/backend/session"
	"deskhand/backend/transcript"
	"deskhand/backend/vault"
)

func (d *desk) exporter() *export.Exporter {
	return export.New(export.Deps{
		Store: d.db, Logger: slog.New(slog.DiscardHandler), Version: "test", Session: d.Get, Stored: d.Stored,
		LoadSecrets: func(ctx context.Context) error { return d.roster.Secrets().Load(ctx, vault.Asking) }, Redactor: d.Redactor, Begin: d.Maintenance().BeginWork,
	})
}

func (d *desk) export(id, format string) (name string, data []byte) {
	d.t.Helper()
	x, err := d.exporter().File(d.t.Context(), id, format)
	if err != nil {
		d.t.Fatal(err)
	}
	var b bytes.Buffer
	if n, err := x.WriteTo(&b); err != nil || n != int64(b.Len()) {
		d.t.Fatal(n, b.Len(), err)
	}
	return x.Name, b.Bytes()
}

func TestExportOfEachFormat(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.prompt(s.ID, "please write a note with our-own-token in it")
	r := d.request(s.ID)
	d.answer(r, requests.Answer{OptionID: optionOf(t, r, "allow_once")})
	tr := d.idle(s.ID)

	name, text := d.export(s.ID, export.Markdown)
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
	_, data := d.export(s.ID, export.JSON)
	var out struct {
		Format   string
		Session  session.Session
		Entries  []transcript.Entry
		Turns    []session.Turn
		Requests []requests.Request
	}
	if err := json.Unmarshal(data, &out); err != nil || out.Session.ID != s.ID || len(out.Entries) != len(tr.Items) || len(out.Turns) != 1 || len(out.Requests) != 1 {
		t.Errorf("export as JSON: got %v, %s; want session %s with %d entries, 1 turn and 1 request", err, data, s.ID, len(tr.Items))
	}
	_, data = d.export(s.ID, export.Recording)
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
	_, err = d.exporter().File(t.Context(), s.ID, "pdf")
	refused(t, err, "export.format")
}

// An export of a damaged conversation holds what can be read, and says that it is not whole.
func TestExportOfADamagedConversation(t *testing.T) {
	t.Parallel()
	d := open(t, t.TempDir())
	s := d.create()
	d.isReady(s.ID)
	d.sendFiles(s.ID, "echo what is left", session.Now, byID(d.upload("notes.txt", []byte("notes")))...)
	d.idle(s.ID)
	tells := map[string]string{
		export.Markdown:  "\n> Not all of this conversation could be read, because what is kept of it is damaged: ",
		export.JSON:      `"damage": "`,
		export.Recording: `"damage":"`,
	}
	for format, mark := range tells {
		if _, data := d.export(s.ID, format); strings.Contains(string(allOf(t, format, data)), mark) {
			t.Errorf("as %s a whole one is said to be damaged", format)
		}
	}
	kept := d.upload("notes.txt", []byte("notes"))
	if err := os.Remove(filepath.Join(d.dir, "blobs", kept.SHA256[:2], kept.SHA256+".zst")); err != nil {
		t.Fatal(err)
	}
	for format, mark := range map[string]string{export.JSON: `"lost": "notes.txt is lost: `, export.Recording: `"damage":"notes.txt is lost: `} {
		if _, data := d.export(s.ID, format); !strings.Contains(string(allOf(t, format, data)), mark) {
			t.Errorf("%s does not tell of a file whose bytes are gone: %s", format, data)
		}
	}
	d.alter(`UPDATE frame SET encoding = 'zstd', payload = x'00' WHERE n = 2`)
	for format, mark := range tells {
		x, err := d.exporter().File(t.Context(), s.ID, format)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if _, err := x.WriteTo(&b); err != nil || x.Lost == nil {
			t.Errorf("%s: %v, lost: %v", format, err, x.Lost)
		}
		data := string(allOf(t, format, b.Bytes()))
		for _, want := range []string{mark + "frame 2: ", "what is left"} {
			if !strings.Contains(data, want) {
				t.Errorf("%s: no %q in\n%s", format, want, data)
			}
		}
		if format == export.Recording && (!strings.Contains(data, `{"n":1,`) || strings.Contains(data, `{"n":2,`) || !strings.Contains(data, `{"n":3,`)) {
			t.Errorf("other frames than those that can be read: %s", data)
		}
	}
}

// TestExportHoldsNoSecret: a secret of a directory's entries, agents.json, the environment or a login is in no format of the export,
// although the agent repeats it.
func TestExportHoldsNoSecret(t *testing.T) {
	const shaped = "ghp_abcdefghijklmnopqrstuvwxyz0123456789" // known by its shape only
	secrets := []string{"our-own-token", "key-of-a-person-4711", "token-in-env-8472", "token-in-header-1138", "token-in-variable-2187", shaped}
	t.Setenv("EXPORT_TEST_BEARER", "token-in-variable-2187")
	d := locked(t)
	if l := d.ended(d.login("by-env", "demo-key", map[string]string{"DESKHAND_DEMO_KEY": "key-of-a-person-4711"})); l.State != "done" {
		t.Fatalf("login: got %+v, want it done", l)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	local, err := json.Marshal(map[string]any{
		"type": "local", "command": []string{self, "mcp-server", "with"}, "env": map[string]string{"FIXTURE_SECRET": "token-in-env-8472"},
	})
	if err != nil {
		t.Fatal(err)
	}
	d.mcpFile(`{"near":` + string(local) + `,"far":{"type":"remote","transport":"http","url":"http://127.0.0.1:1/?access_token=token-in-header-1138",` +
		`"headers":{"X-Token":"token-in-header-1138"},"bearerTokenEnvVar":"EXPORT_TEST_BEARER"}}`)
	s := d.createOf("by-env")
	d.answer(d.request(s.ID), requests.Answer{OptionID: "approve"})
	d.says(s.ID, "mcp", nil)
	d.says(s.ID, "echo our-own-token and key-of-a-person-4711", nil)
	d.sendFiles(s.ID, "echo", session.Now, byID(d.upload("keys.env", []byte("FIRST=line\n"+strings.Join(secrets, "\n")+"\nLAST=line\n")))...)
	d.idle(s.ID)
	// The same holds after a restart.
	for range 2 {
		for _, format := range []string{export.Markdown, export.JSON, export.Recording} {
			_, data := d.export(s.ID, format)
			data = allOf(t, format, data)
			for _, secret := range secrets {
				if i := bytes.Index(data, []byte(secret)); i >= 0 {
					t.Errorf("%s goes out as %s: %s", secret, format, data[max(0, i-200):i+len(secret)])
				}
			}
			if !bytes.Contains(data, []byte("[redacted]")) || !bytes.Contains(data, []byte("near/said")) {
				t.Errorf("as %s the secrets were not there at all", format)
			}
			file := "FIRST=line\n" + strings.Repeat("[redacted]\n", len(secrets)) + "LAST=line\n"
			if format != export.Markdown && !bytes.Contains(data, []byte(file)) { // for people a file is named only
				t.Errorf("as %s the rest of the file is not there", format)
			}
		}
		d.close()
		d = open(t, d.dir)
	}
}

// TestExportHoldsNoSecretOfLater: a key that was quoted in a conversation before it was entered as a secret is not exported.
func TestExportHoldsNoSecretOfLater(t *testing.T) {
	t.Parallel()
	const key = "quoted-before-it-was-kept"
	d := locked(t)
	s := d.create()
	d.says(s.ID, "echo "+key, nil)
	d.sendFiles(s.ID, "echo", session.Now, byID(d.upload("notes.txt", []byte("it is "+key+"\n")))...)
	d.idle(s.ID)
	if l := d.ended(d.login("by-env", "demo-key", map[string]string{"DESKHAND_DEMO_KEY": key})); l.State != "done" {
		t.Fatalf("login: got %+v, want it done", l)
	}
	d.says(d.createOf("by-env").ID, "silent", nil) // an agent runs with the key now
	// The same holds after a restart.
	for range 2 {
		for _, format := range []string{export.Markdown, export.JSON, export.Recording} {
			name, data := d.export(s.ID, format)
			data = allOf(t, format, data)
			if bytes.Contains(data, []byte(key)) || strings.Contains(name, key) || !bytes.Contains(data, []byte("[redacted]")) {
				t.Errorf("as %s, %s: the key goes out", format, name)
			}
		}
		if text, err := d.Continuations().Summary(t.Context(), s.ID); err != nil || strings.Contains(text, key) || !strings.Contains(text, "[redacted]") {
			t.Errorf("in a summary: %v, %s", err, text)
		}
		d.close()
		d = open(t, d.dir)
	}
}

// TestSecretOfEarlierRunIsNotWritten: a secret of one agent, which was not started in this run of the program, is not written when another
// agent quotes it.
func TestSecretOfEarlierRunIsNotWritten(t *testing.T) {
	t.Parallel()
	const kept, given = "kept-for-another-4711", "given-to-another-8472"
	d := locked(t)
	if l := d.ended(d.login("by-env", "demo-key", map[string]string{"DESKHAND_DEMO_KEY": kept})); l.State != "done" {
		t.Fatalf("login: got %+v, want it done", l)
	}
	file := filepath.Join(d.dir, "agents.json")
	data, err := os.ReadFile(file)
	if err == nil {
		err = os.WriteFile(file, bytes.Replace(data, []byte(`"env":{`), []byte(`"env":{"API_TOKEN":"`+given+`",`), 1), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	d.close()
	d = open(t, d.dir)
	s := d.create()
	d.says(s.ID, "echo "+kept+" and "+given, nil)
	d.idle(s.ID)
	for _, data := range d.journal(s.ID) {
		if text := string(data); strings.Contains(text, kept) || strings.Contains(text, given) {
			t.Error(text)
		}
	}
}

// TestExportTellsOfSecretsThatItCannotKnow: an export tells that a secret in a locked keyring, or on a disk that does not answer, may be in
// it.
func TestExportTellsOfSecretsThatItCannotKnow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	still := make(chan struct{})
	defer close(still)
	var dead atomic.Bool
	d := openAs(t, dir, proxy.Config{}, session.Config{Gone: func(string) bool {
		if dead.Load() {
			<-still
		}
		return false
	}})
	s := d.create()
	d.says(s.ID, "echo what there is", nil)
	d.idle(s.ID)
	formats := []string{export.Markdown, export.JSON, export.Recording}
	told := func(format string) string {
		_, data := d.export(s.ID, format)
		for line := range strings.Lines(string(allOf(t, format, data))) {
			if strings.Contains(line, "unknownSecrets") || strings.Contains(line, "Secrets that could not be read") {
				return line
			}
		}
		return ""
	}
	for _, format := range formats {
		if text := told(format); text != "" {
			t.Errorf("export as %s: got %q, want nothing told of unknown secrets", format, text)
		}
	}
	kept := `{"agents":{"by-env":{"DESKHAND_DEMO_KEY":{"secret":true,"place":"system","key":"k"},"PLAIN":{"secret":false,"place":"system","key":"p"}}}}`
	if err := os.WriteFile(filepath.Join(dir, "logins.json"), []byte(kept), 0o600); err != nil {
		t.Fatal(err)
	}
	dead.Store(true)
	for _, format := range formats {
		text := told(format)
		if !strings.Contains(text, "DESKHAND_DEMO_KEY of by-env") || !strings.Contains(text, "does not answer") || strings.Contains(text, "PLAIN") {
			t.Errorf("export as %s: got %q, want DESKHAND_DEMO_KEY of by-env and a disk that does not answer told, not PLAIN", format, text)
		}
	}
}

// allOf returns the contents of an export, with archives unpacked.
func allOf(t *testing.T, format string, data []byte) []byte {
	t.Helper()
	switch format {
	case export.Recording:
		return unzipped(t, data)
	case export.JSON:
		var out struct{ Blobs map[string][]byte }
		if err := json.Unmarshal(data, &out); err != nil {
			t.Fatal(err)
		}
		for _, file := range out.Blobs {
			data = append(data, file...)
		}
	}
	return data
}

// unzipped returns the contents of all files of an archive.
func unzipped(t *testing.T, data []byte) []byte {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	var all []byte
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		part, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, part...)
	}
	return all
}
