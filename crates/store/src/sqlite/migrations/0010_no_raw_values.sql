-- What is data is in the book no longer: primary keys that bound ranges of rows, names rows and place resume points,
-- secrets in addresses and names, and what rule sets allow by its content. From here on it is sealed before it comes, with
-- a key that this migration does not have. So what was written before is taken out. Nothing is lost but work: unfinished
-- jobs that need it end here and are to be started again, and their sources are read whole by the next scan.
--
-- `redact` is a function of this program: a text or a name with its secret parts replaced. `redact_nested` is the same for
-- the way into an object.

-- Jobs that cannot go on without what is taken out.
CREATE TEMP TABLE ended AS
SELECT DISTINCT j.id
FROM jobs j JOIN enumeration_sessions s ON s.job_id = j.id JOIN datasources d ON d.id = s.datasource_id
WHERE j.status NOT IN ('COMPLETED', 'PARTIALLY_COMPLETED', 'FAILED', 'CANCELLED')
  AND (d.kind IN ('url', 'postgres', 'mysql', 'sqlserver', 'sqlite')
       OR EXISTS (SELECT 1 FROM task_units u WHERE u.job_id = j.id AND u.resume_point IS NOT NULL)
       OR EXISTS (SELECT 1 FROM rule_sets r
                  WHERE j.configuration LIKE '%' || lower(hex(r.hash)) || '%'
                    AND (r.rules LIKE '%[[allow%' OR r.rules LIKE '%allowlist%')));

UPDATE jobs
SET status = 'FAILED', version = version + 1, finished_at = now_ms(), master_pending_commands = '[]',
    failure_reason = 'the book was upgraded, and what this job had yet to read is in it no longer: start it again'
WHERE id IN (SELECT id FROM ended);
UPDATE tasks SET status = 'CANCELLED', finished_at = now_ms(), claim_id = NULL
WHERE job_id IN (SELECT id FROM ended) AND status IN ('PENDING', 'RUNNING');
UPDATE task_units
SET status = CASE status WHEN 'STAGING' THEN 'FAILED' ELSE status END,
    reason = CASE status WHEN 'STAGING' THEN 'read_error' ELSE reason END,
    detail = CASE status WHEN 'STAGING' THEN 'the book was upgraded' ELSE detail END,
    fanned_out = 3
WHERE job_id IN (SELECT id FROM ended);
UPDATE enumeration_sessions
SET status = 'FAILED', failure_reason = 'the book was upgraded', completed_at = now_ms(), last_update = now_ms()
WHERE job_id IN (SELECT id FROM ended) AND status NOT IN ('COMPLETED', 'PARTIALLY_COMPLETED', 'FAILED');
DROP TABLE ended;
-- What other jobs have staged names rows, too: these tasks are done again, under another claim.
UPDATE tasks SET status = 'PENDING', claim_id = NULL, worker_id = NULL
WHERE status = 'RUNNING' AND id IN (SELECT task_id FROM staged_results);
DELETE FROM staged_results;

-- Tables whose examples name rows by what may be data.
CREATE TEMP TABLE keyed AS
SELECT o.job_id, o.task_id, o.sequence, o.datasource_id
FROM table_observations o, json_each(o.shape, '$.primary_key') k
WHERE NOT coalesce(
    lower(json_extract(o.shape, '$.columns[' || k.value || '].type_name')) GLOB '*int*'
    AND lower(json_extract(o.shape, '$.columns[' || k.value || '].type_name')) NOT GLOB '*po*'
    AND lower(json_extract(o.shape, '$.columns[' || k.value || '].type_name')) NOT GLOB '*val*', FALSE);
UPDATE enumeration_sessions SET scan_key = NULL
WHERE datasource_id IN (SELECT datasource_id FROM keyed)
   OR datasource_id IN (SELECT id FROM datasources WHERE kind IN ('url', 'postgres', 'mysql', 'sqlserver', 'sqlite'));
DELETE FROM table_observations
WHERE (job_id, task_id, sequence) IN (SELECT job_id, task_id, sequence FROM keyed);
DROP TABLE keyed;

-- A short number may stay: it says nothing of anybody.
UPDATE finding_occurrences SET row_key = '****'
WHERE row_key IS NOT NULL
  AND (row_key GLOB '*[^0-9,#-]*' OR (length(row_key) > 8 AND row_key NOT GLOB '#[0-9]*'));
