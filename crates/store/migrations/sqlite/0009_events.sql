-- What happened, for those who listen. topic: 1 and the number of a board in 4 bytes, or 2 and that of a contest in 16. number:
-- from 1, without a gap. at: when it was written, by which it is forgotten.
CREATE TABLE events (
    topic  BLOB NOT NULL,
    number INTEGER NOT NULL CHECK (number > 0),
    at     INTEGER NOT NULL,
    body   BLOB NOT NULL,
    PRIMARY KEY (topic, number)
) STRICT, WITHOUT ROWID;

CREATE INDEX events_at ON events (at);

-- The number of each topic's last event, whether or not that is kept.
CREATE TABLE event_topics (
    topic BLOB NOT NULL PRIMARY KEY,
    last  INTEGER NOT NULL CHECK (last > 0)
) STRICT, WITHOUT ROWID;
