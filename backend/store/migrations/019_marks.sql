-- The marks of Japanese that lengthen and voice a sign are words of their own from here on: before, what followed one could not be found.
-- All are indexed anew for it, as in 016, in the background.
INSERT OR IGNORE INTO unsearched SELECT rowid FROM entry;
