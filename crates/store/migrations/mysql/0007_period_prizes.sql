-- What the ranks of a period get when it is closed, and what was paid: see the same of SQLite for what the columns mean.

CREATE TABLE IF NOT EXISTS period_prizes (
    board INT UNSIGNED NOT NULL,
    rule  INT UNSIGNED NOT NULL,
    body  MEDIUMBLOB NOT NULL,
    PRIMARY KEY (board, rule)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

CREATE TABLE IF NOT EXISTS period_payments (
    board INT UNSIGNED NOT NULL,
    part  BIGINT UNSIGNED NOT NULL,
    open  TINYINT UNSIGNED NULL,
    body  BLOB NOT NULL,
    PRIMARY KEY (board, part),
    KEY payments_open (open, board, part)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
