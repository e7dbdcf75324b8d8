package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/attachment"
	"deskhand/backend/attachments"
	"deskhand/backend/session"
	"deskhand/backend/transcript"
)

// attachmentRoutes adds the routes that store files and return their bytes. Routes that carry bytes are plain handlers, because the library
// buffers whole bodies and knows no ranges; they are added to the document by hand.
func (c *Client) attachmentRoutes() {
	s, a := c.cfg.Sessions, c.lib.attachments
	c.bytesIn()
	register(c, op("getAttachment", http.MethodGet, "attachments/{id}", "Get the record of an attachment", http.StatusOK),
		func(ctx context.Context, in *byID) (*body[transcript.Attachment], error) {
			return answer(a.Get(ctx, in.ID))
		})
	c.bytesOut("attachmentContent", "attachments/{id}/content", "Get the bytes of an attachment",
		"Streamed, with ranges. Content that a browser could run, such as SVG and HTML, has the type of plain bytes. download=1 makes a browser save the file.",
		[]*huma.Param{flagInQuery("download", "Make a browser save the file instead of showing it")}, c.content)
	c.bytesOut("attachmentThumbnail", "attachments/{id}/thumbnail", "Get a thumbnail of an image", "A PNG, at most 256 pixels wide and high.", nil, c.thumbnail)
	c.bytesOut("blob", "blobs/{id}", "Get the bytes of a blob by their SHA-256", "Streamed, with ranges.", nil, c.blob)
	register(c, op("listFiles", http.MethodGet, "sessions/{id}/files", "List the files of a session, the newest first", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID     string `path:"id" maxLength:"64"`
			Limit  int    `query:"limit" default:"100" minimum:"1" maximum:"1000"`
			Before int64  `query:"before" minimum:"0" doc:"Cursor from the previous page"`
		},
		) (*body[session.Page[session.SessionFile]], error) {
			return answer(s.SessionFiles(ctx, in.ID, in.Before, in.Limit))
		})
	register(c, op("findPaths", http.MethodGet, "sessions/{id}/paths", "Find files of a session's directory by some of their letters", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID    string `path:"id" maxLength:"64"`
			Q     string `query:"q" maxLength:"500" doc:"Letters of the path in their order; empty for the top level"`
			Limit int    `query:"limit" default:"20" minimum:"1" maximum:"100"`
		},
		) (*body[attachments.FoundPaths], error) {
			return answer(a.FindPaths(ctx, in.ID, "", in.Q, in.Limit))
		})
	register(c, op("findPathsIn", http.MethodGet, "paths", "Find files of a directory of this machine by some of their letters, before there is a session", http.StatusOK),
		func(ctx context.Context, in *struct {
			Cwd   string `query:"cwd" required:"true" minLength:"1" maxLength:"4096"`
			Q     string `query:"q" maxLength:"500" doc:"Letters of the path in their order; empty for the top level"`
			Limit int    `query:"limit" default:"20" minimum:"1" maximum:"100"`
		},
		) (*body[attachments.FoundPaths], error) {
			return answer(a.FindPaths(ctx, "", in.Cwd, in.Q, in.Limit))
		})
}

const (
	mediaForm   = "multipart/form-data"
	mostPaths   = 8 << 20 // bytes of a list of paths
	thumbnailPx = 256
)

func (c *Client) bytesIn() {
	registry := c.api.OpenAPI().Components.Schemas
	ref := func(t reflect.Type) *huma.Schema { return registry.Schema(t, true, t.Name()) }
	o := op("attach", http.MethodPost, "attachments", "Add attachments", http.StatusCreated)
	o.Description = "By their paths, or by their bytes as parts named file, which are streamed. A file that cannot be taken in keeps none of the others."
	o.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/json": {Schema: ref(reflect.TypeFor[attachments.AttachInput]())},
		mediaForm: {Schema: &huma.Schema{Type: huma.TypeObject, Properties: map[string]*huma.Schema{
			"file": {Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
		}}},
	}}
	o.Responses = map[string]*huma.Response{
		"201": {Description: "The attachments, and the files that were refused", Content: map[string]*huma.MediaType{
			"application/json": {Schema: ref(reflect.TypeFor[attachments.AttachResult]())},
		}},
		"default": c.problemResponse(),
	}
	c.api.OpenAPI().AddOperation(&o)
	c.mux.HandleFunc(o.Method+" "+o.Path, c.attach)
}

// bytesOut adds a route that answers with bytes.
func (c *Client) bytesOut(id, path, summary, text string, params []*huma.Param, serve http.HandlerFunc) {
	o := op(id, http.MethodGet, path, summary, http.StatusOK)
	o.Description = text
	o.Parameters = append([]*huma.Param{{Name: "id", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}}}, params...)
	o.Responses = map[string]*huma.Response{
		"200":     {Description: "The bytes", Content: bytesOf("The bytes", mediaBytes)},
		"206":     {Description: "The requested part", Content: bytesOf("The requested bytes", mediaBytes)},
		"default": c.problemResponse(),
	}
	c.api.OpenAPI().AddOperation(&o)
	c.mux.HandleFunc(o.Method+" "+o.Path, serve)
}

func (c *Client) problemResponse() *huma.Response {
	t := reflect.TypeFor[clientError]()
	return &huma.Response{Description: "Error", Content: map[string]*huma.MediaType{
		"application/problem+json": {Schema: c.api.OpenAPI().Components.Schemas.Schema(t, true, t.Name())},
	}}
}

