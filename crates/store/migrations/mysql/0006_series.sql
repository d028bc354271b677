-- Contests that come again: see the same of SQLite for what the columns mean.

CREATE TABLE IF NOT EXISTS contest_series (
    id   VARBINARY(64) NOT NULL PRIMARY KEY,
    due  BIGINT NULL,
    body MEDIUMBLOB NOT NULL,
    KEY series_by_due (due, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
