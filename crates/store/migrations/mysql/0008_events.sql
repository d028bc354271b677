-- What happened, for those who listen: see the same of SQLite for what the columns mean.

CREATE TABLE IF NOT EXISTS events (
    topic  VARBINARY(17) NOT NULL,
    number BIGINT UNSIGNED NOT NULL,
    `at`   BIGINT NOT NULL,
    body   BLOB NOT NULL,
    PRIMARY KEY (topic, number),
    KEY events_at (`at`)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

CREATE TABLE IF NOT EXISTS event_topics (
    topic VARBINARY(17) NOT NULL PRIMARY KEY,
    last  BIGINT UNSIGNED NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
