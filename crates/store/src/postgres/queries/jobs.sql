-- Master jobs, child jobs, processes.
--
-- Locks of a job's row. Whoever changes a job under its lease holds it FOR NO KEY UPDATE from its first
-- statement on, so that owners, their successors and appended commands come one after the other. A change
-- of status is FOR UPDATE besides: that also waits for claims and splits of the job's tasks, which hold the
-- row FOR KEY SHARE. Those wait for nobody, and renewals do not disturb them. Locks are taken in the order
-- jobs, tasks, units, sessions, and in the order of ids within each.

-- What someone manages stays as it is: an edit that comes in between is not undone. Its row is locked all the
-- same, so that whoever takes it out of use sees the job.
-- name: upsert_datasources
INSERT INTO datasources
    (name, kind, node_group, concurrency_limit, configuration, worker_label, credential, created_at, updated_at)
SELECT DISTINCT ON (s.name COLLATE "C")
       s.name, s.kind, s.node_group, s.concurrency_limit, s.configuration, s.worker_label, s.credential, now_ms(), now_ms()
FROM unnest($1::text[], $2::text[], $3::text[], $4::bigint[], $5::text[], $6::text[], $7::text[]) WITH ORDINALITY
    AS s (name, kind, node_group, concurrency_limit, configuration, worker_label, credential, n)
ORDER BY s.name COLLATE "C", s.n DESC
ON CONFLICT (name) DO UPDATE
SET kind = excluded.kind, node_group = excluded.node_group, concurrency_limit = excluded.concurrency_limit,
    configuration = excluded.configuration, worker_label = excluded.worker_label, credential = excluded.credential,
    updated_at = excluded.updated_at
WHERE NOT datasources.managed;

-- name: insert_jobs
WITH made AS (
    INSERT INTO jobs
        (master_job_id, node_group, status, priority, fingerprint_key, master_pending_commands, configuration, created_at)
    SELECT $1, s.node_group, 'QUEUED', $4, $5, '["START"]', s.configuration, now_ms()
    FROM unnest($2::text[], $3::text[]) WITH ORDINALITY AS s (node_group, configuration, n)
    ORDER BY s.n
    RETURNING id, node_group)
INSERT INTO events (job_id, kind, payload, created_at)
SELECT id, 'JobQueued', json_build_object('node_group', node_group)::text, now_ms() FROM made ORDER BY id;

-- name: append_command
WITH open AS (
    SELECT id FROM jobs
    WHERE master_job_id = $1
      AND status NOT IN ('COMPLETED', 'PARTIALLY_COMPLETED', 'FAILED', 'CANCELLED')
    ORDER BY id
    FOR NO KEY UPDATE)
UPDATE jobs
SET master_pending_commands = jobs.master_pending_commands || to_jsonb($2::text)
FROM open
WHERE jobs.id = open.id;

-- name: release_jobs
WITH mine AS (SELECT id FROM jobs WHERE orchestrator_id = $1 ORDER BY id FOR NO KEY UPDATE)
UPDATE jobs SET orchestrator_lease_expiry = 0 FROM mine WHERE jobs.id = mine.id;

-- The owner of a QUEUED job is whoever gets here first; a job whose owner's lease expired goes over
-- in whatever state it is. START is cleared by the same statement. An orchestrator whose own lease
-- expired gets nothing.
-- name: claim_job
UPDATE jobs
SET status = CASE status WHEN 'QUEUED' THEN 'RUNNING' ELSE status END,
    orchestrator_id = $1,
    orchestrator_lease_expiry = now_ms() + $3,
    version = version + 1,
    started_at = coalesce(started_at, now_ms()),
    master_pending_commands = master_pending_commands - 'START'
WHERE id = (
    SELECT id FROM jobs
    WHERE node_group = $2
      AND status IN ('QUEUED', 'RUNNING', 'PAUSING', 'CANCELLING')
      AND (status = 'QUEUED' OR orchestrator_lease_expiry <= now_ms())
      AND NOT (status = 'QUEUED' AND master_pending_commands ? 'CANCEL')
      AND EXISTS (SELECT 1 FROM orchestrators o WHERE o.id = $1 AND o.lease_expiry > now_ms())
    ORDER BY priority DESC, id
    LIMIT 1
    FOR NO KEY UPDATE SKIP LOCKED)
RETURNING id, version, master_job_id, status, master_pending_commands::text;

