-- Sessions, batches and checkpoints, as people look at them.

-- name: sessions
SELECT s.id, s.job_id, j.master_job_id, j.node_group, d.name, s.source_type, s.configuration, s.status,
       s.failure_reason, s.waiting_until, s.started_at, s.completed_at, s.last_update,
       c.id, c.target, c.data, c.updated_at,
       (s.status NOT IN ('INITIALIZED', 'IN_PROGRESS', 'STALLED')
           AND NOT EXISTS (
               SELECT 1 FROM task_units u
               WHERE u.job_id = s.job_id AND u.status = 'COMMITTED' AND u.fanned_out < 3 AND u.session_id = s.id))
FROM enumeration_sessions s
JOIN jobs j ON j.id = s.job_id
JOIN master_jobs m ON m.id = j.master_job_id AND m.pruned_at IS NULL
JOIN datasources d ON d.id = s.datasource_id
LEFT JOIN checkpoints c ON c.id = s.last_checkpoint
WHERE s.id > ?1
  AND (?2 IS NULL OR j.master_job_id = ?2)
  AND (?3 IS NULL OR s.status = ?3)
  AND (NOT ?4 OR s.status IN ('INITIALIZED', 'IN_PROGRESS', 'STALLED'))
ORDER BY s.id
LIMIT ?5;

-- name: session_metrics
SELECT count(*), coalesce(sum(status = 'FAILED'), 0), coalesce(sum(expected_items), 0), coalesce(sum(items_processed), 0)
FROM enumeration_batches
WHERE session_id = ?1;

-- name: checkpoint
SELECT id, target, data, updated_at FROM checkpoints WHERE id = ?1;
