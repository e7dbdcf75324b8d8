package rules

import (
	"slices"
	"strings"

	"deskhand/backend/autorun"
)

// builtinPrefix begins the ids of the built-in rules.
const builtinPrefix = "builtin:"

// Builtin is a rule that is always in force and that nobody can change. Its pattern is code.
type Builtin struct {
	ID     string
	Effect Effect
	Kind   Kind
	Text   string // the cases that the rule catches, as text for a person
}

// Builtins returns the built-in rules, those that deny first.
func Builtins() []Builtin {
	return []Builtin{
		{builtinPrefix + "remove_all", Deny, Execute, "Removing /, a directory of the system, the home directory, the session's directory or what it is in, with all that they hold (rm -r, find -delete)"},
		{builtinPrefix + "wipe_device", Deny, Execute, "Writing to a disk itself, or making a file system on it (dd of=/dev/…, mkfs, wipefs, > /dev/sda)"},
		{builtinPrefix + "fork_bomb", Deny, Execute, "A function that starts itself over and over"},
		{builtinPrefix + "open_all", Deny, Execute, "Changing owner or rights of /, the home directory or what the session's directory is in, with all that they hold (chmod -R, chown -R)"},
		{builtinPrefix + "shutdown", Deny, Execute, "Ending the system (shutdown, reboot, halt, poweroff, init 0)"},
		{builtinPrefix + "kill_all", Deny, Execute, "Ending every process (kill -9 -1, killall5)"},
		{builtinPrefix + "write_credentials", Deny, Any, "Writing, moving or removing what somebody logs in with (~/.ssh, ~/.aws, ~/.gnupg, ~/.netrc, /etc/passwd, /etc/sudoers…)"},
		{builtinPrefix + "secrets", Ask, Any, "Files that hold secrets, by their names (.env, *.pem, id_rsa, credentials…)"},
		{builtinPrefix + "starts", Ask, Edit, "Changing files by which programs are started (.git, .claude, .mcp.json, .vscode, .envrc, .github/workflows, package.json…)"},
	}
}

// disaster returns the code of the built-in rule that denies the part, or "" when no rule denies the part.
func (r *reading) disaster(p *part) string {
	switch p.kind {
	case Execute:
		return r.disastrous(p)
	case Edit, Delete, Move:
		for _, at := range r.at(p.target) {
			switch {
			case r.credential(at):
				return "write_credentials"
			case device(at):
				return "wipe_device"
			case p.kind != Edit && r.whole(at, false, true):
				return "remove_all"
			}
		}
	default:
	}
	return ""
}

// at returns the paths that target may mean: as written, as Windows reads the name, and behind its links.
func (r *reading) at(target string) []string {
	var list []string
	if target == "" {
		return nil
	}
	for _, dir := range r.dirs {
		told := r.where.absolute(dir, target)
		list = append(list, told)
		if plain := r.where.plain(told); plain != told {
			list = append(list, plain)
		}
		if real := r.where.real(told); real != "" && real != told {
			list = append(list, real)
		}
	}
	return list
}

func (r *reading) disastrous(p *part) string {
	first := p.words[0]
	if first.lost {
		return ""
	}
	name := programName(first.text)
	switch {
	case first.text == bombWord:
		return "fork_bomb"
	case r.endsSystem(name, p.words):
		return "shutdown"
	case r.killsAll(name, p.words):
		return "kill_all"
	case r.wipes(name, p.words):
		return "wipe_device"
	case r.removesAll(name, p):
		return "remove_all"
	case r.opensAll(name, p.words):
		return "open_all"
	case r.writesCredentials(name, p.words):
		return "write_credentials"
	}
	return ""
}

func (r *reading) endsSystem(name string, words []word) bool {
	has := func(list ...string) bool {
		return slices.ContainsFunc(words[1:], func(w word) bool { return slices.Contains(list, lower(w.text)) })
	}
	switch name {
	case "shutdown", "reboot", "halt", "poweroff":
		return !has("--help", "--version", "-c")
	case "init", "telinit":
		return has("0", "6")
	case "systemctl", "loginctl":
		return has("poweroff", "reboot", "halt", "kexec", "soft-reboot")
	}
	return false
}

func (r *reading) killsAll(name string, words []word) bool {
	if name == "killall5" {
		return true
	}
	if name != "kill" || len(words) < 3 {
		return false
	}
	return slices.ContainsFunc(words[2:], func(w word) bool { return w.text == "-1" })
}

