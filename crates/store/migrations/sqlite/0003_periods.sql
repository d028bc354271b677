-- Periods: their parts of boards, and the order of closed ones.

-- Numbers of rules are given once in the life of a board, so that the parts of a removed rule can be purged at leisure.
ALTER TABLE boards ADD COLUMN rules_given INTEGER NOT NULL DEFAULT 0;
ALTER TABLE periods ADD COLUMN rule INTEGER NOT NULL DEFAULT 0;

-- One stretch of one rule that has records, or whose end was fixed. ends: its first instant that is not in it.
-- version: which blocks hold its order, 0 for none yet. stale: records changed since those blocks were written.
CREATE TABLE parts (
    board   INTEGER NOT NULL,
    part    INTEGER NOT NULL,
    rule    INTEGER NOT NULL,
    starts  INTEGER NOT NULL,
    ends    INTEGER NOT NULL CHECK (ends > starts),
    closed  INTEGER NOT NULL CHECK (closed IN (0, 1)),
    version INTEGER NOT NULL CHECK (version >= 0),
    stale   INTEGER NOT NULL CHECK (stale IN (0, 1)),
    total   INTEGER NOT NULL CHECK (total >= 0),
    PRIMARY KEY (board, part)
) STRICT, WITHOUT ROWID;

-- The order of a closed part in pieces of equal length, numbered from 0: entries of `block` begin at the place
-- block × length. distinct_better: distinct scores
-- better than the first entry's. entries: see the `blocks` module of tally-ranking.
CREATE TABLE blocks (
    board           INTEGER NOT NULL,
    part            INTEGER NOT NULL,
    version         INTEGER NOT NULL,
    block           INTEGER NOT NULL,
    distinct_better INTEGER NOT NULL,
    entries         BLOB NOT NULL,
    PRIMARY KEY (board, part, version, block)
) STRICT, WITHOUT ROWID;

-- Parts, or versions of their blocks, that are gone and whose rows may still be here. version -1: the records too.
CREATE TABLE deleted_parts (
    board   INTEGER NOT NULL,
    part    INTEGER NOT NULL,
    version INTEGER NOT NULL,
    PRIMARY KEY (board, part, version)
) STRICT, WITHOUT ROWID;

UPDATE periods SET rule = position;
UPDATE boards SET rules_given = (SELECT count(*) FROM periods WHERE periods.board = boards.no);
