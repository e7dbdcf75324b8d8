package session

import (
	"context"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"strconv"
	"time"

	"deskhand/backend/acp"
	"deskhand/backend/agents"
	"deskhand/backend/attachments"
	"deskhand/backend/background"
	"deskhand/backend/entries"
	"deskhand/backend/feed"
	"deskhand/backend/host"
	"deskhand/backend/journal"
	"deskhand/backend/landing"
	"deskhand/backend/launch"
	"deskhand/backend/proxy"
	"deskhand/backend/redact"
	"deskhand/backend/refusal"
	"deskhand/backend/remotes"
	"deskhand/backend/requests"
	"deskhand/backend/roster"
	"deskhand/backend/rulebook"
	"deskhand/backend/search"
	"deskhand/backend/settings"
	"deskhand/backend/setup"
	"deskhand/backend/shells"
	"deskhand/backend/skills"
	"deskhand/backend/snapshot"
	"deskhand/backend/startmode"
	"deskhand/backend/store"
	"deskhand/backend/subagents"
	"deskhand/backend/transcript"
	"deskhand/backend/undo"
	"deskhand/backend/workspace"
	"deskhand/backend/worktrees"
)

// Errors of the client. A RefusedError carries a code for each refusal that a person can understand or act on.
var (
	ErrNotFound = refusal.ErrNotFound
	ErrStorage  = refusal.ErrStorage
	ErrClosed   = refusal.ErrClosed
)

// RefusedError is the refusal of a command.
type RefusedError = refusal.Error

func bad(code string, params ...string) *RefusedError { return refusal.Bad(code, params...) }

// Config configures a client. Store, Agents and Proxy are required; the client's owner closes them after the client.
type Config struct {
	Store    *store.DB
	Agents   *agents.Catalogue
	Proxy    *proxy.Set
	Logger   *slog.Logger
	Version  string        // reported to agents
	Patience time.Duration // how long a cancel waits before its next means; 0 = 4 s

	Skills *skills.Library // closed by its owner after the client; nil = agents get no skills

	// Replace replaces a file of an open directory atomically (files.Replace); without Replace no configuration can be changed.
	Replace func(dir *os.Root, name string, data []byte, mode fs.FileMode) error

	Everywhere string // the folder with the MCP servers and skills of all projects; "" = there are none

	// Files reads and writes files for agents and decides where their programs may start; nil = agents are told that they can do neither.
	Files *host.Files

	Settings   *settings.Library // nil = a library without files
	SamplePace time.Duration     // how often the processes are measured while any runs; 0 = 10 s
	LeastIdle  time.Duration     // how long an agent must be idle before it is hibernated; 0 = a minute
	Undo       time.Duration     // how long the deletion of a session can be undone; 0 = 15 s
	CloseWait  time.Duration     // how long a graceful close waits for an agent's answer; 0 = 1 s, and less when the program ends

	Remotes *remotes.Library // places on other machines; nil = a library without tokens
	Search  *search.Index    // woken when entries are stored; its owner starts and closes the index. nil = an index that is never started
	Roster  *roster.Agents   // the agents as people administer them, and the secrets that must never be written; closed with the client; nil = made of Agents

	Setups *setup.Library // makes worktrees ready, and is closed with the client; nil = a library with the environment of Agents

	// Tools gives the agent of each session the MCP server of Deskhand's own tools; nil = agents get none.
	Tools *host.Tools

	// Snapshots keeps the contents of sessions' directories around each turn; nil = no turn can be undone. The owner of Snapshots closes
	// Snapshots after the client.
	Snapshots  *snapshot.Library
	HoldPrompt time.Duration // how long a prompt waits for the snapshot at most; 0 = 300 ms
	LastLook   time.Duration // how long the snapshot at the end of a turn may take; 0 = 30 s

	Unattached time.Duration // how long an attachment that nothing names is kept; 0 = a day

	// Gone reports that there is no directory at a path; nil = reads the disk. Gone may block for any time.
	Gone func(path string) bool
}

