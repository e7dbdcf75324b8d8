package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"deskhand/backend/autorun"
	"deskhand/backend/mcp"
	"deskhand/backend/permission"
	"deskhand/backend/skills"
	"deskhand/backend/transcript"
	"deskhand/backend/trust"
)

// The answers of a person to the question about executables that nobody has approved.
const (
	Approve = "approve" // start with the executables; the approval is stored
	Once    = "once"    // start with the executables this time
	Without = "without" // start without the executables
	Decline = "decline" // do not start
)

// The errors of Prepare.
var (
	ErrDeclined  = errors.New("a person does not want the agent to start with what it reads by itself")
	ErrCalledOff = errors.New("the start was called off")
)

// Start is a start of an agent in a directory.
type Start struct {
	Agent     string   // id in the catalogue
	Directory string   // of the session
	Further   []string // further directories of the session
	User      string   // the name by which the links to skills are kept for this start

	// Ask has a person decide about executables, and returns the answer: Approve, Once, or the answer otherwise, which is Without or Decline.
	// Tell shows notices to the person. Both report false once the start is called off.
	Ask  func(list []Executable, otherwise string) (answer string, ok bool)
	Tell func(notices []transcript.Notice) (ok bool)
}

// Plan is the executables of a single start: what the directory brought when Prepare read the directory, once, before there was a process. A file
// that changes later counts at the next start. The zero Plan brings nothing. A Plan serves one goroutine at a time.
type Plan struct {
	gate  *Gate
	start Start
	reads []autorun.Place // the places that the agent reads by itself

	taken   []Executable    // the servers, skills and instructions that a person lets start
	permits []Executable    // executables that the agent reads by itself and may start with
	skills  map[string]bool // digests of the skills that a person lets start
}

// Prepare reads the directory of a start, has a person asked about what nobody has approved, and links the approved skills where the agent
// reads them. The caller closes the returned Plan when the agent has ended. The error is ErrDeclined or ErrCalledOff.
func (g *Gate) Prepare(ctx context.Context, s Start) (*Plan, error) {
	s.Directory = filepath.Clean(s.Directory)
	p := &Plan{gate: g, start: s, reads: g.deps.Agents.Reads(s.Agent), skills: map[string]bool{}}
	if err := p.permit(ctx, nil); err != nil {
		return nil, err
	}
	if err := p.choose(ctx); err != nil {
		return nil, err
	}
	err := p.link(ctx)
	if err == nil {
		err = p.permit(ctx, func(digest string) bool { return p.skills[digest] }) // again, because a person may have read for hours
	}
	if err != nil {
		p.Close(ctx)
		return nil, err
	}
	return p, nil
}

// Close removes the links to skills that only this start needed.
func (p *Plan) Close(ctx context.Context) {
	if p.gate.deps.Skills != nil {
		p.gate.deps.Skills.Unlink(ctx, p.start.User)
	}
}

// BringsAny reports whether the agent gets any servers or skills.
func (p *Plan) BringsAny() bool {
	return slices.ContainsFunc(p.taken, func(e Executable) bool { return e.systemPrompt == nil })
}

// permit has a person asked about the unapproved executables that the agent reads by itself, until there are none: changes that are made while
// the person reads are asked about as well. Nothing can be kept from the agent there, so the agent starts with all of them or not at all. Of the
// skills that are linked for a session, mine reports the approved ones of this start by their digests; nil takes all of them for approved, while
// the person is yet to be asked about the skills.
func (p *Plan) permit(ctx context.Context, mine func(digest string) bool) error {
	if len(p.reads) == 0 {
		return nil
	}
	for {
		var asked []Executable
		for _, e := range p.gate.read(ctx, trust.Where{Directory: p.start.Directory, Further: p.start.Further, Reads: p.reads}, mine) {
			if !e.Approved && !slices.ContainsFunc(p.permits, e.Same) {
				asked = append(asked, e)
			}
		}
		if ctx.Err() != nil {
			return ErrCalledOff
		}
		if len(asked) == 0 {
			return nil
		}
		answer, ok := p.start.Ask(asked, Decline)
		switch {
		case !ok:
			return ErrCalledOff
		case answer == Decline:
			return ErrDeclined
		}
		p.permits = append(p.permits, asked...)
	}
}

