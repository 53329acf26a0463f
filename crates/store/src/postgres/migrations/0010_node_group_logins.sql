-- Logins of workers and orchestrators that are bound to node groups. `docs/fleet/roles.sql` makes the policies
-- (row-level security) that hold them to it; here is what those need.
--
-- Under a policy PostgreSQL uses an index only for comparisons that cannot tell anything of rows the policy hides
-- (LEAKPROOF). `sha256(key) = …` is none of these, so the lookups by key are functions that run as the owner of the
-- tables. Each of them checks by itself what its caller may see, has a fixed search_path, and runs no SQL that it is
-- given.

-- Which login may work for which node groups. Only the owner of the tables writes it.
CREATE TABLE node_group_logins (
    login      name NOT NULL,
    node_group text NOT NULL,
    created_at bigint NOT NULL DEFAULT now_ms(),
    PRIMARY KEY (login, node_group)
);

-- NULL: a session from before this migration, which nobody renews.
ALTER TABLE worker_sessions ADD COLUMN login name;
ALTER TABLE worker_sessions ALTER COLUMN login SET DEFAULT current_user;
ALTER TABLE orchestrators ADD COLUMN login name;
ALTER TABLE orchestrators ALTER COLUMN login SET DEFAULT current_user;

-- A finding's id is a hash that workers compute. Nobody can take the place of another data source's finding with it.
ALTER TABLE findings DROP CONSTRAINT findings_pkey;
ALTER TABLE findings ADD PRIMARY KEY (id, datasource_id);

-- ── targets ─────────────────────────────────────────────────────────────────────────────────────────────
-- A node group's targets are its own: what another group says of the same address is another row.

CREATE FUNCTION url_key(url text) RETURNS bytea LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$ SELECT pg_catalog.sha256(pg_catalog.convert_to(url, 'UTF8')) $$;

ALTER TABLE github_repos ADD COLUMN node_group text NOT NULL DEFAULT '';
ALTER TABLE url_targets  ADD COLUMN node_group text NOT NULL DEFAULT '';
ALTER TABLE scan_targets ADD COLUMN node_group text NOT NULL DEFAULT '';

UPDATE scan_targets t SET node_group = coalesce(
    (SELECT min(j.node_group) FROM job_scan_targets l JOIN jobs j ON j.id = l.job_id WHERE l.scan_target_id = t.id),
    (SELECT d.node_group FROM datasources d WHERE t.target_type = 'datasource' AND d.id = t.target_id), '');
UPDATE github_repos r SET node_group = t.node_group
FROM scan_targets t WHERE t.target_type = 'github_repository' AND t.target_id = r.id;
UPDATE url_targets u SET node_group = t.node_group
FROM scan_targets t WHERE t.target_type = 'url' AND t.target_id = u.id;

-- By the address itself: a hash that a client computed may be another address's.
ALTER TABLE github_repos DROP COLUMN url_hash;
ALTER TABLE url_targets  DROP COLUMN url_hash;
CREATE UNIQUE INDEX github_repos_by_url ON github_repos (url_key(url), node_group);
CREATE UNIQUE INDEX url_targets_by_url ON url_targets (url_key(url), node_group);
-- Likewise the id, which is a hash of type and number: rows are told apart by these, and whoever reads a row with an id
-- that is not its own passes over it.
ALTER TABLE scan_targets DROP CONSTRAINT scan_targets_pkey;
CREATE INDEX scan_targets_by_id ON scan_targets (id);

-- ── who asks ────────────────────────────────────────────────────────────────────────────────────────────

-- The role that a function with its owner's rights was called by. `role` is what SET ROLE was given.
CREATE FUNCTION caller() RETURNS name LANGUAGE sql STABLE
    AS $$ SELECT CASE pg_catalog.current_setting('role') WHEN 'none' THEN session_user
                 ELSE pg_catalog.current_setting('role')::name END $$;

-- Whoever may delete jobs is bound to no node group: the owner, an operator.
CREATE FUNCTION caller_sees_job(bigint) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN has_table_privilege(caller(), 'jobs', 'DELETE')
        OR EXISTS (SELECT 1 FROM jobs j JOIN node_group_logins l ON l.login = caller() AND l.node_group = j.node_group
                   WHERE j.id = $1);
END $$;

-- ── lookups by key ──────────────────────────────────────────────────────────────────────────────────────
-- STABLE: with the snapshot of the statement that asks.

