-- Agents elsewhere that could not be ended and that no session's line tells of any more: it is erased, or another runs for it.
CREATE TABLE stray (
  server TEXT PRIMARY KEY,
  place  TEXT NOT NULL
) STRICT;
