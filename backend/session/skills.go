package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deskhand/backend/config"
	"deskhand/backend/skills"
	"deskhand/backend/transcript"
)

// SkillList is the skills of a directory.
type SkillList struct {
	Items   []SkillEntry `json:"items"`
	Path    string       `json:"path" doc:"The file that they are in, which need not be there"`
	Problem string       `json:"problem,omitempty" doc:"What of the file cannot be read, with the line where that is known; it is never overwritten then"`
}

// SkillEntry is one entry of it: sources, and the skills that they have.
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

// skillEntry is what an Executable of kind skill is about.
type skillEntry struct {
	entry skills.Entry
	form  json.RawMessage
	state skills.State
}

// readSkills reads the entries of skills.json, by name, and looks what there is of them. Nothing is started. Beside those that can be
// used it tells of the others.
func (c *Client) readSkills(ctx context.Context, root *os.Root, directory string) ([]Executable, error) {
	entries, err := config.Open(root, c.cfg.Replace).List(ctx, config.Skills)
	var list []Executable
	reading := reading{begun: time.Now()}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		e, broken := skills.Parse(name, entries[name])
		if broken != nil {
			err = errors.Join(err, broken)
			continue
		}
		if reading.full(ctx) {
			continue
		}
		if found := c.skillExecutable(skillEntry{e, entries[name], c.cfg.Skills.Look(ctx, directory, e)}); reading.takes(found) {
			list = append(list, found)
		}
	}
	return list, errors.Join(err, reading.problem())
}

func (c *Client) skillExecutable(e skillEntry) Executable {
	hash, detail := e.state.Shown()
	return Executable{Kind: "skill", Name: e.entry.Name, Hash: hash, Detail: c.secret.KnownOnly(detail), skill: &e}
}

// mayFetch is what is approved of an entry whose sources may be fetched.
func (c *Client) mayFetch(e skills.Entry) Executable {
	hash, detail := e.Shown()
	return Executable{Kind: "skill", Name: e.Name, Hash: hash, Detail: c.secret.KnownOnly(detail)}
}

// findSkills finds the directory's skills as what they would bring.
func (c *Client) findSkills(ctx context.Context, directory string) ([]Executable, []transcript.Notice) {
	if c.cfg.Skills == nil {
		return nil, nil
	}
	root, err := openDirectory(directory)
	if err != nil {
		return nil, nil // which the start tells by itself
	}
	defer root.Close()
	list, err := c.readSkills(ctx, root, directory)
	if err == nil || ctx.Err() != nil {
		return list, nil
	}
	return list, []transcript.Notice{{Severity: "error", Title: "Some skills of this directory cannot be read; the agent does not get them", Description: transcript.ClipText(err.Error())}}
}

// useful leaves out what the agent could do nothing with: nobody is asked about it.
func (c *Client) useful(agent string, found []Executable) ([]Executable, []transcript.Notice) {
	if len(c.cfg.Agents.Quirks(agent).SkillDirs) > 0 {
		return found, nil
	}
	var left []string
	for i := range found {
		if found[i].Kind == "skill" {
			found[i].off = true
			left = append(left, found[i].Name)
		}
	}
	if len(left) == 0 {
		return found, nil
	}
	title := fmt.Sprintf("The skills of this directory were not given to %s: it is not known to read any", c.cfg.Agents.Name(agent))
	return found, []transcript.Notice{{Severity: "info", Title: title, Description: strings.Join(left, ", ")}}
}

// giveSkills brings the skills that were approved to where the agent reads them, for a user of the links. What was never fetched is
// fetched, and where that brings programs that nobody was shown, they are shown. It is false when the generation has ended meanwhile.
func (a *agentProcess) giveSkills(agent, cwd, user string, taken []Executable) bool {
	c, directory := a.v.c, filepath.Clean(cwd)
	taken = slices.DeleteFunc(slices.Clone(taken), func(e Executable) bool { return e.skill == nil })
	if len(taken) == 0 {
		return true
	}
	ready, ok := a.fetchSkills(directory, taken)
	if !ok {
		return false
	}
	var give []skills.Skill
	var notices []transcript.Notice
	for _, e := range ready {
		state := c.cfg.Skills.Keep(a.ctx, directory, e.skill.entry)
		notices = append(notices, skillNotices(e.Name, state)...)
		hash, _ := state.Shown()
		if hash != e.Hash && state.State != skills.Failed { // else it is said above
			notices = append(notices, transcript.Notice{
				Severity: "warning", Title: fmt.Sprintf("The skills of %q have changed since they were approved; the agent does not get them", e.Name),
			})
		}
		if hash != e.Hash {
			continue
		}
		give = append(give, state.Skills...)
	}
	a.mayRead(give)
	for _, note := range c.cfg.Skills.Link(a.ctx, user, directory, c.cfg.Agents.Quirks(agent).SkillDirs, give) {
		notices = append(notices, transcript.Notice{Severity: "warning", Title: "A skill was not given to the agent", Description: note})
	}
	return a.post(func() { a.tell(notices) })
}

