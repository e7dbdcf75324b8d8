package landing

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"deskhand/backend/git"
	"deskhand/backend/refusal"
)

// BaseStatus compares a session's branch, and the files on disk, with another branch, the base.
type BaseStatus struct {
	Base       string     `json:"base" doc:"Branch that was compared with, such as main or origin/main"`
	Bases      []string   `json:"bases" doc:"Branches to compare with, the most likely one first"`
	Remote     bool       `json:"remote" doc:"The base is a remote's branch, as of the last fetch; nothing can be merged into it here"`
	BaseCommit string     `json:"baseCommit" doc:"Commit of the base"`
	Head       string     `json:"head" doc:"Commit that is checked out"`
	Ahead      int        `json:"ahead" doc:"Number of commits that the base does not have"`
	Behind     int        `json:"behind" doc:"Number of commits of the base that the branch does not have"`
	CheckedOut string     `json:"checkedOut,omitempty" doc:"Other worktree in which the base is checked out, whose files a merge changes"`
	Conflicts  []string   `json:"conflicts" doc:"Files that both sides have changed in the same place, if the branch were merged with the base"`
	Files      []BaseFile `json:"files" doc:"Files that differ on disk from the commit that the branch and the base have in common"`
	Message    string     `json:"message" doc:"Proposal for the message of a merge"`

	fork string // the commit in common
}

// BaseFile is a file that differs from the base.
type BaseFile struct {
	Path        string `json:"path" doc:"Relative to the repository, with slashes"`
	Was         string `json:"was,omitempty" doc:"Earlier path of a renamed file"`
	Kind        string `json:"kind" enum:"added,modified,deleted,renamed,type,conflict"`
	Added       int    `json:"added" doc:"Number of lines; 0 for a binary file"`
	Removed     int    `json:"removed" doc:"Number of lines; 0 for a binary file"`
	Uncommitted bool   `json:"uncommitted,omitempty" doc:"The file differs from the last commit, too"`
}

// Base compares a session's branch with another one; "" = the most likely base.
func (l *Library) Base(ctx context.Context, id, base string) (BaseStatus, error) {
	p, err := l.open(ctx, id)
	if err != nil {
		return BaseStatus{}, err
	}
	now, err := l.files(ctx, p)
	if err != nil {
		return BaseStatus{}, err
	}
	s, err := l.compare(ctx, p, now, base)
	if err != nil {
		return s, err
	}
	if s.Files, err = l.differing(ctx, p, s.fork, now); err != nil {
		return s, l.refused(err)
	}
	return s, nil
}

// compare compares the commits alone.
func (l *Library) compare(ctx context.Context, p place, now RepositoryStatus, base string) (BaseStatus, error) {
	s, err := l.against(ctx, p, now, base)
	if err != nil {
		return s, err
	}
	s.Message = proposal(p.session)
	if s.Behind, s.Ahead, err = l.distance(ctx, p, s.BaseCommit, s.Head); err != nil {
		return s, l.refused(err)
	}
	_, s.Conflicts, err = l.merged(ctx, p, s)
	return s, err
}

// against finds the base, and the commit in common with it.
func (l *Library) against(ctx context.Context, p place, now RepositoryStatus, base string) (BaseStatus, error) {
	s := BaseStatus{Base: base, Head: now.Head, Conflicts: []string{}, Files: []BaseFile{}}
	if now.Head == "" {
		return s, &refusal.Error{Code: refusedFirst}
	}
	branches, err := l.branches(ctx, p, now)
	if err != nil {
		return s, l.refused(err)
	}
	if len(branches) == 0 {
		return s, &refusal.Error{Code: refusedNoBase}
	}
	s.Bases = make([]string, 0, len(branches))
	for _, b := range branches {
		s.Bases = append(s.Bases, b.Name)
	}
	at := 0
	if base != "" {
		at = slices.Index(s.Bases, base)
	}
	if at < 0 {
		return s, &refusal.Error{Code: refusedBase, Params: map[string]string{"base": base}}
	}
	of := branches[at]
	s.Base, s.BaseCommit, s.Remote, s.CheckedOut = of.Name, of.Commit, of.Remote, of.checkedOut
	if s.fork, err = l.say(ctx, p, run{}, "merge-base", s.BaseCommit, s.Head); err != nil {
		return s, err
	}
	if s.fork == "" {
		return s, &refusal.Error{Code: refusedUnrelated, Params: map[string]string{"base": s.Base}}
	}
	return s, nil
}

