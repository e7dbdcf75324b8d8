package httpapi

import (
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/files"
)

// defaultUpload is the longest body of an upload by default.
const defaultUpload = 2 << 30

// fsEntry is a row of a directory.
type fsEntry struct {
	Name      string     `json:"name"`
	Path      string     `json:"path" doc:"Absolute path. A path that is not UTF-8 is \"base64:\" and its bytes in base64url; every call accepts this form"`
	EntryType files.Kind `json:"entryType" enum:"file,directory,symlink"`
	Size      int64      `json:"size" doc:"Size in bytes"`
	Modified  time.Time  `json:"modified"`
}

// fsStat describes a path.
type fsStat struct {
	Path      string     `json:"path" doc:"Absolute path"`
	EntryType files.Kind `json:"entryType" enum:"file,directory,symlink"`
	Size      int64      `json:"size" doc:"Size in bytes"`
	Modified  time.Time  `json:"modified"`
}

// fsAction names the path that was made or removed.
type fsAction struct {
	Path string `json:"path" doc:"Absolute path"`
}

// fsWritten is a file that was written.
type fsWritten struct {
	Path         string `json:"path" doc:"Absolute path"`
	BytesWritten int64  `json:"bytesWritten"`
}

// fsMove asks for a move.
type fsMove struct {
	From      string `json:"from"`
	To        string `json:"to"`
	Overwrite *bool  `json:"overwrite,omitempty" doc:"Replace an existing target; otherwise an existing target is a conflict"`
}

// fsMoved is the answer to a move.
type fsMoved struct {
	From string `json:"from" doc:"Absolute path"`
	To   string `json:"to" doc:"Absolute path"`
}

// fsUnpacked lists the files of an unpacked archive.
type fsUnpacked struct {
	Paths     []string `json:"paths" doc:"Absolute paths of the unpacked files, at most the first 1024"`
	Truncated bool     `json:"truncated" doc:"The archive held more files than paths lists"`
}

const (
	mediaTar     = "application/x-tar"
	mediaTarGzip = "application/x-tar+gzip"
	mediaBytes   = "application/octet-stream"
)

