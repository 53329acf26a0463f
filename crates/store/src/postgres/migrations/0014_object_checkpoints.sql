-- How far very large objects were scanned whose task is not done: see `model/checkpoint.rs`.

CREATE TABLE object_checkpoints (
    -- The task, or the one it was split from.
    task_id         bigint NOT NULL,
    object_key_hash bytea  NOT NULL,
    number          bigint NOT NULL,
    -- JSON.
    body            text   NOT NULL,
    PRIMARY KEY (task_id, object_key_hash, number)
);
