-- Contests, who applied, who takes part, and what each is paid: see the same of SQLite for what the columns mean.

CREATE TABLE IF NOT EXISTS contests (
    id    VARBINARY(64) NOT NULL PRIMARY KEY,
    `no`  BINARY(16) NOT NULL,
    state VARBINARY(16) NOT NULL,
    due   BIGINT NULL,
    body  MEDIUMBLOB NOT NULL,
    KEY contests_by_state (state, id),
    KEY contests_by_due (due, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

CREATE TABLE IF NOT EXISTS contest_applications (
    contest    BINARY(16) NOT NULL,
    player     VARBINARY(128) NOT NULL,
    status     VARBINARY(16) NOT NULL,
    place      BIGINT UNSIGNED NOT NULL,
    applied_at BIGINT NOT NULL,
    member     BINARY(16) NULL,
    hold       BINARY(16) NULL,
    PRIMARY KEY (contest, player),
    KEY applications_by_place (contest, status, place)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

CREATE TABLE IF NOT EXISTS contest_members (
    contest  BINARY(16) NOT NULL,
    player   VARBINARY(128) NOT NULL,
    place    INT UNSIGNED NOT NULL,
    division INT UNSIGNED NULL,
    member   BINARY(16) NULL,
    PRIMARY KEY (contest, player)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

CREATE TABLE IF NOT EXISTS contest_prizes (
    contest  BINARY(16) NOT NULL,
    `no`     INT UNSIGNED NOT NULL,
    player   VARBINARY(128) NOT NULL,
    member   BINARY(16) NOT NULL,
    division INT UNSIGNED NULL,
    `rank`   INT UNSIGNED NOT NULL,
    currency VARBINARY(8) NOT NULL,
    amount   BIGINT NOT NULL,
    transfer BINARY(16) NULL,
    unpaid   VARBINARY(32) NULL,
    PRIMARY KEY (contest, `no`)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
