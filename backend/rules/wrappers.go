package rules

import (
	"slices"
	"strings"
)

// A wrapper is a program that runs the command in its arguments.
type wrapper struct {
	takes      string // the short options that have an argument
	long       string // the long options that have an argument in the next word, each followed by a space
	letters    string // the short options without an argument; with through, any other is odd
	bare       string // the long options without an argument, likewise
	operands   int    // how many words stand before the command
	through    bool   // the command runs as if it stood alone
	privileged bool
	assigns    bool // variables may stand before the command
	feeds      bool // adds unknown arguments to the command
}

func wrapperOf(name string) (w wrapper, ok bool) {
	switch name {
	case "nice":
		return wrapper{takes: "n", long: "--adjustment ", letters: "0123456789", through: true}, true
	case "timeout", "gtimeout":
		return wrapper{takes: "ks", long: "--kill-after --signal ", letters: "fpv", bare: "--foreground --preserve-status --verbose ", operands: 1, through: true}, true
	case "nohup", "command", "builtin":
		return wrapper{through: true}, true
	case "setsid":
		return wrapper{letters: "cfw", bare: "--ctty --fork --wait ", through: true}, true
	case "stdbuf":
		return wrapper{takes: "ioe", long: "--input --output --error ", through: true}, true
	case "unbuffer":
		return wrapper{letters: "p", through: true}, true
	case "ionice":
		return wrapper{takes: "cn", long: "--class --classdata ", letters: "t", bare: "--ignore ", through: true}, true
	case "time", "gtime":
		return wrapper{takes: "fo", long: "--format --output ", letters: "ahlpqv", bare: "--append --portability --quiet --verbose ", through: true}, true
	case "exec":
		return wrapper{takes: "a", letters: "cl", through: true}, true
	case "chrt", "taskset":
		return wrapper{operands: 1}, true
	case "env":
		return wrapper{takes: "uCSaP", long: "--unset --chdir --split-string --argv0 ", through: true, assigns: true}, true
	case "sudo", "doas", "run0":
		return wrapper{takes: "ugChpTrtDRU", long: "--user --group --chdir --host --prompt --role --type --chroot --other-user --close-from ", privileged: true, assigns: true}, true
	case "pkexec":
		return wrapper{long: "--user ", privileged: true}, true
	case "xargs", "gxargs":
		return wrapper{takes: "IinPLsdaEeJR", long: "--max-args --max-procs --max-lines --max-chars --delimiter --arg-file --replace --eof ", feeds: true}, true
	case "chroot":
		return wrapper{operands: 1, privileged: true}, true
	case "strace", "ltrace", "unshare", "nsenter", "setpriv", "runuser", "busybox", "toybox", "catchsegv", "caffeinate", "systemd-run", "flock", "parallel", "ssh-agent", "dbus-run-session", "xvfb-run", "watch", "entr", "rlwrap", "script", "bwrap", "firejail", "faketime", "chpst", "softlimit", "start-stop-daemon",
		"screen", "dtach", "abduco", "zellij", "kitty", "foot", "footclient", "wezterm", "wt", "alacritty", "ghostty", "konsole", "gnome-terminal", "xterm", "urxvt", "mintty":
		return wrapper{takes: "unopegsct"}, true
	}
	return wrapper{}, false
}

// run returns the part of a command, with the commands within.
func (r *reading) run(words []word, depth int, fed bool) *part {
	p := &part{kind: Execute, words: words, fed: false}
	if r.budget--; r.budget < 0 || depth > maxDepth {
		r.doubt("too_deep")
		p.doubt = "too_deep"
		return p
	}
	if len(words) > maxWords {
		p.doubt = "too_long"
	}
	first := words[0]
	if !first.plain {
		p.doubt = first.why
		if first.lost {
			return p
		}
	}
	name := programName(first.text)
	if w, ok := wrapperOf(name); ok {
		r.wraps(p, w, depth, fed)
		return p
	}
	switch {
	case isShell(name):
		r.shell(p, depth, fed)
	case interprets(name) && fed && r.readsStdin(words):
		p.fed, p.doubt = true, "pipe_to_shell"
	}
	switch name {
	case "eval", "trap", "watch", "alias":
		p.doubt = "evaluates"
		r.evaluates(p, name, depth)
	case ".", "source", "enable", "hash", "shopt", "set", "export", "declare", "typeset", "local", "readonly", "unset", "read", "mapfile", "readarray", "getopts", "bind", "complete", "ulimit", "umask":
		p.doubt = "shell" // changes the meaning of later words
	case "find", "gfind", "fd", "fdfind":
		r.finds(p, depth)
	case "tmux", "tmate", "byobu", "socat", "ncat":
		r.starters(p, name, depth)
	case "su":
		p.privileged = true
		r.script1(p, "-c", depth)
	case "cd", "pushd", "true", "false", ":", "pwd":
		if first.text == name { // ./true is a program
			r.moves(p)
		}
	}
	return p
}

