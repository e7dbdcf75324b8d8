-- Where the rows of a session's entries begin and end: the index of words knows no sessions, only rows, and a search that is about some
-- sessions passes over all other rows.
CREATE INDEX entry_rows ON entry (session);