-- The unit of a task for a page of a container.
CREATE FUNCTION unit_at(task bigint, container bytea, at_page bigint) RETURNS bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
DECLARE
    found_id bigint;
    of_job   bigint;
BEGIN
    SELECT u.id, u.job_id INTO found_id, of_job
    FROM task_units u
    WHERE u.task_id = $1 AND sha256(u.key) = sha256($2) AND u.page = $3;
    RETURN CASE WHEN caller_sees_job(of_job) THEN found_id END;
END $$;

-- The unit of the last page of a container.
CREATE FUNCTION last_unit(task bigint, container bytea) RETURNS bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
DECLARE
    found_id bigint;
    of_job   bigint;
BEGIN
    SELECT u.id, u.job_id INTO found_id, of_job
    FROM task_units u
    WHERE u.task_id = $1 AND sha256(u.key) = sha256($2)
    ORDER BY u.page DESC
    LIMIT 1;
    RETURN CASE WHEN caller_sees_job(of_job) THEN found_id END;
END $$;

-- Committed units of containers that have objects, by the containers' places.
CREATE FUNCTION units_of_session(job bigint, session bigint, containers bytea[])
    RETURNS TABLE (n bigint, unit_id bigint, unit_page bigint)
    LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    IF caller_sees_job($1) THEN
        RETURN QUERY
        SELECT k.place, u.id, u.page
        FROM unnest($3) WITH ORDINALITY AS k (key, place)
        CROSS JOIN LATERAL (
            SELECT t.id, t.page
            FROM task_units t
            WHERE t.job_id = $1 AND t.status = 'COMMITTED' AND t.session_id = $2 AND sha256(t.key) = sha256(k.key)
              AND t.objects + t.unchanged > 0
            OFFSET 0) u;
    END IF;
END $$;

-- What a job says of objects: places of the objects, and the rows.
CREATE FUNCTION scans_of_objects(job bigint, objects bytea[])
    RETURNS TABLE (n bigint, scan_task bigint, scan_sequence bigint)
    LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    IF caller_sees_job($1) THEN
        RETURN QUERY
        SELECT k.place, o.task_id, o.sequence
        FROM unnest($2) WITH ORDINALITY AS k (key, place)
        CROSS JOIN LATERAL (
            SELECT s.task_id, s.sequence
            FROM object_scans s
            WHERE s.job_id + 0 = $1 AND sha256(s.object_key) = sha256(k.key)
            OFFSET 0) o;
    END IF;
END $$;

-- Whether a task said something of an object.
CREATE FUNCTION has_scan(job bigint, task bigint, object bytea) RETURNS boolean
    LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    RETURN caller_sees_job($1) AND EXISTS (
        SELECT 1 FROM object_scans o
        WHERE o.job_id + 0 = $1 AND sha256(o.object_key) = sha256($3) AND o.task_id + 0 = $2);
END $$;

-- Whether it is known where an object came from, in a way that does not change.
CREATE FUNCTION has_origin(job bigint, datasource bigint, object bytea) RETURNS boolean
    LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    RETURN caller_sees_job($1)
        AND EXISTS (SELECT 1 FROM enumeration_sessions s WHERE s.job_id = $1 AND s.datasource_id = $2)
        AND EXISTS (
            SELECT 1 FROM object_origins k
            WHERE k.datasource_id = $2 AND sha256(k.object_key) = sha256($3)
              AND k.commit_id <> '' AND NOT k.is_abandoned);
END $$;

CREATE FUNCTION delete_untraced(session bigint, objects bytea[]) RETURNS void
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER AS $$
BEGIN
    IF caller_sees_job((SELECT s.job_id FROM enumeration_sessions s WHERE s.id = $1)) THEN
        DELETE FROM untraced_objects o
        USING unnest($2) AS k (key)
        WHERE o.session_id = $1 AND sha256(o.object_key) = sha256(k.key);
    END IF;
END $$;

-- ── records ─────────────────────────────────────────────────────────────────────────────────────────────
-- They are what there is most of: a policy would look up each one's unit, and this looks up each unit's job once.

