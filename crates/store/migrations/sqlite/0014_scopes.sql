-- What API keys may do beside their role, and what they have made.
-- granted: the role or the scopes of a key, then its caps, such as `money:mint KRW=1000000`. Empty for a key with only a role. A key
-- with scopes has the role reader.
ALTER TABLE keys ADD COLUMN granted TEXT;

-- What a key with a cap has made of a currency on its last day with a deposit, in days since 1970.
CREATE TABLE minted (
    key      BLOB NOT NULL CHECK (length(key) = 6),
    currency TEXT NOT NULL,
    day      INTEGER NOT NULL,
    units    INTEGER NOT NULL,
    PRIMARY KEY (key, currency)
) STRICT, WITHOUT ROWID;
