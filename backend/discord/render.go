package discord

import (
	"fmt"
	"slices"
	"strings"
)

// How a turn is shown in a channel: the agent's text as it comes, and a quiet line for each tool call. Thoughts are not shown.

type itemKind int

const (
	itemText itemKind = iota // of the agent
	itemTool
	itemSaid // by a person, elsewhere
	itemLine // ours, unchanged
)

// item is a part of a turn that is shown.
type item struct {
	id     string // of the entry
	kind   itemKind
	text   string // for a tool call: its title
	status string // of a tool call
	asked  bool   // the item began the turn
	stored bool   // the text was read from the store, where additions are read, too
}

// mark is a place in a turn behind which a new message begins, because another message was posted there.
type mark struct {
	Item string `json:"item"` // "" = before the first item
	At   int    `json:"at"`   // in bytes of the item's text
}

// leaf is a message of a turn.
type leaf struct {
	text   string
	speaks bool // the message has the agent's own words
}

// The room that a line takes in a message, whatever its text: a tool call that changes must not push the following text into another
// message.
const (
	longestTitle = 100
	toolRoom     = longestTitle + 20
	longestQuote = 300
	leastRoom    = 200 // the least room in a used message for a text to begin there
)

// layout distributes items over messages.
type layout struct {
	leaves []leaf
	used   int  // of the last leaf
	full   bool // the last leaf is full
	spoke  bool // the last leaf ends with a text of the agent
}

// lay returns the messages of a turn. Full messages do not change when items are added.
func lay(items []item, breaks []mark) []leaf {
	var l layout
	broken := func(id string) bool { return slices.ContainsFunc(breaks, func(m mark) bool { return m.Item == id }) }
	if broken("") {
		l.next()
	}
	for _, it := range items {
		switch it.kind {
		case itemText:
			l.say(it.text, marksIn(it, breaks))
			continue // its breaks are within the text
		case itemTool:
			l.line(toolLine(it), toolRoom)
		case itemSaid:
			line := saidLine(it.text)
			l.line(line, width(line))
		case itemLine:
			l.line(it.text, width(it.text))
		}
		if broken(it.id) {
			l.next()
		}
	}
	return l.leaves
}

// marksIn returns the places in a text behind which a message ends.
func marksIn(it item, breaks []mark) (ends []int) {
	for _, m := range breaks {
		if m.Item == it.id && m.At <= len(it.text) {
			ends = append(ends, m.At)
		}
	}
	slices.Sort(ends)
	return slices.Compact(ends)
}

// next ends the message. An empty message stays, with words that point to the next message.
func (l *layout) next() {
	if len(l.leaves) == 0 {
		l.leaves = append(l.leaves, leaf{})
	}
	l.full = true
}

// room returns how much room the message has for a text behind a separator of length apart.
func (l *layout) room(apart int) int {
	if l.full || len(l.leaves) == 0 {
		return mostText
	}
	return mostText - l.used - apart
}

// add adds a text to the message, or to a new message.
func (l *layout) add(text, apart string, takes int, speaks bool) {
	if l.full || len(l.leaves) == 0 {
		l.leaves = append(l.leaves, leaf{})
		l.used, l.full, apart = 0, false, ""
	}
	last := &l.leaves[len(l.leaves)-1]
	last.text += apart + text
	last.speaks = last.speaks || speaks
	l.used += len(apart) + takes
	l.spoke = speaks
}

// line adds a text that is a line of its own and is not cut.
func (l *layout) line(text string, takes int) {
	if l.room(1) < takes {
		l.next()
	}
	l.add(text, "\n", takes, false)
}

// say adds a text of the agent; a new message begins behind each of ends.
func (l *layout) say(text string, ends []int) {
	apart := "\n"
	if l.spoke {
		apart = "\n\n"
	}
	p := spot{}
	for _, end := range append(slices.Clone(ends), len(text)) {
		for full := true; full; {
			if l.room(len(apart)) < leastRoom {
				l.next()
			}
			var piece string
			piece, p, full = p.piece(text[:end], l.room(len(apart)))
			if piece != "" {
				l.add(piece, apart, width(piece), true)
			}
			if full {
				l.next()
			}
		}
		if slices.Contains(ends, end) {
			l.next()
		}
	}
}

// toolLine returns the quiet line of a tool call.
func toolLine(it item) string {
	sign := "▸"
	switch it.status {
	case "completed":
		sign = "✓"
	case "failed":
		sign = "✗"
	case "cancelled":
		sign = "–"
	}
	return "-# " + sign + " " + plain(it.text, longestTitle)
}

// saidLine returns a short form of a person's message from elsewhere.
func saidLine(text string) string {
	if text = plain(text, longestQuote); text == "" {
		return "-# Said at the desk, with files alone"
	}
	return "-# Said at the desk:\n> " + text
}

// plain returns a text on a single line of at most most units, in which Discord finds only text and code.
func plain(text string, most int) string {
	text = strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "```", "'''")
	for room := most; ; {
		line := inline(short(text, room))
		over := width(line) - most
		if over <= 0 || room <= 1 {
			return line
		}
		room = max(1, room-over)
	}
}

// inline returns a line in which code stays code and the rest is escaped.
func inline(text string) string {
	parts := strings.Split(text, "`")
	if len(parts)%2 == 0 { // unclosed code would swallow the text that follows
		parts = []string{strings.Join(parts, "'")}
	}
	for i := 0; i < len(parts); i += 2 {
		parts[i] = escaped(parts[i])
	}
	return strings.Join(parts, "`")
}

// escaped returns a text that Discord shows without Markdown.
func escaped(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `_`, `\_`, `~`, `\~`, `|`, `\|`).Replace(text)
}

// stopLine returns a line about the end of a turn, unless the end is as people expect.
func stopLine(reason, failure string) string {
	switch reason {
	case "", "end_turn":
		return ""
	case "cancelled":
		return "-# Stopped."
	case "max_tokens":
		return "-# Stopped: the answer has become as long as the model allows."
	case "max_turn_requests":
		return "-# Stopped: the agent has asked its model as often as it may in one turn."
	case "refusal":
		return "-# The agent refuses to go on."
	case "interrupted":
		return "-# Interrupted: Deskhand was ended while this ran."
	case "agent_exited":
		if failure == "" {
			return "-# The agent's program has ended in the middle of this."
		}
		return "-# The agent has not started: " + plain(failure, longestQuote)
	case "error":
		if failure == "" {
			return "-# The agent has failed."
		}
		return "-# The agent has failed: " + plain(failure, longestQuote)
	}
	return "-# Stopped: " + plain(reason, longestTitle)
}

// The lines in place of text of the agent.
const (
	workingLine = "-# …"
	belowLine   = "-# It goes on below."
	doneLine    = "-# Done."
	blockedLine = "-# Discord does not take what stands here. It is in Deskhand."
)

// tooLarge returns the line in place of a file that the server does not take.
func tooLarge(name string, size int64) string {
	return fmt.Sprintf("-# %s (%s) is too large for this server. It is in Deskhand.", plain(name, longestTitle), bytesText(size))
}

// notSent returns the line in place of a file that could not be sent.
func notSent(name string) string {
	return fmt.Sprintf("-# %s could not be sent here. It is in Deskhand.", plain(name, longestTitle))
}

// bytesText returns a size for people.
func bytesText(n int64) string {
	const step = 1024
	if n < step {
		return fmt.Sprintf("%d bytes", n)
	}
	v, unit := float64(n)/step, "KiB"
	if v >= step {
		v, unit = v/step, "MiB"
	}
	return fmt.Sprintf("%.1f %s", v, unit)
}
