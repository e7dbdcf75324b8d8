package summary

import (
	"fmt"
	"strings"

	"deskhand/backend/transcript"
)

// TalkLimit is the length of the longest Talk in bytes, without its first lines.
const TalkLimit = 192 << 10

// Talk writes what was said in a conversation, word for word, for an agent that goes on from there and has not seen it. Of work only the
// titles are written. Of a conversation that is longer than TalkLimit the newest part is kept.
type Talk struct {
	agent, title, cwd string

	parts []spoken // in order
	size  int      // of the texts of parts, in bytes
	left  int      // how many parts were dropped
}

// spoken is one message, or one piece of work, as Markdown.
type spoken struct{ who, text string }

const thePerson, theAgent = "The person", "The agent"

// NewTalk returns the Talk of a conversation in which nothing was said yet.
func NewTalk(agent, title, cwd string) *Talk { return &Talk{agent: agent, title: title, cwd: cwd} }

// Add takes in the next entry.
func (t *Talk) Add(e *transcript.Entry) {
	text := strings.TrimSpace(e.Text)
	switch e.Kind {
	case "user":
		parts := []string{text}
		for _, a := range e.Attachments {
			parts = append(parts, "[attached: "+oneLine(a.Filename)+"]")
		}
		t.say(thePerson, strings.TrimSpace(strings.Join(parts, "\n\n")))
	case "agent":
		t.say(theAgent, text)
	case "tool":
		state := ""
		if e.Tool.Status == "failed" {
			state = " (failed)"
		}
		t.say(theAgent, "- "+cut(oneLine(e.Tool.Title), boundLine)+state)
	}
}

func (t *Talk) say(who, text string) {
	if text = cut(text, TalkLimit); text == "" {
		return
	}
	t.parts, t.size = append(t.parts, spoken{who, text}), t.size+len(text)
	for t.size > TalkLimit {
		t.size, t.left, t.parts = t.size-len(t.parts[0].text), t.left+1, t.parts[1:]
	}
}

// Markdown returns what was said; "" = nothing.
func (t *Talk) Markdown() string {
	if len(t.parts) == 0 {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# What was said before\n\nThe message that comes with this file goes on from a conversation with %s in `%s`", cut(oneLine(t.agent), boundTitle), cut(oneLine(t.cwd), rawKept/8))
	if t.title != "" {
		fmt.Fprintf(&b, ", “%s”", cut(oneLine(t.title), boundTitle))
	}
	b.WriteString(". You have not seen it; this is all of it up to the message. Files may have changed since, so look at them before you rely on it.\n")
	if t.left > 0 {
		fmt.Fprintf(&b, "\n(The first %d parts are left out: the conversation is long.)\n", t.left)
	}
	speaker := ""
	for _, part := range t.parts {
		if part.who != speaker || part.who == thePerson { // each message of the person has a heading
			speaker = part.who
			b.WriteString("\n## " + speaker + "\n")
		}
		b.WriteString("\n" + part.text + "\n")
	}
	return b.String()
}
