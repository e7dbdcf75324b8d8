-- Directories that a session works in beside its own, as a JSON list of absolute paths, in the order in which agents are told of them.
ALTER TABLE session ADD COLUMN directories TEXT NOT NULL DEFAULT '[]';
