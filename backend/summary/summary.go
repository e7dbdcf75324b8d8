// Package summary writes what a conversation was about, for an agent that does not know the conversation: the prompts, the decisions, the plan,
// the changed files and the last answer, as Markdown of a limited length. The package uses no model; it hides how each part is cut to its room.
package summary

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"deskhand/backend/lifecycle"
	"deskhand/backend/requests"
	"deskhand/backend/transcript"
)

// Limits of a summary, in bytes of the written text. Their sum leaves room for the headings.
const (
	// Limit is the length of the longest summary, in bytes.
	Limit = 16 << 10

	boundTitle   = 200
	boundFirst   = 2 << 10 // the first message
	boundRecent  = 3584    // the newest messages together
	boundMessage = 1536    // each of the newest messages
	boundDecided = 1536    // all answers
	boundPlan    = 1536    // the whole plan
	boundFiles   = 1536    // all file names
	boundAnswer  = 3584    // the last answer
	recentKept   = 12      // messages
	rawKept      = 8 << 10 // one text before it is cut for its part
	namesKept    = 10_000  // files
	boundLine    = 200     // one answer, step or name
	moreLeft     = "… (%d more)"
)

// Summary collects the parts of a summary, in one pass over the entries of a conversation of any length.
type Summary struct {
	agent, title, cwd string

	asked    int
	first    string   // the first message
	recent   []string // the newest messages except the first
	answer   string
	plan     []transcript.PlanItem
	document string         // the plan, where it is Markdown
	files    map[string]int // order of the last change, by path
	changes  int
	decided  []string
	ended    string // why the last turn did not end well
}

// New returns the summary of a conversation in which nothing was said yet.
func New(agent, title, cwd string) *Summary {
	return &Summary{agent: agent, title: title, cwd: cwd, files: map[string]int{}}
}

// Add takes in one entry.
func (h *Summary) Add(e *transcript.Entry) {
	switch e.Kind {
	case "user":
		h.ask(e)
	case "agent":
		if text := strings.TrimSpace(e.Text); text != "" {
			h.answer = cut(text, rawKept)
		}
	case "plan":
		h.plan, h.document = e.Plan, e.Text
		if e.Removed {
			h.plan, h.document = nil, ""
		}
	case "file":
		if e.File != nil {
			h.changed(e.File.Path)
		}
	case "tool":
		h.tool(e.Tool)
	}
}

// ask takes in a person's message.
func (h *Summary) ask(e *transcript.Entry) {
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

// tool takes in the files that a completed tool call has changed.
func (h *Summary) tool(t *transcript.ToolCall) {
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

func (h *Summary) changed(path string) {
	if _, known := h.files[path]; known || len(h.files) < namesKept {
		h.changes++
		h.files[path] = h.changes
	}
}

// Decide takes in the answer to a request, if it says more than a permission for once.
func (h *Summary) Decide(r *requests.Request) {
	var a requests.Answer
	_ = json.Unmarshal(r.Answer, &a) // an answer that cannot be read decides nothing
	switch {
	case r.Kind == requests.KindPermission:
		h.permit(r, a)
	case r.Status == lifecycle.StatusRejected:
	case r.Kind == requests.KindQuestion:
		for i, q := range r.Questions {
			if i < len(a.Answers) {
				h.note(q.Prompt, strings.Join(q.Labels(a.Answers[i]), ", "))
			}
		}
	case r.Kind == requests.KindURL:
		h.note(r.Title, "agreed to open "+r.URL)
	case r.Kind == requests.KindForm:
		var content map[string]any
		_ = json.Unmarshal(a.Content, &content)
		for _, name := range slices.Sorted(maps.Keys(content)) {
			h.note(r.Title+" ("+name+")", fmt.Sprint(content[name]))
		}
	}
}

// permit takes in the answer to a permission, if the answer refuses or allows for always.
func (h *Summary) permit(r *requests.Request, a requests.Answer) {
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

func (h *Summary) note(asked, answered string) {
	h.decided = append(h.decided, cut(oneLine(asked), boundLine)+" → "+cut(oneLine(answered), boundLine))
}

// End takes in how the last turn ended.
func (h *Summary) End(state, reason string, failure *transcript.TurnError) {
	switch {
	case state != "done":
		h.ended = "The last message was still being worked on."
	case reason == lifecycle.StopEnd:
	case reason == lifecycle.StopCancelled:
		h.ended = "The last turn was stopped before it was done."
	case failure != nil:
		h.ended = "The last turn ended with an error: " + cut(oneLine(failure.Message), boundLine)
	default:
		h.ended = "The last turn did not end by itself: " + cut(oneLine(reason), boundLine)
	}
}

// Markdown writes the summary.
func (h *Summary) Markdown() string {
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

// writeAsked writes the first message, and the newest messages that fit.
func (h *Summary) writeAsked(b *strings.Builder) {
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

// writeList writes the newest items that fit into room, in order.
func (h *Summary) writeList(b *strings.Builder, heading string, room int, items []string) {
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

// writePlan writes the plan; when it does not fit, from its first step that is not completed, or the beginning of a document.
func (h *Summary) writePlan(b *strings.Builder) {
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
	if text := strings.TrimSpace(h.document); len(steps) == 0 && text != "" {
		b.WriteString("\n## The plan\n\n" + cut(text, boundPlan) + "\n")
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

func (h *Summary) writeFiles(b *strings.Builder) {
	paths := slices.SortedFunc(maps.Keys(h.files), func(a, b string) int { return h.files[a] - h.files[b] })
	for i, path := range paths {
		if in, err := filepath.Rel(h.cwd, path); err == nil && filepath.IsLocal(in) {
			path = in
		}
		paths[i] = "`" + cut(strings.ReplaceAll(oneLine(path), "`", "'"), 2*boundLine) + "`"
	}
	h.writeList(b, "Files that were changed", boundFiles, paths)
}

// quote returns a text as a block quote of at most room bytes.
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

// oneLine returns a text with all white space replaced by single spaces.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// cut shortens a text to at most limit bytes, between two characters: combining marks stay with their character.
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
