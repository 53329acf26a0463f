-- Where objects with findings came from.

-- What is known of the source is not asked again, unless it may have changed: what was only staged may be committed by
-- now, and what was abandoned may be on a branch again.
-- name: insert_untraced
INSERT INTO untraced_objects (session_id, object_key)
SELECT ?1, ?3
WHERE NOT EXISTS (
    SELECT 1 FROM object_origins
    WHERE datasource_id = ?2 AND object_key = ?3 AND commit_id <> '' AND NOT is_abandoned)
ON CONFLICT DO NOTHING;

-- Sessions with objects to trace of which nothing else is left to do, unless the task that does so (?2) failed for
-- good.
-- name: sessions_to_trace
SELECT s.id, s.datasource_id
FROM enumeration_sessions s
WHERE s.job_id = ?1
  AND EXISTS (SELECT 1 FROM untraced_objects o WHERE o.session_id = s.id)
  AND NOT EXISTS (
      SELECT 1 FROM tasks t
      WHERE t.job_id = s.job_id AND t.status IN ('PENDING', 'RUNNING') AND t.session_id = s.id)
  AND NOT EXISTS (
      SELECT 1 FROM tasks t
      WHERE t.job_id = s.job_id AND t.status = 'FAILED' AND t.type = ?2 AND t.session_id = s.id)
  AND NOT EXISTS (
      SELECT 1 FROM task_units u INDEXED BY task_units_to_fan_out
      WHERE u.job_id = s.job_id AND u.status = 'COMMITTED' AND u.fanned_out < 3 AND u.session_id = s.id)
  AND NOT EXISTS (
      SELECT 1 FROM task_units u WHERE u.job_id = s.job_id AND u.status = 'STAGING' AND u.session_id = s.id)
ORDER BY s.id;

-- name: untraced
SELECT object_key FROM untraced_objects WHERE session_id = ?1 ORDER BY object_key LIMIT ?2;

-- name: put_origin
INSERT INTO object_origins (datasource_id, object_key, path, commit_id, author, time_ms, is_abandoned)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (datasource_id, object_key) DO UPDATE
SET path = excluded.path, commit_id = excluded.commit_id, author = excluded.author, time_ms = excluded.time_ms,
    is_abandoned = excluded.is_abandoned;

-- name: delete_untraced
DELETE FROM untraced_objects WHERE session_id = ?1 AND object_key = ?2;
