package landing

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"deskhand/backend/git"
	"deskhand/backend/refusal"
)

// CommitRequest is a commit that a person asks for.
type CommitRequest struct {
	Head    string       `json:"head,omitempty" maxLength:"64" doc:"Commit that was checked out when the files were shown; absent before the first commit"`
	Paths   []string     `json:"paths" maxItems:"100000" doc:"Files to commit whole, by the paths of the status. Others stay as they are, and so does what is staged of them"`
	Parts   []CommitPart `json:"parts,omitempty" maxItems:"1000" doc:"Files to commit in part"`
	Message string       `json:"message" maxLength:"100000" doc:"Message of the commit; lines that begin with # stay"`
	Amend   bool         `json:"amend,omitempty" doc:"Replaces the commit that is checked out, unless a remote has it"`
	NoHooks bool         `json:"noHooks,omitempty" doc:"Runs no hook of the repository. Without it, a commit is refused while a hook is not approved"`
}

// CommitPart is a file of which a commit gets another text than the one on disk, such as the text with some of its hunks. The file stays as it is.
type CommitPart struct {
	Path   string `json:"path" maxLength:"16384" doc:"A path of the status"`
	Digest string `json:"digest" maxLength:"64" doc:"Digest of the text on disk from which the part was chosen"`
	Text   string `json:"text" maxLength:"1048576" doc:"Text that the commit gets"`
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
	case len(c.Paths)+len(c.Parts) == 0 && !c.Amend:
		return nil, refusal.Bad(refusedNothing)
	case len(s.Hooks) > 0 && !c.NoHooks:
		return nil, &refusal.Error{Code: refusedHooks, Params: map[string]string{"names": strings.Join(s.Hooks, ", ")}}
	}
	return s.chosen(c)
}

