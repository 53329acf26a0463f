-- The real things that are scanned, each once, and where objects with findings came from; checkpoints that are not
-- a session's.

CREATE TABLE scan_targets (
    -- Hash of type and number: the same wherever it is made.
    id             bytea  PRIMARY KEY,
    name           text   NOT NULL,
    target_type    text   COLLATE "C" NOT NULL,
    -- Its number in the table of its type: `datasources`, `github_repos` or `url_targets`.
    target_id      bigint NOT NULL,
    metadata       text   NOT NULL,
    created_at     bigint NOT NULL,
    last_scan_time bigint,
    UNIQUE (target_type, target_id)
) WITH (fillfactor = 80);

-- A hash of the address, for that may be longer than an index entry can be.
CREATE TABLE github_repos (
    id         bigint  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       text    NOT NULL,
    url        text    NOT NULL,
    url_hash   bytea   NOT NULL UNIQUE,
    is_active  boolean NOT NULL,
    metadata   text    NOT NULL,
    created_at bigint  NOT NULL,
    updated_at bigint  NOT NULL
) WITH (fillfactor = 80);

CREATE TABLE url_targets (
    id         bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    url        text   NOT NULL,
    url_hash   bytea  NOT NULL UNIQUE,
    metadata   text   NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL
) WITH (fillfactor = 80);

-- Which targets a job came upon, and in which of its sessions.
CREATE TABLE job_scan_targets (
    job_id         bigint NOT NULL,
    scan_target_id bytea  NOT NULL,
    session_id     bigint NOT NULL,
    PRIMARY KEY (job_id, scan_target_id, session_id)
);

-- Known origins, living across jobs. An object of which nothing could be found out has no row, and is looked up
-- again by the next job that finds something in it.
CREATE TABLE object_origins (
    datasource_id bigint  NOT NULL,
    object_key    bytea   NOT NULL,
    path          bytea,
    commit_id     text    NOT NULL,
    author        text    NOT NULL,
    time_ms       bigint  NOT NULL,
    is_abandoned  boolean NOT NULL
);

CREATE UNIQUE INDEX object_origins_by_key ON object_origins (datasource_id, sha256(object_key));

-- Objects with findings whose origin is still to be looked up.
CREATE TABLE untraced_objects (
    session_id bigint NOT NULL,
    object_key bytea  NOT NULL
);

CREATE UNIQUE INDEX untraced_objects_by_key ON untraced_objects (session_id, sha256(object_key));

-- A session's checkpoint is still that of its last batch. These are numbered together with the batches, so that an
-- id means one checkpoint.
DROP VIEW checkpoints;

CREATE TABLE checkpoints (
    id         bigint PRIMARY KEY DEFAULT nextval('enumeration_batches_id_seq'),
    target     text   COLLATE "C" NOT NULL UNIQUE,
    data       text   NOT NULL,
    updated_at bigint NOT NULL
);
