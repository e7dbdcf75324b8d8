package session

import (
	"context"

	"deskhand/backend/attachments"
	"deskhand/backend/feed"
	"deskhand/backend/host"
	"deskhand/backend/landing"
	"deskhand/backend/launch"
	"deskhand/backend/maintenance"
	"deskhand/backend/redact"
	"deskhand/backend/requests"
	"deskhand/backend/rulebook"
	"deskhand/backend/settings"
	"deskhand/backend/setup"
	"deskhand/backend/shells"
	"deskhand/backend/startmode"
	"deskhand/backend/transcript"
	"deskhand/backend/undo"
	"deskhand/backend/workspace"
	"deskhand/backend/worktree"
	"deskhand/backend/worktrees"
)

// The packages that a client consists of are opened here, each with the functions that it needs of the sessions.

// openAttachments opens the library of attachments.
func openAttachments(c *Client) *attachments.Library {
	return attachments.New(attachments.Deps{
		Store:    c.cfg.Store,
		Agents:   c.cfg.Agents,
		Proxy:    c.cfg.Proxy,
		Logger:   c.cfg.Logger,
		Writable: c.writable,
		Find:     attachmentSessions{c}.find,
		In:       attachmentSessions{c}.in,
		Notes:    attachmentSessions{c}.notes,
		NamedBy:  namedAttachments,
		Unnamed:  c.cfg.Unattached,
	})
}

// openLaunch opens the gate for the executables of directories, and their approvals.
func openLaunch(c *Client) (*launch.Gate, error) {
	return launch.Open(launch.Deps{
		Store: c.cfg.Store, Logger: c.cfg.Logger, Agents: c.cfg.Agents, Proxy: c.cfg.Proxy, Skills: c.cfg.Skills, Replace: c.cfg.Replace,
		Everywhere: c.cfg.Everywhere,
		Secrets:    c.secret, StandsFor: c.worktrees.StandsFor,
		Approved: func(directory string, list []launch.Executable) { c.approved(directory, list, "") },
	})
}

// openRules opens the person's rules.
func openRules(c *Client) *rulebook.Book {
	requests := ruleRequests{c}
	return rulebook.New(rulebook.Config{
		Store: c.cfg.Store, Logger: c.cfg.Logger, Redact: c.secret.Text, Hidden: redact.Mark, Cut: transcript.ClippedMark, Shorten: transcript.ClipText, Changed: requests.judgeAgain,
		Writable: c.writable,
		Publish:  func(kind string, rec any) { c.feed.Publish(feed.Event{Type: kind, Data: mustJSON(rec)}) },
		Newest:   requests.newest, Find: requests.find, WorkspaceOf: requests.workspaceOf,
	})
}

// openShells opens the terminals of the person and of logins.
func openShells(c *Client) *shells.Library {
	return shells.New(c.ctx, shells.Deps{
		Proxy: c.cfg.Proxy, Logger: c.cfg.Logger, Files: c.cfg.Files, PersonShell: c.cfg.Agents.Environment().PersonShell,
		Find: func(ctx context.Context, id string) (shells.Session, error) {
			v, err := c.conversation(ctx, id)
			if err != nil {
				return shells.Session{}, err
			}
			s := v.look()
			return shells.Session{Cwd: s.Cwd, Directories: s.Directories, Local: v.host().Directories != nil}, nil
		},
		Refuse: func(dir string) error {
			if c.worktrees.Closed(dir) {
				return worktrees.ErrWorking()
			}
			return nil
		},
		Login: c.cfg.Roster.Logins().Terminal, Environ: c.cfg.Setups.Environ,
	})
}

// openUndo opens the library of the turns' changes.
func openUndo(c *Client) *undo.Library {
	sessions := undoSessions{c}
	return undo.New(undo.Deps{
		Store: c.cfg.Store, Logger: c.cfg.Logger, Snapshots: c.cfg.Snapshots, Host: c.hosts.At, Writable: c.writable,
		Enabled: func() bool { return c.cfg.Settings.Get().Snapshots }, Publish: sessions.publish, Running: sessions.running, Find: sessions.find,
		Unfinished: c.entries.Unfinished,
		HoldPrompt: c.cfg.HoldPrompt, LastLook: c.cfg.LastLook,
	})
}

// openWorkspaces opens the library of the directories that sessions work in.
func openWorkspaces(c *Client) *workspace.Library {
	return workspace.New(workspace.Deps{
		Store:  c.cfg.Store,
		Logger: c.cfg.Logger,
		Host:   c.hosts.At,
		Follow: c.follow,
	})
}

