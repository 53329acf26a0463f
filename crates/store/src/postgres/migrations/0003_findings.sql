-- What classification found. Results of a task that is still running wait in the `staged_` tables, under the
-- claim that produced them and with all columns of the tables that readers see; the transaction that
-- completes the task moves them there without sending them anywhere. Rows of a lost claim are never seen,
-- and swept.

CREATE TABLE staged_findings (
    task_id         bigint   NOT NULL,
    claim_id        bigint   NOT NULL,
    sequence        bigint   NOT NULL,
    finding_id      bytea    NOT NULL,
    object_key      bytea    NOT NULL,
    nested_path     bytea    NOT NULL,
    rule_id         text     NOT NULL,
    fingerprint     bytea    NOT NULL,
    category        text     NOT NULL,
    score           smallint NOT NULL,
    preview         text     NOT NULL,
    reasons         text     NOT NULL,
    span_start      bigint   NOT NULL,
    span_end        bigint   NOT NULL,
    line            bigint   NOT NULL,
    column_number   bigint   NOT NULL,
    decoding        text     NOT NULL,
    content_version text,
    PRIMARY KEY (task_id, claim_id, sequence)
);

CREATE TABLE staged_objects (
    task_id     bigint NOT NULL,
    claim_id    bigint NOT NULL,
    sequence    bigint NOT NULL,
    object_key  bytea  NOT NULL,
    nested_path bytea  NOT NULL,
    status      text   NOT NULL,
    reason      text,
    detail      text   NOT NULL,
    overflow    bigint NOT NULL,
    PRIMARY KEY (task_id, claim_id, sequence)
);

-- One row per (object, rule, value), living across jobs.
CREATE TABLE findings (
    -- Hash of (data source, object key, nested path, rule, fingerprint).
    id            bytea    PRIMARY KEY,
    datasource_id bigint   NOT NULL,
    object_key    bytea    NOT NULL,
    nested_path   bytea    NOT NULL,
    rule_id       text     COLLATE "C" NOT NULL,
    fingerprint   bytea    NOT NULL,
    category      text     NOT NULL,
    score         smallint NOT NULL,
    preview       text     NOT NULL,
    status        text     NOT NULL,
    first_seen    bigint   NOT NULL,
    last_seen     bigint   NOT NULL
) WITH (fillfactor = 80);

CREATE TABLE finding_occurrences (
    job_id          bigint   NOT NULL,
    task_id         bigint   NOT NULL,
    sequence        bigint   NOT NULL,
    finding_id      bytea    NOT NULL,
    score           smallint NOT NULL,
    reasons         text     NOT NULL,
    span_start      bigint   NOT NULL,
    span_end        bigint   NOT NULL,
    line            bigint   NOT NULL,
    column_number   bigint   NOT NULL,
    decoding        text     NOT NULL,
    -- Version marks of the outermost object as it was listed; NULL where the kind of source has none.
    content_version text,
    PRIMARY KEY (job_id, task_id, sequence)
);

-- Only objects that need a row: skipped, partial, failed, or with findings beyond the cap. An object of
-- a completed task without one was scanned whole with the job's rules.
CREATE TABLE object_scans (
    job_id      bigint NOT NULL,
    task_id     bigint NOT NULL,
    sequence    bigint NOT NULL,
    object_key  bytea  NOT NULL,
    nested_path bytea  NOT NULL,
    status      text   COLLATE "C" NOT NULL,
    reason      text   COLLATE "C",
    detail      text   NOT NULL,
    overflow    bigint NOT NULL,
    PRIMARY KEY (job_id, task_id, sequence)
);
