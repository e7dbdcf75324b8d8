package rules

import (
	_ "embed"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// programTable says, for each known program, which of its options a * may stand for. The head of programs.txt describes the form.
//
//go:embed programs.txt
var programTable string

// program is a row of the table.
type program struct {
	offered bool     // a rule with a * is suggested
	reads   bool     // writes no file that its words name
	fetches bool     // takes addresses, which are no paths
	single  bool     // long options begin with a single dash
	others  bool     // unlisted options are harmless
	refuses []string // patterns of words that are never harmless
	options map[string]option
	source  string

	operands operands
}

// option is a harmless option.
type option struct {
	takes    bool     // the value is in the same word or the next
	optional bool     // a value, if any, is in the same word
	only     []string // the harmless values; nil = all values
	text     bool     // the value is text for people
}

// operands says which words that are no options are harmless.
type operands struct {
	most   int // -1 = any number
	not    []string
	first  []string // nil = the first may be any word
	remote bool
	sed    bool
	tar    bool
}

// command is a row for the words that follow the program's name.
type command struct {
	words []string
	*program
}

// programs returns the rows of the table, keyed by the names of the programs.
//
//nolint:gochecknoglobals // a constant in all but name
var programs = sync.OnceValue(func() map[string][]command { return readPrograms(programTable) })

func readPrograms(table string) map[string][]command {
	rows := map[string][]command{}
	var row *program
	for line := range strings.Lines(table) {
		line = strings.TrimRight(line, " \n")
		switch {
		case line == "" || line[0] == '#':
		case line[0] == '\t':
			row.read(strings.Fields(line))
		default:
			row = &program{operands: operands{most: -1}, options: map[string]option{}}
			for of := range strings.SplitSeq(line, ", ") {
				words := strings.Fields(of)
				rows[words[0]] = append(rows[words[0]], command{words[1:], row})
			}
		}
	}
	return rows
}

// read parses a line of the row.
func (p *program) read(words []string) {
	switch key, rest := words[0], words[1:]; key {
	case "offered":
		p.offered = true
	case "reads":
		p.reads = true
	case "fetches":
		p.fetches = true
	case "single":
		p.single = true
	case "refuses":
		p.refuses = rest
	case "source":
		p.source = rest[0]
	case "operands":
		p.operands.read(rest)
	case "options":
		for _, text := range rest {
			p.option(text)
		}
	default:
		panic("a row of programs.txt says " + key)
	}
}

func (p *program) option(text string) {
	name, values, takes := strings.Cut(text, "=")
	name, words := strings.CutSuffix(name, "~")
	o := option{takes: takes || words, text: words}
	if values != "" {
		o.only = strings.Split(values, "|")
	}
	name, o.optional = strings.CutSuffix(name, "?")
	if p.others = p.others || name == "-*"; name != "-*" {
		p.options[name] = o
	}
}

func (o *operands) read(words []string) {
	switch words[0] {
	case "most":
		n, err := strconv.Atoi(words[1])
		if err != nil {
			panic(err)
		}
		o.most = n
	case "not":
		o.not = words[1:]
	case "first":
		o.first = words[1:]
	case "remote":
		o.remote = true
	case "sed":
		o.sed = true
	case "tar":
		o.tar = true
	default:
		panic("a row of programs.txt has operands " + words[0])
	}
}

// programOf returns the name under which the table knows a program. A program in a directory of the system is known by its bare name; any
// other path stays a program of its own.
func programOf(text string) string {
	for _, dir := range []string{"/bin/", "/usr/bin/", "/usr/local/bin/", "/opt/homebrew/bin/"} {
		if name, in := strings.CutPrefix(text, dir); in {
			return name
		}
	}
	return text
}

// arguments is a command as the table reads it.
type arguments struct {
	words   []word
	spelled func(i int) bool // reports whether a pattern spells the word at i
	row     *program         // nil = the table does not know the program
	at      int              // index of the first word behind the command
	doubts  []bool           // words for which a * must not stand
	texts   []bool           // words that are text for people
}

// argumentsOf reads a command by the table.
func argumentsOf(words []word, spelled func(i int) bool) *arguments {
	a := &arguments{words: words, spelled: spelled, at: 1, doubts: make([]bool, len(words)), texts: make([]bool, len(words))}
	rows := programs()[programOf(words[0].text)]
	var own *program // the row of the program without a subcommand
	for _, row := range rows {
		if len(row.words) == 0 {
			own = row.program
		}
	}
	if own != nil && len(rows) == 1 {
		a.row = own
	} else {
		a.find(rows, own)
	}
	switch {
	case a.row == nil:
		a.unknown()
	case a.row.single:
		a.known(a.longOnly)
	default:
		a.known(a.usual)
	}
	return a
}

// find looks for the row of the subcommand, behind the options that stand before the subcommand.
func (a *arguments) find(rows []command, own *program) {
	for i := 1; i < len(a.words); i++ {
		if row, ok := a.longest(i, rows); ok {
			a.row, a.at = row.program, i+len(row.words)
			return
		}
		last, known := a.before(i, own)
		if !known && !a.spelled(i) {
			return
		}
		i = last
	}
}

// longest returns the row with the most words that stand at i.
func (a *arguments) longest(i int, rows []command) (found command, ok bool) {
	for _, row := range rows {
		if len(row.words) > len(found.words) && a.begins(i, row.words) {
			found, ok = row, true
		}
	}
	return found, ok
}

// before reads a known option before the subcommand, and returns the index of the option's last word.
func (a *arguments) before(i int, own *program) (last int, ok bool) {
	if own == nil || !a.isOption(i) {
		return i, false
	}
	before := arguments{words: a.words, spelled: a.spelled, row: own, doubts: make([]bool, len(a.words)), texts: make([]bool, len(a.words))}
	if own.single {
		last = before.longOnly(i)
	} else {
		last = before.usual(i)
	}
	return last, !slices.Contains(before.doubts, true)
}

func (a *arguments) begins(i int, command []string) bool {
	if len(a.words)-i < len(command) {
		return false
	}
	for j, want := range command {
		if w := a.words[i+j]; !w.plain || w.text != want {
			return false
		}
	}
	return true
}

func (a *arguments) isOption(i int) bool {
	text := a.words[i].text
	return len(text) > 1 && text[0] == '-'
}

func (a *arguments) doubt(i int) { a.doubts[i] = true }

// unknown marks the words of a program that the table does not know: a * stands for no word that may be an option, a command of the
// program's own, or the path of a program.
func (a *arguments) unknown() {
	name := programName(a.words[0].text)
	for i := range a.words[1:] {
		if startsBy(name, a.words[i+1].text) {
			a.doubt(i + 1)
		}
		for line := range strings.Lines(a.words[i+1].text) {
			if line = strings.TrimSpace(line); line != "" && strings.ContainsRune(`-.\/~+@!|:=%`, rune(line[0])) {
				a.doubt(i + 1)
			}
		}
	}
}

// startsBy reports whether a program starts programs, or writes files, by an operand: a command of tmux, an address of socat, a function in
// SQL.
func startsBy(name, operand string) bool {
	switch name {
	case "tmux", "tmate", "byobu", "socat", "ncat":
		return true
	case "sqlite3", "sqlcipher", "duckdb":
		return reachesOut.MatchString(operand)
	}
	return false
}

// reachesOut matches SQL that runs code, or reads and writes files beside the database.
var reachesOut = regexp.MustCompile(`(?i)\b(?:writefile|readfile|edit|load_extension|fts3_tokenizer|attach|copy|install|load|export)\b|\bvacuum\b[^;]*\binto\b`)

// known judges the words by the row. read parses the option at i and returns the index of the option's last word.
func (a *arguments) known(read func(i int) (last int)) {
	ended, operands := false, []int{}
	for i := a.at; i < len(a.words); i++ {
		if a.row.refused(a.words[i].text) || a.mayBeOption(i) {
			a.doubt(i)
		}
		switch {
		case a.words[i].text == "--":
			ended = true
		case a.isOption(i) && ended: // whether the program reads it as an option is unknown
			a.doubt(i)
		case a.isOption(i):
			i = read(i)
		default:
			operands = append(operands, i)
		}
	}
	a.judge(operands)
}

// mayBeOption reports whether the word is a glob that may match a file whose name is an option.
func (a *arguments) mayBeOption(i int) bool {
	return a.words[i].glob == 0 && (!a.row.others || len(a.row.refuses) > 0)
}

func (p *program) refused(text string) bool {
	return matchesAny(p.refuses, text) || p.others && slices.ContainsFunc(p.refuses, func(pattern string) bool {
		return shortens(text, pattern) || p.together(text, pattern)
	})
}

func matchesAny(patterns []string, text string) bool {
	flat := strings.ReplaceAll(text, "/", "_")
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		hit, _ := path.Match(pattern, flat)
		return hit
	})
}

