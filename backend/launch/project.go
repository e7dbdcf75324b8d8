package launch

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"deskhand/backend/mcp"
	"deskhand/backend/permission"
	"deskhand/backend/project"
)

// The names of the executables of a project.
const (
	SetUp = "set-up" // the commands that make a new worktree ready
	Run   = "run"    // the command that runs the app
	Test  = "test"   // the command that runs the tests
)

// kindProject is the kind of the executables of a project. Neither an agent nor git runs them: Deskhand does, for a new worktree or when a
// person wants it.
const kindProject = "project"

// Project is a repository's project with its executables.
type Project struct {
	project.Project

	Executables []Executable // those of SetUp, Run and Test that there are
}

// Executable returns the executable of a name.
func (p Project) Executable(name string) (Executable, bool) {
	i := slices.IndexFunc(p.Executables, func(e Executable) bool { return e.Name == name })
	if i < 0 {
		return Executable{}, false
	}
	return p.Executables[i], true
}

// ProjectIn is where a project is read.
type ProjectIn struct {
	Top        string // the worktree that the commands run in
	Repository string // the worktree that Top was made from, or Top; approvals count there, and so in all of its worktrees
	Main       string // the first worktree of the repository, or Repository
}

// Project reads the project of a repository, and what a person has approved of it. The error is a [project.BrokenError] for a file that cannot
// be read.
func (g *Gate) Project(ctx context.Context, in ProjectIn) (Project, error) {
	read, err := project.Read(project.Places{Own: g.deps.Everywhere, Repository: []string{in.Repository, in.Main}, Files: []string{in.Top, in.Repository}})
	p := Project{Project: read}
	if err != nil {
		return p, err
	}
	if len(read.Setup) > 0 {
		p.Executables = append(p.Executables, g.setUp(in, read))
	}
	for _, e := range []Executable{{Name: Run, Detail: read.Run}, {Name: Test, Detail: read.Test}} {
		if e.Detail != "" {
			e.Kind, e.in = kindProject, in.Repository
			e.Hash = hashOf(kindProject, e.Name, e.Detail)
			e.Detail = g.deps.Secrets.KnownOnly(permission.Reveal(e.Detail))
			p.Executables = append(p.Executables, e)
		}
	}
	for _, e := range p.Executables {
		if len(e.Detail) > longestDetail {
			return Project{}, &project.BrokenError{Path: read.Source, Detail: "what it runs is too long to be read by a person"}
		}
	}
	g.judgeOrLog(ctx, in.Repository, p.Executables)
	return p, nil
}

// setUp returns the executable of the commands that run in a new worktree. Its hash covers the files of the worktree that these run, as of an
// MCP server: the commands run by themselves, with what a branch has of them. The commands of Run and Test run when a person presses a button, for
// work that an agent has just changed, so of these the line counts alone.
func (g *Gate) setUp(in ProjectIn, p project.Project) Executable {
	var files []string
	if root, err := os.OpenRoot(in.Top); err == nil {
		for _, line := range p.Setup {
			files = append(files, mcp.Ran(root, in.Top, line)...)
		}
		_ = root.Close() // only read from
	}
	slices.Sort(files)
	covered, _ := json.Marshal([][]string{p.Setup, slices.Compact(files)}) // texts are always written
	detail := strings.Join(p.Setup, "\n")
	if names := namesOf(files); len(names) > 0 {
		detail += "\n\nruns files of the repository: " + strings.Join(names, ", ")
	}
	if len(p.Copy) > 0 {
		detail += "\n\ncopies what git ignores: " + strings.Join(p.Copy, ", ")
	}
	if len(p.Link) > 0 {
		detail += "\n\nlinks to the repository's: " + strings.Join(p.Link, ", ")
	}
	from := p.Source
	if rel, err := filepath.Rel(in.Top, from); err == nil && filepath.IsLocal(rel) {
		from = filepath.ToSlash(rel)
	}
	detail = permission.Reveal(detail + "\n\nfrom " + from)
	return Executable{Kind: kindProject, Name: SetUp, Hash: hashOf(kindProject, SetUp, string(covered)), Detail: g.deps.Secrets.KnownOnly(detail), in: in.Repository}
}

// namesOf returns the files of lines of mcp.Ran.
func namesOf(files []string) (names []string) {
	for _, f := range files {
		_, name, _ := strings.Cut(f, " ")
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func hashOf(parts ...string) string {
	covered, _ := json.Marshal(parts) // texts are always written
	sum := sha256.Sum256(covered)
	return hex.EncodeToString(sum[:])
}

// projectOf returns the executables of a directory's own project, for the list of all executables. A directory in which nothing is told has none.
func (g *Gate) projectOf(ctx context.Context, directory string) []Executable {
	of := g.standsFor(directory)
	p, err := g.Project(ctx, ProjectIn{Top: directory, Repository: of, Main: of})
	if err != nil {
		g.deps.Logger.Warn("the project of a directory cannot be read", "directory", directory, "error", err)
	}
	return p.Executables
}

// ApproveProject approves an executable of a project as a person was shown it; hash is that of the content.
func (g *Gate) ApproveProject(ctx context.Context, in ProjectIn, name, hash string) error {
	p, err := g.Project(ctx, in)
	if err != nil {
		return err
	}
	e, is := p.Executable(name)
	if !is || e.Hash != hash {
		return changed(hash)
	}
	return g.approve(ctx, in.Repository, []Executable{e})
}