// wipes reports whether the command writes to a device.
func (r *reading) wipes(name string, words []word) bool {
	switch {
	case name == "dd":
		return slices.ContainsFunc(words[1:], func(w word) bool {
			to, out := strings.CutPrefix(w.text, "of=")
			return out && slices.ContainsFunc(r.at(to), device)
		})
	case name == "mkfs" || strings.HasPrefix(name, "mkfs.") || strings.HasPrefix(name, "mke2fs") || name == "wipefs" || name == "blkdiscard" || name == "mkswap":
		return len(words) > 1
	case name == "diskutil":
		return len(words) > 1 && (strings.HasPrefix(lower(words[1].text), "erase") || strings.HasPrefix(lower(words[1].text), "partition") || lower(words[1].text) == "zerodisk")
	case name == "format" && len(words) > 1:
		return len(words[1].text) == 2 && words[1].text[1] == ':'
	}
	return slices.Contains([]string{"shred", "tee", "cp", "mv", "install", "sfdisk", "sgdisk", "parted", "fdisk", "truncate"}, name) &&
		r.operands(words, func(p string, _ bool) bool { return device(p) })
}

// device reports whether the path is a disk or memory, opened as a file.
func device(p string) bool {
	rest, in := strings.CutPrefix(p, "/dev/")
	if !in {
		return p == "/proc/sysrq-trigger"
	}
	for _, begins := range []string{"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "mapper/", "md", "dm-", "loop", "mem", "kmem", "port", "block/", "nbd"} {
		if strings.HasPrefix(rest, begins) {
			return true
		}
	}
	return false
}

// operands calls each for every word that is no option, as each path that the word may mean, and reports whether a call returned true.
// For a glob, the path is the directory whose files the glob matches.
func (r *reading) operands(words []word, each func(p string, glob bool) bool) bool {
	for _, w := range words[1:] {
		if w.lost || w.text == "" || w.text[0] == '-' {
			continue
		}
		text, glob := w.text, w.glob >= 0
		if glob {
			text = text[:min(w.glob, len(text))]
			text = text[:strings.LastIndexByte(text, '/')+1]
			if text == "" {
				text = "."
			}
		}
		if slices.ContainsFunc(r.at(text), func(p string) bool { return each(p, glob) }) {
			return true
		}
	}
	return false
}

// whole reports whether p is a directory that nobody removes: the root, a directory of the system, a home directory, or a parent of the
// session's directory. With glob, p is the directory whose content is removed; self says that the session's own directory counts as well.
func (r *reading) whole(p string, glob, self bool) bool {
	p = lower(p)
	if p == "/" || len(p) <= 3 && strings.HasSuffix(p, ":") || len(p) == 3 && p[1] == ':' {
		return true
	}
	if home, rest := r.homeOf(p); home != "" && rest == "" {
		return true
	}
	return slices.ContainsFunc(r.where.roots(), func(root string) bool {
		return contains(p, lower(root), !glob && self) || contains(p, lower(r.where.real(root)), !glob && self)
	}) || slices.Contains([]string{
		"/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/opt", "/proc", "/root", "/sbin", "/srv", "/sys", "/usr", "/var",
		"/users", "/system", "/library", "/applications", "/private", "/usr/bin", "/usr/lib", "/usr/local", "/var/lib", "c:/windows", "c:/users", "c:/program files",
	}, p)
}

// contains reports whether dir is below p or, with self, equal to p.
func contains(p, dir string, self bool) bool {
	return dir != "" && below(dir, p) && (dir != p || self)
}

// flag reports whether a word is the short option, alone or among other letters, or a long option, possibly shortened.
func flag(words []word, short string, long ...string) bool {
	return slices.ContainsFunc(words[1:], func(w word) bool {
		switch {
		case w.lost || len(w.text) < 2 || w.text[0] != '-':
			return false
		case strings.HasPrefix(w.text, "--"):
			return slices.ContainsFunc(long, func(l string) bool { return len(w.text) > 3 && strings.HasPrefix(l, w.text) })
		}
		return strings.ContainsAny(w.text, short)
	})
}

