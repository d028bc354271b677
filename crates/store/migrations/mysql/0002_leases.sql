-- Who alone may write, where that is one server. fence: how often it was taken, so that whoever had it before is known by an
-- older number. holder: for people; empty where nobody has it. expires_at: by this database's clock.
CREATE TABLE IF NOT EXISTS leases (
    name       VARBINARY(32) NOT NULL PRIMARY KEY,
    fence      BIGINT UNSIGNED NOT NULL,
    holder     VARBINARY(1024) NOT NULL,
    expires_at BIGINT UNSIGNED NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO leases (name, fence, holder, expires_at) VALUES ('writer', 0, '', 0);
