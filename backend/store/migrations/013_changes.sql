-- What agents changed in directories, and the ways back. The contents are in the private stores of snapshots, by the ids of their trees.

CREATE TABLE turn_change (
  turn      TEXT PRIMARY KEY,
  session   TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  workspace TEXT NOT NULL,              -- in whose store the trees are
  at        INTEGER NOT NULL,           -- when the turn began
  ended     INTEGER NOT NULL,           -- when its end was looked at; 0 while that is to be done
  was       TEXT NOT NULL,              -- the tree before it; '' where nobody looked
  became    TEXT NOT NULL,              -- the tree after it
  left_out  TEXT NOT NULL,              -- JSON: what is not in the trees
  data      TEXT NOT NULL               -- the TurnChanges record; '' while the end is to be looked at
) STRICT, WITHOUT ROWID;
CREATE INDEX turn_change_session ON turn_change (session, at);
CREATE INDEX turn_change_workspace ON turn_change (workspace, at);
CREATE INDEX turn_change_open ON turn_change (ended) WHERE ended = 0;

-- Hunks that a person has marked as kept.
CREATE TABLE kept_hunk (
  session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  scope   TEXT NOT NULL,                -- a turn, or start
  hunk    TEXT NOT NULL,
  PRIMARY KEY (session, scope, hunk)
) STRICT, WITHOUT ROWID;

-- What was put back, and how it was before.
CREATE TABLE restoration (
  id        TEXT PRIMARY KEY,
  session   TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  workspace TEXT NOT NULL,
  turn      TEXT NOT NULL,              -- the turn that was taken back as a whole, else ''
  at        INTEGER NOT NULL,
  was       TEXT NOT NULL,              -- trees
  became    TEXT NOT NULL,
  paths     TEXT NOT NULL               -- JSON list, base64: names may be no text
) STRICT, WITHOUT ROWID;
CREATE INDEX restoration_session ON restoration (session);
CREATE INDEX restoration_workspace ON restoration (workspace);
