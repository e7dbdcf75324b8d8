package worktree

import (
	"context"
	"slices"
	"strings"
)

// A repository's own configuration can name programs. It does not travel with a clone, but an unpacked directory has what its maker wrote
// there. A plan is made of directories that nobody has approved: it runs none of them. Making a work tree runs none either, but those that
// the person has named in a configuration of their own, or that are known to be harmless.

// ProgramError tells of a program that making a work tree would run, and that the repository alone names.
type ProgramError struct{ Setting string }

func (e *ProgramError) Error() string { return "the repository has a program run by " + e.Setting }

// setting is one of git's configuration.
type setting struct{ scope, key, value string }

// local tells whether it is the repository's, rather than the person's.
func (s setting) local() bool { return s.scope == "local" || s.scope == "worktree" }

// settings that may name programs.
func (l *Library) naming(ctx context.Context, at run) ([]setting, error) {
	const which = `^(filter|hook|lfs|credential|remote)\.|^core\.(askpass|sshcommand|alternaterefscommand)$`
	said, err := l.records(ctx, at, "config", "--null", "--show-scope", "--get-regexp", which)
	if ended(err) {
		return nil, nil // there are none
	}
	var list []setting
	for i := 0; i+1 < len(said); i += 2 {
		key, value, _ := strings.Cut(said[i+1], "\n")
		list = append(list, setting{said[i], key, value})
	}
	return list, err
}

// silent is a run that starts no filter and no hook, whoever has named it.
func (l *Library) silent(ctx context.Context, at run) (run, error) {
	list, err := l.naming(ctx, at)
	for _, s := range list {
		switch section, _, _ := strings.Cut(s.key, "."); section {
		case "filter":
			at.set = append(at.set, [2]string{s.key, ""})
		case "hook":
			at.set = append(at.set, off(s.key))
		}
	}
	return at, err
}

// ours is a run that starts what the person has named, and nothing that the repository alone does: what is not needed for files to be as
// they are meant is left out, and what is refuses it. named is the setting for which nothing is got from elsewhere.
func (l *Library) ours(ctx context.Context, at run) (_ run, named string, err error) {
	list, err := l.naming(ctx, at)
	if err != nil {
		return at, "", err
	}
	for _, s := range list {
		if !s.local() || s.value == "" || slices.ContainsFunc(list, func(o setting) bool { return !o.local() && o.key == s.key && o.value == s.value }) {
			continue
		}
		if strings.HasPrefix(s.key, "remote.") && strings.HasSuffix(s.key, ".uploadpack") { // of two that are set the first counts
			at.offline, named = true, s.key
			continue
		}
		instead, refused := s.instead(list)
		if refused {
			return at, "", &ProgramError{Setting: s.key}
		}
		at.set = append(at.set, instead...)
	}
	return at, named, nil
}

// instead is what a setting of the repository is replaced by while a work tree is made. Refused are those without which files would not be
// what they are meant to be.
func (s setting) instead(all []setting) (set [][2]string, refused bool) {
	section, rest, _ := strings.Cut(s.key, ".")
	name := rest[strings.LastIndexByte(rest, '.')+1:]
	switch {
	case section == "filter" && (name == "smudge" || name == "process"):
		return nil, !harmless(s.value)
	case section == "lfs" && (strings.HasPrefix(rest, "extension.") && (name == "smudge" || name == "clean") || strings.HasPrefix(rest, "customtransfer.") && name == "path"):
		return nil, true
	case section == "hook":
		return [][2]string{off(s.key)}, false
	case name == "sshcommand": // empty would be run, too
		ssh := "ssh"
		for _, other := range all {
			if other.key == s.key && !other.local() {
				ssh = other.value
			}
		}
		return [][2]string{{s.key, ssh}}, false
	case name == "alternaterefscommand":
		return [][2]string{{s.key, ":"}}, false
	case section == "filter" && name == "clean", section == "credential" && name == "helper", name == "askpass":
		return [][2]string{{s.key, ""}}, false
	}
	return nil, false
}

// off is what keeps a hook that is configured from running; where hooks lie in a folder, core.hooksPath does.
func off(key string) [2]string {
	return [2]string{key[:strings.LastIndexByte(key, '.')] + ".enabled", "false"}
}

// harmless are filters that tools write into repositories: of git-lfs, which a person has installed where it runs, and no filter at all.
func harmless(command string) bool {
	return slices.Contains([]string{
		"cat", "git-lfs smudge -- %f", "git-lfs smudge --skip -- %f", "git-lfs filter-process", "git-lfs filter-process --skip",
	}, command)
}
