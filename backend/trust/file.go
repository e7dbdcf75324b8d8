package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// These parts of a file count: a script completely, settings in other forms than JSON completely, of JSON the members that can start a
// program, and of prose nothing, unless the prose has the agent run commands.

// part is an entry before its hash is computed.
type part struct {
	kind, name string
	covered    []byte // the bytes that the hash covers
	detail     string
	names      []word // the words that may name scripts
}

// word is a word of a configuration that may name a file.
type word struct {
	text  string
	runs  bool     // the word stands in the place of a program
	loads bool     // the word may name a folder with programs
	glob  bool     // the word stands for the files that its pattern matches
	tasks []string // the tasks of the file that run; nil = all of the file
}

// looked is a file that was read.
type looked struct {
	name, at string
	link     string   // the target, when the file is a link
	outside  bool     // the text must not be shown
	run      bool     // the configuration names the file as a program
	tasks    []string // the tasks of the file that run; nil = all of the file
	asked    bool     // the file was searched by its name, and not found in a folder
	info     fs.FileInfo
	sum      string
	data     []byte // nil for a file that is too long
	hashed   int64
	problem  string
	harmless []string
	rules    map[string][]string
}

// readFile reads at most most bytes of a file, and never waits for a pipe.
func readFile(real string, info fs.FileInfo, most int64) (f looked) {
	f.info = info
	root, err := config.OpenDirectory(filepath.Dir(real))
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

// unread returns why package config does not open a file, without the path.
func unread(err error) string {
	if errors.Is(err, fs.ErrPermission) || errors.Is(err, config.ErrPermission) {
		return "permission denied"
	}
	return err.Error()
}

// parts returns the entries of the file.
func (f looked) parts() []part {
	switch {
	case f.problem != "":
		return []part{f.unseen(f.problem)}
	case f.run && f.data == nil:
		return []part{f.unseen("It is too large to be shown")}
	case f.run:
		return []part{f.script()}
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
		return []part{f.script()}
	}
	return nil
}

// script returns the entry of a script, with the files that the script runs in turn as far as shells read it.
func (f looked) script() part {
	p := f.whole(Script, f.text())
	p.names = wordsOf(rules.Recipes(f.name, string(f.data), f.tasks))
	return p
}

// belongs reports whether the file is data that a skill has for its own use.
func (f looked) belongs() bool {
	before, below, ok := strings.Cut("/"+f.name, "/skills/")
	if !ok || strings.Count(below, "/") == 0 || otherwise.MatchString(before) || f.mayRun() {
		return false
	}
	return (config.IsJSON(f.name) || config.IsSettings(f.name)) && !config.IsManifest(f.name)
}

// otherwise matches folders whose content is no skill, whatever their subfolders are called.
var otherwise = regexp.MustCompile(`/(commands?|prompts|workflows|agents?|hooks?|tools?|extensions)(/|$)`)

func (f looked) settings() bool {
	return config.IsSettings(f.name) || strings.HasPrefix(path.Base(f.name), ".env")
}

func (f looked) mayRun() bool { return mayRun(f.at, f.info) }

// mayRun reports whether a file is likely to be run. On some file systems all files are executable, so files that are only read are
// recognised by their extensions.
func mayRun(at string, info fs.FileInfo) bool {
	if slices.Contains([]string{".json", ".md", ".txt", ".png", ".jpg", ".svg", ".csv", ".lock", ".log"}, strings.ToLower(filepath.Ext(at))) {
		return false
	}
	return mcp.Scripted(at, info)
}

// unseen returns the entry of a file whose text is not shown.
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

// whole returns an entry for all of the file.
func (f looked) whole(kind, text string) part { return f.part(kind, f.name, text, f.data) }

// part returns an entry for a part of the file: text is for people, and the hash covers covered.
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

// text returns the text of a file that is shown unchanged.
func (f looked) text() string {
	if !utf8.Valid(f.data) || bytes.IndexByte(f.data, 0) >= 0 {
		return fmt.Sprintf("No text but a program, or other binary data: %d bytes, SHA-256 %s", f.info.Size(), f.sum)
	}
	return visible(string(f.data))
}

// visible returns a text in which no character can pass for another, or change the order of its neighbours.
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

// escaped matches text in quotes that differs from its meaning.
var escaped = regexp.MustCompile(`\\(?:[uUx]|\s)`)

// prose returns an entry with the whole text when the text has commands that are run, or allows some.
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

// commandsIn returns the words of the commands in prose, and in settings that are no JSON: inline commands, and the values of members
// whose names are those of commands.
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

// plain returns an entry for a file of settings in another form than JSON, with the values of secrets hidden.
func (f looked) plain() []part {
	if len(bytes.TrimSpace(f.data)) == 0 {
		return nil
	}
	if prompt.MatchString(f.name) && !config.Inlines(f.data) && !escaped.Match(f.data) {
		return nil // only a prompt
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

// prompt matches the names of prompts that are written as settings.
var prompt = regexp.MustCompile(`(^|/)(commands|prompts|workflows)/.*\.toml$`)

// assigned matches a line that gives a name a value.
var assigned = regexp.MustCompile(`^(\s*(?:export\s+)?["']?)([A-Za-z_][\w.-]*)(["']?\s*[:=]\s*["']?)([^\s"'#,]+)(.*)$`)

var (
	projectVariable = regexp.MustCompile(`\$\{?[A-Za-z_]*(?:PROJECT_DIR|PROJECT_ROOT|[wW]orkspace(?:Folder|_DIR|Root)?|PWD)(?::-[^}]*)?\}?|%[A-Z_]*PROJECT_DIR%|\$\((?:pwd|git rev-parse --show-toplevel)\)`)
	quotedWords     = regexp.MustCompile(`"([^"\n]+)"|'([^'\n]+)'`)
)

// words returns the words of a text that may name files. command says that the text is a command line, whose first word is a program.
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
		list = append(list, wordsOf(rules.Scripts(text))...) // as a shell would read the line
	}
	return list
}

// wordsOf returns the words of the files that are run.
func wordsOf(named []rules.Named) (list []word) {
	for _, n := range named {
		list = append(list, word{text: n.Path, runs: n.Runs, loads: n.Loads, glob: n.Glob, tasks: n.Tasks})
	}
	return list
}
