package landing

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"deskhand/backend/refusal"
)

// RepositoryStatus is the state of a session's repository: what is in no commit yet, and where the branch stands.
type RepositoryStatus struct {
	Repository string            `json:"repository" doc:"Worktree that contains the session's directory"`
	Branch     string            `json:"branch,omitempty" doc:"Absent where no branch is checked out"`
	Head       string            `json:"head,omitempty" doc:"Commit that is checked out; absent before the first"`
	Subject    string            `json:"subject,omitempty" doc:"First line of that commit's message"`
	Upstream   string            `json:"upstream,omitempty" doc:"Branch that the branch follows, such as origin/main"`
	Ahead      int               `json:"ahead" doc:"Number of commits that the upstream does not have; without an upstream, that no remote has"`
	Behind     int               `json:"behind" doc:"Number of commits of the upstream that the branch does not have, as of the last fetch"`
	Remotes    []string          `json:"remotes" doc:"Names of the remotes; the one that a push goes to comes first"`
	Author     string            `json:"author,omitempty" doc:"Name and address that a commit gets; absent where git does not know them"`
	Unfinished string            `json:"unfinished,omitempty" enum:"merge,rebase,cherry-pick,revert,bisect,am" doc:"Operation of git that waits for its end"`
	Hooks      []string          `json:"hooks" doc:"Names of the programs that git would run for a commit or a push and that nobody has approved here"`
	Message    string            `json:"message" doc:"Proposal for the message of a commit"`
	Files      []UncommittedFile `json:"files"`
}

// UncommittedFile is a file that differs from the commit that is checked out.
type UncommittedFile struct {
	Path   string `json:"path" doc:"Relative to the repository, with slashes"`
	Was    string `json:"was,omitempty" doc:"Earlier path of a renamed file"`
	Kind   string `json:"kind" enum:"added,modified,deleted,renamed,type,conflict" doc:"Added: also files that git does not track yet"`
	Staged string `json:"staged,omitempty" enum:"all,part" doc:"What of the change the person has staged; absent: nothing"`
}

// Status returns the state of a session's repository.
func (l *Library) Status(ctx context.Context, id string) (RepositoryStatus, error) {
	p, err := l.open(ctx, id)
	if err != nil {
		return RepositoryStatus{}, err
	}
	return l.status(ctx, p)
}

func (l *Library) status(ctx context.Context, p place) (RepositoryStatus, error) {
	s, err := l.files(ctx, p)
	if err != nil {
		return RepositoryStatus{}, err
	}
	s.Message = proposal(p.session)
	if s.Remotes, err = l.remotes(ctx, p, s.Branch); err != nil {
		return RepositoryStatus{}, err
	}
	if s.Author, err = l.author(ctx, p); err != nil {
		return RepositoryStatus{}, err
	}
	if s.Head != "" {
		if s.Subject, err = l.subject(ctx, p); err != nil {
			return RepositoryStatus{}, err
		}
	}
	if s.Upstream == "" && s.Head != "" && len(s.Remotes) > 0 {
		count, err := l.say(ctx, p, run{}, "rev-list", "--count", "HEAD", "--not", "--remotes")
		if err != nil {
			return RepositoryStatus{}, err
		}
		s.Ahead, _ = strconv.Atoi(count) // a text that is no number stands for none
	}
	unapproved, err := l.deps.Unapproved(ctx, p.session.Cwd)
	s.Hooks = append(s.Hooks, unapproved...)
	return s, err
}

// files returns the part of a state that git status knows: the branch and the files.
func (l *Library) files(ctx context.Context, p place) (RepositoryStatus, error) {
	said, err := l.records(ctx, p, run{config: []string{"status.renames=true"}}, "status", "--porcelain=v2", "-z", "--branch", "--untracked-files=all")
	if err != nil {
		return RepositoryStatus{}, l.refused(err)
	}
	s := RepositoryStatus{Repository: p.top, Unfinished: unfinished(p.gitDir), Remotes: []string{}, Hooks: []string{}}
	s.read(said)
	return s, nil
}

// find returns a file of the state, or the refusal for a path that has none.
func (s *RepositoryStatus) find(path string) (UncommittedFile, error) {
	i := slices.IndexFunc(s.Files, func(f UncommittedFile) bool { return f.Path == path })
	if i < 0 {
		return UncommittedFile{}, &refusal.Error{Code: refusedFile, Params: map[string]string{"path": path}}
	}
	return s.Files[i], nil
}

// read takes the state from the records of git status.
func (s *RepositoryStatus) read(records []string) {
	s.Files = []UncommittedFile{}
	for i := 0; i < len(records); i++ {
		line := records[i]
		if header, is := strings.CutPrefix(line, "# "); is {
			s.header(header)
			continue
		}
		f, ok := readFile(line)
		if strings.HasPrefix(line, "2 ") { // the earlier path of a renamed or copied file is the next record
			if i++; f.Kind == "renamed" && i < len(records) {
				f.Was = records[i]
			}
		}
		if ok {
			s.Files = append(s.Files, f)
		}
	}
	slices.SortFunc(s.Files, func(a, b UncommittedFile) int { return strings.Compare(a.Path, b.Path) })
}

