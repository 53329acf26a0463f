-- Tasks: claims, the fence, giving back, reaping.

-- name: insert_task
INSERT INTO tasks
    (job_id, datasource_id, session_id, origin_id, type, status, priority, payload, abandonments, failures, not_before,
     last_error, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, 'PENDING', ?6, ?7, ?8, ?9, CASE ?10 WHEN 0 THEN 0 ELSE now_ms() + ?10 END, ?11, now_ms());

-- The job with the fewest running tasks comes first: round-robin across claims, without a counter. Only jobs
-- whose fingerprint key the worker has.
-- name: running_jobs
SELECT j.id
FROM jobs j
WHERE j.node_group = ?1 AND j.status = 'RUNNING'
  AND j.fingerprint_key = (SELECT w.fingerprint_key FROM worker_sessions w WHERE w.id = ?2)
ORDER BY (SELECT count(*) FROM tasks t WHERE t.job_id = j.id AND t.status = 'RUNNING'), j.priority DESC, j.id;

-- A data source that runs as many tasks as it may, or asks for a label that the worker has not, is passed over,
-- and holds up no other.
-- name: next_task
SELECT t.id
FROM tasks t
WHERE t.job_id = ?1 AND t.type = ?2 AND t.status = 'PENDING' AND t.not_before <= now_ms()
  AND t.datasource_id NOT IN (
      SELECT d.id
      FROM datasources d
      WHERE d.concurrency_limit IS NOT NULL
        AND d.concurrency_limit <= (
            SELECT count(*) FROM tasks r WHERE r.status = 'RUNNING' AND r.datasource_id = d.id)
      UNION ALL
      SELECT d.id
      FROM datasources d
      WHERE d.worker_label IS NOT NULL
        AND d.worker_label NOT IN (
            SELECT l.value FROM worker_sessions w, json_each(w.labels) l WHERE w.id = ?3))
ORDER BY t.priority DESC, t.id
LIMIT 1;

-- A claim needs a live worker session: one whose lease expired gets nothing.
-- name: claim_task
UPDATE tasks
SET status = 'RUNNING', claim_id = abs(random() % 9007199254740991), worker_id = ?2, progress_at = now_ms()
WHERE id = ?1
  AND status = 'PENDING'
  AND EXISTS (SELECT 1 FROM worker_sessions WHERE id = ?2 AND lease_expiry > now_ms())
RETURNING id, claim_id, job_id, session_id, type, payload, failures, datasource_id;

-- The job's own copy says how to read the source: a later job may have changed the source's row.
-- name: packet_context
SELECT d.name, j.configuration, b.id, b.job_id, b.started_at,
       (SELECT t.origin_id IS NOT NULL FROM tasks t WHERE t.id = ?4)
FROM datasources d, jobs j
LEFT JOIN enumeration_sessions s ON s.id = ?3
LEFT JOIN enumeration_sessions b ON b.id = s.base_session_id
WHERE d.id = ?1 AND j.id = ?2;

-- name: packet_records
SELECT u.key, r.name, r.size, r.mtime_ns, r.ctime_ns, r.inode, r.tag, r.kind, r.metadata
FROM task_units u
JOIN task_output_records r ON r.unit_id = u.id
WHERE u.id = ?1 AND u.status = 'COMMITTED' AND r.sequence >= ?2 AND r.sequence < ?3 AND r.kind IN (?4, ?5, ?6, ?7)
ORDER BY r.sequence;

-- The same with their places.
-- name: packet_sequences
SELECT u.key, r.name, u.id, r.sequence
FROM task_units u
JOIN task_output_records r ON r.unit_id = u.id
WHERE u.id = ?1 AND u.status = 'COMMITTED' AND r.sequence >= ?2 AND r.sequence < ?3 AND r.kind IN (?4, ?5, ?6, ?7)
ORDER BY r.sequence;

-- name: complete_task
UPDATE tasks
SET status = 'COMPLETED', finished_at = now_ms(), objects = ?2, nested = ?3, bytes = ?4
WHERE id = ?1;

-- name: renew_progress
UPDATE tasks SET progress_at = now_ms() WHERE id = ?1 AND status = 'RUNNING' AND claim_id = ?2;

-- name: task_done_under_claim
SELECT EXISTS (SELECT 1 FROM tasks WHERE id = ?1 AND claim_id = ?2 AND status = 'COMPLETED');

-- Tasks whose worker's lease expired, or that made no progress past the deadline although it lives.
-- name: abandoned_tasks
SELECT t.id, t.job_id, t.datasource_id, t.session_id, t.origin_id, t.type, t.priority, t.payload, t.abandonments,
       t.claim_id, t.worker_id
FROM tasks t INDEXED BY tasks_running
JOIN jobs j ON j.id = t.job_id
LEFT JOIN worker_sessions w ON w.id = t.worker_id
WHERE t.status = 'RUNNING'
  AND j.node_group = ?1
  AND (w.id IS NULL OR w.lease_expiry <= now_ms() OR t.progress_at <= now_ms() - ?2)
ORDER BY t.id;

-- name: abandon_task
UPDATE tasks
SET status = 'PENDING', worker_id = NULL, claim_id = NULL, abandonments = abandonments + 1,
    not_before = now_ms() + ?3
WHERE id = ?1 AND status = 'RUNNING' AND claim_id = ?2;

-- name: cancel_tasks
UPDATE tasks SET status = 'CANCELLED', finished_at = now_ms()
WHERE job_id = ?1 AND status IN ('PENDING', 'RUNNING');

-- name: pending_count
SELECT count(*) FROM (
    SELECT 1 FROM tasks INDEXED BY tasks_pending WHERE job_id = ?1 AND type = ?2 AND status = 'PENDING' LIMIT ?3);
