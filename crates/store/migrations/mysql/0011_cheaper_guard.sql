-- A wallet that the only writer knows is written without `held` and `closed` where it has neither: they keep what the row has.
-- cached_sequence: not needed, because the key of an entry refuses a sequence that is there already.
ALTER TABLE wallets ALTER COLUMN held SET DEFAULT 0, ALTER COLUMN closed SET DEFAULT 0;

ALTER TABLE wallets DROP COLUMN cached_sequence;
