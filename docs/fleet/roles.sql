-- Who may do what in the book's database.
--
-- Run it with psql as an administrator of the database: once before the first `domesday db migrate`, so that the
-- owner may make the tables, and again after every migration, so that the others get their rights on what is new.
-- Running it again is harmless. How a role proves who it is (a password, a certificate) is yours to set: ALTER ROLE
-- ... PASSWORD '...', pg_hba.conf.
--
--   domesday_owner         owns the tables: `domesday db migrate`, `db grant` and `db revoke`
--   domesday_operator      the command line, and orchestrators that fire schedules and relay events: every row, no table
--   domesday_orchestrator  what orchestrators of node groups may do: the jobs of their groups. It starts no job
--   domesday_worker        what workers may do: their own session, and the results of tasks of their groups. It cannot
--                          start, change or command a job, and changes no data source, template or rule set
--
-- The last two are bound to node groups by row-level security: a login that is given one of them sees the rows of the
-- node groups that `node_group_logins` has for it, and of no others; a login without an entry sees none.
-- The login is who connected: `SET ROLE` to another one that it is a member of changes nothing.
-- `domesday db grant NAME --as worker --node-group eu` makes both. The owner of the tables and superusers see everything.

DO $$
DECLARE
    role text;
BEGIN
    FOREACH role IN ARRAY ARRAY['domesday_owner', 'domesday_operator', 'domesday_orchestrator', 'domesday_worker'] LOOP
        BEGIN
            EXECUTE format('CREATE ROLE %I LOGIN', role);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN
            NULL;
        END;
        EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), role);
    END LOOP;
END $$;

REVOKE CREATE ON SCHEMA public FROM PUBLIC;
-- Nobody puts temporary things of their own in front of the book's; migrations may use some.
DO $$
BEGIN
    EXECUTE format('REVOKE CREATE, TEMPORARY ON DATABASE %I FROM PUBLIC', current_database());
    EXECUTE format('GRANT TEMPORARY ON DATABASE %I TO domesday_owner', current_database());
END $$;
GRANT USAGE ON SCHEMA public TO domesday_owner, domesday_operator, domesday_orchestrator, domesday_worker;
GRANT CREATE ON SCHEMA public TO domesday_owner;

