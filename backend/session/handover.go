package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"deskhand/backend/host"
	"deskhand/backend/lifecycle"
	"deskhand/backend/startmode"
	"deskhand/backend/transcript"
	"deskhand/backend/vault"
)

// Continue makes a session for another agent, in the same directory. That agent knows nothing of the first conversation, so the draft of
// the new session is a summary of it, as plain Markdown, for the person to look at, to change and to send. It is made from the
// transcript alone, by no model: what was asked, decided and planned, which files were changed, and the last answer.
func (c *Client) Continue(ctx context.Context, id, agent string) (Session, error) {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return Session{}, err
	}
	s := v.look()
	if err := c.hosts.At(s.Place).Startable(agent); err != nil {
		return Session{}, err
	}
	draft, err := c.summary(ctx, s)
	if err != nil {
		return Session{}, err
	}
	r := c.fresh(agent, s.Workspace)
	r.Place, r.Cwd, r.Directories, r.Labels = s.Place, s.Cwd, s.Directories, slices.Clone(s.Labels)
	if r.facts.Start, err = c.startWish(ctx, r.Agent, r.Place, r.Cwd, startmode.Choice{}); err != nil {
		return Session{}, err
	}
	r.Origin = &Origin{Kind: originContinue, Session: s.ID, Title: s.Title, Agent: s.Agent}
	r.Title, r.titleBy = s.Title, titleByPrompt
	r.Draft = draft
	return c.begin(ctx, r)
}

// Summary is what Continue gives another agent: for a session's own, which has lost what was said.
func (c *Client) Summary(ctx context.Context, id string) (string, error) {
	v, err := c.conversation(ctx, id)
	if err != nil {
		return "", err
	}
	return c.summary(ctx, v.look())
}

func (c *Client) summary(ctx context.Context, s Session) (string, error) {
	h, err := c.handover(ctx, s)
	if err != nil {
		return "", err
	}
	unread := c.loadSecretsAtOnce(ctx)
	secret, err := c.Redactor(ctx, s)
	if unread = errors.Join(unread, err); unread != nil {
		c.cfg.Logger.Warn("a summary may hold secrets that cannot be read", "session", s.ID, "error", unread)
	}
	return secret.Text(h.markdown()), nil
}

// loadSecretsAtOnce is Secrets.Load for a call that a person waits for: nobody is asked for a password.
func (c *Client) loadSecretsAtOnce(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, host.PatientMany)
	defer cancel()
	return c.cfg.Roster.Secrets().Load(ctx, vault.IfUnlocked)
}

// Bounds of a summary, in bytes as it is written. Their sum leaves room for the headings.
const (
	handoverLimit = 16 << 10
	boundTitle    = 200
	boundFirst    = 2 << 10 // of the first message
	boundRecent   = 3584    // of the newest messages together
	boundMessage  = 1536    // of each of them
	boundDecided  = 1536    // of all answers
	boundPlan     = 1536    // of the whole plan
	boundFiles    = 1536    // of all names
	boundAnswer   = 3584    // of the last answer
	recentKept    = 12      // messages
	rawKept       = 8 << 10 // of one text, before it is cut to its place
	namesKept     = 10_000  // files
	handoverPart  = 500     // entries that are read at a time
	boundLine     = 200     // of one answer, step or name
	moreLeft      = "… (%d more)"
)

// handover collects what a summary tells, in one pass over the entries of a conversation however long it is.
type handover struct {
	agent, title, cwd string

	asked   int
	first   string   // message
	recent  []string // the newest but the first
	answer  string
	plan    []transcript.PlanItem
	files   map[string]int // when each was changed last, by path
	changes int
	decided []string
	ended   string // why the last turn did not end well
}

func (c *Client) handover(ctx context.Context, s Session) (*handover, error) {
	h := &handover{agent: s.AgentName, title: s.Title, cwd: s.Cwd, files: map[string]int{}}
	if h.agent == "" {
		h.agent = c.cfg.Agents.Name(s.Agent)
	}
	for after := int64(0); ; {
		part, more, err := c.newer(ctx, s.ID, after, handoverPart)
		if err != nil {
			return nil, err
		}
		for i := range part {
			h.add(&part[i])
		}
		if !more {
			break
		}
		after = part[len(part)-1].Seq
	}
	db := c.cfg.Store.Read()
	requests, err := query(ctx, db, scanJSON[Request], `SELECT data FROM request WHERE session = ? AND status IN ('answered', 'rejected') ORDER BY created_at, id`, s.ID)
	if err != nil {
		return nil, err
	}
	for i := range requests {
		h.decide(&requests[i])
	}
	last, err := query(ctx, db, scanTurn, `SELECT `+turnColumns+` FROM turn WHERE session = ? ORDER BY started_at DESC, id DESC LIMIT 1`, s.ID)
	if err != nil {
		return nil, err
	}
	for i := range last {
		h.end(&last[i])
	}
	return h, nil
}

