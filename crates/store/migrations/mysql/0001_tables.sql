-- The first schema. A shipped migration is never edited: the next change is the next file. DDL is not transactional
-- here, so every statement can be repeated after a crash.
--
-- Instants are microseconds since 1970 in UTC. Names that are compared (players, boards, keys) are bytes: no collation
-- may take two of them for one, or one for another's order. One primary key per table; the other two keys say why.

-- Values under names. Names that begin with `store.` are the store's own. The comment says whose database this is.
CREATE TABLE IF NOT EXISTS meta (
    name  VARBINARY(255) NOT NULL PRIMARY KEY,
    value MEDIUMBLOB NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC COMMENT = 'tally';

INSERT IGNORE INTO meta (name, value) VALUES ('store.next_board', '1');

-- A name has one live board: unique, also where two servers create it at once.
CREATE TABLE IF NOT EXISTS boards (
    `no`        INT UNSIGNED NOT NULL PRIMARY KEY,
    id          VARBINARY(128) NOT NULL UNIQUE,
    `order`     VARCHAR(16) NOT NULL,
    `update`    VARCHAR(16) NOT NULL,
    ranking     VARCHAR(16) NOT NULL,
    ties        VARCHAR(16) NOT NULL,
    score       VARCHAR(16) NOT NULL,
    subscore    VARCHAR(16) NOT NULL,
    all_time    TINYINT UNSIGNED NOT NULL,
    rules_given INT UNSIGNED NOT NULL,
    implicit    TINYINT UNSIGNED NOT NULL,
    created_at  BIGINT NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET ascii COLLATE ascii_bin;

CREATE TABLE IF NOT EXISTS periods (
    board      INT UNSIGNED NOT NULL,
    position   INT UNSIGNED NOT NULL,   -- among the periods of its board, as its creator listed them
    rule       INT UNSIGNED NOT NULL,
    name       TEXT NOT NULL,
    `schedule` TEXT NOT NULL,
    time_zone  TEXT NOT NULL,
    keep       INT UNSIGNED NOT NULL,
    grace_s    INT UNSIGNED NOT NULL,
    PRIMARY KEY (board, position)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- Boards that are gone and whose rows may still be here.
CREATE TABLE IF NOT EXISTS deleted_boards (
    `no` INT UNSIGNED NOT NULL PRIMARY KEY
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- score: as in SQLite, a float64 is stored as an integer that orders as the doubles do. version grows with every change
-- of the row, so that an order outside can be kept from going back. gone: the record was removed; the row stays a while
-- to keep its version, and no read gives it.
CREATE TABLE IF NOT EXISTS scores (
    board    INT UNSIGNED NOT NULL,
    part     BIGINT UNSIGNED NOT NULL,
    player   VARBINARY(128) NOT NULL,
    score    BIGINT NOT NULL,
    subscore BIGINT NOT NULL,
    `at`     BIGINT NOT NULL,
    version  BIGINT UNSIGNED NOT NULL,
    gone     TINYINT UNSIGNED NOT NULL,
    PRIMARY KEY (board, part, player)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Rows of scores that became `gone`, by age: the old ones are found without reading the others.
CREATE TABLE IF NOT EXISTS removed (
    version BIGINT UNSIGNED NOT NULL,
    board   INT UNSIGNED NOT NULL,
    part    BIGINT UNSIGNED NOT NULL,
    player  VARBINARY(128) NOT NULL,
    PRIMARY KEY (version, board, part, player)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Old requests are forgotten oldest first, without reading the others: an index on their time.
CREATE TABLE IF NOT EXISTS requests (
    scope       VARBINARY(255) NOT NULL,
    `key`       VARBINARY(511) NOT NULL,
    fingerprint BINARY(16) NOT NULL,
    `at`        BIGINT NOT NULL,
    outcome     VARBINARY(1024) NOT NULL,
    PRIMARY KEY (scope, `key`),
    KEY requests_by_age (`at`)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- no is the order of creation. Revoked keys stay, so that an id is never given to another.
CREATE TABLE IF NOT EXISTS api_keys (
    id         VARBINARY(255) NOT NULL PRIMARY KEY,
    `no`       INT UNSIGNED NOT NULL,
    hash       BINARY(32) NOT NULL,
    role       VARCHAR(16) NOT NULL,
    name       TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    revoked_at BIGINT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

CREATE TABLE IF NOT EXISTS imports (
    board    INT UNSIGNED NOT NULL,
    digest   BINARY(32) NOT NULL,
    `lines`  BIGINT NOT NULL,
    taken    BIGINT NOT NULL,
    refused  BIGINT NOT NULL,
    finished TINYINT UNSIGNED NOT NULL,
    PRIMARY KEY (board, digest)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

CREATE TABLE IF NOT EXISTS profiles (
    player     VARBINARY(128) NOT NULL PRIMARY KEY,
    name       TEXT NULL,
    avatar_url TEXT NULL,
    metadata   MEDIUMTEXT NULL   -- the JSON text that was given
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- A row hides the player on the board.
CREATE TABLE IF NOT EXISTS bans (
    board  INT UNSIGNED NOT NULL,
    player VARBINARY(128) NOT NULL,
    PRIMARY KEY (board, player)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- One stretch of one rule. ends: its first instant that is not in it. version: which blocks hold its order, 0 for none
-- yet. stale: records changed since those blocks were written.
CREATE TABLE IF NOT EXISTS parts (
    board   INT UNSIGNED NOT NULL,
    part    BIGINT UNSIGNED NOT NULL,
    rule    INT UNSIGNED NOT NULL,
    `starts` BIGINT NOT NULL,
    `ends`  BIGINT NOT NULL,
    closed  TINYINT UNSIGNED NOT NULL,
    version INT UNSIGNED NOT NULL,
    stale   TINYINT UNSIGNED NOT NULL,
    total   BIGINT UNSIGNED NOT NULL,
    PRIMARY KEY (board, part)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

CREATE TABLE IF NOT EXISTS blocks (
    board           INT UNSIGNED NOT NULL,
    part            BIGINT UNSIGNED NOT NULL,
    version         INT UNSIGNED NOT NULL,
    block           BIGINT UNSIGNED NOT NULL,
    distinct_better BIGINT UNSIGNED NOT NULL,
    entries         MEDIUMBLOB NOT NULL,
    PRIMARY KEY (board, part, version, block)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- Parts, or versions of their blocks, that are gone and whose rows may still be here. version -1: the records too.
CREATE TABLE IF NOT EXISTS deleted_parts (
    board   INT UNSIGNED NOT NULL,
    part    BIGINT UNSIGNED NOT NULL,
    version BIGINT NOT NULL,
    PRIMARY KEY (board, part, version)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- The last transaction of each connection, written with it: whoever lost the answer to a COMMIT looks here. fence: the
-- transaction never happened, and this row keeps it from happening. marks: what it left to publish.
CREATE TABLE IF NOT EXISTS batches (
    link     BINARY(16) NOT NULL,
    sequence BIGINT UNSIGNED NOT NULL,
    version  BIGINT UNSIGNED NOT NULL,
    fence    TINYINT UNSIGNED NOT NULL,
    marks    MEDIUMBLOB NULL,
    PRIMARY KEY (link, sequence)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
