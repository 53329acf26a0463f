-- Findings, outcomes of objects, events, reports.

-- name: insert_event
INSERT INTO events (job_id, kind, payload, created_at) VALUES (?1, ?2, ?3, now_ms());

-- Checkpoints of an object, the first of which takes the place of all that there are.
-- name: drop_object_checkpoints
DELETE FROM object_checkpoints WHERE task_id = ?1 AND object_key_hash = ?2;

-- name: insert_object_checkpoint
INSERT INTO object_checkpoints (task_id, object_key_hash, number, body) VALUES (?1, ?2, ?3, ?4)
ON CONFLICT (task_id, object_key_hash, number) DO NOTHING;

-- name: object_checkpoints
SELECT c.body
FROM tasks t
JOIN object_checkpoints c ON c.task_id = coalesce(t.origin_id, t.id) AND c.object_key_hash = ?2
WHERE t.id = ?1
ORDER BY c.number;

-- A container that came in pages is one.
-- name: summary_units
SELECT count(*) FILTER (WHERE u.page = 0), CAST(coalesce(sum(u.objects), 0) AS bigint),
       CAST(coalesce(sum(u.bytes), 0) AS bigint), CAST(coalesce(sum(u.unchanged), 0) AS bigint)
FROM jobs j
JOIN task_units u ON u.job_id = j.id AND u.status = 'COMMITTED'
WHERE j.master_job_id = ?1;

-- name: summary_skips
SELECT s.reason, CAST(sum(s.count) AS bigint)
FROM jobs j
JOIN task_units u ON u.job_id = j.id AND u.status = 'COMMITTED' AND u.skipped > 0
JOIN task_unit_skips s ON s.unit_id = u.id
WHERE j.master_job_id = ?1
GROUP BY s.reason
ORDER BY s.reason;

-- The detail of an unsupported object is its format.
-- name: summary_object_scans
SELECT o.status, o.reason, count(*), CAST(sum(o.overflow) AS bigint),
       CASE o.status WHEN 'unsupported' THEN o.detail ELSE '' END AS format
FROM jobs j
JOIN object_scans o ON o.job_id = j.id
WHERE j.master_job_id = ?1
GROUP BY 1, 2, 5
ORDER BY 1, 2, 5;

-- How many findings each control keeps out of reports.
-- name: summary_suppressed
SELECT o.suppressed_by, CAST(sum(o.suppressed) AS bigint)
FROM jobs j
JOIN finding_occurrences o ON o.job_id = j.id AND o.suppressed_by IS NOT NULL
WHERE j.master_job_id = ?1
GROUP BY o.suppressed_by
ORDER BY o.suppressed_by;

-- Every child job has the same.
-- name: job_configuration
SELECT configuration FROM jobs WHERE master_job_id = ?1 ORDER BY id LIMIT 1;

-- With the settings the job read them with; the sources themselves may have newer ones.
-- name: job_datasources
SELECT d.id, d.name, s.source_type, s.configuration
FROM jobs j
JOIN enumeration_sessions s ON s.job_id = j.id
JOIN datasources d ON d.id = s.datasource_id
WHERE j.master_job_id = ?1
ORDER BY d.id;
