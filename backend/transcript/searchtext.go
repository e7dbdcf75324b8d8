package transcript

import "strings"

// findable is what of a tool call, a program or a file can be found, each text once.
type findable struct {
	text  strings.Builder
	count int
}

// add takes no more when there is as much as of the longest message. Each of the first texts is compared with all before it, since
// agents tell the same thing in several fields; to compare thousands would take long.
func (t *findable) add(text string) {
	const compared = 100
	if text == "" || t.text.Len() >= MaxText || t.count < compared && strings.Contains(t.text.String(), text) {
		return
	}
	t.count++
	t.text.WriteString(text)
	t.text.WriteByte('\n')
}

func (t *findable) printed(text string) { t.add(printed(text)) }

// eachText goes through what a value of a tool says, by the names in use. What else stands there are numbers, names and the bytes of
// files.
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

// While a program runs, this much of what it wrote last can be found: all of it is indexed anew every second in which it writes.
const runningOutput = 16 << 10

// printed is what a program has printed, as people see it: without codes, and of a line that was drawn over itself what it is at last.
func printed(text string) string {
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

// withoutEscapes leaves out the codes by which a program colours what it prints, and steers a terminal. The window leaves out the same
// (content/printed.ts).
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

// escapeLength is how much of a text belongs to the escape character before it: nothing, where that begins no sequence.
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

// skipBytes is where the bytes between these two end.
func skipBytes(s string, from int, low, high byte) int {
	for from < len(s) && low <= s[from] && s[from] <= high {
		from++
	}
	return from
}

// finalByte is where a sequence ends with the byte that finishes it; 0 where another stands there.
func finalByte(s string, at int, low byte) int {
	if at < len(s) && low <= s[at] && s[at] <= '~' {
		return at + 1
	}
	return 0
}
