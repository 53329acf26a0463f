-- Findings, outcomes of objects, events, reports.

-- name: stage_findings
INSERT INTO staged_findings
    (task_id, claim_id, sequence, finding_id, object_key, nested_path, rule_id, fingerprint, category, score, preview,
     reasons, span_start, span_end, line, column_number, decoding, content_version, row_key, suppressed_by, suppressed)
SELECT $1, $2, f.*
FROM unnest($3::bigint[], $4::bytea[], $5::bytea[], $6::bytea[], $7::text[], $8::bytea[], $9::text[], $10::smallint[],
            $11::text[], $12::text[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], $17::text[],
            $18::text[], $19::text[], $20::text[], $21::bigint[]) f
ON CONFLICT (task_id, claim_id, sequence) DO NOTHING;

-- name: stage_objects
INSERT INTO staged_objects
    (task_id, claim_id, sequence, object_key, nested_path, status, reason, detail, overflow)
SELECT $1, $2, o.*
FROM unnest($3::bigint[], $4::bytea[], $5::bytea[], $6::text[], $7::text[], $8::text[], $9::bigint[]) o
ON CONFLICT (task_id, claim_id, sequence) DO NOTHING;

-- name: stage_tables
INSERT INTO staged_tables
    (task_id, claim_id, sequence, object_key, nested_path, part_key, shape, rows, is_sample, sketches)
SELECT $1, $2, t.*
FROM unnest($3::bigint[], $4::bytea[], $5::bytea[], $6::bytea[], $7::text[], $8::bigint[], $9::boolean[],
            $10::bytea[]) t
ON CONFLICT (task_id, claim_id, sequence) DO NOTHING;

-- The findings of tasks that this transaction completed ($1 to $4): what they staged, which is staged no more,
-- and what came with their completion. All of them in the order of ids and in one statement, for tasks that find
-- the same things complete at the same time. An object with findings gets a row, unless something else is said of it
-- or of what is inside it already: what a job says of an object is found by its key. The sequence is that of its first
-- finding, which no other object has.
-- name: publish_findings
WITH done AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])
        AS d (task_id, claim_id, job_id, datasource_id)),
staged AS (
    DELETE FROM staged_findings s USING done d WHERE s.task_id = d.task_id AND s.claim_id = d.claim_id
    RETURNING d.job_id, d.datasource_id, s.task_id, s.sequence, s.finding_id, s.object_key, s.nested_path, s.rule_id,
              s.fingerprint, s.category, s.score, s.preview, s.reasons, s.span_start, s.span_end, s.line,
              s.column_number, s.decoding, s.content_version, s.row_key, s.suppressed_by, s.suppressed),
found AS MATERIALIZED (
    SELECT * FROM staged
    UNION ALL
    SELECT d.job_id, d.datasource_id, f.*
    FROM unnest($5::bigint[], $6::bigint[], $7::bytea[], $8::bytea[], $9::bytea[], $10::text[], $11::bytea[],
                $12::text[], $13::smallint[], $14::text[], $15::text[], $16::bigint[], $17::bigint[], $18::bigint[],
                $19::bigint[], $20::text[], $21::text[], $22::text[], $23::text[], $24::bigint[]) AS f (task_id)
    JOIN done d ON d.task_id = f.task_id),
known AS (
    INSERT INTO findings
        (id, datasource_id, object_key, nested_path, rule_id, fingerprint, category, score, preview, status,
         first_seen, last_seen)
    SELECT DISTINCT ON (finding_id, datasource_id)
           finding_id, datasource_id, object_key, nested_path, rule_id, fingerprint, category, score, preview, 'OPEN',
           now_ms(), now_ms()
    FROM found
    ORDER BY finding_id, datasource_id, score DESC, task_id, sequence
    ON CONFLICT (id, datasource_id) DO UPDATE SET last_seen = excluded.last_seen, score = greatest(findings.score, excluded.score)),
objects AS (
    INSERT INTO object_scans (job_id, task_id, sequence, object_key, nested_path, status, detail, overflow)
    SELECT f.job_id, f.task_id, min(f.sequence), f.object_key, ''::bytea, 'scanned', '', 0
    FROM found f
    GROUP BY f.job_id, f.task_id, f.object_key
    HAVING NOT has_scan(f.job_id, f.task_id, f.object_key)
    ORDER BY f.task_id, min(f.sequence))
INSERT INTO finding_occurrences
    (job_id, task_id, sequence, finding_id, score, reasons, span_start, span_end, line, column_number, decoding,
     content_version, row_key, suppressed_by, suppressed)
SELECT job_id, task_id, sequence, finding_id, score, reasons, span_start, span_end, line, column_number, decoding,
       content_version, row_key, suppressed_by, suppressed
FROM found
ORDER BY task_id, sequence;

