-- Scan templates and the firings of their schedules.

-- Two that put the same name at once come one after the other.
-- name: add_template
INSERT INTO scan_templates (name, configuration, next_firing_at, created_at, updated_at)
VALUES (?1, ?2, ?3, now_ms(), now_ms())
ON CONFLICT (name) DO NOTHING;

-- name: replace_template
UPDATE scan_templates
SET configuration = ?2, next_firing_at = ?3, updated_at = now_ms()
WHERE name = ?1;

-- name: remove_template
DELETE FROM scan_templates WHERE name = ?1;

-- name: remove_firings
DELETE FROM schedule_firings WHERE template = ?1;

-- name: next_due
SELECT min(next_firing_at) FROM scan_templates WHERE next_firing_at > ?1;

-- name: now
SELECT now_ms();

-- name: insert_firing
INSERT INTO schedule_firings (template, firing_at, master_job_id, fired_at)
VALUES (?1, ?2, ?3, now_ms())
ON CONFLICT (template, firing_at) DO NOTHING;

-- name: set_next_firing
UPDATE scan_templates SET next_firing_at = ?2 WHERE name = ?1;
