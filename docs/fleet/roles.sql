-- Who may do what in the book's database.
--
-- Run it with psql as an administrator of the database: once before the first `domesday db migrate`, so that the
-- owner may make the tables, and again after every migration, so that the others get their rights on what is new.
-- Running it again is harmless. Rights are given to roles that may log in; how they prove who they are (a
-- password, a certificate) is yours to set: ALTER ROLE domesday_worker PASSWORD '...', pg_hba.conf.
--
--   domesday_owner     owns the tables: `domesday db migrate`, and nothing else
--   domesday_operator  the command line and orchestrators: every row, no table
--   domesday_worker    workers: their own session, and the results of tasks. It cannot start, change or command a
--                      job, and changes no data source, template or rule set.

DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['domesday_owner', 'domesday_operator', 'domesday_worker'] LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I LOGIN', role);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;
        END;
        EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), role);
    END LOOP;
END $$;

REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO domesday_owner, domesday_operator, domesday_worker;
GRANT CREATE ON SCHEMA public TO domesday_owner;

DO $$
BEGIN
    IF to_regclass('schema_migrations') IS NULL THEN
        RAISE NOTICE 'there are no tables yet: run `domesday db migrate` as domesday_owner, and then this again';
        RETURN;
    END IF;

    -- What an older version of this file gave, and this one does not.
    REVOKE ALL ON ALL TABLES IN SCHEMA public FROM domesday_operator, domesday_worker;
    REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM domesday_operator, domesday_worker;

    -- ── the operator ────────────────────────────────────────────────────────────────────────────────────

    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO domesday_operator;
    REVOKE INSERT, UPDATE, DELETE ON schema_migrations FROM domesday_operator;
    GRANT USAGE ON SEQUENCE event_positions, enumeration_batches_id_seq TO domesday_operator;

    -- ── the worker ──────────────────────────────────────────────────────────────────────────────────────

    -- Whether the schema is the one it knows, which key fingerprints are made with, and what to look for.
    GRANT SELECT ON schema_migrations, book_settings, rule_sets TO domesday_worker;

    -- Its own session: who it is, what it can do, and that it lives.
    GRANT SELECT, INSERT ON worker_sessions TO domesday_worker;
    GRANT UPDATE (lease_expiry, running, objects, bytes, findings, objects_per_second, bytes_per_second)
        ON worker_sessions TO domesday_worker;

    -- Jobs and data sources are read, and locked while tasks are claimed. A lock needs the right to update some
    -- column: `row_lock` is there for that, and nobody reads it.
    GRANT SELECT ON jobs, datasources TO domesday_worker;
    GRANT UPDATE (row_lock) ON jobs, datasources TO domesday_worker;

    -- Tasks are claimed, given back and completed; never made, removed, or given other work.
    GRANT SELECT ON tasks TO domesday_worker;
    GRANT UPDATE (status, claim_id, worker_id, not_before, failures, abandonments, last_error, progress_at, objects,
                  nested, bytes, finished_at) ON tasks TO domesday_worker;

    -- What enumeration lists.
    GRANT SELECT ON enumeration_sessions TO domesday_worker;
    GRANT UPDATE (status, waiting_until, last_update) ON enumeration_sessions TO domesday_worker;
    GRANT INSERT ON enumeration_batches TO domesday_worker;
    GRANT SELECT, INSERT ON task_units TO domesday_worker;
    GRANT UPDATE (status, reason, detail, records, containers, objects, skipped, unchanged, bytes, fanned_out)
        ON task_units TO domesday_worker;
    -- A container that is listed again from its beginning is cleared first.
    GRANT SELECT, INSERT, DELETE ON task_output_records TO domesday_worker;
    GRANT SELECT, INSERT, UPDATE, DELETE ON task_unit_skips TO domesday_worker;

    -- The targets it comes upon, and what is new of those that are known.
    GRANT SELECT, INSERT ON github_repos, url_targets, scan_targets, job_scan_targets TO domesday_worker;
    GRANT UPDATE (name, is_active, metadata, updated_at) ON github_repos TO domesday_worker;
    GRANT UPDATE (metadata, updated_at) ON url_targets TO domesday_worker;
    GRANT UPDATE (name, metadata) ON scan_targets TO domesday_worker;

    -- What classification finds: staged, then published.
    GRANT SELECT, INSERT, DELETE ON staged_findings, staged_objects, staged_tables TO domesday_worker;
    GRANT SELECT, INSERT ON findings TO domesday_worker;
    GRANT UPDATE (last_seen, score) ON findings TO domesday_worker;
    GRANT INSERT ON finding_occurrences, object_scans, table_observations TO domesday_worker;
    -- What an earlier job found in objects that have not changed since is found again, without reading them.
    GRANT SELECT ON finding_occurrences, object_scans, table_observations TO domesday_worker;
    GRANT SELECT (id, pruned_at) ON master_jobs TO domesday_worker;

    -- Where it came from: the list of what is to be looked up, and what was found out.
    GRANT SELECT, INSERT, DELETE ON untraced_objects TO domesday_worker;
    GRANT SELECT, INSERT ON object_origins TO domesday_worker;
    GRANT UPDATE (path, commit_id, author, time_ms, is_abandoned) ON object_origins TO domesday_worker;

    GRANT INSERT ON events TO domesday_worker;
END $$;