// readFile reads the record of a file: its kind, fields that are separated by blanks, and the path.
func readFile(line string) (f UncommittedFile, ok bool) {
	kind, rest, _ := strings.Cut(line, " ")
	fields, known := map[string]int{"1": 8, "2": 9, "u": 10, "?": 1}[kind]
	parts := strings.SplitN(rest, " ", max(fields, 1))
	if !known || len(parts) != fields {
		return f, false
	}
	f.Path = parts[fields-1]
	switch kind {
	case "1":
		f.Kind, f.Staged = kindOf(parts[0]), stagedOf(parts[0])
	case "2":
		f.Kind, f.Staged = "renamed", stagedOf(parts[0])
		if strings.HasPrefix(parts[fields-2], "C") {
			f.Kind = "added"
		}
	case "u":
		f.Kind = "conflict"
	default:
		f.Kind = "added"
	}
	return f, true
}

// header takes one of the lines about the branch.
func (s *RepositoryStatus) header(line string) {
	name, value, _ := strings.Cut(line, " ")
	switch {
	case name == "branch.oid" && value != "(initial)":
		s.Head = value
	case name == "branch.head" && value != "(detached)":
		s.Branch = value
	case name == "branch.upstream":
		s.Upstream = value
	case name == "branch.ab":
		ahead, behind, _ := strings.Cut(value, " ")
		s.Ahead, _ = strconv.Atoi(strings.TrimPrefix(ahead, "+"))
		s.Behind, _ = strconv.Atoi(strings.TrimPrefix(behind, "-"))
	}
}

// kindOf returns the kind of a change by the two letters of git status, the index's and the worktree's.
func kindOf(letters string) string {
	switch {
	case strings.Contains(letters, "D") && letters[0] != 'A':
		return "deleted"
	case strings.Contains(letters, "A"):
		return "added"
	case strings.Contains(letters, "T"):
		return "type"
	}
	return "modified"
}

func stagedOf(letters string) string {
	switch {
	case letters[0] == '.':
		return ""
	case letters[1] == '.':
		return "all"
	}
	return "part"
}

// unfinished returns the operation of git that waits for its end in a git directory.
func unfinished(gitDir string) string {
	for _, row := range [][2]string{
		{"rebase-merge", "rebase"},
		{"rebase-apply/applying", "am"},
		{"rebase-apply", "rebase"},
		{"MERGE_HEAD", "merge"},
		{"CHERRY_PICK_HEAD", "cherry-pick"},
		{"REVERT_HEAD", "revert"},
		{"BISECT_LOG", "bisect"},
	} {
		if _, err := os.Lstat(filepath.Join(gitDir, filepath.FromSlash(row[0]))); err == nil {
			return row[1]
		}
	}
	return ""
}

// remotes returns the remotes, first the one that a push of a branch goes to where git's configuration chooses one.
func (l *Library) remotes(ctx context.Context, p place, branch string) ([]string, error) {
	said, err := l.records(ctx, p, run{}, "config", "--null", "--get-regexp", `^(remote\..*\.url|remote\.pushdefault|branch\..*\.(push)?remote)$`)
	if err != nil && !ended(err) { // a failed one has found no such setting
		return nil, l.refused(err)
	}
	names, chosen := []string{}, map[string]string{}
	for _, record := range said {
		key, value, _ := strings.Cut(record, "\n")
		if name, is := strings.CutPrefix(key, "remote."); is && strings.HasSuffix(name, ".url") {
			if name = strings.TrimSuffix(name, ".url"); !slices.Contains(names, name) {
				names = append(names, name)
			}
			continue
		}
		chosen[key] = value
	}
	for _, name := range []string{chosen["branch."+branch+".pushremote"], chosen["remote.pushdefault"], chosen["branch."+branch+".remote"], "origin"} {
		if i := slices.Index(names, name); i >= 0 {
			return append([]string{name}, slices.Delete(names, i, i+1)...), nil
		}
	}
	return names, nil
}

// author returns the name and the address that a commit gets, or "".
func (l *Library) author(ctx context.Context, p place) (string, error) {
	said, err := l.say(ctx, p, run{person: true}, "var", "GIT_AUTHOR_IDENT")
	if i := strings.LastIndex(said, ">"); i >= 0 {
		return said[:i+1], err
	}
	return "", err
}

// subject returns the first line of the message of the commit that is checked out.
func (l *Library) subject(ctx context.Context, p place) (string, error) {
	lines, err := l.lines(ctx, p, run{}, "cat-file", "commit", "HEAD")
	if err != nil {
		return "", l.refused(err)
	}
	i := slices.Index(lines, "")
	if i < 0 || i+1 >= len(lines) {
		return "", nil
	}
	return lines[i+1], nil
}

// proposal returns a message for a commit of a session's work: the first sentence of the session's title.
func proposal(s Session) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s.Title), "\n")
	line = strings.TrimSpace(line)
	if i := strings.IndexAny(line, ".!?"); i > 0 && (i+1 == len(line) || line[i+1] == ' ') {
		line = line[:i]
	}
	const most = 72
	if letters := []rune(line); len(letters) > most {
		line = string(letters[:most])
		if i := strings.LastIndexByte(line, ' '); i > 0 {
			line = line[:i]
		}
	}
	return line
}
