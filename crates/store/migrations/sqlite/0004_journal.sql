-- The journal: changes lie in files beside this one until they are folded into these tables.
--
-- Batches are numbered. store.folded: all up to this one are here. store.folding: some up to this one may be here; more
-- than store.folded while a fold is under way. A version that knows no journal must not open a file that has one, so
-- this is a new version of the schema whatever else changes.
INSERT INTO meta (name, value) VALUES ('store.folded', CAST('0' AS BLOB)), ('store.folding', CAST('0' AS BLOB));

-- Boards that were made by their first score: there as long as they have players.
ALTER TABLE boards ADD COLUMN implicit INTEGER NOT NULL DEFAULT 0 CHECK (implicit IN (0, 1));
