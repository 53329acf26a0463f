-- What an earlier session says of a data source. The index is named where the planner, which knows no sizes, would go
-- through all that a job says.

-- Its job may be tried again, or pruned, at any time: then what it says is not, or no longer, all there is.
-- name: base_stands
SELECT EXISTS (
    SELECT 1
    FROM enumeration_sessions s
    JOIN jobs j ON j.id = s.job_id
    JOIN master_jobs m ON m.id = j.master_job_id
    WHERE s.id = ?1 AND s.job_id = ?2
      AND s.status IN ('COMPLETED', 'PARTIALLY_COMPLETED')
      AND j.status IN ('COMPLETED', 'PARTIALLY_COMPLETED')
      AND m.pruned_at IS NULL);
