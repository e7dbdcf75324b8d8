// Package attachments owns the records of files that travel with a prompt, or that an agent gives to a person.
//
// A Library takes files in: each file gets a record, which never changes. A draft, a queue or a transcript holds a copy of the record, and
// names the same bytes for ever. The bytes are in the blob store where the bytes would be lost otherwise (pasted, uploaded, given by an
// agent), and from the moment on in which a prompt is accepted whose file could travel inline. Any other file stays in its place, and the
// record has the path alone. A record that nothing names is removed after a while.
//
// How a file travels depends on the agent. Plan says how for a draft; Compose makes the blocks of a prompt, when the prompt goes out.
//
// The package hides the tables attachment and attachment_use. Package attachment below knows the forms in which a file travels.
package attachments

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/agents"
	"deskhand/backend/attachment"
	"deskhand/backend/host"
	"deskhand/backend/proxy"
	"deskhand/backend/refusal"
	"deskhand/backend/store"
	"deskhand/backend/transcript"
)

// Deps is the surroundings of a Library. Store and Writable are required; without Find, no session is known.
type Deps struct {
	Store    *store.DB
	Agents   *agents.Catalogue
	Proxy    *proxy.Set // beside which git runs
	Logger   *slog.Logger
	Writable func() error // returns the reason when the data cannot be changed

	Find func(ctx context.Context, session string) (Where, error) // where a session works
	In   func(cwd string) (Where, error)                          // where a session would work that begins in a directory of this machine

	// Notes returns some notes in the journal of a session, the newest first, and the number of the last of them as the next before.
	Notes func(ctx context.Context, session string, before int64) (notes []transcript.Note, last int64, err error)

	NamedBy string        // a query for the ids of the attachments that drafts and queues name; "" = none do
	Unnamed time.Duration // how long a record is kept that nothing names
}

// Where is the directories that a session works in, and the machine that has the directories.
type Where struct {
	Cwd         string
	Directories []string // beside Cwd
	Host        host.Capabilities
}

// roots returns the directories of a session; none for a machine whose directories cannot be seen from here.
func (w Where) roots() []string { return w.Host.Directories.Roots(w.Cwd, w.Directories) }

// base returns the directory that relative paths of a session begin at; "" = there is none on this machine.
func (w Where) base() string {
	if w.Host.Directories == nil {
		return ""
	}
	return w.Cwd
}

// Library is the attachments of a data directory.
type Library struct {
	deps  Deps
	files host.Presence[bool] // true = there is no file at the path
}

// New returns the attachments of a database.
func New(deps Deps) *Library {
	return &Library{deps: deps, files: host.Presence[bool]{Patience: host.PatientOne}}
}

// AttachInput names files of this machine.
type AttachInput struct {
	Paths   []string `json:"paths" minItems:"1" maxItems:"1000" doc:"Absolute, or of a session relative to its directory; a file URI is taken too"`
	Follow  bool     `json:"follow,omitempty" doc:"A person has agreed to links that lead out of the session's directories"`
	Session string   `json:"session,omitempty" maxLength:"64" doc:"Whose directories count"`
	Cwd     string   `json:"cwd,omitempty" maxLength:"4096" doc:"Instead of a session: the directory that one is to begin in"`
}

// AttachResult is the attachments of the accepted files, and the problems of the others.
type AttachResult struct {
	Items    []transcript.Attachment `json:"items"`
	Problems []AttachProblem         `json:"problems" doc:"What could not be taken in; it keeps the others"`
}

// at returns where the session works, or one that is to begin in cwd; with neither, paths count anywhere.
func (l *Library) at(ctx context.Context, session, cwd string) (Where, error) {
	switch {
	case session != "":
		return l.deps.Find(ctx, session)
	case cwd != "":
		return l.deps.In(cwd)
	}
	return Where{}, nil
}

// AttachProblem is the reason why a file has no attachment.
type AttachProblem struct {
	Name   string            `json:"name"`
	Code   string            `json:"code" doc:"Stable and dotted: attachment.too_large, attachment.too_many, attachment.not_a_file, attachment.missing, attachment.unreadable, attachment.link_outside, attachment.image_broken, attachment.empty"`
	Params map[string]string `json:"params"`
}

// The refusals beside those of attachment.Problem.
const (
	refusedUnknown    = "attachment.unknown"    // id: there is no such record
	refusedElsewhere  = "attachment.elsewhere"  // name: the agent runs elsewhere, and the file could only be a link
	refusedMissing    = "attachment.missing"    // name
	refusedUnreadable = "attachment.unreadable" // name, detail
)

