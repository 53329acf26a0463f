-- Sessions, batches, checkpoints, units and their records.

-- name: datasource_id
SELECT id FROM datasources WHERE name = ?1;

-- Its base is the latest session like it that came to an end.
-- name: insert_session
INSERT INTO enumeration_sessions
    (job_id, datasource_id, source_type, status, configuration, started_at, last_update, scan_key, base_session_id)
SELECT ?1, ?2, ?3, 'INITIALIZED', ?4, now_ms(), now_ms(), ?5,
       CASE WHEN ?6 THEN (
           SELECT b.id
           FROM enumeration_sessions b
           JOIN jobs j ON j.id = b.job_id
           JOIN master_jobs m ON m.id = j.master_job_id
           WHERE b.datasource_id = ?2 AND b.scan_key = ?5
             AND b.status IN ('COMPLETED', 'PARTIALLY_COMPLETED')
             AND j.status IN ('COMPLETED', 'PARTIALLY_COMPLETED')
             AND m.pruned_at IS NULL
           ORDER BY b.id DESC
           LIMIT 1) END
WHERE true
ON CONFLICT (job_id, datasource_id) DO NOTHING
RETURNING id;

-- name: touch_session
UPDATE enumeration_sessions
SET status = CASE status WHEN 'INITIALIZED' THEN 'IN_PROGRESS' WHEN 'STALLED' THEN 'IN_PROGRESS' ELSE status END,
    last_checkpoint = ?2,
    waiting_until = NULL,
    last_update = now_ms()
WHERE id = ?1;

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
WHERE s.job_id = ?1
  AND s.status IN ('INITIALIZED', 'IN_PROGRESS', 'STALLED')
  AND NOT EXISTS (
      SELECT 1 FROM tasks t
      WHERE t.job_id = s.job_id AND t.status IN ('PENDING', 'RUNNING') AND t.session_id = s.id
        AND t.type = 'DISCOVERY_ENUMERATE')
  AND NOT EXISTS (
      SELECT 1 FROM task_units u INDEXED BY task_units_to_fan_out
      WHERE u.job_id = s.job_id AND u.session_id = s.id AND u.status = 'COMMITTED' AND u.fanned_out & 1 = 0
        AND u.fanned_out < 3)
  AND NOT EXISTS (
      SELECT 1 FROM task_units u WHERE u.job_id = s.job_id AND u.session_id = s.id AND u.status = 'STAGING');

-- Nothing of a cancelled job goes on.
-- name: cancel_sessions
UPDATE enumeration_sessions
SET status = 'FAILED', failure_reason = 'cancelled', completed_at = now_ms(), last_update = now_ms()
WHERE job_id = ?1 AND status IN ('INITIALIZED', 'IN_PROGRESS', 'STALLED')
RETURNING id, status;

-- name: note_waiting
UPDATE enumeration_sessions SET waiting_until = max(coalesce(waiting_until, 0), now_ms() + ?2)
WHERE id = ?1
RETURNING waiting_until;

-- The silence of one that waited begins when its wait ended.
-- name: stall_sessions
UPDATE enumeration_sessions
SET status = 'STALLED', last_update = now_ms()
WHERE status = 'IN_PROGRESS'
  AND last_update <= now_ms() - ?2
  AND coalesce(waiting_until, 0) <= now_ms() - ?2
  AND job_id IN (SELECT id FROM jobs WHERE node_group = ?1 AND status = 'RUNNING')
  AND EXISTS (
      SELECT 1 FROM tasks t
      WHERE t.job_id = enumeration_sessions.job_id AND t.session_id = enumeration_sessions.id
        AND t.type = 'DISCOVERY_ENUMERATE' AND t.status IN ('PENDING', 'RUNNING'));

-- Of each container its last page.
-- name: units_of_task
SELECT u.id, u.key, u.page, u.status, u.records, CAST(u.resume_point AS blob)
FROM task_units u
WHERE u.task_id = (SELECT coalesce(origin_id, id) FROM tasks WHERE id = ?1)
  AND NOT EXISTS (SELECT 1 FROM task_units n WHERE n.task_id = u.task_id AND n.key = u.key AND n.page = u.page + 1)
ORDER BY u.key;

-- name: last_page
SELECT id, key, page, status, records, CAST(resume_point AS blob)
FROM task_units
WHERE task_id = ?1 AND key = ?2
ORDER BY page DESC
LIMIT 1;

