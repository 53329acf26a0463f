-- Findings, outcomes of objects, events, reports.

-- name: stage_result
INSERT INTO staged_results (task_id, claim_id, sequence, body, attachment) VALUES (?1, ?2, ?3, ?4, ?5)
ON CONFLICT (task_id, claim_id, sequence) DO NOTHING;

-- name: staged_results
SELECT sequence, body, attachment FROM staged_results WHERE task_id = ?1 AND claim_id = ?2 ORDER BY sequence;

-- name: count_staged_results
SELECT count(*) FROM staged_results WHERE task_id = ?1 AND claim_id = ?2;

-- name: clear_staged_results
DELETE FROM staged_results WHERE task_id = ?1;

-- name: sweep_staged_results
DELETE FROM staged_results
WHERE (task_id, claim_id, sequence) IN (
    SELECT s.task_id, s.claim_id, s.sequence
    FROM staged_results s
    JOIN tasks t ON t.id = s.task_id
    WHERE t.status <> 'RUNNING' OR t.claim_id <> s.claim_id
    LIMIT ?1);

-- Of tasks that are done, and of jobs that have ended: the halves of a split task may need what is kept under it.
-- name: sweep_object_checkpoints
DELETE FROM object_checkpoints
WHERE (task_id, object_key_hash, number) IN (
    SELECT c.task_id, c.object_key_hash, c.number
    FROM object_checkpoints c
    JOIN tasks t ON t.id = c.task_id
    JOIN jobs j ON j.id = t.job_id
    WHERE t.status = 'COMPLETED' OR j.status IN ('COMPLETED', 'PARTIALLY_COMPLETED', 'FAILED', 'CANCELLED')
    LIMIT ?1);

-- name: upsert_finding
INSERT INTO findings
    (id, datasource_id, object_key, nested_path, rule_id, fingerprint, category, score, preview, status, first_seen,
     last_seen)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, 'OPEN', now_ms(), now_ms())
ON CONFLICT (id) DO UPDATE SET last_seen = excluded.last_seen, score = max(score, excluded.score);

-- name: insert_occurrence
INSERT INTO finding_occurrences
    (job_id, task_id, sequence, finding_id, score, reasons, span_start, span_end, line, column, decoding,
     content_version, row_key, suppressed_by, suppressed)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15);

-- name: insert_object_scan
INSERT INTO object_scans (job_id, task_id, sequence, object_key, nested_path, status, reason, detail, overflow)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9);

-- name: insert_table_observation
INSERT INTO table_observations
    (job_id, task_id, sequence, datasource_id, object_key, nested_path, part_key, shape, rows, is_sample, sketches)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11);

-- An object with findings or observations, unless something else is said of it or of what is inside it already: what a
-- job says of an object is found by its key. The sequence is that of the first of them, which no other object has.
-- name: insert_found_object
INSERT INTO object_scans (job_id, task_id, sequence, object_key, nested_path, status, detail, overflow)
SELECT ?1, ?2, ?3, ?4, x'', 'scanned', '', 0
WHERE NOT EXISTS (SELECT 1 FROM object_scans WHERE job_id = ?1 AND object_key = ?4 AND task_id = ?2);

-- What other tasks of the session say of an object, and whether they got anything of it.
-- name: earlier_results
SELECT o.task_id, max(o.status <> 'failed')
FROM object_scans o
JOIN tasks t ON t.id = o.task_id
WHERE o.job_id = ?1 AND o.object_key = ?2 AND o.task_id <> ?3 AND t.session_id = ?4
GROUP BY o.task_id;

-- name: object_has_failed
SELECT EXISTS (
    SELECT 1 FROM object_scans
    WHERE job_id = ?1 AND object_key = ?2 AND task_id = ?3 AND nested_path = x'' AND status = 'failed');

-- name: forget_occurrences_of_object
DELETE FROM finding_occurrences
WHERE job_id = ?1 AND task_id = ?2
  AND EXISTS (SELECT 1 FROM findings f WHERE f.id = finding_occurrences.finding_id AND f.object_key = ?3);

