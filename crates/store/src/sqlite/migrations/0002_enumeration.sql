-- What enumeration found.

CREATE TABLE enumeration_sessions (
    id              INTEGER PRIMARY KEY,
    job_id          INTEGER NOT NULL REFERENCES jobs (id),
    datasource_id   INTEGER NOT NULL REFERENCES datasources (id),
    source_type     TEXT    NOT NULL,
    status          TEXT    NOT NULL,
    failure_reason  TEXT,
    last_checkpoint INTEGER,
    configuration   TEXT    NOT NULL,
    -- A session that waits for a rate limit is not stalled.
    waiting_until   INTEGER,
    started_at      INTEGER NOT NULL,
    completed_at    INTEGER,
    last_update     INTEGER NOT NULL,
    UNIQUE (job_id, datasource_id)
) STRICT;

-- One row per commit; a session's totals are folded from these, never kept in a hot counter.
CREATE TABLE enumeration_batches (
    id              INTEGER PRIMARY KEY,
    session_id      INTEGER NOT NULL REFERENCES enumeration_sessions (id),
    status          TEXT    NOT NULL,
    checkpoint      TEXT,
    expected_items  INTEGER NOT NULL,
    items_processed INTEGER NOT NULL,
    error_details   TEXT,
    started_at      INTEGER NOT NULL,
    completed_at    INTEGER
) STRICT;

CREATE INDEX enumeration_batches_by_session ON enumeration_batches (session_id, id);

CREATE TABLE checkpoints (
    id         INTEGER PRIMARY KEY,
    target     TEXT    NOT NULL UNIQUE,
    data       TEXT    NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE task_units (
    id           INTEGER PRIMARY KEY,
    task_id      INTEGER NOT NULL REFERENCES tasks (id),
    job_id       INTEGER NOT NULL,
    session_id   INTEGER NOT NULL,
    key          BLOB    NOT NULL,
    status       TEXT    NOT NULL,
    reason       TEXT,
    detail       TEXT,
    -- Totals over the unit's records; `records` is also the next sequence number.
    records      INTEGER NOT NULL DEFAULT 0,
    containers   INTEGER NOT NULL DEFAULT 0,
    objects      INTEGER NOT NULL DEFAULT 0,
    skipped      INTEGER NOT NULL DEFAULT 0,
    bytes        INTEGER NOT NULL DEFAULT 0,
    -- The authority for resuming a listing that goes by cursor.
    resume_point TEXT,
    -- Bit 1: its containers became enumeration tasks. Bit 2: its objects became classification tasks.
    fanned_out   INTEGER NOT NULL DEFAULT 0,
    UNIQUE (task_id, key)
) STRICT;

CREATE INDEX task_units_to_fan_out ON task_units (job_id, id) WHERE status = 'COMMITTED' AND fanned_out < 3;
CREATE INDEX task_units_staging ON task_units (job_id, id) WHERE status = 'STAGING';
CREATE INDEX task_units_by_job ON task_units (job_id, status);

-- Clustered by (unit, sequence), and no index in random order: rows go in at the speed of an append.
CREATE TABLE task_output_records (
    unit_id         INTEGER NOT NULL,
    sequence        INTEGER NOT NULL,
    kind            INTEGER NOT NULL,
    name            BLOB    NOT NULL,
    object_key_hash BLOB    NOT NULL,
    size            INTEGER NOT NULL,
    mtime_ns        INTEGER NOT NULL,
    ctime_ns        INTEGER NOT NULL,
    inode           INTEGER NOT NULL,
    reason          TEXT,
    PRIMARY KEY (unit_id, sequence)
) STRICT, WITHOUT ROWID;

-- Skipped entries by reason, per unit that has any.
CREATE TABLE task_unit_skips (
    unit_id INTEGER NOT NULL,
    reason  TEXT    NOT NULL,
    count   INTEGER NOT NULL,
    PRIMARY KEY (unit_id, reason)
) STRICT, WITHOUT ROWID;
