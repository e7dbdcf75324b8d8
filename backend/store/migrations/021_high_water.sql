-- How far this database is, beside the same in the file high-water.json: so that a start notices a database that is older than the one that
-- was here, or another. step counts what has been written to the disk for sure.
CREATE TABLE high_water (
  id       INTEGER PRIMARY KEY CHECK (id = 1),
  database TEXT NOT NULL,               -- a name that no other database has
  step     INTEGER NOT NULL
) STRICT;
INSERT INTO high_water (id, database, step) VALUES (1, lower(hex(randomblob(16))), 0);
