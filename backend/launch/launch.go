// Package launch decides what starts with an agent in a directory: the MCP servers, the skills and the instructions that Deskhand gives to
// agents, those of the directory and those of all projects (see AllProjects), and the programs of the files that agents read by themselves
// (package trust). The Gate lists all of that as executables, edits what Deskhand gives, and keeps which contents a person has approved. A
// Plan is made for each start of an agent: the Plan has a person asked about what nobody has approved, and brings the agent the rest.
//
// The package hides the table trust, how the files of a directory become executables, and in which order a start reads, asks and fetches.
//
// Approvals are not rules, although both remember the answer of a person. An approval is of one content in one directory, known by its hash,
// and counts for nothing else. A rule (package rulebook) is a pattern over calls that nobody has seen yet, with an effect, a scope and an end.
// The two have no judgement in common, so each has a table of its own. A start mode (package startmode) is a choice, and approves nothing.
package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"deskhand/backend/agents"
	"deskhand/backend/autorun"
	"deskhand/backend/config"
	"deskhand/backend/mcp"
	"deskhand/backend/proxy"
	"deskhand/backend/redact"
	"deskhand/backend/refusal"
	"deskhand/backend/skills"
	"deskhand/backend/store"
	"deskhand/backend/transcript"
	"deskhand/backend/trust"
)

// Deps is the surroundings of a Gate. Only Skills and Replace may be nil.
type Deps struct {
	Store  *store.DB
	Logger *slog.Logger
	Agents *agents.Catalogue
	Proxy  *proxy.Set      // beside which MCP servers are tested
	Skills *skills.Library // nil = agents get no skills

	// Everywhere is the folder of the person's configuration, with the servers, skills and instructions of all projects; "" = there are none.
	Everywhere string

	// Replace replaces a file of an open directory atomically; without it no configuration can be changed.
	Replace func(dir *os.Root, name string, data []byte, mode fs.FileMode) error

	// StandsFor returns the directory of the repository that a directory in a worktree of ours stands for, and any other directory as it is.
	// What is approved in the repository is approved in the worktree.
	StandsFor func(directory string) string

	// Secrets takes secrets out of what is shown, and remembers the secrets that agents are given.
	Secrets redact.Redactor

	// Approved runs after executables of a directory were approved otherwise than by the answer to a Plan.
	Approved func(directory string, list []Executable)
}

// Gate is the executables of directories and their approvals.
type Gate struct {
	deps   Deps
	trials *proxy.Set // MCP servers that are being tested
}

const trialLog = 4 << 20 // bytes that a server under test may write at a time

// Open returns the Gate of a database. The caller closes the Gate before the parts of d.
func Open(d Deps) (*Gate, error) {
	trials, err := proxy.Open(proxy.Config{Beside: d.Proxy, LogBytes: trialLog, Logger: d.Logger, Purpose: agents.ForTest})
	if err != nil {
		return nil, err
	}
	return &Gate{deps: d, trials: trials}, nil
}

// Close ends the MCP servers that are being tested.
func (g *Gate) Close() error { return g.trials.Close() }

// Executable is something in a directory that starts programs, or reaches out, when an agent starts there. It is approved once for
// each content: the hash covers all that counts, and the agent is given what was hashed, never what the file says later.
type Executable struct {
	Scope    string `json:"scope,omitempty" enum:"all" doc:"All: an entry of all projects. Absent: an entry or a file of the directory"`
	Kind     string `json:"kind" enum:"mcp,skill,instructions,hook,agent_config,script,project" doc:"MCP servers, skills and instructions are given to the agent by Deskhand, and what is of a project is run by Deskhand; the others the agent reads by itself"`
	Name     string `json:"name"`
	Hash     string `json:"hash" doc:"SHA-256 of what was shown"`
	Detail   string `json:"detail" doc:"What a person judges by, in several lines; secrets are hidden"`
	Approved bool   `json:"approved"`
	Before   string `json:"before,omitempty" doc:"What was approved last under this name, when it is another one. The same text: only hidden values differ"`

	off    bool        // the executable is not enabled, or the agent cannot use it, so no start asks for it
	in     string      // the directory for which the executable is approved, where that is another one than that of the start; ""
	own    bool        // of an entry of all projects: it runs a file of the directory, so its approval counts for the directory alone
	server *mcp.Server // of kind mcp: the server that starts
	skill  *skillEntry // of kind skill

	systemPrompt *systemPrompt // of kind instructions
}

