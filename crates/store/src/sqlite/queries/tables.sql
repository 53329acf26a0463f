-- The catalogue of tables.

-- The sources of a job, or of each source its latest job that came to an end.
-- name: catalog_sources
SELECT d.id, d.name, s.source_type, j.id, j.master_job_id, coalesce(j.finished_at, j.created_at)
FROM enumeration_sessions s
JOIN jobs j ON j.id = s.job_id
JOIN master_jobs m ON m.id = j.master_job_id
JOIN datasources d ON d.id = s.datasource_id
WHERE m.pruned_at IS NULL
  AND CASE WHEN ?1 IS NOT NULL THEN j.master_job_id = ?1
      ELSE j.status IN ('COMPLETED', 'PARTIALLY_COMPLETED')
           AND NOT EXISTS (
               SELECT 1
               FROM enumeration_sessions n
               JOIN jobs k ON k.id = n.job_id
               WHERE n.datasource_id = s.datasource_id AND n.job_id > s.job_id
                 AND k.status IN ('COMPLETED', 'PARTIALLY_COMPLETED'))
      END
ORDER BY d.name, j.id;

-- name: table_observations
SELECT object_key, nested_path, part_key, shape, rows, is_sample, sketches
FROM table_observations INDEXED BY table_observations_by_table
WHERE job_id = ?1 AND datasource_id = ?2
  AND (?3 IS NULL OR (object_key, nested_path, part_key) > (?3, ?4, ?5))
ORDER BY object_key, nested_path, part_key, task_id, sequence
LIMIT ?6;
