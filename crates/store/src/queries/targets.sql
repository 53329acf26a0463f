-- Scan targets: each type's own table, the row they have in common, and which job came upon them.

-- name: target
SELECT t.id, t.name, t.target_type, t.target_id, coalesce(r.url, u.url), r.is_active, t.metadata, t.created_at,
       t.last_scan_time
FROM scan_targets t
LEFT JOIN github_repos r ON t.target_type = 'github_repository' AND r.id = t.target_id
LEFT JOIN url_targets u ON t.target_type = 'url' AND u.id = t.target_id
WHERE t.id = ?1;
