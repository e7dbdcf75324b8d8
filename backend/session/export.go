package session

import (
	"archive/zip"
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/agents"
	"deskhand/backend/host"
	"deskhand/backend/journal"
	"deskhand/backend/mcp"
	"deskhand/backend/prose"
	"deskhand/backend/redact"
	"deskhand/backend/transcript"
)

// Formats of an export.
const (
	Markdown  = "md"        // for people
	JSON      = "json"      // the records of the client API, with the whole text of every message
	Recording = "recording" // the journal, as a zip archive: session.json, and frames.jsonl with all that went over the wire
)

// Export is a conversation on its way out. What is kept holds no secrets that were known when it was written, and what goes out none that
// are known by now: people enter a key where they have quoted it before. Files are kept as they were attached, for the agent, and go out redacted.
type Export struct {
	Name string // of the file, as it could be called
	Type string // the media type

	// Lost tells, once it is written, what could not be read for it: the first frame of a damaged journal, the first attachment whose bytes
	// are gone. Nobody gets the rest of such a conversation elsewhere, so that this is no error.
	Lost error

	write func(io.Writer) (lost, err error)
}

// WriteTo writes all of it that can be read. An error leaves half a file: tell whoever reads it.
func (x *Export) WriteTo(w io.Writer) (int64, error) {
	c := &counter{w: w}
	out := bufio.NewWriterSize(c, 64<<10)
	lost, err := x.write(out)
	x.Lost, err = lost, errors.Join(err, out.Flush())
	return c.n, err
}

// cleaning takes out the secrets that are known by now. It wants each record in one Write, as json.Encoder and fmt.Fprintf do it.
type cleaning struct {
	w      io.Writer
	secret redact.Redactor
}

func (c cleaning) Write(p []byte) (int, error) {
	if _, err := io.WriteString(c.w, c.secret.KnownOnly(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// Export prepares a conversation for writing. Of one that is going on it holds what has been said so far.
func (c *Client) Export(ctx context.Context, id, format string) (*Export, error) {
	s, err := c.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	o := c.outgoing(ctx, s, c.recallAsking(ctx))
	x := &Export{Name: o.fileName()}
	switch format {
	case Markdown:
		x.Name, x.Type = x.Name+".md", "text/markdown; charset=utf-8"
	case JSON:
		x.Name, x.Type = x.Name+".json", "application/json"
	case Recording:
		x.Name, x.Type = x.Name+".deskhand.zip", "application/zip"
	default:
		return nil, bad("export.format", "format", format)
	}
	x.write = func(w io.Writer) (lost, err error) { return o.write(ctx, format, w) }
	return x, nil
}

// outgoing is a conversation that is written for somebody.
type outgoing struct {
	c       *Client
	s       Session
	secret  redact.Redactor // which knows the secrets of the conversation's directory, too
	unknown error           // the secrets that it does not know, since they cannot be read
}

// outgoing makes one ready; unread is what recall could not read.
func (c *Client) outgoing(ctx context.Context, s Session, unread error) outgoing {
	secrets, err := c.serverSecrets(ctx, s)
	o := outgoing{c: c, s: s, secret: c.secret.With(secrets), unknown: errors.Join(unread, err)}
	if o.unknown != nil {
		c.cfg.Logger.Warn("a conversation goes out, and secrets that it may hold cannot be read", "session", s.ID, "error", o.unknown)
	}
	o.s.Title = o.secret.Text(s.Title)
	return o
}

// write writes it, and tells what is lost. One that has been erased meanwhile is not there.
func (o outgoing) write(ctx context.Context, format string, w io.Writer) (lost, err error) {
	switch format {
	case Markdown:
		lost, err = o.writeMarkdown(ctx, w)
	case JSON:
		lost, err = o.writeJSON(ctx, w)
	default:
		lost, err = o.writeRecording(ctx, w)
	}
	switch erased, unread := o.c.erased(ctx, o.s.ID); {
	case unread != nil:
		err = errors.Join(err, unread)
	case erased:
		return nil, notFound(o.s.ID)
	}
	return lost, err
}

func (o outgoing) fileName() string { return fileName(o.s.Title, o.s.CreatedAt.Time) }

// askKeyring is how long something that goes out waits for the keyring: its owner may have to enter a password.
const askKeyring = 20 * time.Second

func (c *Client) recallAsking(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, askKeyring)
	defer cancel()
	return c.loadSecrets(ctx, agents.Asking)
}

// recallAtOnce is for what people wait for: it asks nobody.
func (c *Client) recallAtOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, host.PatientMany)
	defer cancel()
	return c.loadSecrets(ctx, agents.IfUnlocked)
}

