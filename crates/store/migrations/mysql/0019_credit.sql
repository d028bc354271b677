-- Promotional credit of a wallet: see the same of SQLite for what the columns mean.

ALTER TABLE wallets ADD COLUMN credits VARBINARY(512) NULL;

-- One statement: a migration that was cut short is repeated, and a column that is there is no error.
ALTER TABLE wallets ADD COLUMN credit_due BIGINT NULL, ADD INDEX wallets_credit_due (credit_due);
