-- Tasks: the fence, giving back, reaping. A task is looked up by its id: `status || ''` keeps PostgreSQL from the
-- indexes of pending and of running tasks.

-- The fence. Every write of a task's results goes through it, in the same transaction: the task is RUNNING
-- under this very claim, and its job still accepts results. The row stays locked until the end.
--
-- It does not lock the job: that row would be written to by every write of every worker. Nor need it. A
-- job that is cancelled cancels its tasks in the same transaction, and so meets each writer at the task's
-- row: either the writer has it, and was before the cancellation; or the cancellation has it, and the
-- writer waits, looks again, and finds no RUNNING task. A pausing job is paused, and a running one ends,
-- only when none of its tasks runs, under a lock that lets no claim through.
-- name: fence
UPDATE tasks
SET progress_at = now_ms()
WHERE id = ?1
  AND status || '' = 'RUNNING'
  AND claim_id = ?2
  AND (SELECT j.status FROM jobs j WHERE j.id = tasks.job_id) IN ('RUNNING', 'PAUSING')
RETURNING job_id, session_id, datasource_id, coalesce(origin_id, id);

-- For the permanent test that removes the fence and watches the conformance suite turn red.
-- name: no_fence
UPDATE tasks
SET progress_at = now_ms()
WHERE id = ?1 AND CAST(?2 AS bigint) IS NOT NULL
RETURNING job_id, session_id, datasource_id, coalesce(origin_id, id);

-- name: task_payload
SELECT type, payload FROM tasks WHERE id = ?1;

-- What was committed stays, so whoever ends next ends after progress: the count starts anew.
-- name: note_progress
UPDATE tasks SET abandonments = 0 WHERE id = ?1 AND abandonments > 0;

-- So does that of attempts that failed, when a container was listed or a page of one.
-- name: note_listed
UPDATE tasks SET failures = 0 WHERE id = ?1 AND failures > 0;

-- name: return_task
UPDATE tasks SET status = 'PENDING', worker_id = NULL, claim_id = NULL WHERE id = ?1;

-- name: retry_task
UPDATE tasks
SET status = 'PENDING', worker_id = NULL, claim_id = NULL, failures = failures + 1, last_error = ?2,
    not_before = now_ms() + ?3
WHERE id = ?1;

-- Neither failed nor abandoned. What it waits for is told.
-- name: wait_task
UPDATE tasks
SET status = 'PENDING', worker_id = NULL, claim_id = NULL, last_error = ?3, not_before = now_ms() + ?2
WHERE id = ?1;

-- Objects that another task reads again are that one's.
-- name: hand_on_objects
UPDATE tasks SET objects = objects - ?2 WHERE id = ?1;

-- name: fail_task
UPDATE tasks SET status = 'FAILED', finished_at = now_ms(), failures = failures + 1, last_error = ?2 WHERE id = ?1;

-- name: split_task
UPDATE tasks
SET status = 'CANCELLED', finished_at = now_ms(), abandonments = abandonments + 1,
    last_error = 'its worker ended twice; split in half'
WHERE id = ?1 AND status || '' = 'RUNNING' AND claim_id = ?2;

-- No claim completed it, so none may read back that it did.
-- name: poison_task
UPDATE tasks
SET status = 'COMPLETED', claim_id = NULL, finished_at = now_ms(), abandonments = abandonments + 1, objects = ?3,
    last_error = 'its worker ended again and again'
WHERE id = ?1 AND status || '' = 'RUNNING' AND claim_id = ?2;
