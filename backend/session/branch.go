package session

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
	Commit string `json:"commit,omitempty" doc:"What is checked out where it is no branch"`
}

// maxHead is more than a name of a branch, or a path, can be.
const maxHead = 8 << 10

// Branch tells what is checked out where a session works. It reads what git keeps beside the files, and starts nothing: it is asked
// often, and no git need be there.
func (c *Client) Branch(ctx context.Context, id string) (Branch, error) {
	s, err := c.Get(ctx, id)
	if err != nil || c.hosts.At(s.Place).Directories == nil {
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

// headOf reads HEAD of the repository whose work tree a directory is. In a linked work tree .git is a file that names where it is.
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
		return Branch{} // nothing that git writes
	}
	return Branch{Commit: head}
}

// firstLine of a plain file, and of nothing else: whoever opens a pipe waits for its writer.
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
