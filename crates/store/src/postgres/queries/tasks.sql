-- Tasks: claims, the fence, giving back, reaping.
--
-- Plans are made when tables may be empty, and are kept for when they are not. While a table is empty, to the
-- planner any of its indexes is as good as the right one. So a statement leaves it no choice: what is known by its
-- id is looked up by that, one after the other (LATERAL, or `= ANY (ARRAY[…])`, which it cannot turn round);
-- `status || ''` is not what the index of pending or of running tasks is for, and `id + 0` has no index.

-- The fence and the completion of many tasks, in the order of their ids: those that are held, each with how many
-- results are staged for it. Where those are as many as are said to be ($3), the task is done; else somebody
-- must look for what is missing, and it stays as it was.
-- name: complete_classifications
WITH asked AS MATERIALIZED (
    SELECT *
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[]) WITH ORDINALITY
        AS a (id, claim_id, results, objects, nested, bytes, n)
    ORDER BY id),
counted AS MATERIALIZED (
    SELECT a.*, t.job_id, t.datasource_id,
           (SELECT count(*) FROM staged_findings s WHERE s.task_id = a.id AND s.claim_id = a.claim_id)
         + (SELECT count(*) FROM staged_objects s WHERE s.task_id = a.id AND s.claim_id = a.claim_id)
         + (SELECT count(*) FROM staged_tables s WHERE s.task_id = a.id AND s.claim_id = a.claim_id) AS staged
    FROM asked a
    CROSS JOIN LATERAL (
        SELECT t.job_id, t.datasource_id
        FROM tasks t
        WHERE t.id = a.id AND t.status || '' = 'RUNNING' AND t.claim_id = a.claim_id
          AND (SELECT j.status FROM jobs j WHERE j.id = t.job_id) IN ('RUNNING', 'PAUSING')
        FOR UPDATE) t),
done AS (
    UPDATE tasks t
    SET status = 'COMPLETED', finished_at = now_ms(), objects = c.objects, nested = c.nested, bytes = c.bytes
    FROM counted c
    WHERE t.id = ANY (ARRAY[c.id]) AND c.staged = c.results)
SELECT n, job_id, datasource_id, staged FROM counted;

-- As `no_fence`.
-- name: complete_classifications_without_fence
WITH counted AS (
    SELECT t.id, t.job_id, t.datasource_id, a.results, a.objects, a.nested, a.bytes, a.n,
           (SELECT count(*) FROM staged_findings s WHERE s.task_id = a.id AND s.claim_id = a.claim_id)
         + (SELECT count(*) FROM staged_objects s WHERE s.task_id = a.id AND s.claim_id = a.claim_id)
         + (SELECT count(*) FROM staged_tables s WHERE s.task_id = a.id AND s.claim_id = a.claim_id) AS staged
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[]) WITH ORDINALITY
        AS a (id, claim_id, results, objects, nested, bytes, n)
    JOIN tasks t ON t.id = a.id),
done AS (
    UPDATE tasks t
    SET status = 'COMPLETED', finished_at = now_ms(), objects = c.objects, nested = c.nested, bytes = c.bytes
    FROM counted c
    WHERE t.id = c.id AND c.staged = c.results)
SELECT n, job_id, datasource_id, staged FROM counted;

-- Only the fan-out, the start of a session, the split of a task and what tries again what one could not do make tasks,
-- each with its event.
-- name: insert_tasks
WITH made AS (
    INSERT INTO tasks
        (job_id, datasource_id, session_id, origin_id, type, status, priority, payload, abandonments, failures,
         not_before, last_error, created_at)
    SELECT n.job_id, n.datasource_id, n.session_id, n.origin_id, n.type, 'PENDING', n.priority, n.payload,
           n.abandonments, n.failures, CASE n.wait_ms WHEN 0 THEN 0 ELSE now_ms() + n.wait_ms END, n.why, now_ms()
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::bigint[], $5::text[], $6::bigint[], $7::text[],
                $8::bigint[], $9::bigint[], $10::bigint[], $11::text[]) WITH ORDINALITY
        AS n (job_id, datasource_id, session_id, origin_id, type, priority, payload, abandonments, failures, wait_ms,
              why, n)
    ORDER BY n.n
    RETURNING id, job_id, type)
INSERT INTO events (job_id, kind, payload, created_at)
SELECT job_id, 'TaskCreated', json_build_object('task', id, 'type', type)::text, now_ms() FROM made ORDER BY id;

