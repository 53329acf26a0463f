-- Sessions, batches, units and their records.

-- The base of each is the latest session like it that came to an end.
-- name: insert_sessions
INSERT INTO enumeration_sessions
    (job_id, datasource_id, source_type, status, configuration, started_at, last_update, scan_key, base_session_id)
SELECT $1, d.id, s.kind, 'INITIALIZED', s.configuration, now_ms(), now_ms(), s.scan_key,
       CASE WHEN $6 THEN (
           SELECT b.id
           FROM enumeration_sessions b
           JOIN jobs j ON j.id = b.job_id
           JOIN master_jobs m ON m.id = j.master_job_id
           WHERE b.datasource_id = d.id AND b.scan_key = s.scan_key
             AND b.status IN ('COMPLETED', 'PARTIALLY_COMPLETED')
             AND j.status IN ('COMPLETED', 'PARTIALLY_COMPLETED')
             AND m.pruned_at IS NULL
           ORDER BY b.id DESC
           LIMIT 1) END
FROM unnest($2::text[], $3::text[], $4::text[], $5::bytea[]) WITH ORDINALITY
    AS s (name, kind, configuration, scan_key, n)
-- LEFT: a source that this login may not see is an error, and not left out of the job.
LEFT JOIN datasources d ON d.name = s.name
ORDER BY s.n
ON CONFLICT (job_id, datasource_id) DO NOTHING
RETURNING id, datasource_id, (SELECT d.name FROM datasources d WHERE d.id = datasource_id), source_type;

-- Once in a session's life, or when it was thought to have stalled, or waited; else it writes nothing.
-- name: touch_session
UPDATE enumeration_sessions
SET status = CASE WHEN status IN ('INITIALIZED', 'STALLED') THEN 'IN_PROGRESS' ELSE status END,
    waiting_until = NULL,
    last_update = now_ms()
WHERE id = $1 AND (status IN ('INITIALIZED', 'STALLED') OR waiting_until IS NOT NULL);

-- With its event.
-- name: note_waiting
WITH waiting AS (
    UPDATE enumeration_sessions SET waiting_until = greatest(coalesce(waiting_until, 0), now_ms() + $2)
    WHERE id = $1
    RETURNING id, job_id, waiting_until)
INSERT INTO events (job_id, kind, payload, created_at)
SELECT job_id, 'SessionWaiting', json_build_object('session', id, 'until_ms', waiting_until, 'why', $3::text)::text,
       now_ms()
FROM waiting;

-- A session ends when none of its enumeration is open: no task, no staging unit, no container to fan out.
-- name: ended_sessions
SELECT s.id, s.status,
       EXISTS (SELECT 1 FROM task_units u WHERE u.job_id = s.job_id AND u.session_id = s.id AND u.status = 'COMMITTED'),
       EXISTS (SELECT 1 FROM task_units u WHERE u.job_id = s.job_id AND u.session_id = s.id AND u.status = 'FAILED')
           OR EXISTS (
               SELECT 1 FROM tasks t
               WHERE t.job_id = s.job_id AND t.session_id = s.id AND t.type = 'DISCOVERY_ENUMERATE'
                 AND t.status = 'FAILED'),
       coalesce(
           (SELECT u.detail FROM task_units u
            WHERE u.job_id = s.job_id AND u.session_id = s.id AND u.status = 'FAILED' ORDER BY u.id LIMIT 1),
           (SELECT t.last_error FROM tasks t
            WHERE t.job_id = s.job_id AND t.session_id = s.id AND t.type = 'DISCOVERY_ENUMERATE'
              AND t.status = 'FAILED'
            ORDER BY t.id LIMIT 1))
FROM enumeration_sessions s
WHERE s.job_id = $1
  AND s.status IN ('INITIALIZED', 'IN_PROGRESS', 'STALLED')
  AND NOT EXISTS (
      SELECT 1 FROM tasks t
      WHERE t.job_id = s.job_id AND t.status = 'PENDING' AND t.datasource_id = s.datasource_id
        AND t.type = 'DISCOVERY_ENUMERATE')
  AND NOT EXISTS (
      SELECT 1 FROM tasks t
      WHERE t.job_id = s.job_id AND t.status = 'RUNNING' AND t.datasource_id = s.datasource_id
        AND t.type = 'DISCOVERY_ENUMERATE')
  AND NOT EXISTS (
      SELECT 1 FROM task_units u
      WHERE u.job_id = s.job_id AND u.session_id = s.id AND u.status = 'COMMITTED' AND u.fanned_out & 1 = 0
        AND u.fanned_out < 3)
  AND NOT EXISTS (
      SELECT 1 FROM task_units u WHERE u.job_id = s.job_id AND u.session_id = s.id AND u.status = 'STAGING')
