-- What a fleet is configured with and operated by: managed data sources, templates and their schedules, what
-- processes say of themselves, which fingerprint key a job is for, and jobs that are being removed.

ALTER TABLE datasources
    -- Someone added it; others came with a job, and are described by the last one.
    ADD COLUMN managed    boolean NOT NULL DEFAULT false,
    ADD COLUMN updated_at bigint  NOT NULL DEFAULT 0,
    -- Never written. PostgreSQL lets nobody lock a row who may update none of its columns: a worker locks
    -- sources and jobs while it claims, and has no right to change anything else of them.
    ADD COLUMN row_lock   boolean;
UPDATE datasources SET updated_at = created_at;

CREATE TABLE scan_templates (
    name           text   COLLATE "C" PRIMARY KEY,
    configuration  text   NOT NULL,
    next_firing_at bigint,
    created_at     bigint NOT NULL,
    updated_at     bigint NOT NULL
);

-- One row per time a template was due: whoever inserts it starts the job.
CREATE TABLE schedule_firings (
    template      text   COLLATE "C" NOT NULL,
    firing_at     bigint NOT NULL,
    -- NULL when this firing was skipped.
    master_job_id bytea,
    fired_at      bigint NOT NULL,
    PRIMARY KEY (template, firing_at)
);

CREATE TABLE book_settings (
    name  text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
);

ALTER TABLE master_jobs
    ADD COLUMN template  text,
    -- It is being removed, under an id that nobody knows.
    ADD COLUMN pruned_at bigint;
CREATE INDEX master_jobs_pruned ON master_jobs (pruned_at) WHERE pruned_at IS NOT NULL;

ALTER TABLE jobs
    ADD COLUMN fingerprint_key text NOT NULL DEFAULT '',
    ADD COLUMN row_lock        boolean;
UPDATE jobs SET fingerprint_key = coalesce(configuration::json ->> 'fingerprint_key', '');

-- Which jobs read a source: the latest complete one is kept.
CREATE INDEX enumeration_sessions_by_datasource ON enumeration_sessions (datasource_id, job_id);

ALTER TABLE worker_sessions
    ADD COLUMN host               text   NOT NULL DEFAULT '',
    ADD COLUMN version            text   NOT NULL DEFAULT '',
    ADD COLUMN slots              bigint NOT NULL DEFAULT 0,
    ADD COLUMN labels             text[] NOT NULL DEFAULT '{}',
    ADD COLUMN fingerprint_key    text,
    ADD COLUMN running            bigint NOT NULL DEFAULT 0,
    ADD COLUMN objects            bigint NOT NULL DEFAULT 0,
    ADD COLUMN bytes              bigint NOT NULL DEFAULT 0,
    ADD COLUMN findings           bigint NOT NULL DEFAULT 0,
    ADD COLUMN objects_per_second bigint NOT NULL DEFAULT 0,
    ADD COLUMN bytes_per_second   bigint NOT NULL DEFAULT 0;

ALTER TABLE orchestrators
    ADD COLUMN host               text   NOT NULL DEFAULT '',
    ADD COLUMN version            text   NOT NULL DEFAULT '',
    ADD COLUMN slots              bigint NOT NULL DEFAULT 0,
    ADD COLUMN labels             text[] NOT NULL DEFAULT '{}',
    ADD COLUMN fingerprint_key    text,
    ADD COLUMN running            bigint NOT NULL DEFAULT 0,
    ADD COLUMN objects            bigint NOT NULL DEFAULT 0,
    ADD COLUMN bytes              bigint NOT NULL DEFAULT 0,
    ADD COLUMN findings           bigint NOT NULL DEFAULT 0,
    ADD COLUMN objects_per_second bigint NOT NULL DEFAULT 0,
    ADD COLUMN bytes_per_second   bigint NOT NULL DEFAULT 0;
