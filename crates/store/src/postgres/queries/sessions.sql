-- Sessions, batches and checkpoints, as people look at them.

-- The page first, and then what only its sessions' batches tell.
-- name: sessions
SELECT s.id, s.job_id, s.master_job_id, s.node_group, s.name, s.source_type, s.configuration, s.status,
       s.failure_reason, s.waiting_until, s.started_at, s.completed_at,
       greatest(s.last_update, c.completed_at), c.id, 'session:' || s.id, c.checkpoint, c.completed_at,
       b.total, b.failed, b.found, b.processed,
       (s.status NOT IN ('INITIALIZED', 'IN_PROGRESS', 'STALLED')
           AND NOT EXISTS (
               SELECT 1 FROM task_units u
               WHERE u.job_id = s.job_id AND u.status = 'COMMITTED' AND u.fanned_out < 3 AND u.session_id = s.id))
FROM (
    SELECT e.*, j.master_job_id, j.node_group, d.name
    FROM enumeration_sessions e
    JOIN jobs j ON j.id = e.job_id
    JOIN master_jobs m ON m.id = j.master_job_id AND m.pruned_at IS NULL
    JOIN datasources d ON d.id = e.datasource_id
    WHERE e.id > $1
      AND ($2::bytea IS NULL OR j.master_job_id = $2)
      AND ($3::text IS NULL OR e.status = $3)
      AND (NOT $4 OR e.status IN ('INITIALIZED', 'IN_PROGRESS', 'STALLED'))
    ORDER BY e.id
    LIMIT $5) s
LEFT JOIN LATERAL (
    SELECT l.id, l.checkpoint, l.completed_at
    FROM enumeration_batches l
    WHERE l.session_id = s.id AND l.checkpoint IS NOT NULL
    ORDER BY l.id DESC
    LIMIT 1) c ON true
CROSS JOIN LATERAL (
    SELECT count(*) AS total,
           count(*) FILTER (WHERE a.status = 'FAILED') AS failed,
           coalesce(sum(a.expected_items), 0)::bigint AS found,
           coalesce(sum(a.items_processed), 0)::bigint AS processed
    FROM enumeration_batches a
    WHERE a.session_id = s.id) b
ORDER BY s.id;

-- One that was saved, or that of a session's last batch.
-- name: checkpoint
SELECT id, target, data, updated_at FROM checkpoints WHERE id = $1
UNION ALL
SELECT b.id, 'session:' || b.session_id, b.checkpoint, b.completed_at
FROM enumeration_batches b
WHERE b.id = $1 AND b.checkpoint IS NOT NULL
  AND NOT EXISTS (
      SELECT 1 FROM enumeration_batches n
      WHERE n.session_id = b.session_id AND n.id > b.id AND n.checkpoint IS NOT NULL);

-- name: checkpoint_of_session
SELECT b.id, 'session:' || b.session_id, b.checkpoint, b.completed_at
FROM enumeration_batches b
WHERE b.session_id = $1 AND b.checkpoint IS NOT NULL
ORDER BY b.id DESC
LIMIT 1;