// add takes one entry in.
func (h *handover) add(e *transcript.Entry) {
	switch e.Kind {
	case "user":
		h.ask(e)
	case "agent":
		if text := strings.TrimSpace(e.Text); text != "" {
			h.answer = cut(text, rawKept)
		}
	case "plan":
		h.plan = e.Plan
	case "file":
		if e.File != nil {
			h.changed(e.File.Path)
		}
	case "tool":
		h.tool(e.Tool)
	}
}

func (h *handover) ask(e *transcript.Entry) {
	text := cut(strings.TrimSpace(e.Text), rawKept)
	if n := len(e.Blocks) + len(e.Attachments); n > 0 {
		text = strings.TrimSpace(fmt.Sprintf("%s\n(with %d attached)", text, n))
	}
	if text == "" {
		return
	}
	h.asked++
	if h.asked == 1 {
		h.first = text
		return
	}
	if len(h.recent) == recentKept {
		h.recent = h.recent[1:]
	}
	h.recent = append(h.recent, text)
}

func (h *handover) tool(t *transcript.ToolCall) {
	if t == nil || t.Status != "completed" {
		return
	}
	paths := map[string]bool{}
	for _, raw := range t.Content {
		var d struct{ Type, Path string }
		if json.Unmarshal(raw, &d) == nil && d.Type == "diff" && d.Path != "" {
			paths[d.Path] = true
		}
	}
	if slices.Contains([]string{"edit", "delete", "move"}, t.Kind) {
		for _, l := range t.Locations {
			paths[l.Path] = true
		}
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		h.changed(path)
	}
}

func (h *handover) changed(path string) {
	if _, known := h.files[path]; known || len(h.files) < namesKept {
		h.changes++
		h.files[path] = h.changes
	}
}

// decide takes the answer to a request in, as far as it tells more than this once.
func (h *handover) decide(r *Request) {
	var a Answer
	_ = json.Unmarshal(r.Answer, &a) // one that cannot be read decides nothing
	switch {
	case r.Kind == kindPermission:
		h.permit(r, a)
	case r.Status == lifecycle.StatusRejected:
	case r.Kind == kindQuestion:
		for i, q := range r.Questions {
			if i < len(a.Answers) {
				h.note(q.Prompt, strings.Join(q.labels(a.Answers[i]), ", "))
			}
		}
	case r.Kind == kindURL:
		h.note(r.Title, "agreed to open "+r.URL)
	case r.Kind == kindForm:
		var content map[string]any
		_ = json.Unmarshal(a.Content, &content)
		for _, name := range slices.Sorted(maps.Keys(content)) {
			h.note(r.Title+" ("+name+")", fmt.Sprint(content[name]))
		}
	}
}

func (h *handover) permit(r *Request, a Answer) {
	for _, o := range r.Options {
		switch {
		case o.ID != a.OptionID:
		case strings.HasPrefix(o.Kind, "reject"):
			h.note(r.Title, "refused")
		case o.Kind == "allow_always":
			h.note(r.Title, o.Name)
		}
	}
}

func (h *handover) note(asked, answered string) {
	h.decided = append(h.decided, cut(oneLine(asked), boundLine)+" → "+cut(oneLine(answered), boundLine))
}

// labels are what people call the choices.
func (q *Question) labels(chosen []string) []string {
	out := slices.Clone(chosen)
	for i, id := range out {
		for _, o := range q.Options {
			if o.ID == id {
				out[i] = o.Label
			}
		}
	}
	return out
}

func (h *handover) end(t *Turn) {
	switch {
	case t.State != "done":
		h.ended = "The last message was still being worked on."
	case t.StopReason == lifecycle.StopEnd:
	case t.StopReason == lifecycle.StopCancelled:
		h.ended = "The last turn was stopped before it was done."
	case t.Error != nil:
		h.ended = "The last turn ended with an error: " + cut(oneLine(t.Error.Message), boundLine)
	default:
		h.ended = "The last turn did not end by itself: " + cut(oneLine(t.StopReason), boundLine)
	}
}

