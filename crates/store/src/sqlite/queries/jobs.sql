-- Master jobs, child jobs, processes.

-- What someone manages stays as it is.
-- name: upsert_datasource
INSERT INTO datasources
    (name, kind, node_group, concurrency_limit, configuration, worker_label, credential, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, now_ms(), now_ms())
ON CONFLICT (name) DO UPDATE
SET kind = excluded.kind, node_group = excluded.node_group, concurrency_limit = excluded.concurrency_limit,
    configuration = excluded.configuration, worker_label = excluded.worker_label, credential = excluded.credential,
    updated_at = excluded.updated_at
WHERE NOT datasources.managed;

-- name: insert_job
INSERT INTO jobs
    (master_job_id, node_group, status, priority, fingerprint_key, master_pending_commands, configuration, created_at)
VALUES (?1, ?2, 'QUEUED', ?4, ?5, '["START"]', ?3, now_ms())
ON CONFLICT (master_job_id, node_group) DO NOTHING;

-- name: unfinished
SELECT m.id
FROM master_jobs m
WHERE m.request_key = ?1
  AND m.reported_at IS NULL
  AND NOT EXISTS (
      SELECT 1 FROM jobs j
      WHERE j.master_job_id = m.id
        AND (j.status IN ('CANCELLED', 'CANCELLING') OR j.master_pending_commands LIKE '%CANCEL%'))
ORDER BY m.created_at DESC, m.id
LIMIT 1;

-- name: append_command
UPDATE jobs
SET master_pending_commands = json_insert(master_pending_commands, '$[#]', ?2)
WHERE master_job_id = ?1
  AND status NOT IN ('COMPLETED', 'PARTIALLY_COMPLETED', 'FAILED', 'CANCELLED');

-- name: release_jobs
UPDATE jobs SET orchestrator_lease_expiry = 0 WHERE orchestrator_id = ?1;

-- name: expire_all_workers
UPDATE worker_sessions SET lease_expiry = now_ms() WHERE lease_expiry > now_ms();

-- name: expire_all_orchestrators
UPDATE orchestrators SET lease_expiry = now_ms() WHERE lease_expiry > now_ms();

-- name: expire_all_jobs
UPDATE jobs SET orchestrator_lease_expiry = 0 WHERE orchestrator_lease_expiry > 0;

-- The owner of a QUEUED job is whoever gets here first; a job whose owner's lease expired goes over
-- in whatever state it is. START is cleared by the same statement. An orchestrator whose own lease
-- expired gets nothing.
-- name: claim_job
UPDATE jobs
SET status = CASE status WHEN 'QUEUED' THEN 'RUNNING' ELSE status END,
    orchestrator_id = ?1,
    orchestrator_lease_expiry = now_ms() + ?3,
    version = version + 1,
    started_at = coalesce(started_at, now_ms()),
    master_pending_commands = (
        SELECT json_group_array(value) FROM json_each(master_pending_commands) WHERE value <> 'START')
WHERE id = (
    SELECT id FROM jobs
    WHERE node_group = ?2
      AND status IN ('QUEUED', 'RUNNING', 'PAUSING', 'CANCELLING')
      AND (status = 'QUEUED' OR orchestrator_lease_expiry <= now_ms())
      AND NOT (status = 'QUEUED' AND master_pending_commands LIKE '%CANCEL%')
    ORDER BY priority DESC, id
    LIMIT 1)
  AND EXISTS (SELECT 1 FROM orchestrators WHERE id = ?1 AND lease_expiry > now_ms())
RETURNING id, version, master_job_id, status, master_pending_commands;

-- name: renew_jobs
UPDATE jobs
SET orchestrator_lease_expiry = now_ms() + ?2
WHERE orchestrator_id = ?1
  AND orchestrator_lease_expiry > now_ms()
  AND status IN ('RUNNING', 'PAUSING', 'CANCELLING')
RETURNING id, version, master_job_id, status, master_pending_commands;

-- name: owned_job
SELECT id, version, master_job_id, status, master_pending_commands, configuration
FROM jobs
WHERE id = ?1 AND version = ?2;

-- name: unowned_with_commands
SELECT id, version, master_job_id, status, master_pending_commands
FROM jobs
WHERE node_group = ?1
  AND status IN ('QUEUED', 'PAUSED')
  AND master_pending_commands NOT IN ('[]', '["START"]')
ORDER BY id;

-- name: set_job_status
UPDATE jobs
SET status = ?3,
    version = version + 1,
    master_pending_commands = coalesce(?4, master_pending_commands),
    orchestrator_id = CASE WHEN ?3 IN ('RUNNING', 'PAUSING', 'CANCELLING') THEN orchestrator_id END,
    finished_at = CASE WHEN ?3 IN ('COMPLETED', 'PARTIALLY_COMPLETED', 'FAILED', 'CANCELLED') THEN now_ms() END,
    failure_reason = ?5
WHERE id = ?1 AND version = ?2;

-- name: set_pending_commands
UPDATE jobs SET master_pending_commands = ?3 WHERE id = ?1 AND version = ?2;

-- What stands between a job and its end, in one snapshot. A job without a session has not begun. Objects that are
-- to be traced are waited for, unless the task that does so (?2) failed for good.
-- name: job_obstacles
SELECT
    NOT EXISTS (SELECT 1 FROM enumeration_sessions WHERE job_id = ?1)
    OR EXISTS (SELECT 1 FROM task_units WHERE job_id = ?1 AND status = 'STAGING')
    OR EXISTS (
        SELECT 1 FROM task_units INDEXED BY task_units_to_fan_out
        WHERE job_id = ?1 AND status = 'COMMITTED' AND fanned_out < 3)
    OR EXISTS (SELECT 1 FROM tasks WHERE job_id = ?1 AND status = 'PENDING')
    OR EXISTS (SELECT 1 FROM tasks WHERE job_id = ?1 AND status = 'RUNNING')
    OR EXISTS (
        SELECT 1 FROM enumeration_sessions s
        WHERE s.job_id = ?1
          AND EXISTS (SELECT 1 FROM untraced_objects o WHERE o.session_id = s.id)
          AND NOT EXISTS (
              SELECT 1 FROM tasks t
              WHERE t.job_id = s.job_id AND t.session_id = s.id AND t.type = ?2 AND t.status = 'FAILED'));

-- name: job_is_stopping
SELECT EXISTS (SELECT 1 FROM jobs WHERE id = ?1 AND status <> 'RUNNING');

-- name: master_job_ids
SELECT id FROM master_jobs WHERE pruned_at IS NULL ORDER BY created_at DESC, id LIMIT ?1;

-- name: rule_set
SELECT rules FROM rule_sets WHERE hash = ?1;
