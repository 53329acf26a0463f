-- Containers that come in pages, each page a unit of its own; objects that are as they were when they were last
-- scanned, and the session that says so.

ALTER TABLE task_units
    -- Of a container that comes whole, the only one: 0.
    ADD COLUMN page      bigint NOT NULL DEFAULT 0,
    ADD COLUMN unchanged bigint NOT NULL DEFAULT 0;
-- A resume point says where the next page begins, and nothing that was listed before had one behind it.
UPDATE task_units SET resume_point = NULL WHERE resume_point IS NOT NULL;

DROP INDEX task_units_by_key;
CREATE UNIQUE INDEX task_units_by_key ON task_units (task_id, sha256(key), page);
-- Also what a base says of a container: one index more would be written with every unit.
DROP INDEX task_units_by_session;
CREATE INDEX task_units_by_session ON task_units (job_id, session_id, sha256(key), page) WHERE status = 'COMMITTED';

-- Hash of what the source itself calls the object's version.
ALTER TABLE task_output_records ADD COLUMN tag bytea;

ALTER TABLE enumeration_sessions
    -- What it was scanned with: rules, engine, options, fingerprint key, and how the source is read. NULL: unknown.
    ADD COLUMN scan_key        bytea,
    -- The session whose results hold for what has not changed since; NULL: everything is read.
    ADD COLUMN base_session_id bigint;
CREATE INDEX enumeration_sessions_by_scan_key ON enumeration_sessions (datasource_id, scan_key, id)
    WHERE scan_key IS NOT NULL;

-- From now on an object with findings has a row, too, so that what a job says of an object is found by its key.
-- A hash, for a key may be longer than an index entry can be; `+ 0`, so that whoever asks by it gets this index and not
-- the primary key, which begins with the job, too, and seems as good to a plan that was made for an empty table.
CREATE INDEX object_scans_by_object ON object_scans ((job_id + 0), sha256(object_key));
