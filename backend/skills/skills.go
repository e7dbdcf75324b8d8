// Package skills hides where a directory's skills come from and how agents get them: from sources (a GitHub repository, another git
// repository, a folder of this machine) into a cache, and from the cache, by links, into folders of the directory.
//
// # Sources
//
// An entry of skills.json names sources; each folder below a source (or below its subpath) that holds a SKILL.md is a skill, with all of
// its files. A source in git is pinned: the commit of its ref at the first fetch stays, for this entry of this directory, until
// [Library.Fetch] is called; a changed source is another source. Only the files of skills are kept of the commit. A folder without a ref is
// read anew each time, and copied when linked, so that a running session keeps the skills of its start.
//
// # Approval
//
// A fetch starts a program (git, and the programs that the person's git starts) and opens a connection, and the fetched files may contain
// programs. So the start of a session never fetches a source that nobody has approved: for an entry that is not fetched yet, [State.Shown]
// describes the source by type, address, ref and subpath. After the fetch, Shown is unchanged when the skills contain no program, and no
// second approval is needed; otherwise Shown lists the commit and every such file, with a new hash that covers their content. A file counts
// as a program when it is executable, begins with #!, or is named like a script or a program. Instructions for the agent are text: actions
// that follow from them need the agent's own approvals. The library asks nobody: callers of Complete and Fetch must have the approval.
//
// # Git
//
// Git is the system's, run by argument vector, without a terminal, with limits on time and size, and the library ends its processes. Git
// may speak https and ssh, http only to this machine, file only with repositories of this machine. Git fetches one commit without history,
// tags and submodules. The commit is never checked out: the library reads its objects and writes the files, in a repository where neither
// the person's configuration nor the fetched files take effect, so that hooks, filters (LFS too: a skill gets the pointer) and attributes
// do nothing. The person's configuration counts only for the connection: proxies, credentials.
//
// # What is refused
//
// In a skill: links that do not lead to a file of the same skill (the others become copies), submodules, names that some system cannot
// store or would store as one file, more than 2,000 files, a file over 16 MiB, 64 MiB in all. Such a skill stays visible with its problem
// and is not linked. Of several skills with the same name, ignoring case, the first counts. In a source: more than 200 wanted skills, or
// 512 MiB; a folder of another machine, because on Windows looking at the folder signs in there; names in git that git itself would not
// write.
//
// # Links
//
// A link exists while a session needs the skill. A file that already has the name of a skill stays, and the skill is reported as left out.
// A link is recorded before the link is made, and only a recorded and unchanged link is removed: at the end of the last session that needs
// the skill, and at the next start after a crash. Folders that were made for links are removed with the last link, if empty. Where links
// cannot be made (Windows without the privilege) a copy replaces the link, and is removed if unchanged.
//
// In a git worktree the links are listed in the repository's info/exclude, between two marking lines, as long as they exist: an agent that
// commits every new file would otherwise commit paths of this machine. A .gitignore would itself be a new file.
//
// # Failure
//
// A failure to fetch, read or link is reported in State.Detail, Skill.Problem and the notes of Link, for people, and never affects other
// skills. A damaged cache is restored from the same commit; files that programs have left beside the files of a skill are removed, without
// asking anybody.
package skills

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"deskhand/backend/git"
	"deskhand/backend/proxy"
)

// Errors of this package, with texts for people.
var (
	ErrEntry    = errors.New("the entry cannot be used")
	ErrNoGit    = git.ErrAbsent
	ErrGit      = git.ErrFailed
	ErrLimit    = errors.New("too much")
	ErrNotFound = errors.New("not found")
	ErrText     = errors.New("not a text that can be shown")
	ErrClosed   = errors.New("the skills are closed")
)

// Limits of fetching and storing.
const (
	maxListed     = 400_000 // files of a repository to examine
	maxWalked     = 50_000  // files of a folder, which is read again and again
	maxSkills     = 200
	maxCollection = 5_000     // skills of a source to search for the wanted skills
	maxFiles      = 2_000     // of a skill
	maxFile       = 16 << 20  // of a file
	maxSkill      = 64 << 20  // of all files of a skill
	maxFrontal    = 256 << 10 // of a SKILL.md
	longestText   = 1 << 20   // longest text that is searched for commands
	maxSource     = 512 << 20 // of all skills of a source
	maxDownload   = 512 << 20 // disk space for git during a fetch
	fetchLimit    = 5 * time.Minute
)

// Config is the configuration of a Library.
type Config struct {
	Dir     string                         // the library's own directory
	Beside  *proxy.Set                     // shares its watchdog and ledger with git's processes; required
	Environ func(context.Context) []string // the environment in which git is found and started
	GitHub  string                         // precedes owner/repo; "" means https://github.com/
	Logger  *slog.Logger
}

// Library manages the skills of all directories of a data directory.
type Library struct {
	cfg       Config
	processes *proxy.Set
	life      context.Context //nolint:containedctx // of the library's own work
	stop      context.CancelFunc
	fetching  turns
	most      int64 // bytes of a download
	patience  time.Duration

	failMu   sync.Mutex
	failures map[string]string // why a pin could not be made, until a pin is made

	links links
}

// Open opens the library, and removes the links that a crashed run has left.
func Open(ctx context.Context, cfg Config) (*Library, error) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.GitHub == "" {
		cfg.GitHub = "https://github.com/"
	}
	l := &Library{cfg: cfg, failures: map[string]string{}, fetching: turns{held: map[string]chan struct{}{}}, most: maxDownload, patience: fetchLimit}
	if err := os.RemoveAll(l.path("tmp")); err != nil {
		return nil, fmt.Errorf("the skills cannot be opened: %w", err)
	}
	for _, dir := range []string{"tmp", "pins", "content"} {
		if err := os.MkdirAll(l.path(dir), 0o700); err != nil {
			return nil, fmt.Errorf("the skills cannot be opened: %w", err)
		}
	}
	processes, err := proxy.Open(proxy.Config{Beside: cfg.Beside, Logger: cfg.Logger, Purpose: "skills"})
	if err != nil {
		return nil, err
	}
	l.processes = processes
	l.life, l.stop = context.WithCancel(context.WithoutCancel(ctx))
	if err := l.openLinks(ctx); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	l.prune()
	return l, nil
}

// Close cancels fetches. Links stay: their users must have called Unlink before.
func (l *Library) Close() error {
	l.stop()
	return l.processes.Close()
}

func (l *Library) path(parts ...string) string {
	return filepath.Join(append([]string{l.cfg.Dir}, parts...)...)
}

// within returns ctx limited by the given time and by the library's life.
func (l *Library) within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	stop := context.AfterFunc(l.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// turns is a set of locks by name.
type turns struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed on release
}

// take locks name, waiting until ctx ends; the returned function unlocks name.
func (t *turns) take(ctx context.Context, name string) (func(), error) {
	for {
		t.mu.Lock()
		before := t.held[name]
		if before == nil {
			mine := make(chan struct{})
			t.held[name] = mine
			t.mu.Unlock()
			return func() {
				t.mu.Lock()
				defer t.mu.Unlock()
				delete(t.held, name)
				close(mine)
			}, nil
		}
		t.mu.Unlock()
		select {
		case <-before:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