// branch is a branch that a session's can be compared with.
type branch struct {
	git.Branch

	checkedOut string // another worktree
}

// branches returns the branches of a repository except the one that is checked out. First comes the one with which the session's worktree
// began, then the one in the repository's main worktree, then the one that the branch follows, then those of the usual names, then the newest.
func (l *Library) branches(ctx context.Context, p place, now RepositoryStatus) (all []branch, err error) {
	said, err := l.lines(ctx, p, run{}, git.AskBranches()...)
	if err != nil {
		return nil, err
	}
	main, err := l.mainWorktree(ctx, p)
	if err != nil {
		return nil, err
	}
	list, _ := git.ReadBranches(said)
	for _, of := range list {
		b := branch{Branch: of}
		if path := filepath.FromSlash(of.Worktree); path != p.top {
			b.checkedOut = path
		}
		if b.Remote || b.Name != now.Branch {
			all = append(all, b)
		}
	}
	slices.SortStableFunc(all, func(a, b branch) int { return a.rank(p.session.Base, main, now) - b.rank(p.session.Base, main, now) })
	return all, nil
}

// rank returns the place of a branch among the bases of another one: began is the branch with which the session's worktree began, and main the
// repository's main worktree.
func (b branch) rank(began, main string, now RepositoryStatus) int {
	usual := git.MainBranches()
	places := []bool{
		b.Name == began,
		b.checkedOut != "" && b.checkedOut == main,
		b.Name == now.Upstream && slices.Contains(usual, now.Branch), // main follows origin/main
	}
	for _, name := range usual {
		places = append(places, !b.Remote && b.Name == name)
	}
	return slices.Index(append(places, b.Name == now.Upstream, true), true)
}

// mainWorktree returns the worktree with which a repository was made.
func (l *Library) mainWorktree(ctx context.Context, p place) (string, error) {
	said, err := l.records(ctx, p, run{}, "worktree", "list", "--porcelain", "-z")
	if err != nil || len(said) == 0 {
		return "", err
	}
	return filepath.FromSlash(strings.TrimPrefix(said[0], "worktree ")), nil
}

// distance returns how many commits each of two has that the other does not have.
func (l *Library) distance(ctx context.Context, p place, left, right string) (onlyLeft, onlyRight int, err error) {
	said, err := l.say(ctx, p, run{}, "rev-list", "--left-right", "--count", left+"..."+right)
	if err != nil {
		return 0, 0, err
	}
	a, b, _ := strings.Cut(said, "\t")
	onlyLeft, _ = strconv.Atoi(a) // a text that is no number stands for none
	onlyRight, _ = strconv.Atoi(b)
	return onlyLeft, onlyRight, nil
}

// merged returns the tree of a merge of the branch into the base, and the files with conflicts. Nothing but objects is written.
func (l *Library) merged(ctx context.Context, p place, s BaseStatus) (tree string, conflicts []string, err error) {
	conflicts = []string{}
	said, err := l.records(ctx, p, run{}, "merge-tree", "--write-tree", "--name-only", "--no-messages", "-z", s.BaseCommit, s.Head)
	status, failed := errors.AsType[*git.StatusError](err)
	switch {
	case failed && (strings.Contains(status.Stderr, "usage: git merge-tree") || strings.Contains(status.Stderr, "unknown rev")):
		return "", conflicts, &refusal.Error{Code: refusedOldGit}
	case failed && status.Code == 1 && len(said) > 0:
		for _, path := range said[1:] {
			if path != "" && !slices.Contains(conflicts, path) {
				conflicts = append(conflicts, path)
			}
		}
		slices.Sort(conflicts)
	case err != nil:
		return "", conflicts, l.refused(err)
	case len(said) == 0:
		return "", conflicts, &refusal.Error{Code: refusedOldGit}
	}
	return said[0], conflicts, nil
}

