package rules

import (
	"errors"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// command takes a command apart.
func (r *reading) command(c Command) []*part {
	size := len(c.Line)
	for _, a := range c.Argv {
		size += len(a)
	}
	if size > r.limits.command {
		r.doubt("too_long")
		return nil
	}
	if c.Argv == nil {
		return r.script(c.Line, 0)
	}
	words := make([]word, len(c.Argv))
	for i, a := range c.Argv {
		words[i] = plainWord(a)
	}
	if len(words) == 0 {
		r.doubt("nothing_told")
		return nil
	}
	return []*part{r.run(words, 0, false)}
}

// script takes a text for a shell apart. Any shell may run the text, so a construct that shells read differently is a doubt.
func (r *reading) script(text string, depth int) []*part {
	if depth > maxDepth {
		r.doubt("too_deep")
		return nil
	}
	if strings.ContainsAny(text, "\r\x00") || hidden(text) {
		r.doubt("hidden_characters")
	}
	file, err := parse(text)
	s := &script{r: r, depth: depth, fed: map[syntax.Node]bool{}, says: map[syntax.Node]bool{}}
	outer := r.source
	r.source = text
	defer func() { r.source = outer }()
	syntax.Walk(file, s.directories)
	syntax.Walk(file, s.node)
	if err != nil {
		r.doubt("syntax")
		s.parts = append(s.parts, r.crude(text, depth)...)
	}
	return s.parts
}

// parse returns the statements before the first error: a shell has already run those when the shell reaches the error. A panic of the
// parser is returned as an error, too.
func parse(text string) (file *syntax.File, err error) {
	part := &syntax.File{}
	opened := 0
	for _, c := range text {
		if strings.ContainsRune("([{`", c) {
			opened++
		}
	}
	if opened > maxOpened {
		return part, errParser
	}
	defer func() {
		if p := recover(); p != nil {
			file, err = part, errParser
		}
	}()
	p := syntax.NewParser(syntax.Variant(syntax.LangBash), syntax.KeepComments(true))
	if file, err = p.Parse(strings.NewReader(text), ""); err == nil {
		return file, nil
	}
	for s, failed := range p.StmtsSeq(strings.NewReader(text)) {
		if failed != nil {
			break
		}
		part.Stmts = append(part.Stmts, s)
	}
	return part, err
}

var errParser = errors.New("it cannot be parsed")

// script is the text of a shell that is being taken apart.
type script struct {
	r     *reading
	depth int
	parts []*part
	fed   map[syntax.Node]bool // commands that read the output of others
	says  map[syntax.Node]bool // commands that only write a text which stands beside them
	funcs int
}

// directories notes every change of directory: behind the change, a relative path may start in the old directory or in the new.
func (s *script) directories(n syntax.Node) bool {
	call, ok := n.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return true
	}
	words := make([]word, len(call.Args))
	for i, a := range call.Args {
		words[i] = s.r.word(a)
	}
	wrapped := false
	for len(words) > 1 && (words[0].text == "command" || words[0].text == "builtin" || wrapped && strings.HasPrefix(words[0].text, "-")) {
		words, wrapped = words[1:], true
	}
	switch words[0].text {
	case "cd", "pushd", "chdir":
		s.r.changes(words[1:])
	case "popd":
		s.r.doubt("directory")
	}
	return true
}

// changes adds the directories to which cd would go with these words. Where shells differ, all the directories are added.
func (r *reading) changes(words []word) {
	for len(words) > 0 && len(words[0].text) > 1 && words[0].text[0] == '-' {
		option := words[0].text
		words = words[1:]
		if option == "--" {
			break
		}
		if option != "-L" { // -P follows links, and other options belong to some shells only
			r.doubt("directory")
		}
	}
	if len(words) == 0 {
		words = []word{{text: r.where.Home, plain: r.where.Home != "", glob: -1}}
	}
	if len(words) > 1 {
		r.doubt("directory")
	}
	for _, to := range words {
		r.goes(to)
	}
}

func (r *reading) goes(to word) {
	if to.lost || to.glob >= 0 || to.text == "" || to.text == "-" {
		r.doubt("directory")
		return
	}
	for _, dir := range r.dirs {
		if len(r.dirs) < maxDirs {
			r.dirs = append(r.dirs, r.where.absolute(dir, to.text))
		} else {
			r.doubt("directory")
		}
	}
}