-- `id + 0`, as in the statements about tasks, leaves the planner only the index of owned jobs.
-- name: renew_jobs
WITH mine AS (
    SELECT id FROM jobs
    WHERE orchestrator_id = $1
      AND orchestrator_lease_expiry > now_ms()
      AND status IN ('RUNNING', 'PAUSING', 'CANCELLING')
    ORDER BY id + 0
    FOR NO KEY UPDATE)
UPDATE jobs
SET orchestrator_lease_expiry = now_ms() + $2
FROM mine
WHERE jobs.id = mine.id
RETURNING jobs.id, version, master_job_id, status, master_pending_commands::text;

-- The orchestrator's fence: the job is as the lease says, and stays so until the end of the transaction.
-- name: owned_job
SELECT id, version, master_job_id, status, master_pending_commands::text, configuration
FROM jobs
WHERE id = $1 AND version = $2
FOR NO KEY UPDATE;

-- Waits for claims and splits of this job's tasks to end, and lets no new one begin.
-- name: close_job
SELECT 1 FROM jobs WHERE id = $1 FOR UPDATE;

-- name: unowned_with_commands
SELECT id, version, master_job_id, status, master_pending_commands::text
FROM jobs
WHERE node_group = $1
  AND status IN ('QUEUED', 'PAUSED')
  AND master_pending_commands NOT IN ('[]', '["START"]')
ORDER BY id
FOR UPDATE SKIP LOCKED;

-- name: set_job_status
UPDATE jobs
SET status = $3,
    version = version + 1,
    master_pending_commands = coalesce($4::text::jsonb, master_pending_commands),
    orchestrator_id = CASE WHEN $3 IN ('RUNNING', 'PAUSING', 'CANCELLING') THEN orchestrator_id END,
    finished_at = CASE WHEN $3 IN ('COMPLETED', 'PARTIALLY_COMPLETED', 'FAILED', 'CANCELLED') THEN now_ms() END,
    failure_reason = $5
WHERE id = $1 AND version = $2;

-- name: set_pending_commands
UPDATE jobs SET master_pending_commands = $3::text::jsonb WHERE id = $1 AND version = $2;

-- What stands between a job and its end, in one snapshot. A job without a session has not begun. Objects that are
-- to be traced are waited for, unless the task that does so ($2) failed for good.
-- name: job_obstacles
SELECT
    NOT EXISTS (SELECT 1 FROM enumeration_sessions WHERE job_id = $1)
    OR EXISTS (SELECT 1 FROM task_units WHERE job_id = $1 AND status = 'STAGING')
    OR EXISTS (SELECT 1 FROM task_units WHERE job_id = $1 AND status = 'COMMITTED' AND fanned_out < 3)
    OR EXISTS (SELECT 1 FROM tasks WHERE job_id = $1 AND status = 'PENDING')
    OR EXISTS (SELECT 1 FROM tasks WHERE job_id = $1 AND status = 'RUNNING')
    OR EXISTS (
        SELECT 1 FROM enumeration_sessions s
        WHERE s.job_id = $1
          AND EXISTS (SELECT 1 FROM untraced_objects o WHERE o.session_id = s.id OFFSET 0)
          AND NOT EXISTS (
              SELECT 1 FROM tasks t
              WHERE t.job_id = s.job_id AND t.session_id = s.id AND t.type = $2 AND t.status = 'FAILED'
              OFFSET 0));

-- name: stopping_jobs
SELECT id FROM jobs WHERE id = ANY ($1::bigint[]) AND status <> 'RUNNING' ORDER BY id;

-- name: unfinished
SELECT m.id, m.description, m.created_at, j.status, j.failure_reason, j.finished_at
FROM master_jobs m
JOIN jobs j ON j.master_job_id = m.id
WHERE m.id = (
    SELECT n.id
    FROM master_jobs n
    WHERE n.request_key = $1
      AND n.reported_at IS NULL
      AND NOT EXISTS (
          SELECT 1 FROM jobs k
          WHERE k.master_job_id = n.id
            AND (k.status IN ('CANCELLED', 'CANCELLING') OR k.master_pending_commands ? 'CANCEL'))
    ORDER BY n.created_at DESC, n.id
    LIMIT 1)
ORDER BY j.id;

-- name: master_jobs
SELECT m.id, m.description, m.created_at, j.status, j.failure_reason, j.finished_at
FROM (SELECT * FROM master_jobs WHERE pruned_at IS NULL ORDER BY created_at DESC, id LIMIT $1) m
JOIN jobs j ON j.master_job_id = m.id
ORDER BY m.created_at DESC, m.id, j.id;

-- name: rule_set
SELECT r FROM rules_of($1) r WHERE r IS NOT NULL;
