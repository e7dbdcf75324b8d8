-- The branch with which a work tree began; '' where it began with a commit, and of older rows, of which nobody knows.
ALTER TABLE worktree ADD COLUMN base_branch TEXT NOT NULL DEFAULT '';
