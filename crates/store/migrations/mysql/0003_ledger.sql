-- Members, their wallets, and the ledger behind them: see the same of SQLite for what the columns mean.

CREATE TABLE IF NOT EXISTS members (
    id               BINARY(16) NOT NULL PRIMARY KEY,
    login            VARBINARY(128) NOT NULL,
    phone            VARBINARY(32) NULL,
    player           VARBINARY(128) NOT NULL,
    name             TEXT NOT NULL,
    password         VARBINARY(255) NULL,
    pin              BINARY(32) NULL,
    pin_digits       TINYINT UNSIGNED NULL,
    pin_wrong        TINYINT UNSIGNED NOT NULL,
    pin_locked_until BIGINT NULL,
    tokens_from      BIGINT NOT NULL,
    closed_at        BIGINT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC CHARACTER SET utf8mb4 COLLATE utf8mb4_bin;

-- A login, a phone number or a player has one member, also where two servers make it at once: it is a key.
CREATE TABLE IF NOT EXISTS handles (
    kind   TINYINT UNSIGNED NOT NULL,
    `text` VARBINARY(128) NOT NULL,
    member BINARY(16) NOT NULL,
    PRIMARY KEY (kind, `text`)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

CREATE TABLE IF NOT EXISTS wallets (
    member    BINARY(16) NOT NULL,
    currency  VARBINARY(8) NOT NULL,
    balance   BIGINT NOT NULL,
    held      BIGINT NOT NULL,
    sequence  BIGINT UNSIGNED NOT NULL,
    closed    TINYINT UNSIGNED NOT NULL,
    spent_day INT NOT NULL,
    spent     BIGINT NOT NULL,
    PRIMARY KEY (member, currency)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

CREATE TABLE IF NOT EXISTS transfers (
    id              BINARY(16) NOT NULL PRIMARY KEY,
    kind            TINYINT UNSIGNED NOT NULL,
    currency        VARBINARY(8) NOT NULL,
    amount          BIGINT NOT NULL,
    debit_member    BINARY(16) NULL,
    debit_sequence  BIGINT UNSIGNED NULL,
    credit_member   BINARY(16) NULL,
    credit_sequence BIGINT UNSIGNED NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

CREATE TABLE IF NOT EXISTS entries (
    member       BINARY(16) NOT NULL,
    currency     VARBINARY(8) NOT NULL,
    sequence     BIGINT UNSIGNED NOT NULL,
    transfer     BINARY(16) NOT NULL,
    kind         TINYINT UNSIGNED NOT NULL,
    amount       BIGINT NOT NULL,
    `after`      BIGINT NOT NULL,
    counterparty BINARY(16) NULL,
    reference    VARBINARY(255) NULL,
    PRIMARY KEY (member, currency, sequence)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- due: when an open hold ends by itself; null where it does not, or has ended. Few rows have one.
CREATE TABLE IF NOT EXISTS holds (
    id          BINARY(16) NOT NULL PRIMARY KEY,
    member      BINARY(16) NOT NULL,
    currency    VARBINARY(8) NOT NULL,
    amount      BIGINT NOT NULL,
    expires_at  BIGINT NULL,
    state       TINYINT UNSIGNED NOT NULL,
    captured    BIGINT NULL,
    captured_to BINARY(16) NULL,
    transfer    BINARY(16) NULL,
    ended_at    BIGINT NULL,
    due         BIGINT NULL,
    KEY holds_by_due (due)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- A total is the sum of its slots: connections add to different ones, so that commits do not wait for each other.
CREATE TABLE IF NOT EXISTS totals (
    account  TINYINT UNSIGNED NOT NULL,
    currency VARBINARY(8) NOT NULL,
    slot     TINYINT UNSIGNED NOT NULL,
    debits   DECIMAL(39, 0) NOT NULL,
    credits  DECIMAL(39, 0) NOT NULL,
    PRIMARY KEY (account, currency, slot)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
