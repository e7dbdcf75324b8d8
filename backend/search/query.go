package search

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// The query language: an entry must have every word of the query, the last word as the beginning of a word; "several words" must stand in
// this order; -word must be absent. Case and accents do not count. Each Chinese and Japanese character is a word of its own, since nothing
// separates the words of these languages, and a row of such characters is a phrase.

// term is a part of a query.
type term struct {
	words  []string // folded; several words are a phrase
	not    bool
	prefix bool // the last word may be the beginning of a longer word
}

const mostTerms = 20 // further terms are ignored: nobody types so many

// parseQuery splits a query into terms. A query without a letter or digit has no terms.
func parseQuery(q string) []term {
	var list []term
	for len(list) < mostTerms {
		q = strings.TrimSpace(q)
		if q == "" {
			break
		}
		var t term
		if rest, not := strings.CutPrefix(q, "-"); not && rest != "" && rest[0] != ' ' {
			t.not, q = true, rest
		}
		var text string
		if rest, quoted := strings.CutPrefix(q, `"`); quoted {
			text, q, _ = strings.Cut(rest, `"`)
		} else {
			text, q = cutField(q)
			t.prefix = q == "" && !t.not
		}
		if t.words = Words(text); len(t.words) > 0 {
			list = append(list, t)
		}
	}
	return list
}

func cutField(s string) (field, rest string) {
	i := strings.IndexFunc(s, unicode.IsSpace)
	if i < 0 {
		return s, ""
	}
	return s[:i], s[i:]
}

// match returns a query in the language of FTS5. The result is empty when no term says what an entry must have: entries cannot be found by
// absent words alone.
func match(terms []term) string {
	var with, without []string
	for _, t := range terms {
		text := `"` + strings.Join(t.words, " ") + `"`
		if t.prefix {
			text += "*"
		}
		if t.not {
			without = append(without, text)
		} else {
			with = append(with, text)
		}
	}
	if len(with) == 0 {
		return ""
	}
	q := strings.Join(with, " AND ")
	if len(without) > 0 {
		q = "(" + q + ") NOT (" + strings.Join(without, " OR ") + ")"
	}
	return q
}

// word is a word of a text with its position.
type word struct {
	text       string // folded
	start, end int    // in bytes
}

// wordsOf splits a text into words as the index does.
func wordsOf(text string) []word { return slices.Collect(eachWord(text)) }

// eachWord yields the words of wordsOf, for callers that may stop before the end of the text.
func eachWord(text string) iter.Seq[word] {
	return func(yield func(word) bool) {
		for w, found := nextWord(text, 0); found && yield(w); {
			w, found = nextWord(text, w.end)
		}
	}
}

// nextWord returns the first word at or after a position.
func nextWord(text string, from int) (w word, found bool) {
	start := -1
	for i, r := range text[from:] {
		i += from
		switch {
		case !standsAlone(r) && inWord(r, start >= 0):
			if start < 0 {
				start = i
			}
		case start >= 0:
			return word{folded(text[start:i]), start, i}, true
		case standsAlone(r):
			return word{string(r), i, i + utf8.RuneLen(r)}, true
		}
	}
	if start < 0 {
		return word{}, false
	}
	return word{folded(text[start:]), start, len(text)}, true
}

// Words returns the words of a text as the index has them: without case and accents.
func Words(text string) []string {
	words := wordsOf(text)
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = w.text
	}
	return list
}

// standsAlone reports whether a character is a word of its own. The Japanese marks that lengthen or voice the character before them are
// letters without a script in Unicode: as a part of a word such a mark would take in the characters that follow, and nobody would find the
// number in エラー404.
func standsAlone(r rune) bool {
	return r >= utf8.RuneSelf && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || strings.ContainsRune("ーｰﾞﾟ", r))
}

// inWord reports whether a character belongs to a word. Marks belong to a word that has begun.
func inWord(r rune, begun bool) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.In(r, unicode.L, unicode.N, unicode.Co) || begun && unicode.Is(unicode.M, r)
}

// folded returns a word without case and accents. A word without either is not copied.
func folded(text string) string {
	for i := range len(text) {
		if c := text[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			var b strings.Builder
			for _, r := range text {
				fold(&b, r)
			}
			return b.String()
		}
	}
	return text
}

// fold writes a letter to b, without case and accents.
func fold(b *strings.Builder, r rune) {
	if r < unicode.MaxASCII {
		b.WriteRune(unicode.ToLower(r))
		return
	}
	for _, d := range norm.NFD.String(string(r)) {
		if !unicode.Is(unicode.Mn, d) {
			b.WriteRune(unicode.ToLower(d))
		}
	}
}

// indexed returns the text of an entry as the index gets the text: the words of wordsOf, so that the tokens of FTS5 and the words of an
// excerpt agree.
func indexed(text string) string {
	var b strings.Builder
	for w := range eachWord(text) {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		b.WriteString(w.text)
	}
	return b.String()
}
