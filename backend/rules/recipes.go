package rules

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// longestRecipes is the most of a file whose recipes are followed.
const longestRecipes = 128 << 10

// Recipes returns the files that a file may run when it is run itself, as Scripts does for a line: a shell script, or a file of tasks. Of a
// file whose tasks begin at the margin, as those of make and just do, only the named tasks count, the first one, and those that they name.
// Recipes returns nil for programs in other languages and for files that are too long.
func Recipes(name, text string, tasks []string) []Named {
	base := path.Base(name)
	shell := isShellScript(base, text)
	if len(text) > longestRecipes || strings.Contains(text, "\x00") || !shell && len(tasks) == 0 && !isTaskFile(base) {
		return nil
	}
	r := recipes{seen: map[string]bool{}}
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\\\n", " ")
	if shell {
		r.add(Scripts(text))
	}
	lines := strings.Split(text, "\n")
	values := variablesOf(lines)
	left := longestRecipes // of what variables may add
	for _, line := range reachedLines(lines, tasks) {
		if left > 0 {
			filled := values.in(line)
			left -= max(len(filled)-len(line), 0)
			line = filled
		}
		r.line(line, tasks)
	}
	return r.list
}

// isTaskFile reports whether a program takes its tasks from a file of this name.
func isTaskFile(base string) bool {
	for line := range strings.Lines(taskTable) {
		_, files, _ := strings.Cut(line, ": ")
		if slices.ContainsFunc(strings.Fields(files), func(file string) bool { return path.Base(file) == base }) {
			return true
		}
	}
	return slices.Contains([]string{".mk", ".mak", ".make", ".just"}, path.Ext(base))
}

// isShellScript reports whether a shell would read the file, by its first line, or by its name where the first line says nothing.
func isShellScript(base, text string) bool {
	if first, _, _ := strings.Cut(text, "\n"); strings.HasPrefix(first, "#!") {
		return slices.ContainsFunc(strings.Fields(first[2:]), func(word string) bool { return isShell(programName(word)) })
	}
	return slices.Contains([]string{"", ".sh", ".bash", ".zsh", ".ksh", ".dash"}, path.Ext(base)) && !isTaskFile(base)
}

// block is a task with the lines up to the next one.
type block struct {
	names []string // none for lines that count with every task
	lines []string
}

// taskLine matches the line that begins a task of make or just.
var taskLine = regexp.MustCompile(`^@?([^\s#:=][^#:=]*):(?:[^=]|$)`)

// blocksOf divides the lines of a file into its tasks.
func blocksOf(lines []string) []block {
	blocks := []block{{}}
	for _, line := range lines {
		if m := taskLine.FindStringSubmatch(line); m != nil {
			b := block{}
			if line[0] != '.' && !strings.ContainsAny(m[1], "$%*") {
				b.names = strings.Fields(m[1])
			}
			blocks = append(blocks, b)
		} else if line != "" && !strings.ContainsAny(line[:1], " \t#") {
			blocks = append(blocks, block{})
		}
		last := &blocks[len(blocks)-1]
		last.lines = append(last.lines, line)
	}
	return blocks
}

// reachedLines returns the lines of the named tasks, of the first one, and of those that their lines name; all lines where no name is of a
// task.
func reachedLines(lines, tasks []string) []string {
	blocks := blocksOf(lines)
	byName := map[string][]int{}
	queue := slices.Clone(tasks)
	for i, b := range blocks {
		if len(byName) == 0 {
			queue = append(queue, b.names...)
		}
		for _, name := range b.names {
			byName[name] = append(byName[name], i)
		}
	}
	if !slices.ContainsFunc(tasks, func(task string) bool { return byName[task] != nil }) {
		return lines
	}
	taken := map[int]bool{}
	for ; len(queue) > 0; queue = queue[1:] {
		for _, i := range byName[queue[0]] {
			if !taken[i] {
				taken[i] = true
				queue = append(queue, blocks[i].words()...)
			}
		}
		delete(byName, queue[0])
	}
	return linesOf(blocks, taken)
}

