package agenttest

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"deskhand/backend/demoagent"
)

// Defaults and limits of "stream".
const (
	streamRate    = 100 // chunks per second
	streamSeconds = 10
	mostRate      = 10_000
	mostSeconds   = 4 * 60 * 60

	streamTick = 10 * time.Millisecond // interval at which the due chunks are sent
	streamCall = 10 * time.Second      // interval between tool calls, each of which ends a message
	streamPage = 50_000                // bytes after which the text starts again
	tokenBytes = 6                     // bytes per chunk, about a model's token
)

// stream sends Markdown at a steady rate, a token per chunk, with code, tables, lists and long lines, and with tool calls in between.
func stream(ctx context.Context, t *demoagent.Turn) {
	rate, seconds := streamRate, streamSeconds
	if m := regexp.MustCompile(`(?i)\b(\d+)/s\b`).FindStringSubmatch(t.Text()); m != nil {
		rate = atMost(m[1], mostRate)
	}
	if m := regexp.MustCompile(`(?i)\b(\d+)s\b`).FindStringSubmatch(t.Text()); m != nil {
		seconds = atMost(m[1], mostSeconds)
	}
	tokens := tokensOf(streamText())
	length := time.Duration(seconds) * time.Second
	began, sent, calls := time.Now(), 0, 0
	chunk := t.Message()
	for {
		passed := min(time.Since(began), length)
		for due := int(passed.Seconds() * float64(rate)); sent < due; sent++ {
			chunk(ctx, tokens[sent%len(tokens)])
		}
		if passed == length || !t.Pause(ctx, streamTick) {
			return
		}
		if n := int(passed / streamCall); n > calls {
			calls = n
			call := t.Open(ctx, demoagent.ToolCall{Title: fmt.Sprintf("go test ./step%d", n), Name: "run_command", Kind: "execute", Status: "in_progress"})
			t.Change(ctx, call, demoagent.CommandOutput("completed", fmt.Sprintf("go test ./step%d", n), strings.Repeat("ok   deskhand/backend  0.1s\n", 40), 0))
			chunk = t.Message()
		}
	}
}

// atMost parses a number up to limit.
func atMost(digits string, limit int) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return limit
	}
	return min(max(n, 1), limit)
}

// streamText holds, again and again, everything that is hard to render while it grows.
func streamText() string {
	var out strings.Builder
	const sentence = "The reader takes what is there and goes on from the *last* frame that it has seen, while the **writer** adds to `frames` behind it. "
	for n := 1; out.Len() < streamPage; n++ {
		fmt.Fprintf(&out, "## Part %d\n\n%s%s\n\n", n, sentence, sentence)
		for i := range 12 {
			fmt.Fprintf(&out, "- item %d with a [link](https://example.org/%d) and `code`\n", i, i)
		}
		fmt.Fprintf(&out, "\n```go\n// Part %d\n", n)
		for i := range 80 {
			fmt.Fprintf(&out, "\tif err := s.step(ctx, %d); err != nil {\n\t\treturn fmt.Errorf(\"step %d: %%w\", err)\n\t}\n", i, i)
		}
		out.WriteString("```\n\n| file | what | lines |\n|---|---|--:|\n")
		for i := range 40 {
			fmt.Fprintf(&out, "| `backend/part%d.go` | reads **what** is written | %d |\n", i, i*7)
		}
		fmt.Fprintf(&out, "\n%s\n\n```\n%s\n```\n\n", strings.Repeat(sentence, 25), strings.Repeat("0123456789abcdef ", 120))
	}
	return out.String()
}

// tokensOf cuts a text into pieces of tokenBytes, never within a character.
func tokensOf(whole string) []string {
	var out []string
	for len(whole) > tokenBytes {
		end := tokenBytes
		for !utf8.RuneStart(whole[end]) {
			end++
		}
		out = append(out, whole[:end])
		whole = whole[end:]
	}
	return append(out, whole)
}