-- Kind 9 is a range of rows.
UPDATE task_output_records SET metadata = NULL WHERE kind = 9;
UPDATE task_output_records SET metadata = redact(metadata) WHERE metadata IS NOT redact(metadata);
UPDATE task_units SET resume_point = NULL WHERE resume_point IS NOT NULL;
UPDATE enumeration_batches SET checkpoint = NULL WHERE checkpoint IS NOT NULL;
DELETE FROM checkpoints WHERE target LIKE 'session:%';
UPDATE enumeration_sessions SET last_checkpoint = NULL WHERE last_checkpoint IS NOT NULL;

-- Their findings are shown with the names of their rules alone, unless these are built in.
DELETE FROM rule_sets WHERE rules LIKE '%[[allow%' OR rules LIKE '%allowlist%';

-- Names and addresses. Hashes of names go with them: they would tell a guess from another.
UPDATE task_output_records SET name = redact(name), object_key_hash = randomblob(16) WHERE name IS NOT redact(name);
UPDATE task_units SET key = redact(key) || CAST('~' || id AS BLOB) WHERE key IS NOT redact(key);
UPDATE task_units SET detail = redact(detail) WHERE detail IS NOT redact(detail);
UPDATE tasks SET payload = redact(payload), last_error = redact(last_error)
WHERE payload IS NOT redact(payload) OR last_error IS NOT redact(last_error);
UPDATE findings SET object_key = redact(object_key), nested_path = redact_nested(nested_path)
WHERE object_key IS NOT redact(object_key) OR nested_path IS NOT redact_nested(nested_path);
UPDATE object_scans SET object_key = redact(object_key), nested_path = redact_nested(nested_path), detail = redact(detail)
WHERE object_key IS NOT redact(object_key) OR nested_path IS NOT redact_nested(nested_path) OR detail IS NOT redact(detail);
UPDATE table_observations
SET object_key = redact(object_key), nested_path = redact_nested(nested_path), part_key = redact(part_key), shape = redact(shape)
WHERE object_key IS NOT redact(object_key) OR nested_path IS NOT redact_nested(nested_path)
   OR part_key IS NOT redact(part_key) OR shape IS NOT redact(shape);
UPDATE object_origins SET path = redact(path) WHERE path IS NOT redact(path);
DELETE FROM object_origins WHERE object_key IS NOT redact(object_key);
DELETE FROM untraced_objects WHERE object_key IS NOT redact(object_key);

-- The next scan comes upon them again.
DELETE FROM job_scan_targets WHERE scan_target_id IN (
    SELECT t.id FROM scan_targets t JOIN url_targets u ON t.target_type = 'url' AND t.target_id = u.id
    WHERE u.url IS NOT redact(u.url));
DELETE FROM scan_targets
WHERE target_type = 'url' AND target_id IN (SELECT id FROM url_targets WHERE url IS NOT redact(url));
DELETE FROM url_targets WHERE url IS NOT redact(url);
UPDATE scan_targets SET name = redact(name) WHERE name IS NOT redact(name);

UPDATE datasources SET name = redact(name) || '~' || id WHERE name IS NOT redact(name);
-- Those that somebody manages are sealed by `domesday db migrate`, which has the key.
UPDATE datasources SET configuration = redact(configuration)
WHERE NOT managed AND configuration IS NOT redact(configuration);
UPDATE master_jobs SET description = redact(description) WHERE description IS NOT redact(description);
UPDATE jobs SET configuration = redact(configuration), failure_reason = redact(failure_reason)
WHERE configuration IS NOT redact(configuration) OR failure_reason IS NOT redact(failure_reason);
UPDATE enumeration_sessions SET configuration = redact(configuration), failure_reason = redact(failure_reason)
WHERE configuration IS NOT redact(configuration) OR failure_reason IS NOT redact(failure_reason);
UPDATE enumeration_batches SET error_details = redact(error_details) WHERE error_details IS NOT redact(error_details);
UPDATE events SET payload = redact(payload) WHERE payload IS NOT redact(payload);

-- Pages that are free now still hold it, and so does the log: whoever opens the book for writing next clears them, and
-- then takes this away.
INSERT OR REPLACE INTO book_settings (name, value) VALUES ('scrub', 'pending');