// node reads one node of the tree. The construct around a command (a loop, a substitution, a function) does not matter: each command
// becomes a part.
func (s *script) node(n syntax.Node) bool {
	switch n := n.(type) {
	case *syntax.Stmt:
		s.statement(n)
	case *syntax.CallExpr:
		s.call(n)
	case *syntax.BinaryCmd:
		if pipes(n) {
			s.feed(n.Y)
		}
	case *syntax.FuncDecl:
		s.function(n)
	case *syntax.ForClause:
		s.loop(n)
	case *syntax.ParamExp:
		if n.Exp != nil || n.Slice != nil || n.Repl != nil || n.Index != nil || n.Excl || n.NestedParam != nil || n.Flags != nil {
			s.r.doubt("variable") // some of these run the content of the variable
		}
	case *syntax.Comment:
		if strings.ContainsFunc(n.Text, notQuiet) {
			s.r.doubt("comment")
		}
	case *syntax.File, *syntax.Subshell, *syntax.Block, *syntax.IfClause, *syntax.WhileClause, *syntax.CaseClause, *syntax.CaseItem,
		*syntax.WordIter, *syntax.TimeClause, *syntax.Redirect, *syntax.Assign, *syntax.Word, *syntax.Lit, *syntax.SglQuoted, *syntax.DblQuoted,
		*syntax.CmdSubst, *syntax.ProcSubst, *syntax.ExtGlob, nil:
	default: // declarations, arithmetic, tests: these run the content of variables, or change the meaning of later words
		s.r.doubt("construct")
	}
	return true
}

// notQuiet reports whether a comment must not contain c: a comment to a shell that reads a file may be a command to a shell that reads a
// terminal.
func notQuiet(c rune) bool {
	return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune(" .,:_/-", c)
}

func pipes(n *syntax.BinaryCmd) bool { return n.Op == syntax.Pipe || n.Op == syntax.PipeAll }

// loop accepts a loop whose variable is a single lower-case letter: no program, and no shell, uses such a variable.
func (s *script) loop(n *syntax.ForClause) {
	iter, words := n.Loop.(*syntax.WordIter)
	if !words || n.Select {
		s.r.doubt("construct")
		return
	}
	if name := iter.Name.Value; len(name) != 1 || name[0] < 'a' || name[0] > 'z' {
		s.r.doubt("environment")
	}
}

func (s *script) statement(n *syntax.Stmt) {
	if n.Coprocess || n.Disown {
		s.r.doubt("construct")
	}
	if _, ok := said(n); ok {
		s.says[n.Cmd] = true
	}
	for _, redir := range n.Redirs {
		s.redirection(n, redir)
	}
}

// feed marks every command of a statement as a command that reads the output of others.
func (s *script) feed(stmt *syntax.Stmt) {
	syntax.Walk(stmt, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			if s.fed[n] {
				return false
			}
			s.fed[n] = true
		case *syntax.CallExpr:
			s.fed[n] = true
		}
		return true
	})
}

// redirection adds the file of a redirection as a part, for most operators as an edit.
func (s *script) redirection(stmt *syntax.Stmt, n *syntax.Redirect) {
	r := s.r
	to := r.word(n.Word)
	if n.N != nil && strings.HasPrefix(n.N.Value, "{") {
		r.doubt("construct") // sets a variable
	}
	switch n.Op {
	case syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
		s.feed(stmt)
		s.document(stmt, n)
		return
	case syntax.DplIn, syntax.DplOut:
		if to.plain && (to.text == "-" || strings.Trim(to.text, "0123456789-") == "") {
			return
		}
	case syntax.RdrIn:
		s.feed(stmt)
		s.parts = append(s.parts, r.redirected(Read, to))
		return
	default:
	}
	s.parts = append(s.parts, r.redirected(Edit, to))
}

// redirected returns the part for a file that a shell opens. Reading a file in the directory that is no secret is as harmless as an
// argument.
func (r *reading) redirected(kind Kind, to word) *part {
	p := &part{kind: kind, target: to.text}
	switch {
	case to.plain && (to.text == "/dev/null" || to.text == "/dev/stdout" || to.text == "/dev/stderr" || to.text == "/dev/stdin"):
		p.kind, p.target, p.harmless = Any, "", true
	case !to.plain:
		p.doubt = to.why
	case strings.HasPrefix(to.text, "/dev/") || to.text == "" || hidden(to.text) || strings.HasPrefix(to.text, "~") || strings.HasPrefix(to.text, "!"): // >! is an operator of zsh
		p.doubt = "redirection"
	case climbs(to.text):
		p.doubt = "parent"
	case r.where.Windows && misread(to.text):
		p.doubt = "misread_name"
	case kind == Read:
		p.harmless = true
		for _, dir := range r.dirs {
			if r.outside(r.where.absolute(dir, to.text)) {
				p.doubt = "outside_root"
			}
		}
	}
	if to.lost {
		p.target = ""
	}
	return p
}

