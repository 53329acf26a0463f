-- Master jobs, child jobs, processes.

-- name: put_rule_set
INSERT INTO rule_sets (hash, rules, created_at) VALUES (?1, ?2, now_ms()) ON CONFLICT (hash) DO NOTHING;

-- name: insert_master_job
INSERT INTO master_jobs (id, request_key, description, template, created_at)
VALUES (?1, ?2, ?3, ?4, now_ms())
ON CONFLICT (id) DO NOTHING;

-- name: mark_reported
UPDATE master_jobs SET reported_at = coalesce(reported_at, now_ms()) WHERE id = ?1;

-- An id is random per process start: the same one again is the same process, whose answer was lost.
-- name: register_worker
INSERT INTO worker_sessions (id, node_group, started_at, lease_expiry, host, version, slots, labels, fingerprint_key)
VALUES (?1, ?2, now_ms(), now_ms() + ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (id) DO UPDATE SET lease_expiry = excluded.lease_expiry;

-- name: register_orchestrator
INSERT INTO orchestrators (id, node_group, started_at, lease_expiry, host, version, slots, labels, fingerprint_key)
VALUES (?1, ?2, now_ms(), now_ms() + ?3, ?4, ?5, ?6, ?7, ?8)
ON CONFLICT (id) DO UPDATE SET lease_expiry = excluded.lease_expiry;

-- name: renew_worker
UPDATE worker_sessions
SET lease_expiry = now_ms() + ?2, running = ?3, objects = ?4, bytes = ?5, findings = ?6, objects_per_second = ?7,
    bytes_per_second = ?8
WHERE id = ?1 AND lease_expiry > now_ms();

-- name: renew_orchestrator
UPDATE orchestrators
SET lease_expiry = now_ms() + ?2, running = ?3, objects = ?4, bytes = ?5, findings = ?6, objects_per_second = ?7,
    bytes_per_second = ?8
WHERE id = ?1 AND lease_expiry > now_ms();

-- name: release_worker
UPDATE worker_sessions SET lease_expiry = now_ms() WHERE id = ?1 AND lease_expiry > now_ms();

-- name: release_orchestrator
UPDATE orchestrators SET lease_expiry = now_ms() WHERE id = ?1 AND lease_expiry > now_ms();

-- name: job_has_running_tasks
SELECT EXISTS (SELECT 1 FROM tasks WHERE job_id = ?1 AND status = 'RUNNING');

-- Of a strict job (?2), what is unsupported is a problem, too.
-- What makes a strict job incomplete: formats that are not read, and what is elsewhere (the reasons of that weight).
-- name: job_outcome
SELECT
    EXISTS (SELECT 1 FROM task_units WHERE job_id = ?1 AND status = 'COMMITTED') AS enumerated,
    EXISTS (SELECT 1 FROM task_units WHERE job_id = ?1 AND status = 'FAILED')
        OR EXISTS (SELECT 1 FROM tasks WHERE job_id = ?1 AND status = 'FAILED')
        OR EXISTS (SELECT 1 FROM object_scans WHERE job_id = ?1 AND status IN ('partial', 'failed'))
        OR ?2 AND EXISTS (SELECT 1 FROM object_scans WHERE job_id = ?1 AND (
            status = 'unsupported' OR status = 'skipped' AND reason IN (
                'shallow_history', 'partial_clone', 'submodule_history', 'older_versions'))) AS problems,
    coalesce(
        (SELECT detail FROM task_units WHERE job_id = ?1 AND status = 'FAILED' ORDER BY id LIMIT 1),
        (SELECT last_error FROM tasks WHERE job_id = ?1 AND status = 'FAILED' ORDER BY id LIMIT 1)) AS first_problem;

-- name: master_job
SELECT m.id, m.description, m.created_at, j.status, j.failure_reason, j.finished_at
FROM master_jobs m
JOIN jobs j ON j.master_job_id = m.id
WHERE m.id = ?1
ORDER BY j.id;
