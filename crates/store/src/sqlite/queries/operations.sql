-- What operators look at: child jobs, tasks, the fleet.

-- With what their tasks and units add up to.
-- name: child_jobs
SELECT j.id, j.node_group, j.status, j.master_pending_commands, j.failure_reason,
       j.orchestrator_id, j.orchestrator_lease_expiry - now_ms(),
       (SELECT count(*) FROM worker_sessions w
        WHERE w.node_group = j.node_group AND w.lease_expiry > now_ms() AND w.fingerprint_key = j.fingerprint_key),
       j.created_at, j.started_at, j.finished_at,
       (SELECT t.last_error FROM tasks t
        WHERE t.job_id = j.id AND t.status = 'PENDING' AND t.not_before > now_ms() AND t.last_error IS NOT NULL
          AND EXISTS (SELECT 1 FROM enumeration_sessions s WHERE s.job_id = j.id AND s.waiting_until > now_ms())
        ORDER BY t.not_before DESC
        LIMIT 1)
FROM jobs j
WHERE j.master_job_id = ?1
ORDER BY j.node_group;

-- name: units_progress
SELECT coalesce(sum(objects), 0), coalesce(sum(bytes), 0), coalesce(sum(unchanged), 0)
FROM task_units
WHERE job_id = ?1 AND status = 'COMMITTED';

-- name: waiting_until
SELECT max(waiting_until) FROM enumeration_sessions WHERE job_id = ?1 AND waiting_until > now_ms();

-- name: tasks_progress
SELECT coalesce(sum(CASE WHEN status = 'COMPLETED' THEN objects END), 0),
       coalesce(sum(bytes), 0),
       coalesce(sum(status = 'PENDING'), 0),
       coalesce(sum(status = 'RUNNING'), 0),
       coalesce(sum(status = 'COMPLETED'), 0),
       coalesce(sum(status = 'FAILED'), 0),
       coalesce(sum(type = 'DISCOVERY_ENUMERATE' AND status IN ('PENDING', 'RUNNING')), 0) = 0
           AND EXISTS (SELECT 1 FROM enumeration_sessions WHERE job_id = ?1)
           AND NOT EXISTS (
               SELECT 1 FROM task_units INDEXED BY task_units_to_fan_out
               WHERE job_id = ?1 AND status = 'COMMITTED' AND fanned_out < 3)
FROM tasks
WHERE job_id = ?1;

-- name: tasks
SELECT t.id, t.job_id, j.master_job_id, j.node_group, d.name, t.type, t.status, t.payload, t.worker_id, t.failures,
       t.abandonments, t.last_error, t.not_before, t.progress_at, t.created_at, t.finished_at, t.objects, t.nested, t.bytes
FROM jobs j
CROSS JOIN master_jobs m ON m.id = j.master_job_id AND m.pruned_at IS NULL
CROSS JOIN tasks t ON t.job_id = j.id
CROSS JOIN datasources d ON d.id = t.datasource_id
WHERE (?1 IS NULL OR j.master_job_id = ?1)
  AND (?2 IS NULL OR t.status = ?2)
  AND (?3 IS NULL OR t.type = ?3)
  AND (?5 IS NULL OR t.session_id = ?5)
  AND t.id > ?6
ORDER BY t.id
LIMIT ?4;

-- name: task
SELECT t.id, t.job_id, j.master_job_id, j.node_group, d.name, t.type, t.status, t.payload, t.worker_id, t.failures,
       t.abandonments, t.last_error, t.not_before, t.progress_at, t.created_at, t.finished_at, t.objects, t.nested, t.bytes
FROM tasks t
JOIN jobs j ON j.id = t.job_id
JOIN master_jobs m ON m.id = j.master_job_id AND m.pruned_at IS NULL
JOIN datasources d ON d.id = t.datasource_id
WHERE t.id = ?1;

-- Those that live, or ended within this time.
-- name: fleet_workers
SELECT id, node_group, host, version, slots, labels, fingerprint_key, running, objects, bytes, findings,
       objects_per_second, bytes_per_second, started_at, lease_expiry - now_ms(), 0
FROM worker_sessions
WHERE lease_expiry > now_ms() - ?1
ORDER BY node_group, started_at, id;

-- name: fleet_orchestrators
SELECT o.id, o.node_group, o.host, o.version, o.slots, o.labels, o.fingerprint_key, o.running, o.objects, o.bytes,
       o.findings, o.objects_per_second, o.bytes_per_second, o.started_at, o.lease_expiry - now_ms(),
       (SELECT count(*) FROM jobs j WHERE j.orchestrator_id = o.id AND j.orchestrator_lease_expiry > now_ms())
FROM orchestrators o
WHERE o.lease_expiry > now_ms() - ?1
ORDER BY o.node_group, o.started_at, o.id;

