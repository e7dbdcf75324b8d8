package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/danielgtaylor/huma/v2"

	"deskhand/backend/attachment"
	"deskhand/backend/files"
	"deskhand/backend/session"
	"deskhand/backend/store"
)

// The files of a session's directories, for a person who browses them: like /v1/fs, but within the roots of the session. Callers may start
// programs, so the roots are no defence against the caller: they keep links and other files of an agent from leading a person out of the
// browsed directories.

const (
	mostListed  = 5_000     // entries of a directory
	mostLinks   = 200       // links whose targets are resolved
	mostLooked  = 200       // paths that are looked up at once
	mostWhole   = 1 << 20   // bytes of a text that is shown whole, and can be changed
	mostOfLarge = 256 << 10 // bytes that are shown of a larger text
)

// treeEntry is a row of a directory, or a directory of the session.
type treeEntry struct {
	Name     string     `json:"name"`
	Path     string     `json:"path" doc:"Absolute path"`
	Kind     files.Kind `json:"kind" enum:"file,directory,symlink"`
	Leads    files.Kind `json:"leads,omitempty" enum:"file,directory" doc:"Kind of a link's target; absent when the target is outside the session's directories"`
	Size     int64      `json:"size" doc:"Size in bytes"`
	Modified time.Time  `json:"modified"`
	Missing  bool       `json:"missing,omitempty" doc:"The directory of the session does not exist"`
	Unnamed  bool       `json:"unnamed,omitempty" doc:"The name is not UTF-8, and the entry cannot be requested"`
}

type treeListing struct {
	Path  string      `json:"path,omitempty" doc:"Absolute path of the directory; absent in the list of the session's directories"`
	Items []treeEntry `json:"items" doc:"Entries, directories first, then by name"`
	More  bool        `json:"more,omitempty" doc:"The directory has more entries"`
}

// treePreview describes a file, with its text if any.
type treePreview struct {
	Path     string    `json:"path" doc:"Absolute path"`
	Name     string    `json:"name"`
	Size     int64     `json:"size" doc:"Size in bytes"`
	Modified time.Time `json:"modified"`
	MimeType string    `json:"mimeType"`
	Version  string    `json:"version" doc:"Version of the file, different after every change; a write takes it in If-Match, in quotes"`
	Kind     string    `json:"kind" enum:"text,image,audio,video,binary"`
	Text     string    `json:"text,omitempty"`
	Whole    bool      `json:"whole,omitempty" doc:"text is the whole file"`
}

// treeWritten is a file that was written.
type treeWritten struct {
	Path     string    `json:"path" doc:"Absolute path"`
	Size     int64     `json:"size" doc:"Size in bytes"`
	Modified time.Time `json:"modified"`
	Version  string    `json:"version"`
}

type treeCopy struct {
	Paths   []string `json:"paths" minItems:"1" maxItems:"100" doc:"Absolute paths of files on this machine"`
	To      string   `json:"to" minLength:"1" maxLength:"4096" doc:"Absolute path of the target, a directory of the session"`
	Replace bool     `json:"replace,omitempty" doc:"Replace files with the same names"`
}

type treeCopied struct {
	Items    []treeWritten `json:"items"`
	Problems []treeProblem `json:"problems" doc:"Files that were not copied; the other files were"`
}

type treeProblem struct {
	Path   string            `json:"path" doc:"The path as it was given"`
	Code   string            `json:"code" doc:"Stable dotted code: tree.exists, tree.directory, tree.missing, tree.forbidden and others"`
	Params map[string]string `json:"params"`
}

type treeLook struct {
	Paths []string `json:"paths" minItems:"1" maxItems:"200" doc:"Absolute paths"`
}

type treeFound struct {
	Paths []string `json:"paths" doc:"Those of the paths at which a file can be read, in one of the session's directories"`
}

