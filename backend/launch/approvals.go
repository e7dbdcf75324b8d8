package launch

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"deskhand/backend/record"
	"deskhand/backend/refusal"
)

// Approval is something that a person has approved, at some time.
type Approval struct {
	Directory  string      `json:"directory" doc:"Empty for an entry of all projects"`
	Kind       string      `json:"kind" enum:"mcp,skill,instructions,hook,agent_config,script,project"`
	Name       string      `json:"name"`
	Hash       string      `json:"hash"`
	Detail     string      `json:"detail" doc:"What was shown"`
	ApprovedAt record.Time `json:"approvedAt"`
	Older      bool        `json:"older,omitempty" doc:"Another content was approved under this name since; this one is approved all the same"`
}

// mostApprovals are listed at once.
const mostApprovals = 2000

// Approvals lists what is approved, by directory and name, the newest of a name first. A directory need not exist any more; with "" the list
// has all directories, those of AllProjects first, and the newest approvals where there are too many.
func (g *Gate) Approvals(ctx context.Context, directory string) ([]Approval, error) {
	scan := func(s record.Scanner) (a Approval, err error) {
		var at int64
		err = s.Scan(&a.Directory, &a.Kind, &a.Name, &a.Hash, &a.Detail, &at)
		a.ApprovedAt = record.Time{Time: time.UnixMilli(at)}
		return a, err
	}
	directory, err := cleanScope(directory)
	if err != nil {
		return nil, err
	}
	list, err := record.Query(ctx, g.deps.Store.Read(), scan, `SELECT directory, kind, name, hash, detail, approved_at FROM trust
		WHERE ? IN ('', directory) ORDER BY directory, kind, name, approved_at DESC, rowid DESC LIMIT ?`, directory, mostApprovals)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", refusal.ErrStorage, err)
	}
	for i := range list {
		if i > 0 {
			before := list[i-1]
			list[i].Older = before.Directory == list[i].Directory && before.Kind == list[i].Kind && before.Name == list[i].Name
		}
	}
	return list, nil
}

// approvedIn returns the directory for which an executable is approved that was found for a directory.
func (e Executable) approvedIn(directory string) string {
	if e.Scope == scopeAll && !e.own {
		return AllProjects
	}
	if e.in != "" {
		return e.in
	}
	return directory
}

// CountsIn reports whether the approval of an executable that was found for a directory counts in another directory as well.
func (e Executable) CountsIn(directory, other string) bool {
	in := e.approvedIn(directory)
	return in == AllProjects || in == other
}

// judge marks the executables of a directory that are approved there, or in the repository that the directory stands for, or in all directories.
func (g *Gate) judge(ctx context.Context, directory string, found []Executable) error {
	type approval struct{ directory, kind, name, hash, detail string }
	scan := func(s record.Scanner) (a approval, err error) {
		err = s.Scan(&a.directory, &a.kind, &a.name, &a.hash, &a.detail)
		return a, err
	}
	list, err := record.Query(ctx, g.deps.Store.Read(), scan, `SELECT directory, kind, name, hash, detail FROM trust WHERE directory IN (?, ?, ?)
		ORDER BY approved_at, rowid`, directory, g.standsFor(directory), AllProjects)
	if err != nil {
		return err
	}
	for i := range found {
		e := &found[i]
		in := e.approvedIn(directory)
		for _, a := range list {
			if a.kind != e.Kind || a.name != e.Name || (a.directory == AllProjects) != (in == AllProjects) {
				continue
			}
			e.Before = a.detail
			e.Approved = e.Approved || a.hash == e.Hash
		}
		if e.Approved {
			e.Before = ""
		}
	}
	return nil
}

// standsFor returns the directory of the repository that a directory stands for, see Deps.StandsFor.
func (g *Gate) standsFor(directory string) string {
	if directory == AllProjects {
		return AllProjects
	}
	return g.deps.StandsFor(directory)
}

// judgeOrLog is judge for a search: nothing counts as approved when the approvals cannot be read.
func (g *Gate) judgeOrLog(ctx context.Context, directory string, found []Executable) {
	if err := g.judge(ctx, directory, found); err != nil {
		g.deps.Logger.Error("approvals cannot be read", "directory", directory, "error", err)
	}
}

// Approve approves what is in the directory, or in the configuration of AllProjects, now and has one of the hashes. When one of the hashes is not
// there any more, because somebody has changed its content, nothing is approved.
func (g *Gate) Approve(ctx context.Context, directory string, hashes []string) error {
	found, err := g.Executables(ctx, directory)
	if err != nil {
		return err
	}
	var chosen []Executable
	for _, hash := range hashes {
		before := len(chosen)
		for _, e := range found { // two entries with the same sources of skills have one hash
			if e.Hash == hash {
				chosen = append(chosen, e)
			}
		}
		if len(chosen) == before {
			return changed(hash)
		}
	}
	if directory, err = cleanScope(directory); err != nil {
		return err
	}
	return g.approve(ctx, directory, chosen)
}

// changed refuses an approval of a content that is not there any more.
func changed(hash string) error {
	return &refusal.Error{Code: "trust.changed", Params: map[string]string{"hash": hash}}
}

// approve stores approvals, and tells of them.
func (g *Gate) approve(ctx context.Context, directory string, list []Executable) error {
	err := g.write(ctx, func(tx *sql.Tx) error { return SaveApprovals(ctx, tx, directory, list) })
	if err == nil {
		g.deps.Approved(directory, list)
	}
	return err
}

// SaveApprovals stores approvals of what was found for a directory in the caller's transaction. A content that was approved before becomes
// the newest one again.
func SaveApprovals(ctx context.Context, tx *sql.Tx, directory string, list []Executable) error {
	for _, e := range list {
		if _, err := tx.ExecContext(ctx, `INSERT OR REPLACE INTO trust (directory, kind, name, hash, detail, approved_at) VALUES (?, ?, ?, ?, ?, ?)`,
			e.approvedIn(directory), e.Kind, e.Name, e.Hash, e.Detail, time.Now().UnixMilli()); err != nil {
			return err
		}
	}
	return nil
}

// Revoke takes an approval back, in the directory, which need not exist, and in the repository that the directory stands for; or the approval of
// an entry of AllProjects. What runs already goes on.
func (g *Gate) Revoke(ctx context.Context, directory, hash string) error {
	return g.revoke(ctx, directory, ` AND hash = ?`, hash)
}

// RevokeAll takes all approvals of a directory back, as Revoke does.
func (g *Gate) RevokeAll(ctx context.Context, directory string) error {
	return g.revoke(ctx, directory, "")
}

func (g *Gate) revoke(ctx context.Context, directory, condition string, args ...any) error {
	directory, err := cleanScope(directory)
	if err != nil {
		return err
	}
	args = append([]any{directory, g.standsFor(directory)}, args...)
	return g.write(ctx, func(tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, `DELETE FROM trust WHERE directory IN (?, ?)`+condition, args...)
		return err
	})
}

func (g *Gate) write(ctx context.Context, f func(*sql.Tx) error) error {
	if err := g.deps.Store.Write(ctx, f); err != nil {
		return fmt.Errorf("%w: %w", refusal.ErrStorage, err)
	}
	return nil
}
