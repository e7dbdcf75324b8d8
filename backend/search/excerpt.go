package search

import (
	"slices"
	"strings"

	"deskhand/backend/prose"
)

// Part is a piece of an excerpt.
type Part struct {
	Text string `json:"text"`
	Hit  bool   `json:"hit,omitempty" doc:"It is what was looked for"`
}

// The length of an excerpt before and after the first match, in bytes.
const (
	before = 60
	after  = 180
)

// excerpt returns the part of a text around the first match of a term.
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

// wordsAround returns the words that an excerpt needs: those around the first match, or the first words of a text without a match.
func wordsAround(text string, terms []term) []word {
	keep := before // a limit of the words before a match
	for _, t := range terms {
		keep = max(keep, before+len(t.words))
	}
	var list []word
	hit, end := false, len(text) // end of the excerpt, once there is a match
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

// endsWith reports whether the last words match a term, and where the match begins.
func endsWith(words []word, terms []term) (start int, hit bool) {
	for _, t := range terms {
		if from := len(words) - len(t.words); !t.not && from >= 0 && t.at(words[from:]) {
			return words[from].start, true
		}
	}
	return 0, false
}

// wordBounds moves the ends of a part so that no word is cut.
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

// hitsIn returns the matches of the terms among words.
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

// at reports whether words begin with the term.
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