-- name: forget_tables_of_object
DELETE FROM table_observations WHERE job_id = ?1 AND task_id = ?2 AND part_key = ?3;

-- name: forget_scans_of_object
DELETE FROM object_scans WHERE job_id = ?1 AND task_id = ?2 AND object_key = ?3;

-- Whatever of an object stays with a task was tried as often as another task tried it.
-- name: take_over_failures
UPDATE tasks
SET failures = max(failures, (SELECT n.failures FROM tasks n WHERE n.id = ?2))
WHERE id = ?1;

-- name: add_consumer
INSERT INTO event_consumers (name, position) VALUES (?1, 0) ON CONFLICT (name) DO NOTHING;

-- name: next_events
SELECT id, job_id, kind, payload
FROM events
WHERE id > coalesce((SELECT position FROM event_consumers WHERE name = ?1), 0)
ORDER BY id
LIMIT ?2;

-- name: acknowledge
UPDATE event_consumers SET position = max(position, ?2) WHERE name = ?1;

-- name: prune_events
DELETE FROM events WHERE id <= (SELECT min(position) FROM event_consumers);

-- name: summary_tasks
SELECT coalesce(sum(CASE WHEN t.status = 'COMPLETED' THEN t.objects END), 0),
       coalesce(sum(t.nested), 0),
       coalesce(sum(t.bytes), 0),
       coalesce(sum(t.status = 'FAILED'), 0),
       coalesce(sum(t.status IN ('PENDING', 'RUNNING')), 0)
FROM jobs j
JOIN tasks t ON t.job_id = j.id
WHERE j.master_job_id = ?1;

-- name: summary_failed_units
SELECT u.reason, count(*)
FROM jobs j
JOIN task_units u ON u.job_id = j.id AND u.status = 'FAILED'
WHERE j.master_job_id = ?1
GROUP BY u.reason
ORDER BY u.reason;

-- name: occurrences
SELECT f.id, f.datasource_id, f.object_key, f.nested_path, f.rule_id, f.category, o.score, o.reasons,
       f.fingerprint, f.preview, o.span_start, o.span_end, o.line, o.column, o.decoding, o.row_key,
       g.path, g.commit_id, g.author, g.time_ms, g.is_abandoned, o.suppressed_by, o.suppressed
FROM jobs j
JOIN finding_occurrences o ON o.job_id = j.id
JOIN findings f ON f.id = o.finding_id
LEFT JOIN object_origins g ON g.datasource_id = f.datasource_id AND g.object_key = f.object_key
WHERE j.master_job_id = ?1
  AND o.score >= ?2
  AND (?3 IS NULL OR f.rule_id = ?3)
  AND (?4 IS NULL OR f.category = ?4)
  AND (?5 OR o.suppressed_by IS NULL)
ORDER BY f.datasource_id, f.object_key, f.nested_path, o.line, o.span_start, o.span_end, f.rule_id, f.fingerprint,
         o.row_key;

-- Unsupported objects come last, by format: they are many, and leave the scan complete.
-- name: problems
SELECT t.datasource_id, o.object_key, o.nested_path, o.status, o.reason, o.detail,
       CASE o.status WHEN 'unsupported' THEN o.detail ELSE '' END AS format,
       g.path, g.commit_id, g.author, g.time_ms, g.is_abandoned
FROM jobs j
JOIN object_scans o ON o.job_id = j.id
JOIN tasks t ON t.id = o.task_id
LEFT JOIN object_origins g ON g.datasource_id = t.datasource_id AND g.object_key = o.object_key
WHERE j.master_job_id = ?1 AND o.status <> 'scanned'
UNION ALL
SELECT s.datasource_id, u.key, x'', 'failed', u.reason, coalesce(u.detail, ''), '', NULL, NULL, NULL, NULL, NULL
FROM jobs j
JOIN task_units u ON u.job_id = j.id AND u.status = 'FAILED'
JOIN enumeration_sessions s ON s.id = u.session_id
WHERE j.master_job_id = ?1
ORDER BY 7, 1, 2, 3
LIMIT ?2;