-- Data sources with a limit, one claim after the other: the next statement's snapshot then has every task
-- of theirs that runs. Sources without one are claimed from by everyone at once. In the order of names, as
-- whoever submits a job meets them.
-- name: lock_limited_datasources
SELECT d.id
FROM datasources d
WHERE d.concurrency_limit IS NOT NULL
  AND d.id IN (
      SELECT s.datasource_id
      FROM jobs j
      JOIN enumeration_sessions s ON s.job_id = j.id
      WHERE j.node_group = $1 AND j.status = 'RUNNING')
ORDER BY d.name
FOR NO KEY UPDATE;

-- Round-robin: one task of each job in turn, those with the fewest running tasks first, by priority and age
-- within one; a data source gives no more than it may. Candidates are read without locks, and of each job
-- and source more than are wanted ($5), so that claims at the same moment find tasks that others did not take.
-- A claim needs a live worker session: one whose lease expired gets nothing. It has the fingerprint key of the
-- job, and the label that a source asks for; the backlog of a source that it may not read is not looked at.
-- name: claim_tasks
WITH open AS (
    SELECT j.id, j.priority
    FROM jobs j
    WHERE j.node_group = $2
      AND j.status = 'RUNNING'
      AND EXISTS (
          SELECT 1 FROM worker_sessions w
          WHERE w.id = $1 AND w.lease_expiry > now_ms() AND w.fingerprint_key = j.fingerprint_key)
    ORDER BY j.id
    FOR KEY SHARE SKIP LOCKED),
turns AS (
    SELECT o.id, row_number() OVER (
        ORDER BY running_tasks_of_job(o.id), o.priority DESC, o.id) AS turn
    FROM open o),
sources AS (
    SELECT s.job_id, s.datasource_id, u.turn,
           CASE WHEN d.concurrency_limit IS NOT NULL
                THEN greatest(0, d.concurrency_limit - running_tasks_of_datasource(u.id, d.id)) END AS room
    FROM turns u
    CROSS JOIN LATERAL (
        SELECT e.job_id, e.datasource_id FROM enumeration_sessions e WHERE e.job_id = u.id OFFSET 0) s
    JOIN datasources d ON d.id = ANY (ARRAY[s.datasource_id])
    WHERE d.worker_label IS NULL
       OR EXISTS (SELECT 1 FROM worker_sessions w WHERE w.id = $1 AND d.worker_label = ANY (w.labels))),
candidates AS (
    SELECT t.id, s.datasource_id, s.room, s.turn,
           row_number() OVER (PARTITION BY s.job_id ORDER BY t.priority DESC, t.id) AS round
    FROM sources s
    CROSS JOIN LATERAL (
        SELECT c.id, c.priority
        FROM tasks c
        WHERE c.job_id = s.job_id AND c.datasource_id = s.datasource_id AND c.type = $3 AND c.status = 'PENDING'
          AND c.not_before <= (SELECT now_ms())
        ORDER BY c.priority DESC, c.id
        LIMIT least($5::bigint, s.room)) t),
ordered AS MATERIALIZED (
    SELECT id, round, turn
    FROM (
        SELECT id, round, turn, room, row_number() OVER (PARTITION BY datasource_id ORDER BY round, turn) AS of_source
        FROM candidates) c
    WHERE room IS NULL OR of_source <= room
    ORDER BY round, turn),
-- One after the other in that order, until there are enough: of the others none is looked at or locked.
picked AS (
    SELECT o.id, o.round, o.turn
    FROM ordered o
    CROSS JOIN LATERAL (
        SELECT 1 FROM tasks t WHERE t.id = o.id AND t.status || '' = 'PENDING' FOR UPDATE SKIP LOCKED) t
    LIMIT $4),
claimed AS (
    UPDATE tasks t
    SET status = 'RUNNING', claim_id = (random() * 9007199254740991)::bigint, worker_id = $1, progress_at = now_ms()
    FROM picked p
    WHERE t.id = ANY (ARRAY[p.id])
    RETURNING t.id, t.claim_id, t.job_id, t.session_id, t.type, t.payload, t.failures, t.datasource_id, t.origin_id,
              p.round, p.turn)
SELECT c.id, c.claim_id, c.job_id, c.session_id, c.type, c.payload, c.failures, c.datasource_id, d.name,
       -- Once per job: it may be long.
       CASE WHEN row_number() OVER (PARTITION BY c.job_id ORDER BY c.round) = 1 THEN j.configuration END,
       b.id, b.job_id, b.started_at, c.origin_id IS NOT NULL
FROM claimed c
JOIN jobs j ON j.id = c.job_id
JOIN datasources d ON d.id = c.datasource_id
LEFT JOIN enumeration_sessions s ON s.id = c.session_id
LEFT JOIN enumeration_sessions b ON b.id = s.base_session_id
ORDER BY c.round, c.turn;