// Same reports whether both are the same content under the same name.
func (e Executable) Same(o Executable) bool {
	return e.Kind == o.Kind && e.Name == o.Name && e.Hash == o.Hash
}

// Found reports whether programs read the executable in the directory by themselves, rather than being given it by Deskhand, or
// run by Deskhand.
func (e Executable) Found() bool {
	return e.Kind != "mcp" && e.Kind != "skill" && e.Kind != kindInstructions && e.Kind != kindProject
}

// Executables returns what there is in a directory for agents of any kind, with the entries of all projects that come with a start there. For
// AllProjects it returns all entries of all projects.
func (g *Gate) Executables(ctx context.Context, directory string) ([]Executable, error) {
	if directory == AllProjects {
		return g.allProjects(ctx)
	}
	directory, err := checkDirectory(directory)
	if err != nil {
		return nil, err
	}
	found, _ := g.given(ctx, directory)
	found = append(found, g.projectOf(ctx, directory)...)
	return append(found, g.read(ctx, trust.Where{Directory: directory, Reads: autorun.Places(nil)}, nil)...), nil
}

func (g *Gate) allProjects(ctx context.Context) (found []Executable, err error) {
	err = g.configure(AllProjects, func(at *entries) error {
		found, _ = g.readServers(ctx, at, nil) // the list of the servers tells of those that are left out
		if g.deps.Skills != nil {
			list, _ := g.readSkills(ctx, at, nil) // as above
			found = append(found, list...)
		}
		list, _ := g.instructions(AllProjects) // as above
		found = append(found, list...)
		return g.judge(ctx, AllProjects, found)
	})
	return found, err
}

// given returns the executables that Deskhand gives to agents, and notices about the entries that cannot be read.
func (g *Gate) given(ctx context.Context, directory string) ([]Executable, []transcript.Notice) {
	found, notices := g.find(ctx, directory, config.MCP, g.readServers)
	if g.deps.Skills != nil {
		list, more := g.find(ctx, directory, config.Skills, g.readSkills)
		found, notices = append(found, list...), append(notices, more...)
	}
	list, more := g.instructions(directory)
	found, notices = append(found, list...), append(notices, more...)
	g.judgeOrLog(ctx, directory, found)
	return found, notices
}

// read returns the executables that an agent reads by itself in the searched places. Skills that are linked for a session are left out; where
// mine is not nil, only those of which mine returns true for the digest.
func (g *Gate) read(ctx context.Context, w trust.Where, mine func(digest string) bool) []Executable {
	if g.deps.Skills != nil {
		w.Linked = func(path string) bool {
			digest := g.deps.Skills.Linked(ctx, w.Directory, path)
			return digest != "" && (mine == nil || mine(digest))
		}
	}
	found := trust.Find(ctx, w)
	list := make([]Executable, 0, len(found))
	for _, f := range found {
		list = append(list, Executable{Kind: f.Kind, Name: f.Name, Hash: f.Hash, Detail: g.deps.Secrets.KnownOnly(f.Detail)})
	}
	g.judgeOrLog(ctx, w.Directory, list)
	return list
}

// cleanDirectory returns the one name of a directory in what is stored about the directory, which need not exist.
func cleanDirectory(directory string) (string, error) {
	if !filepath.IsAbs(directory) {
		return "", refusal.Bad("directory.relative", "path", directory)
	}
	return filepath.Clean(directory), nil
}

// checkDirectory returns the name as cleanDirectory does, and refuses a directory that does not exist.
func checkDirectory(directory string) (string, error) {
	directory, err := cleanDirectory(directory)
	if err != nil {
		return "", err
	}
	info, err := os.Stat(directory)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", refusal.Bad(transcript.ProblemNoDirectory, "path", directory)
	case err != nil:
		return "", refusal.Bad("directory.unreadable", "path", directory, "detail", err.Error())
	case !info.IsDir():
		return "", refusal.Bad("directory.not_one", "path", directory)
	}
	return directory, nil
}

