package rules

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Pattern is what a rule is about. Its form depends on the kind:
//
//   - execute: the words of a command, quoted as in a shell. A last word * stands for further words that do no more than the program is
//     known to do (programs.txt), ** for any further words, a * within a word for any letters of that word.
//   - read, edit, delete, move, search: a path, relative to the directory of the session, or absolute, or with ~/ for the home
//     directory. * stands for letters of one name, ** for any names.
//   - fetch: a host, or *.host for it and all below it.
//   - other, any: the name of a tool, or * for all.
type Pattern struct {
	Kind Kind
	Text string

	words []patternWord
	rest  bool // any further words
	all   bool // and whatever these make a program do
}

// patternWord is a word in pieces, between which any letters may stand.
type patternWord []string

// PatternError is what is wrong with a pattern.
type PatternError struct {
	Code   string // rule.kind, rule.pattern, rule.too_wide
	Detail string
}

func (e *PatternError) Error() string { return e.Code + ": " + e.Detail }

const maxPattern = 4096

// ParsePattern reads a pattern.
func ParsePattern(kind Kind, text string) (Pattern, error) {
	text = strings.TrimSpace(text)
	p := Pattern{Kind: kind, Text: text}
	switch {
	case !slices.Contains(Kinds(), kind):
		return p, &PatternError{"rule.kind", string(kind)}
	case text == "" || len(text) > maxPattern:
		return p, &PatternError{"rule.pattern", "it is empty or too long"}
	case hidden(text):
		return p, &PatternError{"rule.pattern", "it has characters that cannot be seen"}
	}
	switch kind {
	case Execute:
		return parseWords(p)
	case Fetch:
		host := strings.TrimPrefix(text, "*.")
		if strings.ContainsAny(host, "*/:@ ") || host == "" {
			return p, &PatternError{"rule.pattern", "a host, or *.host"}
		}
		p.Text = strings.ToLower(text)
	case Other, Any:
		if text != "*" && strings.Contains(text, "*") {
			return p, &PatternError{"rule.pattern", "the name of a tool, or *"}
		}
	default:
		return parsePath(p)
	}
	return p, nil
}

func parsePath(p Pattern) (Pattern, error) {
	p.Text = strings.TrimPrefix(p.Text, "./")
	for name := range strings.SplitSeq(p.Text, "/") {
		if _, err := path.Match(name, ""); err != nil || name == ".." {
			return p, &PatternError{"rule.pattern", "a path without .., in which each [ has its ]"}
		}
	}
	return p, nil
}

// parseWords reads the words of a command as a shell would, but for what a shell would expand.
func parseWords(p Pattern) (Pattern, error) {
	var word patternWord
	var piece strings.Builder
	in, stars := false, 0 // within a word; how many * it has
	quoted := rune(0)
	end := func() {
		if in {
			p.words = append(p.words, append(word, piece.String()))
		}
		word, in = nil, false
		piece.Reset()
	}
	escaped := false
	for _, c := range p.Text {
		switch {
		case escaped:
			piece.WriteRune(c)
			escaped = false
		case c == '\\' && quoted != '\'':
			in, escaped = true, true
		case quoted != 0 && c == quoted:
			quoted = 0
		case quoted != 0:
			piece.WriteRune(c)
		case c == '\'' || c == '"':
			in, quoted = true, c
		case c == ' ' || c == '\t':
			end()
		case c == '*':
			word = append(word, piece.String())
			piece.Reset()
			in = true
			stars++
		case strings.ContainsRune("\n;&|<>()$`", c):
			return p, &PatternError{"rule.pattern", "a rule is about one command: " + string(c) + " must be quoted"}
		default:
			in = true
			piece.WriteRune(c)
		}
	}
	end()
	if quoted != 0 || escaped {
		return p, &PatternError{"rule.pattern", "a quote has no end"}
	}
	return p.further(), nil
}

// further takes a last word * for what it is.
func (p Pattern) further() Pattern {
	if last := len(p.words) - 1; last >= 0 && p.words[last].any() {
		p.words, p.rest, p.all = p.words[:last], true, len(p.words[last]) > 2
	}
	return p
}

// Wide tells that the pattern would allow every command.
func (p Pattern) Wide() bool {
	return p.Kind == Execute && (len(p.words) == 0 || len(p.words[0]) > 1)
}

// any tells that the word is a lone *, or **.
func (w patternWord) any() bool {
	return (len(w) == 2 || len(w) == 3) && !slices.ContainsFunc(w, func(s string) bool { return s != "" })
}

func (w patternWord) literal() bool { return len(w) == 1 }

func (w patternWord) matches(text string, fold bool) bool {
	if !fold {
		return w.spell(text)
	}
	return w.in(strings.ToLower).spell(strings.ToLower(text)) || w.in(lower).spell(lower(text))
}

