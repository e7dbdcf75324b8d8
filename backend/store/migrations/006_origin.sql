-- Where a session comes from when it was not begun here from nothing: a fork, another agent's conversation, an import.
ALTER TABLE session ADD COLUMN origin TEXT NOT NULL DEFAULT ''; -- JSON, or '' while none
