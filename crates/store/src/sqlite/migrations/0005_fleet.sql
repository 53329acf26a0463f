-- What a fleet is configured with and operated by: managed data sources, templates and their schedules, what
-- processes say of themselves, which fingerprint key a job is for, and jobs that are being removed.

-- Someone added it; others came with a job, and are described by the last one.
ALTER TABLE datasources ADD COLUMN managed    INTEGER NOT NULL DEFAULT 0;
ALTER TABLE datasources ADD COLUMN updated_at INTEGER NOT NULL DEFAULT 0;
UPDATE datasources SET updated_at = created_at;

CREATE TABLE scan_templates (
    name           TEXT    NOT NULL PRIMARY KEY,
    configuration  TEXT    NOT NULL,
    next_firing_at INTEGER,
    created_at     INTEGER NOT NULL,
    updated_at     INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- One row per time a template was due: whoever inserts it starts the job.
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

ALTER TABLE master_jobs ADD COLUMN template  TEXT;
-- It is being removed, under an id that nobody knows.
ALTER TABLE master_jobs ADD COLUMN pruned_at INTEGER;
CREATE INDEX master_jobs_pruned ON master_jobs (pruned_at) WHERE pruned_at IS NOT NULL;
CREATE INDEX master_jobs_by_time ON master_jobs (created_at DESC, id);

ALTER TABLE jobs ADD COLUMN fingerprint_key TEXT NOT NULL DEFAULT '';
UPDATE jobs SET fingerprint_key = coalesce(json_extract(configuration, '$.fingerprint_key'), '');

-- Which jobs read a source: the latest complete one is kept.
CREATE INDEX enumeration_sessions_by_datasource ON enumeration_sessions (datasource_id, job_id);

ALTER TABLE worker_sessions ADD COLUMN host TEXT NOT NULL DEFAULT '';
ALTER TABLE worker_sessions ADD COLUMN version TEXT NOT NULL DEFAULT '';
ALTER TABLE worker_sessions ADD COLUMN slots INTEGER NOT NULL DEFAULT 0;
ALTER TABLE worker_sessions ADD COLUMN labels TEXT NOT NULL DEFAULT '[]';
ALTER TABLE worker_sessions ADD COLUMN fingerprint_key TEXT;
ALTER TABLE worker_sessions ADD COLUMN running INTEGER NOT NULL DEFAULT 0;
ALTER TABLE worker_sessions ADD COLUMN objects INTEGER NOT NULL DEFAULT 0;
ALTER TABLE worker_sessions ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE worker_sessions ADD COLUMN findings INTEGER NOT NULL DEFAULT 0;
ALTER TABLE worker_sessions ADD COLUMN objects_per_second INTEGER NOT NULL DEFAULT 0;
ALTER TABLE worker_sessions ADD COLUMN bytes_per_second INTEGER NOT NULL DEFAULT 0;

ALTER TABLE orchestrators ADD COLUMN host TEXT NOT NULL DEFAULT '';
ALTER TABLE orchestrators ADD COLUMN version TEXT NOT NULL DEFAULT '';
ALTER TABLE orchestrators ADD COLUMN slots INTEGER NOT NULL DEFAULT 0;
ALTER TABLE orchestrators ADD COLUMN labels TEXT NOT NULL DEFAULT '[]';
ALTER TABLE orchestrators ADD COLUMN fingerprint_key TEXT;
ALTER TABLE orchestrators ADD COLUMN running INTEGER NOT NULL DEFAULT 0;
ALTER TABLE orchestrators ADD COLUMN objects INTEGER NOT NULL DEFAULT 0;
ALTER TABLE orchestrators ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE orchestrators ADD COLUMN findings INTEGER NOT NULL DEFAULT 0;
ALTER TABLE orchestrators ADD COLUMN objects_per_second INTEGER NOT NULL DEFAULT 0;
ALTER TABLE orchestrators ADD COLUMN bytes_per_second INTEGER NOT NULL DEFAULT 0;