// openWorktrees opens the library of the worktrees.
func openWorktrees(ctx context.Context, c *Client) (*worktrees.Library, error) {
	git, err := worktree.Open(ctx, worktree.Config{Beside: c.cfg.Proxy, Environ: c.cfg.Agents.Environment().Environ, Logger: c.cfg.Logger})
	sessions := worktreeSessions{c}
	return worktrees.New(worktrees.Deps{
		Store: c.cfg.Store, Git: git, Logger: c.cfg.Logger, Directories: c.hosts.Local.Directories, Writable: c.writable,
		Sessions: worktrees.Sessions{
			Clean: c.secret.Text, Find: sessions.find, Occupants: sessions.occupants, End: sessions.end, Show: sessions.show,
			Record: c.workspaces.MakeRoom,
		},
		Removed: c.cfg.Setups.Forget,
	}), err
}

// useSetups gives the set-ups of worktrees the sessions.
func useSetups(c *Client) {
	sessions := worktreeSessions{c}
	c.cfg.Setups.Use(setup.Sessions{
		Gate: c.launch, Worktrees: c.worktrees, Shells: c.shells, Show: sessions.show, Clean: c.secret.Text, Writable: c.writable,
		Find: func(ctx context.Context, id string) (setup.Session, error) {
			s, err := sessions.find(ctx, id)
			return setup.Session{Cwd: s.Cwd, Local: s.Local}, err
		},
	})
}

// openLanding opens the library that commits and pushes what sessions have changed.
func openLanding(ctx context.Context, c *Client) (*landing.Library, error) {
	return landing.Open(ctx, landing.Deps{
		Beside: c.cfg.Proxy, Environ: c.cfg.Agents.Environment().Environ, Clean: c.secret.Text, Writable: c.writable, Logger: c.cfg.Logger,
		Find: func(ctx context.Context, id string) (landing.Session, error) {
			s, err := c.Get(ctx, id)
			of := landing.Session{Cwd: s.Cwd, Local: s.Place == host.Local, Title: s.Title}
			if s.Worktree != nil {
				of.Base = s.Worktree.BaseBranch
			}
			return of, err
		},
		// Whatever a directory's own files would have a git run is among what an agent's start there asks for.
		Unapproved: func(ctx context.Context, dir string) (names []string, err error) {
			found, err := c.launch.Executables(ctx, dir)
			for _, e := range found {
				if !e.Approved && e.Found() {
					names = append(names, e.Name)
				}
			}
			return names, err
		},
	})
}

// openMaintenance opens the maintenance of the data directory.
func openMaintenance(c *Client) *maintenance.Maintainer {
	return maintenance.New(maintenance.Deps{
		Store: c.cfg.Store, Logger: c.cfg.Logger, Pace: c.cfg.Unattached,
		Publish: func(kind, session string, rec any) {
			c.feed.Publish(feed.Event{Session: session, Type: kind, Data: mustJSON(rec)})
		},
		Writable: c.writable, Running: c.Running, Search: c.cfg.Search,
		Attachments: c.attachments, PruneSnapshots: c.undo.Prune, SnapshotBytes: c.undo.Bytes,
		Workspaces: c.workspaces.Examine, KnownAgent: c.cfg.Agents.Known, SessionsOf: c.Imports().sessionsOf,
		SaveOutcome: saveOutcome,
		AgentSessions: func(ctx context.Context, agent, before string) (list []maintenance.AgentSession, next string, supported bool, err error) {
			page, err := c.Imports().Sessions(ctx, agent, "", before)
			for _, s := range page.Items {
				list = append(list, maintenance.AgentSession{ID: s.ACPSessionID, Title: s.Title, Cwd: s.Cwd, Session: s.Session})
			}
			return list, page.Next, page.Supported, err
		},
	})
}

// Attachments returns the library of attachments.
func (c *Client) Attachments() *attachments.Library { return c.attachments }

// Launch returns the gate for the executables of directories.
func (c *Client) Launch() *launch.Gate { return c.launch }

// Rules returns the person's rules.
func (c *Client) Rules() *rulebook.Book { return c.rules }

// Shells returns the terminals of the person and of logins.
func (c *Client) Shells() *shells.Library { return c.shells }

// Undo returns the library of the turns' changes, which can be shown and undone.
func (c *Client) Undo() *undo.Library { return c.undo }

// Workspaces returns the library of the directories that sessions work in.
func (c *Client) Workspaces() *workspace.Library { return c.workspaces }

// Worktrees returns the library of the worktrees.
func (c *Client) Worktrees() *worktrees.Library { return c.worktrees }

// Landing returns the library that commits and pushes what sessions have changed.
func (c *Client) Landing() *landing.Library { return c.landing }

// Maintenance returns the maintenance of the data directory.
func (c *Client) Maintenance() *maintenance.Maintainer { return c.maintainer }

// Settings returns the person's settings.
func (c *Client) Settings() *settings.Library { return c.cfg.Settings }

// Feed returns the feed of all events.
func (c *Client) Feed() *feed.Feed { return c.feed }

// Requests returns the stored requests of all sessions.
func (c *Client) Requests() *requests.Library { return c.requests }

// Starts returns the modes and models in which conversations begin.
func (c *Client) Starts() *startmode.Choices { return c.starts }