// choose finds the servers and skills of the directory and of all projects, and keeps those that a person lets start.
func (p *Plan) choose(ctx context.Context) error {
	found, notices := p.gate.given(ctx, p.start.Directory)
	taken, err := p.settle(found, append(notices, p.turnOffUseless(found)...))
	p.taken = taken
	for _, e := range found {
		if e.skill != nil && e.Approved { // although the agent may not get the skills of e
			p.mayRead(e.skill.state.Skills)
		}
	}
	return err
}

// turnOffUseless turns the skills off for an agent that reads none, so that nobody is asked about them.
func (p *Plan) turnOffUseless(found []Executable) []transcript.Notice {
	catalogue := p.gate.deps.Agents
	if len(catalogue.Quirks(p.start.Agent).SkillDirs) > 0 {
		return nil
	}
	var off []string
	for i := range found {
		if found[i].skill != nil {
			found[i].off = true
			if found[i].Scope == "" { // the skills of all projects are not told of at each start in each of them
				off = append(off, found[i].Name)
			}
		}
	}
	if len(off) == 0 {
		return nil
	}
	title := fmt.Sprintf("The skills of this directory were not given to %s: it is not known to read any", catalogue.Name(p.start.Agent))
	return []transcript.Notice{{Severity: "info", Title: title, Description: strings.Join(off, ", ")}}
}

// settle shows notices, has a person asked about the executables that nobody has approved, and returns those that may start.
func (p *Plan) settle(found []Executable, notices []transcript.Notice) (taken []Executable, err error) {
	if !p.start.Tell(notices) {
		return nil, ErrCalledOff
	}
	asked := slices.DeleteFunc(slices.Clone(found), func(e Executable) bool { return e.Approved || e.off })
	answer, ok := Approve, true
	if len(asked) > 0 {
		answer, ok = p.start.Ask(asked, Without)
	}
	if !ok {
		return nil, ErrCalledOff
	}
	var without []string
	for _, e := range found {
		switch {
		case e.off:
		case e.Approved || answer != Without:
			taken = append(taken, e)
		default:
			without = append(without, e.Kind+" "+permission.Readable(e.Name))
		}
	}
	if len(without) > 0 && !p.start.Tell([]transcript.Notice{{
		Severity: "info", Title: "Started without what was not approved", Description: transcript.ClipText(strings.Join(without, ", ")),
	}}) {
		return nil, ErrCalledOff
	}
	return taken, nil
}

// mayRead notes skills that were approved for this start. The person is asked about other skills that are linked for another session: the agent
// reads them all the same.
func (p *Plan) mayRead(list []skills.Skill) {
	for _, s := range list {
		if s.Problem == "" {
			p.skills[s.Digest] = true
		}
	}
}

// link links the skills that may start to the folders where the agent reads them. Skills that were never fetched are fetched, and when they
// bring programs that nobody was shown, the person is asked about the programs.
func (p *Plan) link(ctx context.Context) error {
	taken := slices.DeleteFunc(slices.Clone(p.taken), func(e Executable) bool { return e.skill == nil })
	if len(taken) == 0 {
		return nil
	}
	ready, err := p.complete(ctx, taken)
	if err != nil {
		return err
	}
	library, directory := p.gate.deps.Skills, p.start.Directory
	var give []skills.Skill
	var notices []transcript.Notice
	for _, e := range ready {
		state := library.Keep(ctx, e.skill.base, e.skill.entry)
		notices = append(notices, skillNotices(e.Name, state)...)
		hash, _ := state.Shown()
		if hash == e.Hash {
			give = append(give, state.Skills...)
			continue
		}
		if state.State != skills.Failed { // of a failed source, skillNotices has told
			notices = append(notices, transcript.Notice{
				Severity: "warning", Title: fmt.Sprintf("The skills of %q have changed since they were approved; the agent does not get them", e.Name),
			})
		}
	}
	p.mayRead(give)
	for _, note := range library.Link(ctx, p.start.User, directory, p.gate.deps.Agents.Quirks(p.start.Agent).SkillDirs, give) {
		notices = append(notices, transcript.Notice{Severity: "warning", Title: "A skill was not given to the agent", Description: note})
	}
	if !p.start.Tell(notices) {
		return ErrCalledOff
	}
	return nil
}

