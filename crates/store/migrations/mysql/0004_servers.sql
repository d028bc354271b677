-- Several servers on one database.
--
-- revisions: the number of a board's last change of anything that servers keep in memory: definition, hidden players, periods.
-- Numbers are given under the lock of row 0, greatest last, so whoever asks for what is greater than a number misses nothing.
-- Row 4294967295, which no board has, is that of the API keys. gone: the board was deleted; the row stays an hour for those
-- who follow.
CREATE TABLE IF NOT EXISTS revisions (
    board    INT UNSIGNED NOT NULL PRIMARY KEY,
    revision BIGINT UNSIGNED NOT NULL,
    gone     TINYINT UNSIGNED NOT NULL,
    KEY revisions_by_number (revision)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO revisions (board, revision, gone) VALUES (0, 1, 0), (4294967295, 1, 0);
INSERT IGNORE INTO revisions (board, revision, gone) SELECT `no`, 1, 0 FROM boards;

-- The row that servers renew which write side by side: while one does, nobody writes alone.
INSERT IGNORE INTO leases (name, fence, holder, expires_at) VALUES ('servers', 0, '', 0);

-- Which server does what one is enough for, and until when by this database's clock. Nothing depends on there being one only.
CREATE TABLE IF NOT EXISTS turns (
    task   VARBINARY(32) NOT NULL PRIMARY KEY,
    holder BINARY(16) NOT NULL,
    until  BIGINT UNSIGNED NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO turns (task, holder, until) VALUES
    ('clean', '', 0), ('load', '', 0), ('marks', '', 0), ('periods', '', 0);