-- name: insert_unit
INSERT INTO task_units
    (task_id, job_id, session_id, key, page, status, reason, detail, records, containers, objects, skipped, unchanged,
     bytes, resume_point, fanned_out)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
ON CONFLICT (task_id, key, page) DO NOTHING;

-- name: staging_unit
SELECT id, records FROM task_units WHERE task_id = ?1 AND key = ?2 AND status = 'STAGING';

-- Whatever a task listed in part; of a half, its sibling's too.
-- name: open_units
SELECT u.key
FROM task_units u
WHERE u.task_id = ?1
  AND (u.status = 'STAGING'
       OR (u.status = 'COMMITTED' AND u.resume_point IS NOT NULL
           AND NOT EXISTS (
               SELECT 1 FROM task_units n
               WHERE n.task_id = u.task_id AND n.key = u.key AND n.page = u.page + 1)));

-- name: fail_staging_unit
UPDATE task_units SET status = 'FAILED', reason = ?3, detail = ?4, fanned_out = 3
WHERE task_id = ?1 AND key = ?2 AND status = 'STAGING';

-- name: insert_record
INSERT INTO task_output_records
    (unit_id, sequence, kind, name, object_key_hash, size, mtime_ns, ctime_ns, inode, tag, reason, metadata)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
ON CONFLICT (unit_id, sequence) DO NOTHING;

-- Most records have no more than this; several of them go in at once, see `records.rs`. They are those of a new unit,
-- so there is none in their way. If one were, its verb would fail and be rolled back as a whole: so no copy of what
-- the statement changes needs to be kept, to roll back to when it fails half-way.
-- name: insert_plain_record
INSERT OR FAIL INTO task_output_records
    (unit_id, sequence, kind, name, object_key_hash, size, mtime_ns, ctime_ns, inode)
VALUES (?, ?, ?, ?, x'', ?, ?, ?, ?);

-- name: add_unit_skips
INSERT INTO task_unit_skips (unit_id, reason, count) VALUES (?1, ?2, ?3)
ON CONFLICT (unit_id, reason) DO UPDATE SET count = count + excluded.count;

-- name: listed_names
SELECT r.name
FROM task_units u
JOIN task_output_records r ON r.unit_id = u.id
WHERE u.task_id = (SELECT coalesce(origin_id, id) FROM tasks WHERE id = ?1)
  AND u.key = ?2 AND u.page >= ?3 AND u.page < ?4;

-- name: clear_unit_records
DELETE FROM task_output_records WHERE unit_id = ?1;

-- name: clear_unit_skips
DELETE FROM task_unit_skips WHERE unit_id = ?1;

-- name: clear_unit_totals
UPDATE task_units
SET records = 0, containers = 0, objects = 0, skipped = 0, unchanged = 0, bytes = 0
WHERE id = ?1 AND task_id = ?2 AND status = 'STAGING';

-- What the pages before listed stays, and is scanned.
-- name: fail_open_pages_of_task
INSERT INTO task_units (task_id, job_id, session_id, key, page, status, reason, detail, fanned_out)
SELECT u.task_id, u.job_id, u.session_id, u.key, u.page + 1, 'FAILED', 'read_error', ?2, 3
FROM task_units u
WHERE u.task_id = ?1 AND u.status = 'COMMITTED' AND u.resume_point IS NOT NULL
  AND NOT EXISTS (SELECT 1 FROM task_units n WHERE n.task_id = u.task_id AND n.key = u.key AND n.page = u.page + 1);

-- name: units_to_fan_out
SELECT u.id, u.session_id, u.records, u.containers, u.objects, u.bytes, u.fanned_out, s.datasource_id
FROM task_units u INDEXED BY task_units_to_fan_out
CROSS JOIN enumeration_sessions s ON s.id = u.session_id
WHERE u.job_id = ?1 AND u.status = 'COMMITTED' AND u.fanned_out < 3
ORDER BY u.id
LIMIT ?2;

-- name: mark_fanned_out
UPDATE task_units SET fanned_out = fanned_out | ?2 WHERE id = ?1;

-- name: sweep_failed_units
DELETE FROM task_output_records
WHERE (unit_id, sequence) IN (
    SELECT r.unit_id, r.sequence
    FROM task_units u
    JOIN task_output_records r ON r.unit_id = u.id
    WHERE u.status = 'FAILED' AND u.job_id IN (SELECT id FROM jobs WHERE status NOT IN ('QUEUED'))
    LIMIT ?1);
