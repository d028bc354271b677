-- Promotional credit of a wallet, and when some of it is to be taken out.
ALTER TABLE wallets ADD COLUMN credits BLOB;
ALTER TABLE wallets ADD COLUMN credit_due INTEGER;
CREATE INDEX wallets_credit_due ON wallets (credit_due) WHERE credit_due IS NOT NULL;

-- Accounts are numbered on: 5 is PROMOTIONS. No statement changes a check, and no row depends on it: its text is replaced, as the page of SQLite on ALTER
-- TABLE says for such changes.
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'account BETWEEN 1 AND 4', 'account BETWEEN 1 AND 255')
    WHERE type = 'table' AND name = 'totals';
PRAGMA writable_schema = RESET;
