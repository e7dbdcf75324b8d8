-- Sessions that the agent of another session has begun for parts of its work. They are listed with that session alone.
ALTER TABLE session ADD COLUMN parent TEXT NOT NULL DEFAULT '';   -- the id of that session; empty for a session of a person
ALTER TABLE session ADD COLUMN subagent TEXT NOT NULL DEFAULT ''; -- JSON: what the agent tells of the subagent
CREATE INDEX session_parent ON session (parent) WHERE parent <> '';
DROP INDEX session_updated;
CREATE INDEX session_updated ON session (archived_at = 0, updated_at DESC) WHERE parent = '';
