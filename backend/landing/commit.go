package landing

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"deskhand/backend/git"
	"deskhand/backend/refusal"
)

// CommitRequest is a commit that a person asks for.
type CommitRequest struct {
	Head    string   `json:"head,omitempty" maxLength:"64" doc:"Commit that was checked out when the files were shown; absent before the first commit"`
	Paths   []string `json:"paths" maxItems:"100000" doc:"Files to commit whole, by the paths of the status. Others stay as they are, and so does what is staged of them"`
	Message string   `json:"message" maxLength:"100000" doc:"Message of the commit; lines that begin with # stay"`
	Amend   bool     `json:"amend,omitempty" doc:"Replaces the commit that is checked out, unless a remote has it"`
	NoHooks bool     `json:"noHooks,omitempty" doc:"Runs no hook of the repository. Without it, a commit is refused while a hook is not approved"`
}

// Committed is a commit that was made.
type Committed struct {
	Commit  string `json:"commit"`
	Subject string `json:"subject"`
	Branch  string `json:"branch,omitempty"`
	Files   int    `json:"files" doc:"Number of files that differ from the commit before"`
}

// Commit commits chosen files as they are on disk. What else is staged stays staged.
//
// The commit is made from an index of its own: the tree of HEAD with the chosen files, as git commit --only does it. Then the worktree's index
// gets the committed files. A Deskhand that ends in between leaves a commit, and an index that shows its files as changed and staged back;
// the files themselves are untouched.
func (l *Library) Commit(ctx context.Context, id string, c CommitRequest) (Committed, error) {
	if err := l.deps.Writable(); err != nil {
		return Committed{}, err
	}
	p, err := l.open(ctx, id)
	if err != nil {
		return Committed{}, err
	}
	release, err := l.claim(p)
	if err != nil {
		return Committed{}, err
	}
	defer release()
	now, err := l.status(ctx, p)
	if err != nil {
		return Committed{}, err
	}
	paths, err := now.check(c)
	if err != nil {
		return Committed{}, err
	}
	if c.Amend {
		if err := l.unpublished(ctx, p); err != nil {
			return Committed{}, err
		}
	}
	made, err := l.commit(ctx, p, c, paths)
	if err != nil {
		return Committed{}, l.refused(err)
	}
	done := Committed{Branch: now.Branch}
	if done.Commit, err = l.say(ctx, p, run{}, "rev-parse", "HEAD"); err != nil {
		return done, err
	}
	if done.Subject, err = l.subject(ctx, p); err != nil {
		return done, err
	}
	done.Files = made
	return done, nil
}

// check returns the paths of the files to commit, with the earlier paths of renamed ones, or why there can be no such commit.
func (s *RepositoryStatus) check(c CommitRequest) ([]string, error) {
	switch {
	case strings.TrimSpace(c.Message) == "":
		return nil, refusal.Bad(refusedMessage)
	case s.Unfinished != "" && s.Unfinished != "bisect":
		return nil, &refusal.Error{Code: refusedUnfinished, Params: map[string]string{"what": s.Unfinished}}
	case s.Head != c.Head:
		return nil, &refusal.Error{Code: refusedMoved}
	case c.Amend && s.Head == "":
		return nil, &refusal.Error{Code: refusedFirst}
	case len(c.Paths) == 0 && !c.Amend:
		return nil, refusal.Bad(refusedNothing)
	case len(s.Hooks) > 0 && !c.NoHooks:
		return nil, &refusal.Error{Code: refusedHooks, Params: map[string]string{"names": strings.Join(s.Hooks, ", ")}}
	}
	var paths []string
	for _, path := range c.Paths {
		i := slices.IndexFunc(s.Files, func(f UncommittedFile) bool { return f.Path == path })
		if i < 0 {
			return nil, &refusal.Error{Code: refusedFile, Params: map[string]string{"path": path}}
		}
		paths = append(paths, path)
		if was := s.Files[i].Was; was != "" {
			paths = append(paths, was)
		}
	}
	return paths, nil
}