// moves marks a command that does nothing outside its shell as harmless.
func (r *reading) moves(p *part) {
	p.harmless = p.doubt == "" && !slices.ContainsFunc(p.words, func(w word) bool { return !w.plain })
	if name := p.words[0].text; name != "cd" && name != "pushd" {
		return
	}
	for _, dir := range r.dirs {
		if r.outside(dir) {
			p.doubt = "outside_root"
		}
	}
}

// wraps finds the command that a wrapper runs.
func (r *reading) wraps(p *part, w wrapper, depth int, fed bool) {
	p.privileged = w.privileged
	o := options{r: r, p: p, w: w, depth: depth}
	i := o.skip() + w.operands
	p.fixed = min(i+1, len(p.words))
	if i >= len(p.words) {
		return // the wrapper runs nothing
	}
	inner := slices.Clone(p.words[i:])
	if w.feeds {
		inner = append(inner, word{lost: true, why: "arguments", glob: -1})
	}
	q := r.run(inner, depth+1, fed)
	p.fixed = max(p.fixed, i+q.fixed) // in sudo sh -c '…' the text has to be spelled, too
	if o.odd && q.doubt == "" {
		q.doubt = "wrapper"
	}
	if slices.ContainsFunc(p.words[:i], func(w word) bool { return !w.plain }) && p.doubt == "" {
		p.doubt = "wrapper"
	}
	if p.doubt == "" {
		p.doubt = q.doubt
	}
	p.within = append(p.within, q)
	// A name that equals a wrapper's only without case may be a program of its own, and so may a name with a directory or
	// with .exe.
	name := p.words[0].text
	_, exact := wrapperOf(name)
	p.through = exact && w.through && (name != "command" || i == 1)
}

// options reads the options of a wrapper, before its command.
type options struct {
	r     *reading
	p     *part
	w     wrapper
	depth int
	odd   bool // an option may change which program runs, or how
}

// skip returns the index of the first word behind the options.
func (o *options) skip() int {
	i := 1
	for ; i < len(o.p.words); i++ {
		w := o.p.words[i]
		switch {
		case w.unknown():
			o.odd = true
		case w.text == "--":
			return i + 1
		case o.w.assigns && assigns(w.text):
			name, value, _ := strings.Cut(w.text, "=")
			o.odd = o.odd || !w.plain || !harmlessVariable(name, value)
		case w.text == "-" && o.w.through && o.w.assigns: // as in env -i
			o.odd = true
		case strings.HasPrefix(w.text, "--"):
			i += o.long(w.text, i)
		case len(w.text) > 1 && w.text[0] == '-':
			i += o.short(w.text, i)
		default:
			return i
		}
	}
	return i
}

// long reads the long option at the index at, and returns how many further words belong to the option. A shortened option is odd, and is
// taken for the first option that it begins.
func (o *options) long(text string, at int) int {
	name, value, inline := strings.Cut(text, "=")
	known := strings.Contains(" "+o.w.long, " "+name+" ") || strings.Contains(" "+o.w.bare, " "+name+" ")
	o.odd = o.odd || name == "--chdir" || name == "--split-string" || name == "--argv0" || name == "--output" || o.w.through && !known
	if strings.HasPrefix("--split-string", name) && o.w.assigns && o.w.through {
		o.split(value, inline, at)
	}
	if strings.Contains(" "+o.w.long, " "+name) && !inline {
		return 1
	}
	return 0
}

func (o *options) short(text string, at int) int {
	o.odd = o.odd || strings.ContainsAny(text, "CSofi")
	for i := 1; i < len(text); i++ {
		letter, value := text[i], text[i+1:]
		if strings.IndexByte(o.w.takes, letter) < 0 {
			o.odd = o.odd || o.w.through && strings.IndexByte(o.w.letters, letter) < 0
			continue
		}
		if letter == 'S' {
			o.split(value, value != "", at)
		}
		o.odd = o.odd || o.w.assigns && o.w.through && letter != 'u' // the option may belong to another program
		if value == "" {
			return 1
		}
		return 0
	}
	return 0
}

// split takes the text of env -S 'a b' apart, whose words are a command.
func (o *options) split(text string, inline bool, at int) {
	if !inline && at+1 < len(o.p.words) {
		text = o.p.words[at+1].text
	}
	o.p.within = append(o.p.within, o.r.script(text, o.depth+1)...)
}

