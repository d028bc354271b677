-- The audit log: see the same of SQLite for what the columns mean.

CREATE TABLE IF NOT EXISTS audit (
    id   BINARY(16) NOT NULL PRIMARY KEY,
    body BLOB NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
