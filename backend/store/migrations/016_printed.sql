-- What programs print is in the index of words from here on, and so are files that were written for agents, summaries of compactions, and
-- all that tools gave back, without the codes that steer a terminal. What an entry is stands within its record, and to read every record
-- would take a start as long as the disk needs for them: so all are indexed anew, in the background, and found as before until then.
INSERT OR IGNORE INTO unsearched SELECT rowid FROM entry;