// differing returns the files on disk that differ from a commit.
func (l *Library) differing(ctx context.Context, p place, from string, now RepositoryStatus) ([]BaseFile, error) {
	said, err := l.records(ctx, p, run{}, "diff-index", "--raw", "--numstat", "-z", "-M", "--no-ext-diff", from)
	if err != nil {
		return nil, err
	}
	files := readDifferences(said)
	changed := map[string]string{}
	for _, f := range now.Files {
		changed[f.Path] = f.Kind
	}
	for i := range files {
		kind, is := changed[files[i].Path]
		files[i].Uncommitted = is
		if kind == "conflict" {
			files[i].Kind = kind
		}
		delete(changed, files[i].Path)
	}
	const counted = 1000 // files of which the lines are counted
	for path, kind := range changed {
		if kind != "added" && kind != "conflict" {
			continue // the file is as it was in the common commit, and not as in the last one
		}
		added := BaseFile{Path: path, Kind: kind, Uncommitted: true}
		if len(files) < counted {
			added.Added = lineCount(p.top, path)
		}
		files = append(files, added)
	}
	slices.SortFunc(files, func(a, b BaseFile) int { return strings.Compare(a.Path, b.Path) })
	return files, nil
}

// lineCount returns the number of lines of a file; 0 for one that cannot be shown.
func lineCount(top, path string) int {
	text, _, err := onDisk(top, path)
	if err != nil || text == nil || *text == "" {
		return 0
	}
	return strings.Count(strings.TrimSuffix(*text, "\n"), "\n") + 1
}

// readDifferences reads what git diff-index prints with --raw --numstat -z: a record and one path or two for each file, then counts and paths
// for each. A file that was written since git looked, and is the same, is left out.
func readDifferences(said []string) []BaseFile {
	files, doubted, rest := readRaw(said)
	counts := readCounts(rest)
	files = slices.DeleteFunc(files, func(f BaseFile) bool { return doubted[f.Path] && counts[f.Path] == [2]int{} })
	for i := range files {
		files[i].Added, files[i].Removed = max(counts[files[i].Path][0], 0), max(counts[files[i].Path][1], 0)
	}
	return files
}

// readRaw reads the records of files. Of the doubted ones only counts tell that they differ.
func readRaw(said []string) (files []BaseFile, doubted map[string]bool, rest []string) {
	doubted = map[string]bool{}
	i := 0
	for ; i+1 < len(said) && strings.HasPrefix(said[i], ":"); i += 2 {
		const parts = 5 // :MODE MODE OBJECT OBJECT LETTER
		f := strings.Fields(said[i])
		if len(f) != parts {
			continue
		}
		file := BaseFile{Path: said[i+1], Kind: map[byte]string{'A': "added", 'D': "deleted", 'T': "type", 'U': "conflict", 'R': "renamed"}[f[4][0]]}
		if file.Kind == "renamed" && i+2 < len(said) {
			i++
			file.Was, file.Path = file.Path, said[i+1]
		}
		if file.Kind == "" {
			file.Kind = "modified"
			doubted[file.Path] = strings.TrimPrefix(f[0], ":") == f[1]
		}
		if !slices.ContainsFunc(files[max(len(files)-1, 0):], func(last BaseFile) bool { return last.Path == file.Path }) { // one with conflicts comes twice
			files = append(files, file)
		}
	}
	return files, doubted, said[i:]
}

// readCounts reads the numbers of added and removed lines of files; of a binary file, -1.
func readCounts(said []string) map[string][2]int {
	counts := map[string][2]int{}
	for i := 0; i < len(said); i++ {
		const parts = 3 // ADDED, REMOVED, PATH, which follows in two records for a renamed file
		f := strings.SplitN(said[i], "\t", parts)
		if len(f) != parts {
			continue
		}
		path := f[2]
		if path == "" && i+2 < len(said) {
			path, i = said[i+2], i+2
		}
		added, _ := strconv.Atoi(f[0])
		removed, _ := strconv.Atoi(f[1])
		counts[path] = [2]int{added, removed}
		if f[0] == "-" {
			counts[path] = [2]int{-1, -1}
		}
	}
	return counts
}