DO $$
BEGIN
    IF to_regclass('schema_migrations') IS NULL THEN
        RAISE NOTICE 'there are no tables yet: run `domesday db migrate` as domesday_owner, and then this again';
        RETURN;
    END IF;

    -- What an older version of this file gave, and this one does not.
    REVOKE ALL ON ALL TABLES IN SCHEMA public FROM PUBLIC, domesday_operator, domesday_orchestrator, domesday_worker;
    REVOKE ALL ON ALL SEQUENCES IN SCHEMA public FROM PUBLIC, domesday_operator, domesday_orchestrator, domesday_worker;

    -- ── the operator ────────────────────────────────────────────────────────────────────────────────────

    GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO domesday_operator;
    REVOKE INSERT, UPDATE, DELETE ON schema_migrations, node_group_logins FROM domesday_operator;
    GRANT USAGE ON SEQUENCE event_positions, enumeration_batches_id_seq TO domesday_operator;

    -- ── workers and orchestrators ───────────────────────────────────────────────────────────────────────
    -- Columns that the database numbers, or that say who wrote a row, are never theirs to write: a row under a number to
    -- come would be in the way of whoever draws it.

    -- Whether the schema is the one they know, which key fingerprints are made with, and what they are bound to.
    GRANT SELECT ON schema_migrations, book_settings, node_group_logins TO domesday_worker, domesday_orchestrator;

    -- Who they are, what they can do, and that they live.
    GRANT SELECT ON worker_sessions TO domesday_worker, domesday_orchestrator;
    GRANT SELECT ON orchestrators TO domesday_orchestrator;
    GRANT INSERT (id, node_group, started_at, lease_expiry, host, version, slots, labels, fingerprint_key),
          UPDATE (lease_expiry, running, objects, bytes, findings, objects_per_second, bytes_per_second)
        ON worker_sessions TO domesday_worker;
    GRANT INSERT (id, node_group, started_at, lease_expiry, host, version, slots, labels, fingerprint_key),
          UPDATE (lease_expiry, running, objects, bytes, findings, objects_per_second, bytes_per_second)
        ON orchestrators TO domesday_orchestrator;

    -- What a job needs to know of its sources is in the job: nobody else reads their configuration and credentials.
    -- A lock needs the right to update some column: `row_lock` is there for that, and nobody reads it.
    GRANT SELECT ON jobs TO domesday_worker, domesday_orchestrator;
    GRANT SELECT (id, name, kind, node_group, worker_label, concurrency_limit), UPDATE (row_lock)
        ON datasources TO domesday_worker, domesday_orchestrator;
    GRANT UPDATE (row_lock) ON jobs TO domesday_worker;
    GRANT UPDATE (status, orchestrator_id, orchestrator_lease_expiry, version, master_pending_commands, failure_reason,
                  started_at, finished_at) ON jobs TO domesday_orchestrator;
    GRANT SELECT (id, pruned_at) ON master_jobs TO domesday_worker, domesday_orchestrator;

    -- Tasks are claimed, given back and completed; a worker never makes or removes one, or gives it other work.
    GRANT SELECT ON tasks TO domesday_worker, domesday_orchestrator;
    GRANT UPDATE (status, claim_id, worker_id, not_before, failures, abandonments, last_error, progress_at, objects,
                  nested, bytes, finished_at) ON tasks TO domesday_worker, domesday_orchestrator;
    GRANT INSERT (job_id, datasource_id, session_id, origin_id, type, status, priority, payload, abandonments, failures,
                  not_before, last_error, created_at) ON tasks TO domesday_orchestrator;

    -- What enumeration lists.
    GRANT SELECT ON enumeration_sessions, task_units, task_output_records, task_unit_skips
        TO domesday_worker, domesday_orchestrator;
    GRANT UPDATE (status, waiting_until, last_update) ON enumeration_sessions TO domesday_worker;
    GRANT INSERT (job_id, datasource_id, source_type, status, configuration, started_at, last_update, scan_key,
                  base_session_id),
          UPDATE (status, failure_reason, waiting_until, completed_at, last_update)
        ON enumeration_sessions TO domesday_orchestrator;
    GRANT SELECT ON enumeration_batches TO domesday_orchestrator;
    GRANT INSERT (session_id, status, checkpoint, expected_items, items_processed, error_details, started_at,
                  completed_at) ON enumeration_batches TO domesday_worker, domesday_orchestrator;
    GRANT INSERT (task_id, job_id, session_id, key, page, status, reason, detail, records, containers, objects, skipped,
                  unchanged, bytes, resume_point, fanned_out),
          UPDATE (status, reason, detail, records, containers, objects, skipped, unchanged, bytes, fanned_out)
        ON task_units TO domesday_worker, domesday_orchestrator;
    -- A container that is listed again from its beginning is cleared first; those of failed units are swept.
    GRANT DELETE ON task_output_records TO domesday_worker, domesday_orchestrator;
    GRANT INSERT, DELETE ON task_unit_skips TO domesday_worker, domesday_orchestrator;
    GRANT UPDATE (count) ON task_unit_skips TO domesday_worker, domesday_orchestrator;
    -- Rows that are swept are locked first.
    GRANT UPDATE (reason) ON task_output_records TO domesday_orchestrator;

    -- The targets they come upon, and what is new of those that are known.
    GRANT SELECT, INSERT (name, url, node_group, is_active, metadata, created_at, updated_at),
          UPDATE (name, is_active, metadata, updated_at) ON github_repos TO domesday_worker;
    GRANT SELECT, INSERT (url, node_group, metadata, created_at, updated_at), UPDATE (metadata, updated_at)
        ON url_targets TO domesday_worker;
    GRANT SELECT, INSERT (id, name, target_type, target_id, node_group, metadata, created_at),
          UPDATE (name, metadata) ON scan_targets TO domesday_worker, domesday_orchestrator;
    GRANT UPDATE (last_scan_time) ON scan_targets TO domesday_orchestrator;
    GRANT SELECT ON github_repos, url_targets TO domesday_orchestrator;
    GRANT SELECT, INSERT ON job_scan_targets TO domesday_worker, domesday_orchestrator;

    -- What classification finds: staged, then published. What is staged for a lost claim is swept.
    GRANT SELECT, DELETE ON staged_findings, staged_objects, staged_tables TO domesday_worker, domesday_orchestrator;
    GRANT INSERT ON staged_findings, staged_objects, staged_tables TO domesday_worker;
    GRANT UPDATE (sequence) ON staged_findings, staged_objects, staged_tables TO domesday_orchestrator;
    -- How far very large objects were scanned; likewise.
    GRANT SELECT, DELETE ON object_checkpoints TO domesday_worker, domesday_orchestrator;
    GRANT INSERT ON object_checkpoints TO domesday_worker;
    GRANT UPDATE (number) ON object_checkpoints TO domesday_orchestrator;
    GRANT SELECT, INSERT ON findings TO domesday_worker;
    GRANT UPDATE (last_seen, score) ON findings TO domesday_worker;
    GRANT INSERT ON finding_occurrences, table_observations TO domesday_worker;
    GRANT INSERT ON object_scans TO domesday_worker, domesday_orchestrator;
    -- What an earlier job found in objects that have not changed since is found again, without reading them.
    GRANT SELECT ON finding_occurrences, table_observations TO domesday_worker;
    GRANT SELECT ON object_scans TO domesday_worker, domesday_orchestrator;

    -- Where it came from: the list of what is to be looked up, and what was found out.
    GRANT SELECT, INSERT ON untraced_objects TO domesday_worker;
    GRANT SELECT, DELETE ON untraced_objects TO domesday_orchestrator;
    GRANT SELECT, INSERT ON object_origins TO domesday_worker;
    GRANT UPDATE (path, commit_id, author, time_ms, is_abandoned) ON object_origins TO domesday_worker;

    GRANT INSERT (job_id, kind, payload, created_at) ON events TO domesday_worker, domesday_orchestrator;

    -- Schedules and the relay of events are about all node groups: an operator's orchestrator sees to them. One that is
    -- bound to node groups looks, and finds nothing: there is no policy that shows it a row.
    GRANT SELECT ON scan_templates, schedule_firings, events, event_consumers TO domesday_orchestrator;
    GRANT UPDATE (position) ON events TO domesday_orchestrator;