// assigns reports whether s has the form NAME=value.
func assigns(s string) bool {
	name, _, found := strings.Cut(s, "=")
	return found && name != "" && strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

func isShell(name string) bool {
	switch strings.TrimSuffix(lower(name), ".exe") {
	case "sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish", "csh", "tcsh", "pwsh", "powershell", "cmd", "nu", "elvish", "xonsh":
		return true
	}
	return false
}

// interprets reports whether the program runs its input.
func interprets(name string) bool {
	name = strings.TrimRight(name, "0123456789.")
	switch name {
	case "python", "pypy", "node", "nodejs", "deno", "bun", "perl", "ruby", "php", "lua", "luajit", "tclsh", "osascript", "rscript", "psql", "mysql", "sqlite", "at", "batch", "crontab", "ed", "gdb", "ssh", "docker", "kubectl", "make", "bc", "awk", "source":
		return true
	}
	return isShell(name)
}

// readsStdin reports whether the words name no script, so that the program runs its input.
func (r *reading) readsStdin(words []word) bool {
	for _, w := range words[1:] {
		if w.text == "-" || w.text == "/dev/stdin" || w.text == "-s" || w.lost {
			return true
		}
		if !strings.HasPrefix(w.text, "-") {
			return false
		}
	}
	return true
}

// shell takes the script of sh -c '…' apart.
func (r *reading) shell(p *part, depth int, fed bool) {
	p.fixed = len(p.words)
	i, scripted, odd := shellOptions(p.words)
	switch {
	case scripted && i < len(p.words) && !p.words[i].lost:
		p.within = append(p.within, r.script(p.words[i].text, depth+1)...)
		p.through = !odd && posix(p.words[0].text) && !slices.ContainsFunc(p.words, func(w word) bool { return !w.plain })
	case scripted:
	case i >= len(p.words) || p.words[i].text == "-" || p.words[i].text == "/dev/stdin" || flagIs(p.words, "-s"):
		p.fed = fed
		p.doubt = "pipe_to_shell"
	default:
		p.fixed = i + 1 // a script by its name
	}
}

// shellOptions returns the index of the first word behind the options of a shell, whether that word is a script, and whether an option
// may change how the script is read.
func shellOptions(words []word) (i int, scripted, odd bool) {
	for i = 1; i < len(words); i++ {
		text := words[i].text
		if words[i].lost || len(text) < 2 || text == "--" || text[0] != '-' && text[0] != '+' {
			break
		}
		if strings.HasPrefix(text, "--") || strings.Trim(text[1:], "celux") != "" {
			odd = true
		}
		scripted = scripted || text[1] != '-' && strings.Contains(text, "c")
		if strings.HasSuffix(text, "o") || strings.HasSuffix(text, "O") {
			i++
		}
	}
	if i < len(words) && words[i].text == "--" {
		i++
	}
	return i, scripted, odd
}

// posix reports whether the shell reads a command as this package does. Where zsh differs, the construct is a doubt anyhow.
func posix(name string) bool {
	switch name {
	case "sh", "bash", "dash", "zsh", "ash", "/bin/sh", "/bin/bash", "/bin/zsh", "/bin/dash", "/usr/bin/bash", "/usr/bin/zsh", "/usr/bin/sh":
		return true
	}
	return false
}

// evaluates takes the texts apart that a command such as eval has a shell run.
func (r *reading) evaluates(p *part, name string, depth int) {
	var texts []string
	for _, w := range p.words[1:] {
		if !w.lost {
			texts = append(texts, w.text)
		}
	}
	switch name {
	case "trap":
		if len(texts) > 0 {
			texts = texts[:1]
		}
	case "alias":
		for i, t := range texts {
			_, texts[i], _ = strings.Cut(t, "=")
		}
	}
	if len(texts) > 0 {
		p.within = append(p.within, r.script(strings.Join(texts, " "), depth+1)...)
	}
}

// script1 takes the text behind the option apart.
func (r *reading) script1(p *part, option string, depth int) {
	p.fixed = len(p.words)
	for i, w := range p.words[:len(p.words)-1] {
		if w.text == option && !p.words[i+1].lost {
			p.within = append(p.within, r.script(p.words[i+1].text, depth+1)...)
		}
	}
}

// starters reads the commands in the operands of a program that starts programs by them, as far as they are known to be commands; see
// startsBy.
func (r *reading) starters(p *part, name string, depth int) {
	for _, w := range p.words[1:] {
		kind, command, _ := strings.Cut(w.text, ":")
		switch {
		case name == "socat" && slices.Contains([]string{"exec", "system", "shell"}, lower(kind)):
			command, _, _ = strings.Cut(command, ",") // options of the address
			p.within = append(p.within, r.script(command, depth+1)...)
		case strings.ContainsAny(strings.TrimSpace(w.text), " \t\n;&|"):
			p.within = append(p.within, r.script(w.text, depth+1)...)
		}
	}
}

// finds takes the commands apart that find runs for each file.
func (r *reading) finds(p *part, depth int) {
	for i := 1; i < len(p.words); i++ {
		switch p.words[i].text {
		case "-exec", "-execdir", "-ok", "-okdir", "-x", "-X", "--exec", "--exec-batch":
		default:
			continue
		}
		inner := []word{}
		for i++; i < len(p.words) && p.words[i].text != ";" && p.words[i].text != "+"; i++ {
			w := p.words[i]
			if strings.Contains(w.text, "{}") {
				w = word{text: "{}", lost: true, why: "arguments", glob: -1}
			}
			inner = append(inner, w)
		}
		p.fixed = len(p.words)
		if len(inner) > 0 {
			p.within = append(p.within, r.run(inner, depth+1, false))
		}
	}
}
