package transcript

import "strings"

// findable collects the texts by which a tool call, a program or a file can be found, each text once.
type findable struct {
	text  strings.Builder
	count int
}

// add drops texts beyond the length of the longest message. Only the first texts are compared with all earlier texts, since agents send the
// same text in several fields; comparing thousands would take long.
func (t *findable) add(text string) {
	const compared = 100
	if text == "" || t.text.Len() >= MaxText || t.count < compared && strings.Contains(t.text.String(), text) {
		return
	}
	t.count++
	t.text.WriteString(text)
	t.text.WriteByte('\n')
}

func (t *findable) printed(text string) { t.add(Printed(text)) }

// eachText calls f with the texts in a value of a tool, found by the usual names of fields. Other fields hold numbers, names and the bytes
// of files.
func eachText(v any, f func(string)) {
	switch v := v.(type) {
	case string:
		f(v)
	case []any:
		for _, item := range v {
			eachText(item, f)
		}
	case map[string]any:
		for _, key := range []string{"output", "formatted_output", "aggregated_output", "text", "stdout", "stderr", "content", "result", "message", "error"} {
			eachText(v[key], f)
		}
	}
}

// runningOutput is the number of bytes of a running program's newest output that can be found: all of it is indexed again every second in
// which the program writes.
const runningOutput = 16 << 10

// Printed returns a program's output as people see it: without escape sequences, and with the final state of each line that was
// overwritten.
func Printed(text string) string {
	text = withoutEscapes(text)
	if !strings.Contains(text, "\r") {
		return text
	}
	all := strings.Split(text, "\n")
	for i, line := range all {
		line = strings.TrimRight(line, "\r")
		all[i] = line[strings.LastIndexByte(line, '\r')+1:]
	}
	return strings.Join(all, "\n")
}

// withoutEscapes removes the escape sequences by which a program colours its output and controls a terminal. The window removes the same
// sequences (content/printed.ts).
func withoutEscapes(text string) string {
	if !strings.Contains(text, "\x1b") {
		return text
	}
	var b strings.Builder
	b.Grow(len(text))
	for {
		before, rest, found := strings.Cut(text, "\x1b")
		b.WriteString(before)
		if !found {
			return b.String()
		}
		text = rest[escapeLength(rest):]
	}
}

// escapeLength returns the number of bytes behind an escape character that belong to its sequence; 0 when no sequence begins.
func escapeLength(s string) int {
	end := 0
	switch {
	case s == "":
	case s[0] == '[': // colours, the cursor
		end = finalByte(s, skipBytes(s, skipBytes(s, 1, '0', '?'), ' ', '/'), '@')
	case s[0] == ']': // titles, links
		if at := strings.IndexAny(s, "\x07\x1b"); at >= 0 && s[at] == '\a' {
			end = at + 1
		} else if at >= 0 && strings.HasPrefix(s[at:], "\x1b\\") {
			end = at + 2
		}
	case ' ' <= s[0] && s[0] <= '/': // sets of characters
		end = finalByte(s, skipBytes(s, 0, ' ', '/'), '0')
	case '@' <= s[0] && s[0] <= 'Z', strings.IndexByte(`\^_`, s[0]) >= 0:
		end = 1
	}
	return end
}

// skipBytes returns the index behind the bytes between low and high.
func skipBytes(s string, from int, low, high byte) int {
	for from < len(s) && low <= s[from] && s[from] <= high {
		from++
	}
	return from
}

// finalByte returns the index behind a sequence's final byte; 0 when another byte is there.
func finalByte(s string, at int, low byte) int {
	if at < len(s) && low <= s[at] && s[at] <= '~' {
		return at + 1
	}
	return 0
}