// linesOf returns the lines of the blocks that are taken, and of those without names.
func linesOf(blocks []block, taken map[int]bool) (lines []string) {
	for i, b := range blocks {
		if taken[i] || b.names == nil {
			lines = append(lines, b.lines...)
		}
	}
	return lines
}

// words returns the words of a block, which may be names of tasks.
func (b block) words() []string {
	return strings.FieldsFunc(strings.Join(b.lines, "\n"), func(c rune) bool { return strings.ContainsRune(" \t\n:;&|(){}@'\"", c) })
}

// variables are the values that a file of tasks gives names.
type variables map[string]string

var (
	variableLine = regexp.MustCompile(`^[ \t]*(?:export[ \t]+|override[ \t]+)*([A-Za-z_]\w*)[ \t]*(?:::?|\?|\+|)=[ \t]*(\S.*)$`)
	variableUse  = regexp.MustCompile(`\$[({]([A-Za-z_]\w*)[)}]|\{\{-?[ \t]*\.?([A-Za-z_]\w*)(?:\(\))?[ \t]*-?\}\}`)
)

func variablesOf(lines []string) variables {
	const longestValue = 1 << 10
	v := variables{"MAKE": "make"}
	for _, line := range lines {
		if m := variableLine.FindStringSubmatch(line); m != nil && v[m[1]] == "" && len(m[2]) <= longestValue {
			v[m[1]] = strings.Trim(strings.TrimSpace(m[2]), `"'`)
		}
	}
	return v
}

// in returns a line with the values of its variables. An unknown variable is left to Scripts, which takes one before a slash for the
// directory of the project.
func (v variables) in(line string) string {
	const deepest, longest = 4, 4 << 10
	for range deepest {
		if len(line) > longest {
			break
		}
		filled := variableUse.ReplaceAllStringFunc(line, func(use string) string {
			m := variableUse.FindStringSubmatch(use)
			if value := v[m[1]+m[2]]; value != "" {
				return value
			}
			return "${" + m[1] + m[2] + "}"
		})
		if filled == line {
			break
		}
		line = filled
	}
	return strings.ReplaceAll(line, "$$", "$")
}

// recipes collects what the lines of a file run.
type recipes struct {
	list []Named
	seen map[string]bool
}

var (
	memberName = regexp.MustCompile(`^["']?[\w.-]+["']?[ \t]*:[ \t]+`)
	inQuotes   = regexp.MustCompile(`"((?:[^"\\]|\\.)+)"|'([^']+)'`)
)

// line adds the files of a line: of the line as it stands, behind the marks and the name before a command, and in its quotes.
func (r *recipes) line(line string, tasks []string) {
	line = strings.TrimLeft(line, " \t@+-")
	line = memberName.ReplaceAllString(line, "")
	line = strings.TrimSuffix(strings.TrimLeft(line, " \t@+-"), ",")
	words := strings.Fields(line)
	if len(words) == 0 || strings.HasPrefix(line, "#") {
		return
	}
	if slices.Contains([]string{"include", "sinclude", "import", "import?"}, words[0]) {
		for _, file := range words[1:] {
			r.add([]Named{{Path: path.Clean(strings.Trim(file, `"'`)), Runs: true, Tasks: tasks}})
		}
	}
	r.add(Scripts(line))
	for _, m := range inQuotes.FindAllStringSubmatch(line, -1) {
		if inner := m[1] + m[2]; strings.Contains(inner, " ") || strings.Contains(inner, "/") {
			r.add(Scripts(strings.ReplaceAll(inner, `\"`, `"`)))
		}
	}
}

// add adds files, without the words of which nothing says that they are files.
func (r *recipes) add(list []Named) {
	for _, n := range list {
		key := n.Path
		if n.Runs {
			key += "\x00"
		}
		if (n.Runs || n.Loads || strings.Contains(n.Path, "/")) && !r.seen[key] && len(r.list) < mostNamed {
			r.seen[key] = true
			r.list = append(r.list, n)
		}
	}
}
