-- Members, their wallets, and the ledger behind them.
--
-- Ids are 16 bytes, version 7 of UUIDs: they ascend with time and tell their instant. Amounts are in the smallest unit of
-- their currency. Rows of transfers and entries are never changed.

-- pin: a keyed digest. pin_wrong: wrong ones since the last right one. tokens_from: tokens given before are not accepted.
CREATE TABLE members (
    id               BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    login            TEXT NOT NULL,
    phone            TEXT,
    player           TEXT NOT NULL,
    name             TEXT NOT NULL,
    password         TEXT,
    pin              BLOB CHECK (length(pin) = 32),
    pin_digits       INTEGER,
    pin_wrong        INTEGER NOT NULL,
    pin_locked_until INTEGER,
    tokens_from      INTEGER NOT NULL,
    closed_at        INTEGER
) STRICT, WITHOUT ROWID;

-- What one member alone is found by. kind: 1 login, 2 phone number, 3 player.
CREATE TABLE handles (
    kind   INTEGER NOT NULL CHECK (kind BETWEEN 1 AND 3),
    text   TEXT NOT NULL,
    member BLOB NOT NULL CHECK (length(member) = 16),
    PRIMARY KEY (kind, text)
) STRICT, WITHOUT ROWID;

-- balance: the sum of its entries, of which there are `sequence`. spent: what was transferred on the day spent_day (since
-- 1970). closed: its member was.
CREATE TABLE wallets (
    member    BLOB NOT NULL CHECK (length(member) = 16),
    currency  TEXT NOT NULL,
    balance   INTEGER NOT NULL,
    held      INTEGER NOT NULL CHECK (held BETWEEN 0 AND balance),
    sequence  INTEGER NOT NULL CHECK (sequence >= 0),
    closed    INTEGER NOT NULL CHECK (closed IN (0, 1)),
    spent_day INTEGER NOT NULL,
    spent     INTEGER NOT NULL,
    PRIMARY KEY (member, currency)
) STRICT, WITHOUT ROWID;

-- kind: 1 deposit, 2 withdrawal, 3 transfer (to its giver; 4 to its taker), 5 capture, 6 fee, 7 prize, 8 refund. It debits
-- and credits BANK_PAYABLE where a member stands, and otherwise: 1 debits and 2 credits BANK_ASSET, 5 and 6 credit FEES,
-- 7 debits PRIZES, 8 debits FEES.
CREATE TABLE transfers (
    id              BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    kind            INTEGER NOT NULL,
    currency        TEXT NOT NULL,
    amount          INTEGER NOT NULL CHECK (amount > 0),
    debit_member    BLOB CHECK (length(debit_member) = 16),
    debit_sequence  INTEGER,
    credit_member   BLOB CHECK (length(credit_member) = 16),
    credit_sequence INTEGER
) STRICT, WITHOUT ROWID;

-- The history of a wallet is a range of the key. after: the balance after it.
CREATE TABLE entries (
    member       BLOB NOT NULL CHECK (length(member) = 16),
    currency     TEXT NOT NULL,
    sequence     INTEGER NOT NULL CHECK (sequence > 0),
    transfer     BLOB NOT NULL CHECK (length(transfer) = 16),
    kind         INTEGER NOT NULL,
    amount       INTEGER NOT NULL CHECK (amount > 0),
    after        INTEGER NOT NULL CHECK (after >= 0),
    counterparty BLOB CHECK (length(counterparty) = 16),
    reference    TEXT,
    PRIMARY KEY (member, currency, sequence)
) STRICT, WITHOUT ROWID;

-- state: 0 open, 1 captured, 2 voided, 3 expired. captured, captured_to, transfer: of a capture; to nobody is to FEES.
CREATE TABLE holds (
    id          BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    member      BLOB NOT NULL CHECK (length(member) = 16),
    currency    TEXT NOT NULL,
    amount      INTEGER NOT NULL CHECK (amount > 0),
    expires_at  INTEGER,
    state       INTEGER NOT NULL CHECK (state BETWEEN 0 AND 3),
    captured    INTEGER,
    captured_to BLOB CHECK (length(captured_to) = 16),
    transfer    BLOB CHECK (length(transfer) = 16),
    ended_at    INTEGER
) STRICT, WITHOUT ROWID;

-- Open holds whose time runs out, first things first. Few holds are open.
CREATE INDEX holds_due ON holds (expires_at) WHERE state = 0 AND expires_at IS NOT NULL;

-- All that was ever debited and credited: more than 64 bits, so in digits.
CREATE TABLE totals (
    account  INTEGER NOT NULL CHECK (account BETWEEN 1 AND 4),   -- BANK_ASSET, BANK_PAYABLE, FEES, PRIZES
    currency TEXT NOT NULL,
    debits   TEXT NOT NULL,
    credits  TEXT NOT NULL,
    PRIMARY KEY (account, currency)
) STRICT, WITHOUT ROWID;
