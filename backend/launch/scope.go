package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"deskhand/backend/config"
	"deskhand/backend/mcp"
	"deskhand/backend/refusal"
	"deskhand/backend/transcript"
)

// AllProjects stands in place of a directory for the entries that the person has given to all projects. They are in the folder of the person's
// configuration (Deps.Everywhere), and come with each start in any directory, unless the directory has an entry of the same name, which goes
// before. What is approved of them is approved in all directories. A server that runs a file of the directory is the exception: the file is
// the directory's, so a person approves the server for that directory.
const AllProjects = ""

// scopeAll is the Scope of the executables of all projects.
const scopeAll = "all"

// entries is an open configuration: the entries of a directory, or of all projects.
type entries struct {
	*config.Store

	all       bool
	directory string   // whose approvals count; of all projects: the directory of a start, or AllProjects outside of starts
	files     *os.Root // the directory, whose files count as content of servers; nil outside of a directory
	base      string   // the folder that the file is below, where relative sources of skills begin
	root      *os.Root
}

// openEntries opens the entries of a directory, or of AllProjects, whose folder is made when it is missing. The caller closes the entries.
func (g *Gate) openEntries(directory string) (*entries, error) {
	if directory == AllProjects {
		return g.openAll()
	}
	directory, err := checkDirectory(directory)
	if err != nil {
		return nil, err
	}
	root, err := openDirectory(directory)
	if err != nil {
		return nil, err
	}
	return &entries{Store: config.Open(root, g.deps.Replace), directory: directory, files: root, base: directory, root: root}, nil
}

func (g *Gate) openAll() (*entries, error) {
	folder := g.deps.Everywhere
	if folder == "" {
		return nil, fmt.Errorf("%w: there is no configuration of all projects", refusal.ErrNotFound)
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, refusal.Bad("directory.unreadable", "path", folder, "detail", err.Error())
	}
	root, err := openDirectory(folder)
	if err != nil {
		return nil, err
	}
	return &entries{Store: config.OpenFlat(root, g.deps.Replace), all: true, directory: AllProjects, base: folder, root: root}, nil
}

func (e *entries) close() { _ = e.root.Close() } // only read from

// path returns the file of a kind.
func (e *entries) path(kind config.Kind) string {
	return filepath.Join(e.base, filepath.FromSlash(e.Path(kind)))
}

func (e *entries) scope() string {
	if e.all {
		return scopeAll
	}
	return ""
}

// place returns the directory by which servers are described.
func (e *entries) place() string {
	if e.directory == AllProjects {
		return mcp.AnyDirectory
	}
	return e.directory
}

// cleanScope returns AllProjects as it is, and a directory as cleanDirectory does.
func cleanScope(directory string) (string, error) {
	if directory == AllProjects {
		return directory, nil
	}
	return cleanDirectory(directory)
}

// configure opens the entries of a directory, or of AllProjects, for f, and gives the errors of package config their codes.
func (g *Gate) configure(directory string, f func(at *entries) error) error {
	at, err := g.openEntries(directory)
	if err != nil {
		return err
	}
	defer at.close()
	return refusedConfig(f(at))
}

// reader reads the entries of a kind, but for those with the names taken.
type reader func(ctx context.Context, at *entries, taken map[string]bool) ([]Executable, error)

// listed reads the entries of a kind for people, with their approvals. problem tells of the entries that cannot be read.
func (g *Gate) listed(ctx context.Context, at *entries, read reader) (list []Executable, problem string, err error) {
	list, broken := read(ctx, at, nil)
	if ctx.Err() != nil {
		return nil, "", ctx.Err()
	}
	if broken != nil {
		problem = transcript.ClipText(broken.Error())
	}
	if err := g.judge(ctx, at.directory, list); err != nil {
		return nil, problem, err
	}
	return list, problem, nil
}

// find returns the executables of a kind for a start: those of the directory, then those of all projects whose names the directory does not
// have. No entry is dropped in silence: the notices tell of those that cannot be read.
func (g *Gate) find(ctx context.Context, directory string, kind config.Kind, read reader) ([]Executable, []transcript.Notice) {
	if info, err := os.Stat(directory); err != nil || !info.IsDir() {
		return nil, nil // the start itself fails for that
	}
	here, err := g.openEntries(directory)
	if err != nil {
		return nil, unreadable(kind, "this directory", nil, err)
	}
	defer here.close()
	found, err := read(ctx, here, nil)
	notices := unreadable(kind, "this directory", found, err)
	taken := map[string]bool{}
	names, _ := here.Names(ctx, kind) // of an error, the notices tell
	for _, name := range names {
		taken[name] = true
	}
	everywhere, err := g.findEverywhere(ctx, here, func(at *entries) ([]Executable, error) { return read(ctx, at, taken) })
	if ctx.Err() != nil {
		return nil, nil
	}
	return append(found, everywhere...), append(notices, unreadable(kind, "all projects", everywhere, err)...)
}

// findEverywhere reads the entries of all projects for a start in a directory. Their folder is not made for that.
func (g *Gate) findEverywhere(ctx context.Context, here *entries, read func(at *entries) ([]Executable, error)) ([]Executable, error) {
	if g.deps.Everywhere == "" || ctx.Err() != nil {
		return nil, nil
	}
	if _, err := os.Stat(g.deps.Everywhere); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	at, err := g.openAll()
	if err != nil {
		return nil, err
	}
	defer at.close()
	at.directory, at.files = here.directory, here.files
	return read(at)
}

// unreadable returns the notice about entries that agents do not get because the entries cannot be read; read are those of the same file that
// can. Without an error there is no notice.
func unreadable(kind config.Kind, where string, read []Executable, err error) []transcript.Notice {
	if err == nil {
		return nil
	}
	title := fmt.Sprintf("Some %s of %s cannot be read; the agent does not get them", kindWords(kind), where)
	if kind == config.MCP && len(read) == 0 {
		title = fmt.Sprintf("The %s of %s cannot be read; the agent gets none of them", kindWords(kind), where)
	}
	return []transcript.Notice{{Severity: "error", Title: title, Description: transcript.ClipText(err.Error())}}
}

func kindWords(kind config.Kind) string {
	if kind == config.MCP {
		return "MCP servers"
	}
	return "skills"
}
