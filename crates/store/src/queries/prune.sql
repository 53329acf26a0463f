-- Removing what is old, in steps.
--
-- A master job that is taken up gets another id in the first step, which nobody knows: whoever asks for it by
-- the id it had finds nothing at once, and what is left of it is found again by the next step.

-- name: pruned_master
SELECT id FROM master_jobs WHERE pruned_at IS NOT NULL ORDER BY pruned_at, id LIMIT 1;

-- The oldest master job that may go: all of it ended before the cutoff, and none of it is what was last found
-- whole, or nearly so, of a data source, or the base of its next session, if that is like its last one.
-- name: prunable_master
SELECT m.id
FROM master_jobs m
WHERE m.pruned_at IS NULL
  AND m.created_at < ?1
  AND NOT EXISTS (
      SELECT 1 FROM jobs j
      WHERE j.master_job_id = m.id
        AND (j.status NOT IN ('COMPLETED', 'PARTIALLY_COMPLETED', 'FAILED', 'CANCELLED')
             OR coalesce(j.finished_at, j.created_at) >= ?1))
  AND NOT EXISTS (
      SELECT 1
      FROM jobs j
      JOIN enumeration_sessions s ON s.job_id = j.id
      WHERE j.master_job_id = m.id
        AND j.status IN ('COMPLETED', 'PARTIALLY_COMPLETED')
        AND NOT EXISTS (
            SELECT 1
            FROM enumeration_sessions n
            JOIN jobs k ON k.id = n.job_id
            WHERE n.datasource_id = s.datasource_id AND n.job_id > j.id
              AND k.status IN ('COMPLETED', 'PARTIALLY_COMPLETED')))
  AND NOT EXISTS (
      SELECT 1
      FROM jobs j
      JOIN enumeration_sessions s ON s.job_id = j.id
      WHERE j.master_job_id = m.id
        AND j.status IN ('COMPLETED', 'PARTIALLY_COMPLETED')
        AND s.status IN ('COMPLETED', 'PARTIALLY_COMPLETED')
        AND s.scan_key = (
            SELECT l.scan_key FROM enumeration_sessions l
            WHERE l.datasource_id = s.datasource_id
            ORDER BY l.job_id DESC
            LIMIT 1)
        AND NOT EXISTS (
            SELECT 1
            FROM enumeration_sessions n
            JOIN jobs k ON k.id = n.job_id
            WHERE n.datasource_id = s.datasource_id AND n.scan_key = s.scan_key AND n.id > s.id
              AND n.status IN ('COMPLETED', 'PARTIALLY_COMPLETED')
              AND k.status IN ('COMPLETED', 'PARTIALLY_COMPLETED')))
ORDER BY m.created_at, m.id
LIMIT 1;

-- name: move_jobs
UPDATE jobs SET master_job_id = ?2 WHERE master_job_id = ?1;

-- name: delete_master
DELETE FROM master_jobs WHERE id = ?1;

-- name: pruned_jobs
SELECT id FROM jobs WHERE master_job_id = ?1 ORDER BY id LIMIT ?2;

-- name: prune_occurrences
DELETE FROM finding_occurrences
WHERE (job_id, task_id, sequence) IN (
    SELECT job_id, task_id, sequence FROM finding_occurrences WHERE job_id = ?1 LIMIT ?2);

-- name: prune_object_scans
DELETE FROM object_scans
WHERE (job_id, task_id, sequence) IN (
    SELECT job_id, task_id, sequence FROM object_scans WHERE job_id = ?1 LIMIT ?2);

-- name: prune_table_observations
DELETE FROM table_observations
WHERE (job_id, task_id, sequence) IN (
    SELECT job_id, task_id, sequence FROM table_observations WHERE job_id = ?1 LIMIT ?2);

-- name: prune_batches
DELETE FROM enumeration_batches
WHERE id IN (
    SELECT b.id
    FROM enumeration_sessions s
    JOIN enumeration_batches b ON b.session_id = s.id
    WHERE s.job_id = ?1
    LIMIT ?2);

-- The targets themselves stay.
-- name: prune_links
DELETE FROM job_scan_targets
WHERE (job_id, scan_target_id, session_id) IN (
    SELECT job_id, scan_target_id, session_id FROM job_scan_targets WHERE job_id = ?1 LIMIT ?2);

-- name: prune_sessions
DELETE FROM enumeration_sessions
WHERE id IN (SELECT id FROM enumeration_sessions WHERE job_id = ?1 LIMIT ?2);

-- name: tasks_to_prune
SELECT id FROM tasks WHERE job_id = ?1 LIMIT ?2;

-- name: prune_job
DELETE FROM jobs WHERE id = ?1;

-- The last firing of a template says when it was.
-- name: prune_firings
DELETE FROM schedule_firings
WHERE (template, firing_at) IN (
    SELECT f.template, f.firing_at
    FROM schedule_firings f
    WHERE f.fired_at < ?1
      AND EXISTS (SELECT 1 FROM schedule_firings n WHERE n.template = f.template AND n.firing_at > f.firing_at)
    LIMIT ?2);

-- name: prune_workers
DELETE FROM worker_sessions
WHERE id IN (
    SELECT w.id
    FROM worker_sessions w
    WHERE w.lease_expiry < ?1
      AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.worker_id = w.id AND t.status = 'RUNNING')
    LIMIT ?2);

-- name: prune_orchestrators
DELETE FROM orchestrators
WHERE id IN (
    SELECT o.id
    FROM orchestrators o
    WHERE o.lease_expiry < ?1
      AND NOT EXISTS (
          SELECT 1 FROM jobs j
          WHERE j.orchestrator_id = o.id AND j.status IN ('RUNNING', 'PAUSING', 'CANCELLING'))
    LIMIT ?2);