-- Their objects, likewise, and before the findings.
-- name: publish_objects
WITH done AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS d (task_id, claim_id, job_id)),
staged AS (
    DELETE FROM staged_objects s USING done d WHERE s.task_id = d.task_id AND s.claim_id = d.claim_id
    RETURNING d.job_id, s.task_id, s.sequence, s.object_key, s.nested_path, s.status, s.reason, s.detail, s.overflow),
found AS (
    SELECT * FROM staged
    UNION ALL
    SELECT d.job_id, o.*
    FROM unnest($4::bigint[], $5::bigint[], $6::bytea[], $7::bytea[], $8::text[], $9::text[], $10::text[],
                $11::bigint[]) AS o (task_id)
    JOIN done d ON d.task_id = o.task_id)
INSERT INTO object_scans (job_id, task_id, sequence, object_key, nested_path, status, reason, detail, overflow)
SELECT * FROM found ORDER BY task_id, sequence;

-- What they observed of tables, likewise, and after both: a part of a table gets a row, unless it has one.
-- name: publish_tables
WITH done AS MATERIALIZED (
    SELECT * FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[])
        AS d (task_id, claim_id, job_id, datasource_id)),
staged AS (
    DELETE FROM staged_tables s USING done d WHERE s.task_id = d.task_id AND s.claim_id = d.claim_id
    RETURNING d.job_id, d.datasource_id, s.task_id, s.sequence, s.object_key, s.nested_path, s.part_key, s.shape,
              s.rows, s.is_sample, s.sketches),
observed AS MATERIALIZED (
    SELECT * FROM staged
    UNION ALL
    SELECT d.job_id, d.datasource_id, t.*
    FROM unnest($5::bigint[], $6::bigint[], $7::bytea[], $8::bytea[], $9::bytea[], $10::text[], $11::bigint[],
                $12::boolean[], $13::bytea[]) AS t (task_id)
    JOIN done d ON d.task_id = t.task_id),
objects AS (
    INSERT INTO object_scans (job_id, task_id, sequence, object_key, nested_path, status, detail, overflow)
    SELECT t.job_id, t.task_id, min(t.sequence), t.part_key, ''::bytea, 'scanned', '', 0
    FROM observed t
    GROUP BY t.job_id, t.task_id, t.part_key
    HAVING NOT has_scan(t.job_id, t.task_id, t.part_key)
    ORDER BY t.task_id, min(t.sequence))
INSERT INTO table_observations
    (job_id, datasource_id, task_id, sequence, object_key, nested_path, part_key, shape, rows, is_sample, sketches)
SELECT * FROM observed ORDER BY task_id, sequence;

-- name: replace_earlier
SELECT replace_results($1, $2);

-- Whoever staged them.
-- name: clear_staged
WITH findings AS (DELETE FROM staged_findings WHERE task_id = $1),
tables AS (DELETE FROM staged_tables WHERE task_id = $1)
DELETE FROM staged_objects WHERE task_id = $1;

-- name: sweep_staged_findings
DELETE FROM staged_findings
WHERE (task_id, claim_id, sequence) IN (
    SELECT s.task_id, s.claim_id, s.sequence
    FROM staged_findings s
    JOIN tasks t ON t.id = s.task_id
    WHERE t.status <> 'RUNNING' OR t.claim_id IS DISTINCT FROM s.claim_id
    LIMIT $1
    FOR UPDATE OF s SKIP LOCKED);

-- name: sweep_staged_objects
DELETE FROM staged_objects
WHERE (task_id, claim_id, sequence) IN (
    SELECT s.task_id, s.claim_id, s.sequence
    FROM staged_objects s
    JOIN tasks t ON t.id = s.task_id
    WHERE t.status <> 'RUNNING' OR t.claim_id IS DISTINCT FROM s.claim_id
    LIMIT $1
    FOR UPDATE OF s SKIP LOCKED);

-- name: sweep_staged_tables
DELETE FROM staged_tables
WHERE (task_id, claim_id, sequence) IN (
    SELECT s.task_id, s.claim_id, s.sequence
    FROM staged_tables s
    JOIN tasks t ON t.id = s.task_id
    WHERE t.status <> 'RUNNING' OR t.claim_id IS DISTINCT FROM s.claim_id
    LIMIT $1
    FOR UPDATE OF s SKIP LOCKED);

-- Of tasks that are done, and of jobs that have ended: the halves of a split task may need what is kept under it.
-- name: sweep_object_checkpoints
DELETE FROM object_checkpoints
WHERE (task_id, object_key_hash, number) IN (
    SELECT c.task_id, c.object_key_hash, c.number
    FROM object_checkpoints c
    JOIN tasks t ON t.id = c.task_id
    JOIN jobs j ON j.id = t.job_id
    WHERE t.status = 'COMPLETED' OR j.status IN ('COMPLETED', 'PARTIALLY_COMPLETED', 'FAILED', 'CANCELLED')
    LIMIT $1
    FOR UPDATE OF c SKIP LOCKED);