func (r *reading) removesAll(name string, p *part) bool {
	words := p.words
	switch name {
	case "rm":
		if flag(words, "", "--no-preserve-root") {
			return true
		}
		return flag(words, "rR", "--recursive") && r.operands(words, func(p string, glob bool) bool { return r.whole(p, glob, true) })
	case "rmdir", "rd", "del", "erase", "remove-item", "srm", "trash", "shred", "mv", "unlink":
		if name == "mv" && len(words) > 2 { // only the sources are removed, not the destination
			words = words[:len(words)-1]
		}
		return r.operands(words, func(p string, glob bool) bool { return r.whole(p, glob, true) })
	case "find", "gfind":
		removes := flagIs(words, "-delete") || slices.ContainsFunc(p.within, func(q *part) bool {
			return slices.Contains([]string{"rm", "shred", "unlink"}, programName(q.words[0].text))
		})
		filtered := slices.ContainsFunc(words, func(w word) bool {
			return slices.Contains([]string{"-name", "-iname", "-path", "-ipath", "-regex", "-newer", "-mtime", "-mmin", "-size", "-empty", "-user"}, w.text)
		})
		return removes && !filtered && r.operands(words, func(p string, glob bool) bool { return r.whole(p, glob, true) })
	}
	return false
}

func flagIs(words []word, text string) bool {
	return slices.ContainsFunc(words, func(w word) bool { return w.text == text })
}

func (r *reading) opensAll(name string, words []word) bool {
	if !slices.Contains([]string{"chmod", "chown", "chgrp", "setfacl", "chattr", "icacls", "takeown"}, name) {
		return false
	}
	return flag(words, "R", "--recursive") && r.operands(words, func(p string, glob bool) bool { return r.whole(p, glob, false) })
}

// writesCredentials reports whether a program that writes to the files named by its arguments is given a file of credentials.
func (r *reading) writesCredentials(name string, words []word) bool {
	hits := func(words []word) bool {
		return r.operands(words, func(p string, _ bool) bool { return r.credential(p) })
	}
	switch name {
	case "rm", "rmdir", "tee", "truncate", "shred", "unlink", "mv", "ln", "touch", "chmod", "chown", "srm":
		return hits(words)
	case "sed", "perl":
		return flag(words, "i", "--in-place") && hits(words)
	case "cp", "install", "rsync", "scp", "gcp":
		for i, w := range words {
			if to, inline := strings.CutPrefix(w.text, "--target-directory="); inline && slices.ContainsFunc(r.at(to), r.credential) {
				return true
			}
			if w.text == "-t" && i+1 < len(words) && slices.ContainsFunc(r.at(words[i+1].text), r.credential) {
				return true
			}
		}
		return len(words) > 2 && hits([]word{words[0], words[len(words)-1]})
	case "dd":
		return slices.ContainsFunc(words[1:], func(w word) bool {
			to, out := strings.CutPrefix(w.text, "of=")
			return out && slices.ContainsFunc(r.at(to), r.credential)
		})
	}
	return false
}

// delicate returns the code of the built-in rule that asks about the part, or "".
func (r *reading) delicate(p *part) string {
	switch {
	case r.secretPart(p):
		return "secrets"
	case (p.kind == Edit || p.kind == Delete || p.kind == Move) && slices.ContainsFunc(r.at(p.target), func(at string) bool { return autorun.Starts(lower(r.within(at))) }):
		return "starts"
	}
	return ""
}

// within returns p relative to the session's directory when p is below that directory, and p otherwise.
func (r *reading) within(p string) string {
	dir := r.where.clean(r.where.Directory)
	if below(p, dir) {
		return strings.TrimPrefix(p[len(dir):], "/")
	}
	return p
}

func (r *reading) secretPart(p *part) bool {
	isSecret := func(at string) bool { return r.secret(r.within(at)) || r.credential(at) }
	switch p.kind {
	case Read, Edit, Delete, Move, Search:
		return slices.ContainsFunc(r.at(p.target), isSecret)
	case Execute:
		if len(p.words) > maxWords {
			return false // Judge asks about such a command anyhow
		}
		return slices.ContainsFunc(p.paths(), func(w word) bool {
			if w.lost || len(w.text) >= longestPath {
				return false
			}
			_, value, _ := strings.Cut(w.text, "=")
			return slices.ContainsFunc([]string{w.text, value}, func(text string) bool {
				text = r.where.unpadded(text)
				if strings.ContainsAny(base(text), " \n\t") { // text ending in a path, such as a commit message
					return slices.ContainsFunc(r.at(text), r.credential)
				}
				return slices.ContainsFunc(r.at(text), isSecret)
			})
		})
	default:
	}
	return false
}