// document takes the text of a here-document apart when a shell reads the text as its script.
func (s *script) document(stmt *syntax.Stmt, n *syntax.Redirect) {
	call, ok := stmt.Cmd.(*syntax.CallExpr)
	if !ok || len(call.Args) == 0 {
		return
	}
	text := n.Hdoc
	if n.Op == syntax.WordHdoc {
		text = n.Word
	}
	if text == nil || !isShell(base(s.r.word(call.Args[0]).text)) {
		return
	}
	body := s.r.word(text)
	if n.Op != syntax.WordHdoc {
		body.text = raw(text)
	}
	s.parts = append(s.parts, s.r.script(body.text, s.depth+1)...)
}

// raw returns the text of a document as written, without its substitutions.
func raw(w *syntax.Word) string {
	var b strings.Builder
	for _, p := range w.Parts {
		if lit, ok := p.(*syntax.Lit); ok {
			b.WriteString(lit.Value)
		}
	}
	return b.String()
}

// call adds a simple command as a part.
func (s *script) call(n *syntax.CallExpr) {
	for _, a := range n.Assigns {
		s.r.assignment(a)
	}
	if len(n.Args) == 0 {
		return
	}
	words := make([]word, len(n.Args))
	for i, a := range n.Args {
		words[i] = s.r.word(a)
	}
	p := s.r.run(words, s.depth, s.fed[n])
	p.says = s.says[n]
	s.parts = append(s.parts, p)
}

// assignment adds a doubt, unless the variable only changes how output looks.
func (r *reading) assignment(a *syntax.Assign) {
	value := plainWord("")
	if a.Value != nil {
		value = r.word(a.Value)
	}
	if a.Append || a.Naked || a.Index != nil || a.Array != nil || !value.plain || !harmlessVariable(a.Name.Value, value.text) {
		r.doubt("environment")
	}
}

// harmlessVariable reports whether the variable starts nothing, loads nothing and leads nowhere.
func harmlessVariable(name, value string) bool {
	if strings.ContainsFunc(value, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("._-", c)
	}) {
		return false
	}
	switch name {
	case "CI", "NO_COLOR", "FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "COLUMNS", "LINES", "LANG", "LC_ALL", "LC_CTYPE", "LC_COLLATE", "TZ",
		"NODE_ENV", "RUST_BACKTRACE", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "GIT_TERMINAL_PROMPT", "GIT_OPTIONAL_LOCKS",
		"GOOS", "GOARCH", "CGO_ENABLED", "DEBIAN_FRONTEND":
		return true
	case "PAGER", "GIT_PAGER":
		return value == "cat" || value == ""
	}
	return false
}

// function adds a doubt, because later words may call the function. A function that starts itself, in a pipe or in the background, is a
// fork bomb.
func (s *script) function(n *syntax.FuncDecl) {
	s.r.doubt("function")
	if s.funcs++; n.Name == nil || n.Body == nil || s.funcs > maxFunctions {
		return
	}
	self, spreads := 0, false
	syntax.Walk(n.Body, func(inner syntax.Node) bool {
		switch inner := inner.(type) {
		case *syntax.CallExpr:
			if len(inner.Args) > 0 && s.r.word(inner.Args[0]).text == n.Name.Value {
				self++
			}
		case *syntax.BinaryCmd:
			spreads = spreads || pipes(inner)
		case *syntax.Stmt:
			spreads = spreads || inner.Background
		}
		return true
	})
	if self > 0 && spreads {
		s.parts = append(s.parts, &part{kind: Execute, words: []word{plainWord(bombWord)}, doubt: "function"})
	}
}

const maxFunctions = 20

// bombWord stands for a command that multiplies.
const bombWord = "\x00fork bomb"

// crude splits a text that does not parse. Nothing in the text is allowed, but deny rules are applied to its commands.
func (r *reading) crude(text string, depth int) []*part {
	var parts []*part
	for _, piece := range strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(";&|\n(){}`", c) }) {
		var words []word
		var w strings.Builder
		in, quoted := false, rune(0)
		end := func() {
			if in {
				words = append(words, plainWord(w.String()))
			}
			in = false
			w.Reset()
		}
		for _, c := range piece {
			switch {
			case quoted != 0 && c == quoted:
				quoted = 0
			case quoted != 0:
				w.WriteRune(c)
			case c == '\'' || c == '"':
				in, quoted = true, c
			case c == '\\':
			case c == ' ' || c == '\t' || c == '\r':
				end()
			default:
				in = true
				w.WriteRune(c)
			}
		}
		end()
		if len(words) > 0 {
			p := r.run(words, depth+1, false)
			p.doubt = "syntax"
			parts = append(parts, p)
		}
	}
	return parts
}
