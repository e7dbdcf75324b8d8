-- What each ended turn took. The row of a turn stays when the session is deleted.
CREATE TABLE tally (
  n             INTEGER PRIMARY KEY,    -- in the order in which the turns were counted
  turn          TEXT NOT NULL UNIQUE,
  session       TEXT NOT NULL,          -- may be gone
  place         TEXT NOT NULL,
  agent         TEXT NOT NULL,
  model         TEXT NOT NULL,          -- '' where nobody knows
  account       TEXT NOT NULL,          -- '' where nobody knows
  ended_at      INTEGER NOT NULL,
  took_ms       INTEGER NOT NULL,
  input         INTEGER,                -- tokens; NULL where the agent does not tell
  output        INTEGER,
  cached_read   INTEGER,
  cached_write  INTEGER,
  thought       INTEGER,
  total         INTEGER,
  cost          INTEGER,                -- of this turn, in billionths; NULL where the agent tells no cost
  currency      TEXT NOT NULL,          -- of cost
  told          INTEGER,                -- the cost of the whole session as the agent told it last, in billionths; NULL while it told none
  told_currency TEXT NOT NULL
) STRICT;
CREATE INDEX tally_ended ON tally (ended_at);
CREATE INDEX tally_session ON tally (session, n);

-- The cost that an agent told of a session before the first turn that counts: it was spent elsewhere.
CREATE TABLE tally_before (
  session       TEXT PRIMARY KEY,
  told          INTEGER NOT NULL,
  told_currency TEXT NOT NULL
) STRICT, WITHOUT ROWID;

-- The sessions whose turns ended before there was a tally, and are still to be counted.
CREATE TABLE tally_unfilled (
  session TEXT PRIMARY KEY
) STRICT, WITHOUT ROWID;
INSERT INTO tally_unfilled (session) SELECT DISTINCT session FROM turn;
