CREATE TABLE schema_migrations (
             version INTEGER PRIMARY KEY, name TEXT NOT NULL, checksum TEXT NOT NULL, applied_at INTEGER NOT NULL
         ) STRICT;

CREATE TABLE datasources (
    id                INTEGER PRIMARY KEY,
    name              TEXT    NOT NULL UNIQUE,
    kind              TEXT    NOT NULL,
    node_group        TEXT    NOT NULL,
    worker_label      TEXT,
    concurrency_limit INTEGER,
    configuration     TEXT    NOT NULL,
    credential        TEXT,
    created_at        INTEGER NOT NULL
, managed    INTEGER NOT NULL DEFAULT 0, updated_at INTEGER NOT NULL DEFAULT 0) STRICT;

CREATE TABLE rule_sets (
    hash       BLOB    NOT NULL PRIMARY KEY,
    rules      TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE master_jobs (
    id          BLOB    NOT NULL PRIMARY KEY,
    -- Hash of targets, rules and options: what "the same command" means.
    request_key BLOB    NOT NULL,
    description TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    -- When the user had the report of it.
    reported_at INTEGER
, template  TEXT, pruned_at INTEGER) STRICT, WITHOUT ROWID;

CREATE INDEX master_jobs_by_request ON master_jobs (request_key, created_at);

CREATE TABLE jobs (
    id                        INTEGER PRIMARY KEY,
    master_job_id             BLOB    NOT NULL REFERENCES master_jobs (id),
    node_group                TEXT    NOT NULL,
    status                    TEXT    NOT NULL,
    priority                  INTEGER NOT NULL DEFAULT 0,
    orchestrator_id           BLOB,
    orchestrator_lease_expiry INTEGER NOT NULL DEFAULT 0,
    -- The fence: changes with every change of owner or status, not with a renewal.
    version                   INTEGER NOT NULL DEFAULT 0,
    master_pending_commands   TEXT    NOT NULL,
    configuration             TEXT    NOT NULL,
    failure_reason            TEXT,
    created_at                INTEGER NOT NULL,
    started_at                INTEGER,
    finished_at               INTEGER, fingerprint_key TEXT NOT NULL DEFAULT '',
    UNIQUE (master_job_id, node_group)
) STRICT;

CREATE INDEX jobs_open ON jobs (node_group, status, id)
    WHERE status NOT IN ('COMPLETED', 'PARTIALLY_COMPLETED', 'FAILED', 'CANCELLED');

CREATE TABLE worker_sessions (
    id           BLOB    NOT NULL PRIMARY KEY,
    node_group   TEXT    NOT NULL,
    started_at   INTEGER NOT NULL,
    lease_expiry INTEGER NOT NULL
, host TEXT NOT NULL DEFAULT '', version TEXT NOT NULL DEFAULT '', slots INTEGER NOT NULL DEFAULT 0, labels TEXT NOT NULL DEFAULT '[]', fingerprint_key TEXT, running INTEGER NOT NULL DEFAULT 0, objects INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0, findings INTEGER NOT NULL DEFAULT 0, objects_per_second INTEGER NOT NULL DEFAULT 0, bytes_per_second INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;

CREATE TABLE orchestrators (
    id           BLOB    NOT NULL PRIMARY KEY,
    node_group   TEXT    NOT NULL,
    started_at   INTEGER NOT NULL,
    lease_expiry INTEGER NOT NULL
, host TEXT NOT NULL DEFAULT '', version TEXT NOT NULL DEFAULT '', slots INTEGER NOT NULL DEFAULT 0, labels TEXT NOT NULL DEFAULT '[]', fingerprint_key TEXT, running INTEGER NOT NULL DEFAULT 0, objects INTEGER NOT NULL DEFAULT 0, bytes INTEGER NOT NULL DEFAULT 0, findings INTEGER NOT NULL DEFAULT 0, objects_per_second INTEGER NOT NULL DEFAULT 0, bytes_per_second INTEGER NOT NULL DEFAULT 0) STRICT, WITHOUT ROWID;

CREATE TABLE tasks (
    id            INTEGER PRIMARY KEY,
    job_id        INTEGER NOT NULL REFERENCES jobs (id),
    datasource_id INTEGER NOT NULL REFERENCES datasources (id),
    session_id    INTEGER NOT NULL,
    -- The task that was split to make this one, or NULL. Units belong to the origin, so that the
    -- halves skip what the whole had committed.
    origin_id     INTEGER,
    type          TEXT    NOT NULL,
    status        TEXT    NOT NULL,
    priority      INTEGER NOT NULL DEFAULT 0,
    payload       TEXT    NOT NULL,
    -- Random per claim; kept on done rows, so that a lost answer to COMMIT can be read back.
    claim_id      INTEGER,
    worker_id     BLOB,
    not_before    INTEGER NOT NULL DEFAULT 0,
    failures      INTEGER NOT NULL DEFAULT 0,
    abandonments  INTEGER NOT NULL DEFAULT 0,
    last_error    TEXT,
    progress_at   INTEGER,
    -- What the task did, folded into the job's totals when read.
    objects       INTEGER NOT NULL DEFAULT 0,
    nested        INTEGER NOT NULL DEFAULT 0,
    bytes         INTEGER NOT NULL DEFAULT 0,
    created_at    INTEGER NOT NULL,
    finished_at   INTEGER
) STRICT;

CREATE INDEX tasks_pending ON tasks (job_id, type, priority DESC, id) WHERE status = 'PENDING';

CREATE INDEX tasks_running ON tasks (worker_id, id) WHERE status = 'RUNNING';

CREATE INDEX tasks_by_job ON tasks (job_id, status);

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
    last_update     INTEGER NOT NULL, scan_key BLOB, base_session_id INTEGER,
    UNIQUE (job_id, datasource_id)
) STRICT;

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
    reason          TEXT, tag BLOB, metadata TEXT,
    PRIMARY KEY (unit_id, sequence)
) STRICT, WITHOUT ROWID;

