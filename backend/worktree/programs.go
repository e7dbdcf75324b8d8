package worktree

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"deskhand/backend/git"
)

// A repository's own configuration can name programs. The configuration does not travel with a clone, but an unpacked directory contains
// what its maker put there, and an agent can write to it. Package git runs none of these programs. Where files would have the wrong
// content without such a program, this package refuses the operation.

// ProgramError reports a program that only the repository names, and without which files would have the wrong content.
type ProgramError struct{ Setting string }

func (e *ProgramError) Error() string { return "the repository has a program run by " + e.Setting }

// MissingFilterError reports a filter that the person has configured, and whose program is not installed.
type MissingFilterError struct{ Setting, Program string }

func (e *MissingFilterError) Error() string {
	return fmt.Sprintf("%s is not installed, which %s has git run for files", e.Program, e.Setting)
}

// checksOut returns a [ProgramError] when a checkout would need a program that only the repository names.
func (l *Library) checksOut(ctx context.Context, at run) error {
	list, err := git.Foreign(ctx, l.processes, l.command(ctx, at))
	if err != nil {
		return l.closedOr(err)
	}
	_, err = checksOut(list)
	return err
}

// checksOut is [Library.checksOut] for settings that only the repository has. named is the setting because of which nothing is fetched.
func checksOut(foreign []git.Setting) (named string, err error) {
	for _, s := range foreign {
		section, _, _ := strings.Cut(s.Key, ".")
		switch {
		case section == "filter" && !strings.HasSuffix(s.Key, ".clean"), section == "lfs":
			return "", &ProgramError{Setting: s.Key}
		case section == "remote" && strings.HasSuffix(s.Key, ".uploadpack"):
			named = s.Key
		}
	}
	return named, nil
}

// filtersNothing returns a [ProgramError] when a file, tracked or not, has a filter that only the repository names: without the filter,
// git would store another content.
func (l *Library) filtersNothing(ctx context.Context, at run) error {
	list, err := git.Foreign(ctx, l.processes, l.command(ctx, at))
	if err != nil {
		return l.closedOr(err)
	}
	setting := map[string]string{}
	for _, s := range list {
		if name, is := strings.CutPrefix(s.Key, "filter."); is {
			setting[name[:max(0, strings.LastIndexByte(name, '.'))]] = s.Key
		}
	}
	if len(setting) == 0 {
		return nil
	}
	if at.in, err = l.all(ctx, at, "ls-files", "-z", "--cached", "--others", "--exclude-standard"); err != nil || len(at.in) == 0 {
		return err
	}
	said, err := l.records(ctx, at, "check-attr", "-z", "--stdin", "filter")
	const fields = 3 // the name, "filter" and the filter
	for ; len(said) >= fields; said = said[fields:] {
		if key, is := setting[said[2]]; is {
			return &ProgramError{Setting: key}
		}
	}
	return err
}

func (l *Library) closedOr(err error) error {
	if l.life.Err() != nil {
		return errors.Join(ErrClosed, err)
	}
	return err
}
