package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"deskhand/backend/config"
	"deskhand/backend/mcp"
	"deskhand/backend/rules"
)

// What of one file counts: all of a script and of settings that are no JSON; of JSON what can start something; of prose nothing,
// unless it has the agent run commands when it is used.

// part is an entry before it has a hash.
type part struct {
	kind, name string
	covered    []byte // what the hash covers
	detail     string
	names      []word // in which scripts may be named
}

// word is one of a configuration that may be the name of a file.
type word struct {
	text  string
	runs  bool     // it stands where a program does
	loads bool     // it may be the name of a folder with programs
	glob  bool     // it stands for the files that its pattern matches
	tasks []string // what of the file is run; nil = all of it
}

// looked is a file as it was read.
type looked struct {
	name, at string
	link     string // what it is a link to
	outside  bool   // its text is not for showing
	run      bool   // it is named as what is run
	asked    bool   // it was looked for by its name, and not found in a folder
	info     fs.FileInfo
	sum      string
	data     []byte // its text, when it is one and not too long
	hashed   int64
	problem  string
	harmless []string
	rules    map[string][]string
}

// readFile reads a file without waiting for it, and no more than so many bytes.
func readFile(real string, info fs.FileInfo, most int64) (f looked) {
	f.info = info
	root, err := os.OpenRoot(filepath.Dir(real) + string(filepath.Separator) + ".") // which waits for no pipe
	if err != nil {
		f.problem = "It cannot be read: " + reason(err)
		return f
	}
	defer root.Close()
	in, err := config.OpenRegular(root, filepath.Base(real))
	if err != nil {
		f.problem = "It cannot be read: " + unread(err)
		return f
	}
	defer in.Close()
	sum := sha256.New()
	var text bytes.Buffer
	f.hashed, err = io.Copy(io.MultiWriter(sum, &text), io.LimitReader(in, longestText+1))
	if err == nil && f.hashed > longestText {
		var more int64
		more, err = io.Copy(sum, io.LimitReader(in, max(most-f.hashed, 0)))
		f.hashed += more
	} else {
		f.data = append([]byte{}, text.Bytes()...) // never nil
	}
	if err != nil {
		f.problem = "It cannot be read: " + reason(err)
	}
	if f.hashed >= most {
		fmt.Fprintf(sum, "%d %d", info.Size(), info.ModTime().UnixNano())
	}
	f.sum = hex.EncodeToString(sum.Sum(nil))
	return f
}

// unread is why package config does not open a file, without its path.
func unread(err error) string {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, config.ErrPermission) {
		return "permission denied"
	}
	return err.Error()
}

// parts are what of the file counts.
func (f looked) parts() []part {
	switch {
	case f.problem != "":
		return []part{f.unseen(f.problem)}
	case f.run && f.data == nil:
		return []part{f.unseen("It is too large to be shown")}
	case f.run:
		return []part{f.whole(Script, f.text())}
	case config.IsProse(f.name):
		return f.prose()
	case f.belongs():
		return nil
	case f.data == nil && (f.asked || f.mayRun() || f.settings() || config.IsJSON(f.name)):
		return []part{f.unseen("It is too large to be shown")}
	case f.data == nil:
		return nil
	case config.IsJSON(f.name):
		return f.json()
	case f.settings():
		return f.plain()
	case f.asked || f.mayRun() || bytes.HasPrefix(f.data, []byte("#!")):
		return []part{f.whole(Script, f.text())}
	}
	return nil
}

// belongs tells of data that a skill has for its own use.
func (f looked) belongs() bool {
	before, below, ok := strings.Cut("/"+f.name, "/skills/")
	if !ok || strings.Count(below, "/") == 0 || otherwise.MatchString(before) || f.mayRun() {
		return false
	}
	return (config.IsJSON(f.name) || config.IsSettings(f.name)) && !config.IsManifest(f.name)
}

// otherwise matches folders of what is no skill, whatever folders in them are called.
var otherwise = regexp.MustCompile(`/(commands?|prompts|workflows|agents?|hooks?|tools?|extensions)(/|$)`)