CREATE TABLE task_unit_skips (
    unit_id INTEGER NOT NULL,
    reason  TEXT    NOT NULL,
    count   INTEGER NOT NULL,
    PRIMARY KEY (unit_id, reason)
) STRICT, WITHOUT ROWID;

CREATE TABLE staged_results (
    task_id  INTEGER NOT NULL,
    claim_id INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    body     TEXT    NOT NULL, attachment BLOB,
    PRIMARY KEY (task_id, claim_id, sequence)
) STRICT, WITHOUT ROWID;

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
    content_version TEXT, row_key TEXT, suppressed_by TEXT, suppressed INTEGER,
    PRIMARY KEY (job_id, task_id, sequence)
) STRICT, WITHOUT ROWID;

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

CREATE TABLE scan_templates (
    name           TEXT    NOT NULL PRIMARY KEY,
    configuration  TEXT    NOT NULL,
    next_firing_at INTEGER,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE schedule_firings (
    template      TEXT    NOT NULL,
    firing_at     INTEGER NOT NULL,
    -- NULL when this firing was skipped.
    master_job_id BLOB,
    fired_at      INTEGER NOT NULL,
    PRIMARY KEY (template, firing_at)
) STRICT, WITHOUT ROWID;

CREATE TABLE book_settings (
    name  TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE INDEX master_jobs_pruned ON master_jobs (pruned_at) WHERE pruned_at IS NOT NULL;

CREATE INDEX master_jobs_by_time ON master_jobs (created_at DESC, id);

CREATE INDEX enumeration_sessions_by_datasource ON enumeration_sessions (datasource_id, job_id);

CREATE TABLE "task_units" (
    id           INTEGER PRIMARY KEY,
    task_id      INTEGER NOT NULL REFERENCES tasks (id),
    job_id       INTEGER NOT NULL,
    session_id   INTEGER NOT NULL,
    key          BLOB    NOT NULL,
    -- Of a container that comes whole, the only one: 0.
    page         INTEGER NOT NULL DEFAULT 0,
    status       TEXT    NOT NULL,
    reason       TEXT,
    detail       TEXT,
    -- Totals over the unit's records; `records` is also the next sequence number.
    records      INTEGER NOT NULL DEFAULT 0,
    containers   INTEGER NOT NULL DEFAULT 0,
    objects      INTEGER NOT NULL DEFAULT 0,
    skipped      INTEGER NOT NULL DEFAULT 0,
    unchanged    INTEGER NOT NULL DEFAULT 0,
    bytes        INTEGER NOT NULL DEFAULT 0,
    -- Where the next page begins; NULL ends the container. The authority for resuming a listing.
    resume_point TEXT,
    -- Bit 1: its containers became enumeration tasks. Bit 2: its objects became classification tasks.
    fanned_out   INTEGER NOT NULL DEFAULT 0,
    UNIQUE (task_id, key, page)
) STRICT;

CREATE INDEX task_units_to_fan_out ON task_units (job_id, id) WHERE status = 'COMMITTED' AND fanned_out < 3;

CREATE INDEX task_units_staging ON task_units (job_id, id) WHERE status = 'STAGING';

CREATE INDEX task_units_by_job ON task_units (job_id, status, session_id, key, page);

CREATE INDEX enumeration_sessions_by_scan_key ON enumeration_sessions (datasource_id, scan_key, id)
    WHERE scan_key IS NOT NULL;

CREATE INDEX object_scans_by_object ON object_scans (job_id, object_key);

CREATE TABLE scan_targets (
    -- Hash of type and number: the same wherever it is made.
    id             BLOB    NOT NULL PRIMARY KEY,
    name           TEXT    NOT NULL,
    target_type    TEXT    NOT NULL,
    -- Its number in the table of its type: `datasources`, `github_repos` or `url_targets`.
    target_id      INTEGER NOT NULL,
    metadata       TEXT    NOT NULL,
    created_at     INTEGER NOT NULL,
    last_scan_time INTEGER,
    UNIQUE (target_type, target_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE github_repos (
    id         INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL,
    url        TEXT    NOT NULL UNIQUE,
    is_active  INTEGER NOT NULL,
    metadata   TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE url_targets (
    id         INTEGER PRIMARY KEY,
    url        TEXT    NOT NULL UNIQUE,
    metadata   TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE job_scan_targets (
    job_id         INTEGER NOT NULL,
    scan_target_id BLOB    NOT NULL,
    session_id     INTEGER NOT NULL,
    PRIMARY KEY (job_id, scan_target_id, session_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE object_origins (
    datasource_id INTEGER NOT NULL,
    object_key    BLOB    NOT NULL,
    path          BLOB,
    commit_id     TEXT    NOT NULL,
    author        TEXT    NOT NULL,
    time_ms       INTEGER NOT NULL,
    is_abandoned  INTEGER NOT NULL,
    PRIMARY KEY (datasource_id, object_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE untraced_objects (
    session_id INTEGER NOT NULL,
    object_key BLOB    NOT NULL,
    PRIMARY KEY (session_id, object_key)
) STRICT, WITHOUT ROWID;

CREATE TABLE table_observations (
    job_id        INTEGER NOT NULL REFERENCES jobs (id),
    task_id       INTEGER NOT NULL REFERENCES tasks (id),
    sequence      INTEGER NOT NULL,
    datasource_id INTEGER NOT NULL,
    object_key    BLOB    NOT NULL,
    nested_path   BLOB    NOT NULL,
    -- The object that was read: the table's own key, or a range's.
    part_key      BLOB    NOT NULL,
    shape         TEXT    NOT NULL,
    rows          INTEGER NOT NULL,
    is_sample     INTEGER NOT NULL,
    -- One per column, each behind its length.
    sketches      BLOB    NOT NULL,
    PRIMARY KEY (job_id, task_id, sequence)
) STRICT, WITHOUT ROWID;

CREATE INDEX table_observations_by_table
    ON table_observations (job_id, datasource_id, object_key, nested_path, part_key);

CREATE INDEX finding_occurrences_suppressed
    ON finding_occurrences (job_id, suppressed_by, suppressed) WHERE suppressed_by IS NOT NULL;

CREATE TABLE object_checkpoints (
    -- The task, or the one it was split from.
    task_id         INTEGER NOT NULL REFERENCES tasks (id),
    object_key_hash BLOB    NOT NULL,
    number          INTEGER NOT NULL,
    -- JSON.
    body            TEXT    NOT NULL,
    PRIMARY KEY (task_id, object_key_hash, number)
) STRICT, WITHOUT ROWID;
