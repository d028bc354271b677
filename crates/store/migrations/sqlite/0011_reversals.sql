-- Links between transfers and their reversals, for both: which reversals of which amounts a transfer has, and of a reversal the
-- transfer that it reverses, and why. The kind of a reversal in `transfers` is that of its original plus 128; in `entries` it
-- is 9 for the wallet that pays and 10 for the one that gets it.
CREATE TABLE reversals (
    id   BLOB NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    body BLOB NOT NULL
) STRICT, WITHOUT ROWID;
