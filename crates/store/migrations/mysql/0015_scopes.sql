-- What API keys may do beside their role, and what they have made: see the same of SQLite for what the columns mean.

ALTER TABLE api_keys ADD COLUMN granted TEXT NULL;

CREATE TABLE IF NOT EXISTS minted (
    `key`    BINARY(6) NOT NULL,
    currency VARBINARY(8) NOT NULL,
    `day`    INT NOT NULL,
    units    BIGINT NOT NULL,
    PRIMARY KEY (`key`, currency)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
