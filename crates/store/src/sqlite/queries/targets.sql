-- Scan targets: each type's own table, the row they have in common, and which job came upon them.

-- name: put_github_repo
INSERT INTO github_repos (name, url, is_active, metadata, created_at, updated_at)
VALUES (?1, ?2, ?3, ?4, now_ms(), now_ms())
ON CONFLICT (url) DO UPDATE
SET name = excluded.name, is_active = excluded.is_active, metadata = excluded.metadata,
    updated_at = excluded.updated_at
RETURNING id;

-- name: put_url_target
INSERT INTO url_targets (url, metadata, created_at, updated_at)
VALUES (?1, ?2, now_ms(), now_ms())
ON CONFLICT (url) DO UPDATE SET metadata = excluded.metadata, updated_at = excluded.updated_at
RETURNING id;

-- name: put_scan_target
INSERT INTO scan_targets (id, name, target_type, target_id, metadata, created_at)
VALUES (?1, ?2, ?3, ?4, ?5, now_ms())
ON CONFLICT (id) DO UPDATE SET name = excluded.name, metadata = excluded.metadata;

-- name: link_scan_target
INSERT INTO job_scan_targets (job_id, scan_target_id, session_id) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING;

-- name: note_scan
UPDATE scan_targets
SET last_scan_time = now_ms()
WHERE id IN (SELECT scan_target_id FROM job_scan_targets WHERE job_id = ?1 AND session_id = ?2);

-- A repository and a web address may be written alike.
-- name: targets_by_url
SELECT t.id, t.name, t.target_type, t.target_id, r.url, r.is_active, t.metadata, t.created_at, t.last_scan_time
FROM github_repos r
JOIN scan_targets t ON t.target_type = 'github_repository' AND t.target_id = r.id
WHERE r.url = ?1
UNION ALL
SELECT t.id, t.name, t.target_type, t.target_id, u.url, NULL, t.metadata, t.created_at, t.last_scan_time
FROM url_targets u
JOIN scan_targets t ON t.target_type = 'url' AND t.target_id = u.id
WHERE u.url = ?1;

-- name: targets
SELECT t.id, t.name, t.target_type, t.target_id, coalesce(r.url, u.url), r.is_active, t.metadata, t.created_at,
       t.last_scan_time
FROM scan_targets t
LEFT JOIN github_repos r ON t.target_type = 'github_repository' AND r.id = t.target_id
LEFT JOIN url_targets u ON t.target_type = 'url' AND u.id = t.target_id
WHERE t.id > ?1 AND (?2 IS NULL OR t.target_type = ?2)
ORDER BY t.id
LIMIT ?3;

-- name: targets_of_job
SELECT t.id, t.name, t.target_type, t.target_id, coalesce(r.url, u.url), r.is_active, t.metadata, t.created_at,
       t.last_scan_time
FROM (
    SELECT DISTINCT l.scan_target_id AS id
    FROM jobs j
    CROSS JOIN job_scan_targets l ON l.job_id = j.id AND l.scan_target_id > ?1
    WHERE j.master_job_id = ?4) k
CROSS JOIN scan_targets t ON t.id = k.id
LEFT JOIN github_repos r ON t.target_type = 'github_repository' AND r.id = t.target_id
LEFT JOIN url_targets u ON t.target_type = 'url' AND u.id = t.target_id
WHERE ?2 IS NULL OR t.target_type = ?2
ORDER BY t.id
LIMIT ?3;

-- name: targets_of_session
SELECT t.id, t.name, t.target_type, t.target_id, coalesce(r.url, u.url), r.is_active, t.metadata, t.created_at,
       t.last_scan_time
FROM (
    SELECT DISTINCT l.scan_target_id AS id
    FROM enumeration_sessions s
    CROSS JOIN job_scan_targets l ON l.job_id = s.job_id AND l.scan_target_id > ?1 AND l.session_id = s.id
    WHERE s.id = ?4) k
CROSS JOIN scan_targets t ON t.id = k.id
LEFT JOIN github_repos r ON t.target_type = 'github_repository' AND r.id = t.target_id
LEFT JOIN url_targets u ON t.target_type = 'url' AND u.id = t.target_id
WHERE ?2 IS NULL OR t.target_type = ?2
ORDER BY t.id
LIMIT ?3;
