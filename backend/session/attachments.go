package session

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"deskhand/backend/attachment"
	"deskhand/backend/host"
	"deskhand/backend/transcript"
)

// Attachments are files that travel with a prompt, or that an agent gives to a person. One that was taken in has a record of its own, which
// never changes: what stands in a draft, a queue or a transcript is a copy of it, and names the same bytes for ever. The bytes are in the
// blob store where they would be lost otherwise (pasted, uploaded, given by an agent), and from the moment on in which a prompt with them
// is accepted where they could travel inline; else they stay where they are, and the path is all that is kept.

// AttachInput names files of this machine.
type AttachInput struct {
	Paths   []string `json:"paths" minItems:"1" maxItems:"1000" doc:"Absolute, or of a session relative to its directory; a file URI is taken too"`
	Follow  bool     `json:"follow,omitempty" doc:"A person has agreed to links that lead out of the session's directories"`
	Session string   `json:"session,omitempty" maxLength:"64" doc:"Whose directories count"`
}

// AttachResult is what was taken in, and what was not.
type AttachResult struct {
	Items    []transcript.Attachment `json:"items"`
	Problems []AttachProblem         `json:"problems" doc:"What could not be taken in; it keeps the others"`
}

// AttachProblem is why a file was not taken in.
type AttachProblem struct {
	Name   string            `json:"name"`
	Code   string            `json:"code" doc:"Stable and dotted: attachment.too_large, attachment.too_many, attachment.not_a_file, attachment.missing, attachment.unreadable, attachment.link_outside, attachment.image_broken, attachment.empty"`
	Params map[string]string `json:"params"`
}

// Prompt is a message with what travels with it.
type Prompt struct {
	Message     string
	Attachments []PromptAttachment
	When        When
	Elsewhere   bool // it was not written in the session's draft, which stays what it is
}

// PromptAttachment names a file: one that was taken in by its id, else a path of this machine.
type PromptAttachment struct {
	ID       string `json:"id,omitempty" maxLength:"64" doc:"Of one that was taken in before; nothing else is looked at then"`
	Path     string `json:"path,omitempty" maxLength:"4096" doc:"Absolute, or relative to the session's directory; a file URI is taken too"`
	Mime     string `json:"mime,omitempty" maxLength:"200" doc:"Goes before what the name and the bytes tell"`
	Filename string `json:"filename,omitempty" maxLength:"255" doc:"The last part of the path when it is left out"`
}

// Refusals of attachments, beside those of attachment.Problem.
const (
	refusedUnknownFile = "attachment.unknown"    // id: nothing was taken in under it, or it is gone
	refusedElsewhere   = "attachment.elsewhere"  // name: the agent runs elsewhere, and this file could only be a link
	refusedNoFile      = "attachment.missing"    // name
	refusedUnreadable  = "attachment.unreadable" // name, detail
)

