-- What operators look at: child jobs, tasks, the fleet.

-- With what their tasks and units add up to.
-- name: child_jobs
SELECT j.id, j.node_group, j.status, j.master_pending_commands::text, j.failure_reason,
       j.orchestrator_id, j.orchestrator_lease_expiry - now_ms(),
       (SELECT count(*) FROM worker_sessions w
        WHERE w.node_group = j.node_group AND w.lease_expiry > now_ms() AND w.fingerprint_key = j.fingerprint_key),
       j.created_at, j.started_at, j.finished_at,
       (SELECT w.last_error FROM tasks w
        WHERE w.job_id = j.id AND w.status = 'PENDING' AND w.not_before > now_ms() AND w.last_error IS NOT NULL
          AND EXISTS (SELECT 1 FROM enumeration_sessions s WHERE s.job_id = j.id AND s.waiting_until > now_ms())
        ORDER BY w.not_before DESC
        LIMIT 1),
       u.objects, u.bytes, t.objects, t.bytes, t.pending, t.running, t.done, t.failed,
       t.listing = 0
           AND EXISTS (SELECT 1 FROM enumeration_sessions s WHERE s.job_id = j.id)
           AND NOT EXISTS (
               SELECT 1 FROM task_units w WHERE w.job_id = j.id AND w.status = 'COMMITTED' AND w.fanned_out < 3),
       u.unchanged,
       (SELECT max(s.waiting_until) FROM enumeration_sessions s WHERE s.job_id = j.id AND s.waiting_until > now_ms())
FROM jobs j
CROSS JOIN LATERAL (
    SELECT coalesce(sum(objects), 0)::bigint AS objects, coalesce(sum(bytes), 0)::bigint AS bytes,
           coalesce(sum(unchanged), 0)::bigint AS unchanged
    FROM task_units
    WHERE job_id = j.id AND status = 'COMMITTED') u
CROSS JOIN LATERAL (
    SELECT coalesce(sum(objects) FILTER (WHERE status = 'COMPLETED'), 0)::bigint AS objects,
           coalesce(sum(bytes), 0)::bigint AS bytes,
           count(*) FILTER (WHERE status = 'PENDING') AS pending,
           count(*) FILTER (WHERE status = 'RUNNING') AS running,
           count(*) FILTER (WHERE status = 'COMPLETED') AS done,
           count(*) FILTER (WHERE status = 'FAILED') AS failed,
           count(*) FILTER (WHERE type = 'DISCOVERY_ENUMERATE' AND status IN ('PENDING', 'RUNNING')) AS listing
    FROM tasks
    WHERE job_id = j.id) t
WHERE j.master_job_id = $1
ORDER BY j.node_group COLLATE "C";

-- name: tasks
SELECT t.id, t.job_id, j.master_job_id, j.node_group, d.name, t.type, t.status, t.payload, t.worker_id, t.failures,
       t.abandonments, t.last_error, t.not_before, t.progress_at, t.created_at, t.finished_at, t.objects, t.nested, t.bytes
FROM tasks t
JOIN jobs j ON j.id = t.job_id
JOIN master_jobs m ON m.id = j.master_job_id AND m.pruned_at IS NULL
JOIN datasources d ON d.id = t.datasource_id
WHERE ($1::bigint IS NULL OR t.id = $1)
  AND ($2::bytea IS NULL OR j.master_job_id = $2)
  AND ($3::text IS NULL OR t.status = $3)
  AND ($4::text IS NULL OR t.type = $4)
  AND ($6::bigint IS NULL OR t.session_id = $6)
  AND t.id > $7
ORDER BY t.id
LIMIT $5;

-- Those that live, or ended within this time.
-- name: fleet_workers
SELECT id, node_group, host, version, slots, array_to_json(labels)::text, fingerprint_key, running, objects, bytes, findings,
       objects_per_second, bytes_per_second, started_at, lease_expiry - now_ms(), 0::bigint
FROM worker_sessions
WHERE lease_expiry > now_ms() - $1
ORDER BY node_group COLLATE "C", started_at, id;

-- name: fleet_orchestrators
SELECT o.id, o.node_group, o.host, o.version, o.slots, array_to_json(o.labels)::text, o.fingerprint_key, o.running, o.objects, o.bytes,
       o.findings, o.objects_per_second, o.bytes_per_second, o.started_at, o.lease_expiry - now_ms(),
       (SELECT count(*) FROM jobs j WHERE j.orchestrator_id = o.id AND j.orchestrator_lease_expiry > now_ms())
FROM orchestrators o
WHERE o.lease_expiry > now_ms() - $1
ORDER BY o.node_group COLLATE "C", o.started_at, o.id;

-- From the open jobs and by the indexes of what is pending, running and failed: what is done is not looked at.
-- name: fleet_groups
SELECT j.node_group,
       count(*) FILTER (WHERE j.status = 'QUEUED'),
       count(*) FILTER (WHERE j.status IN ('RUNNING', 'PAUSING', 'CANCELLING')),
       count(*) FILTER (WHERE j.status = 'PAUSED'),
       count(*) FILTER (WHERE j.master_pending_commands NOT IN ('[]', '["START"]')),
       sum(p.tasks)::bigint, sum(r.tasks)::bigint, sum(f.tasks)::bigint,
       now_ms() - min(p.since) FILTER (WHERE j.status = 'RUNNING'),
       sum(r.orphaned)::bigint
