-- Data sources that someone manages, and the book's settings.

-- A source that came with a job, or was removed, becomes a managed one, with all that was found in it.
-- name: add_datasource
INSERT INTO datasources
    (name, kind, node_group, configuration, concurrency_limit, worker_label, credential, managed, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, true, now_ms(), now_ms())
ON CONFLICT (name) DO UPDATE
SET kind = excluded.kind, node_group = excluded.node_group, configuration = excluded.configuration,
    concurrency_limit = excluded.concurrency_limit, worker_label = excluded.worker_label,
    credential = excluded.credential, managed = true, updated_at = excluded.updated_at
WHERE NOT datasources.managed;

-- name: replace_datasource
UPDATE datasources
SET kind = ?2, node_group = ?3, configuration = ?4, concurrency_limit = ?5, worker_label = ?6, credential = ?7,
    updated_at = now_ms()
WHERE name = ?1 AND managed;

-- name: managed_datasources
SELECT id, name, kind, node_group, configuration, concurrency_limit, worker_label, credential, created_at, updated_at
FROM datasources
WHERE managed AND (CAST(?1 AS text) IS NULL OR name = ?1)
ORDER BY name;

-- name: release_datasource
UPDATE datasources SET managed = false, updated_at = now_ms() WHERE name = ?1;

-- name: open_configurations
SELECT master_job_id, configuration
FROM jobs
WHERE status NOT IN ('COMPLETED', 'PARTIALLY_COMPLETED', 'FAILED', 'CANCELLED')
ORDER BY id;

-- name: setting
SELECT value FROM book_settings WHERE name = ?1;

-- name: add_setting
INSERT INTO book_settings (name, value) VALUES (?1, ?2) ON CONFLICT (name) DO NOTHING;

-- name: change_setting
UPDATE book_settings SET value = ?2 WHERE name = ?1;

-- name: count_open_jobs
SELECT count(*) FROM jobs WHERE status NOT IN ('COMPLETED', 'PARTIALLY_COMPLETED', 'FAILED', 'CANCELLED');
