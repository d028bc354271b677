-- Months of the ledger that are in files. month: the year times twelve, and the month from 0. body: the rest.
CREATE TABLE archives (
    month INTEGER NOT NULL PRIMARY KEY CHECK (month BETWEEN 0 AND 4294967295),
    body  BLOB NOT NULL
) STRICT;
