-- Where objects with findings came from.

-- What is known of the source is not asked again, unless it may have changed: what was only staged may be committed by
-- now, and what was abandoned may be on a branch again. In the order of keys, as whoever completes tasks of the same
-- session at the same time.
-- name: insert_untraced
INSERT INTO untraced_objects (session_id, object_key)
SELECT DISTINCT t.session_id, o.key
FROM unnest($1::bigint[], $2::bytea[]) AS o (task_id, key)
JOIN tasks t ON t.id = ANY (ARRAY[o.task_id])
WHERE NOT has_origin(t.job_id, t.datasource_id, o.key)
ORDER BY 1, 2
ON CONFLICT (session_id, sha256(object_key)) DO NOTHING;

-- Sessions with objects to trace of which nothing else is left to do, unless the task that does so ($2) failed for
-- good. New work of a session comes from its open tasks and its units, so what has none stays so while the job's row
-- is locked.
-- OFFSET keeps the planner from turning looks into indexes, one for each session, into a join of all there is; for
-- `session_id + 0` there is only the index of what is to be fanned out, or listed in part.
-- name: sessions_to_trace
SELECT s.id, s.datasource_id
FROM enumeration_sessions s
WHERE s.job_id = $1
  AND EXISTS (SELECT 1 FROM untraced_objects o WHERE o.session_id = s.id OFFSET 0)
  AND NOT EXISTS (
      SELECT 1 FROM tasks t
      WHERE t.job_id = s.job_id AND t.datasource_id = s.datasource_id AND t.status = 'PENDING' OFFSET 0)
  AND NOT EXISTS (
      SELECT 1 FROM tasks t
      WHERE t.job_id = s.job_id AND t.datasource_id = s.datasource_id AND t.status = 'RUNNING' OFFSET 0)
  AND NOT EXISTS (
      SELECT 1 FROM tasks t
      WHERE t.job_id = s.job_id AND t.session_id = s.id AND t.type = $2 AND t.status = 'FAILED'
      OFFSET 0)
  AND NOT EXISTS (
      SELECT 1 FROM task_units u
      WHERE u.job_id = s.job_id AND u.session_id + 0 = s.id AND u.status = 'COMMITTED' AND u.fanned_out < 3
      OFFSET 0)
  AND NOT EXISTS (
      SELECT 1 FROM task_units u
      WHERE u.job_id = s.job_id AND u.session_id + 0 = s.id AND u.status = 'STAGING' OFFSET 0)
ORDER BY s.id;

-- name: untraced
SELECT o.object_key
FROM tasks t
JOIN untraced_objects o ON o.session_id = t.session_id
WHERE t.id = $1
ORDER BY sha256(o.object_key)
LIMIT $2;

-- name: put_origins
INSERT INTO object_origins (datasource_id, object_key, path, commit_id, author, time_ms, is_abandoned)
SELECT $1, o.*
FROM unnest($2::bytea[], $3::bytea[], $4::text[], $5::text[], $6::bigint[], $7::boolean[])
    AS o (key, path, commit_id, author, time_ms, is_abandoned)
ORDER BY o.key
ON CONFLICT (datasource_id, sha256(object_key)) DO UPDATE
SET path = excluded.path, commit_id = excluded.commit_id, author = excluded.author, time_ms = excluded.time_ms,
    is_abandoned = excluded.is_abandoned;

-- name: delete_untraced
SELECT delete_untraced($1, $2::bytea[]);
