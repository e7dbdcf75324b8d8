package session

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/google/uuid"

	"deskhand/backend/host"
	"deskhand/backend/workspace"
	"deskhand/backend/worktree"
)

// A session can have a work tree of its own: a second directory of its repository, on a branch of its own, next to the repository. It is
// a person's directory like any other, and so is the branch; what we know of it beside is in a row. A session works in it as long as its
// directory lies there, whoever it was made for: a fork does too.
//
// What is begun is written down before it begins, so that a start after a crash knows what may be half done: see worktreesettle.go.

// Worktree is the work tree that a session works in.
type Worktree struct {
	Path       string    `json:"path"`
	Branch     string    `json:"branch" doc:"That was made for it; another one may be checked out by now"`
	Repository string    `json:"repository" doc:"The work tree that it was made from"`
	From       string    `json:"from" doc:"The directory there that the session's own stands for"`
	Base       string    `json:"base" doc:"The commit that it began with"`
	State      string    `json:"state" enum:"ready,removed,missing" doc:"missing: somebody else has removed it"`
	Kept       *KeptWork `json:"kept,omitempty" doc:"Of a removed one: what nobody had committed"`
	Left       string    `json:"left,omitempty" doc:"Of a removed one: where what could not be deleted of it lies. Nothing there is needed"`
}

// KeptWork is what the removal of a work tree has kept.
type KeptWork struct {
	Ref    string `json:"ref" doc:"Of the repository, with the shape of a stash: git stash apply brings it back"`
	Commit string `json:"commit"`
	Files  int    `json:"files"`
	At     Time   `json:"at"`
}

// WorktreePlan is what a work tree would be like.
type WorktreePlan struct {
	Repository string `json:"repository" doc:"The work tree that the directory is in"`
	Path       string `json:"path"`
	Cwd        string `json:"cwd" doc:"Where a session would work: the directory's place in it"`
	Branch     string `json:"branch" doc:"A name that is free"`
	Base       string `json:"base" doc:"The commit that it would begin with"`
	On         string `json:"on,omitempty" doc:"The branch that is checked out now; absent where none is"`
	Changed    int    `json:"changed" doc:"Files that nobody has committed, which it would not have"`
}

const (
	refusedWorktreeNone       = "worktree.none"          // the session works in none
	refusedWorktreeElsewhere  = "worktree.elsewhere"     // at a place elsewhere
	refusedWorktreeGit        = "worktree.no_git"        // there is no git
	refusedWorktreeRepository = "worktree.no_repository" // params path
	refusedWorktreeBare       = "worktree.bare"
	refusedWorktreeCommit     = "worktree.no_commit"
	refusedWorktreeSubmodule  = "worktree.submodule"    // the directory is in one
	refusedWorktreeFolder     = "worktree.subdirectory" // no commit has it; params path
	refusedWorktreeName       = "worktree.branch_name"  // params branch
	refusedWorktreeTaken      = "worktree.branch_taken" // params branch
	refusedWorktreeExists     = "worktree.exists"       // params path
	refusedWorktreeUnwritable = "worktree.unwritable"   // params path
	refusedWorktreeFull       = "worktree.disk_full"
	refusedWorktreeLocked     = "worktree.locked"
	refusedWorktreeUnfinished = "worktree.unfinished"
	refusedWorktreeNested     = "worktree.nested"       // params path
	refusedWorktreeSubmodules = "worktree.submodules"   // params path
	refusedWorktreeBusy       = "worktree.busy"         // params title: a turn runs
	refusedWorktreeChanging   = "worktree.changing"     // params path: another program writes there
	refusedWorktreeInUse      = "worktree.in_use"       // params branch
	refusedWorktreeMoved      = "worktree.branch_moved" // params branch, ref
	refusedWorktreeWorking    = "worktree.working"      // it is being removed or brought back
	refusedWorktreeRemoved    = "worktree.removed"
	refusedWorktreeThere      = "worktree.there"
	refusedWorktreeGone       = "worktree.gone"           // what is at its path is no work tree; params path
	refusedWorktreeUnreadable = "worktree.unreadable"     // nothing in a folder could be kept; params path
	refusedWorktreeFilter     = "worktree.filter"         // git would keep something else; params path
	refusedWorktreePrograms   = "worktree.programs"       // the repository alone names one that would run; params setting
	refusedWorktreeMissing    = "worktree.filter_missing" // a filter's program is not installed; params setting, program
	refusedWorktreeAside      = "worktree.aside"          // an unfinished removal; params path, aside
	refusedWorktreeFailed     = "worktree.failed"
)

