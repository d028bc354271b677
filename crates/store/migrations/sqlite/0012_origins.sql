-- The actor and the reason of transfers and holds, and of the end of a hold. Rows from before have none.
-- actor: its number (1 key, 2 member, 3 command line, 4 without a credential on this machine, 5 background task), then the id of
-- the key or of the member.
ALTER TABLE transfers ADD COLUMN actor BLOB;
ALTER TABLE transfers ADD COLUMN reason TEXT;
ALTER TABLE holds ADD COLUMN actor BLOB;
ALTER TABLE holds ADD COLUMN reason TEXT;
ALTER TABLE holds ADD COLUMN ended_by BLOB;
ALTER TABLE holds ADD COLUMN end_reason TEXT;
