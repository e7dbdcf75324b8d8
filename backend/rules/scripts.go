package rules

import (
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"
)

// Named is a word of a shell line that may name a file which the line runs or loads.
type Named struct {
	Path  string   // relative to the directory in which the line runs, or absolute; with Glob a pattern
	Glob  bool     // the shell expands the word to names of files
	Runs  bool     // the file is run whatever its name: something in the line runs files given to it
	Loads bool     // files in a folder of this name are run
	Tasks []string // the tasks of the file that run; nil = all
}

// Scripts returns the files that a line may run or load, wherever cd leads on the way. More files are named than exist: the caller looks
// which of the files exist.
func Scripts(line string) []Named {
	line = lostRoot(line)
	s := &scripts{r: &reading{where: Where{Directory: nowhere}, dirs: []string{nowhere}, budget: maxParts}, paths: []string{"."}}
	s.text(line, 0)
	return s.named()
}

// nowhere stands for the directory in which a line runs, deep enough for many .. in a row.
const nowhere = "/@/@/@/@/@/@/@/@"

// scripts collects the words of a line.
type scripts struct {
	r     *reading
	words []word
	runs  bool // something in the line runs files given to it
	seeks bool // something in the line searches for files
	tasks []Named
	paths []string // the directories in which Python looks for modules
}

// longestLine is the most of a line, or of a script, that is taken apart.
const longestLine = 64 << 10

func (s *scripts) text(text string, depth int) {
	const deepest = 4
	if depth > deepest || len(text) > longestLine || len(s.words) >= mostNamed {
		return
	}
	file, _ := parse(text) // parse returns the statements up to the first error
	syntax.Walk(file, (&script{r: s.r, fed: map[syntax.Node]bool{}}).directories)
	syntax.Walk(file, s.modulePath)
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.CallExpr:
			s.call(n)
		case *syntax.Word:
			s.word(n, depth)
		}
		return true
	})
}

// word adds a word, wherever the word stands: a variable may hold the name until something runs it.
func (s *scripts) word(n *syntax.Word, depth int) {
	for _, one := range braced(n) {
		w := s.r.word(one)
		if w.text == "" || len(s.words) >= mostNamed {
			continue
		}
		s.words = append(s.words, w)
		if strings.ContainsAny(w.text, " \n;&|\"'") {
			s.text(w.text, depth+1)
		}
	}
}

// braced returns the words that a word with lists in braces, such as {a,b}, stands for. A word that stands for too many stays as written.
func braced(w *syntax.Word) (list []*syntax.Word) {
	const most = 256
	split := &syntax.Word{Parts: slices.Clone(w.Parts)} // a copy, as the tree is still being walked
	if !syntax.SplitBraces(split) {
		return []*syntax.Word{w}
	}
	for one, err := range expand.BracesSeq(&expand.Config{}, split) {
		if err != nil || len(list) == most {
			return []*syntax.Word{w}
		}
		list = append(list, one)
	}
	return list
}

// call looks, at every place of a command, for a program that runs files given to it: behind wrappers and runners stands the real
// program.
func (s *scripts) call(n *syntax.CallExpr) {
	if len(n.Args) == 0 {
		return
	}
	var words []word
	for _, a := range n.Args {
		for _, one := range braced(a) {
			words = append(words, s.r.word(one))
		}
	}
	if first := words[0]; strings.Contains(first.text, "/") && first.glob < 0 {
		s.tasks = append(s.tasks, Named{Path: first.text, Runs: true})
	}
	options := slices.ContainsFunc(words, func(w word) bool { return strings.HasPrefix(w.text, "-") })
	for i, w := range words {
		s.program(programName(w.text), words[i+1:], options)
	}
}

// program reads name as the name of a program and rest as the words behind the name.
func (s *scripts) program(name string, rest []word, options bool) {
	bare := strings.TrimRight(name, "0123456789.")
	switch {
	case runsFiles(bare) || runsFiles(name) || options && runsByOption(name):
		s.runs = true
		s.modules(rest)
	case name == "find" || name == "gfind" || name == "fd" || name == "fdfind" || name == "run-parts" || name == "ls":
		s.seeks = true
		s.runs = s.runs || name == "run-parts" || slices.ContainsFunc(rest, func(w word) bool { return strings.Contains(w.text, "{}") })
	case name == "go" && len(rest) > 0 && rest[0].text == "run":
		s.seeks, s.runs = true, true
	}
	if files := taskFiles(name); files != nil {
		s.task(files, rest)
	}
}

// runsByOption reports whether the program runs a file that an option names.
func runsByOption(name string) bool {
	switch name {
	case "awk", "gawk", "mawk", "nawk", "sed", "gsed", "make", "gmake", "cmake", "psql", "mysql", "sqlite3", "gdb", "lldb", "emacs", "vim", "nvim", "vi", "ed", "ex", "xargs":
		return true
	}
	return false
}

