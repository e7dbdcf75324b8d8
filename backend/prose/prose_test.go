package prose_test

import (
	"strings"
	"testing"
	"time"

	"deskhand/backend/prose"
)

func TestClosedEndsWhatAMessageLeavesOpen(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"Look:\n\n```go\nx := 1":   "\n```",
		"Look:\n\n```go\nx := 1\n": "```",
		"```":                      "\n```",
		"````md\n```go\nx\n```":    "\n````",
		"~~~sh\nls":                "\n~~~",
		"~~~sh\n```\nls\n```":      "\n~~~",
		"a\n\n<!-- note\n\nb":      "\n-->",
		"<?php\n\necho 1":          "\n?>",
		"<![CDATA[\n\nx":           "\n]]>",
		"<!DOCTYPE html\n\nx":      "\n>",
		"<script>\n\nlet a":        "\n</script>",
		"<pre>\n\nlines":           "\n</pre>",
		"<style>\n\np {":           "\n</style>",
		"<details>\n<summary>More</summary>\n\nWords.":   "\n\n</details>",
		"<div>\n\n<details>\n\nx":                        "\n\n</details>\n\n</div>",
		"A <b>word":                                      "\n\n</b>",
		"<table>\n<tr>\n<td>\n\nx\n\n```go\ny":           "\n```\n\n</td>\n\n</tr>\n\n</table>",
		"The sum:\n\n$$\na + b":                          "\n$$",
		"- a\n\n<!-- note":                               "\n-->",
		"Text ```go in a line\n\n```go\nx":               "\n```",
		"```markdown\n# T\n```bash\nls\n```\n\n```go\nx": "\n```",
	} {
		if got := prose.Closed(message); got != message+want {
			t.Errorf("Closed(%q) = %q, want it with %q at its end", message, got, want)
		}
	}
}

func TestClosedLeavesAMessageAsItIs(t *testing.T) {
	t.Parallel()
	for _, message := range []string{
		"", "Words.", "Words.\n", "```go\nx\n```", "```go\nx\n```\nafter", "- a\n  ```go\n  x", "1. a\n\n   ```\n   x\n", "> ```go\n> x", "> <!-- note",
		"    ```\n    indented", "`<b>` and `<!--`", "List<String> and Map<K, V>", "<br> <img src=x> <hr>", "<b>bold</b>", "text <!-- open in a line",
		"<details>\n\nx\n\n</details>", "<!-- whole -->", "$$\na\n$$", "kill $$", "```\n$$\n```", "~~~\n```\n~~~", "a < b and c > d", "| a |\n|---|\n| `x` |",
	} {
		if got := prose.Closed(message); got != message {
			t.Errorf("Closed(%q) = %q, want it as it is", message, got)
		}
	}
}

func TestClosedTakesNoLongerThanAMessageIsLong(t *testing.T) {
	t.Parallel()
	for _, bit := range []string{"```go\n", "<!-- ", "<b>", "<details>\n\n", "> ", "- a\n", "+ ", "1. ", "> - ", "`", "$$\n", "<script>\n", "[a](b ", "</b>", "~~~\n`"} {
		message := strings.Repeat(bit, 100_000/len(bit))
		began := time.Now()
		got := prose.Closed(message)
		if took := time.Since(began); took > 20*time.Second || !strings.HasPrefix(got, strings.TrimSuffix(message, "\n")) {
			t.Errorf("%q many times: took %v, got %d bytes of %d", bit, took, len(got), len(message))
		}
	}
}