func (w patternWord) in(form func(string) string) patternWord {
	pieces := make(patternWord, len(w))
	for i, s := range w {
		pieces[i] = form(s)
	}
	return pieces
}

func (w patternWord) spell(text string) bool {
	if len(w) == 1 {
		return text == w[0]
	}
	rest, ok := strings.CutPrefix(text, w[0])
	if !ok {
		return false
	}
	for _, s := range w[1 : len(w)-1] {
		i := strings.Index(rest, s)
		if i < 0 {
			return false
		}
		rest = rest[i+len(s):]
	}
	return strings.HasSuffix(rest, w[len(w)-1])
}

// lower is a text as what denies and asks compares it. To the disks of macOS, and to some of every system, two texts of one lower form
// are the same name: small letters alone would let .v\u017fcode by, which is .vscode there, and an accent that is a sign of its own. The
// wider forms (NFKC) are different names everywhere, and would make a * or [ of signs that are none.
func lower(s string) string {
	if strings.IndexFunc(s, func(c rune) bool { return c > unicode.MaxASCII }) < 0 {
		return strings.ToLower(s)
	}
	return norm.NFC.String(cases.Fold().String(norm.NFD.String(s)))
}

// concerns tells whether a rule that denies or asks is about the part: surely, or maybe, when it depends on what is not known. It is
// generous: programs are known by their names without their directories, and capital letters are small ones.
func (r *reading) concerns(p *part, q Pattern) (sure, maybe bool) {
	if q.Kind == Any && p.kind != Any {
		return q.Text == "*", false
	}
	if q.Kind != p.kind {
		return false, false
	}
	switch p.kind {
	case Execute:
		return q.concernsWords(p.words)
	case Fetch:
		return matchHost(q.Text, p.target), false
	case Other, Any:
		return q.Text == "*" || strings.EqualFold(q.Text, p.target), false
	default:
		return r.matchPath(q.Text, p.target, true), false
	}
}

// concernsWords compares the words generously: further words may follow, options may stand anywhere, and between the others.
func (p Pattern) concernsWords(words []word) (sure, maybe bool) {
	if len(p.words) == 0 {
		return true, false
	}
	first := words[0]
	if first.unknown() {
		return false, true
	}
	if !p.words[0].matches(first.text, true) && !p.words[0].matches(base(first.text), true) {
		return false, !first.plain
	}
	words = words[1:]
	operands := words
	for _, want := range p.words[1:] {
		var sure, open bool
		if strings.HasPrefix(want[0], "-") {
			sure, open = want.among(words)
		} else {
			operands, sure, open = want.next(operands)
		}
		if !sure && !open {
			return false, false
		}
		maybe = maybe || open
	}
	return !maybe, maybe
}

// next looks at the first word that is no option, and gives what is behind it. A word behind an option may be its value: then it may also
// be the one behind that.
func (w patternWord) next(words []word) (rest []word, found, open bool) {
	value, skipped := false, false
	for ; len(words) > 0; words = words[1:] {
		have := words[0]
		switch {
		case have.unknown():
			return words, false, true // it may be several, and those behind it any
		case strings.HasPrefix(have.text, "-"):
			value = have.text != "--" && !strings.Contains(have.text, "=")
		case w.matches(have.text, true):
			return words[1:], !skipped, skipped
		case !have.plain || !value:
			return words, false, !have.plain
		default:
			value, skipped = false, true
		}
	}
	return nil, false, false
}

// among tells whether one of the words is the wanted one; open that one of them may be.
func (w patternWord) among(words []word) (found, open bool) {
	for _, have := range words {
		if have.unknown() {
			open = true
		} else if w.matches(have.text, true) {
			return true, false
		}
	}
	return false, open
}

// covers tells whether a rule that allows is proven to be about the part. A doubt is why it is not although it seems to be.
func (r *reading) covers(p *part, q Pattern) (fits bool, doubt string) {
	if q.Kind != p.kind || q.Kind == Any {
		return false, "" // what is run or touched is allowed by what it is, never by the tool's name
	}
	switch p.kind {
	case Execute:
		return r.coversWords(p, q)
	case Fetch:
		return matchHost(q.Text, p.target), ""
	case Other:
		return q.Text == "*" || p.target != "" && q.Text == p.target, ""
	default:
		return p.doubt == "" && r.matchPath(q.Text, p.target, false), ""
	}
}

func (r *reading) coversWords(p *part, q Pattern) (fits bool, doubt string) {
	if p.doubt != "" || len(p.words) < len(q.words) || !q.rest && len(p.words) != len(q.words) || q.Wide() {
		return false, ""
	}
	for i, want := range q.words {
		w := p.words[i]
		if !w.plain || !want.matches(w.text, false) {
			return false, ""
		}
	}
	if p.fixed > len(q.words) {
		return false, "wrapper"
	}
	doubt = r.beyondSpelled(p, q)
	return doubt == "", doubt
}

