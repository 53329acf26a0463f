-- Objects that a job reads again, because they could not be read whole: the results of one reading take the place of the
-- other's. Rows of results are deleted by nobody else, so workers call this, and have no right to delete.

-- What a task says of these objects takes the place of what other tasks of its session said, unless it failed outright
-- where another had got something. Only for a task that was made to read again, or is a part of one.
CREATE FUNCTION replace_results(task bigint, objects bytea[]) RETURNS void
    LANGUAGE plpgsql VOLATILE SECURITY DEFINER AS $$
DECLARE
    reader  record;
    object  bytea;
    earlier bigint[];
    losers  bigint[];
BEGIN
    SELECT t.job_id, t.session_id, t.datasource_id, t.failures INTO reader
    FROM tasks t
    WHERE t.id = $1 AND t.origin_id IS NOT NULL;
    IF NOT FOUND OR NOT caller_sees_job(reader.job_id) THEN
        RETURN;
    END IF;
    FOREACH object IN ARRAY $2 LOOP
        SELECT array_agg(DISTINCT o.task_id) INTO earlier
        FROM object_scans o
        JOIN tasks t ON t.id = o.task_id
        WHERE o.job_id + 0 = reader.job_id AND sha256(o.object_key) = sha256(object) AND o.task_id <> $1
          AND t.session_id = reader.session_id;
        CONTINUE WHEN earlier IS NULL;
        losers := earlier;
        IF EXISTS (
               SELECT 1 FROM object_scans o
               WHERE o.job_id + 0 = reader.job_id AND sha256(o.object_key) = sha256(object) AND o.task_id = $1
                 AND o.nested_path = ''::bytea AND o.status = 'failed')
           AND EXISTS (
               SELECT 1 FROM object_scans o
               WHERE o.job_id + 0 = reader.job_id AND sha256(o.object_key) = sha256(object)
                 AND o.task_id = ANY (earlier) AND o.status <> 'failed') THEN
            -- Whatever stays with a task was tried as often as this one tried it.
            UPDATE tasks t SET failures = greatest(t.failures, reader.failures) WHERE t.id = ANY (earlier);
            losers := ARRAY[$1];
        END IF;
        DELETE FROM finding_occurrences o
        USING findings f
        WHERE o.job_id = reader.job_id AND o.task_id = ANY (losers)
          AND f.id = o.finding_id AND f.datasource_id = reader.datasource_id AND f.object_key = object;
        DELETE FROM table_observations o
        WHERE o.job_id = reader.job_id AND o.task_id = ANY (losers) AND o.part_key = object;
        DELETE FROM object_scans o
        WHERE o.job_id = reader.job_id AND o.task_id = ANY (losers) AND o.object_key = object;
    END LOOP;
END $$;

DO $$
BEGIN
    EXECUTE format('ALTER FUNCTION replace_results(bigint, bytea[]) SET search_path = pg_catalog, %I, pg_temp',
                   current_schema());
END $$;