FROM jobs j
CROSS JOIN LATERAL (
    SELECT count(*) AS tasks, min(greatest(t.created_at, t.not_before)) AS since
    FROM tasks t
    WHERE t.job_id = j.id AND t.status = 'PENDING') p
CROSS JOIN LATERAL (
    SELECT count(*) AS tasks, count(*) FILTER (WHERE w.id IS NULL OR w.lease_expiry <= now_ms()) AS orphaned
    FROM tasks t
    LEFT JOIN worker_sessions w ON w.id = t.worker_id
    WHERE t.job_id = j.id AND t.status = 'RUNNING') r
CROSS JOIN LATERAL (
    SELECT count(*) AS tasks FROM tasks t WHERE t.job_id = j.id AND t.status = 'FAILED') f
WHERE j.status NOT IN ('COMPLETED', 'PARTIALLY_COMPLETED', 'FAILED', 'CANCELLED')
GROUP BY j.node_group;

-- A master job that nobody is removing; whoever removes it or tries it again comes after.
-- name: lock_master
SELECT 1 FROM master_jobs WHERE id = $1 AND pruned_at IS NULL FOR NO KEY UPDATE;

-- name: job_of_task
SELECT t.job_id, j.master_job_id FROM tasks t JOIN jobs j ON j.id = t.job_id WHERE t.id = $1;

-- FOR UPDATE: no claim, split or end of a job comes in between.
-- name: lock_jobs
SELECT id, version, master_job_id, status, master_pending_commands::text
FROM jobs
WHERE master_job_id = $1 AND ($2::bigint IS NULL OR id = $2)
ORDER BY id
FOR UPDATE;

-- name: failed_tasks
SELECT id, session_id, origin_id, type FROM tasks
WHERE job_id = $1 AND status = 'FAILED' AND ($2::bigint IS NULL OR id = $2)
ORDER BY id
FOR UPDATE;

-- Containers that could not be listed, of a job or of one task ($2), for these reasons ($3) or for any.
-- name: failed_units_of_job
SELECT u.id, u.task_id, u.session_id, s.datasource_id, u.key
FROM task_units u
JOIN enumeration_sessions s ON s.id = u.session_id
WHERE u.job_id = $1 AND u.status = 'FAILED'
  AND ($2::bigint IS NULL OR u.task_id = (
      SELECT coalesce(t.origin_id, t.id) FROM tasks t WHERE t.id = $2 AND t.type = 'DISCOVERY_ENUMERATE'))
  AND ($3::text[] IS NULL OR u.reason = ANY ($3))
ORDER BY u.task_id, u.id;

-- name: forget_units_by_id
WITH gone AS (DELETE FROM task_units WHERE id = ANY ($1) AND status = 'FAILED' RETURNING id),
skips AS (DELETE FROM task_unit_skips s USING gone WHERE s.unit_id = gone.id)
DELETE FROM task_output_records r USING gone WHERE r.unit_id = gone.id;

-- Objects that were not read whole, likewise, of tasks with fewer failed attempts than $4. Those that a pending task
-- reads again are left out.
-- name: failed_objects
SELECT o.task_id, t.session_id, t.datasource_id, t.failures, o.object_key, o.detail
FROM object_scans o
JOIN tasks t ON t.id = o.task_id
WHERE o.job_id = $1 AND o.status IN ('partial', 'failed')
  AND t.type = 'CLASSIFICATION' AND t.status = 'COMPLETED' AND t.failures < $4
  AND ($2::bigint IS NULL OR o.task_id = $2)
  AND ($3::text[] IS NULL OR o.reason = ANY ($3))
  AND t.id NOT IN (SELECT p.origin_id FROM tasks p WHERE p.job_id = $1 AND p.status = 'PENDING' AND p.origin_id IS NOT NULL)
ORDER BY o.task_id, o.sequence
LIMIT $5;

-- Of a task that failed there are no others: results are published when it completes.
-- name: forget_objects
DELETE FROM object_scans WHERE job_id = $1 AND task_id = ANY ($2);

-- Units of a task that was never split are all its own.
-- name: forget_units
WITH gone AS (DELETE FROM task_units WHERE task_id = ANY ($1) AND status = 'FAILED' RETURNING id),
skips AS (DELETE FROM task_unit_skips s USING gone WHERE s.unit_id = gone.id)
DELETE FROM task_output_records r USING gone WHERE r.unit_id = gone.id;

-- Of the origin's units, those that this half was about.
-- name: forget_units_of_half
WITH gone AS (
    DELETE FROM task_units
    WHERE task_id = $1 AND sha256(key) IN (SELECT sha256(k) FROM unnest($2::bytea[]) k) AND status = 'FAILED'
    RETURNING id),
skips AS (DELETE FROM task_unit_skips s USING gone WHERE s.unit_id = gone.id)
DELETE FROM task_output_records r USING gone WHERE r.unit_id = gone.id;

-- name: retry_failed_tasks
UPDATE tasks
SET status = 'PENDING', worker_id = NULL, claim_id = NULL, failures = 0, last_error = NULL, not_before = now_ms(),
    progress_at = NULL, finished_at = NULL
WHERE id = ANY ($1) AND status = 'FAILED';

-- name: reopen_sessions
UPDATE enumeration_sessions
SET status = 'IN_PROGRESS', failure_reason = NULL, completed_at = NULL, last_update = now_ms()
WHERE id = ANY ($1) AND status IN ('PARTIALLY_COMPLETED', 'FAILED');
