-- Discord, where the same conversations are shown and spoken in.

CREATE TABLE discord_setting (
  id   INTEGER PRIMARY KEY CHECK (id = 1),
  data TEXT NOT NULL                    -- what a person has set up; the token is not here
) STRICT;

-- A channel or thread belongs to one conversation, or to a directory in which each thread begins one.
CREATE TABLE discord_binding (
  channel TEXT PRIMARY KEY,
  session TEXT UNIQUE REFERENCES session (id) ON DELETE CASCADE, -- NULL for a directory
  data    TEXT NOT NULL,                -- the Binding record
  newest  TEXT NOT NULL DEFAULT ''      -- the newest message of the channel that was looked at: what came later while we were away is asked for
) STRICT, WITHOUT ROWID;

-- What was said in a bound channel by somebody who is heard.
CREATE TABLE discord_message (
  channel  TEXT NOT NULL,
  id       TEXT NOT NULL,
  session  TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  item     TEXT NOT NULL DEFAULT '',    -- the turn or item of the queue that it has become; '' until it is one
  text     TEXT NOT NULL,               -- its part of that item, with the block of its files
  raw_json TEXT NOT NULL,               -- as it came, with raw.discord.attachments
  PRIMARY KEY (channel, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX discord_message_item ON discord_message (session, item);

-- What was shown of a turn, so that a crash shows nothing twice and forgets no file.
CREATE TABLE discord_output (
  session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  turn    TEXT NOT NULL,
  channel TEXT NOT NULL,
  done    INTEGER NOT NULL DEFAULT 0,
  data    TEXT NOT NULL,                -- messages, with what is in each; files that wait
  PRIMARY KEY (session, turn)
) STRICT, WITHOUT ROWID;
CREATE INDEX discord_output_open ON discord_output (session) WHERE done = 0;

-- Requests that are shown, so that their controls can be taken away.
CREATE TABLE discord_request (
  request TEXT PRIMARY KEY,
  session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  channel TEXT NOT NULL,
  message TEXT NOT NULL,
  data    TEXT NOT NULL DEFAULT '{}'    -- what was chosen of it until it is answered
) STRICT, WITHOUT ROWID;