// The states of a work tree.
const (
	treeMaking    = "making"
	treeReady     = "ready"
	treeRemoving  = "removing"
	treeRemoved   = "removed"
	treeRestoring = "restoring"
	treeMissing   = "missing" // only told
)

// treeRow is what is stored of a work tree.
type treeRow struct {
	id, main, repository, path, branch, base, state string
	kept                                            *keptTree
}

// keptTree is what is needed to bring a removed one back.
type keptTree struct {
	Commit string `json:"commit,omitempty"` // "" = all was committed
	Files  int    `json:"files,omitempty"`
	Branch string `json:"branch,omitempty"` // that was checked out
	Head   string `json:"head"`
	At     Time   `json:"at"`
	Left   string `json:"left,omitempty"` // where what could not be deleted lies
}

// worktrees are those that we know.
type worktrees struct {
	git *worktree.Library

	mu   sync.Mutex // protects what is below
	all  map[string]treeRow
	busy map[string]chan struct{} // those that somebody is at; closed when that is over
}

// keptRef names what is kept of a work tree, in its repository.
func keptRef(id string) string { return "refs/deskhand/kept/" + id }

// of finds the work tree that a directory lies in.
func (w *worktrees) of(dir string) (treeRow, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.all {
		if host.Within(r.path, dir) {
			return r, true
		}
	}
	return treeRow{}, false
}

// reserve has a path for one alone: of two that want it at once the other one is refused before anything is made or written. Who has it is at
// the work tree until [worktrees.giveBack].
func (w *worktrees) reserve(r treeRow) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, other := range w.all {
		if host.Within(other.path, r.path) {
			return false
		}
	}
	w.all[r.id], w.busy[r.id] = r, make(chan struct{})
	return true
}

// shared tells whether a work tree is that of another row too, however its path is spelled there.
func (w *worktrees) shared(r treeRow) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, err := os.Stat(r.path)
	for _, other := range w.all {
		there, missing := os.Stat(other.path)
		if other.id != r.id && (other.path == r.path || err == nil && missing == nil && os.SameFile(at, there)) {
			return true
		}
	}
	return false
}

// show is what is told of the work tree of a session; nil where it has none.
func (w *worktrees) show(cwd string, missing bool, gone func(path string) bool) *Worktree {
	r, ok := w.of(cwd)
	if !ok || r.state == treeMaking {
		return nil
	}
	t := &Worktree{Path: r.path, Branch: r.branch, Repository: r.repository, From: workspace.Rebase(cwd, r.path, r.repository), Base: r.base, State: treeReady}
	switch {
	case r.state == treeRemoved, r.state == treeRestoring:
		t.State = treeRemoved
		if r.kept != nil {
			t.Kept, t.Left = r.keptWork(), r.kept.Left
		}
	case missing && r.state == treeReady && gone(r.path):
		t.State = treeMissing
	}
	return t
}

func (r treeRow) keptWork() *KeptWork {
	if r.kept == nil || r.kept.Commit == "" {
		return nil
	}
	return &KeptWork{Ref: keptRef(r.id), Commit: r.kept.Commit, Files: r.kept.Files, At: r.kept.At}
}

// closed tells whether nothing may start in a directory, by whatever path, since it is on its way out or in.
func (w *worktrees) closed(dir string) bool {
	r, ok := w.of(dir)
	if !ok {
		r, ok = w.of(host.Resolve(dir))
	}
	return ok && (r.state == treeRemoving || r.state == treeRestoring)
}