-- What is done is not looked at.
-- name: fleet_groups
SELECT o.node_group,
       sum(o.status = 'QUEUED'),
       sum(o.status IN ('RUNNING', 'PAUSING', 'CANCELLING')),
       sum(o.status = 'PAUSED'),
       sum(o.master_pending_commands NOT IN ('[]', '["START"]')),
       sum(o.pending), sum(o.running), sum(o.failed),
       now_ms() - min(CASE WHEN o.status = 'RUNNING' THEN o.since END),
       sum(o.orphaned)
FROM (
    SELECT j.node_group, j.status, j.master_pending_commands,
           (SELECT count(*) FROM tasks t WHERE t.job_id = j.id AND t.status = 'PENDING') AS pending,
           (SELECT count(*) FROM tasks t WHERE t.job_id = j.id AND t.status = 'RUNNING') AS running,
           (SELECT count(*) FROM tasks t WHERE t.job_id = j.id AND t.status = 'FAILED') AS failed,
           (SELECT min(max(t.created_at, t.not_before)) FROM tasks t
            WHERE t.job_id = j.id AND t.status = 'PENDING') AS since,
           (SELECT count(*) FROM tasks t
            WHERE t.job_id = j.id AND t.status = 'RUNNING'
              AND NOT EXISTS (
                  SELECT 1 FROM worker_sessions w WHERE w.id = t.worker_id AND w.lease_expiry > now_ms())) AS orphaned
    FROM jobs j
    WHERE j.status NOT IN ('COMPLETED', 'PARTIALLY_COMPLETED', 'FAILED', 'CANCELLED')) o
GROUP BY o.node_group;

-- name: jobs_to_retry
SELECT j.id, j.version, j.master_job_id, j.status, j.master_pending_commands
FROM jobs j
JOIN master_jobs m ON m.id = j.master_job_id AND m.pruned_at IS NULL
WHERE j.master_job_id = ?1
ORDER BY j.id;

-- name: job_of_task
SELECT j.id, j.version, j.master_job_id, j.status, j.master_pending_commands
FROM tasks t
JOIN jobs j ON j.id = t.job_id
JOIN master_jobs m ON m.id = j.master_job_id AND m.pruned_at IS NULL
WHERE t.id = ?1;

-- name: failed_tasks
SELECT id, session_id, origin_id, type FROM tasks
WHERE job_id = ?1 AND status = 'FAILED' AND (?2 IS NULL OR id = ?2)
ORDER BY id;

-- Containers that could not be listed, of a job or of one task (?2), for these reasons (?3) or for any.
-- name: failed_units_of_job
SELECT u.id, u.task_id, u.session_id, s.datasource_id, u.key
FROM task_units u
JOIN enumeration_sessions s ON s.id = u.session_id
WHERE u.job_id = ?1 AND u.status = 'FAILED'
  AND (?2 IS NULL OR u.task_id = (
      SELECT coalesce(t.origin_id, t.id) FROM tasks t WHERE t.id = ?2 AND t.type = 'DISCOVERY_ENUMERATE'))
  AND (?3 IS NULL OR u.reason IN (SELECT r.value FROM json_each(?3) r))
ORDER BY u.task_id, u.id;

-- Objects that were not read whole, likewise, of tasks with fewer failed attempts than ?4. Those that a pending task
-- reads again are left out.
-- name: failed_objects
SELECT o.task_id, t.session_id, t.datasource_id, t.failures, o.object_key, o.detail
FROM object_scans o
JOIN tasks t ON t.id = o.task_id
WHERE o.job_id = ?1 AND o.status IN ('partial', 'failed')
  AND t.type = 'CLASSIFICATION' AND t.status = 'COMPLETED' AND t.failures < ?4
  AND (?2 IS NULL OR o.task_id = ?2)
  AND (?3 IS NULL OR o.reason IN (SELECT r.value FROM json_each(?3) r))
  AND t.id NOT IN (SELECT p.origin_id FROM tasks p WHERE p.job_id = ?1 AND p.status = 'PENDING' AND p.origin_id IS NOT NULL)
ORDER BY o.task_id, o.sequence
LIMIT ?5;

-- Of a task that failed there are no others: results are published when it completes.
-- name: forget_objects
DELETE FROM object_scans WHERE job_id = ?1 AND task_id = ?2;

-- Failed units of a task, or of the task that it is a half of.
-- name: failed_units
SELECT id, key FROM task_units WHERE task_id = ?1 AND status = 'FAILED';

-- name: forget_unit
DELETE FROM task_units WHERE id = ?1;

-- name: retry_failed_task
UPDATE tasks
SET status = 'PENDING', worker_id = NULL, claim_id = NULL, failures = 0, last_error = NULL, not_before = now_ms(),
    progress_at = NULL, finished_at = NULL
WHERE id = ?1 AND status = 'FAILED';

-- name: reopen_session
UPDATE enumeration_sessions
SET status = 'IN_PROGRESS', failure_reason = NULL, completed_at = NULL, last_update = now_ms()
WHERE id = ?1 AND status IN ('PARTIALLY_COMPLETED', 'FAILED');