// shortens reports whether the long option text may be short for the refused option.
func shortens(text, pattern string) bool {
	name, _, _ := strings.Cut(text, "=")
	return len(name) > 2 && strings.HasPrefix(name, "--") && strings.HasPrefix(pattern, name)
}

// together reports whether a word of several short options contains the refused option.
func (p *program) together(text, pattern string) bool {
	if len(text) < 2 || text[0] != '-' || text[1] == '-' || len(pattern) < 2 || pattern[0] != '-' || pattern[1] == '-' {
		return false
	}
	return strings.IndexByte(text[1:], pattern[1]) >= 0
}

// longOnly reads the option at i of a program whose long options begin with one dash or two, and returns the index of its last word.
func (a *arguments) longOnly(i int) (last int) {
	text := a.words[i].text
	if strings.HasPrefix(text, "--") {
		text = text[1:]
	}
	return a.named(i, text)
}

// named reads the option at i, whose name is a whole word, and returns the index of its last word.
func (a *arguments) named(i int, text string) (last int) {
	name, value, inline := strings.Cut(text, "=")
	o, ok := a.row.options[name]
	switch {
	case !ok:
		if !a.row.others {
			a.doubt(i)
		}
		return i
	case !inline && o.takes:
		return a.next(i, o)
	case inline && (!o.takes && !o.optional || !o.harmless(value)):
		a.doubt(i)
	case inline:
		a.texts[i] = o.text
	}
	return i
}

