-- Full text over every entry. The index keeps no text of its own: an excerpt is made from the entry. What has changed waits in
-- unsearched until it is indexed, in the background: a message that streams changes a hundred times before it is whole.

CREATE VIRTUAL TABLE words USING fts5 (text, content = '', contentless_delete = 1, tokenize = 'unicode61 remove_diacritics 2');

CREATE TABLE unsearched (
  entry INTEGER PRIMARY KEY             -- rowid of the entry
) STRICT;

-- Not INSERT OR IGNORE: within a trigger the outer statement's conflict clause holds, and that of an upsert is to fail.
CREATE TRIGGER entry_added AFTER INSERT ON entry BEGIN
  INSERT INTO unsearched SELECT new.rowid WHERE NOT EXISTS (SELECT 1 FROM unsearched WHERE entry = new.rowid);
END;
CREATE TRIGGER entry_changed AFTER UPDATE OF data ON entry BEGIN
  INSERT INTO unsearched SELECT new.rowid WHERE NOT EXISTS (SELECT 1 FROM unsearched WHERE entry = new.rowid);
END;
CREATE TRIGGER entry_removed AFTER DELETE ON entry BEGIN
  DELETE FROM words WHERE rowid = old.rowid;
  DELETE FROM unsearched WHERE entry = old.rowid;
END;

INSERT INTO unsearched SELECT rowid FROM entry;
