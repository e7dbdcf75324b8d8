package worktrees

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Branch is what is checked out in a session's directory.
type Branch struct {
	Name   string `json:"name,omitempty" doc:"Absent where no branch is checked out, or the directory is in no repository"`
	Commit string `json:"commit,omitempty" doc:"Commit that is checked out where no branch is"`
}

// maxHead is longer than any name of a branch, and than any path.
const maxHead = 8 << 10

// Branch returns the branch that is checked out in a session's directory. Branch reads git's own files and starts no process, because surfaces
// ask often, and git may not be installed.
func (l *Library) Branch(ctx context.Context, session string) (Branch, error) {
	s, err := l.deps.Sessions.Find(ctx, session)
	if err != nil || !s.Local {
		return Branch{}, err
	}
	head, ok := headAbove(s.Cwd)
	if !ok {
		return Branch{}, nil
	}
	return branchOf(head), nil
}

// headAbove reads HEAD of the repository that a directory is in.
func headAbove(dir string) (string, bool) {
	for {
		if head, ok := headOf(dir); ok {
			return head, true
		}
		above := filepath.Dir(dir)
		if above == dir {
			return "", false
		}
		dir = above
	}
}

// headOf reads HEAD of a worktree. In a linked worktree .git is a file that names the git directory.
func headOf(dir string) (string, bool) {
	git := filepath.Join(dir, ".git")
	if text, ok := firstLine(git); ok {
		at, named := strings.CutPrefix(text, "gitdir: ")
		if !named {
			return "", false
		}
		if git = at; !filepath.IsAbs(git) {
			git = filepath.Join(dir, git)
		}
	}
	return firstLine(filepath.Join(git, "HEAD"))
}

func branchOf(head string) Branch {
	if ref, ok := strings.CutPrefix(head, "ref: "); ok {
		return Branch{Name: strings.TrimPrefix(ref, "refs/heads/")}
	}
	if strings.Trim(head, "0123456789abcdef") != "" {
		return Branch{} // git writes no such text
	}
	return Branch{Commit: head}
}

// firstLine reads the first line of a regular file. Opening a FIFO would wait for its writer.
func firstLine(path string) (string, bool) {
	if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
		return "", false
	}
	f, err := os.Open(path)
	if err != nil {
		return "", false
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxHead))
	line, _, _ := strings.Cut(string(text), "\n")
	return strings.TrimSpace(line), err == nil
}
