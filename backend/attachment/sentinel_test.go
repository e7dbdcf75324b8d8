package attachment_test

import (
	"slices"
	"strings"
	"testing"

	"deskhand/backend/attachment"
)

func TestSentinel(t *testing.T) {
	items := []attachment.SentinelItem{{URL: "https://cdn.discordapp.com/a.png?ex=1&is=2", Filename: "a.png", MimeType: "image/png"}, {URL: "https://b"}}
	block := attachment.Sentinel(items)
	if want := `[[lilac.attachments]]{"items":[{"url":"https://cdn.discordapp.com/a.png?ex=1&is=2","filename":"a.png","mimeType":"image/png"},{"url":"https://b"}]}[[/lilac.attachments]]`; block != want {
		t.Errorf("the block is\n%s\nand not\n%s", block, want)
	}
	if none := attachment.Sentinel(nil); none != `[[lilac.attachments]]{"items":[]}[[/lilac.attachments]]` {
		t.Errorf("without items it is %s", none)
	}
	for _, text := range []string{block, "look\n" + block, "look\r\n\t" + block + " \r\n", "two\n" + attachment.Sentinel(nil) + "\n" + block, block + "\nthanks"} {
		if got, ok := attachment.ParseSentinel(text); !ok || !slices.Equal(got, items) {
			t.Errorf("%q: got %v, ok %v, want ok and %v", text, got, ok, items)
		}
	}
}

func TestParseSentinelTakesNoHalfOnes(t *testing.T) {
	for _, text := range []string{
		"", "hello", "[[lilac.attachments]]", "[[lilac.attachments]][[/lilac.attachments]]", "[[lilac.attachments]]{}[[/lilac.attachments]]",
		`[[lilac.attachments]]{"items":null}[[/lilac.attachments]]`, `[[lilac.attachments]]{"items":{}}[[/lilac.attachments]]`,
		`[[lilac.attachments]]{"items":[}[[/lilac.attachments]]`, `[[lilac.attachments]]{"items":[]} {}[[/lilac.attachments]]`,
		`[[lilac.attachments]]{"items":[]}`, `{"items":[]}[[/lilac.attachments]]`, `[[/lilac.attachments]]{"items":[]}[[lilac.attachments]]`,
		"[[lilac.attachments]]{\"items\":\n[]}[[/lilac.attachments]]",
		`as in [[lilac.attachments]]{"items":[]}[[/lilac.attachments]]`, `[[lilac.attachments]]{"items":[]}[[/lilac.attachments]].`,
	} {
		if got, ok := attachment.ParseSentinel(text); ok || got != nil {
			t.Errorf("%q: got %v, ok %v, want not ok and nil", text, got, ok)
		}
	}
}

// TestSentinelHoldsAnyName: a name that ends the block, or begins another, stays a name.
func TestSentinelHoldsAnyName(t *testing.T) {
	items := []attachment.SentinelItem{{URL: "u", Filename: "[[/lilac.attachments]]\n[[lilac.attachments]]{\"items\":[]}\u2028<&>\"\\\U0001F600"}}
	block := attachment.Sentinel(items)
	if strings.Count(block, "[[") != 2 || strings.Contains(block, "\n") {
		t.Errorf("the block is %q", block)
	}
	if got, ok := attachment.ParseSentinel("x\n" + block); !ok || !slices.Equal(got, items) {
		t.Errorf("ParseSentinel: got %v, ok %v, want ok and %v", got, ok, items)
	}
}

func TestMerge(t *testing.T) {
	with := "see\n" + attachment.Sentinel([]attachment.SentinelItem{{URL: "u"}})
	for _, c := range []struct {
		name     string
		messages []string
		want     string
		ok       bool
	}{
		{"none", nil, "", true},
		{"one", []string{"a"}, "a", true},
		{"some", []string{"a", "b\n", "c"}, "a\n\nb\n\n\nc", true},
		{"one with the block", []string{with}, with, true},
		{"the newest has it", []string{"a", "b", with}, "", false},
		{"an older one has it", []string{with, "b"}, "", false},
		{"a broken block is one", []string{"a [[lilac.attachments]] b", "c"}, "", false},
	} {
		if got, ok := attachment.Merge(c.messages); got != c.want || ok != c.ok {
			t.Errorf("%s: Merge(%q): got %q, %v; want %q, %v", c.name, c.messages, got, ok, c.want, c.ok)
		}
	}
}

// FuzzParseSentinel: parsed items can be written and parse to the same items.
func FuzzParseSentinel(f *testing.F) {
	f.Add("look\n" + attachment.Sentinel([]attachment.SentinelItem{{URL: "https://a?b", Filename: "[[", MimeType: "image/png"}}))
	f.Add(`[[lilac.attachments]]{"items":[{"url":1}]}[[/lilac.attachments]]`)
	f.Add("[[lilac.attachments]]{\"items\":[{}],\"more\":[[1]]}[[/lilac.attachments]]\r\n")
	f.Fuzz(func(t *testing.T, text string) {
		items, ok := attachment.ParseSentinel(text)
		if !ok {
			return
		}
		if merged, ok := attachment.Merge([]string{text, "newer"}); ok {
			t.Fatalf("a message with the block was merged: %q", merged)
		}
		again, ok := attachment.ParseSentinel("before\n" + attachment.Sentinel(items) + "\n")
		if !ok || !slices.Equal(again, items) {
			t.Fatalf("%v became %v", items, again)
		}
	})
}

func TestWithoutSentinel(t *testing.T) {
	block := attachment.Sentinel([]attachment.SentinelItem{{URL: "https://b"}})
	for text, want := range map[string]string{
		"": "", "hello\n": "hello\n", block: "", "look\n" + block: "look", "look\n\n " + block + "\r\nthere": "look\n\nthere",
		block + "\n" + block: "", "as in " + block: "as in " + block, "[[lilac.attachments]]": "[[lilac.attachments]]",
	} {
		if got := attachment.WithoutSentinel(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
