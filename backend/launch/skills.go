package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"deskhand/backend/config"
	"deskhand/backend/permission"
	"deskhand/backend/refusal"
	"deskhand/backend/skills"
	"deskhand/backend/transcript"
)

// SkillList is the skills of a directory.
type SkillList struct {
	Items   []SkillEntry `json:"items"`
	Path    string       `json:"path" doc:"The file that they are in, which need not be there"`
	Problem string       `json:"problem,omitempty" doc:"What of the file cannot be read, with the line where that is known; it is never overwritten then"`
}

// SkillEntry is an entry of the skills of a directory: sources, and the skills that the sources have.
type SkillEntry struct {
	Name       string          `json:"name"`
	Entry      json.RawMessage `json:"entry" doc:"In canonical form"`
	Approved   bool            `json:"approved" doc:"Agents get it; before it was ever fetched: it may be fetched"`
	State      string          `json:"state" enum:"resolved,unresolved,failed" doc:"Unresolved: a source was never fetched. Failed: a source cannot be had; what there is of the others is used"`
	Commit     string          `json:"commit,omitempty" doc:"That the source is pinned to; of several sources, one after the other"`
	Detail     string          `json:"detail,omitempty" doc:"Why it failed"`
	Skills     []skills.Skill  `json:"skills"`
	Executable *Executable     `json:"executable,omitempty" doc:"What is approved of it"`
}

// skillEntry is the entry of an Executable of kind skill, and the state of the entry's sources.
type skillEntry struct {
	entry skills.Entry
	form  json.RawMessage // canonical
	state skills.State
	base  string // the folder where relative sources begin
	scope string // of the Executable
}

// readSkills reads the entries of skills.json, by name, but for those whose names are taken, with the skills that are on the disk. Nothing is
// fetched. The error tells of the entries that are left out.
func (g *Gate) readSkills(ctx context.Context, at *entries, taken map[string]bool) ([]Executable, error) {
	entries, err := at.List(ctx, config.Skills)
	var list []Executable
	reading := reading{begun: time.Now()}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if taken[name] {
			continue
		}
		e, broken := skills.Parse(name, entries[name])
		if broken != nil {
			err = errors.Join(err, broken)
			continue
		}
		if reading.full(ctx) {
			continue
		}
		if found := g.ofSkills(g.lookAt(ctx, at, e, entries[name])); reading.takes(found) {
			list = append(list, found)
		}
	}
	return list, errors.Join(err, reading.problem())
}

// lookAt returns an entry with the state of the entry's sources, and fetches nothing.
func (g *Gate) lookAt(ctx context.Context, at *entries, e skills.Entry, form json.RawMessage) skillEntry {
	return skillEntry{entry: e, form: form, state: g.deps.Skills.Look(ctx, at.base, e), base: at.base, scope: at.scope()}
}

// ofSkills returns the executable of an entry in its present state.
func (g *Gate) ofSkills(e skillEntry) Executable {
	hash, detail := e.state.Shown()
	return Executable{Scope: e.scope, Kind: "skill", Name: e.entry.Name, Hash: hash, Detail: g.deps.Secrets.KnownOnly(detail), skill: &e}
}

// ofSources returns the executable whose approval lets the sources of an entry be fetched.
func (g *Gate) ofSources(at *entries, e skills.Entry) Executable {
	hash, detail := e.Shown()
	return Executable{Scope: at.scope(), Kind: "skill", Name: e.Name, Hash: hash, Detail: g.deps.Secrets.KnownOnly(detail)}
}

// skillNotices are about the skills of an entry that an agent does not get, or gets otherwise than written, with the reasons.
func skillNotices(name string, s skills.State) (list []transcript.Notice) {
	if s.Detail != "" {
		list = append(list, transcript.Notice{Severity: "warning", Title: fmt.Sprintf("Not all skills of %q could be got", name), Description: s.Detail})
	}
	var odd []string
	for _, sk := range s.Skills {
		if sk.Problem == "" && sk.Note != "" {
			odd = append(odd, permission.Readable(sk.Name)+": "+sk.Note)
		}
		if sk.Problem != "" {
			list = append(list, transcript.Notice{Severity: "warning", Title: fmt.Sprintf("The skill %q of %q was not given to the agent", sk.Name, name), Description: sk.Problem})
		}
	}
	if len(odd) > 0 {
		list = append(list, transcript.Notice{Severity: "info", Title: fmt.Sprintf("Some skills of %q were given to the agent otherwise than they are written", name), Description: transcript.ClipText(strings.Join(odd, "\n"))})
	}
	return list
}

// Skills lists the skills of a directory, or of AllProjects, by entry. A broken file is no error: Problem tells of the file.
func (g *Gate) Skills(ctx context.Context, directory string) (SkillList, error) {
	out := SkillList{Items: []SkillEntry{}}
	err := g.configureSkills(directory, func(at *entries) error {
		out.Path = at.path(config.Skills)
		list, problem, err := g.listed(ctx, at, g.readSkills)
		out.Problem = problem
		for _, e := range list {
			out.Items = append(out.Items, showSkills(e))
		}
		return err
	})
	return out, err
}

