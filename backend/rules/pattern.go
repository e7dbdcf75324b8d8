package rules

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Pattern says which calls a rule is about. The form of Text depends on the kind:
//
//   - execute: the words of a command, quoted as in a shell. A last word * stands for further words that do no more than programs.txt says
//     of the program, ** for any further words, and a * within a word for any letters of that word.
//   - read, edit, delete, move, search: a path, relative to the directory of the session, or absolute, or with ~/ for the home
//     directory. * stands for letters of one name, ** for any names.
//   - fetch: a host, or *.host for the host and all below that host.
//   - other, any: the name of a tool, or * for all.
type Pattern struct {
	Kind Kind
	Text string

	words []patternWord
	rest  bool // any further words may follow
	all   bool // the pattern ended in **: further words need not be harmless
}

// patternWord is a word in pieces. Any letters may stand between two pieces.
type patternWord []string

// PatternError says why a text is no pattern.
type PatternError struct {
	Code   string // rule.kind or rule.pattern
	Detail string
}

func (e *PatternError) Error() string { return e.Code + ": " + e.Detail }

const maxPattern = 4096

// ParsePattern parses the text of a pattern. Its error is a *PatternError.
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

// parseWords splits the text of an execute pattern into words as a shell would, but refuses everything that a shell would expand.
func parseWords(p Pattern) (Pattern, error) {
	var word patternWord
	var piece strings.Builder
	in, stars := false, 0 // in: within a word; stars: how many * the pattern has
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

// further takes a last word * or ** off the words and notes that further words may follow.
func (p Pattern) further() Pattern {
	if last := len(p.words) - 1; last >= 0 && p.words[last].any() {
		p.words, p.rest, p.all = p.words[:last], true, len(p.words[last]) > 2
	}
	return p
}

// Wide reports whether the pattern would allow every command.
func (p Pattern) Wide() bool {
	return p.Kind == Execute && (len(p.words) == 0 || len(p.words[0]) > 1)
}

// any reports whether the word is a lone * or **.
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

// lower returns the form of a text that deny and ask rules compare. To the disks of macOS, and to some disks of every system, two texts
// with the same form are the same name. Lower case alone would let .v\u017fcode pass, which is .vscode on such a disk, and also an accent
// written as a sign of its own. The wider forms (NFKC) are different names everywhere, and would turn other signs into * or [.
func lower(s string) string {
	if strings.IndexFunc(s, func(c rune) bool { return c > unicode.MaxASCII }) < 0 {
		return strings.ToLower(s)
	}
	return norm.NFC.String(cases.Fold().String(norm.NFD.String(s)))
}

// concerns reports whether a rule that denies or asks is about the part: surely, or maybe when that depends on an unknown text. The
// comparison is generous: programs are compared without their directories, and without case.
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

// concernsWords compares the words generously: further words may follow, and options may stand anywhere and between the others.
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

// next looks for w as the first word that is no option, and returns the words behind that word. A word behind an option may be the value
// of the option; then the word after it may also be meant, and open is true.
func (w patternWord) next(words []word) (rest []word, found, open bool) {
	value, skipped := false, false
	for ; len(words) > 0; words = words[1:] {
		have := words[0]
		switch {
		case have.unknown():
			return words, false, true // have may stand for several words, and the rest for any
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

// among reports whether words contain the wanted word. open reports that an unknown word may be the wanted word.
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

// covers reports whether a rule that allows is proven to be about the part. doubt says why the proof fails although the pattern fits.
func (r *reading) covers(p *part, q Pattern) (fits bool, doubt string) {
	if q.Kind != p.kind || q.Kind == Any {
		return false, "" // commands and files are allowed by their own kinds, never by a tool's name
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

// beyondSpelled returns why a word that the pattern does not spell is not proven to be harmless, or "".
func (r *reading) beyondSpelled(p *part, q Pattern) (doubt string) {
	run, skipped := p.last()
	args := argumentsOf(run, func(i int) bool { return q.spells(i + skipped) })
	for i, w := range p.words {
		if q.spells(i) {
			continue
		}
		if i < skipped { // a * would stand for an option of a wrapper
			return "option"
		}
		if why := r.starred(args, i-skipped, w, q.all); why != "" {
			return why
		}
	}
	return ""
}

// starred returns why the word at i, for which a * stands, is not proven to be harmless. With all, the * is a **.
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

// spells reports whether the pattern gives the word at i letter by letter.
func (p Pattern) spells(i int) bool { return i < len(p.words) && p.words[i].literal() }

// last returns the command that wrappers such as sudo run in the end, and the index of its first word among the words of p.
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

// Open reports whether an allow rule with the pattern covers commands that may run any program: the pattern has a * behind a program of
// which programs.txt says too little, or of which programs.txt says that the program runs its arguments.
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

// matchNames matches the names of a pattern with the names of a path. ** stands for any number of names.
func matchNames(pattern, names []string, fold bool) bool {
	ok := make([]bool, len(names)+1) // ok[j]: the part of the pattern read so far matches the first j names
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
	if fold { // try both forms: a letter that folds to two is still a single letter for ? and [x]
		return in(strings.ToLower) || in(lower)
	}
	return in(func(s string) string { return s })
}

// hidden reports whether s has characters that a person cannot see, or that change how other characters look.
func hidden(s string) bool {
	return strings.ContainsFunc(s, func(c rune) bool {
		return c == unicode.ReplacementChar || unicode.Is(unicode.Cf, c) || c != '\t' && c != '\n' && unicode.IsControl(c) ||
			c != ' ' && unicode.Is(unicode.Z, c) || unicode.Is(unicode.Co, c) || c == '\u2800' || c == '\u115f' || c == '\u1160' || c == '\u3164' || c == '\uffa0'
	})
}

// quote writes a word so that a shell, and ParsePattern, read the word unchanged.
func quote(s string) string {
	plain := func(c rune) bool {
		return unicode.IsLetter(c) || unicode.IsDigit(c) || strings.ContainsRune("_@%+=:,./-^", c)
	}
	if s != "" && strings.IndexFunc(s, func(c rune) bool { return !plain(c) }) < 0 {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