// openDirectory opens a directory for package config. Unlike the calls of /v1, the calls of the client are confined to no root: whoever may
// call the client may have agents work anywhere. But the directory is a root in itself: nothing in the directory, whoever put it there, makes
// Deskhand read or write elsewhere.
func openDirectory(directory string) (*os.Root, error) {
	root, err := config.OpenDirectory(directory)
	if err != nil {
		return nil, refusal.Bad("directory.unreadable", "path", directory, "detail", err.Error())
	}
	return root, nil
}

// The limits of what a person is asked to read at once, for each file. More is nothing to be read, and may be meant not to be.
const (
	mostEntries   = 200
	longestDetail = 32 << 10  // bytes, with the name
	longestList   = 256 << 10 // bytes
	longestReview = 10 * time.Second
)

// reading counts what a person has to read of a file.
type reading struct {
	begun         time.Time
	entries, size int
	left          int     // entries beyond the limits
	long          []error // entries that are too long by themselves
}

// full reports whether a limit is reached, and counts the entry that is left out then.
func (r *reading) full(ctx context.Context) bool {
	if r.entries < mostEntries && r.size < longestList && time.Since(r.begun) < longestReview && ctx.Err() == nil {
		return false
	}
	r.left++
	return true
}

// takes counts an executable, and reports false for one that is too long by itself.
func (r *reading) takes(e Executable) bool {
	size := len(e.Name) + len(e.Detail)
	if size > longestDetail {
		r.long = append(r.long, fmt.Errorf("what %.100q would start is too long to be read by a person", e.Name))
		return false
	}
	r.entries, r.size = r.entries+1, r.size+size
	return true
}

// problem returns the error that tells of everything that was left out.
func (r *reading) problem() error {
	err := errors.Join(r.long...)
	if r.left > 0 {
		err = errors.Join(err, fmt.Errorf("%d more entries are too many to be read by a person", r.left))
	}
	return err
}

// makeDirectory makes a missing directory for an entry, provided that the entry is valid.
func (g *Gate) makeDirectory(directory string, kind config.Kind, name string, entry []byte) error {
	if directory == AllProjects {
		return nil // openEntries makes the folder, which is ours
	}
	directory, err := cleanDirectory(directory)
	if err != nil {
		return err
	}
	if _, err := os.Stat(directory); !errors.Is(err, fs.ErrNotExist) {
		return nil // configure refuses what is no directory
	}
	if err := config.CheckName(name); err != nil {
		return refusedConfig(err)
	}
	if _, err := config.Canonical(kind, entry); err != nil {
		return refusedConfig(err)
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		return refusal.Bad("directory.unreadable", "path", directory, "detail", err.Error())
	}
	return nil
}

func refusedConfig(err error) error {
	if err == nil {
		return nil
	}
	params := map[string]string{"detail": err.Error()}
	switch {
	case errors.Is(err, config.ErrInvalid), errors.Is(err, mcp.ErrHidden):
		return refusal.Bad("config.invalid", "detail", err.Error())
	case errors.Is(err, config.ErrTooLarge):
		return refusal.Bad("config.too_large", "detail", err.Error())
	case errors.Is(err, config.ErrBroken):
		return &refusal.Error{Code: "config.broken", Params: params}
	case errors.Is(err, config.ErrBusy):
		return &refusal.Error{Code: "config.busy", Params: params}
	case errors.Is(err, config.ErrPermission):
		return &refusal.Error{Code: "config.unreadable", Params: params}
	case errors.Is(err, config.ErrNotFound):
		return fmt.Errorf("%w: %w", refusal.ErrNotFound, err)
	}
	for _, ours := range []error{refusal.ErrNotFound, refusal.ErrStorage, context.Canceled} {
		if errors.Is(err, ours) {
			return err
		}
	}
	if _, ok := errors.AsType[*refusal.Error](err); ok {
		return err
	}
	return &refusal.Error{Code: "config.unwritable", Params: params}
}

// unapproved refuses to start an entry that nobody has approved.
func unapproved(name string) error {
	return &refusal.Error{Code: "config.unapproved", Params: map[string]string{"name": name}}
}
