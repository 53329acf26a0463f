-- Containers that come in pages, each page a unit of its own; objects that are as they were when they were last
-- scanned, and the session that says so.

-- SQLite changes no constraint of a table that is there: it is made again, with all that is in it.
CREATE TABLE task_units_with_pages (
    id           INTEGER PRIMARY KEY,
    task_id      INTEGER NOT NULL REFERENCES tasks (id),
    job_id       INTEGER NOT NULL,
    session_id   INTEGER NOT NULL,
    key          BLOB    NOT NULL,
    -- Of a container that comes whole, the only one: 0.
    page         INTEGER NOT NULL DEFAULT 0,
    status       TEXT    NOT NULL,
    reason       TEXT,
    detail       TEXT,
    -- Totals over the unit's records; `records` is also the next sequence number.
    records      INTEGER NOT NULL DEFAULT 0,
    containers   INTEGER NOT NULL DEFAULT 0,
    objects      INTEGER NOT NULL DEFAULT 0,
    skipped      INTEGER NOT NULL DEFAULT 0,
    unchanged    INTEGER NOT NULL DEFAULT 0,
    bytes        INTEGER NOT NULL DEFAULT 0,
    -- Where the next page begins; NULL ends the container. The authority for resuming a listing.
    resume_point TEXT,
    -- Bit 1: its containers became enumeration tasks. Bit 2: its objects became classification tasks.
    fanned_out   INTEGER NOT NULL DEFAULT 0,
    UNIQUE (task_id, key, page)
) STRICT;

-- Nothing that was listed before had a page behind it.
INSERT INTO task_units_with_pages
    (id, task_id, job_id, session_id, key, status, reason, detail, records, containers, objects, skipped, bytes,
     fanned_out)
SELECT id, task_id, job_id, session_id, key, status, reason, detail, records, containers, objects, skipped, bytes,
       fanned_out
FROM task_units;

DROP TABLE task_units;
ALTER TABLE task_units_with_pages RENAME TO task_units;

CREATE INDEX task_units_to_fan_out ON task_units (job_id, id) WHERE status = 'COMMITTED' AND fanned_out < 3;
CREATE INDEX task_units_staging ON task_units (job_id, id) WHERE status = 'STAGING';
-- Also what a base says of a container: one index more would be written with every unit.
CREATE INDEX task_units_by_job ON task_units (job_id, status, session_id, key, page);

-- Hash of what the source itself calls the object's version.
ALTER TABLE task_output_records ADD COLUMN tag BLOB;

-- What it was scanned with: rules, engine, options, fingerprint key, and how the source is read. NULL: unknown.
ALTER TABLE enumeration_sessions ADD COLUMN scan_key BLOB;
-- The session whose results hold for what has not changed since; NULL: everything is read.
ALTER TABLE enumeration_sessions ADD COLUMN base_session_id INTEGER;
CREATE INDEX enumeration_sessions_by_scan_key ON enumeration_sessions (datasource_id, scan_key, id)
    WHERE scan_key IS NOT NULL;

-- From now on an object with findings has a row, too, so that what a job says of an object is found by its key.
CREATE INDEX object_scans_by_object ON object_scans (job_id, object_key);
