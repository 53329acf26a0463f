-- The real things that are scanned, each once, and where objects with findings came from.

CREATE TABLE scan_targets (
    -- Hash of type and number: the same wherever it is made.
    id             BLOB    NOT NULL PRIMARY KEY,
    name           TEXT    NOT NULL,
    target_type    TEXT    NOT NULL,
    -- Its number in the table of its type: `datasources`, `github_repos` or `url_targets`.
    target_id      INTEGER NOT NULL,
    metadata       TEXT    NOT NULL,
    created_at     INTEGER NOT NULL,
    last_scan_time INTEGER,
    UNIQUE (target_type, target_id)
) STRICT, WITHOUT ROWID;

CREATE TABLE github_repos (
    id         INTEGER PRIMARY KEY,
    name       TEXT    NOT NULL,
    url        TEXT    NOT NULL UNIQUE,
    is_active  INTEGER NOT NULL,
    metadata   TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE url_targets (
    id         INTEGER PRIMARY KEY,
    url        TEXT    NOT NULL UNIQUE,
    metadata   TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

-- Which targets a job came upon, and in which of its sessions.
CREATE TABLE job_scan_targets (
    job_id         INTEGER NOT NULL,
    scan_target_id BLOB    NOT NULL,
    session_id     INTEGER NOT NULL,
    PRIMARY KEY (job_id, scan_target_id, session_id)
) STRICT, WITHOUT ROWID;

-- Known origins, living across jobs. An object of which nothing could be found out has no row, and is looked up
-- again by the next job that finds something in it.
CREATE TABLE object_origins (
    datasource_id INTEGER NOT NULL,
    object_key    BLOB    NOT NULL,
    path          BLOB,
    commit_id     TEXT    NOT NULL,
    author        TEXT    NOT NULL,
    time_ms       INTEGER NOT NULL,
    is_abandoned  INTEGER NOT NULL,
    PRIMARY KEY (datasource_id, object_key)
) STRICT, WITHOUT ROWID;

-- Objects with findings whose origin is still to be looked up.
CREATE TABLE untraced_objects (
    session_id INTEGER NOT NULL,
    object_key BLOB    NOT NULL,
    PRIMARY KEY (session_id, object_key)
) STRICT, WITHOUT ROWID;