// serverSecrets are those that the MCP servers of a session's directory have now: the program that gave them to its agent may have ended
// since. They count for what goes out alone. Whoever wrote the file need not be trusted to say what is hidden elsewhere.
func (c *Client) serverSecrets(ctx context.Context, s Session) (list []string, err error) {
	if c.hosts.At(s.Place).Directories == nil {
		return nil, nil // nothing of ours is given to an agent there
	}
	if !c.hosts.Local.Directories.InTime(s.Cwd, host.PatientMany) {
		return nil, fmt.Errorf("the MCP servers of %s: its disk does not answer", s.Cwd)
	}
	if c.hosts.Local.Directories.Missing(s.Cwd) {
		return nil, nil
	}
	root, err := openDirectory(s.Cwd)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	servers, err := c.entries(ctx, root)
	if len(servers) == 0 {
		return nil, err // what follows may wait for the login shell
	}
	lookup := mcp.Lookup(c.cfg.Agents.Environ(ctx))
	for _, server := range servers {
		list = append(list, server.Certain(lookup)...)
	}
	return list, err
}

// fileName is a title that any file system takes.
func fileName(title string, at time.Time) string {
	const most = 60
	var b strings.Builder
	for _, w := range wordsOf(title) {
		if b.Len() > 0 {
			b.WriteByte('-')
		}
		b.WriteString(w.text)
		if b.Len() > most {
			break
		}
	}
	if b.Len() == 0 {
		b.WriteString("conversation")
	}
	return at.UTC().Format("2006-01-02") + "-" + b.String()
}

// everything is the transcript with the whole text of each message, folded anew from the journal. Of a damaged one it is what can be read,
// and what is lost.
func (c *Client) everything(ctx context.Context, id string) (all Transcript, lost, err error) {
	t := transcript.New(id, transcript.Facts{})
	t.Limit = math.MaxInt
	lost, unread := c.journal.Readable(ctx, id, t.Apply)
	if ctx.Err() != nil {
		return Transcript{}, nil, ctx.Err()
	}
	changes, _ := t.Take()
	all.Items = make([]transcript.Entry, len(changes))
	for i, ch := range changes {
		all.Items[i] = *ch.Entry
	}
	slices.SortFunc(all.Items, func(a, b transcript.Entry) int { return int(a.Seq - b.Seq) })
	all, err = c.complete(ctx, id, all)
	return all, lost, errors.Join(unread, err)
}

// textOf is what an error says, "" = there is none.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// writeJSON writes all of the conversation that can be read, and tells what is lost.
func (o outgoing) writeJSON(ctx context.Context, w io.Writer) (lost, err error) {
	t, damaged, err := o.c.everything(ctx, o.s.ID)
	if err != nil {
		return nil, err
	}
	var records bytes.Buffer
	enc := json.NewEncoder(&records)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err = enc.Encode(struct {
		Format   string             `json:"format"`
		Damage   string             `json:"damage,omitempty"`
		Unknown  string             `json:"unknownSecrets,omitempty"`
		Session  Session            `json:"session"`
		Entries  []transcript.Entry `json:"entries"`
		Turns    []ended            `json:"turns"`
		Requests []Request          `json:"requests"`
	}{"deskhand.conversation/1", textOf(damaged), textOf(o.unknown), o.asHead(), t.Items, endsOf(o.s.AgentName, t), t.Requests})
	if err != nil {
		return nil, err
	}
	list, err := o.c.attachmentsOf(ctx, o.s.ID)
	if err != nil {
		return nil, err
	}
	text := records.String()
	if len(list) == 0 {
		_, err = io.WriteString(cleaning{w, o.secret}, text)
		return damaged, err
	}
	if _, err := io.WriteString(cleaning{w, o.secret}, strings.TrimSuffix(text, "\n}\n")); err != nil {
		return nil, err
	}
	lost, err = o.writeBlobs(w, list)
	return errors.Join(damaged, lost), err
}

// ended is a turn with why it has ended, where it has not ended by itself.
type ended struct {
	Turn

	Cause string `json:"cause,omitempty"`
}

