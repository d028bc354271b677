-- cached_*: what the only writer had in its cache when it wrote the wallet, so that the statement can compare them with the row.
-- They are never stored: each is NULL in every row.
ALTER TABLE wallets
    ADD COLUMN cached_balance BIGINT NULL,
    ADD COLUMN cached_held BIGINT NULL,
    ADD COLUMN cached_sequence BIGINT UNSIGNED NULL;

-- revision: the revision that the ban came with, so that servers read those that are new to them. Lifted bans are kept an hour for
-- the same purpose; bans_forgotten: the last revision of a board that any forgotten row had.
ALTER TABLE bans ADD COLUMN revision BIGINT UNSIGNED NOT NULL DEFAULT 0, ADD KEY bans_by_revision (board, revision);

ALTER TABLE revisions ADD COLUMN bans_forgotten BIGINT UNSIGNED NOT NULL DEFAULT 0;

CREATE TABLE IF NOT EXISTS lifted_bans (
    board    INT UNSIGNED NOT NULL,
    player   VARBINARY(128) NOT NULL,
    revision BIGINT UNSIGNED NOT NULL,
    PRIMARY KEY (board, player),
    KEY lifted_bans_by_board (board, revision),
    KEY lifted_bans_by_revision (revision)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