// fileEndpoints returns the endpoints under /v1/fs. A relative path starts at the first root, an absolute path must lie in a root.
func (a *API) fileEndpoints(s *spec) []endpoint {
	path := inQuery("path", "Relative to the first root, or absolute and inside of a root", true)
	fails := []string{"invalid_request", "not_found", "conflict", "stream_error"} // conflict also when another program replaces a part of the path meanwhile
	return []endpoint{
		{
			pattern: "GET /v1/fs/entries", serve: a.listEntries, id: "listEntries", summary: "List a directory",
			text:    "Directories first, then by name. An entry that cannot be examined has size 0 and the zero time.",
			params:  []*huma.Param{inQuery("path", "Directory; the first root when absent", false)},
			answers: map[int]*huma.Response{200: record[[]fsEntry](s, "The entries")}, refuses: fails,
		},
		{
			pattern: "GET /v1/fs/file", serve: a.readFile, id: "readFile", summary: "Read a file",
			text:   "Streamed. Range and the conditional headers are honoured (RFC 9110).",
			params: []*huma.Param{path, inHeader("Range", "bytes=FROM-TO"), inHeader("If-None-Match", "ETag of the caller's copy")},
			answers: map[int]*huma.Response{
				200: {Description: "The bytes", Headers: etagHeader(), Content: bytesOf("The bytes of the file", mediaBytes)},
				206: {Description: "The requested part", Headers: etagHeader(), Content: bytesOf("The requested bytes", mediaBytes, "multipart/byteranges")},
				304: noContent("The caller's copy is current"),
			}, refuses: append(fails, "precondition_failed", "range_not_satisfiable"),
		},
		{
			pattern: "PUT /v1/fs/file", serve: a.writeFile, id: "writeFile", summary: "Write a file",
			text:   "The body is the content, of any media type. Parents are made. An upload that breaks off leaves the old file.",
			params: []*huma.Param{path}, body: &huma.RequestBody{Required: true, Content: bytesOf("The content", mediaBytes)},
			answers: map[int]*huma.Response{200: record[fsWritten](s, "The written file")}, refuses: append(fails, "payload_too_large"),
		},
		{
			pattern: "DELETE /v1/fs/entry", serve: a.removeEntry, id: "removeEntry", summary: "Remove a file or directory",
			params:  []*huma.Param{path, flagInQuery("recursive", "Remove a directory with its contents")},
			answers: map[int]*huma.Response{200: record[fsAction](s, "The removed entry")}, refuses: fails,
		},
		{
			pattern: "POST /v1/fs/mkdir", serve: a.makeDir, id: "makeDirectory", summary: "Make a directory",
			text:   "Missing parents are made, too. An existing directory is no error.",
			params: []*huma.Param{path}, answers: map[int]*huma.Response{200: record[fsAction](s, "The directory")},
			refuses: append(fails, "unsupported_media_type"),
		},
		{
			pattern: "POST /v1/fs/move", serve: a.moveEntry, id: "moveEntry", summary: "Move or rename a file or directory",
			body: recordBody[fsMove](s, "Source and target"), answers: map[int]*huma.Response{200: record[fsMoved](s, "The moved entry")},
			refuses: append(fails, "unsupported_media_type", "payload_too_large"),
		},
		{
			pattern: "GET /v1/fs/stat", serve: a.statEntry, id: "statEntry", summary: "Get the properties of a file or directory", text: "A symbolic link is not followed.",
			params: []*huma.Param{path}, answers: map[int]*huma.Response{200: record[fsStat](s, "The file or directory")}, refuses: fails,
		},
		{
			pattern: "POST /v1/fs/upload-batch", serve: a.unpack, id: "uploadBatch", summary: "Unpack an archive into a directory",
			text:    "Links, devices, absolute names and names with .. are refused, and nothing of such an archive is left behind.",
			params:  []*huma.Param{inQuery("path", "Directory, which is made when missing; the first root when absent", false)},
			body:    &huma.RequestBody{Required: true, Content: bytesOf("The archive", mediaTar, mediaTarGzip)},
			answers: map[int]*huma.Response{200: record[fsUnpacked](s, "The unpacked files")}, refuses: append(fails, "payload_too_large"),
		},
	}
}

func etagHeader() map[string]*huma.Param {
	return map[string]*huma.Param{"ETag": {Description: "Changes with the file", Schema: &huma.Schema{Type: huma.TypeString}}}
}

func (a *API) listEntries(w http.ResponseWriter, r *http.Request) {
	q, err := queryOf(r)
	if err != nil {
		a.refuse(w, err)
		return
	}
	found, err := a.files.List(asBytes(q.get("path", ".")))
	if err != nil {
		a.refuse(w, err)
		return
	}
	list := make([]fsEntry, 0, len(found))
	for _, e := range found {
		list = append(list, fsEntry{e.Name, inJSON(e.Path), e.Kind, e.Size, modified(e.Modified)})
	}
	a.answer(w, list)
}

func (a *API) statEntry(w http.ResponseWriter, r *http.Request) {
	path, err := pathOf(r)
	path = asBytes(path)
	if err != nil {
		a.refuse(w, err)
		return
	}
	e, err := a.files.Stat(path)
	if err != nil {
		a.refuse(w, err)
		return
	}
	a.answer(w, fsStat{inJSON(e.Path), e.Kind, e.Size, modified(e.Modified)})
}