// endsOf are the turns of a transcript, each with its cause.
func endsOf(agent string, t Transcript) []ended {
	why, _ := causes(agent, t)
	list := make([]ended, len(t.Turns))
	for i, turn := range t.Turns {
		list[i] = ended{turn, why[turn.ID]}
	}
	return list
}

// writeBlobs ends a JSON export with the bytes of attachments, each once. One whose bytes are lost is left out, and told
// behind them: its record is there.
func (o outgoing) writeBlobs(w io.Writer, list []transcript.Attachment) (lost, err error) {
	if _, err := io.WriteString(w, ",\n  \"blobs\": {"); err != nil {
		return nil, err
	}
	next := "\n"
	lost, err = o.eachBlob(list, func(sha string, data []byte) error {
		_, begun := fmt.Fprintf(w, "%s    %q: \"", next, sha)
		next = ",\n"
		enc := base64.NewEncoder(base64.StdEncoding, w)
		_, written := enc.Write(data)
		return errors.Join(begun, written, enc.Close(), second(io.WriteString(w, `"`)))
	})
	end := "\n  }\n}\n"
	if lost != nil {
		end = fmt.Sprintf("\n  },\n  \"lost\": %s\n}\n", mustJSON(lost.Error()))
	}
	return lost, errors.Join(err, second(io.WriteString(cleaning{w, o.secret}, end)))
}

func second[T any](_ T, err error) error { return err }

// eachBlob hands over the bytes of attachments, each once and without its secrets, and tells of the first that are lost. The name stays the
// sha256 of what was attached, which is what the records have: whoever reads an export may find other bytes under it.
func (o outgoing) eachBlob(list []transcript.Attachment, each func(sha string, data []byte) error) (lost, err error) {
	seen := map[string]bool{"": true}
	for _, a := range list {
		if seen[a.SHA256] {
			continue
		}
		seen[a.SHA256] = true
		data, err := o.c.cfg.Store.Blobs.Get(a.SHA256)
		if err != nil {
			o.c.cfg.Logger.Warn("an attachment is not exported", "sha256", a.SHA256, "error", err)
			lost = cmp.Or(lost, fmt.Errorf("%s is lost: %w", a.Filename, err))
			continue
		}
		if err := each(a.SHA256, o.secret.File(data)); err != nil {
			return lost, err
		}
	}
	return lost, nil
}

// recorded is one line of frames.jsonl.
type recorded struct {
	N          int64             `json:"n"`
	Generation int64             `json:"generation"`
	AtMs       int64             `json:"atMs"` // since the first
	Dir        journal.Direction `json:"dir"`
	Data       json.RawMessage   `json:"data"`
}

// writeRecording writes all of the journal that can be read, and tells what is lost. The head comes behind the frames: only they tell whether
// it is whole.
func (o outgoing) writeRecording(ctx context.Context, w io.Writer) (lost, err error) {
	z := zip.NewWriter(w)
	damaged, err := o.recordFrames(ctx, z)
	gone, kept := o.recordBlobs(ctx, z)
	lost = errors.Join(damaged, gone)
	return lost, errors.Join(err, o.recordHead(lost, z), kept, z.Close())
}

// recordHead tells what the recording is, and what keeps it from being whole.
func (o outgoing) recordHead(damaged error, z *zip.Writer) error {
	head, err := z.CreateHeader(&zip.FileHeader{Name: "session.json", Method: zip.Deflate, Modified: o.s.CreatedAt.Time})
	if err != nil {
		return err
	}
	return json.NewEncoder(cleaning{head, o.secret}).Encode(struct {
		Format  string  `json:"format"`
		Damage  string  `json:"damage,omitempty"`
		Unknown string  `json:"unknownSecrets,omitempty"`
		Session Session `json:"session"`
	}{"deskhand.recording/1", textOf(damaged), textOf(o.unknown), o.asHead()})
}

// asHead is the session without what nobody has sent yet.
func (o outgoing) asHead() Session {
	s := o.s
	s.Draft, s.Attachments = "", []transcript.Attachment{}
	return s
}

// recordFrames writes the frames of the journal that can be read.
func (o outgoing) recordFrames(ctx context.Context, z *zip.Writer) (lost, err error) {
	out, err := z.CreateHeader(&zip.FileHeader{Name: "frames.jsonl", Method: zip.Deflate, Modified: o.s.UpdatedAt.Time})
	if err != nil {
		return nil, err
	}
	enc := json.NewEncoder(cleaning{out, o.secret})
	enc.SetEscapeHTML(false)
	var first time.Time
	var failed error
	lost, err = o.c.journal.Readable(ctx, o.s.ID, func(f journal.Frame) {
		if first.IsZero() {
			first = f.At
		}
		if failed == nil {
			failed = enc.Encode(recorded{f.N, f.Generation, f.At.Sub(first).Milliseconds(), f.Dir, asJSON(f.Data)})
		}
	})
	return lost, errors.Join(err, failed)
}