// fetchSkills fetches what was never fetched, and has a person asked about what nobody was shown: what that brings, and what has changed
// while the person read.
func (a *agentProcess) fetchSkills(directory string, taken []Executable) (ready []Executable, ok bool) {
	c := a.v.c
	var changed []Executable
	for _, e := range taken {
		now := *e.skill
		if now.state.State == skills.Unresolved && !a.post(func() {
			a.tell([]transcript.Notice{{Severity: "info", Title: fmt.Sprintf("Fetching the skills of %q", e.Name)}})
		}) {
			return nil, false
		}
		now.state = c.cfg.Skills.Complete(a.ctx, directory, now.entry)
		if a.ctx.Err() != nil {
			return nil, false
		}
		after := c.skillExecutable(now)
		if after.Hash == e.Hash {
			ready = append(ready, after)
		} else {
			changed = append(changed, after)
		}
	}
	if len(changed) == 0 {
		return ready, true
	}
	if err := c.judge(a.ctx, directory, changed); err != nil {
		c.cfg.Logger.Error("approvals cannot be read", "directory", directory, "error", err)
	}
	more, ok := a.settle(changed, nil)
	return append(ready, more...), ok
}

// skillNotices are what of an entry an agent does not get, and why.
func skillNotices(name string, s skills.State) (list []transcript.Notice) {
	if s.Detail != "" {
		list = append(list, transcript.Notice{Severity: "warning", Title: fmt.Sprintf("Not all skills of %q could be got", name), Description: s.Detail})
	}
	var odd []string
	for _, sk := range s.Skills {
		if sk.Problem == "" && sk.Note != "" {
			odd = append(odd, Readable(sk.Name)+": "+sk.Note)
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

// digests are of skills.
type digests map[string]bool

func (d digests) has(digest string) bool { return d[digest] }

// mayRead notes skills that were approved for this start. Others that stand there for another session are asked about: the agent reads them
// all the same.
func (a *agentProcess) mayRead(list []skills.Skill) {
	for _, s := range list {
		if s.Problem == "" {
			a.skills[s.Digest] = true
		}
	}
}

// takeSkillsBack removes the links that only this user needed.
func (a *agentProcess) takeSkillsBack(user string) {
	if a.v.c.cfg.Skills != nil {
		a.v.c.cfg.Skills.Unlink(a.ctx, user)
	}
}

// Skills lists the skills of a directory by entry. A broken file is no error: it is shown with what is wrong with it.
func (c *Client) Skills(ctx context.Context, directory string) (SkillList, error) {
	folder, file := config.Place(config.Skills)
	out := SkillList{Items: []SkillEntry{}}
	err := c.configureSkills(directory, func(directory string, root *os.Root) error {
		out.Path = filepath.Join(directory, folder, file)
		list, err := c.readSkills(ctx, root, directory)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			out.Problem = transcript.ClipText(err.Error())
		}
		if err := c.judge(ctx, directory, list); err != nil {
			return err
		}
		for _, e := range list {
			out.Items = append(out.Items, showSkills(e))
		}
		return nil
	})
	return out, err
}

// configureSkills is configure where there are skills at all.
func (c *Client) configureSkills(directory string, f func(directory string, root *os.Root) error) error {
	if c.cfg.Skills == nil {
		return fmt.Errorf("%w: skills are not kept here", ErrNotFound)
	}
	return c.configure(directory, f)
}

func showSkills(e Executable) SkillEntry {
	s := e.skill.state
	return SkillEntry{
		Name: e.Name, Entry: e.skill.form, Approved: e.Approved, State: s.State, Commit: s.Commit, Detail: s.Detail, Skills: s.Skills, Executable: &e,
	}
}

// skillNamed is an entry as it is stored now.
func (c *Client) skillNamed(ctx context.Context, root *os.Root, name string) (skillEntry, error) {
	form, err := config.Open(root, c.cfg.Replace).Get(ctx, config.Skills, name)
	if err != nil {
		return skillEntry{}, err
	}
	e, err := skills.Parse(name, form)
	return skillEntry{entry: e, form: form}, err
}

// showNow looks at an entry and gives it as it is shown.
func (c *Client) showNow(ctx context.Context, directory string, e skillEntry) (SkillEntry, error) {
	list := []Executable{c.skillExecutable(e)}
	if err := c.judge(ctx, directory, list); err != nil {
		return SkillEntry{}, err
	}
	return showSkills(list[0]), nil
}

// PutSkill stores an entry. The person who wrote it has approved by that where its skills come from, and not yet the programs that they
// hold.
func (c *Client) PutSkill(ctx context.Context, directory, name string, entry json.RawMessage) (SkillEntry, error) {
	var shown SkillEntry
	if c.cfg.Skills != nil {
		if err := makeConfigured(directory, config.Skills, name, entry); err != nil {
			return shown, err
		}
	}
	err := c.configureSkills(directory, func(directory string, root *os.Root) error {
		form, err := config.Canonical(config.Skills, entry)
		if err != nil {
			return err
		}
		e, err := skills.Parse(name, form)
		if err != nil {
			return bad("config.invalid", "detail", err.Error())
		}
		if err := config.Open(root, c.cfg.Replace).Put(ctx, config.Skills, name, form); err != nil {
			return err
		}
		// What was submitted is approved, and not what is read again: another program may have written meanwhile.
		if err := c.saveApprovals(context.WithoutCancel(ctx), directory, []Executable{c.mayFetch(e)}); err != nil {
			return err
		}
		shown, err = c.showNow(ctx, directory, skillEntry{e, form, c.cfg.Skills.Look(ctx, directory, e)})
		return err
	})
	return shown, err
}

// DeleteSkill removes an entry, and forgets what its sources were pinned to; it is nil when there is none.
func (c *Client) DeleteSkill(ctx context.Context, directory, name string) error {
	return c.configureSkills(directory, func(directory string, root *os.Root) error {
		e, unread := c.skillNamed(ctx, root, name)
		if err := config.Open(root, c.cfg.Replace).Delete(ctx, config.Skills, name); err != nil {
			return err // and what is pinned stays where it is
		}
		if unread == nil {
			c.cfg.Skills.Forget(directory, e.entry)
		}
		return nil
	})
}

// FetchSkill fetches the sources of an entry anew: only by this, and at its first use, does a ref move. The entry must be approved. The
// end of ctx ends it.
func (c *Client) FetchSkill(ctx context.Context, directory, name string) (SkillEntry, error) {
	var shown SkillEntry
	err := c.configureSkills(directory, func(directory string, root *os.Root) error {
		e, err := c.skillNamed(ctx, root, name)
		if err != nil {
			return err
		}
		e.state = c.cfg.Skills.Look(ctx, directory, e.entry)
		list := []Executable{c.skillExecutable(e), c.mayFetch(e.entry)}
		if err := c.judge(ctx, directory, list); err != nil {
			return err
		}
		if !list[0].Approved && !list[1].Approved {
			return &RefusedError{Code: "config.unapproved", Params: map[string]string{"name": name}}
		}
		if e.state, err = c.cfg.Skills.Fetch(ctx, directory, e.entry); err != nil {
			return err
		}
		shown, err = c.showNow(ctx, directory, e)
		return err
	})
	return shown, err
}

// SkillFile gives a text file of a skill, to be read by a person.
func (c *Client) SkillFile(ctx context.Context, directory, name, skill, file string) (string, error) {
	var text string
	err := c.configureSkills(directory, func(directory string, root *os.Root) error {
		e, err := c.skillNamed(ctx, root, name)
		if err != nil {
			return err
		}
		text, err = c.cfg.Skills.Text(ctx, directory, e.entry, skill, file)
		switch {
		case errors.Is(err, skills.ErrNotFound):
			return fmt.Errorf("%w: %w", ErrNotFound, err)
		case errors.Is(err, skills.ErrText):
			return bad("skill.no_text", "detail", err.Error())
		case err != nil:
			return &RefusedError{Code: "skill.unreadable", Params: map[string]string{"detail": err.Error()}}
		}
		return nil
	})
	return text, err
}
