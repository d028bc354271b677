-- The first schema. A shipped migration is never edited: the next change is the next file.
--
-- Instants are microseconds since 1970 in UTC. Text is UTF-8 and compared as bytes (BINARY, the default), which is the
-- order that ties and walks are promised in. The number of a board is given once and never again, so rows of a deleted
-- board mean nothing to its successor of the same name and can be purged at leisure.

CREATE TABLE meta (
    name  TEXT NOT NULL PRIMARY KEY,   -- names that begin with `store.` are the store's own
    value BLOB NOT NULL
) STRICT, WITHOUT ROWID;

INSERT INTO meta (name, value) VALUES ('store.next_board', CAST('1' AS BLOB));

-- Choices have the names that users see.
CREATE TABLE boards (
    no         INTEGER NOT NULL PRIMARY KEY CHECK (no BETWEEN 0 AND 4294967295),
    id         TEXT NOT NULL UNIQUE,
    "order"    TEXT NOT NULL CHECK ("order" IN ('descending', 'ascending')),
    "update"   TEXT NOT NULL CHECK ("update" IN ('best', 'latest', 'sum')),
    ranking    TEXT NOT NULL CHECK (ranking IN ('ordinal', 'competition', 'dense')),
    ties       TEXT NOT NULL CHECK (ties IN ('first', 'last', 'player', 'player_reversed')),
    score      TEXT NOT NULL CHECK (score IN ('int64', 'float64')),
    subscore   TEXT NOT NULL CHECK (subscore IN ('none', 'descending', 'ascending')),
    all_time   INTEGER NOT NULL CHECK (all_time IN (0, 1)),
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE periods (
    board     INTEGER NOT NULL,
    position  INTEGER NOT NULL CHECK (position >= 0),   -- among the periods of its board, as its creator listed them
    name      TEXT NOT NULL,
    schedule  TEXT NOT NULL,
    time_zone TEXT NOT NULL,
    keep      INTEGER NOT NULL CHECK (keep BETWEEN 0 AND 4294967295),
    grace_s   INTEGER NOT NULL CHECK (grace_s BETWEEN 0 AND 4294967295),
    PRIMARY KEY (board, position),
    UNIQUE (board, name)
) STRICT, WITHOUT ROWID;

-- Boards that are gone and whose rows may still be here. It outlives a restart.
CREATE TABLE deleted_boards (
    no INTEGER NOT NULL PRIMARY KEY
) STRICT;

-- Part 0 is all time, others are periods.
--
-- score: on an int64 board the score itself. On a float64 board an integer that orders as the doubles do: the bits of
-- the double where it is positive; where it is negative, its bits with all but the sign flipped. So one comparison
-- serves both kinds, here and in memory. subscore is 0 where the board has none.
--
-- No second index, ever: without one, REPLACE writes a row with a single descent of the tree.
CREATE TABLE scores (
    board    INTEGER NOT NULL,
    part     INTEGER NOT NULL,
    player   TEXT NOT NULL,
    score    INTEGER NOT NULL,
    subscore INTEGER NOT NULL,
    at       INTEGER NOT NULL,
    PRIMARY KEY (board, part, player)
) STRICT, WITHOUT ROWID;

-- What was done under an idempotency key, kept for its retries. outcome: see the `outcome` module of tally-rules.
CREATE TABLE requests (
    scope       TEXT NOT NULL,
    key         TEXT NOT NULL,
    fingerprint BLOB NOT NULL CHECK (length(fingerprint) = 16),
    at          INTEGER NOT NULL,
    outcome     BLOB NOT NULL,
    PRIMARY KEY (scope, key)
) STRICT, WITHOUT ROWID;

-- Old requests are forgotten oldest first, without reading the others. New entries are the newest, so they all go to
-- the right-most leaf, which is in memory: a small price, unlike that of a random second key.
CREATE INDEX requests_by_age ON requests (at);

-- no is the order of creation. Revoked keys stay, so that an id is never given to another.
CREATE TABLE keys (
    no         INTEGER NOT NULL PRIMARY KEY,
    id         TEXT NOT NULL UNIQUE,
    hash       BLOB NOT NULL CHECK (length(hash) = 32),
    role       TEXT NOT NULL CHECK (role IN ('admin', 'server', 'reader')),
    name       TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
) STRICT;

CREATE TABLE imports (
    board    INTEGER NOT NULL,
    digest   BLOB NOT NULL CHECK (length(digest) = 32),
    lines    INTEGER NOT NULL CHECK (lines >= 0),
    taken    INTEGER NOT NULL CHECK (taken >= 0),
    refused  INTEGER NOT NULL CHECK (refused >= 0),
    finished INTEGER NOT NULL CHECK (finished IN (0, 1)),
    PRIMARY KEY (board, digest)
) STRICT, WITHOUT ROWID;
