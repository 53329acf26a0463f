-- How far very large objects were scanned whose task is not done: see `model/checkpoint.rs`.

CREATE TABLE object_checkpoints (
    -- The task, or the one it was split from.
    task_id         INTEGER NOT NULL REFERENCES tasks (id),
    object_key_hash BLOB    NOT NULL,
    number          INTEGER NOT NULL,
    -- JSON.
    body            TEXT    NOT NULL,
    PRIMARY KEY (task_id, object_key_hash, number)
) STRICT, WITHOUT ROWID;
