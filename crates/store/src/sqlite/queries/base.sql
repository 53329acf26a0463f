-- What an earlier session says of a data source. The index is named where the planner, which knows no sizes, would go
-- through all that a job says.

-- Objects of a container: files (0), unchanged (3) and carried ones (4), behind a record of a unit.
-- name: prior_records
SELECT u.page, u.id, r.sequence, r.kind, r.name, r.size, r.mtime_ns, r.ctime_ns, r.inode, r.tag
FROM task_units u
CROSS JOIN task_output_records r ON r.unit_id = u.id
WHERE u.job_id = ?1 AND u.status = 'COMMITTED' AND u.session_id = ?2 AND u.key = ?3
  AND u.page >= ?4 AND NOT (u.page = ?4 AND u.id < ?5)
  AND r.sequence >= CASE WHEN u.id = ?5 THEN ?6 ELSE 0 END
  AND r.kind IN (0, 3, 4)
ORDER BY u.page, u.id, r.sequence
LIMIT ?7;

-- The first object from a key on that anything is said of.
-- name: next_outcome
SELECT object_key
FROM object_scans INDEXED BY object_scans_by_object
WHERE job_id = ?1 AND object_key >= ?2
ORDER BY object_key
LIMIT 1;

-- Whether anything is said of an object, and whether something of it was not read to its end.
-- name: prior_outcome
SELECT count(*) > 0, coalesce(max(o.status IN ('partial', 'failed')), 0)
FROM object_scans o INDEXED BY object_scans_by_object
JOIN tasks t ON t.id = o.task_id
WHERE o.job_id = ?1 AND o.object_key = ?2 AND t.session_id = ?3;

-- name: prior_objects
SELECT o.task_id, o.nested_path, o.status, o.reason, o.detail, o.overflow
FROM object_scans o INDEXED BY object_scans_by_object
JOIN tasks t ON t.id = o.task_id
WHERE o.job_id = ?1 AND o.object_key = ?2 AND t.session_id = ?3
ORDER BY o.task_id, o.sequence;

-- name: prior_findings
SELECT o.task_id, f.id, f.object_key, f.nested_path, f.rule_id, f.category, o.score, o.reasons, f.fingerprint,
       f.preview, o.span_start, o.span_end, o.line, o.column, o.decoding, o.content_version, o.row_key,
       o.suppressed_by, o.suppressed
FROM finding_occurrences o
JOIN findings f ON f.id = o.finding_id
WHERE o.job_id = ?1 AND o.task_id = ?2
ORDER BY o.sequence;

-- name: prior_tables
SELECT object_key, nested_path, part_key, shape, rows, is_sample, sketches
FROM table_observations
WHERE job_id = ?1 AND task_id = ?2
ORDER BY sequence;
