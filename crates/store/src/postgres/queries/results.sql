-- Findings, outcomes of objects, events, reports.

-- name: stage_findings
INSERT INTO staged_findings
    (task_id, claim_id, sequence, finding_id, object_key, nested_path, rule_id, fingerprint, category, score, preview,
     reasons, span_start, span_end, line, column_number, decoding, content_version)
SELECT $1, $2, f.*
FROM unnest($3::bigint[], $4::bytea[], $5::bytea[], $6::bytea[], $7::text[], $8::bytea[], $9::text[], $10::smallint[],
            $11::text[], $12::text[], $13::bigint[], $14::bigint[], $15::bigint[], $16::bigint[], $17::text[],
            $18::text[]) f
ON CONFLICT (task_id, claim_id, sequence) DO NOTHING;

-- name: stage_objects
INSERT INTO staged_objects
    (task_id, claim_id, sequence, object_key, nested_path, status, reason, detail, overflow)
SELECT $1, $2, o.*
FROM unnest($3::bigint[], $4::bytea[], $5::bytea[], $6::text[], $7::text[], $8::text[], $9::bigint[]) o
ON CONFLICT (task_id, claim_id, sequence) DO NOTHING;

-- name: count_staged
SELECT (SELECT count(*) FROM staged_findings WHERE task_id = $1 AND claim_id = $2)
     + (SELECT count(*) FROM staged_objects WHERE task_id = $1 AND claim_id = $2);

-- In the order of ids: tasks that find the same thing complete at the same time.
-- name: publish_findings
INSERT INTO findings
    (id, datasource_id, object_key, nested_path, rule_id, fingerprint, category, score, preview, status, first_seen,
     last_seen)
SELECT DISTINCT ON (finding_id)
       finding_id, $3, object_key, nested_path, rule_id, fingerprint, category, score, preview, 'OPEN', now_ms(), now_ms()
FROM staged_findings
WHERE task_id = $1 AND claim_id = $2
ORDER BY finding_id, score DESC, sequence
ON CONFLICT (id) DO UPDATE SET last_seen = excluded.last_seen, score = greatest(findings.score, excluded.score);

-- name: publish_occurrences
INSERT INTO finding_occurrences
    (job_id, task_id, sequence, finding_id, score, reasons, span_start, span_end, line, column_number, decoding,
     content_version)
SELECT $3, task_id, sequence, finding_id, score, reasons, span_start, span_end, line, column_number, decoding,
       content_version
FROM staged_findings
WHERE task_id = $1 AND claim_id = $2
ORDER BY sequence;

-- name: publish_objects
INSERT INTO object_scans (job_id, task_id, sequence, object_key, nested_path, status, reason, detail, overflow)
SELECT $3, task_id, sequence, object_key, nested_path, status, reason, detail, overflow
FROM staged_objects
WHERE task_id = $1 AND claim_id = $2
ORDER BY sequence;

-- Whoever staged them.
-- name: clear_staged
WITH findings AS (DELETE FROM staged_findings WHERE task_id = $1)
DELETE FROM staged_objects WHERE task_id = $1;

-- name: sweep_staged_findings
DELETE FROM staged_findings
WHERE (task_id, claim_id, sequence) IN (
    SELECT s.task_id, s.claim_id, s.sequence
    FROM staged_findings s
    JOIN tasks t ON t.id = s.task_id
    WHERE t.status <> 'RUNNING' OR t.claim_id IS DISTINCT FROM s.claim_id
    LIMIT $1
    FOR UPDATE OF s SKIP LOCKED)
RETURNING 1;

-- name: sweep_staged_objects
DELETE FROM staged_objects
WHERE (task_id, claim_id, sequence) IN (
    SELECT s.task_id, s.claim_id, s.sequence
    FROM staged_objects s
    JOIN tasks t ON t.id = s.task_id
    WHERE t.status <> 'RUNNING' OR t.claim_id IS DISTINCT FROM s.claim_id
    LIMIT $1
    FOR UPDATE OF s SKIP LOCKED)
RETURNING 1;

-- Objects that a task gave up, which no worker reported.
-- name: insert_object_scans
INSERT INTO object_scans (job_id, task_id, sequence, object_key, nested_path, status, reason, detail, overflow)
SELECT $1, $2, o.*
FROM unnest($3::bigint[], $4::bytea[], $5::bytea[], $6::text[], $7::text[], $8::text[], $9::bigint[]) o;