// complete fetches the skills that were never fetched, and has a person asked about every entry whose content is another one than the person was
// shown: because the content was fetched, or has changed while the person read.
func (p *Plan) complete(ctx context.Context, taken []Executable) (ready []Executable, err error) {
	var changed []Executable
	for _, e := range taken {
		now := *e.skill
		if now.state.State == skills.Unresolved && !p.start.Tell([]transcript.Notice{{Severity: "info", Title: fmt.Sprintf("Fetching the skills of %q", e.Name)}}) {
			return nil, ErrCalledOff
		}
		now.state = p.gate.deps.Skills.Complete(ctx, now.base, now.entry)
		if ctx.Err() != nil {
			return nil, ErrCalledOff
		}
		after := p.gate.ofSkills(now)
		if after.Hash == e.Hash {
			ready = append(ready, after)
		} else {
			changed = append(changed, after)
		}
	}
	if len(changed) == 0 {
		return ready, nil
	}
	p.gate.judgeOrLog(ctx, p.start.Directory, changed)
	more, err := p.settle(changed, nil)
	return append(ready, more...), err
}

// Servers returns the MCP servers in the form of ACP, for an agent that takes the given transports, and notices about the servers that the agent
// does not get, or not completely. Servers looks for programs on the disk, and may take long.
func (p *Plan) Servers(ctx context.Context, transports []string) (given []any, notices []transcript.Notice) {
	target := mcp.Target{Directory: p.start.Directory, Transports: transports, Lookup: p.gate.variables(ctx)}
	given = []any{}
	for _, e := range p.taken {
		if e.server == nil {
			continue
		}
		var raw json.RawMessage
		skip := p.changed(ctx, e)
		if skip == nil {
			raw, skip = e.server.For(target)
		}
		if raw != nil {
			p.gate.deps.Secrets.Remember(e.server.Certain(target.Lookup))
			p.gate.deps.Secrets.RememberFilled(e.server.Written(target))
			given = append(given, raw)
		}
		if skip != nil {
			notices = append(notices, skipped(skip, p.gate.deps.Agents.Name(p.start.Agent)))
		}
	}
	return given, notices
}

// HasServers reports whether Servers has anything to return.
func (p *Plan) HasServers() bool {
	return slices.ContainsFunc(p.taken, func(e Executable) bool { return e.server != nil })
}

// changed returns nil for a server whose files are still those that a person was asked about, which may be hours ago.
func (p *Plan) changed(ctx context.Context, e Executable) *mcp.Skip {
	root, err := openDirectory(p.start.Directory)
	if err != nil {
		return &mcp.Skip{Server: e.Name, Reason: err.Error()}
	}
	defer root.Close()
	if e.server.Review(root, p.start.Directory, p.gate.variables(ctx)).Hash != e.Hash {
		return &mcp.Skip{Server: e.Name, Reason: "what it runs has changed since it was approved; the next start asks again"}
	}
	return nil
}

func skipped(s *mcp.Skip, agent string) transcript.Notice {
	if s.Partly {
		return transcript.Notice{Severity: "info", Title: fmt.Sprintf("Not all of the MCP server %q was given to %s", s.Server, agent), Description: s.Reason}
	}
	return transcript.Notice{Severity: "warning", Title: fmt.Sprintf("The MCP server %q was not given to %s", s.Server, agent), Description: s.Reason}
}
