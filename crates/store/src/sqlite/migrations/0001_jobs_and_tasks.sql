-- What was asked for, and who works on it.

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
) STRICT;

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
) STRICT, WITHOUT ROWID;

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
    finished_at               INTEGER,
    UNIQUE (master_job_id, node_group)
) STRICT;

CREATE INDEX jobs_open ON jobs (node_group, status, id)
    WHERE status NOT IN ('COMPLETED', 'PARTIALLY_COMPLETED', 'FAILED', 'CANCELLED');

-- One row per process start, with its lease: heartbeats cost O(processes), not O(tasks).
CREATE TABLE worker_sessions (
    id           BLOB    NOT NULL PRIMARY KEY,
    node_group   TEXT    NOT NULL,
    started_at   INTEGER NOT NULL,
    lease_expiry INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE orchestrators (
    id           BLOB    NOT NULL PRIMARY KEY,
    node_group   TEXT    NOT NULL,
    started_at   INTEGER NOT NULL,
    lease_expiry INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

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

-- A paused job's backlog costs nothing: claims start from the running jobs of the group.
CREATE INDEX tasks_pending ON tasks (job_id, type, priority DESC, id) WHERE status = 'PENDING';
CREATE INDEX tasks_running ON tasks (worker_id, id) WHERE status = 'RUNNING';
CREATE INDEX tasks_by_job ON tasks (job_id, status);