// markdown writes the summary.
func (h *handover) markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "This goes on from a conversation with %s in `%s`", cut(oneLine(h.agent), boundTitle), cut(oneLine(h.cwd), rawKept/8))
	if h.title != "" {
		fmt.Fprintf(&b, ", “%s”", cut(oneLine(h.title), boundTitle))
	}
	b.WriteString(".")
	if h.asked == 0 && h.answer == "" {
		b.WriteString(" Nothing was said in it yet.\n")
		return b.String()
	}
	b.WriteString(" You have not seen it; this is a summary. Files may have changed since, so look at them before you rely on it.\n")
	h.writeAsked(&b)
	h.writeList(&b, "Decided", boundDecided, h.decided)
	h.writePlan(&b)
	h.writeFiles(&b)
	if h.answer != "" {
		b.WriteString("\n## Last answer\n\n")
		b.WriteString(quote(h.answer, boundAnswer))
	}
	if h.ended != "" {
		b.WriteString("\n" + h.ended + "\n")
	}
	b.WriteString("\n## Now\n\nGo on from there.\n")
	return b.String()
}

func (h *handover) writeAsked(b *strings.Builder) {
	if h.asked == 0 {
		return
	}
	b.WriteString("\n## What I asked\n\n" + quote(h.first, boundFirst))
	var shown []string
	room := boundRecent
	for _, text := range slices.Backward(h.recent) {
		q := quote(text, min(boundMessage, room))
		if room -= len(q) + 1; room < 0 || q == "" {
			break
		}
		shown = append(shown, q)
	}
	if left := h.asked - 1 - len(shown); left > 0 {
		fmt.Fprintf(b, "\n(%d more messages)\n", left)
	}
	for _, q := range slices.Backward(shown) {
		b.WriteString("\n" + q)
	}
}

// writeList writes the newest of the items that there is room for, in their order.
func (h *handover) writeList(b *strings.Builder, heading string, room int, items []string) {
	if len(items) == 0 {
		return
	}
	from := len(items)
	for from > 0 && room >= len(items[from-1])+len("- \n") {
		from--
		room -= len(items[from]) + len("- \n")
	}
	b.WriteString("\n## " + heading + "\n\n")
	if from > 0 {
		fmt.Fprintf(b, "- "+moreLeft+"\n", from)
	}
	for _, item := range items[from:] {
		b.WriteString("- " + item + "\n")
	}
}

// writePlan writes the plan from its first step that is not done, where there is no room for all of it.
func (h *handover) writePlan(b *strings.Builder) {
	steps := make([]string, len(h.plan))
	for i, p := range h.plan {
		mark := "[ ] "
		switch p.Status {
		case "completed":
			mark = "[x] "
		case "in_progress":
			mark = "[ ] (in progress) "
		}
		steps[i] = mark + cut(oneLine(p.Content), boundLine)
	}
	done := 0
	size := func() (n int) {
		for _, s := range steps[done:] {
			n += len(s) + len("- \n")
		}
		return n
	}
	for done < len(steps) && h.plan[done].Status == "completed" && size() > boundPlan {
		done++
	}
	if len(steps) == 0 {
		return
	}
	b.WriteString("\n## The plan\n\n")
	if done > 0 {
		fmt.Fprintf(b, "- [x] "+moreLeft+"\n", done)
	}
	room := boundPlan
	for i, s := range steps[done:] {
		if room -= len(s) + len("- \n"); room < 0 {
			fmt.Fprintf(b, "- "+moreLeft+"\n", len(steps)-done-i)
			break
		}
		b.WriteString("- " + s + "\n")
	}
}

func (h *handover) writeFiles(b *strings.Builder) {
	paths := slices.SortedFunc(maps.Keys(h.files), func(a, b string) int { return h.files[a] - h.files[b] })
	for i, path := range paths {
		if in, err := filepath.Rel(h.cwd, path); err == nil && filepath.IsLocal(in) {
			path = in
		}
		paths[i] = "`" + cut(strings.ReplaceAll(oneLine(path), "`", "'"), 2*boundLine) + "`"
	}
	h.writeList(b, "Files that were changed", boundFiles, paths)
}

// quote writes a text as a block quote of at most so many bytes.
func quote(text string, room int) string {
	var b strings.Builder
	const slack = len("> …\n")
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \t\r\n")
		need := len("> \n") + len(line)
		if left := room - slack - b.Len(); need > left {
			if left > len("> \n")+utf8.UTFMax {
				b.WriteString("> " + cut(line, left-len("> \n")) + "\n")
			} else {
				b.WriteString("> …\n")
			}
			break
		}
		b.WriteString(strings.TrimRight("> "+line, " ") + "\n")
	}
	if b.Len() > room {
		return ""
	}
	return b.String()
}

// oneLine is a text without what would break a line of Markdown.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// cut shortens a text to so many bytes, at a character: what is combined with the one before it stays with it.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const mark = "…"
	end := max(limit-len(mark), 0)
	for end > 0 {
		r, _ := utf8.DecodeRuneInString(s[end:])
		if utf8.RuneStart(s[end]) && !unicode.Is(unicode.Mn, r) && r != '\u200d' {
			break
		}
		end--
	}
	return strings.TrimRight(s[:end], " \n") + mark
}
