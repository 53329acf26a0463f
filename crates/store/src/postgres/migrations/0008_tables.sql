-- Databases, tables and columns: what a source says of a record, the row that a finding is in, and what was observed
-- of tables.

-- JSON; NULL where the source says nothing more.
ALTER TABLE task_output_records ADD COLUMN metadata text;
-- The row's primary key, or its number; NULL of what is in no table.
ALTER TABLE staged_findings ADD COLUMN row_key text;
ALTER TABLE finding_occurrences ADD COLUMN row_key text;

-- What one task observed of a table, or of a range of its rows.
CREATE TABLE staged_tables (
    task_id     bigint  NOT NULL,
    claim_id    bigint  NOT NULL,
    sequence    bigint  NOT NULL,
    object_key  bytea   NOT NULL,
    nested_path bytea   NOT NULL,
    part_key    bytea   NOT NULL,
    shape       text    NOT NULL,
    rows        bigint  NOT NULL,
    is_sample   boolean NOT NULL,
    sketches    bytea   NOT NULL,
    PRIMARY KEY (task_id, claim_id, sequence)
);

CREATE TABLE table_observations (
    job_id        bigint  NOT NULL,
    task_id       bigint  NOT NULL,
    sequence      bigint  NOT NULL,
    datasource_id bigint  NOT NULL,
    object_key    bytea   NOT NULL,
    nested_path   bytea   NOT NULL,
    -- The object that was read: the table's own key, or a range's.
    part_key      bytea   NOT NULL,
    shape         text    NOT NULL,
    rows          bigint  NOT NULL,
    is_sample     boolean NOT NULL,
    -- One per column, each behind its length.
    sketches      bytea   NOT NULL,
    PRIMARY KEY (job_id, task_id, sequence)
);

-- The beginning of the key, for a key may be longer than an index entry can be.
CREATE INDEX table_observations_by_table
    ON table_observations (job_id, datasource_id, substr(object_key, 1, 512));
