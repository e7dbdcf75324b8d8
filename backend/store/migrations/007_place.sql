-- Runtimes on other machines; the place of a session or a workspace is the id of one, or local. Tokens are not kept here.
CREATE TABLE place (
  id         TEXT PRIMARY KEY,
  name       TEXT NOT NULL,
  url        TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;
-- How far what an agent elsewhere says is in the journal, and how much of what it was told it has: JSON, or '' while none runs there.
ALTER TABLE session ADD COLUMN line TEXT NOT NULL DEFAULT '';
CREATE INDEX session_line ON session (place) WHERE line <> '';