// runsFiles reports whether the program runs a file given to it, whatever the file is called, or has another program do so.
func runsFiles(name string) bool {
	if isShell(name) {
		return true
	}
	switch name {
	case "python", "pythonw", "pypy", "ipython", "node", "nodejs", "deno", "bun", "tsx", "ts-node", "ts-node-esm", "jiti", "esno", "swc-node", "babel-node", "zx", "perl", "ruby", "jruby", "php",
		"lua", "luajit", "tclsh", "wish", "expect", "osascript", "rscript", "julia", "java", "groovy", "kotlin", "scala", "scala-cli", "clojure", "bb", "elixir", "iex", "escript", "racket", "guile", "sbcl",
		"dotnet-script", "csi", "fsi", "swift", "runghc", "runhaskell", "ocaml", "crystal", "dart", "source", ".", "eval", "ansible-playbook", "bats", "nix-shell":
		return true
	}
	return false
}

// taskTable lists, behind the programs that run the tasks of a file, the names of such files.
const taskTable = `
make gmake bmake: Makefile makefile GNUmakefile BSDmakefile
npm pnpm yarn bun npm-run-all run-s run-p ni nr turbo wireit: package.json
deno: deno.json deno.jsonc package.json
just: justfile Justfile .justfile
task go-task: Taskfile.yml Taskfile.yaml taskfile.yml taskfile.yaml
rake drake: Rakefile rakefile Rakefile.rb
bundle bundler: Gemfile Rakefile
gradle gradlew gradlew.bat: build.gradle build.gradle.kts settings.gradle settings.gradle.kts gradle/wrapper/gradle-wrapper.properties
mvn mvnw mvnd mvnw.cmd: pom.xml .mvn/extensions.xml .mvn/jvm.config .mvn/maven.config
ant: build.xml
sbt: build.sbt project/plugins.sbt
composer: composer.json
mix: mix.exs
cargo: Cargo.toml .cargo/config.toml build.rs Makefile.toml
tox: tox.ini tox.toml pyproject.toml setup.cfg
nox: noxfile.py
invoke inv: tasks.py
fab: fabfile.py
doit: dodo.py
pytest: conftest.py pytest.ini
hatch pdm poe poetry rye: pyproject.toml
gulp: gulpfile.js gulpfile.mjs gulpfile.ts
grunt: Gruntfile.js gruntfile.js Gruntfile.cjs
pre-commit prek: .pre-commit-config.yaml
lefthook: lefthook.yml lefthook.yaml .lefthook.yml lefthook.toml
lint-staged: .lintstagedrc .lintstagedrc.json .lintstagedrc.yml .lintstagedrc.js .lintstagedrc.mjs lint-staged.config.js lint-staged.config.mjs package.json
mise rtx: mise.toml .mise.toml
docker docker-compose podman podman-compose: compose.yaml compose.yml docker-compose.yml docker-compose.yaml
earthly: Earthfile
mage: magefile.go
nx: nx.json package.json
cmake ctest: CMakeLists.txt CMakePresets.json
ninja samu: build.ninja
meson: meson.build
scons: SConstruct
vagrant: Vagrantfile
devbox: devbox.json
direnv: .envrc
`

// taskFiles returns the names of the files from which the program takes its tasks.
func taskFiles(program string) []string {
	for line := range strings.Lines(taskTable) {
		programs, files, _ := strings.Cut(line, ": ")
		if slices.Contains(strings.Fields(programs), program) {
			return strings.Fields(files)
		}
	}
	return nil
}

// task adds the task files of a program, in the line's directory and in the directories that the words behind the program name.
func (s *scripts) task(files []string, words []word) {
	dirs := []string{"."}
	var tasks []string
	const most = 50
	for _, w := range words[:min(most, len(words))] {
		text := w.text
		if _, value, is := strings.Cut(text, "="); is && strings.HasPrefix(text, "-") {
			text = value
		}
		text = strings.TrimPrefix(text, "-C")
		if text != "" && !w.lost && !strings.HasPrefix(text, "-") && !strings.ContainsAny(text, " \n*?") {
			dirs, tasks = append(dirs, text), append(tasks, text)
		}
	}
	for _, dir := range dirs {
		for _, file := range files {
			s.tasks = append(s.tasks, Named{Path: path.Join(dir, file), Runs: true, Tasks: tasks})
		}
	}
}

// modules adds the files of Python modules: the modules behind -m, and the modules that a text imports.
func (s *scripts) modules(words []word) {
	for i, w := range words {
		name := ""
		switch {
		case w.text == "-m" && i+1 < len(words):
			name = words[i+1].text
		case strings.HasPrefix(w.text, "-m"):
			name = w.text[2:]
		}
		s.module(name)
		fields := strings.FieldsFunc(w.text, func(c rune) bool { return strings.ContainsRune(" ;\n,()", c) })
		for at, field := range fields {
			if (field == "import" || field == "from") && at+1 < len(fields) {
				s.module(fields[at+1])
			}
		}
	}
}

