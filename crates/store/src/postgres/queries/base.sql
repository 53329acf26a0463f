-- What an earlier session says of a data source. `= ANY`, as in the statements about tasks, and OFFSET 0, which no
-- plan looks behind, so that none walks through all that a job says.

-- Objects of containers: files (0), unchanged (3) and carried ones (4), of the first behind a record of a unit. One
-- unit after the other in the order of containers and pages, until there are enough: of the others no record is looked at. Each has an object,
-- but for the first, of which all may have been read: so one more than are asked for is enough.
-- name: prior_records
WITH units AS MATERIALIZED (
    SELECT k.n, u.id, u.page
    FROM unnest($3::bytea[]) WITH ORDINALITY AS k (key, n)
    CROSS JOIN LATERAL (
        SELECT t.id, t.page
        FROM task_units t
        WHERE t.job_id = $1 AND t.status = 'COMMITTED' AND t.session_id = $2 AND sha256(t.key) = sha256(k.key)
          AND t.objects + t.unchanged > 0
        OFFSET 0) u
    WHERE NOT (k.n = 1 AND (u.page < $4 OR (u.page = $4 AND u.id < $5)))
    ORDER BY k.n, u.page, u.id
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
FROM unnest($3::bytea[]) WITH ORDINALITY AS k (key, n)
CROSS JOIN LATERAL (
    SELECT s.task_id, s.status
    FROM object_scans s
    WHERE s.job_id + 0 = $1 AND sha256(s.object_key) = sha256(k.key)
    OFFSET 0) o
JOIN tasks t ON t.id = ANY (ARRAY[o.task_id]) AND t.session_id = $2
GROUP BY k.n;

-- name: prior_objects
SELECT o.task_id, o.object_key, o.nested_path, o.status, o.reason, o.detail, o.overflow
FROM (SELECT DISTINCT k FROM unnest($3::bytea[]) k) k
CROSS JOIN LATERAL (
    SELECT * FROM object_scans s WHERE s.job_id + 0 = $1 AND sha256(s.object_key) = sha256(k.k) OFFSET 0) o
JOIN tasks t ON t.id = ANY (ARRAY[o.task_id]) AND t.session_id = $2
ORDER BY o.task_id, o.sequence;

-- name: prior_findings
SELECT o.task_id, f.id, f.object_key, f.nested_path, f.rule_id, f.category, o.score, o.reasons, f.fingerprint,
       f.preview, o.span_start, o.span_end, o.line, o.column_number, o.decoding, o.content_version,
       o.row_key, o.suppressed_by, o.suppressed
FROM finding_occurrences o
JOIN findings f ON f.id = ANY (ARRAY[o.finding_id])
WHERE o.job_id = $1 AND o.task_id = ANY ($2) AND f.object_key = ANY ($3)
ORDER BY o.task_id, o.sequence;

-- name: prior_tables
SELECT object_key, nested_path, part_key, shape, rows, is_sample, sketches, task_id
FROM table_observations
WHERE job_id = $1 AND task_id = ANY ($2) AND part_key = ANY ($3)
ORDER BY task_id, sequence;