CREATE FUNCTION insert_records(
    units bigint[], sequences bigint[], kinds smallint[], names bytea[], hashes bytea[], sizes bigint[], mtimes bigint[],
    ctimes bigint[], inodes bigint[], tags bytea[], reasons text[], metadata text[]) RETURNS void
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER AS $$
BEGIN
    IF EXISTS (
        SELECT 1
        FROM (
            SELECT DISTINCT t.job_id
            FROM (SELECT DISTINCT u FROM unnest($1) u) d
            LEFT JOIN task_units t ON t.id = ANY (ARRAY[d.u])) j
        WHERE NOT caller_sees_job(j.job_id)) THEN
        RAISE 'permission denied for units of another node group' USING ERRCODE = 'insufficient_privilege';
    END IF;
    INSERT INTO task_output_records
        (unit_id, sequence, kind, name, object_key_hash, size, mtime_ns, ctime_ns, inode, tag, reason, metadata)
    SELECT * FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);
END $$;

-- ── what a claim weighs ─────────────────────────────────────────────────────────────────────────────────
-- A worker sees no tasks that run under another login, and counts them all the same.

CREATE FUNCTION running_tasks_of_job(job bigint) RETURNS bigint LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    RETURN CASE WHEN caller_sees_job($1)
        THEN (SELECT count(*) FROM tasks r WHERE r.job_id = $1 AND r.status = 'RUNNING') END;
END $$;

CREATE FUNCTION running_tasks_of_datasource(job bigint, datasource bigint) RETURNS bigint
    LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    RETURN CASE WHEN caller_sees_job($1)
            AND EXISTS (SELECT 1 FROM enumeration_sessions s WHERE s.job_id = $1 AND s.datasource_id = $2)
        THEN (SELECT count(*) FROM tasks r
              WHERE r.status = 'RUNNING' AND r.datasource_id = $2
                AND r.job_id IN (SELECT j.id FROM jobs j WHERE j.status IN ('RUNNING', 'PAUSING'))) END;
END $$;

-- Rules are had by their hash, which is known to whoever has a job with them; nobody reads what there is.
CREATE FUNCTION rules_of(bytea) RETURNS text LANGUAGE plpgsql STABLE SECURITY DEFINER AS $$
BEGIN
    RETURN (SELECT r.rules FROM rule_sets r WHERE r.hash = $1);
END $$;

-- ── logins ──────────────────────────────────────────────────────────────────────────────────────────────
-- With the rights of whoever calls them: an administrator who may make roles, and owns the tables.

CREATE FUNCTION grant_login(login name, bound_role name, node_groups text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF $2 NOT IN ('domesday_worker', 'domesday_orchestrator') THEN
        RAISE '% is no role of workers or orchestrators', $2 USING ERRCODE = 'invalid_parameter_value';
    END IF;
    IF NOT EXISTS (SELECT 1 FROM pg_catalog.pg_roles r WHERE r.rolname = $1) THEN
        EXECUTE format('CREATE ROLE %I LOGIN', $1);
    END IF;
    IF $1 <> $2 THEN
        EXECUTE format('GRANT %I TO %I', $2, $1);
    END IF;
    EXECUTE format('GRANT CONNECT ON DATABASE %I TO %I', current_database(), $1);
    INSERT INTO node_group_logins (login, node_group)
        SELECT $1, g FROM unnest($3) g ON CONFLICT ON CONSTRAINT node_group_logins_pkey DO NOTHING;
END $$;

-- From all node groups, or these; its connections end. Whether the login was bound to any.
CREATE FUNCTION revoke_login(login name, node_groups text[]) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    was_bound boolean;
BEGIN
    DELETE FROM node_group_logins l WHERE l.login = $1 AND ($2 IS NULL OR l.node_group = ANY ($2));
    was_bound := FOUND;
    IF was_bound THEN
        PERFORM pg_catalog.pg_terminate_backend(a.pid)
        FROM pg_catalog.pg_stat_activity a
        WHERE a.usename = $1 AND a.datname = current_database();
    END IF;
    RETURN was_bound;
END $$;

-- Names in the functions mean the book's own things, whatever a caller has put in front of them.
DO $$
DECLARE
    of_book regprocedure;
BEGIN
    FOR of_book IN
        SELECT p.oid::regprocedure FROM pg_proc p
        WHERE p.pronamespace = current_schema()::regnamespace
          AND p.proname IN ('caller_sees_job', 'unit_at', 'last_unit', 'units_of_session', 'scans_of_objects', 'has_scan',
                            'has_origin', 'delete_untraced', 'insert_records', 'running_tasks_of_job',
                            'running_tasks_of_datasource', 'rules_of', 'grant_login', 'revoke_login')
    LOOP
        EXECUTE format('ALTER FUNCTION %s SET search_path = pg_catalog, %I, pg_temp', of_book, current_schema());
    END LOOP;
END $$;
