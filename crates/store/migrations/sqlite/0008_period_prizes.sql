-- What the ranks of a period get when it is closed; null where there is nothing.
ALTER TABLE periods ADD COLUMN prizes BLOB;

-- The prizes of one closed period: written down once, then paid a piece at a time. no: what contest_prizes names it by. open: 1
-- as long as some had no turn.
CREATE TABLE period_payments (
    board INTEGER NOT NULL,
    part  INTEGER NOT NULL,
    open  INTEGER CHECK (open = 1),
    body  BLOB NOT NULL,
    PRIMARY KEY (board, part)
) STRICT, WITHOUT ROWID;

CREATE INDEX period_payments_open ON period_payments (open, board, part) WHERE open = 1;