// modulePath notes the directories that the line gives Python for its modules, for all of the line.
func (s *scripts) modulePath(n syntax.Node) bool {
	const variable, most = "PYTHONPATH", 16
	value := ""
	switch n := n.(type) {
	case *syntax.Assign:
		if n.Name != nil && n.Name.Value == variable && n.Value != nil {
			value = s.r.word(n.Value).text
		}
	case *syntax.CallExpr:
		for _, a := range n.Args { // env PYTHONPATH=…
			if text, is := strings.CutPrefix(s.r.word(a).text, variable+"="); is {
				value = text
			}
		}
	}
	for dir := range strings.SplitSeq(value, ":") {
		if dir != "" && len(s.paths) < most && !slices.Contains(s.paths, dir) {
			s.paths = append(s.paths, dir)
		}
	}
	return true
}

func (s *scripts) module(name string) {
	if name == "" || strings.ContainsAny(name, "/\\ ") {
		return
	}
	parts := strings.Split(name, ".")
	add := func(names ...string) {
		for _, dir := range s.paths {
			s.tasks = append(s.tasks, Named{Path: path.Join(append([]string{dir}, names...)...), Runs: true})
		}
	}
	for i := range parts {
		add(path.Join(parts[:i+1]...), "__init__.py")
	}
	whole := path.Join(parts...)
	add(whole + ".py")
	add(whole, "__main__.py")
}

// mostNamed limits how many files are returned for a line.
const mostNamed = 2000

// named returns the words as paths from each directory in which the line may run.
func (s *scripts) named() (list []Named) {
	type key struct {
		path, tasks       string
		glob, runs, loads bool
	}
	seen := map[key]bool{}
	add := func(n Named) {
		for _, dir := range s.r.dirs {
			full := n
			full.Path = from(dir, n.Path)
			k := key{full.Path, strings.Join(n.Tasks, " "), n.Glob, n.Runs, n.Loads}
			if full.Path != "" && full.Path != "/" && !seen[k] && len(list) < mostNamed {
				seen[k] = true
				list = append(list, full)
			}
		}
	}
	for _, n := range s.tasks {
		add(n)
	}
	for _, w := range s.words {
		for _, text := range append(pathsIn(w.text), strings.TrimLeft(w.text, "-")) {
			if text != "" && text != "." && !strings.ContainsAny(text, "\n\x00") {
				add(Named{Path: text, Glob: w.glob >= 0, Runs: s.runs, Loads: s.seeks && s.runs})
			}
		}
	}
	return list
}

// from returns the path name, seen from dir, relative to the directory in which the line runs.
func from(dir, name string) string {
	full := name
	if !rooted(name) {
		full = path.Join(dir, name)
	}
	if !below(full, "/@") {
		return path.Clean(full)
	}
	here, there := strings.Split(nowhere, "/"), strings.Split(path.Clean(full), "/")
	same := 0
	for same < len(here) && same < len(there) && here[same] == there[same] {
		same++
	}
	return path.Join(strings.Repeat("../", len(here)-same), strings.Join(there[same:], "/"))
}

// lostRoot replaces a variable or a substitution before a slash by a dot: in the settings of a project such a variable means the
// directory of the project.
func lostRoot(line string) string {
	var b strings.Builder
	for i := 0; i < len(line); {
		end := unknownEnd(line[i:])
		rest := strings.TrimLeft(line[i+end:], `"'`)
		if end == 0 || !strings.HasPrefix(rest, "/") && !strings.HasPrefix(rest, `\`) {
			b.WriteString(line[i : i+max(end, 1)])
			i += max(end, 1)
			continue
		}
		b.WriteByte('.')
		i += end
	}
	return b.String()
}

// unknownEnd returns where the variable or substitution at the start of text ends, or 0 when text starts with neither.
func unknownEnd(text string) int {
	if len(text) < 2 || text[0] != '$' {
		return 0
	}
	switch text[1] {
	case '{':
		return shutAt(text, '{', '}')
	case '(':
		return shutAt(text, '(', ')')
	}
	if rest := strings.TrimLeft(text[1:], letters+"_0123456789"); len(rest) < len(text)-1 {
		return len(text) - len(rest)
	}
	return 0
}

// shutAt returns the index behind the bracket that closes the first open bracket of text, or 0.
func shutAt(text string, open, shut byte) int {
	const longest = 1000
	depth := 0
	for i := range min(len(text), longest) {
		switch text[i] {
		case open:
			depth++
		case shut:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}
