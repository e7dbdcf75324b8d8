package git

import "strings"

// Branch is a branch of a repository, or a remote's branch as of the last fetch.
type Branch struct {
	Name     string // such as main or origin/main
	Commit   string
	Remote   bool
	Worktree string // the worktree in which the branch is checked out, as git writes the path; "" = none
}

// AskBranches returns the arguments of a run that lists at most 500 branches, the newest first. [ReadBranches] reads what git answers.
func AskBranches() []string {
	return []string{
		"for-each-ref", "--sort=-committerdate", "--count=500", "--format=%(refname) %(objectname) %(symref) %(worktreepath)", "refs/heads", "refs/remotes",
	}
}

// ReadBranches reads the lines of [AskBranches]. usual is the branch that a clone checks out, such as origin/main; "" = git does not know it.
func ReadBranches(lines []string) (list []Branch, usual string) {
	const remotes = "refs/remotes/"
	for _, line := range lines {
		const fields = 4
		f := strings.SplitN(line, " ", fields)
		if len(f) != fields {
			continue
		}
		if f[2] != "" { // another name of a branch
			if of, is := strings.CutPrefix(f[2], remotes); is && (usual == "" || strings.HasPrefix(f[0], remotes+"origin/")) {
				usual = of
			}
			continue
		}
		b := Branch{Commit: f[1], Worktree: f[3]}
		if b.Name, b.Remote = strings.CutPrefix(f[0], remotes); !b.Remote {
			b.Name = strings.TrimPrefix(f[0], "refs/heads/")
		}
		list = append(list, b)
	}
	return list, usual
}

// MainBranches are the usual names of the branch that others are merged into.
func MainBranches() []string { return []string{"main", "master", "trunk", "develop"} }
