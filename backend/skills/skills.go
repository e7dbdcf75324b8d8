// Package skills hides where a directory's skills come from and how they get to where an agent reads them: from sources (a GitHub
// repository, another git repository, a folder of this machine) into a cache, and from there, by links, into folders of the directory.
//
// # Sources
//
// An entry of skills.json names sources; each folder below a source (or below its subpath) that holds a SKILL.md is a skill, and all of
// that folder belongs to it. A source in git is pinned: the commit that its ref led to when it was first fetched stays, for this entry of
// this directory, until [Library.Fetch] is called; a changed source is another one. Of the commit only the files of skills are kept. A
// folder without a ref is looked at anew each time, and copied when it is linked, so that a running session keeps what it began with.
//
// # What is shown before
//
// Fetching starts a program (git, and what the person's git starts) and makes a connection, and what it brings may hold programs. So a
// source that nobody has approved is never fetched at a session's start: [State.Shown] of an entry that is not fetched yet tells what it
// is, by type, address, ref and subpath. Once it is fetched, Shown is the same as before when the skills hold nothing that can be run,
// and needs no second approval; else it tells the commit and every such file, and its hash, which is another one, covers their content.
// A file counts as one that can be run when it is executable, begins with #!, or is named like a script or a program. Instructions for
// the agent are text: what it does by them, its own approvals are for. The library asks nobody: who calls Complete or Fetch has made sure.
//
// # Git
//
// Git is the system's, by argument vector, without a terminal, with a limit on time and size, and its processes are ours to end. It may
// speak https and ssh; http only to this machine; file only with repositories of this machine. It fetches one commit without its
// history and nothing else: no tags, no submodules. The commit is never checked out: its files are read as objects and written by us, in
// a repository where neither the person's configuration nor the fetched files say anything, so that hooks, filters (LFS too: a skill
// gets the pointer) and attributes do nothing. The person's configuration counts for the connection alone: proxies, credentials.
//
// # What is refused
//
// Of a skill: links that do not lead to a file of the same skill (those that do become copies), submodules, names that some system
// cannot hold or would hold in one file, more than 2,000 files, a file over 16 MiB, 64 MiB in all. Such a skill stays visible with its
// problem and is not linked. Of several skills with one name, whatever the case of its letters, the first counts. Of a source: more than
// 200 skills that are wanted, or 512 MiB; a folder of another machine, which on Windows is signed in to by looking; names in git that
// git itself would not write.
//
// # Links
//
// A link stands while a session needs it. What has the name of a skill already stays, and the skill is left out, and it is said. Before a
// link is made it is written down, and only what is written down and still the very same link is removed again: at the end of the last
// session that needs it, and at the next start after a crash. Folders that were made for links go with the last link if they are empty.
// Where links cannot be made (Windows without the right to) a copy takes its place, which is removed when nobody has changed it.
//
// In a git work tree the links are named in the repository's info/exclude, between two lines that say so, as long as they stand: an
// agent that commits all that is new would otherwise commit paths of this machine. A .gitignore would itself be something new.
//
// # Failure
//
// What cannot be fetched, read or linked is told in State.Detail, Skill.Problem and the notes of Link, for people, and never keeps
// anything else from working. A cache that was damaged is made anew, from the same commit; what programs have left beside the files of
// a skill is taken out of it, without asking anybody.
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

// Errors of this package; their text is fit for people.
var (
	ErrEntry    = errors.New("the entry cannot be used")
	ErrNoGit    = git.ErrAbsent
	ErrGit      = git.ErrFailed
	ErrLimit    = errors.New("too much")
	ErrNotFound = errors.New("not found")
	ErrText     = errors.New("not a text that can be shown")
	ErrClosed   = errors.New("the skills are closed")
)

// Limits of what is fetched and kept.
const (
	maxListed     = 400_000 // files of a repository that are looked through
	maxWalked     = 50_000  // files of a folder: it is looked at again and again
	maxSkills     = 200
	maxCollection = 5_000     // skills of a source that are looked through for those that are wanted
	maxFiles      = 2_000     // of a skill
	maxFile       = 16 << 20  // of one
	maxSkill      = 64 << 20  // of all
	maxFrontal    = 256 << 10 // of a SKILL.md
	longestText   = 1 << 20   // that is looked through for commands
	maxSource     = 512 << 20 // of all skills of a source
	maxDownload   = 512 << 20 // what git may take on the disk meanwhile
	fetchLimit    = 5 * time.Minute
)

// Config of a library.
type Config struct {
	Dir     string                         // ours alone
	Beside  *proxy.Set                     // whose watchdog and ledger git's processes get; required
	Environ func(context.Context) []string // where git is looked for, and what it is started in
	GitHub  string                         // what comes before owner/repo; "" means https://github.com/
	Logger  *slog.Logger
}

// Library is the skills of all directories of one data directory.
type Library struct {
	cfg       Config
	processes *proxy.Set
	life      context.Context //nolint:containedctx // of what runs in the library's own name
	stop      context.CancelFunc
	fetching  turns
	most      int64 // bytes of a download
	patience  time.Duration

	failMu   sync.Mutex
	failures map[string]string // why a pin could not be made, until it is

	links links
}

// Open opens the library, and removes the links that a run which died has left.
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

// Close ends what is being fetched. Links stay as they are: who made them for a session takes them back before.
func (l *Library) Close() error {
	l.stop()
	return l.processes.Close()
}

func (l *Library) path(parts ...string) string {
	return filepath.Join(append([]string{l.cfg.Dir}, parts...)...)
}

// within is ctx that ends with the library as well, and after the given time.
func (l *Library) within(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	stop := context.AfterFunc(l.life, cancel)
	return ctx, func() { stop(); cancel() }
}

// turns lets one at a time have a name.
type turns struct {
	mu   sync.Mutex
	held map[string]chan struct{} // closed when it is given back
}

// take waits for the name until ctx ends; the returned function gives it back.
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
