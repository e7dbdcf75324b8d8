package setup

import (
	"strings"
	"testing"
)

func TestOutputKeepsItsBeginningAndItsEnd(t *testing.T) {
	var o output
	line := strings.Repeat("x", 99) + "\n"
	for range 2000 {
		_, _ = o.Write([]byte(line))
	}
	_, _ = o.Write([]byte("last with a secret\n"))
	k := o.keep(func(text string) string { return strings.ReplaceAll(text, "secret", "•") })
	whole := int64(2000*len(line) + len("last with a secret\n"))
	if k.Cut != whole-mostHead-mostTail || len(k.Head) != mostHead || !strings.HasSuffix(k.Tail, "last with a •\n") {
		t.Errorf("an output of %d bytes: got a head of %d, %d cut out and a tail that ends in %q; want a head of %d, %d cut out, and the end without its secret",
			whole, len(k.Head), k.Cut, k.Tail[len(k.Tail)-20:], mostHead, whole-mostHead-mostTail)
	}
}

func TestOutputIsReadAsATerminalShowsIt(t *testing.T) {
	for written, want := range map[string]string{
		"plain\n":                             "plain\n",
		"\x1b[31mred\x1b[0m\r\n":              "red\n",
		"10%\r50%\r100%\ndone":                "100%\ndone",
		"\x1b]0;title\x07text\x1b[2K":         "text",
		"bell\x07 and tab\tstay\n\r":          "bell and tab\tstay\n",
		"\x1b]8;;https://x\x1b\\a link\x1b[K": "a link",
	} {
		if got := readable(written); got != want {
			t.Errorf("readable(%q): got %q, want %q", written, got, want)
		}
	}
}
