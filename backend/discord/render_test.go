package discord

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

func leavesOf(items []item, breaks ...mark) (all []string) {
	for _, l := range lay(items, breaks) {
		all = append(all, l.text)
	}
	return all
}

func TestLayShowsTextAndQuietLines(t *testing.T) {
	t.Parallel()
	items := []item{
		{id: "1", kind: itemSaid, text: "Fix *the*\ntest"},
		{id: "2", kind: itemText, text: "I look."},
		{id: "3", kind: itemTool, text: "Read `a_b.go`", status: "completed"},
		{id: "4", kind: itemTool, text: "Run __it__", status: "failed"},
		{id: "5", kind: itemTool, text: "Wait", status: "in_progress"},
		{id: "6", kind: itemText, text: "One\n"},
		{id: "7", kind: itemText, text: "Two <@1> @everyone **x**"},
	}
	want := "-# Said at the desk:\n> Fix \\*the\\* test\nI look.\n-# ✓ Read `a_b.go`\n-# ✗ Run \\_\\_it\\_\\_\n-# ▸ Wait\nOne\n\nTwo <@1> @everyone **x**"
	if got := leavesOf(items); !slices.Equal(got, []string{want}) {
		t.Errorf("leaves: got %q, want %q", got, want)
	}
}

func TestBreakBeginsNewMessage(t *testing.T) {
	t.Parallel()
	items := []item{{id: "1", kind: itemText, text: "```go\nabcdef\n```"}, {id: "2", kind: itemTool, text: "Run"}, {id: "3", kind: itemText, text: "end"}}
	for _, c := range []struct {
		breaks []mark
		want   []string
	}{
		{nil, []string{"```go\nabcdef\n```\n-# ▸ Run\nend"}},
		{[]mark{{"2", 3}}, []string{"```go\nabcdef\n```\n-# ▸ Run", "end"}},
		{[]mark{{"1", 6}, {"2", 3}}, []string{"```go\n```", "```go\nabcdef\n```\n-# ▸ Run", "end"}},
		{[]mark{{"1", 9}}, []string{"```go\nabc\n```", "```go\ndef\n```\n-# ▸ Run\nend"}},
		{[]mark{{"", 0}}, []string{"", "```go\nabcdef\n```\n-# ▸ Run\nend"}},
		{[]mark{{"3", 3}}, []string{"```go\nabcdef\n```\n-# ▸ Run\nend"}},
	} {
		if got := leavesOf(items, c.breaks...); !slices.Equal(got, c.want) {
			t.Errorf("leaves with the breaks %v: got %q, want %q", c.breaks, got, c.want)
		}
	}
}

// A tool call that changes, and text that grows, leave the messages before them as they are.
func TestFullMessagesStay(t *testing.T) {
	t.Parallel()
	var items []item
	var before []leaf
	check := func(what string, same func(old, now string) bool) {
		t.Helper()
		now := lay(items, nil)
		for i, l := range now {
			if n := width(l.text); n > mostText {
				t.Fatalf("%s: got message %d with %d units, want %d at most", what, i, n, mostText)
			}
		}
		if len(now) < len(before) {
			t.Fatalf("%s: got %d messages, want %d or more", what, len(now), len(before))
		}
		for i := range max(0, len(before)-1) {
			if !same(before[i].text, now[i].text) {
				t.Fatalf("%s: got message %d as %q, want %q", what, i, now[i].text, before[i].text)
			}
		}
		before = now
	}
	equal := func(old, now string) bool { return old == now }
	for i := range 12 {
		items = append(items, item{id: fmt.Sprint("t", i), kind: itemTool, text: "x", status: "pending"})
		check("a tool call", equal)
		items = append(items, item{id: fmt.Sprint("m", i), kind: itemText})
		for range i % 7 {
			items[len(items)-1].text += strings.Repeat("word and ", 30) + "\n"
			check("text", equal)
		}
	}
	for i := range items {
		if items[i].kind == itemTool {
			items[i].text, items[i].status = strings.Repeat("a *longer* title ", 20), "completed"
		}
	}
	check("titles", func(old, now string) bool { return strings.Count(old, "\n") == strings.Count(now, "\n") })
}

func TestPlainEscapesMarkdown(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"a\n b":                     "a b",
		"```go\nx\n```":             "'''go x '''",
		"an ` alone":                "an ' alone",
		"`code_x` and _x_":          "`code_x` and \\_x\\_",
		"||hidden|| **b** ~~s~~ \\": `\|\|hidden\|\| \*\*b\*\* \~\~s\~\~ \\`,
	} {
		if got := plain(text, 200); got != want {
			t.Errorf("plain(%q): got %q, want %q", text, got, want)
		}
	}
	for _, text := range []string{strings.Repeat("*", 500), strings.Repeat("😀*", 300), strings.Repeat("`a*b` ", 100)} {
		if got := plain(text, 100); width(got) > 100 || !strings.HasSuffix(strings.Trim(got, "`'"), "…") {
			t.Errorf("plain of a long text: got %q of %d units, want 100 at most", got, width(got))
		}
	}
}

func TestStopLineShowsFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ reason, failure, want string }{
		{"error", "Internal error: the quota is used up", "-# The agent has failed: Internal error: the quota is used up"},
		{"agent_exited", "Internal error: the quota is used up", "-# The agent has not started: Internal error: the quota is used up"},
		{"agent_exited", "", "-# The agent's program has ended in the middle of this."},
	} {
		if got := stopLine(c.reason, c.failure); got != c.want {
			t.Errorf("%s, %q: got %q, want %q", c.reason, c.failure, got, c.want)
		}
	}
}
