-- What classification found. Results of a task that is still running wait in `staged_results`, under
-- the claim that produced them; the transaction that completes the task moves them to the tables that
-- readers see. Rows of a lost claim are never seen, and swept.

CREATE TABLE staged_results (
    task_id  INTEGER NOT NULL,
    claim_id INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    body     TEXT    NOT NULL,
    PRIMARY KEY (task_id, claim_id, sequence)
) STRICT, WITHOUT ROWID;

-- One row per (object, rule, value), living across jobs.
CREATE TABLE findings (
    -- Hash of (data source, object key, nested path, rule, fingerprint).
    id            BLOB    NOT NULL PRIMARY KEY,
    datasource_id INTEGER NOT NULL REFERENCES datasources (id),
    object_key    BLOB    NOT NULL,
    nested_path   BLOB    NOT NULL,
    rule_id       TEXT    NOT NULL,
    fingerprint   BLOB    NOT NULL,
    category      TEXT    NOT NULL,
    score         INTEGER NOT NULL,
    preview       TEXT    NOT NULL,
    status        TEXT    NOT NULL,
    first_seen    INTEGER NOT NULL,
    last_seen     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE finding_occurrences (
    job_id     INTEGER NOT NULL REFERENCES jobs (id),
    task_id    INTEGER NOT NULL REFERENCES tasks (id),
    sequence   INTEGER NOT NULL,
    finding_id BLOB    NOT NULL REFERENCES findings (id),
    score      INTEGER NOT NULL,
    reasons    TEXT    NOT NULL,
    span_start INTEGER NOT NULL,
    span_end   INTEGER NOT NULL,
    line       INTEGER NOT NULL,
    column     INTEGER NOT NULL,
    decoding   TEXT    NOT NULL,
    -- Version marks of the outermost object as it was listed; NULL where the kind of source has none.
    content_version TEXT,
    PRIMARY KEY (job_id, task_id, sequence)
) STRICT, WITHOUT ROWID;

-- Only objects that need a row: skipped, partial, failed, or with findings beyond the cap. An object of
-- a completed task without one was scanned whole with the job's rules.
CREATE TABLE object_scans (
    job_id      INTEGER NOT NULL REFERENCES jobs (id),
    task_id     INTEGER NOT NULL REFERENCES tasks (id),
    sequence    INTEGER NOT NULL,
    object_key  BLOB    NOT NULL,
    nested_path BLOB    NOT NULL,
    status      TEXT    NOT NULL,
    reason      TEXT,
    detail      TEXT    NOT NULL,
    overflow    INTEGER NOT NULL,
    PRIMARY KEY (job_id, task_id, sequence)
) STRICT, WITHOUT ROWID;
