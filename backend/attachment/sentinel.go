package attachment

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

const (
	sentinelOpen  = "[[lilac.attachments]]"
	sentinelClose = "[[/lilac.attachments]]"
)

// SentinelItem is a file that a surface passes to an agent's tools.
type SentinelItem struct {
	URL      string `json:"url"`
	Filename string `json:"filename,omitempty"`
	MimeType string `json:"mimeType,omitempty"`
}

type sentinelBlock struct {
	Items []SentinelItem `json:"items"`
}

// Sentinel is the block by which tools find the files of a message: the last line of the message. The caller adds the line end.
func Sentinel(items []SentinelItem) string {
	if items == nil {
		items = []SentinelItem{}
	}
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false) // keeps URLs readable
	_ = enc.Encode(sentinelBlock{items})
	// A name that looks like the end of the block must not end it, even for a crude parser.
	inside := strings.ReplaceAll(strings.TrimSuffix(text.String(), "\n"), "[[", `\u005b\u005b`)
	return sentinelOpen + inside + sentinelClose
}

// ParseSentinel finds the block of a message: the last line that is a valid block, surrounded by nothing but space.
func ParseSentinel(text string) ([]SentinelItem, bool) {
	for text != "" {
		cut := strings.LastIndexByte(text, '\n')
		if items, ok := parseBlock(strings.TrimSpace(text[cut+1:])); ok {
			return items, true
		}
		text = text[:max(cut, 0)]
	}
	return nil, false
}

// WithoutSentinel is a message without the lines that are a block, as the person wrote it.
func WithoutSentinel(text string) string {
	if !strings.Contains(text, sentinelOpen) {
		return text
	}
	var kept []string
	for line := range strings.Lines(text) {
		if _, ok := parseBlock(strings.TrimSpace(line)); !ok {
			kept = append(kept, line)
		}
	}
	return strings.TrimSpace(strings.Join(kept, ""))
}

func parseBlock(line string) ([]SentinelItem, bool) {
	inside, ok := strings.CutPrefix(line, sentinelOpen)
	if !ok {
		return nil, false
	}
	if inside, ok = strings.CutSuffix(inside, sentinelClose); !ok {
		return nil, false
	}
	var block sentinelBlock
	if err := json.Unmarshal([]byte(inside), &block); err != nil || block.Items == nil {
		return nil, false
	}
	return block.Items, true
}

// HasSentinel reports whether a message has a block, or a text that may pass for a block.
func HasSentinel(text string) bool { return strings.Contains(text, sentinelOpen) }

// Merge joins the messages that came while an agent was at work. When one of several messages has a block, Merge joins nothing and returns
// false: files stay with the words that they were sent with.
func Merge(messages []string) (merged string, ok bool) {
	if len(messages) > 1 && slices.ContainsFunc(messages, HasSentinel) {
		return "", false
	}
	return strings.Join(messages, "\n\n"), true
}