ORDER BY s.id;

-- Nothing of a cancelled job goes on.
-- name: cancel_sessions
WITH ended AS (
    UPDATE enumeration_sessions
    SET status = 'FAILED', failure_reason = 'cancelled', completed_at = now_ms(), last_update = now_ms()
    WHERE job_id = $1 AND status IN ('INITIALIZED', 'IN_PROGRESS', 'STALLED')
    RETURNING id, job_id, status)
INSERT INTO events (job_id, kind, payload, created_at)
SELECT job_id, 'SessionEnded', json_build_object('session', id, 'status', status)::text, now_ms() FROM ended ORDER BY id;

-- Its last batch tells when a session last made progress; the silence of one that waited begins when its wait ended.
-- name: stall_sessions
WITH silent AS (
    SELECT s.id
    FROM enumeration_sessions s
    JOIN jobs j ON j.id = s.job_id
    WHERE j.node_group = $1 AND j.status = 'RUNNING'
      AND s.status = 'IN_PROGRESS'
      AND s.last_update <= now_ms() - $2
      AND coalesce(s.waiting_until, 0) <= now_ms() - $2
      AND coalesce((
          SELECT b.completed_at FROM enumeration_batches b WHERE b.session_id = s.id ORDER BY b.id DESC LIMIT 1), 0)
          <= now_ms() - $2
      AND (
          EXISTS (
              SELECT 1 FROM tasks t
              WHERE t.job_id = s.job_id AND t.datasource_id = s.datasource_id AND t.type = 'DISCOVERY_ENUMERATE'
                AND t.status = 'PENDING')
          OR EXISTS (
              SELECT 1 FROM tasks t
              WHERE t.job_id = s.job_id AND t.datasource_id = s.datasource_id AND t.type = 'DISCOVERY_ENUMERATE'
                AND t.status = 'RUNNING'))
    ORDER BY s.id
    FOR NO KEY UPDATE OF s SKIP LOCKED)
UPDATE enumeration_sessions e
SET status = 'STALLED', last_update = now_ms()
FROM silent
WHERE e.id = silent.id;

-- Of each container its last page.
-- name: units_of_task
SELECT DISTINCT ON (u.key) u.id, u.key, u.page, u.status, u.records, u.resume_point
FROM task_units u
WHERE u.task_id = (SELECT coalesce(origin_id, id) FROM tasks WHERE id = $1)
ORDER BY u.key, u.page DESC;

-- The same of these containers.
-- name: last_pages
SELECT u.id, u.key, u.page, u.status, u.records, u.resume_point
FROM tasks t
CROSS JOIN LATERAL (
    SELECT last_unit(coalesce(t.origin_id, t.id), k.k) AS id
    FROM (SELECT DISTINCT k FROM unnest($2::bytea[]) k) k
    OFFSET 0) l
JOIN task_units u ON u.id = ANY (ARRAY[l.id])
WHERE t.id = $1;

-- Takes the unit's place from the task itself, so that it can be sent together with the fence. In the order
-- of keys: halves of one task share their origin's units. Pages whose first one does not follow a page that goes
-- on are not inserted, and whoever sent them finds out why.
-- name: insert_units
INSERT INTO task_units
    (task_id, job_id, session_id, key, page, status, reason, detail, records, containers, objects, skipped, unchanged,
     bytes, resume_point, fanned_out)
SELECT coalesce(t.origin_id, t.id), t.job_id, t.session_id, u.key, u.page, u.status, u.reason, u.detail, u.records,
       u.containers, u.objects, u.skipped, u.unchanged, u.bytes, u.resume_point, u.fanned_out
FROM tasks t
CROSS JOIN unnest($2::bytea[], $3::bigint[], $4::bigint[], $5::text[], $6::text[], $7::text[], $8::bigint[],
                  $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], $13::bigint[], $14::bytea[],
                  $15::bigint[]) WITH ORDINALITY
    AS u (key, page, first_page, status, reason, detail, records, containers, objects, skipped, unchanged, bytes,
          resume_point, fanned_out, n)
WHERE t.id = $1
  AND (u.first_page = 0
       OR EXISTS (
           SELECT 1
           FROM (SELECT unit_at(coalesce(t.origin_id, t.id), u.key, u.first_page - 1) AS id OFFSET 0) b
           JOIN task_units p ON p.id = ANY (ARRAY[b.id])
           WHERE p.status || '' = 'COMMITTED' AND p.resume_point IS NOT NULL))