// recordOf returns the record of a file. A record has a hash only where the blob store has the bytes.
func recordOf(f attachment.File) transcript.Attachment {
	a := transcript.Attachment{
		ID: f.ID, Filename: f.Filename, MimeType: f.MimeType, Size: f.Size, Path: f.Path, URI: f.URI, Given: f.Given, Directory: f.Directory, Width: f.Width, Height: f.Height,
	}
	if f.Blob {
		a.SHA256 = f.SHA256
	}
	if a.ID == "" {
		a.ID = uuid.Must(uuid.NewV7()).String()
	}
	return a
}

func filesOf(list []transcript.Attachment) []attachment.File {
	files := make([]attachment.File, len(list))
	for i, a := range list {
		files[i] = a.File()
	}
	return files
}

// limits returns the limits of the files that people hand in.
func limits() attachment.Limits { return attachment.Limits{} }

// Attach makes attachments of files by their paths. A file with a problem does not stop the others.
func (l *Library) Attach(ctx context.Context, in AttachInput) (AttachResult, error) {
	if err := l.deps.Writable(); err != nil {
		return AttachResult{}, err
	}
	if err := refuse(limits().Count(len(in.Paths))); err != nil {
		return AttachResult{}, err
	}
	w, err := l.at(ctx, in.Session, in.Cwd)
	if err != nil {
		return AttachResult{}, err
	}
	out := AttachResult{Items: []transcript.Attachment{}, Problems: []AttachProblem{}}
	for _, given := range in.Paths {
		path := pathOf(given, w.base())
		f, err := attachment.Inspect(ctx, path, w.roots(), in.Follow, limits())
		if wrong, ok := errors.AsType[*attachment.Problem](err); ok {
			params := maps.Clone(wrong.Params)
			if params == nil {
				params = map[string]string{}
			}
			params["path"] = given // two files may have one name, and a person may be asked about this file
			out.Problems = append(out.Problems, AttachProblem{Name: nameOf(path), Code: wrong.Code, Params: params})
			continue
		}
		if err != nil {
			return AttachResult{}, err
		}
		out.Items = append(out.Items, recordOf(f))
	}
	return out, l.keep(ctx, out.Items)
}

// Upload makes an attachment of bytes that have no path on this machine: pasted, or from a browser.
func (l *Library) Upload(ctx context.Context, name, mime string, r io.Reader) (transcript.Attachment, error) {
	if err := l.deps.Writable(); err != nil {
		return transcript.Attachment{}, err
	}
	f, err := attachment.Ingest(ctx, l.deps.Store.Blobs, r, name, mime, limits())
	if err != nil {
		return transcript.Attachment{}, refuse(notStored(ctx, err))
	}
	defer l.deps.Store.Blobs.Release(f.SHA256)
	a := recordOf(f)
	return a, l.keep(ctx, []transcript.Attachment{a})
}

// refuse returns the fault of a file as a refusal, and any other error unchanged. A file that is missing, and a link that a person has to
// agree to, are a matter of time.
func refuse(err error) error {
	p, ok := errors.AsType[*attachment.Problem](err)
	if !ok {
		return err
	}
	later := p.Code == refusedMissing || p.Code == "attachment.link_outside" || p.Code == "attachment.changed"
	return &refusal.Error{Code: p.Code, Params: p.Params, Bad: !later}
}

// notStored returns the reason why the blob store does not have some bytes: an error that neither the file nor the caller's leaving has caused
// is the store's.
func notStored(ctx context.Context, err error) error {
	if _, file := errors.AsType[*attachment.Problem](err); file || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %w", refusal.ErrStorage, err)
}

// pathOf returns the path that a person or a program has given: as a path, as a file URI, or relative to cwd. In a URI that was put together by
// hand, a # or a % may be a part of a name; the candidate that exists counts.
func pathOf(given, cwd string) string {
	path := given
	if whole, ok := attachment.FromURI(given); ok {
		path = whole
		candidates := []string{whole, attachment.PathIn(strings.TrimPrefix(given, "file://"))}
		if u, err := url.Parse(given); err == nil {
			candidates = append(candidates, attachment.PathIn(u.Path))
		}
		for _, c := range candidates {
			if _, err := os.Lstat(c); err == nil && filepath.IsAbs(c) {
				path = c
				break
			}
		}
	}
	if rest, ok := strings.CutPrefix(path, "file://"); ok {
		path = attachment.PathIn(rest) // put together by hand, and no valid URI
	}
	if !filepath.IsAbs(path) && cwd != "" {
		path = filepath.Join(cwd, path)
	}
	return path
}

func nameOf(path string) string {
	if name, ok := attachment.Filename(path); ok {
		return name
	}
	return path
}
