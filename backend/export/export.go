// Package export writes stored conversations for people and for other programs: a single conversation as Markdown, as JSON or as a
// recording, and all conversations as one zip archive. The package hides the formats, and what becomes of a conversation that is damaged:
// everything readable is written, and the export says what is lost, because nobody gets the rest of the conversation elsewhere.
//
// An export is made of the journal, folded anew, so that no text is clipped. The package stands above session: the records of the tables
// session, turn and request are read by the exported functions of package session that take a database, and by the functions in Deps.
// Secrets that became known after a text was stored are redacted when the text is exported.
package export

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"deskhand/backend/journal"
	"deskhand/backend/maintenance"
	"deskhand/backend/redact"
	"deskhand/backend/refusal"
	"deskhand/backend/search"
	"deskhand/backend/session"
	"deskhand/backend/store"
	"deskhand/backend/transcript"
)

// Formats of an export.
const (
	Markdown  = "md"        // for people
	JSON      = "json"      // the records of the client API, with the whole text of every message
	Recording = "recording" // a zip archive of the journal: session.json, frames.jsonl, and the files below blobs
)

// Deps are the surroundings of an Exporter.
type Deps struct {
	Store   *store.DB
	Logger  *slog.Logger
	Version string // of the program, for the archive of all conversations

	Session func(ctx context.Context, id string) (session.Session, error) // the session as it is now
	Stored  func(ctx context.Context, id string) (session.Session, error) // the stored session; no agent and no conversation wakes

	// LoadSecrets reads the secrets that earlier runs of the program have stored, and may ask a person for the password of the keyring.
	// Redactor returns a Redactor that also knows the secrets of the session's directory. Each returns the secrets that it could not read
	// as an error.
	LoadSecrets func(ctx context.Context) error
	Redactor    func(ctx context.Context, s session.Session) (redact.Redactor, error)

	// Begin runs work of a kind in the background, one at a time. change changes the record of the work.
	Begin func(kind string, do func(ctx context.Context, change func(func(*maintenance.Work))) error) (maintenance.Work, error)
}

// Exporter exports the conversations of a data directory.
type Exporter struct {
	deps    Deps
	journal journal.Journal
}

// New returns an Exporter.
func New(deps Deps) *Exporter { return &Exporter{deps, journal.Of(deps.Store)} }

// File is an exported conversation before it is written.
type File struct {
	Name string // suggested name of the file
	Type string // media type

	// Lost says, after WriteTo, which part could not be read: the first frame of a damaged journal, the first attachment without bytes. A
	// lost part is no error of WriteTo.
	Lost error

	write func(io.Writer) (lost, err error)
}

// WriteTo writes everything readable of the conversation. After an error the reader has half a file, and must be told.
func (x *File) WriteTo(w io.Writer) (int64, error) {
	c := &counter{w: w}
	out := bufio.NewWriterSize(c, 64<<10)
	lost, err := x.write(out)
	x.Lost, err = lost, errors.Join(err, out.Flush())
	return c.n, err
}

// counter counts the bytes that are written to w.
type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// askKeyring limits how long an export waits for the keyring, whose owner may have to enter a password.
const askKeyring = 20 * time.Second

func (e *Exporter) loadSecrets(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askKeyring)
	defer cancel()
	return e.deps.LoadSecrets(ctx)
}

// File prepares a conversation for writing in a format. The file of a running conversation has everything up to now.
func (e *Exporter) File(ctx context.Context, id, format string) (*File, error) {
	s, err := e.deps.Session(ctx, id)
	if err != nil {
		return nil, err
	}
	c := e.conversation(ctx, s, e.loadSecrets(ctx))
	x := &File{Name: c.fileName()}
	switch format {
	case Markdown:
		x.Name, x.Type = x.Name+".md", "text/markdown; charset=utf-8"
	case JSON:
		x.Name, x.Type = x.Name+".json", "application/json"
	case Recording:
		x.Name, x.Type = x.Name+".deskhand.zip", "application/zip"
	default:
		return nil, refusal.Bad("export.format", "format", format)
	}
	x.write = func(w io.Writer) (lost, err error) { return c.write(ctx, format, w) }
	return x, nil
}

// conversation is a conversation that is exported.
type conversation struct {
	*Exporter
	session session.Session
	secret  redact.Redactor // also knows the secrets of the conversation's directory
	unknown error           // the secrets that could not be read, and so are not redacted
}

// conversation prepares a conversation. unread names the secrets that loadSecrets could not read.
func (e *Exporter) conversation(ctx context.Context, s session.Session, unread error) conversation {
	secret, err := e.deps.Redactor(ctx, s)
	c := conversation{Exporter: e, session: s, secret: secret, unknown: errors.Join(unread, err)}
	if c.unknown != nil {
		e.deps.Logger.Warn("a conversation goes out, and secrets that it may hold cannot be read", "session", s.ID, "error", c.unknown)
	}
	c.session.Title = secret.Text(s.Title)
	return c
}

