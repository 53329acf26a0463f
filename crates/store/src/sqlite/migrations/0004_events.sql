-- The outbox of domain events: written in the transaction that made them true, delivered in order at
-- least once, pruned when every consumer has them.

CREATE TABLE events (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    job_id     INTEGER NOT NULL,
    kind       TEXT    NOT NULL,
    payload    TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE event_consumers (
    name     TEXT    NOT NULL PRIMARY KEY,
    position INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