// paths returns the words that may be paths: all but the program's name and the texts for people.
func (p *part) paths() (list []word) {
	args := argumentsOf(p.words, func(int) bool { return false })
	for i, w := range p.words {
		if i > 0 && !args.texts[i] {
			list = append(list, w)
		}
	}
	return list
}

// longestPath is longer than any path that a system opens.
const longestPath = 4096

func (r *reading) outsidePart(p *part) bool {
	switch p.kind {
	case Read, Edit, Delete, Move, Search:
		return slices.ContainsFunc(r.at(p.target), r.outside)
	case Execute:
		return slices.ContainsFunc(p.paths(), func(w word) bool { return !w.lost && r.leads(w.text) })
	default:
	}
	return false
}

// leads reports whether a word contains a path that leads out of the session's directories. The path is the word itself, or stands behind
// a = or behind the letter of an option.
func (r *reading) leads(text string) bool {
	return slices.ContainsFunc(pathsIn(text), func(p string) bool {
		return slices.ContainsFunc(r.dirs, func(dir string) bool { return r.leadsFrom(dir, p) })
	})
}

// pathsIn returns the parts of a word that may be paths.
func pathsIn(text string) []string {
	if text == "" || len(text) >= longestPath || address(text) {
		return nil
	}
	list := []string{text}
	if _, value, found := strings.Cut(text, "="); found && !address(value) {
		list = append(list, value)
	}
	if len(text) > 2 && text[0] == '-' && text[1] != '-' { // such as -C/elsewhere
		list = append(list, text[2:])
		if rest := strings.TrimLeft(text[1:], letters); len(text)-len(rest) <= 4 { // such as -vt/elsewhere; more letters are taken for a long option
			list = append(list, rest)
		}
	}
	if at := strings.LastIndexByte(text, ':'); at > 1 && !slices.ContainsFunc(schemes(), func(s string) bool { return strings.HasSuffix(text[:at], s) && strings.HasPrefix(text[at:], "://") }) {
		list = append(list, text[at+1:]) // such as host:/elsewhere or file:///elsewhere
	}
	for i := range list {
		list[i] = strings.TrimPrefix(list[i], "@")
	}
	return list
}

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// address reports whether a word is the address of another host and therefore no path.
func address(text string) bool {
	return slices.ContainsFunc(schemes(), func(s string) bool { return strings.HasPrefix(text, s+"://") })
}

func schemes() []string { return []string{"http", "https", "ssh", "git"} }

func (r *reading) leadsFrom(dir, p string) bool {
	told := r.where.absolute(dir, p)
	switch {
	case p == "/dev/null" || p == "":
		return false
	case rooted(p) || p == "~" || strings.HasPrefix(p, "~/"):
		return r.outside(told)
	case climbs(p):
		return true
	}
	return r.where.Real != nil && p[0] != '-' && r.where.real(told) != told && r.outside(told) // the path leads out by a link
}

// unproven returns the reason why the * of a pattern must not stand for the word, or "" when the word is harmless.
func (r *reading) unproven(row *program, w word) string {
	switch {
	case w.glob >= 0 && w.why == "glob" && !w.lost:
		if strings.HasPrefix(base(w.text), ".") || strings.HasPrefix(w.text, "-") || strings.Contains(w.text, "/.") || globsHidden(w.text) {
			return "glob"
		}
	case !w.plain:
		return w.why
	}
	switch {
	case hidden(w.text):
		return "hidden_characters"
	case strings.Contains(w.text, "$(") || strings.Contains(w.text, "`") || strings.Contains(w.text, "${"):
		return "substitution" // some programs expand their arguments as a shell does
	case r.leads(w.text), address(w.text) && climbs(w.text) && (row == nil || !row.fetches):
		return "outside_root"
	case r.where.Windows && strings.ContainsAny(w.text, "%^"):
		return "variable" // cmd.exe expands %NAME% and ^
	}
	return ""
}

// globsHidden reports whether a hidden directory's name in a path contains a glob, as in .g*/hooks.
func globsHidden(text string) bool {
	for name := range strings.SplitSeq(text, "/") {
		if strings.HasPrefix(name, ".") && strings.ContainsAny(name, "*?[") {
			return true
		}
	}
	return false
}

func (r *reading) writesStarts(text string) bool {
	return slices.ContainsFunc(pathsIn(text), func(p string) bool {
		return slices.ContainsFunc(r.at(p), func(at string) bool { return autorun.Starts(lower(r.within(at))) })
	})
}
