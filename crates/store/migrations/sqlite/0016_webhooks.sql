-- Receivers of events, and their positions. topic: empty for a webhook itself, else that of `events`. body: the rest.
CREATE TABLE webhooks (
    topic BLOB NOT NULL,
    id    BLOB NOT NULL CHECK (length(id) = 16),
    body  BLOB NOT NULL,
    PRIMARY KEY (topic, id)
) STRICT, WITHOUT ROWID;
