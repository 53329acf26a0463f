-- What enumeration found.

CREATE TABLE enumeration_sessions (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id         bigint NOT NULL REFERENCES jobs (id),
    datasource_id  bigint NOT NULL REFERENCES datasources (id),
    source_type    text   NOT NULL,
    status         text   NOT NULL,
    failure_reason text,
    configuration  text   NOT NULL,
    -- A session that waits for a rate limit is not stalled.
    waiting_until  bigint,
    started_at     bigint NOT NULL,
    completed_at   bigint,
    -- When its status last changed; its progress is what its batches say.
    last_update    bigint NOT NULL,
    UNIQUE (job_id, datasource_id)
);

-- One row per commit. A session's totals, progress and checkpoint are folded from these: many workers commit
-- under one session, and a row that each of them updates would make them wait for one another.
CREATE TABLE enumeration_batches (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    session_id      bigint NOT NULL,
    status          text   NOT NULL,
    checkpoint      text,
    expected_items  bigint NOT NULL,
    items_processed bigint NOT NULL,
    error_details   text,
    started_at      bigint NOT NULL,
    completed_at    bigint
);

CREATE INDEX enumeration_batches_by_session ON enumeration_batches (session_id, id);

CREATE VIEW checkpoints AS
SELECT b.id, 'session:' || s.id AS target, b.checkpoint AS data, b.completed_at AS updated_at
FROM enumeration_sessions s
CROSS JOIN LATERAL (
    SELECT * FROM enumeration_batches b WHERE b.session_id = s.id ORDER BY b.id DESC LIMIT 1) b;

CREATE TABLE task_units (
    id           bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    task_id      bigint NOT NULL,
    job_id       bigint NOT NULL,
    session_id   bigint NOT NULL,
    key          bytea  NOT NULL,
    status       text   NOT NULL,
    reason       text,
    detail       text,
    -- Totals over the unit's records; `records` is also the next sequence number.
    records      bigint NOT NULL DEFAULT 0,
    containers   bigint NOT NULL DEFAULT 0,
    objects      bigint NOT NULL DEFAULT 0,
    skipped      bigint NOT NULL DEFAULT 0,
    bytes        bigint NOT NULL DEFAULT 0,
    -- The authority for resuming a listing that goes by cursor. Bytes: a cursor is the source's own text.
    resume_point bytea,
    -- Bit 1: its containers became enumeration tasks. Bit 2: its objects became classification tasks.
    fanned_out   bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

-- A hash, for a key may be longer than an index entry can be.
CREATE UNIQUE INDEX task_units_by_key ON task_units (task_id, sha256(key));
CREATE INDEX task_units_to_fan_out ON task_units (job_id, id) WHERE status = 'COMMITTED' AND fanned_out < 3;
CREATE INDEX task_units_staging ON task_units (job_id, id) WHERE status = 'STAGING';
CREATE INDEX task_units_failed ON task_units (job_id, id) WHERE status = 'FAILED';
CREATE INDEX task_units_by_session ON task_units (job_id, session_id) WHERE status = 'COMMITTED';

-- In the order of (unit, sequence), and no index in random order: rows go in at the speed of an append.
CREATE TABLE task_output_records (
    unit_id         bigint   NOT NULL,
    sequence        bigint   NOT NULL,
    kind            smallint NOT NULL,
    name            bytea    NOT NULL,
    object_key_hash bytea    NOT NULL,
    size            bigint   NOT NULL,
    mtime_ns        bigint   NOT NULL,
    ctime_ns        bigint   NOT NULL,
    inode           bigint   NOT NULL,
    reason          text,
    PRIMARY KEY (unit_id, sequence)
);

-- Skipped entries by reason, per unit that has any.
CREATE TABLE task_unit_skips (
    unit_id bigint NOT NULL,
    reason  text   COLLATE "C" NOT NULL,
    count   bigint NOT NULL,
    PRIMARY KEY (unit_id, reason)
);
