-- Work trees that were made for sessions. Which sessions work in one is told by their directories: forks and others may.
CREATE TABLE worktree (
  id         TEXT PRIMARY KEY,          -- the session that it was made for, which may be gone
  main       TEXT NOT NULL,             -- the first work tree of its repository, or the repository where that is bare
  repository TEXT NOT NULL,             -- the work tree that it was made from
  path       TEXT NOT NULL UNIQUE,
  branch     TEXT NOT NULL,             -- that was made for it
  base       TEXT NOT NULL,             -- the commit that it began with
  state      TEXT NOT NULL,             -- ready, removed; making, removing, restoring while that is on its way, or was when the program died
  kept       TEXT NOT NULL DEFAULT '',  -- JSON: what its removal has kept
  made_at    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
