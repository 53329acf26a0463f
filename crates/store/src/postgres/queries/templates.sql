-- Scan templates and the firings of their schedules.

-- Two that put the same name at once come one after the other.
-- name: add_template
INSERT INTO scan_templates (name, configuration, next_firing_at, created_at, updated_at)
VALUES ($1, $2, $3, now_ms(), now_ms())
ON CONFLICT (name) DO NOTHING
RETURNING 1;

-- name: replace_template
UPDATE scan_templates
SET configuration = $2, next_firing_at = $3, updated_at = now_ms()
WHERE name = $1
RETURNING 1;

-- name: remove_template
DELETE FROM scan_templates WHERE name = $1 RETURNING 1;

-- name: remove_firings
DELETE FROM schedule_firings WHERE template = $1;

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

-- name: next_due
SELECT min(next_firing_at) FROM scan_templates WHERE next_firing_at > $1;

-- name: now
SELECT now_ms();

-- Whoever fires this template comes one after the other.
-- name: lock_template
SELECT next_firing_at FROM scan_templates WHERE name = $1 FOR UPDATE;

-- name: insert_firing
INSERT INTO schedule_firings (template, firing_at, master_job_id, fired_at)
VALUES ($1, $2, $3, now_ms())
ON CONFLICT (template, firing_at) DO NOTHING
RETURNING 1;

-- name: set_next_firing
UPDATE scan_templates SET next_firing_at = $2 WHERE name = $1;