-- Objects that a task gave up, which no worker reported.
-- name: insert_object_scans
INSERT INTO object_scans (job_id, task_id, sequence, object_key, nested_path, status, reason, detail, overflow)
SELECT $1, $2, o.*
FROM unnest($3::bigint[], $4::bytea[], $5::bytea[], $6::text[], $7::text[], $8::text[], $9::bigint[]) o;

-- One reader after the other gives positions, until the end of its transaction.
-- name: lock_event_positions
SELECT pg_advisory_xact_lock(hashtextextended('domesday event positions', 0));

-- `= ANY`, as in the statements about tasks, so that no plan walks through all events.
-- name: number_events
UPDATE events e
SET position = n.position
FROM (
    SELECT v.number, nextval('event_positions') AS position
    FROM (SELECT number FROM events WHERE position IS NULL ORDER BY number LIMIT $1) v) n
WHERE e.number = ANY (ARRAY[n.number]);

-- name: next_events
SELECT position, job_id, kind, payload
FROM events
WHERE position > coalesce((SELECT c.position FROM event_consumers c WHERE c.name = $1), 0)
ORDER BY position
LIMIT $2;

-- name: acknowledge
INSERT INTO event_consumers (name, position) VALUES ($1, greatest($2::bigint, 0))
ON CONFLICT (name) DO UPDATE SET position = greatest(event_consumers.position, excluded.position);

-- name: prune_events
DELETE FROM events WHERE position <= (SELECT min(position) FROM event_consumers);

-- name: summary_tasks
SELECT coalesce(sum(t.objects) FILTER (WHERE t.status = 'COMPLETED'), 0)::bigint,
       coalesce(sum(t.nested), 0)::bigint,
       coalesce(sum(t.bytes), 0)::bigint,
       count(*) FILTER (WHERE t.status = 'FAILED'),
       count(*) FILTER (WHERE t.status IN ('PENDING', 'RUNNING'))
FROM jobs j
JOIN tasks t ON t.job_id = j.id
WHERE j.master_job_id = $1;

-- name: summary_failed_units
SELECT u.reason, count(*)
FROM jobs j
JOIN task_units u ON u.job_id = j.id AND u.status = 'FAILED'
WHERE j.master_job_id = $1
GROUP BY u.reason
ORDER BY u.reason COLLATE "C";

-- WITH HOLD: the result is kept outside of any transaction, so that a slow reader holds back no VACUUM.
-- name: declare_occurrences
DECLARE occurrences NO SCROLL CURSOR WITH HOLD FOR
SELECT f.id, f.datasource_id, f.object_key, f.nested_path, f.rule_id, f.category, o.score, o.reasons,
       f.fingerprint, f.preview, o.span_start, o.span_end, o.line, o.column_number, o.decoding, o.row_key,
       g.path, g.commit_id, g.author, g.time_ms, g.is_abandoned, o.suppressed_by, o.suppressed
FROM jobs j
JOIN finding_occurrences o ON o.job_id = j.id
JOIN tasks t ON t.id = o.task_id
JOIN findings f ON f.id = o.finding_id AND f.datasource_id = t.datasource_id
LEFT JOIN object_origins g ON g.datasource_id = f.datasource_id AND sha256(g.object_key) = sha256(f.object_key)
WHERE j.master_job_id = $1
  AND o.score >= $2
  AND ($3::text IS NULL OR f.rule_id = $3)
  AND ($4::text IS NULL OR f.category = $4)
  AND ($5 OR o.suppressed_by IS NULL)
ORDER BY f.datasource_id, f.object_key, f.nested_path, o.line, o.span_start, o.span_end, f.rule_id, f.fingerprint,
         o.row_key COLLATE "C" NULLS FIRST;

-- name: fetch_occurrences
FETCH FORWARD 512 FROM occurrences;

-- Unsupported objects come last, by format: they are many, and leave the scan complete.
-- name: problems
SELECT t.datasource_id, o.object_key, o.nested_path, o.status, o.reason, o.detail,
       CASE o.status WHEN 'unsupported' THEN o.detail ELSE '' END COLLATE "C" AS format,
       g.path, g.commit_id, g.author, g.time_ms, g.is_abandoned
FROM jobs j
JOIN object_scans o ON o.job_id = j.id
JOIN tasks t ON t.id = o.task_id
LEFT JOIN object_origins g
    ON g.datasource_id = t.datasource_id AND sha256(g.object_key) = sha256(o.object_key)
WHERE j.master_job_id = $1 AND o.status <> 'scanned'
UNION ALL
SELECT s.datasource_id, u.key, ''::bytea, 'failed', u.reason, coalesce(u.detail, ''), '' COLLATE "C",
       NULL::bytea, NULL, NULL, NULL::bigint, NULL::boolean
FROM jobs j
JOIN task_units u ON u.job_id = j.id AND u.status = 'FAILED'
JOIN enumeration_sessions s ON s.id = u.session_id
WHERE j.master_job_id = $1
ORDER BY 7, 1, 2, 3
LIMIT $2;
