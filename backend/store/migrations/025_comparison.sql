-- The same prompt to several agents, each in a worktree from the same commit.
CREATE TABLE comparison (
  id         TEXT PRIMARY KEY,
  created_at INTEGER NOT NULL, -- milliseconds
  record     TEXT NOT NULL     -- JSON: the prompt, the commit, and the members with the ids of their sessions
) STRICT, WITHOUT ROWID;