ORDER BY u.key, u.n
ON CONFLICT (task_id, sha256(key), page) DO NOTHING
RETURNING id, key, page;

-- name: staging_units
SELECT u.id, u.key, u.records
FROM tasks t
CROSS JOIN LATERAL (
    SELECT unit_at(coalesce(t.origin_id, t.id), k.k, 0) AS id
    FROM (SELECT DISTINCT k FROM unnest($2::bytea[]) k) k
    OFFSET 0) s
JOIN task_units u ON u.id = ANY (ARRAY[s.id])
WHERE t.id = $1
  AND u.status || '' = 'STAGING'
ORDER BY u.key
FOR UPDATE OF u;

-- Whatever a task listed in part; of a half, its sibling's too.
-- name: open_units
SELECT u.key
FROM task_units u
WHERE u.task_id = (SELECT coalesce(t.origin_id, t.id) FROM tasks t WHERE t.id = $1)
  AND (u.status = 'STAGING'
       OR (u.status = 'COMMITTED' AND u.resume_point IS NOT NULL
           AND unit_at(u.task_id, u.key, u.page + 1) IS NULL));

-- name: fail_staging_unit
UPDATE task_units SET status = 'FAILED', reason = $2, detail = $3, fanned_out = 3
WHERE id = $1 AND status = 'STAGING';

-- No conflict to look for: the unit's row is locked, and its count of records tells which come next.
-- name: insert_records
SELECT insert_records($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);

-- name: add_unit_skips
INSERT INTO task_unit_skips (unit_id, reason, count)
SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[])
ON CONFLICT (unit_id, reason) DO UPDATE SET count = task_unit_skips.count + excluded.count;

-- name: listed_names
SELECT r.name
FROM tasks t
CROSS JOIN LATERAL (
    SELECT unit_at(coalesce(t.origin_id, t.id), $2, p) AS id FROM generate_series($3::bigint, $4::bigint - 1) p OFFSET 0) u
JOIN task_output_records r ON r.unit_id = ANY (ARRAY[u.id])
WHERE t.id = $1;

-- Only a staging unit of this task: a committed one stays as it is.
-- name: clear_unit
WITH cleared AS (
    UPDATE task_units
    SET records = 0, containers = 0, objects = 0, skipped = 0, unchanged = 0, bytes = 0
    WHERE id = $1 AND task_id = $2 AND status = 'STAGING'
    RETURNING id),
skips AS (DELETE FROM task_unit_skips s USING cleared WHERE s.unit_id = cleared.id)
DELETE FROM task_output_records r USING cleared WHERE r.unit_id = cleared.id;

-- What the pages before listed stays, and is scanned.
-- name: fail_open_pages_of_task
INSERT INTO task_units (task_id, job_id, session_id, key, page, status, reason, detail, fanned_out)
SELECT u.task_id, u.job_id, u.session_id, u.key, u.page + 1, 'FAILED', 'read_error', $2, 3
FROM task_units u
WHERE u.task_id = $1 AND u.status || '' = 'COMMITTED' AND u.resume_point IS NOT NULL
  AND unit_at(u.task_id, u.key, u.page + 1) IS NULL;

-- name: units_to_fan_out
SELECT u.id, u.session_id, u.records, u.containers, u.objects, u.bytes, u.fanned_out, s.datasource_id
FROM task_units u
JOIN enumeration_sessions s ON s.id = u.session_id
WHERE u.job_id = $1 AND u.status = 'COMMITTED' AND u.fanned_out < 3
ORDER BY u.id
LIMIT $2;

-- `= ANY`, as in the statements about tasks, so that no plan walks through all units.
-- name: mark_fanned_out
UPDATE task_units u
SET fanned_out = u.fanned_out | m.bits
FROM (SELECT id, bit_or(bit) AS bits FROM unnest($1::bigint[], $2::bigint[]) AS c (id, bit) GROUP BY id) m
WHERE u.id = ANY (ARRAY[m.id]);

-- name: sweep_failed_units
DELETE FROM task_output_records
WHERE (unit_id, sequence) IN (
    SELECT r.unit_id, r.sequence
    FROM task_units u
    JOIN task_output_records r ON r.unit_id = u.id
    WHERE u.status = 'FAILED'
    LIMIT $1
    FOR UPDATE OF r SKIP LOCKED);