// standsFor returns the directory of the repository that a directory in a worktree stands for, and any other directory as it is.
func (w *worktrees) standsFor(dir string) string {
	r, ok := w.of(dir)
	if !ok {
		return dir
	}
	return workspace.Rebase(dir, r.path, r.repository)
}

func (c *Client) loadWorktrees(ctx context.Context) error {
	list, err := query(ctx, c.cfg.Store.Read(), func(s scanner) (r treeRow, err error) {
		var kept string
		err = s.Scan(&r.id, &r.main, &r.repository, &r.path, &r.branch, &r.base, &r.state, &kept)
		if err == nil && kept != "" {
			err = json.Unmarshal([]byte(kept), &r.kept)
		}
		return r, err
	}, `SELECT id, main, repository, path, branch, base, state, kept FROM worktree`)
	for _, r := range list {
		c.worktrees.all[r.id] = r
	}
	return err
}

// putTree writes a row, and what else goes with it; then it counts. It is for who is at the work tree: all of the row is written. That it was
// begun is enough, whether its caller is there still or not.
func (c *Client) putTree(ctx context.Context, r treeRow, with func(*sql.Tx) error) error {
	ctx = context.WithoutCancel(ctx)
	// What is begun must be known after a loss of power, too: git's own files outlive one.
	err := c.cfg.Store.WriteSync(ctx, func(tx *sql.Tx) error {
		err := r.save(ctx, tx)
		if err == nil && with != nil {
			err = with(tx)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	c.worktrees.put(r)
	return nil
}

func (r treeRow) save(ctx context.Context, tx *sql.Tx) error {
	kept := ""
	if r.kept != nil {
		kept = string(mustJSON(r.kept))
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO worktree (id, main, repository, path, branch, base, state, kept, made_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET main = excluded.main, repository = excluded.repository, path = excluded.path, state = excluded.state, kept = excluded.kept`,
		r.id, r.main, r.repository, r.path, r.branch, r.base, r.state, kept, millis(time.Now()))
	return err
}

// put has what was written count.
func (w *worktrees) put(list ...treeRow) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range list {
		w.all[r.id] = r
	}
}

func (c *Client) dropTree(ctx context.Context, id string) error {
	ctx = context.WithoutCancel(ctx)
	err := c.cfg.Store.Write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM worktree WHERE id = ?`, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %w", ErrStorage, err)
	}
	c.worktrees.forget(id)
	return nil
}

func (w *worktrees) forget(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.all, id)
}

// PlanWorktree tells what a work tree for a directory would be like; name is what it is for, in a person's words.
func (c *Client) PlanWorktree(ctx context.Context, cwd, name string) (WorktreePlan, error) {
	cwd, err := workspace.Directory(cwd)
	if err != nil {
		return WorktreePlan{}, err
	}
	place, err := c.placeInGit(ctx, cwd)
	if err != nil {
		return WorktreePlan{}, err
	}
	changed, err := c.worktrees.git.Changed(ctx, place)
	if err != nil {
		return WorktreePlan{}, c.refusedTree(err, cwd, treeRow{})
	}
	branch, path, err := c.freeBranch(ctx, place, name)
	if err != nil {
		return WorktreePlan{}, c.refusedTree(err, cwd, treeRow{})
	}
	return WorktreePlan{
		Repository: place.Top, Path: path, Cwd: filepath.Join(path, place.Prefix), Branch: branch, Base: place.Head, On: place.Branch, Changed: changed,
	}, nil
}

// placeInGit finds the repository of a directory, of which a commit must have it.
func (c *Client) placeInGit(ctx context.Context, cwd string) (worktree.Place, error) {
	place, err := c.worktrees.git.Look(ctx, cwd)
	if err != nil {
		return place, c.refusedTree(err, cwd, treeRow{})
	}
	has, err := c.worktrees.git.Holds(ctx, place)
	if err == nil && !has {
		return place, bad(refusedWorktreeFolder, "path", cwd)
	}
	return place, err
}

const ourBranches = "deskhand/"

// freeBranch finds a name for a branch that no branch has, and a directory that is not there.
func (c *Client) freeBranch(ctx context.Context, place worktree.Place, name string) (branch, path string, err error) {
	const tries = 8
	prefix := ourBranches
	for range tries {
		const short = 6
		id := uuid.NewString()[:short]
		branch = prefix + slug(c.secret.Text(name)) + "-" + id
		path = treePath(place, branch)
		taken, err := c.worktrees.git.Has(ctx, place, branch)
		switch {
		case err != nil:
			return "", "", err
		case !taken && host.Gone(path):
			return branch, path, nil
		case taken:
			prefix = strings.ReplaceAll(ourBranches, "/", "-") // a branch called deskhand leaves no room below it
		}
	}
	return "", "", fmt.Errorf("%w: %s", worktree.ErrTaken, branch)
}

// treePath is where the work tree of a branch lies.
func treePath(place worktree.Place, branch string) string {
	return filepath.Join(place.Beside(), strings.ReplaceAll(strings.TrimPrefix(branch, ourBranches), "/", "-"))
}

// slug is a text as a part of the name of a branch, which is the name of a directory too.
func slug(text string) string {
	const most, otherwise = 32, "work"
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if b.Len()+len(word) > most {
			break
		}
		if b.Len() > 0 {
			b.WriteByte('-')
		}
		b.WriteString(word)
	}
	if b.Len() == 0 {
		return otherwise
	}
	return b.String()
}

// makeWorktree makes the work tree that a session is to begin in, whose directory n has from then on. What it gives is of the state making,
// and settles with the session. Whoever has it is at it, and gives it back.
func (c *Client) makeWorktree(ctx context.Context, id string, n *New) (*treeRow, error) {
	if c.hosts.At(n.Place).Directories == nil {
		return nil, bad(refusedWorktreeElsewhere)
	}
	if err := c.startable(n.Place, n.Agent); err != nil {
		return nil, err
	}
	cwd, err := workspace.Directory(n.Cwd)
	if err == nil {
		_, err = workspace.Directories(n.Directories)
	}
	if err != nil {
		return nil, err
	}
	place, err := c.placeInGit(ctx, cwd)
	if err != nil {
		return nil, err
	}
	branch, path := n.Branch, treePath(place, n.Branch)
	if branch == "" {
		branch, path, err = c.freeBranch(ctx, place, n.Title)
	} else {
		// What is there already must not be written down: after a kill it would be taken for half made.
		err = c.worktrees.git.Takes(ctx, place, path, branch)
	}
	r := treeRow{id: id, main: place.Main, repository: place.Top, path: path, branch: branch, base: place.Head, state: treeMaking}
	if err == nil {
		// Its row must not lie in a directory whose record is still that of a renamed one: it would follow that one, to a repository that has
		// nothing of it. Once the row is there its own path cannot be left any more: nobody else may be at a work tree that moves.
		if err := c.workspaces.MakeRoom(ctx, filepath.Join(path, place.Prefix), place.Main, place.Top); err != nil {
			return nil, err
		}
	}
	if err == nil && !c.worktrees.reserve(r) {
		err = worktree.ErrExists
	}
	if err != nil {
		return nil, c.refusedTree(err, cwd, r)
	}
	if err := c.makeReserved(ctx, place, cwd, r); err != nil {
		c.worktrees.giveBack(id)
		return nil, err
	}
	n.Cwd = filepath.Join(path, place.Prefix)
	return &r, nil
}

func (c *Client) makeReserved(ctx context.Context, place worktree.Place, cwd string, r treeRow) error {
	if err := c.putTree(ctx, r, nil); err != nil {
		c.worktrees.forget(r.id)
		return err
	}
	if err := c.worktrees.git.Make(ctx, place, r.path, r.branch); err != nil {
		return errors.Join(c.refusedTree(err, cwd, r), c.dropTree(ctx, r.id))
	}
	return nil
}

// settled is the row once its session is there.
func (r *treeRow) settled() treeRow {
	now := *r
	now.state = treeReady
	return now
}

// unmakeWorktree removes what was made for a session that there is not.
func (c *Client) unmakeWorktree(ctx context.Context, r *treeRow) error {
	if r == nil {
		return nil
	}
	c.worktrees.mu.Lock()
	stored := c.worktrees.all[r.id]
	c.worktrees.mu.Unlock()
	if stored.state != treeMaking { // the session was stored with it, and has what it says
		return nil
	}
	_, err := c.worktrees.git.Abandon(context.WithoutCancel(ctx), r.main, r.path, r.branch, worktree.Kept{Head: r.base})
	if err = c.rests(r, err); err != nil {
		return err
	}
	return c.dropTree(ctx, r.id)
}

// refusedFor is a refusal for which one file, or setting, is the reason; nil where there is none.
func refusedFor(err error, path string) error {
	of := func(code, name, value string) error {
		return &RefusedError{Code: code, Params: map[string]string{name: value}}
	}
	if nested, is := errors.AsType[*worktree.NestedError](err); is {
		if nested.Submodule {
			return of(refusedWorktreeSubmodules, "path", nested.Path)
		}
		return of(refusedWorktreeNested, "path", nested.Path)
	}
	if filtered, is := errors.AsType[*worktree.FilterError](err); is {
		return of(refusedWorktreeFilter, "path", filtered.Path)
	}
	if closed, is := errors.AsType[*worktree.UnreadableError](err); is {
		return of(refusedWorktreeUnreadable, "path", closed.Path)
	}
	if named, is := errors.AsType[*worktree.ProgramError](err); is {
		return of(refusedWorktreePrograms, "setting", named.Setting)
	}
	if missing, is := errors.AsType[*worktree.MissingFilterError](err); is {
		return &RefusedError{Code: refusedWorktreeMissing, Params: map[string]string{"setting": missing.Setting, "program": missing.Program}}
	}
	if away, is := errors.AsType[*worktree.AsideError](err); is {
		return &RefusedError{Code: refusedWorktreeAside, Params: map[string]string{"path": path, "aside": away.Path}}
	}
	return nil
}

// refusedTree puts what git could not do in words that a surface knows.
func (c *Client) refusedTree(err error, path string, r treeRow) error {
	if refused := refusedFor(err, path); refused != nil {
		return refused
	}
	params := map[string]string{"path": path, "branch": r.branch, "ref": keptRef(r.id)}
	list := []struct {
		err  error
		code string
	}{
		{worktree.ErrNoGit, refusedWorktreeGit},
		{worktree.ErrNoRepository, refusedWorktreeRepository},
		{worktree.ErrBare, refusedWorktreeBare},
		{worktree.ErrNoCommit, refusedWorktreeCommit},
		{worktree.ErrSubmodule, refusedWorktreeSubmodule},
		{worktree.ErrName, refusedWorktreeName},
		{worktree.ErrTaken, refusedWorktreeTaken},
		{worktree.ErrExists, refusedWorktreeExists},
		{worktree.ErrFull, refusedWorktreeFull},
		{worktree.ErrLocked, refusedWorktreeLocked},
		{worktree.ErrUnfinished, refusedWorktreeUnfinished},
		{worktree.ErrBusy, refusedWorktreeChanging},
		{worktree.ErrInUse, refusedWorktreeInUse},
		{worktree.ErrMoved, refusedWorktreeMoved},
		{worktree.ErrMissing, refusedWorktreeGone},
		{worktree.ErrUnwritable, refusedWorktreeUnwritable},
		{worktree.ErrGit, refusedWorktreeFailed},
	}
	i := slices.IndexFunc(list, func(row struct {
		err  error
		code string
	},
	) bool {
		return errors.Is(err, row.err)
	})
	switch {
	case errors.Is(err, worktree.ErrClosed):
		return ErrClosed
	case i < 0:
		return err
	}
	if r.path != "" && list[i].code != refusedWorktreeRepository {
		params["path"] = r.path
	}
	if list[i].code == refusedWorktreeFailed {
		params["detail"] = c.secret.Text(err.Error())
	}
	return &RefusedError{Code: list[i].code, Params: params, Bad: list[i].code == refusedWorktreeName}
}