// chosen returns the paths of the files to commit whole.
func (s *RepositoryStatus) chosen(c CommitRequest) (paths []string, err error) {
	for _, p := range c.Parts {
		f, err := s.find(p.Path)
		if err != nil {
			return nil, err
		}
		if f.Kind != "modified" && f.Kind != "added" || slices.Contains(c.Paths, p.Path) {
			return nil, &refusal.Error{Code: refusedWhole, Params: map[string]string{"path": p.Path}}
		}
	}
	for _, path := range c.Paths {
		f, err := s.find(path)
		switch {
		case err != nil:
			return nil, err
		case f.Kind == "conflict":
			return nil, &refusal.Error{Code: refusedConflict, Params: map[string]string{"path": path}}
		}
		if paths = append(paths, path); f.Was != "" {
			paths = append(paths, f.Was)
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
	dir, err := os.MkdirTemp(p.gitDir, "deskhand-commit-") // where git has its own such indexes
	if err != nil {
		return 0, fmt.Errorf("cannot write to %s: %w", p.gitDir, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	index := filepath.Join(dir, "index")
	if err := copyIndex(filepath.Join(p.gitDir, "index"), index); err != nil {
		return 0, err
	}
	tree := []string{"read-tree", "--reset", "HEAD"} // keeps what is known of unchanged files, which need not be read again
	if c.Head == "" {
		tree = []string{"read-tree", "--empty"}
	}
	if err := l.git(ctx, p, run{index: index}, tree...); err != nil {
		return 0, err
	}
	if len(paths) > 0 {
		err := l.git(ctx, p, run{index: index, in: []byte(strings.Join(paths, "\x00") + "\x00")}, "update-index", "--add", "--remove", "--replace", "-z", "--stdin")
		if err != nil {
			return 0, err
		}
	}
	if err := l.addParts(ctx, p, index, c.Parts); err != nil {
		return 0, err
	}
	args := []string{"commit", "--quiet", "--cleanup=whitespace", "--file=-"}
	if c.Amend {
		args = append(args, "--amend")
	}
	err = l.git(ctx, p, run{index: index, person: true, hooks: !c.NoHooks, in: []byte(c.Message)}, args...)
	if status, failed := errors.AsType[*git.StatusError](err); failed && status.Stderr == "" { // the files differ in what git does not keep
		return 0, &refusal.Error{Code: refusedNothing}
	}
	if err != nil {
		return 0, err
	}
	return l.follow(context.WithoutCancel(ctx), p, c.Head)
}

// addParts adds texts to an index, as git would add files with these texts: with the filters of their paths.
func (l *Library) addParts(ctx context.Context, p place, index string, parts []CommitPart) error {
	var entries []string
	for _, part := range parts {
		text, _, err := onDisk(p.top, part.Path)
		switch {
		case err != nil:
			return err
		case text == nil || digest(*text) != part.Digest:
			return &refusal.Error{Code: refusedChanged, Params: map[string]string{"path": part.Path}}
		}
		object, err := l.lines(ctx, p, run{in: []byte(part.Text)}, "hash-object", "-w", "--stdin", "--path="+part.Path)
		if err != nil {
			return err
		}
		mode, err := l.mode(ctx, p, index, part.Path)
		if err != nil {
			return err
		}
		entries = append(entries, mode+" "+object[0]+"\t"+part.Path+"\x00")
	}
	if len(entries) == 0 {
		return nil
	}
	return l.git(ctx, p, run{index: index, in: []byte(strings.Join(entries, ""))}, "update-index", "-z", "--index-info")
}

// mode returns the mode of a file in an index, or the one that git would give to the file on disk.
func (l *Library) mode(ctx context.Context, p place, index, path string) (string, error) {
	said, err := l.records(ctx, p, run{index: index}, "ls-files", "-z", "--stage", "--", path)
	if err != nil {
		return "", err
	}
	if len(said) > 0 {
		mode, _, _ := strings.Cut(said[0], " ")
		return mode, nil
	}
	info, err := os.Lstat(filepath.Join(p.top, filepath.FromSlash(path)))
	if err == nil && info.Mode()&0o100 != 0 {
		return "100755", nil
	}
	return "100644", err
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

// follow gives the worktree's index the files of the commit that was made after another one, and returns their number. An index that still
// has the old files would take the commit back with the person's next one, so follow waits until another git, such as an agent's, is done
// with the index.
func (l *Library) follow(ctx context.Context, p place, before string) (files int, err error) {
	entries, err := l.entries(ctx, p, before)
	if err != nil || len(entries) == 0 {
		return 0, err
	}
	update := func() error {
		return l.git(ctx, p, run{in: []byte(strings.Join(entries, ""))}, "update-index", "-z", "--index-info")
	}
	err = update()
	for until := time.Now().Add(cmp.Or(l.deps.IndexWait, indexWait)); failedWith(err, indexLocked) && time.Now().Before(until); err = update() {
		select {
		case <-time.After(indexPause):
		case <-l.life.Done():
		}
	}
	if failedWith(err, indexLocked) {
		commit, err := l.say(ctx, p, run{}, "rev-parse", "HEAD")
		if err != nil {
			return 0, err
		}
		return 0, &refusal.Error{Code: refusedIndex, Params: map[string]string{"commit": commit}}
	}
	if err != nil {
		return 0, err
	}
	if err := l.git(ctx, p, run{}, "update-index", "-q", "--refresh"); err != nil && !ended(err) { // git fails where files differ
		return 0, err
	}
	return len(entries), nil
}

// entries returns the files in which the commit that is checked out differs from another, in the form of git update-index --index-info. Hooks may
// have committed more than was chosen.
func (l *Library) entries(ctx context.Context, p place, before string) (list []string, err error) {
	compared := []string{before, "HEAD"}
	if before == "" {
		compared = []string{"--root", "HEAD"}
	}
	said, err := l.records(ctx, p, run{}, append([]string{"diff-tree", "-r", "-z", "--no-renames", "--no-commit-id"}, compared...)...)
	for i := 0; i+1 < len(said); i += 2 {
		const fields = 5 // :MODE MODE OBJECT OBJECT LETTER, then the path
		if f := strings.Fields(said[i]); len(f) == fields {
			list = append(list, fmt.Sprintf("%s %s\t%s\x00", f[1], f[3], said[i+1]))
		}
	}
	return list, err
}