// next reads the word behind i as the value of the option o.
func (a *arguments) next(i int, o option) (last int) {
	if i+1 == len(a.words) {
		return i
	}
	w := a.words[i+1]
	if w.unknown() || !o.harmless(w.text) || a.row.refused(w.text) || a.isOption(i+1) { // some programs take an option for no value
		a.doubt(i + 1)
	}
	a.texts[i+1] = o.text
	return i + 1
}

func (o option) harmless(value string) bool { return o.only == nil || slices.Contains(o.only, value) }

// usual reads the option at i, either long with two dashes or letters behind a dash, and returns the index of its last word.
func (a *arguments) usual(i int) (last int) {
	text := a.words[i].text
	_, whole := a.row.options[text]
	if strings.HasPrefix(text, "--") || whole {
		return a.named(i, text)
	}
	if _, numbers := a.row.options["-N"]; numbers && strings.Trim(text[1:], "0123456789") == "" {
		return i
	}
	for at := 1; at < len(text); at++ {
		o, ok := a.row.options["-"+text[at:at+1]]
		value := text[at+1:]
		switch {
		case !ok && !a.row.others:
			a.doubt(i)
			return i
		case o.optional:
			return i
		case o.takes && value == "":
			return a.next(i, o)
		case o.takes:
			if !o.harmless(strings.TrimPrefix(value, "=")) {
				a.doubt(i)
			}
			a.texts[i] = o.text
			return i
		}
	}
	return i
}

// judge marks the words of list that are no options and may do harm.
func (a *arguments) judge(list []int) {
	o := &a.row.operands
	for n, i := range list {
		text := a.words[i].text
		switch {
		case o.most >= 0 && (n >= o.most || a.words[i].unknown()), matchesAny(o.not, text),
			o.tar && n == 0 && i == 1 && !a.letters(text),
			o.remote && !harmlessRemote(text, n):
			a.doubt(i)
		}
	}
	if o.first != nil && len(list) > 0 && !slices.Contains(o.first, a.words[list[0]].text) {
		for i := a.at; i < len(a.words); i++ {
			a.doubt(i)
		}
	}
	if o.sed {
		a.scripts()
	}
}

// harmlessRemote reports whether the n-th operand of a git command that talks to a remote is harmless. A first operand that is no usual
// name of a remote may be a path or an address.
func harmlessRemote(text string, n int) bool {
	if n == 0 {
		return text == "origin" || text == "upstream"
	}
	return !strings.HasPrefix(text, "+") && !strings.HasPrefix(text, ":")
}

func (a *arguments) scripts() {
	p := &part{words: a.words}
	for i := range a.words[1:] {
		if p.edits(a.words[i+1].text) {
			a.doubt(i + 1)
		}
	}
}

// letters reports whether a word is letters of options without a dash, all of which the row lists.
func (a *arguments) letters(text string) bool {
	for _, c := range text {
		if _, ok := a.row.options["-"+string(c)]; !ok {
			return false
		}
	}
	return true
}
