-- What was asked for, and who works on it.
--
-- Text that is compared or sorted has the collation "C", so that the order is that of the bytes, as it is in
-- every other backend. Foreign keys only where rows are few: each check locks the row it points to, and a
-- job's row must not be touched by every result of every worker.

-- Milliseconds since 1970 by the database's own clock, which goes on during a transaction.
CREATE FUNCTION now_ms() RETURNS bigint LANGUAGE sql VOLATILE
    AS $$ SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint $$;

CREATE TABLE datasources (
    id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name              text   COLLATE "C" NOT NULL UNIQUE,
    kind              text   NOT NULL,
    node_group        text   NOT NULL,
    worker_label      text,
    concurrency_limit bigint,
    configuration     text   NOT NULL,
    credential        text,
    created_at        bigint NOT NULL
);

CREATE TABLE rule_sets (
    hash       bytea  PRIMARY KEY,
    rules      text   NOT NULL,
    created_at bigint NOT NULL
);

CREATE TABLE master_jobs (
    id          bytea  PRIMARY KEY,
    -- Hash of targets, rules and options: what "the same command" means.
    request_key bytea  NOT NULL,
    description text   NOT NULL,
    created_at  bigint NOT NULL,
    -- When the user had the report of it.
    reported_at bigint
);

CREATE INDEX master_jobs_by_request ON master_jobs (request_key, created_at);
CREATE INDEX master_jobs_by_time ON master_jobs (created_at DESC, id);

CREATE TABLE jobs (
    id                        bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    master_job_id             bytea  NOT NULL REFERENCES master_jobs (id),
    node_group                text   NOT NULL,
    status                    text   NOT NULL,
    priority                  bigint NOT NULL DEFAULT 0,
    orchestrator_id           bytea,
    orchestrator_lease_expiry bigint NOT NULL DEFAULT 0,
    -- The fence: changes with every change of owner or status, not with a renewal.
    version                   bigint NOT NULL DEFAULT 0,
    master_pending_commands   jsonb  NOT NULL,
    configuration             text   NOT NULL,
    failure_reason            text,
    created_at                bigint NOT NULL,
    started_at                bigint,
    finished_at               bigint,
    UNIQUE (master_job_id, node_group)
) WITH (fillfactor = 50);

CREATE INDEX jobs_open ON jobs (node_group, id)
    WHERE status NOT IN ('COMPLETED', 'PARTIALLY_COMPLETED', 'FAILED', 'CANCELLED');

CREATE INDEX jobs_owned ON jobs (orchestrator_id) WHERE orchestrator_id IS NOT NULL;

-- One row per process start, with its lease: heartbeats cost O(processes), not O(tasks).
CREATE TABLE worker_sessions (
    id           bytea  PRIMARY KEY,
    node_group   text   NOT NULL,
    started_at   bigint NOT NULL,
    lease_expiry bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE orchestrators (
    id           bytea  PRIMARY KEY,
    node_group   text   NOT NULL,
    started_at   bigint NOT NULL,
    lease_expiry bigint NOT NULL
) WITH (fillfactor = 50);

CREATE TABLE tasks (
    id            bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id        bigint NOT NULL REFERENCES jobs (id),
    datasource_id bigint NOT NULL REFERENCES datasources (id),
    session_id    bigint NOT NULL,
    -- The task that was split to make this one, or NULL. Units belong to the origin, so that the
    -- halves skip what the whole had committed.
    origin_id     bigint,
    type          text   NOT NULL,
    status        text   NOT NULL,
    priority      bigint NOT NULL DEFAULT 0,
    payload       text   NOT NULL,
    -- Random per claim; kept on done rows, so that a lost answer to COMMIT can be read back.
    claim_id      bigint,
    worker_id     bytea,
    not_before    bigint NOT NULL DEFAULT 0,
    failures      bigint NOT NULL DEFAULT 0,
    abandonments  bigint NOT NULL DEFAULT 0,
    last_error    text,
    progress_at   bigint,
    -- What the task did, folded into the job's totals when read.
    objects       bigint NOT NULL DEFAULT 0,
    nested        bigint NOT NULL DEFAULT 0,
    bytes         bigint NOT NULL DEFAULT 0,
    created_at    bigint NOT NULL,
    finished_at   bigint
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.02);

-- A paused job's backlog costs nothing: claims start from the running jobs of the group. By data source, so
-- that one that runs as many tasks as it may is passed over without looking at its backlog.
CREATE INDEX tasks_pending ON tasks (job_id, datasource_id, type, priority DESC, id) WHERE status = 'PENDING';
CREATE INDEX tasks_running ON tasks (job_id, datasource_id) WHERE status = 'RUNNING';
CREATE INDEX tasks_failed ON tasks (job_id, id) WHERE status = 'FAILED';
CREATE INDEX tasks_by_job ON tasks (job_id);
