-- Contests that come again. due: when the next one is made. body: the rest.
CREATE TABLE contest_series (
    id   TEXT NOT NULL PRIMARY KEY,
    due  INTEGER,
    body BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX contest_series_due ON contest_series (due, id) WHERE due IS NOT NULL;
