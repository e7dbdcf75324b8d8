package landing

import (
	"context"

	"deskhand/backend/refusal"
)

// Since returns the files of a session's repository that differ on disk from a commit that the branch has: what was committed after it, and what
// is uncommitted.
func (l *Library) Since(ctx context.Context, id, commit string) ([]BaseFile, error) {
	p, now, err := l.sinceIn(ctx, id, commit)
	if err != nil {
		return nil, err
	}
	files, err := l.differing(ctx, p, commit, now)
	if err != nil {
		return nil, l.refused(err)
	}
	return files, nil
}

// FileSince returns a file of a session's repository as it is in a commit that the branch has, and on disk. was is the path in the commit; "" = the
// same.
func (l *Library) FileSince(ctx context.Context, id, commit, path, was string) (FileVersions, error) {
	p, _, err := l.sinceIn(ctx, id, commit)
	if err != nil {
		return FileVersions{}, err
	}
	return l.versions(ctx, p, commit, path, was)
}

// sinceIn opens the repository of a session, in which a commit has to be known.
func (l *Library) sinceIn(ctx context.Context, id, commit string) (place, RepositoryStatus, error) {
	p, err := l.open(ctx, id)
	if err != nil {
		return p, RepositoryStatus{}, err
	}
	if err := l.git(ctx, p, run{}, "cat-file", "-e", commit+"^{commit}"); err != nil {
		if ended(err) {
			return p, RepositoryStatus{}, &refusal.Error{Code: refusedBase, Params: map[string]string{"base": commit}}
		}
		return p, RepositoryStatus{}, l.refused(err)
	}
	now, err := l.files(ctx, p)
	return p, now, err
}