// write writes the conversation and returns what is lost. A conversation that was erased meanwhile is not found, since some of it may be
// missing without a trace.
func (c conversation) write(ctx context.Context, format string, w io.Writer) (lost, err error) {
	switch format {
	case Markdown:
		lost, err = c.writeMarkdown(ctx, w)
	case JSON:
		lost, err = c.writeJSON(ctx, w)
	default:
		lost, err = c.writeRecording(ctx, w)
	}
	switch erased, unread := session.Erased(ctx, c.deps.Store, c.session.ID); {
	case unread != nil:
		err = errors.Join(err, unread)
	case erased:
		return nil, fmt.Errorf("session %s: %w", c.session.ID, refusal.ErrNotFound)
	}
	return lost, err
}

// fileName returns the date and the title as a name that every file system takes.
func (c conversation) fileName() string {
	const most = 60
	var b strings.Builder
	for _, word := range search.Words(c.session.Title) {
		if b.Len() > 0 {
			b.WriteByte('-')
		}
		b.WriteString(word)
		if b.Len() > most {
			break
		}
	}
	if b.Len() == 0 {
		b.WriteString("conversation")
	}
	return c.session.CreatedAt.UTC().Format("2006-01-02") + "-" + b.String()
}

// head returns the session without the draft, which nobody has sent.
func (c conversation) head() session.Session {
	s := c.session
	s.Draft, s.Attachments = "", []transcript.Attachment{}
	return s
}

// transcript folds the journal anew into a transcript with the whole text of each message. The transcript of a damaged journal has
// everything readable, and lost says what is missing.
func (c conversation) transcript(ctx context.Context) (all session.Transcript, lost, err error) {
	t := transcript.New(c.session.ID, transcript.Facts{})
	t.Limit = math.MaxInt
	lost, unread := c.journal.Readable(ctx, c.session.ID, t.Apply)
	if ctx.Err() != nil {
		return session.Transcript{}, nil, ctx.Err()
	}
	changes, _ := t.Take()
	all.Items = make([]transcript.Entry, len(changes))
	for i, ch := range changes {
		all.Items[i] = *ch.Entry
	}
	slices.SortFunc(all.Items, func(a, b transcript.Entry) int { return int(a.Seq - b.Seq) })
	all, err = session.Complete(ctx, c.deps.Store, c.session.ID, all)
	return all, lost, errors.Join(unread, err)
}

// endings returns the words for the turns that have not ended by themselves, by the ids of the turns, and the index of the last entry of
// each turn.
func endings(agent string, t session.Transcript) (words map[string]string, last map[string]int) {
	words, last = map[string]string{}, map[string]int{}
	exits := map[string]*transcript.Exit{}
	turn := ""
	for i, e := range t.Items {
		if e.Turn != "" {
			turn, last[e.Turn] = e.Turn, i
		}
		if e.Divider != nil && e.Divider.Exit != nil && exits[turn] == nil {
			exits[turn] = e.Divider.Exit
		}
	}
	for _, turn := range t.Turns {
		if text := turn.Words(agent, exits[turn.ID]); text != "" {
			words[turn.ID] = text
		}
	}
	return words, last
}

// eachBlob calls do with the bytes of attachments, each file once and redacted, and returns the first file that is lost. sha stays the
// SHA-256 of the attached bytes, which stands in the records: the redacted bytes may have another.
func (c conversation) eachBlob(list []transcript.Attachment, do func(sha string, data []byte) error) (lost, err error) {
	seen := map[string]bool{"": true}
	for _, a := range list {
		if seen[a.SHA256] {
			continue
		}
		seen[a.SHA256] = true
		data, err := c.deps.Store.Blobs.Get(a.SHA256)
		if err != nil {
			c.deps.Logger.Warn("an attachment is not exported", "sha256", a.SHA256, "error", err)
			lost = cmp.Or(lost, fmt.Errorf("%s is lost: %w", a.Filename, err))
			continue
		}
		if err := do(a.SHA256, c.secret.File(data)); err != nil {
			return lost, err
		}
	}
	return lost, nil
}

// cleaner redacts the known secrets of everything that is written to w. Each record must be written by one call of Write, as json.Encoder
// and fmt.Fprintf do.
type cleaner struct {
	w      io.Writer
	secret redact.Redactor
}

func (c cleaner) Write(p []byte) (int, error) {
	if _, err := io.WriteString(c.w, c.secret.KnownOnly(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// textOf returns the text of an error, or "" for nil.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
