-- Tokens that people have made for the API on loopback. What a token is, nobody can read here.
CREATE TABLE token (
  id         TEXT PRIMARY KEY,
  name       TEXT NOT NULL,
  hash       BLOB NOT NULL UNIQUE,         -- SHA-256 of the token
  scopes     TEXT NOT NULL,                -- runtime, client; with a space between
  created_at INTEGER NOT NULL,
  expires_at INTEGER NOT NULL DEFAULT 0,   -- 0 = never
  used_at    INTEGER NOT NULL DEFAULT 0,   -- 0 = never
  used_from  TEXT NOT NULL DEFAULT ''
) STRICT, WITHOUT ROWID;

-- The last calls over the API on loopback; older ones are removed as new ones come.
CREATE TABLE audit (
  seq    INTEGER PRIMARY KEY,
  at     INTEGER NOT NULL,
  method TEXT NOT NULL,
  path   TEXT NOT NULL,                    -- without the query, where secrets may stand
  status INTEGER NOT NULL,
  ms     INTEGER NOT NULL,
  peer   TEXT NOT NULL,
  how    TEXT NOT NULL,                    -- it was let in: own, named, open, refused
  token  TEXT NOT NULL DEFAULT '',         -- the name of a token that a person has made
  bytes  INTEGER NOT NULL
) STRICT;