func (f looked) settings() bool {
	return config.IsSettings(f.name) || strings.HasPrefix(path.Base(f.name), ".env")
}

func (f looked) mayRun() bool { return mayRun(f.at, f.info) }

// mayRun tells of a file that is likely to be run. On some file systems all are executable: what is only read is told by its ending.
func mayRun(at string, info fs.FileInfo) bool {
	if slices.Contains([]string{".json", ".md", ".txt", ".png", ".jpg", ".svg", ".csv", ".lock", ".log"}, strings.ToLower(filepath.Ext(at))) {
		return false
	}
	return mcp.Scripted(at, info)
}

// unseen is a file whose text is not shown.
func (f looked) unseen(why string) part {
	kind := Config
	if f.mayRun() {
		kind = Script
	}
	if f.sum == "" {
		return f.whole(kind, fmt.Sprintf("%s\n%d bytes, of %s", why, f.info.Size(), f.info.ModTime().UTC().Format("2006-01-02 15:04:05")))
	}
	return f.whole(kind, fmt.Sprintf("%s: %d bytes, SHA-256 %s\nRead it before you approve it", why, f.info.Size(), f.sum))
}

// whole is an entry for all of a file.
func (f looked) whole(kind, text string) part { return f.part(kind, f.name, text, f.data) }

// part is an entry for some of a file: a text for people, and what its hash covers.
func (f looked) part(kind, name, text string, covered []byte) part {
	if covered == nil {
		covered = []byte(f.sum + text)
	}
	switch {
	case f.outside:
		text = fmt.Sprintf("A link to %s, which is outside of this directory: its text is not shown here\n%d bytes, SHA-256 %s", visible(f.link), f.info.Size(), f.sum)
	case len(text)+len(f.link) > longestDetail-100:
		text = fmt.Sprintf("It is too long to be shown: %d bytes, SHA-256 %s\nRead it before you approve it", f.info.Size(), f.sum)
	}
	if f.link != "" && !f.outside {
		text = "A link to " + visible(f.link) + "\n" + text
	}
	if f.link != "" {
		covered = fmt.Appendf(nil, "%q %s", f.link, covered)
	}
	return part{kind: kind, name: name, covered: covered, detail: text}
}

// text is what is shown of a file that is shown as it is.
func (f looked) text() string {
	if !utf8.Valid(f.data) || bytes.IndexByte(f.data, 0) >= 0 {
		return fmt.Sprintf("No text but a program, or other binary data: %d bytes, SHA-256 %s", f.info.Size(), f.sum)
	}
	return visible(string(f.data))
}

