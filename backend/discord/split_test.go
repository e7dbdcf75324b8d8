package discord

import (
	"slices"
	"strings"
	"testing"
	"unicode"
)

func TestShortTextIsOnePiece(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{
		"":                         nil,
		" \n\t\n":                  nil,
		"a":                        {"a"},
		"\n\n  a \n\n":             {"a"},
		"```go\nx := 1\n```":       {"```go\nx := 1\n```"},
		"```go\nx := 1":            {"```go\nx := 1\n```"},
		"```go\nx := 1\n":          {"```go\nx := 1\n```"},
		"a\n\n```\nx\n```\n\nb\n":  {"a\n\n```\nx\n```\n\nb"},
		"say ```x``` in the line":  {"say ```x``` in the line"},
		"````md\n```go\n```\n````": {"````md\n```go\n```\n````"},
	} {
		if got := split(text); !slices.Equal(got, want) {
			t.Errorf("split(%q): got %q, want %q", text, got, want)
		}
	}
}

func TestSplitPrefersParagraphsThenLinesThenWords(t *testing.T) {
	t.Parallel()
	word := strings.Repeat("x", 99) + " "
	for _, c := range []struct{ name, text, end string }{
		{"paragraph", strings.Repeat(word, 12) + "one\n\n" + strings.Repeat(word, 5) + "two\n" + strings.Repeat(word, 10), "one"},
		{"line", strings.Repeat(word, 5) + "one\n" + strings.Repeat(word, 12) + "two\n" + strings.Repeat(word, 10), "two"},
		{"word", strings.Repeat(word, 30), "x"},
		{"rune", strings.Repeat("😀", 1500), "😀"},
	} {
		got := split(c.text)
		if len(got) != 2 || !strings.HasSuffix(got[0], c.end) {
			t.Errorf("%s: got %d pieces, the first ending in %q, want 2, %q", c.name, len(got), got[0][len(got[0])-10:], c.end)
		}
		if n := width(got[0]); n > mostText || c.name == "rune" && n != mostText {
			t.Errorf("%s: got a first piece of %d units, want %d at most", c.name, n, mostText)
		}
	}
}

func TestSplitClosesAndReopensCode(t *testing.T) {
	t.Parallel()
	line := strings.Repeat("y", 49) + "\n"
	got := split("Look:\n\n```go\n" + strings.Repeat(line, 60) + "```\nThat is it.")
	if len(got) != 2 || !strings.HasSuffix(got[0], "y\n```") || !strings.HasPrefix(got[1], "```go\nyyy") || !strings.HasSuffix(got[1], "y\n```\nThat is it.") {
		t.Errorf("split: got %q, want the block closed and opened again", got)
	}
	if n := strings.Count(strings.Join(got, ""), line); n != 60 {
		t.Errorf("lines: got %d, want 60", n)
	}
	// One that begins late goes into the next piece as a whole.
	got = split(strings.Repeat(line, 30) + "```go\n" + strings.Repeat(line, 20) + "```")
	if len(got) != 2 || !strings.HasSuffix(got[0], "y") || !strings.HasPrefix(got[1], "```go\ny") {
		t.Errorf("split: got %q, want the late block in the second piece", got)
	}
	// The end of a block makes no message of its own.
	for n := 1940; n < 2010; n++ {
		text := "```\n" + strings.Repeat("z", n-1940) + "\n" + strings.Repeat(line, 38) + strings.Repeat("w", 40) + "\n```\n"
		for _, piece := range split(text) {
			if strings.Trim(piece, "`\n") == "" {
				t.Fatalf("split at %d: got %q, want no empty block", n, piece)
			}
		}
	}
}

// bare is what is left of texts without space and without the lines that begin and end blocks of code.
func bare(texts ...string) string {
	var left strings.Builder
	for _, text := range texts {
		for line := range strings.Lines(text) {
			if rowOf(strings.TrimLeftFunc(line, unicode.IsSpace)) < shortestFence {
				left.WriteString(line)
			}
		}
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return r
	}, left.String())
}

// openAfter is the block of code that a message leaves open.
func openAfter(piece string) (f fence) {
	for line := range strings.Lines(piece) {
		f = f.after(strings.TrimSuffix(line, "\n"))
	}
	return f
}

func FuzzSplit(f *testing.F) {
	line := strings.Repeat("y", 49) + "\n"
	for _, text := range []string{
		"a", "```", "```go\n", strings.Repeat(line, 100), "```go\n" + strings.Repeat(line, 100) + "```\n", strings.Repeat("😀", 3000),
		strings.Repeat("a\n\n```sh\nls\n```\n", 400), strings.Repeat(" ", 2500) + "a", "```\n" + strings.Repeat("\n", 2500) + "```",
		strings.Repeat("`", 3000), "```go\n" + strings.Repeat("x", 1990) + "\n``", "```" + strings.Repeat("g", 3000) + "\nx\n```", strings.Repeat("é", 2500),
		strings.Repeat(line, 39) + "```go\nx\n```\n" + strings.Repeat(line, 10), strings.Repeat("  ```\n", 700),
	} {
		f.Add(text, 7, 200)
	}
	f.Fuzz(func(t *testing.T, text string, at, most int) {
		text = strings.ToValidUTF8(text, "?") // as texts from JSON are
		most = 64 + max(most%1937, -(most%1937))
		whole := piecesOf(text, most)
		for _, p := range whole {
			if n := width(p.text); n > most {
				t.Fatalf("piece: got %d units, %q, want %d at most", n, p.text, most)
			}
			if strings.TrimSpace(p.text) == "" {
				t.Fatalf("piece: got %q, want text in it", p.text)
			}
			if f := openAfter(p.text); f.mark != "" && p.whole {
				t.Fatalf("piece: got %q, want %q closed", p.text, f.mark)
			}
		}
		if got := bare(texts(whole)...); got != bare(text) && allWhole(whole) {
			t.Fatalf("text of the pieces: got %q, want %q", got, bare(text))
		}
		// What is full stays, whatever is added.
		part := piecesOf(text[:max(at, -(at+1))%(len(text)+1)], most)
		for i, p := range part {
			if p.full && (i >= len(whole) || whole[i].text != p.text) {
				t.Fatalf("piece %d: got another text, want %q", i, p.text)
			}
		}
	})
}

type cutPiece struct {
	text        string
	full, whole bool // whole: no line is cut in two
}

func piecesOf(text string, most int) (list []cutPiece) {
	p, full := spot{}, true
	for full {
		before := p
		var piece string
		piece, p, full = p.piece(text, most)
		if piece != "" {
			list = append(list, cutPiece{piece, full, !before.mid && (!full || !p.mid)})
		}
	}
	return list
}

func texts(list []cutPiece) (all []string) {
	for _, p := range list {
		all = append(all, p.text)
	}
	return all
}

func allWhole(list []cutPiece) bool {
	return !slices.ContainsFunc(list, func(p cutPiece) bool { return !p.whole })
}