// beyondSpelled is why one of the words that a rule does not spell is not proven to be harmless.
func (r *reading) beyondSpelled(p *part, q Pattern) (doubt string) {
	run, skipped := p.last()
	args := argumentsOf(run, func(i int) bool { return q.spells(i + skipped) })
	for i, w := range p.words {
		if q.spells(i) {
			continue
		}
		if i < skipped { // a * for the options of a wrapper
			return "option"
		}
		if why := r.starred(args, i-skipped, w, q.all); why != "" {
			return why
		}
	}
	return ""
}

// starred is why a word that a * stands for is not proven to be harmless; all tells that it is a **.
func (r *reading) starred(args *arguments, i int, w word, all bool) (doubt string) {
	if args.texts[i] && !args.doubts[i] && w.plain && !hidden(w.text) {
		return ""
	}
	if why := r.unproven(args.row, w); why != "" || all {
		return why
	}
	switch {
	case args.doubts[i]:
		return "option"
	case (args.row == nil || !args.row.reads) && r.writesStarts(w.text):
		return "starts"
	}
	return ""
}

// spells tells whether the pattern says what the word is, letter by letter.
func (p Pattern) spells(i int) bool { return i < len(p.words) && p.words[i].literal() }

// last is the command that is run by wrappers such as sudo, and where in the words it begins.
func (p *part) last() (words []word, skipped int) {
	words = p.words
	for inner := p; len(inner.within) == 1; inner = inner.within[0] {
		w, wraps := wrapperOf(inner.words[0].text)
		if !wraps || w.feeds || len(inner.within[0].words) == 0 {
			break
		}
		skipped += len(inner.words) - len(inner.within[0].words)
		words = inner.within[0].words
	}
	return words, skipped
}

// Open tells that the pattern of a rule which allows covers commands that may run any program: it has a * behind a program of which too
// little is known, or of which it is known that it runs what its words say.
func (p Pattern) Open() bool {
	if p.Kind != Execute || !p.rest && !slices.ContainsFunc(p.words, func(w patternWord) bool { return !w.literal() }) {
		return false
	}
	words := make([]word, len(p.words))
	for i, w := range p.words {
		words[i] = plainWord(w[0])
	}
	if p.all || len(words) == 0 || !p.spells(0) {
		return true
	}
	args := argumentsOf(words, func(int) bool { return false })
	return args.row == nil || !args.row.offered || slices.Contains(args.doubts, true)
}

func matchHost(pattern, host string) bool {
	if domain, below := strings.CutPrefix(pattern, "*."); below {
		return host == domain || strings.HasSuffix(host, "."+domain)
	}
	return host == pattern
}

// matchNames matches a pattern's names against a path's, ** standing for any number of them.
func matchNames(pattern, names []string, fold bool) bool {
	ok := make([]bool, len(names)+1) // ok[j] tells that what of the pattern was looked at matches the first j names
	ok[0] = true
	for _, want := range pattern {
		if want == "**" {
			if first := slices.Index(ok, true); first >= 0 {
				for j := first; j < len(ok); j++ {
					ok[j] = true
				}
			}
			continue
		}
		next := make([]bool, len(names)+1)
		for j, name := range names {
			next[j+1] = ok[j] && matchName(want, name, fold)
		}
		ok = next
	}
	return ok[len(names)]
}

func matchName(pattern, name string, fold bool) bool {
	in := func(form func(string) string) bool {
		hit, err := path.Match(form(pattern), form(name))
		return hit && err == nil
	}
	if fold { // both, as a letter that is two in its lower form is still one for ? and [x]
		return in(strings.ToLower) || in(lower)
	}
	return in(func(s string) string { return s })
}

// hidden tells of characters that a person cannot see, or that change how others are seen.
func hidden(s string) bool {
	return strings.ContainsFunc(s, func(c rune) bool {
		return c == unicode.ReplacementChar || unicode.Is(unicode.Cf, c) || c != '\t' && c != '\n' && unicode.IsControl(c) ||
			c != ' ' && unicode.Is(unicode.Z, c) || unicode.Is(unicode.Co, c) || c == '\u2800' || c == '\u115f' || c == '\u1160' || c == '\u3164' || c == '\uffa0'
	})
}

// quote writes a word so that a shell, and ParsePattern, read it as it is.
func quote(s string) string {
	plain := func(c rune) bool {
		return unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("_@%+=:,./-^", c)
	}
	if s != "" && strings.IndexFunc(s, func(c rune) bool { return !plain(c) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