// treeRoutes adds the routes about the files in a session's directories.
func (c *Client) treeRoutes() {
	path := inQuery("path", "Absolute, in one of the session's directories", true)
	register(c, op("listTree", http.MethodGet, "sessions/{id}/tree", "List a directory of a session, or the session's directories", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Path string `query:"path" maxLength:"4096" doc:"Absolute path; absent = the list of the session's directories"`
		},
		) (*body[treeListing], error) {
			list, err := c.listTree(ctx, in.ID, in.Path)
			return treeAnswer(list, err, in.Path)
		})
	register(c, op("previewFile", http.MethodGet, "sessions/{id}/tree/preview", "Get a preview of a file in a session's directories", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Path string `query:"path" required:"true" maxLength:"4096"`
		},
		) (*body[treePreview], error) {
			p, err := c.preview(ctx, in.ID, in.Path)
			return treeAnswer(p, err, in.Path)
		})
	register(c, op("copyIntoTree", http.MethodPost, "sessions/{id}/tree/copy", "Copy files of this machine into a directory of a session", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body treeCopy
		},
		) (*body[treeCopied], error) {
			out, err := c.copyIn(ctx, in.ID, in.Body)
			return treeAnswer(out, err, in.Body.To)
		})
	register(c, op("findFiles", http.MethodPost, "sessions/{id}/tree/files", "Tell which of many paths are files in a session's directories", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"64"`
			Body treeLook
		},
		) (*body[treeFound], error) {
			found, err := c.findFiles(ctx, in.ID, in.Body.Paths)
			return treeAnswer(found, err, "")
		})
	c.bytesOut("treeFile", "sessions/{id}/tree/file", "The bytes of a file of a conversation's directories",
		"Streamed, with ranges and an ETag. What a browser could run comes as bytes. download=1 has it saved.",
		[]*huma.Param{path, flagInQuery("download", "Have it saved in place of shown")}, c.sendTree)
	c.treeWrites(path)
}

func (c *Client) treeWrites(path *huma.Param) {
	registry := c.api.OpenAPI().Components.Schemas
	written := reflect.TypeFor[treeWritten]()
	o := op("writeTreeFile", http.MethodPut, "sessions/{id}/tree/file", "Write a file in a session's directories", http.StatusOK)
	o.Description = "The body is the content, as application/octet-stream. Parents are made. If-Match names the version that the caller has seen (* = whatever " +
		"it is), If-None-Match: * says that nothing stands there yet; one of them is needed. tree.changed and tree.exists are that it is otherwise: nothing is written then."
	o.Parameters = []*huma.Param{
		{Name: "id", In: "path", Required: true, Schema: &huma.Schema{Type: huma.TypeString}},
		path,
		inHeader("If-Match", "The version in quotes, or *"), inHeader("If-None-Match", "*"),
	}
	o.RequestBody = &huma.RequestBody{Required: true, Content: bytesOf("The content", mediaBytes)}
	o.Responses = map[string]*huma.Response{
		"200":     {Description: "The written file", Content: map[string]*huma.MediaType{"application/json": {Schema: registry.Schema(written, true, written.Name())}}},
		"default": c.problemResponse(),
	}
	c.api.OpenAPI().AddOperation(&o)
	c.mux.HandleFunc(o.Method+" "+o.Path, c.writeTree)
}

// tree returns the files of a session.
func (c *Client) tree(ctx context.Context, id string) (*files.Tree, error) {
	roots, err := c.cfg.Sessions.Roots(ctx, id)
	if err != nil {
		return nil, err
	}
	return c.cfg.Files.Tree(roots)
}

func (c *Client) listTree(ctx context.Context, id, path string) (treeListing, error) {
	if path == "" {
		return c.treeRoots(ctx, id)
	}
	tree, err := c.tree(ctx, id)
	if err != nil {
		return treeListing{}, err
	}
	found, err := tree.List(path)
	if err != nil {
		return treeListing{}, err
	}
	list := treeListing{Path: filepath.Clean(path), More: len(found) > mostListed, Items: []treeEntry{}}
	links := 0
	for _, e := range found[:min(len(found), mostListed)] {
		row := treeEntry{Name: e.Name, Path: e.Path, Kind: e.Kind, Size: e.Size, Modified: modified(e.Modified), Unnamed: !utf8.ValidString(e.Path)}
		if e.Kind == files.Symlink && links < mostLinks {
			row.Leads = leads(tree, e.Path)
			links++
		}
		list.Items = append(list.Items, row)
	}
	return list, nil
}

// leads returns the kind of a link's target, or "" outside the session's directories.
func leads(tree *files.Tree, link string) files.Kind {
	if _, err := tree.Directory(link); err == nil {
		return files.Directory
	}
	if f, _, err := tree.Open(link); err == nil {
		_ = f.Close() // opened only to check
		return files.File
	}
	return ""
}

// findFiles returns the paths that are files. A path that leads out of the session's directories is not looked up.
func (c *Client) findFiles(ctx context.Context, id string, paths []string) (treeFound, error) {
	tree, err := c.tree(ctx, id)
	if err != nil {
		return treeFound{}, err
	}
	found := treeFound{Paths: []string{}}
	for _, path := range paths[:min(len(paths), mostLooked)] {
		if ctx.Err() != nil {
			return treeFound{}, ctx.Err()
		}
		if !filepath.IsAbs(path) {
			continue
		}
		if f, _, err := tree.Open(path); err == nil {
			_ = f.Close() // opened only to check
			found.Paths = append(found.Paths, path)
		}
	}
	return found, nil
}

func (c *Client) treeRoots(ctx context.Context, id string) (treeListing, error) {
	roots, err := c.cfg.Sessions.Roots(ctx, id)
	if err != nil {
		return treeListing{}, err
	}
	list := treeListing{Items: []treeEntry{}}
	for _, root := range roots {
		row := treeEntry{Name: filepath.Base(root), Path: root, Kind: files.Directory}
		tree, err := c.cfg.Files.Tree([]string{root})
		if err == nil {
			var e files.Entry
			e, err = tree.Stat(root)
			row.Modified = modified(e.Modified)
		}
		row.Missing = err != nil
		list.Items = append(list.Items, row)
	}
	return list, nil
}

func (c *Client) preview(ctx context.Context, id, path string) (treePreview, error) {
	tree, err := c.tree(ctx, id)
	if err != nil {
		return treePreview{}, err
	}
	f, info, err := tree.Open(path)
	if err != nil {
		return treePreview{}, err
	}
	defer f.Close()
	p := treePreview{
		Path: filepath.Clean(path), Name: filepath.Base(path), Size: info.Size(), Modified: modified(info.ModTime()), Version: files.Version(info), Kind: "binary",
	}
	data, err := io.ReadAll(io.LimitReader(store.While(ctx, f), mostWhole+1))
	if err != nil {
		return treePreview{}, err
	}
	p.MimeType = attachment.MIME("", path, data[:min(len(data), 3<<10)])
	kind, _, _ := strings.Cut(p.MimeType, "/")
	p.Whole = len(data) <= mostWhole
	switch text, ok := textOf(data, p.Whole); {
	case ok:
		p.Kind, p.Text = "text", text
	case kind == "image" && showable(p.MimeType), kind == "audio", kind == "video":
		p.Kind, p.Whole = kind, false
	default:
		p.Whole = false
	}
	return p, nil
}

// textOf returns the begin of a file, or the whole file, as text; false when data is no text.
func textOf(data []byte, whole bool) (string, bool) {
	if !whole {
		data = data[:mostOfLarge]
		for cut := 0; cut < utf8.UTFMax && !utf8.Valid(data); cut++ { // the cut may split the last character
			data = data[:len(data)-1]
		}
	}
	text := string(data)
	return text, utf8.ValidString(text) && !strings.ContainsRune(text, 0)
}

// treeAt returns the tree and the path of a request about a file.
func (c *Client) treeAt(r *http.Request) (tree *files.Tree, path string, err error) {
	if path, err = pathOf(r); err != nil {
		return nil, "", err
	}
	tree, err = c.tree(r.Context(), r.PathValue("id"))
	return tree, path, err
}

func (c *Client) sendTree(w http.ResponseWriter, r *http.Request) {
	tree, path, err := c.treeAt(r)
	if err != nil {
		writeClientError(w, refusedTree(err, path))
		return
	}
	f, info, err := tree.Open(path)
	if err != nil {
		writeClientError(w, refusedTree(err, path))
		return
	}
	defer f.Close()
	head := make([]byte, 3<<10)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		writeClientError(w, refusedTree(err, path))
		return
	}
	guardBytes(w.Header(), served(attachment.MIME("", path, head[:n])))
	how := "inline"
	if download := r.URL.Query().Get("download"); download == "1" || download == "true" {
		how = "attachment"
	}
	w.Header().Set("Content-Disposition", mime.FormatMediaType(how, map[string]string{"filename": filepath.Base(path)}))
	sendFile(w, r, f, info)
}

func (c *Client) writeTree(w http.ResponseWriter, r *http.Request) {
	tree, path, err := c.treeAt(r)
	if err != nil {
		writeClientError(w, refusedTree(err, path))
		return
	}
	if r.Header.Get("Content-Type") != mediaBytes { // a type that no form of a foreign page can send
		writeClientError(w, newClientError(http.StatusUnsupportedMediaType, "request.invalid", nil, "the content of a file comes as "+mediaBytes))
		return
	}
	version, whatever, err := seenBefore(r.Header)
	if err != nil {
		writeClientError(w, refusedTree(err, path))
		return
	}
	content, err := bodyOf(w, r, defaultUpload)
	if err != nil {
		writeClientError(w, refusedTree(err, path))
		return
	}
	written, err := writeSeen(tree, path, version, whatever, content)
	if err != nil {
		writeClientError(w, refusedTree(err, path))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(written) // fails only when the caller is gone
}

// seenBefore returns the caller's precondition for replacing a file: its version, "" for no file, or whatever for any state.
func seenBefore(h http.Header) (version string, whatever bool, err error) {
	match, none := h.Get("If-Match"), h.Get("If-None-Match")
	switch {
	case h.Get("Content-Range") != "": // the rest of the file would be lost (RFC 9110, 14.5)
		return "", false, &refusal{"invalid_request", "a part of a file cannot be written"}
	case none == "*" && match == "":
		return "", false, nil
	case match == "*" && none == "":
		return "", true, nil
	}
	version, err = strconv.Unquote(match)
	if err != nil || version == "" || none != "" {
		return "", false, &refusal{"invalid_request", "If-Match with a version or *, or If-None-Match: *, is needed"}
	}
	return version, false, nil
}

func writeSeen(tree *files.Tree, path, version string, whatever bool, content io.Reader) (treeWritten, error) {
	if !whatever {
		e, now, err := tree.WriteSeen(path, version, content)
		return treeWritten{e.Path, e.Size, modified(e.Modified), now}, err
	}
	if _, _, err := tree.Write(path, content); err != nil {
		return treeWritten{}, err
	}
	f, info, err := tree.Open(path)
	if err != nil {
		return treeWritten{}, err
	}
	return treeWritten{filepath.Clean(path), info.Size(), modified(info.ModTime()), files.Version(info)}, f.Close()
}

// copyIn copies files in sequence. Existing files stay, unless the request replaces them.
func (c *Client) copyIn(ctx context.Context, id string, in treeCopy) (treeCopied, error) {
	tree, err := c.tree(ctx, id)
	if err != nil {
		return treeCopied{}, err
	}
	if _, err := tree.Directory(in.To); err != nil {
		return treeCopied{}, err
	}
	out := treeCopied{Items: []treeWritten{}, Problems: []treeProblem{}}
	for _, path := range in.Paths {
		written, err := c.copyOne(ctx, tree, path, in)
		if ctx.Err() != nil {
			return out, ctx.Err()
		}
		if err != nil {
			code, _ := treeCode(err)
			out.Problems = append(out.Problems, treeProblem{Path: path, Code: code, Params: map[string]string{"path": path, "name": filepath.Base(path)}})
			continue
		}
		out.Items = append(out.Items, written)
	}
	return out, nil
}

var errIsDirectory = errors.New("a directory is not copied")

func (c *Client) copyOne(ctx context.Context, tree *files.Tree, path string, in treeCopy) (treeWritten, error) {
	if !filepath.IsAbs(path) {
		return treeWritten{}, files.ErrInvalid
	}
	dir := filepath.Dir(path)
	if _, err := os.Stat(dir); err != nil {
		return treeWritten{}, files.ErrNotFound
	}
	from, err := c.cfg.Files.Tree([]string{dir}) // opens neither devices nor Deskhand's own files
	if err != nil {
		return treeWritten{}, files.ErrOutside
	}
	if e, err := from.Stat(path); err == nil && e.Kind == files.Directory {
		return treeWritten{}, errIsDirectory
	}
	f, _, err := from.Open(path)
	if err != nil {
		return treeWritten{}, err
	}
	defer f.Close()
	return writeSeen(tree, filepath.Join(in.To, filepath.Base(path)), "", in.Replace, store.While(ctx, f))
}

// treeCode returns the code and the problem type for an error about a file.
func treeCode(err error) (code, kind string) {
	for _, row := range []struct {
		err        error
		code, kind string
	}{
		{errIsDirectory, "tree.directory", "invalid_request"},
		{files.ErrOutside, "tree.outside", "permission_denied"},
		{files.ErrPermission, "tree.forbidden", "permission_denied"},
		{files.ErrNotFound, "tree.missing", "not_found"},
		{files.ErrExists, "tree.exists", "conflict"},
		{files.ErrChanged, "tree.changed", "precondition_failed"},
		{files.ErrTooLarge, "tree.too_large", "payload_too_large"},
		{files.ErrFull, "tree.full", "stream_error"},
		{files.ErrInvalid, "tree.invalid", "invalid_request"},
		{fs.ErrInvalid, "tree.gone", "not_found"}, // Within.Tree returns this error for missing roots
	} {
		if errors.Is(err, row.err) {
			return row.code, row.kind
		}
	}
	return "tree.failed", "stream_error"
}

// refusedTree turns an error about a session's file into a problem with a code.
func refusedTree(err error, path string) error {
	var refused *refusal
	var known *session.RefusedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		p := clientError(Problem{Type: refused.kind, Code: "request.invalid", Detail: refused.text}.document())
		if refused.kind == "payload_too_large" {
			p.Code = "tree.too_large"
		}
		return &p
	case errors.As(err, &known), errors.Is(err, session.ErrNotFound), errors.Is(err, session.ErrStorage), errors.Is(err, session.ErrClosed), errors.Is(err, context.Canceled):
		return problemOf(err)
	}
	code, kind := treeCode(err)
	p := clientError(Problem{Type: kind, Code: code, Params: map[string]string{"path": path, "name": filepath.Base(path)}, Detail: err.Error()}.document())
	return &p
}

func treeAnswer[T any](v T, err error, path string) (*body[T], error) {
	if err != nil {
		return nil, refusedTree(err, path)
	}
	return &body[T]{v}, nil
}
