-- cached_*: what the only writer had in its cache when it wrote the wallet, so that the statement can compare them with the row.
-- They are never stored: each is NULL in every row.
ALTER TABLE wallets
    ADD COLUMN cached_balance BIGINT NULL,
    ADD COLUMN cached_held BIGINT NULL,
    ADD COLUMN cached_sequence BIGINT UNSIGNED NULL;
