-- By which version of the rules the entries of a session were made of its journal; older ones are made anew in the background. Below
-- zero: by which version that was tried in vain, since the journal is damaged.
ALTER TABLE session ADD COLUMN projection INTEGER NOT NULL DEFAULT 1;

-- Frames may be compressed from here on. A constraint is not in the rows, so it is changed as the manual of SQLite tells (ALTER TABLE,
-- section 7): copying a journal of gigabytes would take a start minutes, and the disk twice.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'CHECK (encoding IN (''raw'', ''blob''))', 'CHECK (encoding IN (''raw'', ''zstd'', ''blob''))')
  WHERE type = 'table' AND name = 'frame';
PRAGMA writable_schema = RESET;

-- Which frames name a blob: so that a blob that none names is found without reading the journal.
CREATE INDEX frame_blob ON frame (payload) WHERE encoding = 'blob';
