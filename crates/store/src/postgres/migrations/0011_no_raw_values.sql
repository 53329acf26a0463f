-- What is data is in the book no longer: primary keys that bound ranges of rows, names rows and place resume points,
-- secrets in addresses and names, and what rule sets allow by its content. From here on it is sealed before it comes, with
-- a key that this migration does not have. So what was written before is taken out. Nothing is lost but work: unfinished
-- jobs that need it end here and are to be started again, and their sources are read whole by the next scan.
--
-- What is taken out stays in dead rows, in the log and in backups for a while: see "Raw values" in docs/security.md.

-- A text with its secret parts replaced, as `domesday_model::redact` has them.
CREATE FUNCTION pg_temp.redact(shown text) RETURNS text LANGUAGE sql IMMUTABLE AS $redact$
    SELECT regexp_replace(regexp_replace(regexp_replace(regexp_replace(shown,
        -- By the name of a parameter.
        '([?&#;](?:[a-z0-9_.:$~%-]*(?:token|secret|signature|passw|passphrase|passcode|pwd|credential|api[-_]?key'
        '|access[-_]?key|private[-_]?key|shared[-_]?key|subscription[-_]?key|functions[-_]?key|authorization|session'
        '|jwt|bearer|cookie|otp|assertion|ticket|invite|magic|verif|x-amz|x-goog)[a-z0-9_.:$~%-]*'
        '|sig|key|auth|code|pass|pin|sid|hash|hmac|mac|sign|state|nonce|pw|user|login|k)=)[^\s&#;"''`<>(),\\]+',
        '\1****', 'gi'),
        -- By a value that nobody could have thought of.
        '([?&#;][A-Za-z0-9_.:$~%-]+=)(?=[A-Za-z_.~+/=%-]*[0-9])(?=[0-9_.~+/=%-]*[A-Za-z])[A-Za-z0-9_.~+/=%-]{16,}',
        '\1****', 'g'),
        -- The password before a host.
        '(://[^/?\s"''@:]*:)[^/?\s"'']+@', '\1****@', 'g'),
        -- Tokens by how they begin.
        '\m(?:gh[pousr]_|github_pat_|glpat-|xox[bpa]-|[sr]k_live_|sk-|npm_|pypi-|hf_|dop_v1_|hvs\.|AKIA|ASIA|AIza|SG\.'
        '|ya29\.|eyJ)[A-Za-z0-9_.-]{16,}', '****', 'g')
$redact$;

-- The same of a name, which need not be UTF-8.
CREATE FUNCTION pg_temp.redact_key(name bytea) RETURNS bytea LANGUAGE plpgsql IMMUTABLE AS $redact$
DECLARE
    shown text;
BEGIN
    BEGIN
        shown := convert_from(name, 'UTF8');
    EXCEPTION WHEN OTHERS THEN
        shown := encode(name, 'escape');
    END;
    RETURN CASE WHEN pg_temp.redact(shown) = shown THEN name ELSE convert_to(pg_temp.redact(shown), 'UTF8') END;
END
$redact$;

-- The same of the way into an object, whose names stand behind their lengths: with a secret in it, it is left out.
CREATE FUNCTION pg_temp.redact_nested(steps bytea) RETURNS bytea LANGUAGE sql IMMUTABLE AS $redact$
    SELECT CASE WHEN pg_temp.redact(encode(steps, 'escape')) = encode(steps, 'escape') THEN steps ELSE ''::bytea END
$redact$;