-- name: insert_event
INSERT INTO events (job_id, kind, payload, created_at) VALUES ($1, $2, $3, now_ms());

-- One reader after the other gives positions, until the end of its transaction.
-- name: lock_event_positions
SELECT pg_advisory_xact_lock(hashtextextended('domesday event positions', 0));

-- name: number_events
UPDATE events e
SET position = n.position
FROM (
    SELECT v.number, nextval('event_positions') AS position
    FROM (SELECT number FROM events WHERE position IS NULL ORDER BY number LIMIT $1) v) n
WHERE e.number = n.number;

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

-- name: summary_units
SELECT count(*), coalesce(sum(u.objects), 0)::bigint, coalesce(sum(u.bytes), 0)::bigint
FROM jobs j
JOIN task_units u ON u.job_id = j.id AND u.status = 'COMMITTED'
WHERE j.master_job_id = $1;

-- name: summary_tasks
SELECT coalesce(sum(t.objects) FILTER (WHERE t.type = 'CLASSIFICATION' AND t.status = 'COMPLETED'), 0)::bigint,
       coalesce(sum(t.nested), 0)::bigint,
       coalesce(sum(t.bytes), 0)::bigint,
       count(*) FILTER (WHERE t.status = 'FAILED'),
       count(*) FILTER (WHERE t.status IN ('PENDING', 'RUNNING'))
FROM jobs j
JOIN tasks t ON t.job_id = j.id
WHERE j.master_job_id = $1;

-- name: summary_skips
SELECT s.reason, sum(s.count)::bigint
FROM jobs j
JOIN task_units u ON u.job_id = j.id AND u.status = 'COMMITTED' AND u.skipped > 0
JOIN task_unit_skips s ON s.unit_id = u.id
WHERE j.master_job_id = $1
GROUP BY s.reason
ORDER BY s.reason;

-- name: summary_failed_units
SELECT u.reason, count(*)
FROM jobs j
JOIN task_units u ON u.job_id = j.id AND u.status = 'FAILED'
WHERE j.master_job_id = $1
GROUP BY u.reason
ORDER BY u.reason COLLATE "C";

-- name: summary_object_scans
SELECT o.status, o.reason, count(*), sum(o.overflow)::bigint
FROM jobs j
JOIN object_scans o ON o.job_id = j.id
WHERE j.master_job_id = $1
GROUP BY o.status, o.reason
ORDER BY o.status, o.reason;

-- WITH HOLD: the result is kept outside of any transaction, so that a slow reader holds back no VACUUM.
-- name: declare_occurrences
DECLARE occurrences NO SCROLL CURSOR WITH HOLD FOR
SELECT f.id, f.datasource_id, f.object_key, f.nested_path, f.rule_id, f.category, o.score, o.reasons,
       f.fingerprint, f.preview, o.span_start, o.span_end, o.line, o.column_number, o.decoding
FROM jobs j
JOIN finding_occurrences o ON o.job_id = j.id
JOIN findings f ON f.id = o.finding_id
WHERE j.master_job_id = $1
  AND o.score >= $2
  AND ($3::text IS NULL OR f.rule_id = $3)
  AND ($4::text IS NULL OR f.category = $4)
ORDER BY f.datasource_id, f.object_key, f.nested_path, o.span_start, o.span_end, f.rule_id, f.fingerprint;

-- name: fetch_occurrences
FETCH FORWARD 512 FROM occurrences;

-- name: problems
SELECT t.datasource_id, o.object_key, o.nested_path, o.status, o.reason, o.detail
FROM jobs j
JOIN object_scans o ON o.job_id = j.id
JOIN tasks t ON t.id = o.task_id
WHERE j.master_job_id = $1 AND o.status <> 'scanned'
UNION ALL
SELECT s.datasource_id, u.key, ''::bytea, 'failed', u.reason, coalesce(u.detail, '')
FROM jobs j
JOIN task_units u ON u.job_id = j.id AND u.status = 'FAILED'
JOIN enumeration_sessions s ON s.id = u.session_id
WHERE j.master_job_id = $1
ORDER BY 1, 2, 3
LIMIT $2;

-- With the settings the job read them with; the sources themselves may have newer ones.
-- name: job_datasources
SELECT d.id, d.name, s.source_type, s.configuration
FROM jobs j
JOIN enumeration_sessions s ON s.job_id = j.id
JOIN datasources d ON d.id = s.datasource_id
WHERE j.master_job_id = $1
ORDER BY d.id;
