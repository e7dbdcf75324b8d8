-- Prompts that wait for the running turn to end. A row is taken out in the transaction that begins its turn, so that it goes out once.

CREATE TABLE queue_item (
  id         TEXT PRIMARY KEY,          -- and of the turn that it becomes
  session    TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  position   INTEGER NOT NULL,          -- 0, 1, 2… within the session
  held       TEXT NOT NULL,             -- why it waits for a person, or '' while it does not
  message    TEXT NOT NULL,             -- as it was written, as a draft is: it has to reach the agent so
  created_at INTEGER NOT NULL
) STRICT;
CREATE INDEX queue_item_session ON queue_item (session, position);
