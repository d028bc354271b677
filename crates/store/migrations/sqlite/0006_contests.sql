-- Contests, who applied, who takes part, and what each is paid.

-- no: what the other tables name it by. due: when something happens of it by itself. body: the rest.
CREATE TABLE contests (
    id    TEXT NOT NULL PRIMARY KEY,
    no    BLOB NOT NULL CHECK (length(no) = 16),
    state TEXT NOT NULL,
    due   INTEGER,
    body  BLOB NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX contests_by_state ON contests (state, id);
CREATE INDEX contests_due ON contests (due, id) WHERE due IS NOT NULL;

-- place: the how manieth to come into its status.
CREATE TABLE contest_applications (
    contest    BLOB NOT NULL CHECK (length(contest) = 16),
    player     TEXT NOT NULL,
    status     TEXT NOT NULL CHECK (status IN ('pending', 'accepted', 'rejected')),
    place      INTEGER NOT NULL,
    applied_at INTEGER NOT NULL,
    member     BLOB CHECK (length(member) = 16),
    hold       BLOB CHECK (length(hold) = 16),
    PRIMARY KEY (contest, player)
) STRICT, WITHOUT ROWID;

CREATE INDEX contest_applications_by_place ON contest_applications (contest, status, place);

CREATE TABLE contest_members (
    contest  BLOB NOT NULL CHECK (length(contest) = 16),
    player   TEXT NOT NULL,
    place    INTEGER NOT NULL,
    division INTEGER,
    member   BLOB CHECK (length(member) = 16),
    PRIMARY KEY (contest, player)
) STRICT, WITHOUT ROWID;

-- transfer: the movement that paid it. unpaid: why there is none.
CREATE TABLE contest_prizes (
    contest  BLOB NOT NULL CHECK (length(contest) = 16),
    no       INTEGER NOT NULL,
    player   TEXT NOT NULL,
    member   BLOB NOT NULL CHECK (length(member) = 16),
    division INTEGER,
    rank     INTEGER NOT NULL,
    currency TEXT NOT NULL,
    amount   INTEGER NOT NULL CHECK (amount > 0),
    transfer BLOB CHECK (length(transfer) = 16),
    unpaid   TEXT,
    PRIMARY KEY (contest, no)
) STRICT, WITHOUT ROWID;
