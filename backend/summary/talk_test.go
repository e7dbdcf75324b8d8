package summary

import (
	"fmt"
	"strings"
	"testing"

	"deskhand/backend/transcript"
)

func TestTalkIsWordForWord(t *testing.T) {
	talk := NewTalk("Claude Code", "Parser", "/work")
	if got := talk.Markdown(); got != "" {
		t.Errorf("Markdown of nothing said: got %q, want none", got)
	}
	for _, e := range []transcript.Entry{
		{Kind: "user", Text: "Mend it\n\nplease", Attachments: []transcript.Attachment{{Filename: "a.png"}}},
		{Kind: "thought", Text: "a secret thought"},
		agent("I looked."),
		{Kind: "tool", Tool: &transcript.ToolCall{Title: "go test\n./...", Status: "failed"}},
		agent("**Done.**"), user("Thanks"), user("Bye"),
	} {
		talk.Add(&e)
	}
	_, got, _ := strings.Cut(talk.Markdown(), "rely on it.\n")
	want := "\n## The person\n\nMend it\n\nplease\n\n[attached: a.png]\n\n## The agent\n\nI looked.\n\n- go test ./... (failed)\n\n**Done.**\n\n## The person\n\nThanks\n\n## The person\n\nBye\n"
	if got != want {
		t.Errorf("Markdown: got %q, want %q", got, want)
	}
	if head := talk.Markdown(); !strings.Contains(head, "with Claude Code in `/work`, “Parser”. You have not seen it") {
		t.Errorf("Markdown: got the head %.200q, want whose talk it is", head)
	}
}

func TestTalkKeepsItsNewestPart(t *testing.T) {
	talk := NewTalk("Claude Code", "", "/work")
	for i := range 1000 {
		e := user(fmt.Sprintf("message %d: %s", i, strings.Repeat("word ", 100)))
		talk.Add(&e)
	}
	got := talk.Markdown()
	if len(got) > TalkLimit+32<<10 || !strings.Contains(got, "message 999:") || strings.Contains(got, "message 1:") || !strings.Contains(got, " parts are left out") {
		t.Errorf("Markdown of 500 KiB: got %d bytes, %.300q…, want the newest %d, and word of the rest", len(got), got, TalkLimit)
	}
	huge := user(strings.Repeat("x", 2*TalkLimit))
	talk.Add(&huge)
	if got := talk.Markdown(); len(got) > TalkLimit+2<<10 || !strings.Contains(got, "xxx") {
		t.Errorf("Markdown that ends with a message above the limit: got %d bytes, want %d of the message", len(got), TalkLimit)
	}
}
