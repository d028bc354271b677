-- The actor and the reason of transfers and holds: see the same of SQLite for what the columns mean.

ALTER TABLE transfers
    ADD COLUMN actor VARBINARY(17) NULL,
    ADD COLUMN reason VARBINARY(255) NULL;

ALTER TABLE holds
    ADD COLUMN actor VARBINARY(17) NULL,
    ADD COLUMN reason VARBINARY(255) NULL,
    ADD COLUMN ended_by VARBINARY(17) NULL,
    ADD COLUMN end_reason VARBINARY(255) NULL;