END $$;

-- ── which rows ──────────────────────────────────────────────────────────────────────────────────────────────
-- A row belongs to the node group of its job or of its data source. `visible` is what a bound login may read, change and
-- delete, `written` what it may leave behind. A table that a condition reads has policies of its own, which hold there,
-- too: `EXISTS (SELECT 1 FROM jobs …)` is a job of the login's own groups. Plans that are made for an empty book have to be
-- right for a full one: OFFSET 0 has a condition looked up row by row, `+ 0` by its first comparison, and `|| ''` leaves
-- indexes by node group to the statements.

DO $$
DECLARE
    of_groups CONSTANT text :=
        '%s || '''' = ANY (ARRAY(SELECT l.node_group FROM node_group_logins l WHERE l.login = session_user))';
    own       CONSTANT text := format(of_groups, 'node_group');
    of_job    CONSTANT text := 'EXISTS (SELECT 1 FROM jobs j WHERE j.id = job_id OFFSET 0)';
    of_task   CONSTANT text :=
        'EXISTS (SELECT 1 FROM tasks t WHERE t.id = %1$I.task_id AND t.job_id + 0 = %1$I.job_id OFFSET 0)';
    staged    CONSTANT text := 'EXISTS (SELECT 1 FROM tasks t WHERE t.id = task_id OFFSET 0)';
    of_unit   CONSTANT text := 'EXISTS (SELECT 1 FROM task_units u WHERE u.id = unit_id OFFSET 0)';
    of_source CONSTANT text := 'EXISTS (SELECT 1 FROM datasources d WHERE d.id = datasource_id OFFSET 0)';
    of_list   CONSTANT text := 'EXISTS (SELECT 1 FROM enumeration_sessions s WHERE s.id = session_id OFFSET 0)';
    bound      CONSTANT text := 'domesday_worker, domesday_orchestrator';
    known     record;
    policy    text[];
BEGIN
    IF to_regclass('schema_migrations') IS NULL THEN
        RETURN;
    END IF;
    FOR known IN SELECT schemaname, tablename, policyname FROM pg_policies WHERE schemaname = 'public'
        AND policyname LIKE 'domesday\_%' LOOP
        EXECUTE format('DROP POLICY %I ON %I.%I', known.policyname, known.schemaname, known.tablename);
    END LOOP;
    FOR known IN SELECT tablename FROM pg_tables WHERE schemaname = 'public' AND tablename <> 'schema_migrations' LOOP
        EXECUTE format('ALTER TABLE public.%I ENABLE ROW LEVEL SECURITY', known.tablename);
        EXECUTE format('CREATE POLICY domesday_operator ON public.%I TO domesday_operator USING (true)', known.tablename);
    END LOOP;
    CREATE POLICY domesday_settings ON book_settings FOR SELECT TO domesday_worker, domesday_orchestrator USING (true);

    -- Table, roles, visible, written: the same where it is not said.
    FOREACH policy SLICE 1 IN ARRAY ARRAY[
        ['node_group_logins', bound, 'login = session_user', 'false'],
        ['jobs', bound, own, ''],
        ['master_jobs', bound, 'EXISTS (SELECT 1 FROM jobs j WHERE j.master_job_id = master_jobs.id OFFSET 0)', 'false'],
        ['datasources', bound, own, ''],
        -- A worker sees its login's sessions, so that nobody ends another's lease or works under it.
        ['worker_sessions', 'domesday_worker', 'login = session_user', 'login = session_user AND ' || own],
        ['worker_sessions', 'domesday_orchestrator', own, 'false'],
        ['orchestrators', 'domesday_orchestrator', 'login = session_user', 'login = session_user AND ' || own],
        -- Nor does a worker see tasks that run under another login, and with them their claims.
        ['tasks', 'domesday_worker',
            of_job || $q$ AND (
                status <> 'RUNNING' OR EXISTS (SELECT 1 FROM worker_sessions w WHERE w.id = worker_id OFFSET 0))$q$, ''],
        ['tasks', 'domesday_orchestrator', of_job,
            'EXISTS (SELECT 1 FROM enumeration_sessions s
                     WHERE s.id = session_id AND s.job_id + 0 = tasks.job_id
                     AND s.datasource_id + 0 = tasks.datasource_id OFFSET 0)'],
        ['enumeration_sessions', bound, of_job, of_job || ' AND ' || of_source],
        ['enumeration_batches', bound, of_list, ''],
        -- A unit belongs to a task of its job: else it would be in the way of another task's.
        ['task_units', bound, of_job,
            'EXISTS (SELECT 1 FROM tasks t WHERE t.id = task_id AND t.job_id + 0 = task_units.job_id
                     AND t.session_id = task_units.session_id OFFSET 0)'],
        ['task_output_records', bound, of_unit, ''],
        ['task_unit_skips', bound, of_unit, ''],
        ['staged_findings', bound, staged, ''],
        ['staged_objects', bound, staged, ''],
        ['staged_tables', bound, staged, ''],
        ['object_checkpoints', bound, staged, ''],
        ['findings', 'domesday_worker', of_source, ''],
        ['finding_occurrences', 'domesday_worker', of_job, format(of_task, 'finding_occurrences')],
        ['object_scans', bound, of_job, format(of_task, 'object_scans')],
        ['table_observations', 'domesday_worker', of_job,
            'EXISTS (SELECT 1 FROM tasks t WHERE t.id = task_id AND t.job_id + 0 = table_observations.job_id
                     AND t.datasource_id = table_observations.datasource_id OFFSET 0)'],
        ['github_repos', bound, own, ''],
        ['url_targets', bound, own, ''],
        ['scan_targets', bound, own, own || $q$ AND CASE target_type
            WHEN 'github_repository' THEN EXISTS (
                SELECT 1 FROM github_repos r WHERE r.id = target_id AND r.node_group = scan_targets.node_group OFFSET 0)
            WHEN 'url' THEN EXISTS (
                SELECT 1 FROM url_targets u WHERE u.id = target_id AND u.node_group = scan_targets.node_group OFFSET 0)
            ELSE EXISTS (
                SELECT 1 FROM datasources d
                WHERE d.id = target_id AND d.node_group = scan_targets.node_group OFFSET 0) END$q$],
        ['job_scan_targets', bound, of_job,
            'EXISTS (SELECT 1 FROM enumeration_sessions s
                     WHERE s.id = session_id AND s.job_id + 0 = job_scan_targets.job_id OFFSET 0)'],
        ['object_origins', 'domesday_worker', of_source, ''],
        ['untraced_objects', bound, of_list, '']
    ] LOOP
        EXECUTE format('CREATE POLICY %I ON public.%I TO %s USING (%s) WITH CHECK (%s)',
                       CASE policy[2] WHEN bound THEN 'domesday_bound' ELSE policy[2] END, policy[1], policy[2], policy[3],
                       CASE policy[4] WHEN '' THEN policy[3] ELSE policy[4] END);
    END LOOP;
    EXECUTE format('CREATE POLICY domesday_bound ON events FOR INSERT TO %s WITH CHECK (%s)', bound, of_job);
END $$;