-- Jobs that cannot go on without what is taken out.
CREATE TEMP TABLE ended AS
SELECT DISTINCT j.id
FROM jobs j JOIN enumeration_sessions s ON s.job_id = j.id JOIN datasources d ON d.id = s.datasource_id
WHERE j.status NOT IN ('COMPLETED', 'PARTIALLY_COMPLETED', 'FAILED', 'CANCELLED')
  AND (d.kind IN ('url', 'postgres', 'mysql', 'sqlserver', 'sqlite')
       OR EXISTS (SELECT 1 FROM task_units u WHERE u.job_id = j.id AND u.resume_point IS NOT NULL)
       OR EXISTS (SELECT 1 FROM rule_sets r
                  WHERE j.configuration LIKE '%' || encode(r.hash, 'hex') || '%'
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
WHERE status = 'RUNNING' AND id IN (
    SELECT task_id FROM staged_findings UNION SELECT task_id FROM staged_objects UNION SELECT task_id FROM staged_tables);
DELETE FROM staged_findings;
DELETE FROM staged_objects;
DELETE FROM staged_tables;

-- Tables whose examples name rows by what may be data.
CREATE TEMP TABLE keyed AS
SELECT DISTINCT o.job_id, o.task_id, o.sequence, o.datasource_id
FROM table_observations o, json_array_elements_text(o.shape::json -> 'primary_key') k
WHERE coalesce(lower(o.shape::json -> 'columns' -> k.value::int ->> 'type_name'), '')
      !~ '^(small|medium|tiny|big)?int(eger)?[248]?([( ]|$)';
UPDATE enumeration_sessions SET scan_key = NULL
WHERE datasource_id IN (SELECT datasource_id FROM keyed)
   OR datasource_id IN (SELECT id FROM datasources WHERE kind IN ('url', 'postgres', 'mysql', 'sqlserver', 'sqlite'));
DELETE FROM table_observations
WHERE (job_id, task_id, sequence) IN (SELECT job_id, task_id, sequence FROM keyed);
DROP TABLE keyed;

-- A short number may stay: it says nothing of anybody.
UPDATE finding_occurrences SET row_key = '****'
WHERE row_key IS NOT NULL
  AND row_key !~ '^(#[0-9]+|[0-9,-]{1,8})$';
-- Kind 9 is a range of rows.
UPDATE task_output_records SET metadata = NULL WHERE kind = 9;
UPDATE task_output_records SET metadata = pg_temp.redact(metadata) WHERE metadata IS DISTINCT FROM pg_temp.redact(metadata);
UPDATE task_units SET resume_point = NULL WHERE resume_point IS NOT NULL;
UPDATE enumeration_batches SET checkpoint = NULL WHERE checkpoint IS NOT NULL;

-- Their findings are shown with the names of their rules alone, unless these are built in.
DELETE FROM rule_sets WHERE rules LIKE '%[[allow%' OR rules LIKE '%allowlist%';

-- Names and addresses. Hashes of names go with them: they would tell a guess from another.
UPDATE task_output_records SET name = pg_temp.redact_key(name), object_key_hash = decode(md5(random()::text), 'hex') WHERE name IS DISTINCT FROM pg_temp.redact_key(name);
UPDATE task_units SET key = pg_temp.redact_key(key) || convert_to('~' || id, 'UTF8') WHERE key IS DISTINCT FROM pg_temp.redact_key(key);
UPDATE task_units SET detail = pg_temp.redact(detail) WHERE detail IS DISTINCT FROM pg_temp.redact(detail);
UPDATE tasks SET payload = pg_temp.redact(payload), last_error = pg_temp.redact(last_error)
WHERE payload IS DISTINCT FROM pg_temp.redact(payload) OR last_error IS DISTINCT FROM pg_temp.redact(last_error);
UPDATE findings SET object_key = pg_temp.redact_key(object_key), nested_path = pg_temp.redact_nested(nested_path)
WHERE object_key IS DISTINCT FROM pg_temp.redact_key(object_key) OR nested_path IS DISTINCT FROM pg_temp.redact_nested(nested_path);
UPDATE object_scans SET object_key = pg_temp.redact_key(object_key), nested_path = pg_temp.redact_nested(nested_path), detail = pg_temp.redact(detail)
WHERE object_key IS DISTINCT FROM pg_temp.redact_key(object_key) OR nested_path IS DISTINCT FROM pg_temp.redact_nested(nested_path) OR detail IS DISTINCT FROM pg_temp.redact(detail);
UPDATE table_observations
SET object_key = pg_temp.redact_key(object_key), nested_path = pg_temp.redact_nested(nested_path), part_key = pg_temp.redact_key(part_key), shape = pg_temp.redact(shape)
WHERE object_key IS DISTINCT FROM pg_temp.redact_key(object_key) OR nested_path IS DISTINCT FROM pg_temp.redact_nested(nested_path)
   OR part_key IS DISTINCT FROM pg_temp.redact_key(part_key) OR shape IS DISTINCT FROM pg_temp.redact(shape);
UPDATE object_origins SET path = pg_temp.redact_key(path) WHERE path IS DISTINCT FROM pg_temp.redact_key(path);
DELETE FROM object_origins WHERE object_key IS DISTINCT FROM pg_temp.redact_key(object_key);
DELETE FROM untraced_objects WHERE object_key IS DISTINCT FROM pg_temp.redact_key(object_key);

-- The next scan comes upon them again.
DELETE FROM job_scan_targets WHERE scan_target_id IN (
    SELECT t.id FROM scan_targets t JOIN url_targets u ON t.target_type = 'url' AND t.target_id = u.id
    WHERE u.url IS DISTINCT FROM pg_temp.redact(u.url));
DELETE FROM scan_targets
WHERE target_type = 'url' AND target_id IN (SELECT id FROM url_targets WHERE url IS DISTINCT FROM pg_temp.redact(url));
DELETE FROM url_targets WHERE url IS DISTINCT FROM pg_temp.redact(url);
UPDATE scan_targets SET name = pg_temp.redact(name) WHERE name IS DISTINCT FROM pg_temp.redact(name);

UPDATE datasources SET name = pg_temp.redact(name) || '~' || id WHERE name IS DISTINCT FROM pg_temp.redact(name);
-- Those that somebody manages are sealed by `domesday db migrate`, which has the key.
UPDATE datasources SET configuration = pg_temp.redact(configuration)
WHERE NOT managed AND configuration IS DISTINCT FROM pg_temp.redact(configuration);
UPDATE master_jobs SET description = pg_temp.redact(description) WHERE description IS DISTINCT FROM pg_temp.redact(description);
UPDATE jobs SET configuration = pg_temp.redact(configuration), failure_reason = pg_temp.redact(failure_reason)
WHERE configuration IS DISTINCT FROM pg_temp.redact(configuration) OR failure_reason IS DISTINCT FROM pg_temp.redact(failure_reason);
UPDATE enumeration_sessions SET configuration = pg_temp.redact(configuration), failure_reason = pg_temp.redact(failure_reason)
WHERE configuration IS DISTINCT FROM pg_temp.redact(configuration) OR failure_reason IS DISTINCT FROM pg_temp.redact(failure_reason);
UPDATE enumeration_batches SET error_details = pg_temp.redact(error_details) WHERE error_details IS DISTINCT FROM pg_temp.redact(error_details);
UPDATE events SET payload = pg_temp.redact(payload) WHERE payload IS DISTINCT FROM pg_temp.redact(payload);

DROP FUNCTION pg_temp.redact_nested(bytea);
DROP FUNCTION pg_temp.redact_key(bytea);
DROP FUNCTION pg_temp.redact(text);
