-- A deleted session stays for a moment, so that deleting can be undone; then it goes with all that belongs to it.
ALTER TABLE session ADD COLUMN deleted_at INTEGER NOT NULL DEFAULT 0; -- 0 = not deleted
CREATE INDEX session_deleted ON session (deleted_at) WHERE deleted_at <> 0;
