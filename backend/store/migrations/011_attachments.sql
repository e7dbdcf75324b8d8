-- Files that travel with prompts, and that agents give. A record never changes; copies of it stand in drafts, queues and the journal.

CREATE TABLE attachment (
  id      TEXT PRIMARY KEY,
  sha256  TEXT NOT NULL,                -- of the blob that holds its bytes, or '' where they are kept elsewhere alone
  data    TEXT NOT NULL,                -- the Attachment record
  used_at INTEGER NOT NULL              -- when it was taken in, or last put in or out of a draft or a queue; only then it is kept for a while
) STRICT;
CREATE INDEX attachment_blob ON attachment (sha256) WHERE sha256 <> '';
CREATE INDEX attachment_used ON attachment (used_at);

-- What the journal of a session names. It can be made anew from there.
CREATE TABLE attachment_use (
  session    TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  attachment TEXT NOT NULL REFERENCES attachment (id),
  PRIMARY KEY (session, attachment)
) STRICT, WITHOUT ROWID;
CREATE INDEX attachment_use_of ON attachment_use (attachment);

-- Attachment records, in order.
ALTER TABLE session ADD COLUMN draft_attachments TEXT NOT NULL DEFAULT '[]';
ALTER TABLE queue_item ADD COLUMN attachments TEXT NOT NULL DEFAULT '[]';

-- How many attachments an entry has, so that the files of a session are found without reading all that was said.
ALTER TABLE entry ADD COLUMN attachments INTEGER NOT NULL DEFAULT 0;
CREATE INDEX entry_attachments ON entry (session, seq) WHERE attachments > 0;
