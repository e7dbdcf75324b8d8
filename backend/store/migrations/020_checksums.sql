-- The CRC-32C of a frame: of its number, generation, time, direction and encoding, and of its payload as it is stored. NULL in frames of before.
ALTER TABLE frame ADD COLUMN sum INTEGER;

-- A person has looked at a transcript that its journal makes otherwise, and keeps it: it is neither made anew nor compared any more.
ALTER TABLE session ADD COLUMN kept INTEGER NOT NULL DEFAULT 0;
