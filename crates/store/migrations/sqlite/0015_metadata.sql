-- Data of the caller of a transfer or a hold, as the JSON text of an object.
ALTER TABLE transfers ADD COLUMN metadata TEXT;
ALTER TABLE holds ADD COLUMN metadata TEXT;
