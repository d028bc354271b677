-- Boards that were made by their first score: there as long as they have players.
ALTER TABLE boards ADD COLUMN implicit INTEGER NOT NULL DEFAULT 0 CHECK (implicit IN (0, 1));
