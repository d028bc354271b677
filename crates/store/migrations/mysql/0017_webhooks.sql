-- Receivers of events, and their positions: see the same of SQLite for what the columns mean.

CREATE TABLE IF NOT EXISTS webhooks (
    topic VARBINARY(17) NOT NULL,
    id    BINARY(16) NOT NULL,
    body  BLOB NOT NULL,
    PRIMARY KEY (topic, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

INSERT IGNORE INTO turns (task, holder, until) VALUES ('webhooks', '', 0);