// attachmentOf is the record of a file. A hash is kept only where its bytes are.
func attachmentOf(f attachment.File) transcript.Attachment {
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

// travelling is the record with how the file travels.
func travelling(a transcript.Attachment, p attachment.Planned) transcript.Attachment {
	a = a.Plain()
	a.Travels, a.Warning, a.Copied = p.Travels, p.Warning, p.CopyTo != ""
	return a
}

// limits are those of what people hand in.
func limits() attachment.Limits { return attachment.Limits{} }

// Attach takes in files by their paths. A file that cannot be taken in keeps none of the others.
func (c *Client) Attach(ctx context.Context, in AttachInput) (AttachResult, error) {
	if err := c.ReadOnly(); err != nil {
		return AttachResult{}, err
	}
	if err := refuseFile(limits().Count(len(in.Paths))); err != nil {
		return AttachResult{}, err
	}
	var cwd string
	var roots []string
	if in.Session != "" {
		s, err := c.Get(ctx, in.Session)
		if err != nil {
			return AttachResult{}, err
		}
		if at := c.hosts.At(s.Place).Directories; at != nil {
			cwd, roots = s.Cwd, at.Roots(s.Cwd, s.Directories)
		}
	}
	out := AttachResult{Items: []transcript.Attachment{}, Problems: []AttachProblem{}}
	for _, given := range in.Paths {
		path := fileOf(given, cwd)
		f, err := attachment.Inspect(ctx, path, roots, in.Follow, limits())
		if wrong, ok := errors.AsType[*attachment.Problem](err); ok {
			params := maps.Clone(wrong.Params)
			if params == nil {
				params = map[string]string{}
			}
			params["path"] = given // two may have one name, and a person may be asked about this one
			out.Problems = append(out.Problems, AttachProblem{Name: nameOf(path), Code: wrong.Code, Params: params})
			continue
		}
		if err != nil {
			return AttachResult{}, err
		}
		out.Items = append(out.Items, attachmentOf(f))
	}
	return out, c.keepAttachments(ctx, out.Items)
}

// AttachUpload takes in the bytes of a file that has no path here, such as one that was pasted or that a browser has.
func (c *Client) AttachUpload(ctx context.Context, name, mime string, r io.Reader) (transcript.Attachment, error) {
	if err := c.ReadOnly(); err != nil {
		return transcript.Attachment{}, err
	}
	f, err := attachment.Ingest(ctx, c.cfg.Store.Blobs, r, name, mime, limits())
	if err != nil {
		return transcript.Attachment{}, refuseFile(notKept(ctx, err))
	}
	defer c.cfg.Store.Blobs.Release(f.SHA256)
	a := attachmentOf(f)
	return a, c.keepAttachments(ctx, []transcript.Attachment{a})
}

// refuseFile is an error of a file as one of ours: what is not there, and what would have to be agreed to, is a matter of its time.
func refuseFile(err error) error {
	p, ok := errors.AsType[*attachment.Problem](err)
	if !ok {
		return err
	}
	later := p.Code == refusedNoFile || p.Code == "attachment.link_outside" || p.Code == "attachment.changed"
	return &RefusedError{Code: p.Code, Params: p.Params, Bad: !later}
}

// notKept is why bytes are not in the blob store: what is no file's fault, and nobody's who went away, is the store's.
func notKept(ctx context.Context, err error) error {
	if _, file := errors.AsType[*attachment.Problem](err); file || ctx.Err() != nil {
		return err
	}
	return fmt.Errorf("%w: %w", ErrStorage, err)
}

// fileOf is where a path leads that a person or a program gave: as it is, as a file URI, or below the session's directory. A URI that was put
// together by hand may have a # or a % that is a part of a name: what is there counts.
func fileOf(given, cwd string) string {
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
		path = attachment.PathIn(rest) // it was put together by hand, with what is no URI
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

// Attachment gives one that was taken in.
func (c *Client) Attachment(ctx context.Context, id string) (transcript.Attachment, error) {
	list, err := query(ctx, c.cfg.Store.Read(), scanJSON[transcript.Attachment], `SELECT data FROM attachment WHERE id = ?`, id)
	if err != nil {
		return transcript.Attachment{}, err
	}
	if len(list) == 0 {
		return transcript.Attachment{}, fmt.Errorf("attachment %s: %w", id, ErrNotFound)
	}
	return list[0], nil
}

// Blob gives the bytes of a sha256.
func (c *Client) Blob(sha string) ([]byte, error) {
	data, err := c.cfg.Store.Blobs.Get(sha)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("blob %s: %w", sha, ErrNotFound)
	}
	return data, err
}

// keepAttachments writes down what was taken in. Until it is in a draft, a queue or a journal it is kept for a while.
func (c *Client) keepAttachments(ctx context.Context, list []transcript.Attachment) error {
	if len(list) == 0 {
		return nil
	}
	err := c.cfg.Store.Write(ctx, func(tx *sql.Tx) error { return saveAttachments(ctx, tx, list) })
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	return nil
}

func saveAttachments(ctx context.Context, tx *sql.Tx, list []transcript.Attachment) error {
	now := time.Now().UnixMilli()
	for _, a := range list {
		a = a.Plain()
		if _, err := tx.ExecContext(ctx, `INSERT INTO attachment (id, sha256, data, used_at) VALUES (?, ?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET used_at = max(used_at, excluded.used_at)`, a.ID, a.SHA256, string(mustJSON(a)), now); err != nil {
			return err
		}
	}
	return nil
}

// useAttachments writes down what the journal of a session names.
func useAttachments(ctx context.Context, tx *sql.Tx, session string, list []transcript.Attachment) error {
	if err := saveAttachments(ctx, tx, list); err != nil {
		return err
	}
	for _, a := range list {
		if _, err := tx.ExecContext(ctx, `INSERT INTO attachment_use (session, attachment) VALUES (?, ?) ON CONFLICT DO NOTHING`, session, a.ID); err != nil {
			return err
		}
	}
	return nil
}

// takenIn are records by their ids, in this order. They are kept for a while from now on.
func (c *Client) takenIn(ctx context.Context, ids []string) ([]transcript.Attachment, error) {
	if err := refuseFile(limits().Count(len(ids))); err != nil {
		return nil, err
	}
	list := make([]transcript.Attachment, 0, len(ids))
	for _, id := range ids {
		a, err := c.Attachment(ctx, id)
		if errors.Is(err, ErrNotFound) {
			return nil, bad(refusedUnknownFile, "id", id)
		}
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(list, func(b transcript.Attachment) bool { return b.ID == id }) {
			list = append(list, a)
		}
	}
	return list, c.keepAttachments(ctx, list) // so that none of them goes before what names them is written
}

// unnamed are records that nothing names any more: no draft, no queue, no journal.
const unnamed = `NOT EXISTS (SELECT 1 FROM attachment_use u WHERE u.attachment = attachment.id)
	AND id NOT IN (SELECT j.value ->> 'id' FROM session s, json_each(s.draft_attachments) j WHERE s.draft_attachments <> '[]')
	AND id NOT IN (SELECT j.value ->> 'id' FROM queue_item q, json_each(q.attachments) j WHERE q.attachments <> '[]')`

// forgetAttachments removes the records that nothing has named for a while; their blobs go with the next sweep.
func (c *Client) forgetAttachments(ctx context.Context) error {
	before := time.Now().Add(-c.cfg.Unattached).UnixMilli()
	var due bool
	err := c.cfg.Store.Read().QueryRowContext(ctx, `SELECT EXISTS (SELECT 1 FROM attachment WHERE used_at < ? AND `+unnamed+`)`, before).Scan(&due)
	if err != nil || !due {
		return err
	}
	return c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM attachment WHERE used_at < ? AND `+unnamed, before)
		return err
	})
}

// unattached is how long what was taken in is kept for when nothing names it.
const unattached = 24 * time.Hour

// attachmentsIn reads a list as a row has it.
func attachmentsIn(text string) (list []transcript.Attachment, err error) {
	if text == "" || text == "[]" {
		return nil, nil
	}
	return list, json.Unmarshal([]byte(text), &list)
}

func attachmentsText(list []transcript.Attachment) string {
	if len(list) == 0 {
		return "[]"
	}
	return string(mustJSON(list))
}

// lacking returns the ids of the files that are gone from their paths.
func (c *Client) lacking(list []transcript.Attachment) map[string]bool {
	lost := map[string]bool{}
	for again := range 2 { // every look begins before the first wait
		for _, a := range list {
			switch {
			case a.SHA256 != "" || a.Path == "":
			case again == 0:
				c.files.Begin(a.Path, host.NoFile(a.Path))
			case c.files.At(a.Path, host.NoFile(a.Path)):
				lost[a.ID] = true
			}
		}
	}
	return lost
}