// visible is a text in which nothing can pass for something else, or turn around what stands beside it.
func visible(text string) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	if !strings.ContainsFunc(text, hiding) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if hiding(r) {
			fmt.Fprintf(&b, "\\u{%04X}", r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func hiding(r rune) bool {
	return r != '\n' && r != '\t' && (!unicode.IsPrint(r) || r == utf8.RuneError)
}

// A text in quotes that is not written as it is meant.
var escaped = regexp.MustCompile(`\\(?:[uUx]|\s)`)

// prose counts when it has commands in it that are run, or gives leave for some: then all of it is shown.
func (f looked) prose() []part {
	if f.data == nil {
		return []part{f.unseen("It is too large to be looked through for commands")}
	}
	if config.Commands(f.data) {
		p := f.whole(Config, f.text())
		p.names = append(words(string(f.data), false), commandsIn(string(f.data))...)
		return []part{p}
	}
	return nil
}

var (
	inlined = regexp.MustCompile("!`+([^`]+)`+|(?s:```!(.*?)```)|!\\{([^{}]+)\\}")
	member  = regexp.MustCompile(`(?m)^[ \t]*(?:-[ \t]+)?["']?([A-Za-z_][\w.-]*)["']?[ \t]*[:=][ \t]*(\S.*)$`)
)

// commandsIn are the words of the commands in prose, and in settings that are no JSON: those that an agent runs in their place, and the values of
// members that are called like commands.
func commandsIn(text string) (list []word) {
	for _, m := range inlined.FindAllStringSubmatch(text, -1) {
		list = append(list, words(m[1]+m[2]+m[3], true)...)
	}
	program := ""
	for _, m := range member.FindAllStringSubmatch(text, -1) {
		value := strings.TrimSpace(m[2])
		if inner, is := strings.CutPrefix(value, "["); is {
			value = strings.ReplaceAll(strings.TrimSuffix(inner, "]"), ",", " ")
		} else if n := len(value) - 1; n > 0 && value[0] == value[n] && (value[0] == '"' || value[0] == '\'') {
			value = value[1:n]
		}
		switch {
		case m[1] == "args":
			list = append(list, words(program+" "+value, true)...)
		case commandNames.MatchString(m[1]):
			program = value
			list = append(list, words(value, true)...)
		}
	}
	return list
}

// plain is a file of settings that is taken as it is, with the values hidden that are secrets.
func (f looked) plain() []part {
	if len(bytes.TrimSpace(f.data)) == 0 {
		return nil
	}
	if prompt.MatchString(f.name) && !config.Inlines(f.data) && !escaped.Match(f.data) {
		return nil // a prompt and no more
	}
	lines := strings.Split(f.text(), "\n")
	for i, line := range lines {
		if m := assigned.FindStringSubmatch(line); m != nil && mcp.Hides(m[2], m[4]) {
			lines[i] = m[1] + m[2] + m[3] + mcp.Hidden + m[5]
		}
	}
	p := f.whole(Config, strings.Join(lines, "\n"))
	p.names = append(words(string(f.data), false), commandsIn(string(f.data))...)
	return []part{p}
}

// prompt matches the files of commands that are written as settings.
var prompt = regexp.MustCompile(`(^|/)(commands|prompts|workflows)/.*\.toml$`)

// assigned is a line that gives a name a value.
var assigned = regexp.MustCompile(`^(\s*(?:export\s+)?["']?)([A-Za-z_][\w.-]*)(["']?\s*[:=]\s*["']?)([^\s"'#,]+)(.*)$`)

var (
	projectVariable = regexp.MustCompile(`\$\{?[A-Za-z_]*(?:PROJECT_DIR|PROJECT_ROOT|[wW]orkspace(?:Folder|_DIR|Root)?|PWD)(?::-[^}]*)?\}?|%[A-Z_]*PROJECT_DIR%|\$\((?:pwd|git rev-parse --show-toplevel)\)`)
	quotedWords     = regexp.MustCompile(`"([^"\n]+)"|'([^'\n]+)'`)
)

// words are those of a text that may name files; command tells that the text is a command's line, whose first word is a program.
func words(text string, command bool) (list []word) {
	text = projectVariable.ReplaceAllString(text, ".")
	add := func(w word) {
		w.text = strings.TrimPrefix(w.text, "file://")
		if len(list) < 2_000 && len(w.text) > 1 && len(w.text) < 1_000 && !strings.ContainsAny(w.text, "\n\x00") && w.text != ".." && w.text != "." {
			list = append(list, w)
		}
	}
	for _, m := range quotedWords.FindAllStringSubmatch(text, -1) {
		add(word{text: m[1] + m[2]})
	}
	for line := range strings.SplitSeq(text, "\n") {
		if command {
			add(word{text: line, runs: true})
		}
		runs := command
		for w := range strings.FieldsFuncSeq(line, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("\"'`;&|()<>=,[]{}", r) }) {
			add(word{text: strings.TrimSuffix(w, ":*"), runs: runs})
			if !strings.HasPrefix(w, "-") {
				runs = mcp.Interprets(w)
			}
		}
	}
	if command {
		list = append(list, scriptsIn(text)...)
	}
	return list
}

// scriptsIn are the files that a command's line runs, as a shell would read it.
func scriptsIn(line string) (list []word) {
	for _, n := range rules.Scripts(line) {
		list = append(list, word{text: n.Path, runs: n.Runs, loads: n.Loads, glob: n.Glob, tasks: n.Tasks})
	}
	return list
}
