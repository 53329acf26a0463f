-- Scan templates and the firings of their schedules.

-- With the last firing of each.
-- name: templates
SELECT t.configuration, t.next_firing_at, t.updated_at, f.firing_at, f.master_job_id
FROM scan_templates t
LEFT JOIN schedule_firings f
    ON f.template = t.name AND f.firing_at = (SELECT max(l.firing_at) FROM schedule_firings l WHERE l.template = t.name)
WHERE ?1 IS NULL OR t.name = ?1
ORDER BY t.name;

-- name: due_templates
SELECT t.configuration, t.next_firing_at, t.updated_at, f.firing_at, f.master_job_id
FROM scan_templates t
LEFT JOIN schedule_firings f
    ON f.template = t.name AND f.firing_at = (SELECT max(l.firing_at) FROM schedule_firings l WHERE l.template = t.name)
WHERE t.next_firing_at <= ?1
ORDER BY t.next_firing_at, t.name;

-- name: next_firing
SELECT next_firing_at FROM scan_templates WHERE name = ?1;
