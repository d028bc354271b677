-- Months of the ledger that are in files: see the same of SQLite for what the columns mean.

CREATE TABLE IF NOT EXISTS archives (
    month INT UNSIGNED NOT NULL PRIMARY KEY,
    body  BLOB NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO turns (task, holder, until) VALUES ('archives', '', 0);