-- name: packet_records
SELECT u.key, r.name, r.size, r.mtime_ns, r.ctime_ns, r.inode, r.tag, r.kind, r.metadata
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS p (unit_id, first, past, n)
JOIN task_units u ON u.id = ANY (ARRAY[p.unit_id]) AND u.status || '' = 'COMMITTED'
JOIN task_output_records r ON r.unit_id = ANY (ARRAY[p.unit_id]) AND r.sequence >= p.first AND r.sequence < p.past
WHERE r.kind = ANY ($4::smallint[])
ORDER BY p.n, r.sequence;

-- The same with their places.
-- name: packet_sequences
SELECT u.key, r.name, u.id, r.sequence
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) WITH ORDINALITY AS p (unit_id, first, past, n)
JOIN task_units u ON u.id = ANY (ARRAY[p.unit_id]) AND u.status || '' = 'COMMITTED'
JOIN task_output_records r ON r.unit_id = ANY (ARRAY[p.unit_id]) AND r.sequence >= p.first AND r.sequence < p.past
WHERE r.kind = ANY ($4::smallint[])
ORDER BY p.n, r.sequence;

-- name: complete_task
UPDATE tasks
SET status = 'COMPLETED', finished_at = now_ms()
WHERE id = $1;

-- Of all the tasks of one worker that move, in one statement. A task that somebody else holds at this moment is being
-- written to under its claim, or taken away from it: there is no need to wait.
-- name: renew_progress
WITH moving AS MATERIALIZED (
    SELECT t.id
    FROM unnest($1::bigint[], $2::bigint[]) AS c (id, claim_id)
    CROSS JOIN LATERAL (
        SELECT t.id FROM tasks t
        WHERE t.id = c.id AND t.status || '' = 'RUNNING' AND t.claim_id = c.claim_id
        FOR UPDATE SKIP LOCKED) t)
UPDATE tasks t SET progress_at = now_ms() FROM moving m WHERE t.id = ANY (ARRAY[m.id]);

-- Locks whatever claim has the task and whatever its status, so that a commit still under way is waited for.
-- name: tasks_done_under_claims
WITH asked AS (
    SELECT c.n, t.claim_id = c.claim_id AND t.status = 'COMPLETED' AS done
    FROM unnest($1::bigint[], $2::bigint[]) WITH ORDINALITY AS c (id, claim_id, n)
    JOIN tasks t ON t.id = ANY (ARRAY[c.id])
    ORDER BY c.id
    FOR UPDATE OF t)
SELECT n FROM asked WHERE done;

-- Tasks whose worker's lease expired, which no renewal brings back, or that made no progress past the
-- deadline although it lives. They stay locked, so what is found here is so when it is written; the updates
-- repeat the claim all the same. What someone else holds at this moment makes progress, or comes next time.
-- The job is locked too: a cancellation would not see the halves of a split that it overlaps with.
-- name: abandoned_tasks
SELECT t.id, t.job_id, t.datasource_id, t.session_id, t.origin_id, t.type, t.priority, t.payload, t.abandonments,
       t.claim_id, t.worker_id
FROM tasks t
JOIN jobs j ON j.id = t.job_id + 0
LEFT JOIN worker_sessions w ON w.id = t.worker_id
WHERE t.status = 'RUNNING'
  AND j.node_group = $1
  AND j.status NOT IN ('COMPLETED', 'PARTIALLY_COMPLETED', 'FAILED', 'CANCELLED')
  AND (w.id IS NULL OR w.lease_expiry <= now_ms() OR t.progress_at <= now_ms() - $2)
ORDER BY t.id + 0
LIMIT $3
FOR KEY SHARE OF j SKIP LOCKED
FOR UPDATE OF t SKIP LOCKED;

-- name: abandon_tasks
UPDATE tasks
SET status = 'PENDING', worker_id = NULL, claim_id = NULL, abandonments = abandonments + 1,
    not_before = now_ms() + a.wait_ms
FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS a (id, claim_id, wait_ms)
WHERE tasks.id = ANY (ARRAY[a.id]) AND tasks.status || '' = 'RUNNING' AND tasks.claim_id = a.claim_id;

-- name: cancel_tasks
WITH open AS (
    SELECT id FROM tasks WHERE job_id = $1 AND status IN ('PENDING', 'RUNNING') ORDER BY id FOR UPDATE)
UPDATE tasks SET status = 'CANCELLED', finished_at = now_ms() FROM open WHERE tasks.id = open.id;

-- Of these types, in their order, each counted as far as it matters.
-- name: pending_counts
SELECT (SELECT count(*) FROM (
    SELECT 1 FROM tasks WHERE job_id = $1 AND type = k.type AND status = 'PENDING' LIMIT $2) p)
FROM unnest($3::text[]) WITH ORDINALITY AS k (type, n)
ORDER BY k.n;
