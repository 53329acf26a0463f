-- What an earlier session says of a data source. `= ANY`, as in the statements about tasks, and OFFSET 0, which no
-- plan looks behind, so that none walks through all that a job says.

-- Objects of containers: files (0), unchanged (3) and carried ones (4), of the first behind a record of a unit. One
-- unit after the other in the order of containers and pages, until there are enough: of the others no record is looked at. Each has an object,
-- but for the first, of which all may have been read: so one more than are asked for is enough.
-- name: prior_records
WITH units AS MATERIALIZED (
    SELECT u.n, u.unit_id AS id, u.unit_page AS page
    FROM units_of_session($1, $2, $3::bytea[]) u
    WHERE NOT (u.n = 1 AND (u.unit_page < $4 OR (u.unit_page = $4 AND u.unit_id < $5)))
    ORDER BY u.n, u.unit_page, u.unit_id
    LIMIT $7::bigint + 1)
SELECT u.page, u.id, r.sequence, r.kind, r.name, r.size, r.mtime_ns, r.ctime_ns, r.inode, r.tag, u.n
FROM units u
CROSS JOIN LATERAL (
    SELECT *
    FROM task_output_records r
    WHERE r.unit_id = ANY (ARRAY[u.id])
      AND r.sequence >= CASE WHEN u.id = $5 THEN $6::bigint ELSE 0 END
      AND r.kind IN (0, 3, 4)
    ORDER BY r.sequence
    LIMIT $7) r
LIMIT $7;

-- Objects of which anything is said, by their places, and whether something of it was not read to its end.
-- name: prior_outcomes
SELECT k.n, bool_or(o.status IN ('partial', 'failed'))
FROM scans_of_objects($1, $3::bytea[]) k
JOIN object_scans o ON o.job_id = $1 AND o.task_id = ANY (ARRAY[k.scan_task]) AND o.sequence = ANY (ARRAY[k.scan_sequence])
JOIN tasks t ON t.id = ANY (ARRAY[k.scan_task]) AND t.session_id = $2
GROUP BY k.n;

-- name: prior_objects
SELECT o.task_id, o.object_key, o.nested_path, o.status, o.reason, o.detail, o.overflow
FROM (SELECT DISTINCT scan_task, scan_sequence FROM scans_of_objects($1, $3::bytea[])) k
JOIN object_scans o ON o.job_id = $1 AND o.task_id = ANY (ARRAY[k.scan_task]) AND o.sequence = ANY (ARRAY[k.scan_sequence])
JOIN tasks t ON t.id = ANY (ARRAY[k.scan_task]) AND t.session_id = $2
ORDER BY o.task_id, o.sequence;

-- name: prior_findings
SELECT o.task_id, f.id, f.object_key, f.nested_path, f.rule_id, f.category, o.score, o.reasons, f.fingerprint,
       f.preview, o.span_start, o.span_end, o.line, o.column_number, o.decoding, o.content_version,
       o.row_key, o.suppressed_by, o.suppressed
FROM finding_occurrences o
JOIN tasks t ON t.id = ANY (ARRAY[o.task_id])
JOIN findings f ON f.id = ANY (ARRAY[o.finding_id]) AND f.datasource_id = ANY (ARRAY[t.datasource_id])
WHERE o.job_id = $1 AND o.task_id = ANY ($2) AND f.object_key = ANY ($3)
ORDER BY o.task_id, o.sequence;

-- name: prior_tables
SELECT object_key, nested_path, part_key, shape, rows, is_sample, sketches, task_id
FROM table_observations
WHERE job_id = $1 AND task_id = ANY ($2) AND part_key = ANY ($3)
ORDER BY task_id, sequence;
