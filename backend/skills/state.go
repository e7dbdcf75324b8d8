package skills

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// File is a file of a skill.
type File struct {
	Path       string `json:"path"`
	Executable bool   `json:"executable" doc:"The file can be run: by its mode, its first line or its name; or the file is a text from which agents take or run commands"`
	Size       int64  `json:"size"`
	SHA256     string `json:"sha256"`
	Mode       bool   `json:"mode,omitempty" doc:"The file is executable by its mode"`
}

// Skill is a skill of a source.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Files       []File `json:"files"`
	Problem     string `json:"problem,omitempty" doc:"Reason that agents do not get the skill"`
	Note        string `json:"note,omitempty" doc:"Oddity of the skill, for a person to know"`
	Digest      string `json:"digest,omitempty" doc:"SHA-256 of the skill's name and files"`
}

// The states of an entry.
const (
	Resolved   = "resolved"   // all sources are available
	Unresolved = "unresolved" // at least one source was never fetched
	Failed     = "failed"     // at least one source is unavailable
)

// State describes the skills of an entry.
type State struct {
	State  string  `json:"state" enum:"resolved,unresolved,failed"`
	Commit string  `json:"commit,omitempty" doc:"Commit that the source is pinned to; of several sources, their commits one after the other"`
	Detail string  `json:"detail,omitempty" doc:"Reason of a failure"`
	Skills []Skill `json:"skills"`

	sources []shownSource
}

// shownSource is the part of a source that a person sees.
type shownSource struct {
	Source Source
	Commit string
	Skills []Skill
}

// Shown returns the text that a person approves before the entry takes effect, and the hash of exactly that text's facts.
func (s State) Shown() (hash, detail string) {
	var items []shownItem
	var lines []string
	bare := true
	for _, src := range s.sources {
		item, text := src.shown()
		bare = bare && len(item.Run) == 0
		items, lines = append(items, item), append(lines, text...)
	}
	if bare && s.State == Unresolved {
		lines = append(lines, "not fetched yet")
	}
	return digestOf(items), strings.Join(lines, "\n")
}

// shownItem is the part of a source that the hash covers. Without executable files the commit does not count, so that no new approval is
// needed.
type shownItem struct {
	Source Source
	Commit string
	Run    []shownFile
}

type shownFile struct{ Skill, Path, SHA256 string }

func (src shownSource) shown() (shownItem, []string) {
	item, lines := shownItem{Source: src.Source}, []string{src.Source.words()}
	var programs []string
	for _, sk := range src.Skills {
		for _, f := range sk.Files {
			if f.Executable && sk.Problem == "" {
				item.Run = append(item.Run, shownFile{sk.Name, f.Path, f.SHA256})
				programs = append(programs, fmt.Sprintf("  %s (%d bytes, sha256 %.12s…)", quoted(sk.Name+"/"+f.Path), f.Size, f.SHA256))
			}
		}
	}
	if len(programs) == 0 {
		return item, lines
	}
	if src.Commit != "" {
		item.Commit = src.Commit
		lines = append(lines, "  commit "+src.Commit)
	}
	return item, append(append(lines, "  can be run:"), clipped(programs)...)
}

const shownFiles = 100

func clipped(lines []string) []string {
	if len(lines) <= shownFiles {
		return lines
	}
	return append(lines[:shownFiles:shownFiles], fmt.Sprintf("  and %d more", len(lines)-shownFiles))
}

// Shown returns the text and hash for an approval of the sources alone: that they may be fetched.
func (e Entry) Shown() (hash, detail string) {
	s := State{State: Unresolved}
	for _, src := range e.Sources {
		s.sources = append(s.sources, shownSource{Source: src})
	}
	return s.Shown()
}

// depth says how much work resolve may do.
type depth int

const (
	look    depth = iota // starts nothing, writes nothing
	missing              // fetches sources that were never fetched
	anew                 // fetches everything
	keep                 // fetches no new source, and completes the cache
)

// Look returns the state of an entry without starting a program.
func (l *Library) Look(ctx context.Context, directory string, e Entry) State {
	return l.resolve(ctx, directory, e, look)
}

// Complete fetches the sources that were never fetched. The caller must know that they are approved.
func (l *Library) Complete(ctx context.Context, directory string, e Entry) State {
	return l.resolve(ctx, directory, e, missing)
}

// Fetch fetches every source, and moves its pin to the current commit of its ref. When ctx ends, the pins of sources that were not fetched
// yet stay.
func (l *Library) Fetch(ctx context.Context, directory string, e Entry) (State, error) {
	s := l.resolve(ctx, directory, e, anew)
	return s, ctx.Err()
}

// Keep is Look that also makes sure that the cache holds the files of all skills, for linking.
func (l *Library) Keep(ctx context.Context, directory string, e Entry) State {
	return l.resolve(ctx, directory, e, keep)
}

func (l *Library) resolve(ctx context.Context, directory string, e Entry, how depth) State {
	out := State{State: Resolved, Skills: []Skill{}}
	var commits, details []string
	names := map[string]string{} // folded -> as written
	if len(e.Sources) == 0 {
		details = append(details, "it has no sources")
	}
	for _, s := range e.Sources {
		commit, skills, err := l.source(ctx, directory, e, s, how)
		switch {
		case errors.Is(err, errNotFetched):
			if out.State == Resolved {
				out.State = Unresolved
			}
		case err != nil:
			out.State = Failed
			details = append(details, s.words()+": "+err.Error())
		}
		if commit != "" {
			commits = append(commits, commit)
		}
		for n := range skills {
			skills[n].Problem = taken(names, skills[n])
		}
		out.Skills = append(out.Skills, skills...)
		out.sources = append(out.sources, shownSource{s, commit, skills})
	}
	out.Commit, out.Detail = strings.Join(commits, ", "), strings.Join(details, "\n")
	return out
}

// taken returns the problem of a skill, given the names of earlier skills.
func taken(names map[string]string, s Skill) string {
	if s.Problem != "" {
		return s.Problem
	}
	folded := strings.ToLower(s.Name)
	if other, ok := names[folded]; ok {
		return fmt.Sprintf("another skill is called %s", other)
	}
	names[folded] = s.Name
	return ""
}

var errNotFetched = errors.New("not fetched yet")

// source resolves a source.
func (l *Library) source(ctx context.Context, directory string, e Entry, s Source, how depth) (commit string, skills []Skill, err error) {
	at, err := s.place(directory, l.cfg.GitHub)
	if err != nil {
		return "", nil, err
	}
	if at.folder != "" {
		skills, err = l.folder(ctx, at, s, how == keep)
		return "", skills, err
	}
	key := e.key(directory, s)
	p, pinned := l.pin(key)
	switch {
	case how == anew, how == missing && !pinned:
		p, err = l.fetch(ctx, key, at, s, "", how == anew)
	case !pinned:
		if why := l.failure(key); why != "" {
			return "", nil, errors.New(why)
		}
		return "", nil, errNotFetched
	case how == keep && !l.complete(ctx, p.Skills):
		p, err = l.fetch(ctx, key, at, s, p.Commit, true)
	}
	if err != nil && how == anew && pinned { // the earlier pin stays
		p, _ = l.pin(key)
	}
	return p.Commit, p.Skills, err
}