// recordBlobs puts the bytes of attachments beside the journal, by their sha256.
func (o outgoing) recordBlobs(ctx context.Context, z *zip.Writer) (lost, err error) {
	list, err := o.c.attachmentsOf(ctx, o.s.ID)
	if err != nil {
		return nil, err
	}
	return o.eachBlob(list, func(sha string, data []byte) error {
		part, err := z.CreateHeader(&zip.FileHeader{Name: "blobs/" + sha, Method: zip.Deflate, Modified: o.s.UpdatedAt.Time})
		if err != nil {
			return err
		}
		_, err = part.Write(data)
		return err
	})
}

// asJSON is a frame as a JSON value: what an agent wrote that was none is a text.
func asJSON(data []byte) json.RawMessage {
	if json.Valid(data) {
		return data
	}
	return mustJSON(string(data))
}

// writeMarkdown writes all of the conversation that can be read, and tells what is lost.
func (o outgoing) writeMarkdown(ctx context.Context, w io.Writer) (lost, err error) {
	s := o.s
	t, damaged, err := o.c.everything(ctx, s.ID)
	m := &markdown{w: cleaning{w, o.secret}, agent: s.AgentName, requests: map[string]Request{}}
	for _, r := range t.Requests {
		m.requests[r.ID] = r
	}
	title := s.Title
	if title == "" {
		title = "Conversation"
	}
	m.print("# %s\n\n%s in `%s`, %s\n", flat(title), s.AgentName, flat(s.Cwd), s.CreatedAt.UTC().Format("2 January 2006, 15:04 MST"))
	if damaged != nil {
		m.print("\n> Not all of this conversation could be read, because what is kept of it is damaged: %s\n", flat(damaged.Error()))
	}
	if o.unknown != nil {
		m.print("\n> Secrets that could not be read are not hidden here, should anything have them: %s\n", flat(o.unknown.Error()))
	}
	why, last := causes(s.AgentName, t)
	for i, e := range t.Items {
		m.entry(e)
		if e.Turn != "" && last[e.Turn] == i {
			m.ended(why[e.Turn])
		}
	}
	return damaged, errors.Join(err, m.err)
}

// markdown writes a conversation for people. What programs wrote stands in fences, so that it changes nothing around it, and what a message
// leaves open ends with the message.
type markdown struct {
	w        io.Writer
	agent    string
	speaker  string
	requests map[string]Request
	err      error
}

func (m *markdown) print(format string, args ...any) {
	if m.err == nil {
		_, m.err = fmt.Fprintf(m.w, format, args...)
	}
}

// ended tells why a turn has ended; nothing where it has ended by itself.
func (m *markdown) ended(why string) {
	if why == "" {
		return
	}
	m.speaker = ""
	if why == wordsStopped {
		m.print("\n> **The turn was %s.**\n", why)
		return
	}
	m.print("\n> **The turn failed:** %s\n", flat(why))
}

// says begins a part, unless the same one goes on.
func (m *markdown) says(who string) {
	if m.speaker != who {
		m.speaker = who
		m.print("\n## %s\n", who)
	}
}

func (m *markdown) entry(e transcript.Entry) {
	switch e.Kind {
	case "user":
		m.speaker = "" // each message is one of its own
		m.says("You")
		m.print("\n%s\n", prose.Closed(e.Text))
		m.blocks(e.Blocks)
		m.files(e.Attachments)
	case "attachment":
		m.says(m.agent)
		m.files(e.Attachments)
	case "agent":
		m.says(m.agent)
		m.print("\n%s\n", prose.Closed(e.Text))
		m.blocks(e.Blocks)
	case "thought":
		m.says(m.agent)
		m.print("\n<details><summary>Thought</summary>\n\n%s\n\n</details>\n", acp.Fenced("", e.Text))
	case "tool":
		m.says(m.agent)
		m.tool(e.Tool)
	case "plan":
		m.says(m.agent)
		m.print("\n")
		for _, p := range e.Plan {
			m.print("- [%s] %s\n", map[bool]string{true: "x", false: " "}[p.Status == "completed"], flat(p.Content))
		}
	case "request":
		m.request(e.Request)
	case "rule":
		m.print("\n*%s by rule: %s*\n", map[string]string{"allow": "Allowed", "deny": "Denied"}[e.Rule.Effect], flat(e.Rule.Text))
	case "notice":
		m.print("\n> %s: %s\n", flat(e.Notice.Title), flat(e.Notice.Description))
	case "divider":
		m.divider(e.Divider)
	case "terminal", "file", "compaction":
		m.says(m.agent)
		m.served(e)
	case "straggler":
		m.print("\n*%s*\n", flat(e.Straggler.Words()))
	case "raw":
		m.print("\n%s\n", acp.Fenced("json", string(e.Raw)))
	}
}

