-- Data of the caller of a transfer or a hold: see the same of SQLite for what the columns mean.

ALTER TABLE transfers ADD COLUMN metadata VARBINARY(2048) NULL;

ALTER TABLE holds ADD COLUMN metadata VARBINARY(2048) NULL;
