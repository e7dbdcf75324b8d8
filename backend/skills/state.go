package skills

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// File is one of a skill.
type File struct {
	Path       string `json:"path"`
	Executable bool   `json:"executable" doc:"It can be run: by its mode, its first line or its name; or it is a text from which agents take commands, or leave to run some"`
	Size       int64  `json:"size"`
	SHA256     string `json:"sha256"`
	Mode       bool   `json:"mode,omitempty" doc:"It is executable by its mode"`
}

// Skill is one that a source has.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Files       []File `json:"files"`
	Problem     string `json:"problem,omitempty" doc:"Why it is not given to agents"`
	Note        string `json:"note,omitempty" doc:"What is odd about it"`
	Digest      string `json:"digest,omitempty" doc:"Of its name and files"`
}

// How far an entry's sources are.
const (
	Resolved   = "resolved"   // all are there
	Unresolved = "unresolved" // one at least was never fetched
	Failed     = "failed"     // one at least cannot be had
)

// State is what there is of an entry.
type State struct {
	State  string  `json:"state" enum:"resolved,unresolved,failed"`
	Commit string  `json:"commit,omitempty" doc:"That the source is pinned to; of several sources, one after the other"`
	Detail string  `json:"detail,omitempty" doc:"Why it failed"`
	Skills []Skill `json:"skills"`

	sources []shownSource
}

// shownSource is what a person is told of a source.
type shownSource struct {
	Source Source
	Commit string
	Skills []Skill
}

// Shown is what a person approves before the entry has an effect, and the hash of just that.
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

// shownItem is what of a source counts for the hash. The commit of one that holds nothing to be run does not: then there is nothing to
// be asked anew.
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

// Shown is what a person approves who knows nothing but the sources: that they may be fetched.
func (e Entry) Shown() (hash, detail string) {
	s := State{State: Unresolved}
	for _, src := range e.Sources {
		s.sources = append(s.sources, shownSource{Source: src})
	}
	return s.Shown()
}

// depth is how much is done to know a state.
type depth int

const (
	look    depth = iota // nothing is started, nothing is written
	missing              // what was never fetched is
	anew                 // everything is fetched
	keep                 // nothing new is fetched, and everything is in the cache when it is over
)

// Look tells what there is of an entry, without starting anything.
func (l *Library) Look(ctx context.Context, directory string, e Entry) State {
	return l.resolve(ctx, directory, e, look)
}

// Complete fetches the sources that were never fetched. Whoever calls it knows that they are approved.
func (l *Library) Complete(ctx context.Context, directory string, e Entry) State {
	return l.resolve(ctx, directory, e, missing)
}

// Fetch fetches every source anew, and moves its pin to where its ref leads now. The end of ctx ends it, and leaves the pins of sources
// that were not fetched yet where they were.
func (l *Library) Fetch(ctx context.Context, directory string, e Entry) (State, error) {
	s := l.resolve(ctx, directory, e, anew)
	return s, ctx.Err()
}

// Keep is Look that also sees to it that the files of all skills are in the cache as the state says, to be linked.
func (l *Library) Keep(ctx context.Context, directory string, e Entry) State {
	return l.resolve(ctx, directory, e, keep)
}

func (l *Library) resolve(ctx context.Context, directory string, e Entry, how depth) State {
	out := State{State: Resolved, Skills: []Skill{}}
	var commits, details []string
	names := map[string]string{} // folded -> as it is
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

// taken is the problem of a skill, in view of the names that others have.
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

// source resolves one.
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
	if err != nil && how == anew && pinned { // what was there stays
		p, _ = l.pin(key)
	}
	return p.Commit, p.Skills, err
}