// unpublished refuses when a remote has the commit that is checked out.
func (l *Library) unpublished(ctx context.Context, p place) error {
	there, err := l.say(ctx, p, run{}, "for-each-ref", "--count=1", "--contains=HEAD", "--format=%(refname:short)", "refs/remotes")
	if err != nil {
		return err
	}
	if there != "" {
		return &refusal.Error{Code: refusedPublished, Params: map[string]string{"branch": there}}
	}
	return nil
}

// commit makes the commit and returns the number of its files.
func (l *Library) commit(ctx context.Context, p place, c CommitRequest, paths []string) (files int, err error) {
	if _, err := os.Lstat(filepath.Join(p.gitDir, "index.lock")); err == nil {
		return 0, &refusal.Error{Code: refusedLocked}
	}
	// In the git directory, as git's own index.lock: hooks find it there, and a rename within a disk is what git does with it.
	dir, err := os.MkdirTemp(p.gitDir, "deskhand-commit-")
	if err != nil {
		return 0, fmt.Errorf("cannot write to %s: %w", p.gitDir, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	index := filepath.Join(dir, "index")
	if err := copyIndex(filepath.Join(p.gitDir, "index"), index); err != nil {
		return 0, err
	}
	tree := []string{"read-tree", "--empty"}
	if c.Head != "" {
		tree = []string{"read-tree", "-m", "HEAD"} // keeps what is known of unchanged files, which need not be read again
	}
	if err := l.git(ctx, p, run{index: index}, tree...); err != nil {
		if err = l.git(ctx, p, run{index: index}, "read-tree", "--reset", "HEAD"); err != nil { // the person's index had conflicts
			return 0, err
		}
	}
	if len(paths) > 0 {
		err := l.git(ctx, p, run{index: index, in: []byte(strings.Join(paths, "\x00") + "\x00")}, "update-index", "--add", "--remove", "--replace", "-z", "--stdin")
		if err != nil {
			return 0, err
		}
	}
	args := []string{"commit", "--quiet", "--cleanup=whitespace", "--file=-"}
	if c.Amend {
		args = append(args, "--amend")
	}
	hooks := !c.NoHooks
	if !hooks {
		args = append(args, "--no-verify")
	}
	err = l.git(ctx, p, run{index: index, person: true, hooks: hooks, in: []byte(c.Message)}, args...)
	if status, failed := errors.AsType[*git.StatusError](err); failed && status.Stderr == "" { // the files differ in what git does not keep
		return 0, &refusal.Error{Code: refusedNothing}
	}
	if err != nil {
		return 0, err
	}
	return l.follow(context.WithoutCancel(ctx), p, c.Head)
}

// copyIndex copies an index with its time: git takes a file that was written since then for one to be read again, whatever its size and time.
func copyIndex(from, to string) (err error) {
	in, err := os.Open(from)
	if errors.Is(err, os.ErrNotExist) {
		return nil // a repository before its first file
	}
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// follow gives the worktree's index the files in which the new commit differs from the one before. Hooks may have committed more than was
// chosen.
func (l *Library) follow(ctx context.Context, p place, before string) (files int, err error) {
	against := before
	if against == "" {
		if against, err = l.emptyTree(ctx, p); err != nil {
			return 0, err
		}
	}
	said, err := l.records(ctx, p, run{}, "diff-tree", "-r", "-z", "--no-renames", "--no-commit-id", against, "HEAD")
	if err != nil {
		return 0, err
	}
	var entries strings.Builder
	for i := 0; i+1 < len(said); i += 2 {
		const fields = 5 // :MODE MODE OBJECT OBJECT LETTER, then the path
		f := strings.Fields(said[i])
		if len(f) != fields {
			continue
		}
		files++
		_, _ = fmt.Fprintf(&entries, "%s %s\t%s\x00", f[1], f[3], said[i+1])
	}
	if files == 0 {
		return 0, nil
	}
	if err := l.git(ctx, p, run{in: []byte(entries.String())}, "update-index", "-z", "--index-info"); err != nil {
		return files, err
	}
	if err := l.git(ctx, p, run{}, "update-index", "-q", "--refresh"); err != nil && !failedWith(err, "") { // its status says that files differ
		return files, err
	}
	return files, nil
}

func (l *Library) emptyTree(ctx context.Context, p place) (string, error) {
	return l.say(ctx, p, run{}, "hash-object", "-t", "tree", "--stdin")
}