func (a *API) readFile(w http.ResponseWriter, r *http.Request) {
	path, err := pathOf(r)
	path = asBytes(path)
	if err != nil {
		a.refuse(w, err)
		return
	}
	f, info, err := a.files.Open(path)
	if err != nil {
		a.refuse(w, err)
		return
	}
	defer f.Close()
	h := w.Header()
	h.Set("Content-Type", mediaBytes)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Disposition", "attachment")
	h.Set("Cache-Control", "private, no-cache") // a copy may be kept, but must be revalidated
	sendFile(w, r, f, info)
}

// sendFile answers with a file, or the requested part.
func sendFile(w http.ResponseWriter, r *http.Request, f io.ReadSeeker, info fs.FileInfo) {
	w.Header().Set("ETag", strconv.Quote(files.Version(info)))
	out := &download{ResponseWriter: w}
	http.ServeContent(out, r, "", modified(info.ModTime()), f)
	out.end()
}

// modified returns a time that RFC 3339 can express: the zero time for a year without four digits, which a file may claim.
func modified(at time.Time) time.Time {
	if at = at.UTC(); at.Year() < 0 || at.Year() > 9999 {
		return time.Time{}
	}
	return at
}

// A caller has downloadPause for each downloadStep of a file. The pause is long because systems report free buffer space in steps of about
// a megabyte.
const (
	downloadPause = 2 * time.Minute
	downloadStep  = 64 << 10
)

// download is the writer for ServeContent. download turns refusals, which are text or empty, into problem documents, and limits the wait
// for a caller that reads nothing: http.Server.WriteTimeout would apply to the whole file.
type download struct {
	http.ResponseWriter
	refused, begun bool
}

func (d *download) WriteHeader(status int) {
	if status < http.StatusBadRequest {
		d.ResponseWriter.WriteHeader(status)
		return
	}
	d.refused = true
	h := d.Header()
	p := Problem{Type: "stream_error", Detail: "the file could not be read"}
	switch status {
	case http.StatusRequestedRangeNotSatisfiable:
		p = Problem{Type: "range_not_satisfiable", Detail: "the file has " + strings.TrimPrefix(h.Get("Content-Range"), "bytes */") + " bytes"}
	case http.StatusPreconditionFailed:
		p = Problem{Type: "precondition_failed", Detail: "the file is not the one that the request is for"}
	}
	for _, name := range []string{"Content-Length", "Content-Disposition", "ETag"} {
		h.Del(name)
	}
	WriteProblem(d.ResponseWriter, p)
}

func (d *download) Write(b []byte) (int, error) {
	if d.refused {
		return len(b), nil
	}
	return d.ResponseWriter.Write(b)
}

