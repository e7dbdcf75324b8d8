package discord

import (
	"fmt"
	"slices"
	"strings"
)

// What a turn looks like in a channel: what the agent says as it says it, and one quiet line for each tool call. Thoughts are not shown.

type itemKind int

const (
	itemText itemKind = iota // of the agent
	itemTool
	itemSaid // by a person, elsewhere
	itemLine // of ours, as it is
)

// item is one thing that a turn shows.
type item struct {
	id     string // of the entry
	kind   itemKind
	text   string // of a tool call: its title
	status string // of a tool call
	asked  bool   // it is what the turn was begun with
	stored bool   // the text is as the store had it: what is added is read there
}

// mark is a place in a turn behind which a new message begins, since something else was posted there.
type mark struct {
	Item string `json:"item"` // "" = before the first
	At   int    `json:"at"`   // in bytes of its text
}

// leaf is one message of a turn.
type leaf struct {
	text   string
	speaks bool // the agent does, in its own words
}

// What a line of the layout takes of a message, whatever it says: a tool call that changes must not push what stands behind it into
// another message.
const (
	longestTitle = 100
	toolRoom     = longestTitle + 20
	longestQuote = 300
	leastRoom    = 200 // for a text to begin in a message that has something already
)

// layout spreads items over messages.
type layout struct {
	leaves []leaf
	used   int  // of the last one
	full   bool // the last one is
	spoke  bool // what it ends with is a text of the agent
}

// lay gives the messages of what a turn has to show. What was laid in full stays when items are added.
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
			continue // its breaks are within it
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

// marksIn are the places in a text behind which a message ends, and its end.
func marksIn(it item, breaks []mark) (ends []int) {
	for _, m := range breaks {
		if m.Item == it.id && m.At <= len(it.text) {
			ends = append(ends, m.At)
		}
	}
	slices.Sort(ends)
	return slices.Compact(ends)
}

// next ends the message. One that has nothing yet stays, with words that say that it goes on below.
func (l *layout) next() {
	if len(l.leaves) == 0 {
		l.leaves = append(l.leaves, leaf{})
	}
	l.full = true
}

// room is what is left in the message for something that stands apart by so much.
func (l *layout) room(apart int) int {
	if l.full || len(l.leaves) == 0 {
		return mostText
	}
	return mostText - l.used - apart
}

// add puts something into the message, or into a new one.
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

// line adds what stands on a line of its own and is not cut.
func (l *layout) line(text string, takes int) {
	if l.room(1) < takes {
		l.next()
	}
	l.add(text, "\n", takes, false)
}

// say adds a text of the agent; behind each of ends another message begins.
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

// toolLine is a tool call as one quiet line.
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

// saidLine is what a person has said to the agent elsewhere, in brief.
func saidLine(text string) string {
	if text = plain(text, longestQuote); text == "" {
		return "-# Said at the desk, with files alone"
	}
	return "-# Said at the desk:\n> " + text
}

// plain is a text on one line of at most so many units, in which Discord finds nothing but text and code.
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

// inline is a line in which code stays code and everything else is text.
func inline(text string) string {
	parts := strings.Split(text, "`")
	if len(parts)%2 == 0 { // one that is not closed would take what follows with it
		parts = []string{strings.Join(parts, "'")}
	}
	for i := 0; i < len(parts); i += 2 {
		parts[i] = escaped(parts[i])
	}
	return strings.Join(parts, "`")
}

// escaped is a text whose signs Discord shows as they are.
func escaped(text string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `_`, `\_`, `~`, `\~`, `|`, `\|`).Replace(text)
}

// stopLine tells how a turn has ended, where it is not as people expect.
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

// What stands where the agent has said nothing.
const (
	workingLine = "-# …"
	belowLine   = "-# It goes on below."
	doneLine    = "-# Done."
	blockedLine = "-# Discord does not take what stands here. It is in Deskhand."
)

// tooLarge stands for a file that the server does not take.
func tooLarge(name string, size int64) string {
	return fmt.Sprintf("-# %s (%s) is too large for this server. It is in Deskhand.", plain(name, longestTitle), bytesText(size))
}

// notSent stands for a file that could not be sent.
func notSent(name string) string {
	return fmt.Sprintf("-# %s could not be sent here. It is in Deskhand.", plain(name, longestTitle))
}

// bytesText is a size as people read it.
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
