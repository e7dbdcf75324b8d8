package httpapi_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"deskhand/backend/attachments"
	"deskhand/backend/feed"
	"deskhand/backend/session"
)

type part struct{ name, media, text string }

// upload posts a form with files.
func (c *clinic) upload(parts ...part) attachments.AttachResult {
	c.t.Helper()
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	for _, p := range parts {
		h := textproto.MIMEHeader{"Content-Disposition": {mime.FormatMediaType("form-data", map[string]string{"name": "file", "filename": p.name})}}
		if p.media != "" {
			h.Set("Content-Type", p.media)
		}
		f, err := w.CreatePart(h)
		if err == nil {
			_, err = io.WriteString(f, p.text)
		}
		if err != nil {
			c.t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		c.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(c.t.Context(), "POST", c.url+"/client/attachments", &form)
	if err != nil {
		c.t.Fatal(err)
	}
	r.Header.Set("Content-Type", w.FormDataContentType())
	resp, err := c.client.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	var out attachments.AttachResult
	if err := json.NewDecoder(resp.Body).Decode(&out); err != nil || resp.StatusCode != http.StatusCreated {
		c.t.Fatalf("POST /client/attachments: got %d and error %v, want 201 and JSON", resp.StatusCode, err)
	}
	return out
}

// fetch gets bytes with their headers.
func (c *clinic) fetch(path string, headers ...string) (status int, header http.Header, text string) {
	c.t.Helper()
	r, err := http.NewRequestWithContext(c.t.Context(), "GET", c.url+"/client/"+path, nil)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.client.Do(r)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		c.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(data)
}

func TestAttachmentsOverHTTP(t *testing.T) {
	c := openSettings(t, "")
	work := t.TempDir()
	var s session.Session
	quoted, err := json.Marshal(work)
	if err != nil {
		t.Fatal(err)
	}
	c.call("POST", "sessions", fmt.Sprintf(`{"agent":"mock","cwd":%s}`, quoted), http.StatusCreated, &s)
	if err := os.WriteFile(filepath.Join(work, "a b.txt"), []byte("in the directory"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out attachments.AttachResult
	c.call("POST", "attachments", fmt.Sprintf(`{"paths":["a b.txt","none.txt"],"session":%q}`, s.ID), http.StatusCreated, &out)
	if len(out.Items) != 1 || len(out.Problems) != 1 || out.Problems[0].Name != "none.txt" || out.Problems[0].Code != "attachment.missing" {
		t.Fatalf("attachments: got %+v, want one file, and none.txt missing", out)
	}
	path := out.Items[0]
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 600, 300))); err != nil {
		t.Fatal(err)
	}
	up := c.upload(part{"p.png", "image/png", picture.String()}, part{"x.svg", "image/svg+xml", `<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>`},
		part{"ä \"b\".html", "text/html", "<script>alert(1)</script>"}, part{"n.txt", "application/octet-stream", "0123456789"})
	if len(up.Items) != 4 || len(up.Problems) != 0 || up.Items[3].MimeType != "text/plain" {
		t.Fatalf("upload: got %+v, want four files, the last text/plain", up)
	}
	c.refused("POST", "attachments", `{}`, http.StatusBadRequest, "request.invalid")
	c.refused("POST", "attachments", `{"paths":["/x"],"session":"none"}`, http.StatusNotFound, "not_found")

	for i, want := range []struct{ media, name string }{{"image/png", "p.png"}, {"application/octet-stream", "x.svg"}, {"application/octet-stream", `ä "b".html`}, {"text/plain; charset=utf-8", "n.txt"}} {
		status, header, _ := c.fetch("attachments/" + up.Items[i].ID + "/content")
		how, params, err := mime.ParseMediaType(header.Get("Content-Disposition"))
		if status != 200 || header.Get("Content-Type") != want.media || header.Get("X-Content-Type-Options") != "nosniff" ||
			header.Get("Content-Security-Policy") != "sandbox; default-src 'none'" || how != "inline" || params["filename"] != want.name || err != nil {
			t.Errorf("%s: got %d %v, want %s, guarded, with its name", want.name, status, header, want.media)
		}
	}
	status, header, text := c.fetch("attachments/"+up.Items[3].ID+"/content?download=1", "Range", "bytes=2-4")
	if status != http.StatusPartialContent || text != "234" || !strings.HasPrefix(header.Get("Content-Disposition"), "attachment") {
		t.Errorf("range 2-4: got %d %q %v, want 206, \"234\" as an attachment", status, text, header)
	}
	if _, _, text := c.fetch("attachments/" + path.ID + "/content"); text != "in the directory" {
		t.Errorf("content: got %q, want the file in the directory", text)
	}
	status, header, text = c.fetch("blobs/"+up.Items[3].SHA256, "Range", "bytes=-1")
	if status != http.StatusPartialContent || text != "9" || header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("range -1: got %d %q %v, want 206, \"9\" as bytes", status, text, header)
	}
	_, header, text = c.fetch("attachments/" + up.Items[0].ID + "/thumbnail")
	if cfg, err := png.DecodeConfig(strings.NewReader(text)); err != nil || cfg.Width != 256 || cfg.Height != 128 || header.Get("Content-Type") != "image/png" {
		t.Errorf("thumbnail: got %+v, %v, %v, want a PNG of 256 x 128", cfg, err, header)
	}
	c.refused("GET", "attachments/"+up.Items[3].ID+"/thumbnail", "", http.StatusBadRequest, "attachment.no_image")
	for _, none := range []string{"attachments/none", "attachments/none/content", "attachments/none/thumbnail", "blobs/none", "blobs/" + strings.Repeat("0", 64), "sessions/none/files", "sessions/none/paths"} {
		c.refused("GET", none, "", http.StatusNotFound, "not_found")
	}

	many := make([]part, 102)
	for i := range many {
		many[i] = part{fmt.Sprintf("%d.txt", i), "", "x"}
	}
	if up := c.upload(many...); len(up.Items) != 100 || len(up.Problems) != 2 || up.Problems[0].Name != "100.txt" || up.Problems[0].Code != "attachment.too_many" {
		t.Errorf("upload of 102: got %d files, problems %+v, want 100 and 2", len(up.Items), up.Problems)
	}

	var found attachments.FoundPaths
	c.call("GET", "sessions/"+s.ID+"/paths?q=abtxt", "", http.StatusOK, &found)
	if len(found.Items) != 1 || found.Items[0].Relative != "a b.txt" || found.More {
		t.Errorf("paths: got %+v, want a b.txt", found)
	}
	var now session.Session
	c.call("PATCH", "sessions/"+s.ID, fmt.Sprintf(`{"attachments":[%q,%q]}`, up.Items[0].ID, path.ID), http.StatusOK, &now)
	if len(now.Attachments) != 2 {
		t.Errorf("session: got attachments %+v, want 2", now.Attachments)
	}
	c.refused("PATCH", "sessions/"+s.ID, `{"attachments":["none"]}`, http.StatusBadRequest, "attachment.unknown")
	if err := os.Remove(filepath.Join(work, "a b.txt")); err != nil {
		t.Fatal(err)
	}
	c.refused("POST", "sessions/"+s.ID+"/prompt", fmt.Sprintf(`{"message":"","attachments":[{"id":%q}]}`, path.ID), http.StatusConflict, "attachment.missing")
	status, _, _ = c.fetch("attachments/" + path.ID + "/content")
	if status != http.StatusConflict {
		t.Errorf("content of a missing file: got status %d, want 409", status)
	}
	var sent session.Sent
	c.call("POST", "sessions/"+s.ID+"/prompt", fmt.Sprintf(`{"message":"","attachments":[{"id":%q}]}`, up.Items[0].ID), http.StatusAccepted, &sent)
	var files session.Page[session.SessionFile]
	c.call("GET", "sessions/"+s.ID+"/files", "", http.StatusOK, &files)
	if sent.Turn == nil || len(files.Items) != 1 || files.Items[0].Turn != sent.Turn.ID || files.Items[0].Attachment.Filename != "p.png" {
		t.Errorf("files: got %+v, want p.png of the turn", files)
	}
	var batch feed.Batch
	c.call("GET", "events?gen="+c.gen+"&wait=0&types=cmd.request.message,evt.adapter.message.created", "", http.StatusOK, &batch)
	if len(batch.Events) != 2 {
		t.Errorf("events: got %+v, want 2", batch.Events)
	}
}