// configureSkills is configure for the file of skills. Without a library of skills, configureSkills returns ErrNotFound.
func (g *Gate) configureSkills(directory string, f func(at *entries) error) error {
	if g.deps.Skills == nil {
		return fmt.Errorf("%w: skills are not kept here", refusal.ErrNotFound)
	}
	return g.configure(directory, f)
}

func showSkills(e Executable) SkillEntry {
	s := e.skill.state
	return SkillEntry{
		Name: e.Name, Entry: e.skill.form, Approved: e.Approved, State: s.State, Commit: s.Commit, Detail: s.Detail, Skills: s.Skills, Executable: &e,
	}
}

// skillNamed returns a stored entry, with the state of the entry's sources.
func (g *Gate) skillNamed(ctx context.Context, at *entries, name string) (skillEntry, error) {
	form, err := at.Get(ctx, config.Skills, name)
	if err != nil {
		return skillEntry{}, err
	}
	e, err := skills.Parse(name, form)
	if err != nil {
		return skillEntry{}, err
	}
	return g.lookAt(ctx, at, e, form), nil
}

// showNow judges an entry and returns the record of the entry.
func (g *Gate) showNow(ctx context.Context, at *entries, e skillEntry) (SkillEntry, error) {
	list := []Executable{g.ofSkills(e)}
	if err := g.judge(ctx, at.directory, list); err != nil {
		return SkillEntry{}, err
	}
	return showSkills(list[0]), nil
}

// PutSkill stores an entry. The person who wrote the entry approves by that the sources of the skills, and not the programs in the skills.
func (g *Gate) PutSkill(ctx context.Context, directory, name string, entry json.RawMessage) (SkillEntry, error) {
	var shown SkillEntry
	if g.deps.Skills != nil {
		if err := g.makeDirectory(directory, config.Skills, name, entry); err != nil {
			return shown, err
		}
	}
	err := g.configureSkills(directory, func(at *entries) error {
		form, err := config.Canonical(config.Skills, entry)
		if err != nil {
			return err
		}
		e, err := skills.Parse(name, form)
		if err != nil {
			return refusal.Bad("config.invalid", "detail", err.Error())
		}
		if err := at.Put(ctx, config.Skills, name, form); err != nil {
			return err
		}
		// The submitted content is approved, and the file is not read again: another program may have written meanwhile.
		if err := g.approve(context.WithoutCancel(ctx), at.directory, []Executable{g.ofSources(at, e)}); err != nil {
			return err
		}
		shown, err = g.showNow(ctx, at, g.lookAt(ctx, at, e, form))
		return err
	})
	return shown, err
}

// DeleteSkill removes an entry and the pins of the entry's sources. A missing entry is no error.
func (g *Gate) DeleteSkill(ctx context.Context, directory, name string) error {
	return g.configureSkills(directory, func(at *entries) error {
		e, unread := g.skillNamed(ctx, at, name)
		if err := at.Delete(ctx, config.Skills, name); err != nil {
			return err // the pins stay
		}
		if unread == nil {
			g.deps.Skills.Forget(at.base, e.entry)
		}
		return nil
	})
}

// FetchSkill fetches the sources of an approved entry anew. A ref moves only by FetchSkill, and at the first use of the entry. The end of ctx
// ends the fetch.
func (g *Gate) FetchSkill(ctx context.Context, directory, name string) (SkillEntry, error) {
	var shown SkillEntry
	err := g.configureSkills(directory, func(at *entries) error {
		e, err := g.skillNamed(ctx, at, name)
		if err != nil {
			return err
		}
		list := []Executable{g.ofSkills(e), g.ofSources(at, e.entry)}
		if err := g.judge(ctx, at.directory, list); err != nil {
			return err
		}
		if !list[0].Approved && !list[1].Approved {
			return unapproved(name)
		}
		if e.state, err = g.deps.Skills.Fetch(ctx, at.base, e.entry); err != nil {
			return err
		}
		shown, err = g.showNow(ctx, at, e)
		return err
	})
	return shown, err
}

// SkillFile returns a text file of a skill for a person to read.
func (g *Gate) SkillFile(ctx context.Context, directory, name, skill, file string) (string, error) {
	var text string
	err := g.configureSkills(directory, func(at *entries) error {
		e, err := g.skillNamed(ctx, at, name)
		if err != nil {
			return err
		}
		text, err = g.deps.Skills.Text(ctx, at.base, e.entry, skill, file)
		switch {
		case errors.Is(err, skills.ErrNotFound):
			return fmt.Errorf("%w: %w", refusal.ErrNotFound, err)
		case errors.Is(err, skills.ErrText):
			return refusal.Bad("skill.no_text", "detail", err.Error())
		case err != nil:
			return &refusal.Error{Code: "skill.unreadable", Params: map[string]string{"detail": err.Error()}}
		}
		return nil
	})
	return text, err
}