// ReadFrom sends the bounded file that ServeContent passes. The bound is removed and set again for each step, because net/http uses
// sendfile only for a file behind a single bound.
func (d *download) ReadFrom(r io.Reader) (sent int64, err error) {
	if d.refused {
		return io.Copy(io.Discard, r)
	}
	d.begun = true
	bounded, ok := r.(*io.LimitedReader)
	if !ok {
		bounded = &io.LimitedReader{R: r, N: math.MaxInt64}
	}
	for bounded.N > 0 && err == nil {
		_ = http.NewResponseController(d.ResponseWriter).SetWriteDeadline(time.Now().Add(downloadPause)) // fails in the window, which has no deadline
		var n int64
		n, err = io.CopyN(d.ResponseWriter, bounded.R, min(bounded.N, downloadStep))
		bounded.N -= n
		sent += n
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return sent, err
}

// end flushes the rest under the deadline, and lifts the deadline for the next request.
func (d *download) end() {
	out := http.NewResponseController(d.ResponseWriter)
	if d.begun && out.Flush() == nil {
		_ = out.SetWriteDeadline(time.Time{})
	}
}

func (a *API) writeFile(w http.ResponseWriter, r *http.Request) {
	path, err := pathOf(r)
	path = asBytes(path)
	if err != nil {
		a.refuse(w, err)
		return
	}
	if r.Header.Get("Content-Range") != "" { // the rest of the file would be lost (RFC 9110, 14.5)
		a.refuse(w, &refusal{"invalid_request", "a part of a file cannot be written"})
		return
	}
	body, err := bodyOf(w, r, a.cfg.MaxUpload)
	if err != nil {
		a.refuse(w, err)
		return
	}
	e, n, err := a.files.Write(path, body)
	if err != nil {
		a.refuse(w, err)
		return
	}
	a.answer(w, fsWritten{inJSON(e.Path), n})
}

func (a *API) removeEntry(w http.ResponseWriter, r *http.Request) {
	q, err := queryOf(r)
	if err != nil {
		a.refuse(w, err)
		return
	}
	recursive, err := q.flag("recursive")
	if err != nil {
		a.refuse(w, err)
		return
	}
	path, err := q.require("path")
	if err != nil {
		a.refuse(w, err)
		return
	}
	removed, err := a.files.Remove(asBytes(path), recursive)
	a.answerPath(w, inJSON(removed), err)
}

func (a *API) answerPath(w http.ResponseWriter, path string, err error) {
	if err != nil {
		a.refuse(w, err)
		return
	}
	a.answer(w, fsAction{path})
}

// makeDir takes no body, and still refuses the type of a form, which a foreign page can send.
func (a *API) makeDir(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Content-Type") != "" && mediaType(r) != "application/json" {
		a.refuse(w, &refusal{"unsupported_media_type", "there is no body; of a type, if any, application/json"})
		return
	}
	path, err := pathOf(r)
	path = asBytes(path)
	if err != nil {
		a.refuse(w, err)
		return
	}
	made, err := a.files.MakeDir(path)
	a.answerPath(w, made, err)
}

func (a *API) moveEntry(w http.ResponseWriter, r *http.Request) {
	var m fsMove
	if err := readRecord(w, r, &m); err != nil {
		a.refuse(w, err)
		return
	}
	if m.From == "" || m.To == "" {
		a.refuse(w, &refusal{"invalid_request", "from and to are required"})
		return
	}
	from, to, err := a.files.Move(r.Context(), asBytes(m.From), asBytes(m.To), m.Overwrite != nil && *m.Overwrite)
	if err != nil {
		a.refuse(w, err)
		return
	}
	a.answer(w, fsMoved{from, to})
}

// unpack extracts an archive. For other media types the contract demands 400, not 415.
func (a *API) unpack(w http.ResponseWriter, r *http.Request) {
	q, err := queryOf(r)
	if err != nil {
		a.refuse(w, err)
		return
	}
	media := mediaType(r)
	if media != mediaTar && media != mediaTarGzip {
		a.refuse(w, &refusal{"invalid_request", "the archive must be " + mediaTar + " or " + mediaTarGzip})
		return
	}
	body, err := bodyOf(w, r, a.cfg.MaxUpload)
	if err != nil {
		a.refuse(w, err)
		return
	}
	paths, truncated, err := a.files.Unpack(r.Context(), asBytes(q.get("path", ".")), body, media == mediaTarGzip)
	if err != nil {
		a.refuse(w, err)
		return
	}
	a.answer(w, fsUnpacked{append([]string{}, paths...), truncated})
}

// encodedPath is the prefix of a path that JSON cannot express.
const encodedPath = "base64:"

// inJSON returns a path for an answer: a path that is no UTF-8 in base64url, so that a caller can name the file.
func inJSON(path string) string {
	if utf8.ValidString(path) {
		return path
	}
	return encodedPath + base64.RawURLEncoding.EncodeToString([]byte(path))
}

// asBytes returns the path that a caller means. An encoded path that is valid UTF-8 is taken literally: the name itself begins with the
// prefix.
func asBytes(path string) string {
	if code, ok := strings.CutPrefix(path, encodedPath); ok {
		if data, err := base64.RawURLEncoding.DecodeString(code); err == nil && !utf8.Valid(data) {
			return string(data)
		}
	}
	return path
}
