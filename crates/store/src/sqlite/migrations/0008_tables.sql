-- Databases, tables and columns: what a source says of a record, the row that a finding is in, and what was observed
-- of tables.

-- JSON; NULL where the source says nothing more.
ALTER TABLE task_output_records ADD COLUMN metadata TEXT;
-- The row's primary key, or its number; NULL of what is in no table.
ALTER TABLE finding_occurrences ADD COLUMN row_key TEXT;
-- What a staged result has beside its body: the sketches of a table.
ALTER TABLE staged_results ADD COLUMN attachment BLOB;

-- What one task observed of a table, or of a range of its rows.
CREATE TABLE table_observations (
    job_id        INTEGER NOT NULL REFERENCES jobs (id),
    task_id       INTEGER NOT NULL REFERENCES tasks (id),
    sequence      INTEGER NOT NULL,
    datasource_id INTEGER NOT NULL,
    object_key    BLOB    NOT NULL,
    nested_path   BLOB    NOT NULL,
    -- The object that was read: the table's own key, or a range's.
    part_key      BLOB    NOT NULL,
    shape         TEXT    NOT NULL,
    rows          INTEGER NOT NULL,
    is_sample     INTEGER NOT NULL,
    -- One per column, each behind its length.
    sketches      BLOB    NOT NULL,
    PRIMARY KEY (job_id, task_id, sequence)
) STRICT, WITHOUT ROWID;

CREATE INDEX table_observations_by_table
    ON table_observations (job_id, datasource_id, object_key, nested_path, part_key);