// withDefaults returns the config with a value in each field that may be left out.
func (cfg Config) withDefaults() Config {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Patience == 0 {
		cfg.Patience = patience
	}
	if cfg.Unattached == 0 {
		cfg.Unattached = unattached
	}
	if cfg.Roster == nil {
		cfg.Roster = roster.New(roster.Deps{Catalogue: cfg.Agents})
	}
	if cfg.Setups == nil {
		cfg.Setups = setup.New(setup.Deps{Store: cfg.Store, Processes: cfg.Proxy, Environ: cfg.Agents.Environment().Environ, Logger: cfg.Logger})
	}
	if cfg.Search == nil {
		cfg.Search = search.New(search.Deps{Store: cfg.Store, Logger: cfg.Logger, AgentName: cfg.Agents.Name})
	}
	if cfg.Settings == nil {
		cfg.Settings = settings.New("")
	}
	if cfg.Remotes == nil {
		cfg.Remotes = remotes.New(remotes.Deps{Store: cfg.Store, Logger: cfg.Logger, Version: cfg.Version, AgentName: cfg.Agents.Name})
	}
	return cfg
}

// core holds everything that all conversations of a client share: the stores, the feed, and the other packages that a conversation calls.
// The methods of core change and start no conversation; Client, which embeds core, finds, starts and ends conversations.
type core struct {
	cfg        Config
	feed       *feed.Feed
	journal    journal.Journal
	secret     redact.Redactor
	ctx        context.Context   //nolint:containedctx // ends when the client closes; all conversations outlive every call
	background *background.Group // ctx is its life
	hosts      host.Hosts
	alike      alike
	erasing    *erasing

	attachments *attachments.Library
	landing     *landing.Library
	launch      *launch.Gate
	remotes     *remotes.Library
	entries     *entries.Library
	requests    *requests.Library
	rules       *rulebook.Book
	shells      *shells.Library
	starts      *startmode.Choices
	undo        *undo.Library
	workspaces  *workspace.Library
	worktrees   *worktrees.Library

	retire   func(id string)                                                  // takes a session that is about to be erased out of the client's sessions
	child    func(process, acpID, teller string) (*subagents.Child, error)    // see [subagents.NewFamily]; process is the session that reads the process
	approved func(directory string, list []launch.Executable, surface string) // tells the other sessions of a directory about an approval
}

const (
	patience   = 4 * time.Second
	unattached = 24 * time.Hour
)

func (c *core) turnError(failure *acp.Error) *transcript.TurnError {
	return &transcript.TurnError{Code: int64(failure.Code), Message: c.cfg.Roster.Secrets().Sentence(failure), Kind: string(failure.Kind())}
}

// show completes a session with values that are not stored in its row: the agent's name, and the current state of its directory.
func (c *core) show(s Session) Session {
	if s.AgentName == "" {
		s.AgentName = c.cfg.Agents.Name(s.Agent)
		s.Modes = judged(startmode.Of(c.cfg.Agents.Modes(s.Agent)), s.ConfigOptions)
	}
	if at := c.hosts.At(s.Place).Directories; at != nil {
		s.Workspace.Missing = at.Missing(s.Cwd)
		s.Worktree, s.Setup = c.worktrees.Show(s.Cwd, s.Workspace.Missing), c.cfg.Setups.Show(s.Cwd)
	}
	return s
}

func (c *core) where(s *Session) attachments.Where {
	return attachments.Where{Cwd: s.Cwd, Directories: s.Directories, Host: c.hosts.At(s.Place)}
}

// lasting returns a context for reads and writes that finish while the program ends.
func (c *core) lasting() context.Context { return context.WithoutCancel(c.ctx) }

// ReadOnly returns why nothing can be changed, or nil when changes are possible.
func (c *core) ReadOnly() *RefusedError {
	n := c.cfg.Store.Newer()
	if n == nil {
		return nil
	}
	params := map[string]string{"schema": strconv.Itoa(n.Schema), "known": strconv.Itoa(n.Known), "version": n.By}
	params["detail"] = fmt.Sprintf("%s (schema %d, this program knows %d); it is not changed", store.ErrNewer, n.Schema, n.Known)
	return &RefusedError{Code: refusedNewer, Params: params}
}

// writable is ReadOnly as an error, for the features that change stored data.
func (c *core) writable() error {
	if err := c.ReadOnly(); err != nil {
		return err
	}
	return nil
}

func (c *core) undoTime() time.Duration {
	if c.cfg.Undo > 0 {
		return c.cfg.Undo
	}
	return undoTime
}

const refusedNewer = "storage.newer"

// undoSession returns the part of a session that its changes depend on.
func undoSession(s *Session) undo.Session {
	u := undo.Session{ID: s.ID, Place: s.Place, Workspace: s.Workspace.ID, Cwd: s.Cwd, Directories: s.Directories}
	if s.Turn != nil {
		u.Turn = s.Turn.ID
	}
	return u
}
