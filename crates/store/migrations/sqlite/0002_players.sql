-- Players: what is shown of them, and where they are hidden.

-- metadata is the JSON text that was given.
CREATE TABLE profiles (
    player     TEXT NOT NULL PRIMARY KEY,
    name       TEXT,
    avatar_url TEXT,
    metadata   TEXT
) STRICT, WITHOUT ROWID;

-- A row hides the player on the board: records are kept, ranks are not.
CREATE TABLE bans (
    board  INTEGER NOT NULL,
    player TEXT NOT NULL,
    PRIMARY KEY (board, player)
) STRICT, WITHOUT ROWID;
