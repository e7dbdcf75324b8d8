package git

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"deskhand/backend/proxy"
)

// Setting is a setting of git's configuration. Its key has section and name in small letters, and the part in between as written.
type Setting struct {
	Scope      string // local, worktree, global, system…; "" = unknown
	Key, Value string
}

// local reports whether a setting is the repository's own, and not the person's.
func (s Setting) local() bool { return s.Scope == "local" || s.Scope == "worktree" }

// parts returns the section, the part in between, and the name of the key.
func (s Setting) parts() (section, between, name string) {
	section, rest, _ := strings.Cut(s.Key, ".")
	if i := strings.LastIndexByte(rest, '.'); i >= 0 {
		between, rest = rest[:i], rest[i+1:]
	}
	return strings.ToLower(section), between, strings.ToLower(rest)
}

// programs lists, by section, the settings that name a program or a shell command; any value except "" counts. The list is that of
// git-config(1), and of git-lfs-config(5).
func programs() map[string][]string {
	return map[string][]string{
		"alias": {"*"}, "browser": {"cmd", "path"}, "core": {"askpass", "alternaterefscommand", "editor", "gitproxy", "hookspath", "pager", "sshcommand"},
		"credential": {"helper"}, "diff": {"external", "command", "textconv"}, "difftool": {"cmd", "path"}, "filter": {"clean", "process", "smudge"},
		"gc": {"recentobjectshook"}, "gpg": {"program", "defaultkeycommand"}, "guitool": {"cmd"}, "hook": {"command"}, "imap": {"tunnel"},
		"init": {"templatedir"}, "instaweb": {"browser", "httpd", "modulepath"}, "interactive": {"difffilter"},
		"lfs": {"clean", "path", "smudge", "standalonetransferagent"}, "man": {"cmd", "path"}, "merge": {"driver"}, "mergetool": {"cmd", "path"},
		"pager": {"*"}, "remote": {"receivepack", "uploadpack", "vcs"}, "sendemail": {"cccmd", "headercmd", "sendmailcmd", "smtpserver", "tocmd"},
		"sequence": {"editor"}, "tar": {"command"}, "trailer": {"cmd", "command"}, "uploadpack": {"packobjectshook"},
	}
}

// Starts reports whether the setting makes git, or git-lfs, start a program. Switches do not, and neither do settings that tools write into
// repositories and that start a program which a person has installed.
func (s Setting) Starts() bool {
	section, between, name := s.parts()
	names := programs()[section]
	if slices.Contains(names, name) || slices.Contains(names, "*") {
		return s.Value != "" && !s.harmless(section, name)
	}
	switch section {
	case "core":
		return name == "fsmonitor" && s.Value != "" && !boolean(s.Value)
	case "protocol": // ext::COMMAND is an address, and other such helpers can be installed
		return name == "allow" && s.Value != "never" && !slices.Contains(strings.Split(Safe+":git", ":"), between)
	case "submodule":
		return name == "update" && strings.HasPrefix(s.Value, "!") || name == "url" && helped(s.Value)
	case "remote":
		return (name == "url" || name == "pushurl") && helped(s.Value)
	case "url":
		return helped(between)
	}
	return false
}

// helped reports whether a program handles an address: ext::sh -c …
func helped(address string) bool { return strings.Contains(address, "::") }

func boolean(value string) bool {
	return slices.Contains([]string{"", "true", "false", "yes", "no", "on", "off", "0", "1"}, strings.ToLower(value))
}

var (
	// A helper that is part of git, or installed in the same way: git runs git-credential-NAME.
	helperName = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)
	// An alias for a git command, with options that take no values.
	plainAlias = regexp.MustCompile(`^[a-z][a-z-]*(?: (?:--[a-z-]+|-[a-bd-tv-wy-z]+|[A-Z]+|@))*$`)
)

func (s Setting) harmless(section, name string) bool {
	switch section {
	case "filter":
		return slices.Contains([]string{
			"cat", "git-lfs clean -- %f", "git-lfs smudge -- %f", "git-lfs smudge --skip -- %f", "git-lfs filter-process", "git-lfs filter-process --skip",
		}, s.Value)
	case "credential":
		return helperName.MatchString(s.Value)
	case "pager":
		return boolean(s.Value) || s.Value == "cat"
	case "core":
		return name == "pager" && s.Value == "cat"
	case "alias":
		return plainAlias.MatchString(s.Value)
	}
	return false
}

// settings reads the configuration for a command, with all included files. Reading starts no program.
func (c Command) settings(ctx context.Context, processes *proxy.Set, program string) (list []Setting, err error) {
	var out []byte
	c.Args, c.In = []string{"config", "--null", "--show-scope", "--list"}, nil
	c.Read = func(from io.Reader) (err error) {
		out, err = io.ReadAll(from)
		return err
	}
	if err := c.run(ctx, processes, program, nil); err != nil {
		return nil, err
	}
	said := strings.Split(string(out), "\x00")
	for i := 0; i+1 < len(said); i += 2 {
		key, value, _ := strings.Cut(said[i+1], "\n")
		list = append(list, Setting{said[i], key, value})
	}
	return list, nil
}

