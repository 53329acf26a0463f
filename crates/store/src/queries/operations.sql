-- What operators look at: child jobs, tasks, the fleet.

-- name: clear_reported
UPDATE master_jobs SET reported_at = NULL WHERE id = ?1;
