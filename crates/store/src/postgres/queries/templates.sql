-- Scan templates and the firings of their schedules.

-- With the last firing of each.
-- name: templates
SELECT t.configuration, t.next_firing_at, t.updated_at, f.firing_at, f.master_job_id
FROM scan_templates t
LEFT JOIN LATERAL (
    SELECT firing_at, master_job_id
    FROM schedule_firings
    WHERE template = t.name
    ORDER BY firing_at DESC
    LIMIT 1) f ON true
WHERE $1::text IS NULL OR t.name = $1
ORDER BY t.name;

-- name: due_templates
SELECT t.configuration, t.next_firing_at, t.updated_at, f.firing_at, f.master_job_id
FROM scan_templates t
LEFT JOIN LATERAL (
    SELECT firing_at, master_job_id
    FROM schedule_firings
    WHERE template = t.name
    ORDER BY firing_at DESC
    LIMIT 1) f ON true
WHERE t.next_firing_at <= $1
ORDER BY t.next_firing_at, t.name;

-- Whoever fires this template comes one after the other.
-- name: lock_template
SELECT next_firing_at FROM scan_templates WHERE name = $1 FOR UPDATE;
