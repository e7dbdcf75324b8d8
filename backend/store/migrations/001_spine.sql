-- The journal (frame) is the truth; entry, turn and request are projections of it, kept so that a list or a transcript opens at once.

CREATE TABLE workspace (
  id         TEXT PRIMARY KEY,
  place      TEXT NOT NULL,
  path       TEXT NOT NULL,
  device     INTEGER NOT NULL,          -- 0 where the system gives none
  inode      INTEGER NOT NULL,
  born       INTEGER NOT NULL,          -- nanoseconds; tells a moved directory from a new one that got its inode
  created_at INTEGER NOT NULL           -- Unix milliseconds, as every *_at
) STRICT;
CREATE INDEX workspace_identity ON workspace (place, device, inode, born);
CREATE UNIQUE INDEX workspace_path ON workspace (place, path);

CREATE TABLE session (
  id               TEXT PRIMARY KEY,
  place            TEXT NOT NULL,
  workspace        TEXT NOT NULL REFERENCES workspace (id),
  cwd              TEXT NOT NULL,
  agent            TEXT NOT NULL,
  title            TEXT NOT NULL,
  title_by         TEXT NOT NULL,       -- '' | prompt | agent | person: who may still change it
  labels           TEXT NOT NULL,       -- JSON list of texts
  pinned           INTEGER NOT NULL,
  unread           INTEGER NOT NULL,
  draft            TEXT NOT NULL,
  acp_session_id   TEXT NOT NULL,
  protocol_version INTEGER NOT NULL,
  generation       INTEGER NOT NULL,
  facts            TEXT NOT NULL,       -- JSON: config options, commands, usage as the agent last told them
  exit             TEXT NOT NULL,       -- JSON, or '' while none
  created_at       INTEGER NOT NULL,
  updated_at       INTEGER NOT NULL,
  archived_at      INTEGER NOT NULL     -- 0 = not archived
) STRICT;
CREATE INDEX session_updated ON session (archived_at = 0, updated_at DESC);

CREATE TABLE frame (
  session    TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  n          INTEGER NOT NULL,          -- 1, 2, 3… within the session
  generation INTEGER NOT NULL,
  at         INTEGER NOT NULL,
  dir        TEXT NOT NULL CHECK (dir IN ('in', 'out', 'note')),
  encoding   TEXT NOT NULL CHECK (encoding IN ('raw', 'blob')),
  payload    BLOB NOT NULL,             -- the message, secrets redacted; or the sha256 of the blob that holds it
  PRIMARY KEY (session, n)
) STRICT, WITHOUT ROWID;

CREATE TABLE turn (
  id          TEXT PRIMARY KEY,
  session     TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  generation  INTEGER NOT NULL,
  state       TEXT NOT NULL,
  stop_reason TEXT NOT NULL,
  error       TEXT NOT NULL,
  usage       TEXT NOT NULL,
  started_at  INTEGER NOT NULL,
  ended_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX turn_session ON turn (session, started_at);
CREATE INDEX turn_open ON turn (state) WHERE state <> 'done';

CREATE TABLE entry (
  id      TEXT PRIMARY KEY,
  session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  seq     INTEGER NOT NULL,
  data    TEXT NOT NULL                 -- the Entry record
) STRICT;
CREATE UNIQUE INDEX entry_seq ON entry (session, seq);

CREATE TABLE request (
  id          TEXT PRIMARY KEY,
  session     TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  generation  INTEGER NOT NULL,
  status      TEXT NOT NULL,
  data        TEXT NOT NULL,            -- the Request record
  created_at  INTEGER NOT NULL
) STRICT;
CREATE INDEX request_open ON request (status, created_at) WHERE status = 'requested';
CREATE INDEX request_session ON request (session, created_at);
