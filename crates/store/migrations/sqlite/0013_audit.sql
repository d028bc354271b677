-- The audit log: one row for each administrative act, by the instant of its request. body: actor, action, subject and detail.
CREATE TABLE audit (
    id   BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    body BLOB NOT NULL
) STRICT, WITHOUT ROWID;
