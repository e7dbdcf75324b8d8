-- The set-up of a work tree. A work tree without a row has not been looked at yet.
CREATE TABLE setup (
  worktree TEXT PRIMARY KEY, -- its id
  port     INTEGER NOT NULL, -- the first of its ports; 0 = it has none
  ports    INTEGER NOT NULL, -- how many
  state    TEXT NOT NULL,    -- running, also when the program died meanwhile; done, failed, stopped, without, none
  record   TEXT NOT NULL     -- JSON: which command, how it ended, and what was written
) STRICT, WITHOUT ROWID;

-- Nothing is set up in work trees that are there already.
INSERT INTO setup (worktree, port, ports, state, record) SELECT id, 0, 0, 'none', '' FROM worktree;
