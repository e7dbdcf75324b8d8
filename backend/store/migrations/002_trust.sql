-- What a person has approved of a directory: whatever in it starts programs, by the hash of what was shown. A row is never changed:
-- other content has another hash, and is asked for anew.

CREATE TABLE trust (
  directory   TEXT NOT NULL,            -- a clean absolute path
  kind        TEXT NOT NULL,            -- mcp | skill
  name        TEXT NOT NULL,
  hash        TEXT NOT NULL,
  detail      TEXT NOT NULL,            -- as it was shown, for the difference to what comes after it
  approved_at INTEGER NOT NULL,
  PRIMARY KEY (directory, kind, name, hash)
) STRICT;
