package session

import (
	"iter"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"deskhand/backend/prose"
)

// A query, as people type it: words, of which all must be there, the last one as a beginning; "several words" in this order; -word
// must not be there. Case and accents do not count. Signs of Chinese and Japanese are words of their own, since nothing stands
// between the words there, and a row of them is taken as a phrase.

// term is one part of a query.
type term struct {
	words  []string // folded; several are a phrase
	not    bool
	prefix bool // the last word may go on
}

const mostTerms = 20 // what more is asked for is passed over: nobody types it

// parseQuery takes a query apart; nothing is left of one that has no letter.
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
		if t.words = fields(text); len(t.words) > 0 {
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

// match is the query in the index's language; empty when there is nothing to look for, since one cannot look for what is not there.
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

// word is a word of a text and where it stands there.
type word struct {
	text       string // folded
	start, end int    // in bytes
}

// wordsOf takes a text apart as the index does.
func wordsOf(text string) []word { return slices.Collect(eachWord(text)) }

// Words returns the words of a text as the index has them: without case and accents.
func Words(text string) []string {
	words := wordsOf(text)
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = w.text
	}
	return list
}

// eachWord is wordsOf for those who may have enough before the end.
func eachWord(text string) iter.Seq[word] {
	return func(yield func(word) bool) {
		for w, found := nextWord(text, 0); found && yield(w); {
			w, found = nextWord(text, w.end)
		}
	}
}

// nextWord is the first word from there on.
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

func fields(text string) []string {
	words := wordsOf(text)
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = w.text
	}
	return list
}

// standsAlone tells of a sign that is a word of its own. The marks of Japanese that lengthen and voice the sign before them are no script's
// in Unicode, but letters: they would take what follows to themselves, and nobody would find the number in エラー404.
func standsAlone(r rune) bool {
	return r >= utf8.RuneSelf && (unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || strings.ContainsRune("ーｰﾞﾟ", r))
}

// inWord tells whether a sign belongs to a word: to one that has begun, marks do too.
func inWord(r rune, begun bool) bool {
	if r < utf8.RuneSelf {
		return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
	}
	return unicode.In(r, unicode.L, unicode.N, unicode.Co) || begun && unicode.Is(unicode.M, r)
}

// folded is a word without case and accents. Most have none, and are not copied.
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

// fold writes a letter without case and accents.
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

// indexed is the text of an entry as the index gets it: the words that wordsOf finds, so that both always agree.
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

// Part is a piece of an excerpt.
type Part struct {
	Text string `json:"text"`
	Hit  bool   `json:"hit,omitempty" doc:"It is what was looked for"`
}

// An excerpt shows so much around the first hit, in bytes.
const (
	before = 60
	after  = 180
)

// excerpt is a piece of the text around the first thing that was looked for.
func excerpt(text string, terms []term) []Part {
	words := wordsAround(text, terms)
	hits := hitsIn(words, terms)
	from, to := 0, min(len(text), before+after)
	if len(hits) > 0 {
		from = max(0, hits[0].start-before)
		to = min(len(text), hits[0].start+after)
	}
	from, to = wordBounds(words, from, to, len(text))
	var parts []Part
	add := func(text string, hit bool) {
		if text != "" {
			parts = append(parts, Part{text, hit})
		}
	}
	if from > 0 {
		add("… ", false)
	}
	at := from
	for _, h := range hits {
		if h.start >= at && h.end <= to {
			add(prose.OneLine(text[at:h.start]), false)
			add(prose.OneLine(text[h.start:h.end]), true)
			at = h.end
		}
	}
	add(prose.OneLine(text[at:to]), false)
	if to < len(text) {
		add(" …", false)
	}
	return parts
}

// wordsAround are the words that an excerpt needs: of a long text those about the first thing that was looked for, or the first where that
// is not there.
func wordsAround(text string, terms []term) []word {
	keep := before // words in front of a hit, at the most
	for _, t := range terms {
		keep = max(keep, before+len(t.words))
	}
	var list []word
	hit, end := false, len(text) // where the excerpt ends, once there is a hit
	for w := range eachWord(text) {
		if list = append(list, w); w.end > end {
			return list
		}
		if hit {
			continue
		}
		var first int
		if first, hit = endsWith(list, terms); hit {
			end = first + after
		} else if len(list) > 8*keep {
			list = append(list[:0], list[len(list)-keep:]...)
		}
	}
	if hit {
		return list
	}
	list = list[:0]
	for w := range eachWord(text) {
		if list = append(list, w); w.end > before+after {
			break
		}
	}
	return list
}

// endsWith tells whether the last of the words are a hit, and where that begins.
func endsWith(words []word, terms []term) (start int, hit bool) {
	for _, t := range terms {
		if from := len(words) - len(t.words); !t.not && from >= 0 && t.at(words[from:]) {
			return words[from].start, true
		}
	}
	return 0, false
}

// wordBounds moves a piece's ends so that no word is cut.
func wordBounds(words []word, from, to, length int) (start, end int) {
	if from > 0 {
		if i := slices.IndexFunc(words, func(w word) bool { return w.start >= from }); i >= 0 {
			from = words[i].start
		}
	}
	if to < length {
		for _, w := range words {
			if w.end > to {
				break
			}
			end = w.end
		}
		to = max(end, from)
	}
	return from, to
}

// hitsIn finds what was looked for.
func hitsIn(words []word, terms []term) []word {
	var hits []word
	for i := range words {
		for _, t := range terms {
			if !t.not && t.at(words[i:]) {
				hits = append(hits, word{start: words[i].start, end: words[i+len(t.words)-1].end})
				break
			}
		}
	}
	return hits
}

// at tells whether the words begin with the term.
func (t term) at(words []word) bool {
	if len(words) < len(t.words) {
		return false
	}
	for i, want := range t.words {
		have := words[i].text
		if have != want && (!t.prefix || i != len(t.words)-1 || !strings.HasPrefix(have, want)) {
			return false
		}
	}
	return true
}