// divider tells of a change in the life of the session; of an agent that ended, also the last that it wrote to its error output.
func (m *markdown) divider(d *transcript.Divider) {
	words := d.Words(m.agent)
	if d.Exit != nil {
		words += d.Exit.Status()
	}
	m.print("\n---\n\n*%s*\n", flat(words))
	if d.Exit != nil && d.Exit.StderrTail != "" {
		m.print("\n%s\n", acp.Fenced("", d.Exit.StderrTail))
	}
}

// blocks tells of what is no text; the journal has it.
func (m *markdown) blocks(blocks []json.RawMessage) {
	for _, raw := range blocks {
		var b struct{ Type, Name, URI, MimeType string }
		_ = json.Unmarshal(raw, &b) // what does not fit stays empty
		m.print("\n*[%s]*\n", flat(strings.Join(strings.Fields(b.Type+" "+b.Name+" "+b.URI+" "+b.MimeType), " ")))
	}
}

// files names what travelled with a message, or was given.
func (m *markdown) files(list []transcript.Attachment) {
	for i, a := range list {
		if i == 0 {
			m.print("\n")
		}
		where := ""
		if a.Path != "" {
			where = ", " + m.code(a.Path)
		}
		m.print("- **file** %s (%s, %d bytes%s)\n", m.code(a.Filename), flat(a.MimeType), a.Size, where)
	}
}

func (m *markdown) tool(t *transcript.ToolCall) {
	m.print("\n**%s** %s (%s)\n", flat(t.Kind), m.code(t.Title), t.Status)
	for _, raw := range t.Content {
		var c struct {
			Type             string
			Path             string
			OldText, NewText string
			Content          struct{ Type, Text string }
		}
		if json.Unmarshal(raw, &c) != nil {
			continue
		}
		switch c.Type {
		case "diff":
			m.print("\n%s\n\n%s\n", m.code(c.Path), acp.Fenced("diff", difference(c.OldText, c.NewText)))
		case "content":
			if c.Content.Text != "" {
				m.print("\n%s\n", acp.Fenced("", c.Content.Text))
			}
		}
	}
}

func (m *markdown) request(id string) {
	r, ok := m.requests[id]
	if !ok {
		return
	}
	m.print("\n> **%s asks:** %s  \n> %s", flat(r.Agent), flat(r.Title), r.Status)
	var a Answer
	if json.Unmarshal(r.Answer, &a) == nil {
		for _, o := range r.Options {
			if o.ID == a.OptionID {
				m.print(": %s", flat(o.Name))
			}
		}
	}
	m.print("\n")
}

func (m *markdown) code(s string) string { return "`" + strings.ReplaceAll(flat(s), "`", "'") + "`" }

// difference tells what was taken out and put in between the lines that are the same at the beginning and at the end.
func difference(before, after string) string {
	old, now := lines(before), lines(after)
	head := 0
	for head < len(old) && head < len(now) && old[head] == now[head] {
		head++
	}
	tail := 0
	for tail < len(old)-head && tail < len(now)-head && old[len(old)-1-tail] == now[len(now)-1-tail] {
		tail++
	}
	const around = 3
	var b strings.Builder
	write := func(sign string, list []string) {
		for _, l := range list {
			b.WriteString(sign + l + "\n")
		}
	}
	write(" ", old[max(0, head-around):head])
	write("-", old[head:len(old)-tail])
	write("+", now[head:len(now)-tail])
	write(" ", old[len(old)-tail:min(len(old), len(old)-tail+around)])
	return b.String()
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(strings.TrimSuffix(s, "\n"), "\n")
}
