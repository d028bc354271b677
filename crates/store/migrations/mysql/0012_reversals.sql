-- Links between transfers and their reversals: see the same of SQLite for what the columns mean.

CREATE TABLE IF NOT EXISTS reversals (
    id   BINARY(16) NOT NULL PRIMARY KEY,
    body BLOB NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
