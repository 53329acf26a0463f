-- Scan targets: each type's own table, the row they have in common, and which job came upon them.
--
-- Workers come upon the same target at the same time. Whoever writes targets locks rows table by table as they are
-- named here, in the order of addresses, and then of ids; so nobody waits in a circle.

-- name: put_github_repos
INSERT INTO github_repos (name, url, node_group, is_active, metadata, created_at, updated_at)
SELECT r.name, r.url, j.node_group, r.is_active, r.metadata, now_ms(), now_ms()
FROM jobs j
CROSS JOIN unnest($2::text[], $3::text[], $4::boolean[], $5::text[]) WITH ORDINALITY
    AS r (name, url, is_active, metadata, n)
WHERE j.id = $1
ORDER BY r.n
ON CONFLICT (url_key(url), node_group) DO UPDATE
SET name = excluded.name, is_active = excluded.is_active, metadata = excluded.metadata,
    updated_at = excluded.updated_at
RETURNING id, name, metadata;

-- name: put_url_targets
INSERT INTO url_targets (url, node_group, metadata, created_at, updated_at)
SELECT u.url, j.node_group, u.metadata, now_ms(), now_ms()
FROM jobs j
CROSS JOIN unnest($2::text[], $3::text[]) WITH ORDINALITY AS u (url, metadata, n)
WHERE j.id = $1
ORDER BY u.n
ON CONFLICT (url_key(url), node_group) DO UPDATE SET metadata = excluded.metadata, updated_at = excluded.updated_at
RETURNING id, url, metadata;

-- name: put_scan_targets
INSERT INTO scan_targets (id, name, target_type, target_id, node_group, metadata, created_at)
SELECT t.id, t.name, t.target_type, t.target_id, j.node_group, t.metadata, now_ms()
FROM jobs j
CROSS JOIN unnest($2::bytea[], $3::text[], $4::text[], $5::bigint[], $6::text[])
    AS t (id, name, target_type, target_id, metadata)
WHERE j.id = $1
ORDER BY t.id
ON CONFLICT (target_type, target_id) DO UPDATE SET name = excluded.name, metadata = excluded.metadata;

-- name: link_scan_targets
INSERT INTO job_scan_targets (job_id, scan_target_id, session_id)
SELECT $1, l.id, l.session_id
FROM unnest($2::bytea[], $3::bigint[]) AS l (id, session_id)
ORDER BY l.id
ON CONFLICT DO NOTHING;

-- name: note_scan
UPDATE scan_targets t
SET last_scan_time = now_ms()
FROM (
    SELECT k.id
    FROM job_scan_targets l
    JOIN scan_targets k ON k.id = l.scan_target_id
    WHERE l.job_id = $1 AND l.session_id = $2
    ORDER BY k.id
    FOR NO KEY UPDATE OF k) s
WHERE t.id = s.id;

-- A repository and a web address may be written alike.
-- name: targets_by_url
SELECT t.id, t.name, t.target_type, t.target_id, r.url, r.is_active, t.metadata, t.created_at, t.last_scan_time
FROM github_repos r
JOIN scan_targets t ON t.target_type = 'github_repository' AND t.target_id = r.id
WHERE url_key(r.url) = url_key($1)
UNION ALL
SELECT t.id, t.name, t.target_type, t.target_id, u.url, NULL, t.metadata, t.created_at, t.last_scan_time
FROM url_targets u
JOIN scan_targets t ON t.target_type = 'url' AND t.target_id = u.id
WHERE url_key(u.url) = url_key($1);

-- name: targets
SELECT t.id, t.name, t.target_type, t.target_id, coalesce(r.url, u.url), r.is_active, t.metadata, t.created_at,
       t.last_scan_time
FROM (
    SELECT * FROM scan_targets
    WHERE id > $1 AND ($2::text IS NULL OR target_type = $2)
    ORDER BY id
    LIMIT $3) t
LEFT JOIN github_repos r ON t.target_type = 'github_repository' AND r.id = t.target_id
LEFT JOIN url_targets u ON t.target_type = 'url' AND u.id = t.target_id
ORDER BY t.id;

-- name: targets_of_job
SELECT t.id, t.name, t.target_type, t.target_id, coalesce(r.url, u.url), r.is_active, t.metadata, t.created_at,
       t.last_scan_time
FROM (
    SELECT s.*
    FROM (
        SELECT DISTINCT l.scan_target_id AS id
        FROM jobs j
        JOIN job_scan_targets l ON l.job_id = j.id AND l.scan_target_id > $1
        WHERE j.master_job_id = $4) k
    JOIN scan_targets s ON s.id = k.id
    WHERE $2::text IS NULL OR s.target_type = $2
    ORDER BY s.id
    LIMIT $3) t
LEFT JOIN github_repos r ON t.target_type = 'github_repository' AND r.id = t.target_id
LEFT JOIN url_targets u ON t.target_type = 'url' AND u.id = t.target_id
ORDER BY t.id;

-- name: targets_of_session
SELECT t.id, t.name, t.target_type, t.target_id, coalesce(r.url, u.url), r.is_active, t.metadata, t.created_at,
       t.last_scan_time
FROM (
    SELECT s.*
    FROM (
        SELECT DISTINCT l.scan_target_id AS id
        FROM enumeration_sessions e
        JOIN job_scan_targets l ON l.job_id = e.job_id AND l.scan_target_id > $1 AND l.session_id = e.id
        WHERE e.id = $4) k
    JOIN scan_targets s ON s.id = k.id
    WHERE $2::text IS NULL OR s.target_type = $2
    ORDER BY s.id
    LIMIT $3) t
LEFT JOIN github_repos r ON t.target_type = 'github_repository' AND r.id = t.target_id
LEFT JOIN url_targets u ON t.target_type = 'url' AND u.id = t.target_id
ORDER BY t.id;