// foreign returns the settings that name programs and that only the repository has: a person has not configured the same value for all
// repositories. When the repository configures a program for git-lfs, git-lfs itself counts as the repository's program.
func foreign(list []Setting) (out []Setting) {
	persons := func(s Setting) bool {
		return slices.ContainsFunc(list, func(o Setting) bool {
			return !o.local() && o.Scope != "command" && o.Key == s.Key && o.Value == s.Value
		})
	}
	for _, s := range list {
		if s.local() && s.Starts() && !persons(s) {
			out = append(out, s)
		}
	}
	if !slices.ContainsFunc(out, func(s Setting) bool { return strings.HasPrefix(s.Key, "lfs.") }) {
		return out
	}
	for _, s := range list {
		if strings.HasPrefix(s.Key, "filter.") && strings.Contains(s.Value, "lfs") && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// Foreign returns the settings that only the repository has and that name programs. [Run] turns these settings off.
func Foreign(ctx context.Context, processes *proxy.Set, c Command) ([]Setting, error) {
	list, err := read(ctx, processes, c)
	return foreign(list), err
}

// Absent is a filter of the person's configuration whose program is not installed.
type Absent struct {
	Setting Setting
	Program string // a name, or an absolute path
	Told    string // stands in what git says when the filter fails
}

// Missing returns the filters of the person's configuration whose programs are not installed. Git itself reports such a filter only by
// failing later.
func Missing(ctx context.Context, processes *proxy.Set, c Command) (absent []Absent, err error) {
	list, err := read(ctx, processes, c)
	for _, s := range list {
		section, _, name := s.parts()
		if section != "filter" || name == "required" || slices.Contains(foreign(list), s) {
			continue
		}
		words := strings.Fields(s.Value)
		switch {
		case len(words) == 0:
		case len(words) > 1 && words[0] == "git" && subcommand.MatchString(words[1]) && !c.has("git-"+words[1]):
			absent = append(absent, Absent{s, "git-" + words[1], "'" + words[1] + "' is not a git command"})
		case plainProgram.MatchString(words[0]) && !c.has(words[0]), filepath.IsAbs(words[0]) && !exists(words[0]):
			absent = append(absent, Absent{s, words[0], words[0]})
		}
	}
	return absent, err
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// subcommand matches the name of a command of git; its options are none.
var subcommand = regexp.MustCompile(`^[a-z][a-z0-9-]*$`)

// plainProgram matches the name of a program that a shell looks up in PATH, and no builtin of the shell.
var plainProgram = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_.]*-[A-Za-z0-9_.-]+$|^[a-z]{4,}$`)

func (c Command) has(program string) bool {
	file, _ := lookUp(program, c.Environ)
	return file != "" || slices.Contains([]string{"case", "time", "while", "until", "echo", "exec", "eval", "exit", "false", "true", "test", "trap", "type", "export", "command", "printf", "read"}, program)
}

func read(ctx context.Context, processes *proxy.Set, c Command) ([]Setting, error) {
	program, err := find(c.Environ)
	if err != nil {
		return nil, err
	}
	list, err := c.settings(ctx, processes, program)
	if _, failed := errors.AsType[*StatusError](err); failed {
		return nil, nil // the command itself reports the reason
	}
	return list, err
}

// reaches reports whether a setting's program takes part in a fetch or a push, and no other setting can replace the program.
func (s Setting) reaches(push bool) bool {
	section, _, name := s.parts()
	return section == "remote" && (push || name != "receivepack")
}

// instead returns settings that replace programs which must not run.
func (c Command) instead(list []Setting) (set [][2]string) {
	if c.Whose == Unapproved {
		for _, s := range list {
			if section, _, _ := s.parts(); section == "filter" {
				set = append(set, [2]string{s.Key, ""})
			}
		}
	}
	for _, s := range foreign(list) {
		set = append(set, s.instead(list)...)
	}
	return set
}

// instead returns the replacement for a setting of the repository: the person's own, or nothing. Settings of which git takes the first
// (core.gitProxy, remote.NAME.uploadpack) cannot be replaced: the former's protocol is not among the safe ones, and for the latter nothing
// is fetched.
func (s Setting) instead(all []Setting) (set [][2]string) {
	var own []string
	for _, o := range all {
		if o.Key == s.Key && !o.local() && o.Scope != "command" {
			own = append(own, o.Value)
		}
	}
	section, between, name := s.parts()
	switch {
	case section == "filter":
		return [][2]string{{s.Key, ""}, {"filter." + between + ".required", "false"}}
	case section == "hook":
		return [][2]string{{"hook." + between + ".enabled", "false"}}
	case name == "helper": // an empty value restarts the list
		set = [][2]string{{s.Key, ""}}
		for _, value := range own {
			set = append(set, [2]string{s.Key, value})
		}
		return set
	case len(own) > 0:
		return [][2]string{{s.Key, own[len(own)-1]}}
	case name == "sshcommand": // an empty value would be run too
		return [][2]string{{s.Key, "ssh"}}
	case name == "askpass":
		return [][2]string{{s.Key, ""}}
	case section == "diff" && name == "textconv":
		return [][2]string{{s.Key, "cat"}}
	case section == "gpg" && name == "program":
		return [][2]string{{s.Key, cmp.Or(map[string]string{"x509": "gpgsm", "ssh": "ssh-keygen"}[between], "gpg")}}
	case section == "diff", section == "merge", section == "gpg":
		return [][2]string{{s.Key, "false"}}
	}
	return nil // settings of commands that this package does not run, or that are off in every run
}
