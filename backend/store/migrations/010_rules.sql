-- Answers that are remembered. The built-in ones are not here.

CREATE TABLE rule (
  id          TEXT PRIMARY KEY,
  effect      TEXT NOT NULL,            -- allow | ask | deny
  scope       TEXT NOT NULL,            -- session | directory | everywhere
  session     TEXT REFERENCES session (id) ON DELETE CASCADE,   -- of scope session
  workspace   TEXT REFERENCES workspace (id) ON DELETE CASCADE, -- of scope directory: the place is in it
  kind        TEXT NOT NULL,            -- of what is asked for: execute, edit…
  pattern     TEXT NOT NULL,
  note        TEXT NOT NULL,            -- a person's
  expires_at  INTEGER NOT NULL,         -- 0 = never
  created_at  INTEGER NOT NULL,
  hits        INTEGER NOT NULL,         -- how many requests it has answered
  last_hit_at INTEGER NOT NULL          -- 0 = none yet
) STRICT;
CREATE INDEX rule_session ON rule (session) WHERE session IS NOT NULL;
CREATE INDEX rule_workspace ON rule (workspace) WHERE workspace IS NOT NULL;