// attach stores the files of a list of paths, or of a form.
func (c *Client) attach(w http.ResponseWriter, r *http.Request) {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	var out attachments.AttachResult
	var err error
	switch media {
	case "application/json":
		out, err = c.attachPaths(w, r)
	case mediaForm:
		out, err = c.attachParts(r)
	default:
		err = newClientError(http.StatusUnsupportedMediaType, "request.invalid", nil, "files come as application/json with paths, or as "+mediaForm)
	}
	if err != nil {
		writeClientError(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(out) // fails only when the caller is gone
}

func (c *Client) attachPaths(w http.ResponseWriter, r *http.Request) (attachments.AttachResult, error) {
	var in attachments.AttachInput
	d := json.NewDecoder(http.MaxBytesReader(w, r.Body, mostPaths))
	if err := d.Decode(&in); err != nil || len(in.Paths) == 0 {
		return attachments.AttachResult{}, newClientError(http.StatusBadRequest, "request.invalid", nil, "paths are missing")
	}
	out, err := c.lib.attachments.Attach(r.Context(), in)
	return out, problemOf(err)
}

// attachParts stores the parts of a form as they arrive. When the caller leaves in the middle, the stored parts stay, and are removed
// later.
func (c *Client) attachParts(r *http.Request) (attachments.AttachResult, error) {
	out := attachments.AttachResult{Items: []transcript.Attachment{}, Problems: []attachments.AttachProblem{}}
	form, err := r.MultipartReader()
	if err != nil {
		return out, newClientError(http.StatusBadRequest, "request.invalid", nil, err.Error())
	}
	for n := 0; ; {
		part, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return out, newClientError(http.StatusBadRequest, "request.invalid", nil, err.Error())
		}
		if part.FormName() != "file" {
			continue
		}
		n++
		if p, more := errors.AsType[*attachment.Problem](attachment.Limits{}.Count(n)); more {
			out.Problems = append(out.Problems, attachments.AttachProblem{Name: part.FileName(), Code: p.Code, Params: p.Params})
			continue
		}
		media, _, _ := mime.ParseMediaType(part.Header.Get("Content-Type"))
		if media == mediaBytes { // a type without a meaning
			media = ""
		}
		a, err := c.lib.attachments.Upload(r.Context(), part.FileName(), media, part)
		refused, wrong := errors.AsType[*session.RefusedError](err)
		switch {
		case wrong:
			out.Problems = append(out.Problems, attachments.AttachProblem{Name: part.FileName(), Code: refused.Code, Params: refused.Params})
		case err != nil:
			return out, problemOf(err)
		default:
			out.Items = append(out.Items, a)
		}
	}
}

func writeClientError(w http.ResponseWriter, err error) {
	e, ok := errors.AsType[*clientError](err)
	if !ok {
		e = newClientError(http.StatusInternalServerError, "internal", nil, err.Error())
	}
	data, failed := json.Marshal(e)
	if failed != nil {
		data = []byte("{}")
	}
	h := w.Header()
	h.Set("Content-Type", "application/problem+json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(e.Status)
	_, _ = w.Write(data) // fails only when the caller is gone
}

// showable reports whether a file is sent with its own type; all others are sent as bytes. Types that a browser would run are not showable.
func showable(media string) bool {
	kind, _, _ := strings.Cut(media, "/")
	return kind == "audio" || kind == "video" ||
		slices.Contains([]string{"image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "application/pdf"}, media)
}

// served returns the media type for sending a file.
func served(given string) string {
	media, _, err := mime.ParseMediaType(given)
	switch {
	case err != nil:
	case media == "text/plain":
		return "text/plain; charset=utf-8"
	case showable(media):
		return media
	}
	return mediaBytes
}

// guardBytes sets headers that keep a browser from running a file.
func guardBytes(h http.Header, media string) {
	h.Set("Content-Type", media)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "private, no-cache")
}

func (c *Client) content(w http.ResponseWriter, r *http.Request) {
	a, content, err := c.lib.attachments.Content(r.Context(), r.PathValue("id"))
	if err != nil {
		writeClientError(w, problemOf(err))
		return
	}
	defer content.Close()
	guardBytes(w.Header(), served(a.MimeType))
	how := "inline"
	if download := r.URL.Query().Get("download"); download == "1" || download == "true" {
		how = "attachment"
	}
	w.Header().Set("Content-Disposition", mime.FormatMediaType(how, map[string]string{"filename": a.Filename}))
	if a.SHA256 != "" {
		w.Header().Set("ETag", `"`+a.SHA256+`"`)
	}
	http.ServeContent(w, r, "", time.Time{}, content)
}

func (c *Client) thumbnail(w http.ResponseWriter, r *http.Request) {
	png, err := c.lib.attachments.Thumbnail(r.Context(), r.PathValue("id"), thumbnailPx)
	if err != nil {
		writeClientError(w, problemOf(err))
		return
	}
	guardBytes(w.Header(), "image/png")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(png))
}

func (c *Client) blob(w http.ResponseWriter, r *http.Request) {
	sha := r.PathValue("id")
	data, err := c.lib.attachments.Blob(sha)
	if err != nil {
		writeClientError(w, problemOf(err))
		return
	}
	guardBytes(w.Header(), mediaBytes)
	w.Header().Set("Content-Disposition", "attachment")
	w.Header().Set("ETag", `"`+sha+`"`)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data))
}
